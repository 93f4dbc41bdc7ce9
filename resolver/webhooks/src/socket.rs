//! The TCP connection of one attempt.
//!
//! 1. It connects to the checked addresses and to no other.
//! 2. Each call ends by its deadline. The client's own transport applies a limit to every `write`
//!    anew, so that a receiver that reads a few bytes at a time could hold a thread for much
//!    longer.
//! 3. It notes how far the attempt has come. Once the whole request is written, a failure no longer
//!    says whether the receiver has the event.

use std::{
    fmt,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ureq::{
    Timeout,
    unversioned::transport::{
        Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport, time::Instant,
    },
};

/// The shortest time limit for connecting to one of several addresses.
const MIN_CONNECT: Duration = Duration::from_millis(1);

/// How far an attempt has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Phase {
    /// The host is being resolved.
    #[default]
    Resolve,
    /// The connection is being opened.
    Connect,
    /// TLS is being negotiated.
    Handshake,
    /// The request is being sent.
    Send,
    /// The request is sent, and the answer is being awaited.
    Answer,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resolve => "resolving the host",
            Self::Connect => "connecting",
            Self::Handshake => "negotiating TLS",
            Self::Send => "sending the request",
            Self::Answer => "waiting for the answer",
        })
    }
}

/// The phase of one attempt, shared by the parts of its connection.
#[derive(Debug, Default)]
pub(crate) struct Progress(Mutex<Phase>);

impl Progress {
    /// Returns the current phase.
    pub(crate) fn phase(&self) -> Phase {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, phase: Phase) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = phase;
    }
}

/// Opens the connection of one attempt.
#[derive(Debug)]
pub(crate) struct Dial(pub(crate) Arc<Progress>);

impl Connector<()> for Dial {
    type Out = Socket;

    fn connect(&self, details: &ConnectionDetails, _: Option<()>) -> Result<Option<Socket>, ureq::Error> {
        self.0.enter(Phase::Connect);
        let clock = Clock(Arc::clone(&details.current_time));
        let deadline = clock.deadline(details.now, details.timeout);
        let stream = dial(&details.addrs, &deadline)?;
        stream.set_nodelay(true)?;
        self.0.enter(Phase::Handshake);
        let buffers =
            LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size());
        Ok(Some(Socket { stream, buffers, clock, progress: Arc::clone(&self.0) }))
    }
}

/// Notes that the connection is ready for the request. It comes after TLS in the chain.
#[derive(Debug)]
pub(crate) struct Ready(pub(crate) Arc<Progress>);

impl<In: Transport> Connector<In> for Ready {
    type Out = In;

    fn connect(&self, _: &ConnectionDetails, chained: Option<In>) -> Result<Option<In>, ureq::Error> {
        self.0.enter(Phase::Send);
        Ok(chained)
    }
}

/// Tries addresses in turn. Each but the last gets half of the remaining time.
fn dial(addresses: &[SocketAddr], deadline: &Deadline) -> Result<TcpStream, ureq::Error> {
    let mut failure = ureq::Error::HostNotFound;
    for (position, address) in addresses.iter().enumerate() {
        let left = deadline.left()?;
        let is_last = position + 1 == addresses.len();
        let limit = if is_last { left } else { (left / 2).max(MIN_CONNECT) };
        match TcpStream::connect_timeout(address, limit) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = deadline.failure(error),
        }
    }
    Err(failure)
}

/// The client's clock.
struct Clock(Arc<dyn Fn() -> Instant + Send + Sync>);

/// The end of one call.
struct Deadline {
    at: Instant,
    reason: Timeout,
    clock: Arc<dyn Fn() -> Instant + Send + Sync>,
}

impl Clock {
    fn deadline(&self, from: Instant, timeout: NextTimeout) -> Deadline {
        Deadline { at: from + timeout.after, reason: timeout.reason, clock: Arc::clone(&self.0) }
    }

    fn deadline_from_now(&self, timeout: NextTimeout) -> Deadline {
        self.deadline((self.0)(), timeout)
    }
}

impl Deadline {
    /// Returns the remaining time, which is not zero. Every attempt has a total limit, so a
    /// deadline that never comes is a mistake and counts as over.
    fn left(&self) -> Result<Duration, ureq::Error> {
        let left = match (self.at, (self.clock)()) {
            (Instant::Exact(at), Instant::Exact(now)) => at.saturating_duration_since(now),
            _ => Duration::ZERO,
        };
        if left.is_zero() { Err(ureq::Error::Timeout(self.reason)) } else { Ok(left) }
    }

