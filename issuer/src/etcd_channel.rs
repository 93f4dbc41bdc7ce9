//! Connections to etcd, with TLS or without.
//!
//! The ledger's goes to one member at a time. When it breaks, or a call on it is not answered, the
//! next member is tried. The election has connections of its own to all members. So a member that
//! is lost delays commits, and does not end the leader's term.
//!
//! The handshakes are made here, and not by etcd-client: its certificates are fixed when it
//! connects first, and ours are renewed while it runs.
//!
//! Rejected: a flush that waits until other tasks have nothing more to write, so that the head and
//! the body of a call leave in one system call. It gains nothing with unary calls: 1.01 times the
//! rate with 256 holders, 0.99 with one (`bench allocate --beside`, 2026-11-24).

mod connection;
mod members;

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use connection::{Closable, Closing, Impatient, lock, with_keep_alives};
use daemon::{Stream, connect};
use etcd_client::{Client, ConnectOptions};
use hyper_util::rt::TokioIo;
use tls::ClientTls;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Endpoint, Uri};
use tower::util::BoxCloneSyncService;

use crate::Error;

/// A client with connections to all members that answer; `probed` is the key that shows it.
pub(crate) async fn to_all(
    members: &[String],
    deadline: Duration,
    tls: Option<&ClientTls>,
    probed: &str,
) -> Result<Client, Error> {
    let all = members::channel(endpoints(members)?, deadline, tls, probed);
    client(all, ConnectOptions::new().with_require_leader(true)).await
}

/// A client with a connection to a member that answers, opened with the first call.
pub(crate) async fn to_one(
    members: &[String],
    deadline: Duration,
    tls: Option<&ClientTls>,
) -> Result<Client, Error> {
    let endpoints = endpoints(members)?;
    let Some(first) = endpoints.first().cloned() else {
        return Err(Error::Internal("the flag has a default and takes no empty list"));
    };
    let addresses: Arc<[Uri]> = endpoints.iter().map(|endpoint| endpoint.uri().clone()).collect();
    let (turn, tls) = (Arc::new(AtomicUsize::new(0)), tls.cloned());
    let closing = Closing::default();
    let opened = Arc::clone(&closing);
    let connector = tower::service_fn(move |_: Uri| {
        let (addresses, turn, tls) = (Arc::clone(&addresses), Arc::clone(&turn), tls.clone());
        let opened = Arc::clone(&opened);
        async move {
            let stream = dial(&addresses, &turn, deadline, tls.as_ref()).await?;
            let gone = CancellationToken::new();
            *lock(&opened) = gone.clone();
            Ok::<_, io::Error>(TokioIo::new(Closable::new(stream, gone)))
        }
    });
    let channel = with_keep_alives(first, deadline).connect_with_connector_lazy(connector);
    let one = BoxCloneSyncService::new(Impatient { channel, closing, has_one_connection: false });
    client(etcd_client::Channel::Custom(one), ConnectOptions::new()).await
}

async fn client(channel: etcd_client::Channel, options: ConnectOptions) -> Result<Client, Error> {
    let client = Client::from_channel(channel, Some(options)).await;
    client.map_err(|_| Error::Internal("no token is asked for"))
}

fn endpoints(members: &[String]) -> Result<Vec<Endpoint>, Error> {
    let endpoint = |member: &String| {
        Endpoint::from_shared(member.clone())
            .map_err(|error| Error::config("--etcd", member, daemon::reasons(&error)))
    };
    members.iter().map(endpoint).collect()
}

/// Tries each member once, beginning after the one that was connected last.
async fn dial(
    addresses: &[Uri],
    turn: &AtomicUsize,
    deadline: Duration,
    tls: Option<&ClientTls>,
) -> io::Result<Stream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for _ in addresses {
        let address = &addresses[turn.fetch_add(1, Ordering::Relaxed) % addresses.len()];
        match open(address, deadline, tls).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn open(address: &Uri, deadline: Duration, tls: Option<&ClientTls>) -> io::Result<Stream> {
    let opened = timeout(deadline, connect(address, tls)).await;
    opened.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
