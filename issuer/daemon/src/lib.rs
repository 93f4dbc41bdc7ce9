//! What both daemons share around their work: the admin listener, gates for connections, limits of the system, metrics, signals, logs and exit
//! codes.

mod admin;
mod calls;
mod exit;
mod gate;
mod recorder;
mod resources;
mod seldom;
mod vital;

use std::{io::IsTerminal as _, net::SocketAddr, time::Duration};

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

pub use admin::{Admin, Refresh};
pub use calls::{Bounded, ClientOf, Questions};
pub use exit::{Exit, end, parse};
pub use gate::{Gate, GateLimits, Guarded, Guest, IsExempt, UnderWay, network};
pub use recorder::Recorder;
pub use resources::Resources;
pub use seldom::Seldom;
pub use vital::{Failures, Vitals};

/// Starts logging to standard error: `RUST_LOG` chooses what, `info` is the default.
pub fn init_logs() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let subscriber = subscriber.with_ansi(std::io::stderr().is_terminal());
    // A second call, as a test might make, keeps the first subscriber.
    let _ = subscriber.try_init();
}

/// Cancels the token at SIGTERM or SIGINT.
///
/// # Errors
/// When the system does not let signals be handled.
pub fn cancel_on_signals(token: CancellationToken) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("SIGTERM: stopping"),
            _ = interrupt.recv() => tracing::info!("SIGINT: stopping"),
        }
        token.cancel();
    });
    Ok(())
}

/// Reads a duration such as `5s`, `250ms`, `10m` or `30d`, for flags. A day has 24 hours.
///
/// # Errors
/// When it is not one, or not positive.
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

/// Like [`parse_duration`], but nothing is a length too.
///
/// # Errors
/// When it is not a duration.
pub fn parse_duration_or_zero(text: &str) -> Result<Duration, String> {
    if text.trim_end_matches(|c: char| c.is_ascii_alphabetic()) == "0" {
        return Ok(Duration::ZERO);
    }
    parse_duration(text)
}

/// Binds a TCP listener for use with tokio.
///
/// # Errors
/// When the address is taken or not this machine's.
pub fn bind(address: SocketAddr) -> std::io::Result<tokio::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}
