//! Connections to all members of etcd, of which a call takes one that is open.
//!
//! A member is among them from its first answer until its connection breaks, or until its silence
//! is noticed. So no call waits for a member that is known to be down. The first answer is to a
//! read that the member has to agree on with its peers: the kernel opens connections to a process
//! that stands still, and a member that is cut off from its peers has an open port too.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use daemon::reasons;
use etcd_client::Client;
use hyper_util::rt::TokioIo;
use limits::Seldom;
use tls::ClientTls;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout},
};
use tokio_stream::{StreamExt as _, wrappers::ReceiverStream};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tonic::{
    Code,
    transport::{Channel, Endpoint, Uri},
};
use tower::{
    BoxError, ServiceExt as _, balance::p2c::Balance, buffer::Buffer, discover::Change, load::Constant,
    util::BoxCloneSyncService,
};

use super::{
    connection::{Closable, Impatient, with_keep_alives},
    open,
};

const WAITING_MAX: usize = 64;
/// Pause before a member is tried again.
const PAUSE: Duration = Duration::from_millis(200);
/// A connection that ends before this was refused, in one way or another.
const SHORT: Duration = Duration::from_secs(1);

/// Opens and keeps a connection to each member, and returns a channel over all of them. `probed` is
/// the key that is read from each of them first.
pub(super) fn channel(
    endpoints: Vec<Endpoint>,
    deadline: Duration,
    tls: Option<&ClientTls>,
    probed: &str,
) -> etcd_client::Channel {
    let (opened, openings) = mpsc::channel(endpoints.len().max(1));
    let mut keepers = Vec::new();
    for (index, endpoint) in endpoints.into_iter().enumerate() {
        let (tls, probed, opened) = (tls.cloned(), probed.to_owned(), opened.clone());
        let member = Member { index, endpoint, deadline, tls, probed, opened };
        keepers.push(AbortOnDropHandle::new(tokio::spawn(member.keep())));
    }
    // The keepers live as long as the channel that they fill.
    let openings = ReceiverStream::new(openings).map(move |(index, member)| {
        let _ = &keepers;
        Ok::<_, BoxError>(Change::Insert(index, Constant::new(member, 0_u32)))
    });
    let all = Buffer::new(Balance::new(openings), WAITING_MAX);
    etcd_client::Channel::Custom(BoxCloneSyncService::new(all.map_err(BoxError::from)))
}

struct Member {
    index: usize,
    endpoint: Endpoint,
    deadline: Duration,
    tls: Option<ClientTls>,
    probed: String,
    opened: mpsc::Sender<(usize, Impatient)>,
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
                Ok(channel) if !self.answers(&channel).await => {
                    gone.cancel();
                    report("it is open, and calls are not answered".to_owned());
                }
                Ok(channel) => {
                    let begun = Instant::now();
                    let closing = Arc::new(Mutex::new(gone.clone()));
                    let member = Impatient { channel, closing, has_one_connection: true };
                    if self.opened.send((self.index, member)).await.is_err() {
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
        let (address, dialled) = (self.endpoint.uri().clone(), Arc::new(AtomicBool::new(false)));
        let connector = tower::service_fn(move |_: Uri| {
            let (tls, address, gone) = (tls.clone(), address.clone(), gone.clone());
            let is_again = dialled.swap(true, Ordering::Relaxed);
            async move {
                if is_again {
                    // The channel opens its next connection by itself, with a late call.
                    gone.cancel();
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
                let stream = open(&address, deadline, tls.as_ref()).await?;
                Ok::<_, io::Error>(TokioIo::new(Closable::new(stream, gone)))
            }
        });
        with_keep_alives(self.endpoint.clone(), self.deadline).connect_with_connector(connector).await
    }

    /// Returns whether the member answers a linearizable read, if only by a refusal.
    async fn answers(&self, channel: &Channel) -> bool {
        let channel = etcd_client::Channel::Tonic(channel.clone());
        let Ok(client) = Client::from_channel(channel, None).await else { return false };
        match timeout(self.deadline, client.kv_client().get(self.probed.as_str(), None)).await {
            Ok(Ok(_)) => true,
            Ok(Err(etcd_client::Error::GRpcStatus(status))) => {
                !matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded | Code::Unknown)
            }
            Ok(Err(_)) | Err(_) => false,
        }
    }
}
