//! The ledger's own connection to etcd: to one member at a time, and with a call's head and body in one write.
//!
//! 1. hyper hands the head, the body and the end of a unary call to the connection in three turns of the scheduler, and each would be
//!    written by itself. Each write wakes etcd up, which on a busy machine takes the core from the issuer in the middle of its call:
//!    up to 0.1 ms lay between head and body. So a flush gives the other tasks a turn as long as each brings more to write.
//!    What is too small to be a call is HTTP/2's own talk: etcd sends a ping with its answers, and to answer that before the holders
//!    cost each allocation 20 µs (system calls of an issuer with one holder, 2026-11-22). So it waits for some turns more.
//! 2. When the connection breaks, or is silent for longer than keep-alive allows, the next member is tried. The election has connections
//!    of its own to all members, so a member that hangs delays commits, and does not end the leader's term.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, BufWriter, ReadBuf},
    net::TcpStream,
    time::timeout,
};
use tonic::transport::{Channel, Endpoint, Uri};

/// More than this is not held back.
const HELD_MAX: usize = 64 * 1024;
/// What holds a call is longer, in bytes.
const TALK_MAX: usize = 64;
/// Turns in which nothing more came, before talk is written; an answer goes through so many tasks to its holder.
const TALK_TURNS: u8 = 6;

/// A channel to whichever of the members answers. It connects with the first call.
///
/// # Errors
/// When the first address is not one.
pub(crate) fn connect(members: &[String], deadline: Duration) -> Result<Channel, tonic::transport::Error> {
    let first = members.first().map_or("", String::as_str);
    let origin = if first.contains("://") { first.to_owned() } else { format!("http://{first}") };
    let addresses: Arc<[String]> = members.iter().map(|member| address(member)).collect();
    let turn = Arc::new(AtomicUsize::new(0));
    let connector = tower::service_fn(move |_: Uri| {
        let (addresses, turn) = (Arc::clone(&addresses), Arc::clone(&turn));
        async move { dial(&addresses, &turn, deadline).await.map(|stream| TokioIo::new(Gather::new(stream))) }
    });
    let endpoint = Endpoint::from_shared(origin)?
        .http2_keep_alive_interval(deadline / 2)
        .keep_alive_timeout(deadline / 2)
        .keep_alive_while_idle(true);
    Ok(endpoint.connect_with_connector_lazy(connector))
}

/// Host and port of a member's URL.
fn address(member: &str) -> String {
    let member = member.trim_start_matches("http://");
    member.trim_end_matches('/').to_owned()
}

/// Tries each member once, beginning after the one that was connected last.
async fn dial(addresses: &[String], turn: &AtomicUsize, deadline: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for _ in addresses {
        let address = &addresses[turn.fetch_add(1, Ordering::Relaxed) % addresses.len()];
        match timeout(deadline, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
}

/// A stream whose flushes wait for what else there is to write.
struct Gather<S> {
    stream: BufWriter<S>,
    /// What was held back when the others were last given their turn, in bytes.
    seen: usize,
    /// How many turns brought nothing more.
    quiet: u8,
}

impl<S: AsyncWrite> Gather<S> {
    fn new(stream: S) -> Self {
        Self { stream: BufWriter::with_capacity(HELD_MAX, stream), seen: 0, quiet: 0 }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Gather<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gather<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let held = self.stream.buffer().len();
        let has_more = std::mem::replace(&mut self.seen, held) < held;
        self.quiet = if has_more { 0 } else { self.quiet.saturating_add(1) };
        let turns = if held > TALK_MAX { 1 } else { TALK_TURNS };
        if held > 0 && self.quiet < turns {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        (self.seen, self.quiet) = (0, 0);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn a_flush_gives_others_their_turn_until_one_brings_nothing() {
        let (near, mut far) = duplex(1 << 20);
        let mut gather = Gather::new(near);
        let mut cx = Context::from_waker(Waker::noop());
        gather.write_all(b"head").await.unwrap();
        assert!(Pin::new(&mut gather).poll_flush(&mut cx).is_pending());
        let mut read = [0; 64];
        let nothing = Pin::new(&mut far).poll_read(&mut cx, &mut ReadBuf::new(&mut read));
        assert!(nothing.is_pending(), "held back for a turn");
        gather.write_all(&[b'+'; TALK_MAX]).await.unwrap();
        assert!(Pin::new(&mut gather).poll_flush(&mut cx).is_pending(), "there may be more");
        assert!(Pin::new(&mut gather).poll_flush(&mut cx).is_ready());
        let mut read = [0; 4 + TALK_MAX];
        far.read_exact(&mut read).await.unwrap();
        assert!(read.starts_with(b"head+"));
        gather.write_all(b"next").await.unwrap();
        assert!(Pin::new(&mut gather).poll_flush(&mut cx).is_pending(), "each flush waits");
    }

    #[tokio::test]
    async fn what_is_no_call_waits_for_some_turns_and_is_then_written() {
        let (near, mut far) = duplex(1 << 20);
        let mut gather = Gather::new(near);
        let mut cx = Context::from_waker(Waker::noop());
        gather.write_all(b"pong").await.unwrap();
        for turn in 0..TALK_TURNS {
            assert!(Pin::new(&mut gather).poll_flush(&mut cx).is_pending(), "turn {turn}");
        }
        assert!(Pin::new(&mut gather).poll_flush(&mut cx).is_ready());
        let mut read = [0; 4];
        far.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"pong");
    }

    #[tokio::test]
    async fn more_than_is_held_back_arrives_whole_and_in_order() {
        let (near, mut far) = duplex(1 << 20);
        let mut gather = Gather::new(near);
        let mut expected = Vec::new();
        for length in [1, HELD_MAX + 5, 3, 9] {
            let piece = vec![u8::try_from(expected.len() % 251).unwrap(); length];
            gather.write_all(&piece).await.unwrap();
            expected.extend(piece);
        }
        gather.flush().await.unwrap();
        let mut read = vec![0; expected.len()];
        far.read_exact(&mut read).await.unwrap();
        assert_eq!(read, expected);
    }

    #[test]
    fn members_are_addressed_by_host_and_port() {
        assert_eq!(address("http://etcd-0:2379/"), "etcd-0:2379");
        assert_eq!(address("10.0.0.1:2379"), "10.0.0.1:2379");
    }
}
