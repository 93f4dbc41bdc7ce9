//! Logs: one event a line on standard error, as text or as JSON.
//!
//! Whatever an event contains, a line of JSON is one event: newlines in it are escaped. That holds
//! for panics and for the reason why a process ends too.

use std::{io::IsTerminal as _, panic, process::ExitCode};

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

use crate::Exit;

/// The form of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For collectors: each line is an object with timestamp, level, target and fields.
    Json,
}

impl LogFormat {
    /// Starts logging to standard error. `RUST_LOG` sets the filter; the default is `info`.
    pub fn init(self) {
        let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
        let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
        // A second call, as a test might make, keeps the first subscriber.
        let _ = match self {
            Self::Text => subscriber.with_ansi(std::io::stderr().is_terminal()).try_init(),
            Self::Json => {
                panic::set_hook(Box::new(log_panic));
                subscriber.json().flatten_event(true).try_init()
            }
        };
    }

    /// Converts the outcome of a daemon into an exit code, and writes an error's cause on one line.
    #[expect(clippy::print_stderr, reason = "the one line that says why the process ends")]
    pub fn end(self, daemon: &str, done: Result<(), (Exit, anyhow::Error)>) -> ExitCode {
        let Err((exit, error)) = done else { return Exit::Clean.into() };
        match self {
            Self::Text => eprintln!("{daemon}: {error:#}"),
            Self::Json => tracing::error!(error = format!("{error:#}"), "{daemon} ends"),
        }
        exit.into()
    }
}

fn log_panic(panic: &panic::PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string);
    let payload = panic.payload();
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let reason = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("(no text)");
    tracing::error!(reason, place, thread = std::thread::current().name(), "a thread panicked");
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
        let former = panic::take_hook();
        panic::set_hook(Box::new(log_panic));
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
