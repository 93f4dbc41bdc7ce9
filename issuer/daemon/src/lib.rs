//! Infrastructure of both daemons: admin listener, metrics, signals, logs and exit codes.

mod admin;
mod channel;
mod contact;
mod exit;
mod log_queue;
mod logs;
mod names;
mod process;
mod recorder;
mod settings;
mod share;
mod task_supervisor;
pub mod traces;

use std::{net::SocketAddr, time::Duration};

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

pub use admin::{Admin, Refresh};
pub use channel::{Stream, channel, connect, is_local, reasons};
pub use contact::Contact;
pub use exit::{Exit, parse};
pub use logs::{LogFormat, greet, print};
pub use names::{nearest, unknown_variables, variables};
pub use recorder::{DURATION_BUCKETS, Page, Recorder};
pub use settings::Setting;
pub use share::Share;
pub use task_supervisor::{Beats, TaskSupervisor};

/// Spawns a task that cancels the token at SIGTERM or SIGINT.
pub fn cancel_on_signals(token: CancellationToken) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        // First of all: nothing may keep the process from ending.
        token.cancel();
        tracing::info!("{name}: stopping");
    });
    Ok(())
}

/// Parses a duration for a flag, such as `5s`, `250ms`, `10m` or `30d`. A day has 24 hours. Returns
/// a message if the text is not a duration or the duration is not positive.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let expected = || format!("expected a duration such as 250ms, 5s, 10m or 30d, got {text:?}");
    if let Some(days) =
        text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok()).filter(|days| *days > 0)
    {
        return Ok(Duration::from_secs(u64::from(days) * 24 * 60 * 60));
    }
    let parsed: jiff::SignedDuration = text.parse().map_err(|_| expected())?;
    Duration::try_from(parsed).ok().filter(|length| !length.is_zero()).ok_or_else(expected)
}

/// Parses a duration like [`parse_duration`], but also accepts zero.
pub fn parse_duration_or_zero(text: &str) -> Result<Duration, String> {
    if text.trim_end_matches(|c: char| c.is_ascii_alphabetic()) == "0" {
        return Ok(Duration::ZERO);
    }
    parse_duration(text)
}

/// Binds a non-blocking TCP listener for use with tokio.
pub fn bind(address: SocketAddr) -> std::io::Result<tokio::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}
