//! Connections to Postgres servers: configuration and pools.

use std::time::Duration;

use bb8::{Pool, PooledConnection};
use bb8_postgres::PostgresConnectionManager;
use tokio_postgres::{Config, NoTls, config::TargetSessionAttrs};

use super::deadline::DEADLINE;
use crate::StoreError;

/// A pool of connections to the primary.
pub type Connections = Pool<PostgresConnectionManager<NoTls>>;

/// Creates a pool. It opens no connection before one is needed.
#[must_use]
pub fn pool(config: &Config, size: u32) -> Connections {
    Pool::builder()
        .max_size(size)
        .connection_timeout(DEADLINE)
        // A check would cost a round trip each time; a broken connection shows at its first use.
        .test_on_check_out(false)
        .max_lifetime(Some(Duration::from_secs(600)))
        .error_sink(Box::new(LogErrors))
        .build_unchecked(PostgresConnectionManager::new(config.clone(), NoTls))
}

/// Parses a URL into the configuration of all connections: deadlines and TCP keep-alives.
///
/// # Errors
/// Returns an error if the URL is invalid.
pub fn configure(url: &str) -> Result<Config, StoreError> {
    let mut config: Config = url.parse()?;
    config
        .application_name("shortmint-resolver")
        .connect_timeout(DEADLINE)
        .tcp_user_timeout(DEADLINE)
        .keepalives_idle(Duration::from_secs(5))
        .keepalives_interval(Duration::from_secs(2))
        .keepalives_retries(3);
    Ok(config)
}

/// Returns the configuration without the demand for a server that can write.
pub(super) fn reads_anywhere(config: &Config) -> Config {
    let mut config = config.clone();
    config.target_session_attrs(TargetSessionAttrs::Any);
    config
}

/// Logs errors of background connections. bb8 drops them otherwise.
#[derive(Clone, Debug)]
struct LogErrors;

impl bb8::ErrorSink<tokio_postgres::Error> for LogErrors {
    fn sink(&self, error: tokio_postgres::Error) {
        tracing::warn!(error = &error as &dyn std::error::Error, "connect to Postgres");
    }

    fn boxed_clone(&self) -> Box<dyn bb8::ErrorSink<tokio_postgres::Error>> {
        Box::new(self.clone())
    }
}

/// Checks a connection out of a pool.
///
/// # Errors
/// Returns [`StoreError::TimedOut`] if none is free or connects in time.
pub async fn check_out(
    pool: &Connections,
) -> Result<PooledConnection<'_, PostgresConnectionManager<NoTls>>, StoreError> {
    pool.get().await.map_err(|error| match error {
        bb8::RunError::User(error) => StoreError::Unreachable(Box::new(error)),
        bb8::RunError::TimedOut => StoreError::TimedOut,
    })
}
