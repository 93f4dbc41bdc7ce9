//! Logs: one event a line on standard error, as text or as JSON.
//!
//! 1. Whatever an event contains, a line of JSON is one event: newlines in it are escaped. That
//!    holds for panics and for the reason why a process ends too.
//! 2. Nothing that becomes of standard error reaches the code that logs: lines go through a queue
//!    (`log_queue.rs`), panics' too.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    io::{self, IsTerminal as _, Write as _},
    panic,
    process::ExitCode,
    thread,
    time::Duration,
};

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

use crate::{Exit, log_queue::LogQueue};

static LOG: LogQueue = LogQueue::new();
/// How long a process that ends waits for its last lines to be written.
const LAST_LINES: Duration = Duration::from_millis(500);

/// The form of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For collectors: each line of standard error is an object with timestamp, level, target and
    /// fields.
    Json,
}

impl LogFormat {
    /// Starts logging to standard error. `RUST_LOG` sets the filter; the default is `info`.
    pub fn init(self) {
        let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
        LOG.start();
        panic::set_hook(Box::new(log_panic));
        let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| &LOG);
        // The subscriber would print its own errors, and panic if it cannot.
        let subscriber = subscriber.log_internal_errors(false);
        // A second call, as a test might make, keeps the first subscriber.
        let _ = match self {
            Self::Text => subscriber.with_ansi(io::stderr().is_terminal()).try_init(),
            Self::Json => subscriber.json().flatten_event(true).try_init(),
        };
    }

    /// Converts the outcome of a daemon into an exit code, and writes an error's cause on one line.
    /// Waits a moment for the last lines of the log.
    pub fn end(self, daemon: &str, done: Result<Exit, (Exit, anyhow::Error)>) -> ExitCode {
        LOG.start();
        let exit = done.unwrap_or_else(|(exit, error)| {
            match self {
                Self::Text => LOG.add(format!("{daemon}: {error:#}\n").as_bytes()),
                Self::Json => tracing::error!(error = format!("{error:#}"), "{daemon} ends"),
            }
            exit
        });
        LOG.flush(LAST_LINES);
        exit.into()
    }
}

/// Returns the number of log lines that standard error did not take.
pub(crate) fn dropped_lines() -> u64 {
    LOG.dropped()
}

/// Prints the output of a command. A reader that has gone, as `head` does, is no error.
pub fn print(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// Prints a message of a daemon that serves. A standard output that takes nothing delays nothing:
/// a thread of its own writes, and `lost` tells what an error costs.
pub fn greet(text: String, lost: &'static str) {
    let write = move || {
        if let Err(error) = print(&text) {
            tracing::warn!(%error, "print to standard output: {lost}");
        }
    };
    if let Err(error) = thread::Builder::new().name("greeting".to_owned()).spawn(write) {
        tracing::warn!(%error, "start a thread to print: {lost}");
    }
}

fn log_panic(panic: &panic::PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string);
    let payload = panic.payload();
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let reason = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("(no text)");
    let trace = Backtrace::capture();
    let trace = (trace.status() == BacktraceStatus::Captured).then(|| trace.to_string());
    tracing::error!(reason, place, trace, thread = thread::current().name(), "a thread panicked");
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        sync::{Arc, Mutex},
    };

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_panic_is_one_event_whose_fields_have_different_names() {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt().json().flatten_event(true);
        let subscriber = subscriber.with_writer(move || writer.clone()).finish();
        // The hook is the process's, and other tests panic too.
        let (former, here) = (panic::take_hook(), thread::current().id());
        panic::set_hook(Box::new(move |panic| {
            if thread::current().id() == here {
                log_panic(panic);
            }
        }));
        tracing::subscriber::with_default(subscriber, || {
            let panicked = panic::catch_unwind(|| panic!("one\n{}", "two"));
            assert!(panicked.is_err());
        });
        panic::set_hook(former);
        let lines = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert_eq!(lines.lines().count(), 1, "{lines}");
        for field in ["\"message\":\"a thread panicked\"", "\"reason\":\"one\\ntwo\"", "\"place\":"] {
            assert!(lines.contains(field), "{lines}");
        }
        assert_eq!(lines.matches("\"message\":").count(), 1, "{lines}");
    }
}
