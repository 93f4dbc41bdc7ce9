//! Connections to all members of etcd, of which a call takes one that is open.
//!
//! A member is among them from the end of its handshake until its connection breaks. So no call
//! waits for a member that is down, unless it has only just gone.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use daemon::{Seldom, reasons};
use hyper_util::rt::TokioIo;
use tls::ClientTls;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::mpsc,
    time::sleep,
};
use tokio_stream::{StreamExt as _, wrappers::ReceiverStream};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::AbortOnDropHandle,
};
use tonic::transport::{Channel, Endpoint, Uri};
use tower::{
    BoxError, ServiceExt as _, balance::p2c::Balance, buffer::Buffer, discover::Change, load::Constant,
    util::BoxCloneSyncService,
};

use super::{Address, open};

/// Maximum number of calls that wait for a connection.
const WAITING_MAX: usize = 64;
/// Pause before a member is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// A connection of a member that was opened, or that is gone.
type Moved = Change<usize, Constant<Channel, u32>>;

/// Opens and keeps a connection to each member, and returns a channel over all of them.
pub(super) fn channel(
    endpoints: Vec<Endpoint>,
    deadline: Duration,
    tls: Option<&ClientTls>,
) -> etcd_client::Channel {
    let (moved, moves) = mpsc::channel(endpoints.len().max(1));
    let mut keepers = Vec::new();
    for (index, endpoint) in endpoints.into_iter().enumerate() {
        let member = Member { index, endpoint, deadline, tls: tls.cloned(), moved: moved.clone() };
        keepers.push(AbortOnDropHandle::new(tokio::spawn(member.keep())));
    }
    // The keepers live as long as the channel that they fill.
    let moves = ReceiverStream::new(moves).map(move |moved| {
        let _ = &keepers;
        Ok::<_, BoxError>(moved)
    });
    let all = Buffer::new(Balance::new(moves), WAITING_MAX);
    etcd_client::Channel::Custom(BoxCloneSyncService::new(all.map_err(BoxError::from)))
}

/// A member, to which a connection is kept open.
struct Member {
    index: usize,
    endpoint: Endpoint,
    deadline: Duration,
    tls: Option<ClientTls>,
    moved: mpsc::Sender<Moved>,
}

impl Member {
    async fn keep(self) {
        let failed = Seldom::default();
        while !self.moved.is_closed() {
            let gone = CancellationToken::new();
            match self.open(&gone).await {
                Ok(channel) => {
                    let opened = Change::Insert(self.index, Constant::new(channel, 0));
                    if self.moved.send(opened).await.is_err() {
                        return;
                    }
                    gone.cancelled().await;
                    if self.moved.send(Change::Remove(self.index)).await.is_err() {
                        return;
                    }
                }
                Err(error) => {
                    if let Some(times) = failed.happened() {
                        let member = self.endpoint.uri();
                        tracing::warn!(%member, error = reasons(&error), times, "no connection to etcd");
                    }
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// Opens a connection; `gone` is cancelled when it ends.
    async fn open(&self, gone: &CancellationToken) -> Result<Channel, tonic::transport::Error> {
        let (tls, deadline, gone) = (self.tls.clone(), self.deadline, gone.clone());
        let address = Address::of(self.endpoint.uri());
        let connector = tower::service_fn(move |_: Uri| {
            let (tls, address, gone) = (tls.clone(), address.clone(), gone.clone());
            async move {
                if gone.is_cancelled() {
                    // A channel would open its next connection by itself, with the next call.
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
