//! The statements of the dedicated connections.

use std::sync::LazyLock;

use super::admin::{COMPARED_EPOCH, SERVER};
use crate::sql;

/// Inserts a batch of any size in one round trip: ids, URLs and flags are sent as arrays. The ids
/// are ascending, so that concurrent inserts of two resolvers cannot deadlock.
///
/// If the database's history is not `$8`, nothing is inserted and no row is returned. The check is
/// part of the statement: after a fail-over, the connection may lead to another server than before.
/// The condition stands in the INSERT itself. A CTE around it could report another history in a row
/// of its own, but then the condition costs a batch of 32 links 27 µs instead of 16 µs, of 197 µs
/// (2026-11-23, medians, statements alternating on one connection).
pub(super) static INSERT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "
    INSERT INTO link (id, long_url, title, crawlable, forward_query, created_by, details)
    SELECT new.id, url, name, crawls, forwards, creator, rest::jsonb
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::boolean[], $5::boolean[], $6::bigint[], $7::text[])
        AS new (id, url, name, crawls, forwards, creator, rest)
    WHERE ({}) = $8
    ON CONFLICT (id) DO NOTHING
    RETURNING id, created_at",
        *COMPARED_EPOCH
    )
});

/// Inserts a batch of links at the numbers of their custom slugs in one round trip, with the
/// parameters of [`INSERT`] and the slugs instead of the history, and notifies other resolvers of
/// those that it stores. Commits with a notification follow each other in the whole database, and a
/// batch is one of them.
///
/// A link without a row in the answer is not stored: its number is reserved or has a link, or a
/// deleted link had its slug. Sorted, so that concurrent batches cannot deadlock. `OFFSET 0` keeps
/// both conditions from becoming joins: each is a look-up in an index for each link. The type of
/// `pg_notify` is `void`, which no client reads.
pub(super) static SLUGS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "
    WITH stored AS (
        INSERT INTO link (id, long_url, title, crawlable, forward_query, created_by, details)
        SELECT new.id, url, name, crawls, forwards, creator, rest::jsonb
        FROM unnest($1::bigint[], $2::text[], $3::text[], $4::boolean[], $5::boolean[], $6::bigint[], $7::text[],
                $8::text[])
            AS new (id, url, name, crawls, forwards, creator, rest, slug)
        WHERE NOT EXISTS ({} OFFSET 0) AND NOT EXISTS ({} OFFSET 0)
        ORDER BY new.id
        ON CONFLICT (id) DO NOTHING
        RETURNING id, created_at
    ), noted AS (INSERT INTO picked (id) SELECT id FROM stored ON CONFLICT (id) DO NOTHING)
    SELECT id, created_at, pg_notify('shortmint_links', '+' || id)::text FROM stored",
        sql::reservation_of(sql::Dialect::Postgres, "new.id", "new.id + 1"),
        sql::former_of("new.slug")
    )
});

/// Inserts a batch as [`INSERT`] does, on a node of a distributed database. The connection belongs
/// to a history.
pub(super) const INSERT_ANY: &str = "
    INSERT INTO link (id, long_url, title, crawlable, forward_query, created_by, details)
    SELECT new.id, url, name, crawls, forwards, creator, rest::jsonb
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::boolean[], $5::boolean[], $6::bigint[], $7::text[])
        AS new (id, url, name, crawls, forwards, creator, rest)
    ON CONFLICT (id) DO NOTHING
    RETURNING id, created_at";

/// Reads the buckets of the links of a database on Citus: the first hash of each, and the host and
/// the port of its node; and the coordinator's history, if that has been compared.
pub(super) static LAYOUT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "
    SELECT CAST(shardminvalue AS integer), nodename, CAST(nodeport AS integer), ({})
    FROM pg_dist_shard JOIN pg_dist_placement USING (shardid) JOIN pg_dist_node USING (groupid)
    WHERE logicalrelid = to_regclass('link') AND noderole = 'primary' AND isactive
    ORDER BY 1",
        *COMPARED_EPOCH
    )
});

/// Asks a node who it is: its identity, and its start time. It is NULL on a standby.
pub(super) static IDENTITY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT CASE WHEN NOT pg_is_in_recovery() THEN ({SERVER}) || ':' || extract(epoch FROM pg_postmaster_start_time()) END"
    )
});

/// Inserts rows in the binary format (`copy.rs`).
pub(super) const COPY: &str = "
    COPY link (id, long_url, title, crawlable, forward_query, created_by, details, created_at)
    FROM STDIN (FORMAT binary)";

/// Selects the links of a condition, in the columns that `links.rs` decodes.
macro_rules! links_where {
    ($condition:literal) => {
        concat!(
            "SELECT id, long_url, title, crawlable, forward_query, created_at, created_by, details::text
             FROM link WHERE ",
            $condition
        )
    };
}

pub(super) const READ: &str = links_where!("id = ANY($1::bigint[])");

/// Reads the links of a span of ids. Up to Postgres 16, [`READ`] descends the index once for each
/// id, which takes longer than to read the row.
pub(super) const READ_SPAN: &str = links_where!("id BETWEEN $1 AND $2");

/// Polls the settings' version and copy, the time, the log position, the server's start time and
/// how much of the log is flushed. The position is the `insert` and not the `flush` position, so
/// that no commit lies behind it, also of a session that does not wait for the flush.
pub(super) static POLL: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT version, {}, clock_timestamp(), (pg_current_wal_insert_lsn() - '0/0')::bigint, pg_postmaster_start_time(),
             (pg_current_wal_flush_lsn() - '0/0')::bigint
         FROM settings_version",
        sql::Dialect::Postgres.copy_of_database()
    )
});
