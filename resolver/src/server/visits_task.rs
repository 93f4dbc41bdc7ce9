//! Spools visits, and stores them on a thread of its own.

use std::{
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use app::cluster::{SpoolGauge, SpoolState};
use cli::{args::Database, wrong_value};
use daemon::Recorder;
use ingest::{
    IngestMetrics, Options,
    storer::{self, StorerConfig},
};
use limits::Resources;
use lookup::domain_cache::DomainCache;
use recorder::BlockSink;
use spool::{Backlog, Block, Limits, Reader, Sidecars, Spool, Writer};
use tokio::{
    sync::{oneshot, watch},
    time::timeout,
};
use visit_store::{SpoolId, VisitStore, VisitStoreError};

use super::left_visits::SpoolBacklog;
use crate::config::{Settings, VisitSettings};

/// How long a process that ends goes on storing what it has recorded. The rest stays in the spool.
const DRAIN: Duration = Duration::from_secs(10);

/// Returns the error of a store of visits that cannot be opened.
pub(super) fn failed(database: &Database, error: &VisitStoreError) -> cli::Error {
    wrong_value("--database", database, format!("open the store of visits: {error}"))
}

/// An open spool, before anything is recorded.
pub(super) struct OpenSpool {
    pub(super) sink: Arc<SpoolSink>,
    reader: Reader,
    pub(super) sidecars: Sidecars,
    pub(super) backlog: SpoolBacklog,
    id: SpoolId,
    recorded: watch::Receiver<u64>,
}

impl OpenSpool {
    /// Returns what tells its state to the page of the cluster.
    pub(super) fn state(&self) -> SpoolGauge {
        let gauge = self.backlog.gauge.clone();
        Arc::new(move || {
            let Backlog { blocks, bytes, .. } = gauge.read();
            SpoolState { blocks, bytes }
        })
    }
}

pub(super) fn open_spool(settings: &VisitSettings, recorder: &Recorder) -> Result<OpenSpool, cli::Error> {
    let metrics = IngestMetrics::new(recorder);
    let limits = Limits { total_bytes: settings.spool_bytes, ..Limits::DEFAULT };
    let Spool { writer, reader, sidecars, gauge, opened } = Spool::open(&settings.spool, limits)
        .map_err(|error| wrong_value("--visits-spool", settings.spool.display(), daemon::reasons(&error)))?;
    if opened.cut_bytes > 0 || opened.damaged_bytes > 0 {
        tracing::warn!(
            cut_bytes = opened.cut_bytes,
            damaged_bytes = opened.damaged_bytes,
            "the spool of visits was damaged; what is left of it is stored"
        );
    }
    let (recording, recorded) = watch::channel(0);
    let sink = SpoolSink { writer: Mutex::new(writer), recording, metrics: Arc::clone(&metrics) };
    let (sink, id) = (Arc::new(sink), SpoolId(opened.identity));
    let backlog = SpoolBacklog { gauge, metrics, folder: settings.spool.clone() };
    Ok(OpenSpool { sink, reader, sidecars, backlog, id, recorded })
}

pub(super) struct SpoolSink {
    writer: Mutex<Writer>,
    recording: watch::Sender<u64>,
    metrics: Arc<IngestMetrics>,
}

impl BlockSink for SpoolSink {
    fn write(&self, block: &[u8], count: u32, span: (i64, i64)) {
        let block = Block { bytes: block, count, span };
        let appended = self.writer.lock().expect("no code panics while it holds this lock").append(&block);
        match appended {
            Ok(_) => self.recording.send_modify(|recorded| *recorded += u64::from(count)),
            Err(reason) => self.metrics.count_dropped(reason, count),
        }
    }
}

pub(super) struct VisitTasks {
    ending: watch::Sender<bool>,
    ended: oneshot::Receiver<()>,
    backlog: SpoolBacklog,
}

impl VisitTasks {
    /// Starts to store what the spool has.
    pub(super) fn start(
        settings: &Settings,
        resources: &Resources,
        spool: OpenSpool,
        store: &Arc<dyn VisitStore>,
        domains: &Arc<DomainCache>,
    ) -> Self {
        let (ending, is_ending) = watch::channel(false);
        let (end, ended) = oneshot::channel();
        let [clock, untracked, webhooks, bases] = std::array::from_fn(|_| Arc::clone(domains));
        let config = StorerConfig {
            store: Arc::clone(store),
            reader: spool.reader,
            sidecars: spool.sidecars,
            spool: spool.id,
            holder: settings.holder.to_string(),
            batch_bytes: storer::batch_bytes(resources.memory),
            options: Options { addresses: settings.visits.addresses, keep_days: settings.visits.keep_days() },
            places: settings.geoip.clone(),
            untracked: Box::new(move || untracked.entries().untracked()),
            webhooks: Box::new(move || webhooks.entries().webhooks.clone()),
            base: Box::new(move |domain| bases.base(domain)),
            recorded: spool.recorded,
            ending: is_ending,
            metrics: Arc::clone(&spool.backlog.metrics),
            now: Box::new(move || clock.now()),
        };
        let started = thread::Builder::new().name("visits".to_owned()).spawn(move || {
            storer::run_on_this_thread(config);
            // The receiver is gone if the process is ending without waiting.
            let _ = end.send(());
        });
        if let Err(error) = started {
            tracing::error!(%error, "start the thread that stores visits");
        }
        Self { ending, ended, backlog: spool.backlog }
    }

    /// Stores what is recorded, as far as time allows, and returns the rest. Nothing more may be
    /// recorded.
    pub(super) async fn finish(self) -> SpoolBacklog {
        self.ending.send_replace(true);
        // Whatever came of it, the spool tells what is left.
        let _ = timeout(DRAIN, self.ended).await;
        self.backlog
    }
}
