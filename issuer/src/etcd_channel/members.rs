//! Connections to all members of etcd, of which a call takes one that is open.
//!
//! A member is among them from the end of its handshake until its connection breaks, or until its
//! silence is noticed. So no call waits for a member that is known to be down.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use daemon::{Seldom, reasons};
use hyper_util::rt::TokioIo;
use tls::ClientTls;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::mpsc,
    time::{Instant, sleep},
};
use tokio_stream::{StreamExt as _, wrappers::ReceiverStream};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::AbortOnDropHandle,
};
use tonic::transport::{Channel, Endpoint, Uri};
use tower::{
    BoxError, Service, ServiceExt as _, balance::p2c::Balance, buffer::Buffer, discover::Change,
    load::Constant, util::BoxCloneSyncService,
};

use super::{Address, open};

/// Maximum number of calls that wait for a connection.
const WAITING_MAX: usize = 64;
/// Pause before a member is tried again.
const PAUSE: Duration = Duration::from_millis(200);
/// A connection that ends before this was refused, in one way or another.
const SHORT: Duration = Duration::from_secs(1);

type Request = tonic::codegen::http::Request<tonic::body::Body>;

/// Opens and keeps a connection to each member, and returns a channel over all of them.
pub(super) fn channel(
    endpoints: Vec<Endpoint>,
    deadline: Duration,
    tls: Option<&ClientTls>,
) -> etcd_client::Channel {
    let (opened, openings) = mpsc::channel(endpoints.len().max(1));
    let mut keepers = Vec::new();
    for (index, endpoint) in endpoints.into_iter().enumerate() {
        let member = Member { index, endpoint, deadline, tls: tls.cloned(), opened: opened.clone() };
        keepers.push(AbortOnDropHandle::new(tokio::spawn(member.keep())));
    }
    // The keepers live as long as the channel that they fill.
    let openings = ReceiverStream::new(openings).map(move |(index, kept)| {
        let _ = &keepers;
        Ok::<_, BoxError>(Change::Insert(index, Constant::new(kept, 0_u32)))
    });
    let all = Buffer::new(Balance::new(openings), WAITING_MAX);
    etcd_client::Channel::Custom(BoxCloneSyncService::new(all.map_err(BoxError::from)))
}

/// An open connection.
struct Kept {
    channel: Channel,
    /// Cancelled when the connection is gone. The channel does not tell: it would open another with
    /// the next call.
    gone: CancellationToken,
}

impl Service<Request> for Kept {
    type Response = <Channel as Service<Request>>::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if self.gone.is_cancelled() {
            // The balance drops a member that fails before a call.
            return Poll::Ready(Err(io::Error::from(io::ErrorKind::ConnectionAborted).into()));
        }
        Service::<Request>::poll_ready(&mut self.channel, cx).map_err(BoxError::from)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let answer = self.channel.call(request);
        Box::pin(async move { answer.await.map_err(BoxError::from) })
    }
}

/// A member, to which a connection is kept open.
struct Member {
    index: usize,
    endpoint: Endpoint,
    deadline: Duration,
    tls: Option<ClientTls>,
    opened: mpsc::Sender<(usize, Kept)>,
}

impl Member {
    async fn keep(self) {
        let failed = Seldom::default();
        let report = |error: String| {
            if let Some(times) = failed.happened() {
                tracing::warn!(member = %self.endpoint.uri(), error, times, "no connection to etcd");
            }
        };
        loop {
            let gone = CancellationToken::new();
            match self.open(&gone).await {
                Ok(channel) => {
                    let begun = Instant::now();
                    let kept = Kept { channel, gone: gone.clone() };
                    if self.opened.send((self.index, kept)).await.is_err() {
                        return;
                    }
                    gone.cancelled().await;
                    if begun.elapsed() < SHORT {
                        report("it was closed as soon as it was open".to_owned());
                    }
                }
                Err(error) => report(reasons(&error)),
            }
            sleep(PAUSE).await;
        }
    }

    /// Opens a connection; `gone` is cancelled when it ends.
    async fn open(&self, gone: &CancellationToken) -> Result<Channel, tonic::transport::Error> {
        let (tls, deadline, gone) = (self.tls.clone(), self.deadline, gone.clone());
        let (address, dialled) = (Address::of(self.endpoint.uri()), Arc::new(AtomicBool::new(false)));
        let connector = tower::service_fn(move |_: Uri| {
            let (tls, address, gone) = (tls.clone(), address.clone(), gone.clone());
            let is_again = dialled.swap(true, Ordering::Relaxed);
            async move {
                if is_again {
                    // The channel opens its next connection by itself, with a call that came too
                    // late.
                    gone.cancel();
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
                let stream = open(&address, deadline, tls.as_ref()).await?;
                Ok::<_, io::Error>(TokioIo::new(Watched { stream, _gone: gone.drop_guard() }))
            }
        });
        let endpoint = self.endpoint.clone();
        let endpoint = endpoint.http2_keep_alive_interval(deadline).keep_alive_timeout(deadline);
        endpoint.keep_alive_while_idle(true).connect_with_connector(connector).await
    }
}

/// A connection whose end is told.
struct Watched<S> {
    stream: S,
    _gone: DropGuard,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
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
