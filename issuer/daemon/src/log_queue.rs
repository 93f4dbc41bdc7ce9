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
    io::{self, Write},
    sync::{
        OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

/// Bytes that may wait: about a thousand lines, a burst of errors.
const WAITING_BYTES: usize = 256 * 1024;
/// Lines that may wait, however short they are.
const WAITING_LINES: usize = 4_096;
/// Pause before another attempt on a descriptor that does not block and takes nothing now, and
/// before another look at whether all lines are written.
const AGAIN: Duration = Duration::from_millis(10);

pub(crate) struct LogQueue {
    lines: OnceLock<SyncSender<Vec<u8>>>,
    /// Bytes that wait or are being written.
    bytes: AtomicUsize,
    dropped: AtomicU64,
}

impl LogQueue {
    pub(crate) const fn new() -> Self {
        Self { lines: OnceLock::new(), bytes: AtomicUsize::new(0), dropped: AtomicU64::new(0) }
    }

    /// Adds a line, which ends with a newline, or drops it if there is no room.
    pub(crate) fn add(&self, line: &[u8]) {
        let waiting = self.bytes.fetch_add(line.len(), Ordering::Relaxed) + line.len();
        let lines = self.lines.get().filter(|_| waiting <= WAITING_BYTES);
        if lines.is_none_or(|lines| lines.try_send(line.to_vec()).is_err()) {
            self.bytes.fetch_sub(line.len(), Ordering::Relaxed);
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Starts the thread that writes to standard error, unless it has been started.
    pub(crate) fn start(&'static self) {
        self.start_with(StandardError);
    }

    fn start_with(&'static self, output: impl Write + Send + 'static) {
        self.lines.get_or_init(|| {
            let (lines, waiting) = sync_channel(WAITING_LINES);
            // Without the thread, lines are dropped and counted.
            let _ =
                thread::Builder::new().name("logs".to_owned()).spawn(move || self.write_to(output, waiting));
            lines
        });
    }

    /// Waits until no line waits, at most this long: standard error may never take them.
    pub(crate) fn flush(&self, most: Duration) {
        let mut waited = Duration::ZERO;
        while self.bytes.load(Ordering::Relaxed) > 0 && waited < most {
            thread::sleep(AGAIN);
            waited += AGAIN;
        }
    }

    fn write_to(&self, mut output: impl Write, lines: Receiver<Vec<u8>>) {
        let mut is_torn = false;
        for mut line in lines {
            let bytes = line.len();
            if is_torn {
                // The last bytes that were written are half a line.
                line.insert(0, b'\n');
            }
            let mut unwritten = &line[..];
            if write_line(&mut output, &mut unwritten).is_err() {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                is_torn |= unwritten.len() < line.len();
            } else {
                is_torn = false;
            }
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
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

/// Writes a line, of which `unwritten` is left if it fails.
fn write_line(output: &mut impl Write, unwritten: &mut &[u8]) -> io::Result<()> {
    while !unwritten.is_empty() {
        match output.write(unwritten) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => *unwritten = &unwritten[written..],
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
    use std::sync::{Arc, Mutex, mpsc};

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
        queue.start_with(output);
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
        assert!(queue.bytes.load(Ordering::Relaxed) <= WAITING_BYTES);
        assert!(queue.dropped() >= 2_000 - 1 - WAITING_BYTES as u64 / 1_000, "{}", queue.dropped());
        drop(decide);
    }
}
