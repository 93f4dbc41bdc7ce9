//! The recorder: the buffers of all listeners' threads, and the thread that writes their visits.

use std::{
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use daemon::TaskSupervisor;
use tokio::sync::oneshot;
use visits::Thread;

use super::{
    BlockSink, CaptureRules, Seen, VisitBuffer,
    pool::ArenaPool,
    spooler::{Job, Spooler, Writer},
};
use lookup::metrics::Metrics;

/// Number of arenas of each thread that are allocated at the start: one in use, the others spare.
const READY: usize = 4;
/// Maximum number of arenas beside those in use, 4 MiB. With 130,000 visits a second they bridge a
/// stall of the disk of a tenth of a second.
const SPARES_MAX: usize = 64;
/// The interval at which counts are published if visits are written each turn.
const COUNTS_EVERY: Duration = Duration::from_millis(100);

/// When recorded visits are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// At this interval, and whenever an arena is full. A killed process loses the visits of one
    /// interval.
    Every(Duration),
    /// Before the answers of a turn leave, so that a killed process loses no answered visit. Each
    /// turn of a connection costs a write.
    Turn,
}

/// The parts that a [`Recorder`] works with.
pub struct RecorderConfig {
    /// The number of listeners' threads.
    pub threads: usize,
    /// When visits are written.
    pub flush: Flush,
    /// Which visits are recorded, and how much of each.
    pub rules: CaptureRules,
    /// Where visits are written.
    pub sink: Arc<dyn BlockSink>,
    /// Learns of each redirected visit.
    pub seen: Seen,
    /// Counts visits.
    pub metrics: Arc<Metrics>,
}

/// Records the visits of all listeners' threads.
pub struct Recorder {
    flush: Flush,
    /// Which visits are recorded, and how much of each.
    pub rules: CaptureRules,
    buffers: Vec<Arc<VisitBuffer>>,
    jobs: mpsc::SyncSender<Job>,
}

impl Recorder {
    /// Creates the recorder, and starts the thread that writes. A failure of the thread counts as
    /// one of a supervised task.
    pub fn start(supervisor: &TaskSupervisor, config: RecorderConfig) -> Arc<Self> {
        let (recorder, writer) = Self::new(config);
        supervisor.spawn("writer of visits", run_on_a_thread(writer));
        Arc::new(recorder)
    }

    fn new(config: RecorderConfig) -> (Self, Writer) {
        let RecorderConfig { threads, flush, rules, sink, seen, metrics } = config;
        let buffers = threads.clamp(1, usize::from(Thread::COUNT));
        let arenas_max = buffers + SPARES_MAX;
        // Room for every arena and for the end, so that no sender waits.
        let (jobs, queue) = mpsc::sync_channel(arenas_max + 1);
        let pool = ArenaPool::new(buffers * READY, arenas_max);
        let spooler = Arc::new(Spooler { pool, sink, seen: Mutex::new(seen) });
        let buffer = |index| {
            let (thread, writes) = (Thread::of(index), flush == Flush::Turn);
            let buffer =
                VisitBuffer::new(thread, writes, jobs.clone(), Arc::clone(&spooler), Arc::clone(&metrics));
            Arc::new(buffer)
        };
        let buffers = (0..buffers).map(buffer).collect();
        (Self { flush, rules, buffers, jobs }, Writer { jobs: queue, spooler })
    }

    /// Returns the buffer of a listener's thread. Threads beyond [`Thread::COUNT`] share those of
    /// others.
    pub fn buffer(&self, index: usize) -> Arc<VisitBuffer> {
        Arc::clone(&self.buffers[index % self.buffers.len()])
    }

    /// Returns the interval at which each listener's thread calls [`VisitBuffer::flush`].
    pub fn flush_every(&self) -> Duration {
        match self.flush {
            Flush::Every(interval) => interval,
            Flush::Turn => COUNTS_EVERY,
        }
    }

    /// Waits until all visits that were handed over are written, and ends the thread that writes.
    /// Later ones are dropped and counted, so listeners have to end before.
    pub async fn finish(&self) {
        let (done, ended) = oneshot::channel();
        if self.jobs.try_send(Job::Finish(done)).is_ok() {
            // An error means that the thread has ended already.
            let _ = ended.await;
        }
    }
}

async fn run_on_a_thread(writer: Writer) {
    let (done, ended) = oneshot::channel();
    let run = move || {
        writer.run();
        // The receiver is gone if the runtime has ended.
        let _ = done.send(());
    };
    let started = thread::Builder::new().name("spool".to_owned()).spawn(run);
    if let Err(error) = &started {
        tracing::error!(error = error as &dyn std::error::Error, "start the thread that writes visits");
    }
    started.expect("a failure has to end this process");
    ended.await.expect("a panic of the thread has to end this process");
}

#[cfg(test)]
mod tests;
