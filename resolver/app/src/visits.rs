//! Visits: one event per redirect, passed on in batches.
//!
//! 1. Each listener's thread fills its own buffer. Recording a redirect takes no lock that another
//!    core wants, and allocates only one new buffer every [`BATCH_VISITS`] visits.
//! 2. A full buffer is sent to a bounded queue at once, any other by [`VisitBuffer::flush`]. If the
//!    queue is full the batch is dropped and counted: a redirect never waits for the counting of
//!    visits.
//! 3. Texts are copied. A header's value shares the memory of the whole request head, and would
//!    keep all of it alive.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard},
};

use codes::LinkId;
use daemon::TaskSupervisor;
use jiff::Timestamp;
use tokio::sync::mpsc;

use crate::{metrics::Metrics, unvisited_cleanup::LastVisits};

/// Maximum number of visits in a batch.
const BATCH_VISITS: usize = 512;
/// Bytes of text after which a batch is sent early.
const BATCH_TEXT: usize = 128 * 1024;
/// Capacity of the queue of batches.
const BATCHES_WAITING: usize = 256;
/// Maximum length of a recorded text, in bytes. No browser sends longer ones.
const TEXT_MAX: usize = 512;

/// A visit of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit<'a> {
    /// The link that was followed.
    pub link: LinkId,
    /// When the link was followed.
    pub at: Timestamp,
    /// The client's address, as the listener determined it.
    pub client: IpAddr,
    /// The `User-Agent` header, empty if absent. At most 512 bytes, not necessarily UTF-8.
    pub user_agent: &'a [u8],
    /// The `Referer` header, with the same properties.
    pub referer: &'a [u8],
}

/// A batch of visits, in the order in which they were recorded.
#[derive(Debug, Default)]
pub struct Batch {
    entries: Vec<Entry>,
    text: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    link: LinkId,
    at: Timestamp,
    client: IpAddr,
    user_agent: u16,
    referer: u16,
}

impl Batch {
    fn new() -> Self {
        Self { entries: Vec::with_capacity(BATCH_VISITS), text: Vec::new() }
    }

    fn push(&mut self, visit: Visit<'_>) {
        let mut keep = |text: &[u8]| {
            let kept = &text[..text.len().min(TEXT_MAX)];
            self.text.extend_from_slice(kept);
            u16::try_from(kept.len()).expect("a recorded text has at most TEXT_MAX bytes")
        };
        let (user_agent, referer) = (keep(visit.user_agent), keep(visit.referer));
        let Visit { link, at, client, .. } = visit;
        self.entries.push(Entry { link, at, client, user_agent, referer });
    }

    fn is_full(&self) -> bool {
        self.entries.len() >= BATCH_VISITS || self.text.len() >= BATCH_TEXT
    }

    /// Returns the number of visits.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the batch has no visits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the visits in their order.
    pub fn iter(&self) -> impl Iterator<Item = Visit<'_>> {
        let mut rest = &self.text[..];
        let mut next = move |len: u16| {
            let (text, others) = rest.split_at(usize::from(len));
            rest = others;
            text
        };
        self.entries.iter().map(move |&Entry { link, at, client, user_agent, referer }| Visit {
            link,
            at,
            client,
            user_agent: next(user_agent),
            referer: next(referer),
        })
    }
}

/// The queue of batches, with its metrics.
#[derive(Clone)]
pub struct Visits {
    batches: mpsc::Sender<Batch>,
    metrics: Arc<Metrics>,
}

impl Visits {
    /// Creates the queue, and starts the task that empties it on the current runtime.
    #[must_use]
    pub fn start(supervisor: &TaskSupervisor, metrics: &Arc<Metrics>, seen: LastVisits) -> Self {
        let (batches, queue) = mpsc::channel(BATCHES_WAITING);
        supervisor.spawn("counter of visits", count(queue, Arc::clone(metrics), seen));
        Self { batches, metrics: Arc::clone(metrics) }
    }

