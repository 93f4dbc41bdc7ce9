//! The queue of log lines: a thread of its own writes them to standard error.
//!
//! 1. Adding a line never fails, never panics, and never waits for standard error. A pipe that is
//!    not read blocks its writer for ever, and that must not be a thread that serves requests.
//! 2. Lines wait in bounded memory. Those that find no room and those that cannot be written (the
//!    reader is gone, the disk is full) are dropped and counted.
//! 3. Every line is tried, whatever became of the one before. So logs go on as soon as they can.
//!
//! Rejected: `tracing-appender`. It bounds the number of lines instead of their bytes, and does not
//! count the lines that its thread fails to write.

use std::{
    collections::VecDeque,
    io::{self, Write},
    sync::{
        Condvar, Mutex, MutexGuard, Once, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

/// Bytes that may wait: about a thousand lines, a burst of errors.
const WAITING_BYTES: usize = 256 * 1024;
/// Pause before another attempt on a descriptor that does not block and takes nothing now.
const AGAIN: Duration = Duration::from_millis(10);

/// Lines that wait for a writer.
pub(crate) struct LogQueue {
    lines: Mutex<Lines>,
    /// Told of each change of `lines`.
    changed: Condvar,
    started: Once,
    dropped: AtomicU64,
}

struct Lines {
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    is_writing: bool,
}

impl LogQueue {
    pub(crate) const fn new() -> Self {
        Self {
            lines: Mutex::new(Lines { waiting: VecDeque::new(), bytes: 0, is_writing: false }),
            changed: Condvar::new(),
            started: Once::new(),
            dropped: AtomicU64::new(0),
        }
    }

    /// Adds a line, which ends with a newline, or drops it if there is no room.
    pub(crate) fn add(&self, line: &[u8]) {
        let mut lines = self.lines();
        if lines.bytes + line.len() > WAITING_BYTES {
            drop(lines);
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        lines.bytes += line.len();
        lines.waiting.push_back(line.to_vec());
        drop(lines);
        self.changed.notify_all();
    }

    /// Returns the number of lines that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Starts the thread that writes to standard error, unless it has been started.
    pub(crate) fn start(&'static self) {
        self.started.call_once(|| {
            // Without the thread, lines are dropped and counted.
            let _ = thread::Builder::new().name("logs".to_owned()).spawn(|| self.write_to(StandardError));
        });
    }

    /// Waits until all lines are written or dropped, but no longer than `most`: standard error may
    /// never take them.
    pub(crate) fn flush(&self, most: Duration) {
        let is_busy = |lines: &mut Lines| lines.is_writing || !lines.waiting.is_empty();
        // A timeout leaves lines behind, and nothing can be done about it.
        let _ = self.changed.wait_timeout_while(self.lines(), most, is_busy);
    }

    /// Writes lines for as long as the process lives.
    fn write_to(&self, mut output: impl Write) {
        let mut is_torn = false;
        loop {
            let line = self.take();
            if write_line(&mut output, &line, &mut is_torn).is_err() {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Waits for the next line.
    fn take(&self) -> Vec<u8> {
        let mut lines = self.lines();
        lines.is_writing = false;
        loop {
            if let Some(line) = lines.waiting.pop_front() {
                lines.bytes -= line.len();
                lines.is_writing = true;
                return line;
            }
            self.changed.notify_all();
            lines = self.changed.wait(lines).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A subscriber writes each event with one call.
impl Write for &LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.add(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a line. `is_torn` says whether the last bytes that were written are half a line: then a
/// newline comes first.
fn write_line(output: &mut impl Write, line: &[u8], is_torn: &mut bool) -> io::Result<()> {
    if *is_torn {
        write_all(output, b"\n", &mut false)?;
        *is_torn = false;
    }
    write_all(output, line, is_torn)
}

fn write_all(output: &mut impl Write, mut bytes: &[u8], is_torn: &mut bool) -> io::Result<()> {
    while !bytes.is_empty() {
        match output.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = &bytes[written..];
                *is_torn = !bytes.is_empty();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(AGAIN),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Standard error without the lock of the standard library. A write that blocks would hold it, and
/// any other writer would wait for ever.
struct StandardError;

impl Write for StandardError {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(io::stderr(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use super::*;

    /// An output whose writes a test decides about, one after the other.
    struct Decided {
        decisions: mpsc::Receiver<io::Result<usize>>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Decided {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let most = self.decisions.recv().map_err(|_| io::ErrorKind::BrokenPipe)??.min(bytes.len());
            self.written.lock().unwrap().extend(&bytes[..most]);
            Ok(most)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    type Controls = (&'static LogQueue, mpsc::SyncSender<io::Result<usize>>, Arc<Mutex<Vec<u8>>>);

    fn queue() -> Controls {
        let queue: &'static LogQueue = Box::leak(Box::new(LogQueue::new()));
        let (decide, decisions) = mpsc::sync_channel(16);
        let written = Arc::default();
        let output = Decided { decisions, written: Arc::clone(&written) };
        thread::spawn(|| queue.write_to(output));
        (queue, decide, written)
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted_and_later_ones_are_written() {
        let (queue, decide, written) = queue();
        let decisions = [
            Err(io::ErrorKind::StorageFull.into()),
            Err(io::ErrorKind::Interrupted.into()),
            Err(io::ErrorKind::WouldBlock.into()),
            Ok(2),
            Err(io::ErrorKind::StorageFull.into()),
            Ok(99),
            Ok(99),
        ];
        for line in ["lost\n", "torn\n", "whole\n"] {
            queue.add(line.as_bytes());
        }
        decisions.into_iter().for_each(|decision| decide.send(decision).unwrap());
        queue.flush(Duration::from_secs(60));
        assert_eq!(String::from_utf8_lossy(&written.lock().unwrap()), "to\nwhole\n");
        assert_eq!(queue.dropped(), 2);
    }

    #[test]
    fn a_writer_that_is_blocked_for_ever_holds_nothing_up_and_memory_stays_bounded() {
        let (queue, decide, _) = queue();
        let line = [b'a'; 1_000];
        for _ in 0..2_000 {
            (&mut &*queue).write_all(&line).unwrap();
        }
        queue.flush(Duration::from_millis(1));
        assert!(queue.lines().bytes <= WAITING_BYTES);
        assert!(queue.dropped() >= 2_000 - 1 - WAITING_BYTES as u64 / 1_000, "{}", queue.dropped());
        drop(decide);
    }
}
