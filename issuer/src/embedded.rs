//! The issuer inside another process: over in-memory connections, on the file ledger.

use std::{collections::BTreeMap, io, path::Path, sync::Arc, time::Duration};

use daemon::{Recorder, TaskSupervisor};
use numbers::{Epoch, Namespace};
use tokio::{io::DuplexStream, sync::mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tonic::transport::Server;

use crate::{
    Error,
    core::{Event, Limits},
    driver::Driver,
    grpc::IssuerService,
    ledger::{Ledger, LedgerError, embedded::EmbeddedLedger},
    metrics::Metrics,
    observer::Observer,
};

/// URL that the embedded issuer reports as the leader's in `GetStatus`.
const ADVERTISE: &str = "embedded";
/// Buffer of an in-memory connection in each direction, in bytes.
const PIPE: usize = 64 * 1024;

/// A running embedded issuer.
pub struct Embedded {
    /// Opens connections to this issuer.
    pub dialer: Dialer,
    /// Publishes this issuer's state in the metrics.
    pub observer: Arc<Observer>,
    shutdown: CancellationToken,
    task: AbortOnDropHandle<()>,
    _observing: AbortOnDropHandle<()>,
}

/// A dialer that opens in-memory connections, which go to the receiver of its channel.
#[derive(Clone)]
pub struct Dialer(pub mpsc::Sender<io::Result<DuplexStream>>);

impl Dialer {
    /// Opens a connection. Returns [`io::ErrorKind::ConnectionRefused`] if the issuer has stopped.
    pub async fn dial(&self) -> io::Result<DuplexStream> {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let gone = |_| io::Error::new(io::ErrorKind::ConnectionRefused, "the embedded issuer has stopped");
        self.0.send(Ok(theirs)).await.map_err(gone)?;
        Ok(ours)
    }
}

impl Embedded {
    /// Opens the ledger file and starts serving. Only one process uses the file, so there is no
    /// election: each opening begins a new epoch. `registered` has the ends of the numbers that the
    /// database has registered: a ledger that lacks some goes on past them.
    pub async fn start(
        ledger: &Path,
        registered: BTreeMap<Namespace, u64>,
        limits: Limits,
        (recorder, supervisor): (&Recorder, &TaskSupervisor),
    ) -> Result<Self, Error> {
        let path = ledger.to_owned();
        let opened = tokio::task::spawn_blocking(move || {
            let ledger = EmbeddedLedger::open(&path)?;
            ledger.go_past(&registered)?;
            Ok::<_, LedgerError>(ledger)
        });
        let opened = opened.await;
        let ledger = opened.map_err(|_| Error::Internal("open the ledger"))??;
        let epoch = ledger.epoch();
        Self::serve(Arc::new(ledger), epoch, limits, recorder, supervisor).await
    }

    /// Starts serving on a ledger that belongs to this issuer alone from this epoch on.
    pub async fn serve(
        ledger: Arc<dyn Ledger>,
        epoch: Epoch,
        limits: Limits,
        recorder: &Recorder,
        supervisor: &TaskSupervisor,
    ) -> Result<Self, Error> {
        let elected = Event::Elected { epoch, snapshot: ledger.load().await? };
        let metrics = Metrics::new(recorder);
        let (driver, ends) = Driver::new(limits, ledger, metrics.clone());
        let observer = Arc::new(Observer::new(ends.handle.clone(), metrics));
        let observing = observer.start();
        let shutdown = CancellationToken::new();
        supervisor.spawn("driver", driver.run(CancellationToken::new()));
        // The driver was just started and its queue is empty.
        let _ = ends.elections.send(elected).await;

        let (connections, incoming) = mpsc::channel::<io::Result<DuplexStream>>(16);
        let service = IssuerService::server(
            ends.handle,
            ADVERTISE.to_owned(),
            limits.holder_ttl_ms,
            &[],
            Arc::clone(&observer),
        );
        let stop = shutdown.clone();
        let task = AbortOnDropHandle::new(tokio::spawn(async move {
            let served = Server::builder()
                .add_service(service)
                .serve_with_incoming_shutdown(ReceiverStream::new(incoming), stop.cancelled_owned())
                .await;
            if let Err(error) = served {
                tracing::error!(%error, "serve the embedded issuer");
            }
            drop(ends.elections);
        }));
        Ok(Self { dialer: Dialer(connections), observer, shutdown, task, _observing: observing })
    }

    /// Stops the issuer. Connections that are open after one second are cut.
    pub async fn stop(self) {
        self.shutdown.cancel();
        let _ = tokio::time::timeout(Duration::from_secs(1), self.task).await;
    }
}