    /// Creates a buffer for one listener's thread.
    #[must_use]
    pub fn buffer(&self) -> VisitBuffer {
        VisitBuffer { visits: self.clone(), noted: Mutex::new(Noted { batch: Batch::new(), redirects: 0 }) }
    }
}

async fn count(mut queue: mpsc::Receiver<Batch>, metrics: Arc<Metrics>, mut seen: LastVisits) {
    while let Some(batch) = queue.recv().await {
        batch.iter().for_each(|visit| seen.note(visit.link, visit.at));
        metrics.visits.increment(batch.len() as u64);
    }
}

/// The buffer of one listener's thread. Its lock is never contended, because no other thread uses
/// it.
pub struct VisitBuffer {
    visits: Visits,
    noted: Mutex<Noted>,
}

struct Noted {
    batch: Batch,
    /// Counted here: a counter that all threads write costs each of them more than everything else
    /// that is recorded.
    redirects: u64,
}

impl VisitBuffer {
    /// Records a redirect, and the visit that it counts as, if any.
    pub fn note(&self, visit: Option<Visit<'_>>) {
        let mut noted = self.noted();
        noted.redirects += 1;
        if let Some(visit) = visit {
            noted.batch.push(visit);
            if noted.batch.is_full() {
                self.hand_over(noted);
            }
        }
    }

    /// Sends the recorded redirects and visits, if there are any.
    pub fn flush(&self) {
        let noted = self.noted();
        if noted.redirects > 0 {
            self.hand_over(noted);
        }
    }

    fn hand_over(&self, mut noted: MutexGuard<'_, Noted>) {
        self.visits.metrics.redirects.increment(std::mem::take(&mut noted.redirects));
        if noted.batch.is_empty() {
            return;
        }
        let full = std::mem::replace(&mut noted.batch, Batch::new());
        if let Err(error) = self.visits.batches.try_send(full) {
            let (mpsc::error::TrySendError::Full(lost) | mpsc::error::TrySendError::Closed(lost)) = error;
            self.visits.metrics.visits_dropped.increment(lost.len() as u64);
        }
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().expect("no code panics while it holds this lock")
    }
}

#[cfg(test)]
mod tests {
    use codes::KeyspaceIndex;
    use daemon::Recorder;

    use super::*;

    fn visit<'a>(number: u64, user_agent: &'a [u8], referer: &'a [u8]) -> Visit<'a> {
        let link = LinkId::new(KeyspaceIndex::new(1).unwrap(), number);
        Visit { link, at: Timestamp::UNIX_EPOCH, client: [127, 0, 0, 1].into(), user_agent, referer }
    }

    #[test]
    fn visits_come_out_as_they_went_in_and_long_texts_are_cut() {
        let mut batch = Batch::new();
        let long = vec![b'x'; 10_000];
        let given = [visit(1, b"curl", b""), visit(2, b"", b"https://a.b/\xff"), visit(3, &long, &long)];
        given.iter().for_each(|visit| batch.push(*visit));
        let cut = &long[..TEXT_MAX];
        assert_eq!(batch.iter().collect::<Vec<_>>(), [given[0], given[1], visit(3, cut, cut)]);
    }

    #[test]
    fn a_queue_that_is_full_costs_visits_and_no_time() {
        let (batches, mut queue) = mpsc::channel(1);
        let metrics = Metrics::new(&Recorder::new());
        let visits = Visits { batches, metrics };
        let buffer = visits.buffer();
        for number in 0..3 * BATCH_VISITS as u64 {
            buffer.note(Some(visit(number, b"", b"")));
        }
        assert_eq!(queue.try_recv().unwrap().len(), BATCH_VISITS, "the first batch waited");
        assert!(queue.try_recv().is_err(), "and the others were dropped");
        buffer.note(Some(visit(0, b"", b"")));
        buffer.flush();
        buffer.flush();
        assert_eq!(queue.try_recv().unwrap().len(), 1, "what there is, once");
    }
}
