//! The state of a server, and of the role that connects, for `resolver doctor`. Nothing is changed.

use jiff::Timestamp;
use tokio_postgres::config::TargetSessionAttrs;

use super::{
    connect::Address,
    roles::{Part, lacking},
    transaction::{PostgresSql, within},
};
use crate::{Result, StoreError, sql::Sql as _};

/// The state of a server as a role sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerState {
    /// Its release as a number, such as 150004 for 15.4.
    pub version: i64,
    /// Whether it is a standby.
    pub is_standby: bool,
    /// Whether sessions of the role may only read unless they ask for more.
    pub is_read_only: bool,
    /// The setting `synchronous_commit` of the role's sessions.
    pub synchronous_commit: String,
    /// The setting `synchronous_standby_names`; empty without synchronous standbys.
    pub synchronous_standbys: String,
    /// Whether commits are flushed to the disk.
    pub has_fsync: bool,
    /// Number of standbys that are connected, as far as the role may see.
    pub standbys: i64,
    /// Number of connections that ordinary roles can have together.
    pub connections_max: i64,
    /// Number of connections of all roles, without this one.
    pub connections: i64,
    /// Number of connections that resolvers have as this role.
    pub own_connections: i64,
    /// Time of the server's clock.
    pub now: Timestamp,
    /// Name of the role.
    pub role: String,
    /// Tables on which the role lacks a right.
    pub lacking: Vec<String>,
}

/// Reserved connections have a second setting from Postgres 16 on.
const STATE: &str = "SELECT current_setting('server_version_num')::bigint, pg_is_in_recovery(),
        current_setting('default_transaction_read_only') = 'on', current_setting('synchronous_commit'),
        current_setting('synchronous_standby_names'), current_setting('fsync') = 'on',
        (SELECT count(*) FROM pg_stat_replication),
        current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
            - coalesce(current_setting('reserved_connections', true), '0')::bigint,
        (SELECT coalesce(sum(numbackends), 1)::bigint - 1 FROM pg_stat_database),
        (SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename = current_user
            AND application_name LIKE 'shortmint-%'),
        clock_timestamp(), current_user::text";

/// Asks the server of a URL that takes writes for its state, or any other one if none does, and
/// which rights its role lacks for a part.
pub async fn inspect(url: &str, part: Part) -> Result<ServerState> {
    let mut address = Address::parse(url)?;
    address.config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    let connected = match address.connect().await {
        Err(_) => address.reads_anywhere().connect().await,
        connected => connected,
    };
    let (client, connection) = connected?;
    // It ends with the client.
    tokio::spawn(connection);
    within(async {
        let mut sql = PostgresSql(&client);
        let row = sql.first(STATE, &[]).await?;
        let row = row.ok_or_else(|| StoreError::Corrupt("the server has no state".to_owned()))?;
        Ok(ServerState {
            version: row.int(0)?,
            is_standby: row.flag(1)?,
            is_read_only: row.flag(2)?,
            synchronous_commit: row.text(3)?.to_owned(),
            synchronous_standbys: row.text(4)?.to_owned(),
            has_fsync: row.flag(5)?,
            standbys: row.int(6)?,
            connections_max: row.int(7)?,
            connections: row.int(8)?,
            own_connections: row.int(9)?,
            now: row.time(10)?,
            role: row.text(11)?.to_owned(),
            lacking: lacking(&mut sql, part).await?,
        })
    })
    .await
}