    fn failure(&self, error: io::Error) -> ureq::Error {
        match error.kind() {
            // Unix reports a time limit of a read or a write as the first of these.
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ureq::Error::Timeout(self.reason),
            _ => ureq::Error::Io(error),
        }
    }
}

/// A connection that no second request uses.
pub(crate) struct Socket {
    stream: TcpStream,
    buffers: LazyBuffers,
    clock: Clock,
    progress: Arc<Progress>,
}

impl Transport for Socket {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        let deadline = self.clock.deadline_from_now(timeout);
        let mut rest = &self.buffers.output()[..amount];
        while !rest.is_empty() {
            self.stream.set_write_timeout(Some(deadline.left()?))?;
            match self.stream.write(rest) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(deadline.failure(error)),
            }
        }
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        // The client writes the whole request before it reads.
        if self.progress.phase() == Phase::Send {
            self.progress.enter(Phase::Answer);
        }
        let deadline = self.clock.deadline_from_now(timeout);
        loop {
            self.stream.set_read_timeout(Some(deadline.left()?))?;
            match self.stream.read(self.buffers.input_append_buf()) {
                Ok(read) => {
                    self.buffers.input_appended(read);
                    return Ok(read > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(deadline.failure(error)),
            }
        }
    }

    fn is_open(&mut self) -> bool {
        false
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket").field("peer", &self.stream.peer_addr().ok()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    fn clock() -> Clock {
        Clock(Arc::new(Instant::now))
    }

    fn within(limit: Duration) -> NextTimeout {
        NextTimeout { after: limit.into(), reason: Timeout::Global, ..NextTimeout::default() }
    }

    fn connected(output: usize) -> (Socket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (peer, _) = listener.accept().unwrap();
        let buffers = LazyBuffers::new(64, output);
        let socket = Socket { stream, buffers, clock: clock(), progress: Arc::default() };
        (socket, peer)
    }

    #[test]
    fn a_receiver_that_reads_slowly_does_not_extend_the_deadline_of_a_write() {
        // More than the buffers of both ends take.
        let (mut socket, mut peer) = connected(32 << 20);
        let reader = thread::spawn(move || {
            let mut some = [0; 1 << 14];
            while peer.read(&mut some).is_ok_and(|read| read > 0) {
                thread::sleep(Duration::from_millis(5));
            }
        });
        let sent = socket.transmit_output(32 << 20, within(Duration::from_millis(200)));
        assert!(matches!(sent, Err(ureq::Error::Timeout(Timeout::Global))), "{sent:?}");
        drop(socket);
        drop(reader);
    }

    #[test]
    fn a_read_ends_at_its_deadline_and_notes_that_the_request_was_sent() {
        let (mut socket, _peer) = connected(64);
        socket.progress.enter(Phase::Send);
        let read = socket.await_input(within(Duration::from_millis(20)));
        assert!(matches!(read, Err(ureq::Error::Timeout(Timeout::Global))), "{read:?}");
        assert_eq!(socket.progress.phase(), Phase::Answer);
    }

    #[test]
    fn reads_during_the_handshake_are_no_answers() {
        let (mut socket, mut peer) = connected(64);
        socket.progress.enter(Phase::Handshake);
        peer.write_all(b"hello").unwrap();
        assert!(socket.await_input(within(Duration::from_secs(60))).unwrap());
        assert_eq!(socket.buffers().input(), b"hello");
        assert_eq!(socket.progress.phase(), Phase::Handshake);
    }

    #[test]
    fn the_next_address_is_tried_when_one_refuses() {
        let refusing = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let deadline = clock().deadline_from_now(within(Duration::from_secs(60)));
        let stream = dial(&[refusing, address], &deadline).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), address);
        let refused = dial(&[refusing], &deadline).unwrap_err();
        assert!(
            matches!(refused, ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused)
        );
    }

    #[test]
    fn a_deadline_that_is_over_or_never_comes_connects_to_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        for timeout in [within(Duration::ZERO), NextTimeout::default()] {
            let dialled = dial(&[address], &clock().deadline_from_now(timeout));
            assert!(matches!(dialled, Err(ureq::Error::Timeout(Timeout::Global))), "{dialled:?}");
        }
    }
}
