//! Connections behind a gate, with TLS or without.

use std::{
    future::ready,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_util::{Stream, StreamExt as _, stream};
use tls::{Identity, ServerStream, ServerTls};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Interval, MissedTickBehavior, interval, timeout},
};
use tonic::transport::server::Connected;

use super::{CLOSING, Gate, Guarded, Guest, Seldom};

/// Maximum number of handshakes that begin in a second.
const HANDSHAKES: u32 = 200;

/// An accepted connection, after its handshake if it has TLS.
pub enum Secured {
    /// A connection in plaintext.
    Plain(Guarded),
    /// A connection with TLS, and whom the client's certificate names.
    Tls(Box<ServerStream<Guarded>>, Option<Identity>),
}

impl Gate {
    /// Converts the gate into a stream of connections, for a server that takes one. With `tls`, a
    /// connection arrives after its handshake. Handshakes do not wait for each other's answers;
    /// each has the time of a greeting, and `HANDSHAKES` begin in a second.
    ///
    /// Any client can make the listener sign, which takes a processor up to a millisecond.
    pub fn into_secured(self, tls: Option<ServerTls>) -> impl Stream<Item = io::Result<Secured>> {
        let (name, within) = (self.name, self.limits.greet_within);
        // As many as there can be connections, so that the gate is always asked for the next.
        let most = self.limits.connections.saturating_add(CLOSING + 1);
        let refused = Arc::new(Seldom::default());
        let paced = stream::unfold((self, pace(), tls.is_some()), async |(mut gate, mut pace, has_tls)| {
            let mut guarded = gate.accept().await;
            if has_tls {
                guarded.is_plain = false;
                pace.tick().await;
            }
            Some((guarded, (gate, pace, has_tls)))
        });
        let handshakes = paced.map(move |guarded| {
            let (tls, refused) = (tls.clone(), Arc::clone(&refused));
            async move {
                let Some(tls) = tls else { return Some(Ok(Secured::Plain(guarded))) };
                let peer = guarded.connect_info().peer();
                let made = timeout(within, tls.accept(guarded)).await;
                let error = match made.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                    Ok((stream, identity)) => return Some(Ok(Secured::Tls(Box::new(stream), identity))),
                    Err(error) => error,
                };
                if let Some(times) = refused.happened() {
                    let peer = peer.map(|peer| peer.to_string());
                    tracing::warn!(peer, %error, times, listener = name, "TLS handshake failed");
                }
                None
            }
        });
        handshakes.buffer_unordered(most).filter_map(ready)
    }
}

/// Returns the interval between handshakes. A quiet time saves up none.
fn pace() -> Interval {
    let mut pace = interval(Duration::from_secs(1) / HANDSHAKES);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pace
}

impl Connected for Secured {
    type ConnectInfo = Guest;

    fn connect_info(&self) -> Guest {
        match self {
            Self::Plain(guarded) => guarded.connect_info(),
            Self::Tls(stream, identity) => {
                let mut guest = stream.get_ref().0.connect_info();
                guest.identity.clone_from(identity);
                guest
            }
        }
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream, _) => {
                let before = buffer.filled().len();
                ready!(Pin::new(&mut *stream).poll_read(cx, buffer))?;
                stream.get_ref().0.note_read(buffer.filled().len() - before);
                Poll::Ready(Ok(()))
            }
        }
    }
}

impl AsyncWrite for Secured {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream, _) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Tls(stream, _) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream, _) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream, _) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream, _) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_quiet_time_is_not_followed_by_a_burst_of_handshakes() {
        let mut pace = pace();
        pace.tick().await;
        advance(Duration::from_secs(10)).await;
        assert!(pace.tick().now_or_never().is_some());
        assert!(pace.tick().now_or_never().is_none());
        advance(Duration::from_secs(1) / HANDSHAKES).await;
        assert!(pace.tick().now_or_never().is_some());
    }
}
