//! One connection to a member, which is closed when its silence costs a call.
//!
//! Pings do not tell enough: a member that is cut off from its peers answers them, and no calls. So
//! a call that was given up without an answer closes the connection that it was sent on, and the
//! next call goes to another member. Keep-alives are for what is open for long, a watch or the
//! beats of a lease. etcd closes connections with more pings than one in five seconds, and with any
//! while nothing is asked (`--grpc-keepalive-min-time`).

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};
use tonic::transport::{Channel, Endpoint};
use tower::{BoxError, Service};

/// Interval of keep-alives: one second more than etcd demands.
const PING: Duration = Duration::from_secs(6);
/// A call that is given up earlier was not waiting for the member: its caller left.
const PATIENCE: Duration = Duration::from_millis(250);

type Request = tonic::codegen::http::Request<tonic::body::Body>;

/// Configures keep-alives; `patience` is the time that an answer to a ping may take.
pub(super) fn with_keep_alives(endpoint: Endpoint, patience: Duration) -> Endpoint {
    endpoint.http2_keep_alive_interval(PING).keep_alive_timeout(patience).keep_alive_while_idle(false)
}

/// Closes the connection of a channel that was opened last.
pub(super) type Closing = Arc<Mutex<CancellationToken>>;

pub(super) fn lock(closing: &Closing) -> MutexGuard<'_, CancellationToken> {
    closing.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A channel whose connection is closed if a call is given up before its answer begins. It closes
/// the one that is open then, which may have been opened for that call.
#[derive(Clone)]
pub(super) struct Impatient {
    pub(super) channel: Channel,
    pub(super) closing: Closing,
    /// Whether it fails once its connection is gone, so that a balance drops it. The channel itself
    /// would open another with the next call.
    pub(super) has_one_connection: bool,
}

impl Service<Request> for Impatient {
    type Response = <Channel as Service<Request>>::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if self.has_one_connection && lock(&self.closing).is_cancelled() {
            return Poll::Ready(Err(io::Error::from(io::ErrorKind::ConnectionAborted).into()));
        }
        Service::<Request>::poll_ready(&mut self.channel, cx).map_err(BoxError::from)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let (answer, closing) = (self.channel.call(request), Arc::clone(&self.closing));
        Box::pin(async move {
            let mut unanswered = Unanswered { since: Instant::now(), closing: Some(closing) };
            let answer = answer.await;
            unanswered.closing = None;
            answer.map_err(BoxError::from)
        })
    }
}

struct Unanswered {
    since: Instant,
    /// `None` once it has an answer.
    closing: Option<Closing>,
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(closing) = self.closing.as_ref().filter(|_| self.since.elapsed() >= PATIENCE) {
            lock(closing).cancel();
        }
    }
}

/// A stream that is closed by a token, and cancels it when it ends by itself.
pub(super) struct Closable<S> {
    stream: S,
    is_closed: Pin<Box<WaitForCancellationFutureOwned>>,
    _gone: DropGuard,
}

impl<S> Closable<S> {
    pub(super) fn new(stream: S, gone: CancellationToken) -> Self {
        Self { stream, is_closed: Box::pin(gone.clone().cancelled_owned()), _gone: gone.drop_guard() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Closable<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_closed.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Closable<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::{io::AsyncReadExt as _, time::advance};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_closes_when_a_call_is_given_up_without_an_answer() {
        let gone = CancellationToken::new();
        let (near, _far) = tokio::io::duplex(16);
        let mut stream = Closable::new(near, gone.clone());
        let latest = Closing::default();
        let unanswered = || Unanswered { since: Instant::now(), closing: Some(Arc::clone(&latest)) };
        let (mut answered, hasty, late) = (unanswered(), unanswered(), unanswered());
        drop(hasty);
        // The connection may be opened after the call was made.
        *lock(&latest) = gone.clone();
        advance(PATIENCE).await;
        answered.closing = None;
        drop(answered);
        assert!(!gone.is_cancelled());
        let read = tokio::spawn(async move { stream.read_u8().await });
        tokio::task::yield_now().await;
        drop(late);
        assert_eq!(read.await.unwrap().unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    }

    #[test]
    fn the_end_of_a_connection_is_told() {
        let gone = CancellationToken::new();
        drop(Closable::new(tokio::io::empty(), gone.clone()));
        assert!(gone.is_cancelled());
    }
}
