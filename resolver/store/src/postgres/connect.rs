//! How servers are connected to.

use std::time::Duration;

use bb8::{Pool, PooledConnection};
use bb8_postgres::PostgresConnectionManager;
use tokio_postgres::{Config, NoTls, config::TargetSessionAttrs};

use super::DEADLINE;
use crate::StoreError;

/// Connections to the primary.
pub(super) type Connections = Pool<PostgresConnectionManager<NoTls>>;

/// A pool; it opens no connection before one is needed.
pub(super) fn pool(config: &Config, size: u32) -> Connections {
    Pool::builder()
        .max_size(size)
        .connection_timeout(DEADLINE)
        // The check would cost a round trip each time; a broken connection shows at its first use.
        .test_on_check_out(false)
        .max_lifetime(Some(Duration::from_secs(600)))
        .error_sink(Box::new(LogErrors))
        .build_unchecked(PostgresConnectionManager::new(config.clone(), NoTls))
}

/// How every server is connected to.
pub(super) fn configure(url: &str) -> Result<Config, StoreError> {
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

pub(super) fn reads_anywhere(config: &Config) -> Config {
    let mut config = config.clone();
    config.target_session_attrs(TargetSessionAttrs::Any);
    config
}

/// bb8 drops errors of its background connections unless told where to.
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

/// A connection of a pool.
pub(super) async fn check_out(
    pool: &Connections,
) -> Result<PooledConnection<'_, PostgresConnectionManager<NoTls>>, StoreError> {
    pool.get().await.map_err(|error| match error {
        bb8::RunError::User(error) => StoreError::Unreachable(Box::new(error)),
        bb8::RunError::TimedOut => StoreError::TimedOut,
    })
}
