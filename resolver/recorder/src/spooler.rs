//! The writing side: blocks to the sink, and arenas back to the pool.

use std::sync::{
    Arc, Mutex,
    mpsc::{Receiver, TryRecvError},
};

use codes::LinkId;
use jiff::Timestamp;
use tokio::sync::oneshot;
use visits::{Arena, Thread, read_block};

use super::pool::ArenaPool;

/// Writes blocks of visits.
///
/// The spool's thread calls it, and with [`Flush::Turn`](super::Flush::Turn) all listeners' threads
/// do. It must not panic.
pub trait BlockSink: Send + Sync {
    /// Writes a block, which [`visits::read_block`] reads. `count` is the number of its visits, and
    /// `span` the times of the first and the last, in microseconds since 1970.
    ///
    /// A block that cannot be written is dropped. The implementation counts its visits as dropped.
    fn write(&self, block: &[u8], count: u32, span: (i64, i64));
}

/// The sink of a process that keeps no visits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoSink;

impl BlockSink for NoSink {
    fn write(&self, _: &[u8], _: u32, _: (i64, i64)) {}
}

/// Learns of each visit of a link once it has been written: the link, and the time of the visit.
pub type Seen = Box<dyn FnMut(LinkId, Timestamp) + Send>;

pub(super) enum Job {
    /// Write the visits of a thread.
    Write(Thread, Arena),
    /// End, and tell when all earlier jobs are done.
    Finish(oneshot::Sender<()>),
}

/// Writes arenas and recycles them.
pub(super) struct Spooler {
    pub(super) pool: ArenaPool,
    pub(super) sink: Arc<dyn BlockSink>,
    pub(super) seen: Mutex<Seen>,
}

impl Spooler {
    /// Writes the visits of an arena, if it has any, and clears it.
    pub(super) fn write(&self, thread: Thread, arena: &mut Arena) {
        let (count, span) = (arena.count(), arena.span());
        if count > 0 {
            let block = arena.block(thread);
            self.sink.write(block, count, span);
            self.tell_seen(block);
            arena.clear();
        }
    }

    fn tell_seen(&self, block: &[u8]) {
        // An arena's own block is well-formed.
        let Ok((_, events)) = read_block(block) else { return };
        let mut seen = self.seen.lock().expect("no code panics while it holds this lock");
        for event in events.map_while(Result::ok) {
            let link = event.link.filter(|_| event.outcome.is_of_link());
            if let (Some(link), Ok(at)) = (link, Timestamp::from_microsecond(event.at)) {
                seen(link, at);
            }
        }
    }
}

/// The work of the spool's thread.
pub(super) struct Writer {
    pub(super) jobs: Receiver<Job>,
    pub(super) spooler: Arc<Spooler>,
}

impl Writer {
    /// Works until [`Job::Finish`] arrives or all buffers are gone.
    pub(super) fn run(self) {
        while let Ok(job) = self.jobs.recv() {
            match job {
                Job::Write(thread, arena) => self.write(thread, arena),
                Job::Finish(done) => {
                    self.drain();
                    // From here on buffers count their visits as dropped.
                    drop(self);
                    // The caller may have given up.
                    let _ = done.send(());
                    return;
                }
            }
        }
    }

    /// Does the waiting jobs, and returns why there is no further one.
    pub(super) fn drain(&self) -> TryRecvError {
        loop {
            match self.jobs.try_recv() {
                Ok(Job::Write(thread, arena)) => self.write(thread, arena),
                Ok(Job::Finish(done)) => {
                    let _ = done.send(());
                }
                Err(error) => return error,
            }
        }
    }

    fn write(&self, thread: Thread, mut arena: Arena) {
        self.spooler.write(thread, &mut arena);
        self.spooler.pool.give(arena);
    }
}
