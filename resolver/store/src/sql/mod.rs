//! SQL statements that both stores share: all statements on links except batch inserts and reads
//! for redirects.
//!
//! 1. Each statement has one text for both dialects. Parameters are numbered `$1`, `$2` in the
//!    order in which they first appear: SQLite takes them as names, and numbers names by their
//!    first appearance.
//! 2. An operation is an `async fn` over [`Sql`]. On Postgres it waits for the network. On SQLite
//!    the connection's own thread runs it to its end, and may wait (`sqlite/transaction.rs`).
//! 3. Times are `timestamptz` on Postgres and milliseconds on SQLite; [`Row::time`] reads both.
//!
//! Rejected: a query builder. It would express the same statements in more words; the one statement
//! that is composed at run time (`list`) has a dozen parts.

mod audit;
mod create;
mod details;
mod domains;
mod edits;
mod gaps;
mod history;
mod idempotency;
mod import;
mod keys;
mod keyspaces;
mod list;
mod long_urls;
mod restore;
mod slugs;
mod sweep;
mod tags;
mod targets;
mod uses;

use std::{collections::HashMap, time::Duration};

use jiff::Timestamp;

use super::StoreError;
use codes::LinkId;
use links::{Details, Link, LongUrl, Tag, api_key::ApiKeyId};

pub(super) use audit::audit;
pub(super) use create::{insert_full, insert_named};
pub(super) use domains::{
    NOTE_SETTINGS, add_domain, domains_with_links, edit_domain, remove_domain, shared_settings,
};
pub(super) use edits::{delete, edit};
pub(super) use gaps::{Gaps, SCAN_PAGE};
pub(super) use history::{RAISE, Registered, advance, begin_history, mark_of, raise};
pub(super) use import::{export, import, import_position, link_count};
pub(super) use keys::{
    add_api_key, find_api_key, key_names, list_api_keys, note_keys_used, revoke_api_key, rotate_api_key,
};
pub(super) use keyspaces::{ids_of, number_of_end, parse_keyspaces};
pub(super) use list::{outline, records, weigh};
pub(super) use long_urls::{index_long_urls, links_of_url};
pub(super) use restore::{find_deleted, restore};
pub(super) use slugs::{FIND_SLUG, find_slug, unminted_slugs};
pub(super) use sweep::{note_seen, sweep};
pub(super) use tags::{delete_tags, rename_tag, tags, tags_of};
pub(super) use targets::{remove_target, set_target};
pub(super) use uses::{is_spent, use_links};

/// A SQL dialect, with the expressions and statements that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Postgres,
    Sqlite,
}

impl Dialect {
    /// SQL expression for the transaction's time plus `milliseconds`, a placeholder.
    pub(super) fn now_plus(self, milliseconds: &str) -> String {
        match self {
            Self::Postgres => format!("now() + CAST({milliseconds} AS bigint) * interval '1 millisecond'"),
            Self::Sqlite => format!("{} + {milliseconds}", self.now()),
        }
    }

    /// SQL expression for the transaction's time minus `span`.
    pub(super) fn now_minus(self, span: Duration) -> String {
        let span = milliseconds(span);
        match self {
            Self::Postgres => format!("now() - {span} * interval '1 millisecond'"),
            Self::Sqlite => format!("{} - {span}", self.now()),
        }
    }

    /// SQL expression, as text, for the copy of the database that counts the settings' versions.
    /// For use in a SELECT from their table.
    ///
    /// On Postgres it consists of the server's start time, the table's identity and the history: a
    /// server is stopped while its files are replaced, a dump brings another table, and a promoted
    /// standby has its own start time. A SQLite file is replaced while no process has it open, so
    /// the history suffices.
    pub(super) fn settings_copy(self) -> &'static str {
        match self {
            Self::Postgres => {
                "extract(epoch FROM pg_postmaster_start_time())::text || '/' || tableoid::text || '/'
                 || coalesce((SELECT history FROM deployment), 0)"
            }
            Self::Sqlite => "coalesce((SELECT history FROM deployment), 0) || ''",
        }
    }

    /// SQL expression for the later of two times.
    pub(super) fn later(self, one: &str, other: &str) -> String {
        match self {
            Self::Postgres => format!("greatest({one}, {other})"),
            Self::Sqlite => format!("max({one}, {other})"),
        }
    }

    /// SQL query for a time before which no more links will be created. Links have their
    /// transaction's start time.
    ///
    /// On Postgres it is the start of the oldest transaction under way, and at most now minus 2
    /// seconds, for transactions that have begun and are not visible yet. A transaction that has
    /// written nothing for two minutes counts as read-only. If another role's sessions are hidden,
    /// the result is two minutes ago. SQLite has one writer, so there it is the current time.
    pub(super) fn settled(self) -> &'static str {
        match self {
            Self::Postgres => {
                "SELECT CASE WHEN bool_or(state IS NULL OR state = 'disabled') THEN now() - interval '2 minutes'
                             ELSE least(now() - interval '2 seconds', min(xact_start)) END
                 FROM pg_stat_activity
                 WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
                   AND (state IS NULL OR state = 'disabled' OR backend_xid IS NOT NULL OR xact_start > now() - interval '2 minutes')"
            }
            Self::Sqlite => "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)",
        }
    }

    /// SQL expression for [`LongUrl::digest`](links::LongUrl::digest) of a column. `None` if the
    /// database cannot compute it. With it, long URLs are indexed without being sent to the
    /// resolver.
    pub(super) fn digest_of(self, column: &str) -> Option<String> {
        let first = format!("encode(substr(sha256(convert_to({column}, 'UTF8')), 1, 8), 'hex')");
        (self == Self::Postgres).then(|| format!("('x' || {first})::bit(64)::bigint"))
    }

    /// SQL expression for the transaction's time.
    pub(super) fn now(self) -> &'static str {
        match self {
            Self::Postgres => "now()",
            Self::Sqlite => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
        }
    }

    /// SQL expression for the transaction's time in milliseconds since 1970.
    pub(super) fn now_millis(self) -> &'static str {
        match self {
            Self::Postgres => "CAST(extract(epoch FROM now()) * 1000 AS bigint)",
            Self::Sqlite => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
        }
    }

    /// SQL query for an unused link id that belongs to no minted code.
    pub(super) fn next_slug_link_id(self) -> &'static str {
        match self {
            Self::Postgres => "SELECT nextval('slug_link_id')",
            Self::Sqlite => "SELECT coalesce(max(id), 0) + 1 FROM link WHERE id < 281474976710656",
        }
    }

    /// SQL query for the estimated number of links; negative if there is no estimate. An exact
    /// count takes Postgres seconds.
    pub(super) fn link_count(self) -> &'static str {
        match self {
            Self::Postgres => "SELECT CAST(reltuples AS bigint) FROM pg_class WHERE oid = 'link'::regclass",
            Self::Sqlite => "SELECT count(*) FROM link",
        }
    }

    /// SQL query for the end of the registered ids between two parameters. It returns one row, with
    /// NULL if none is registered.
    pub(super) fn registered_end(self) -> &'static str {
        match self {
            Self::Postgres => {
                "SELECT max(upper(ids)) FROM block
                 WHERE ids >= int8range($1, CAST($1 AS bigint) + 1) AND ids < int8range($2, CAST($2 AS bigint) + 1)"
            }
            Self::Sqlite => "SELECT max(end_id) FROM block WHERE first_id >= $1 AND end_id <= $2",
        }
    }

    /// SQL statement that keeps keyspaces unchanged until the transaction ends. SQLite has one
    /// writer.
    pub(super) fn keep_keyspaces(self) -> &'static str {
        match self {
            Self::Postgres => "LOCK TABLE keyspace IN SHARE MODE",
            Self::Sqlite => "SELECT 1",
        }
    }

    /// SQL query for the open reservation that owns an id, its only parameter.
    pub(super) fn reservation_of(self) -> &'static str {
        match self {
            Self::Postgres => {
                "SELECT 1::bigint FROM block JOIN reservation ON block.holder = 'reservation-' || reservation.id
                 WHERE block.ids @> $1 AND reservation.closed_at IS NULL"
            }
            Self::Sqlite => {
                "SELECT 1 FROM block JOIN reservation ON block.holder = 'reservation-' || reservation.id
                 WHERE block.first_id <= $1 AND block.end_id > $1 AND reservation.closed_at IS NULL"
            }
        }
    }

    /// Suffix of a SELECT that skips rows locked by other transactions. SQLite has one writer.
    pub(super) fn skip_locked(self) -> &'static str {
        match self {
            Self::Postgres => "FOR UPDATE SKIP LOCKED",
            Self::Sqlite => "",
        }
    }

    /// Suffix of a SELECT whose rows cannot be deleted by others before the transaction ends.
    /// SQLite has one writer.
    pub(super) fn for_key_share(self) -> &'static str {
        match self {
            Self::Postgres => "FOR KEY SHARE",
            Self::Sqlite => "",
        }
    }

    /// Suffix of a SELECT whose rows cannot be changed by others before the transaction ends.
    /// SQLite has one writer.
    pub(super) fn for_update(self) -> &'static str {
        match self {
            Self::Postgres => "FOR UPDATE",
            Self::Sqlite => "",
        }
    }

    /// Columns of a whole link, for [`Row::link`].
    pub(super) fn link(self) -> &'static str {
        match self {
            Self::Postgres => {
                "link.id, link.long_url, link.title, link.crawlable, link.forward_query, link.created_at, link.created_by, CAST(link.details AS text)"
            }
            Self::Sqlite => {
                "link.id, link.long_url, link.title, link.crawlable, link.forward_query, link.created_at, link.created_by, link.details"
            }
        }
    }

    /// SQL expression for the size of a text in bytes; 0 for NULL.
    pub(super) fn bytes_of(self, text: &str) -> String {
        match self {
            Self::Postgres => format!("coalesce(octet_length({text})::bigint, 0)"),
            Self::Sqlite => format!("coalesce(octet_length({text}), 0)"),
        }
    }

    /// SQL expression for a JSON column as text.
    pub(super) fn json_text(self, column: &str) -> String {
        match self {
            Self::Postgres => format!("CAST({column} AS text)"),
            Self::Sqlite => column.to_owned(),
        }
    }

    /// SQL expression for a placeholder of JSON, which is passed as text.
    pub(super) fn json(self, place: &str) -> String {
        match self {
            Self::Postgres => format!("CAST({place} AS text)::jsonb"),
            Self::Sqlite => place.to_owned(),
        }
    }
}

/// A parameter of a statement.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Int(i64),
    Bool(bool),
    Text(String),
    OptText(Option<String>),
    Time(Timestamp),
    OptTime(Option<Timestamp>),
    Bytes(Vec<u8>),
}

/// A value of a column.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    Null,
    Int(i64),
    Text(String),
    Time(Timestamp),
}

/// A row of a result.
#[derive(Clone, Debug)]
pub(super) struct Row(pub(super) Vec<Cell>);

impl Row {
    pub(super) fn int(&self, column: usize) -> Result<i64, StoreError> {
        match &self.0[column] {
            Cell::Int(value) => Ok(*value),
            other => Err(unexpected("a number", other)),
        }
    }

    pub(super) fn is_null(&self, column: usize) -> bool {
        matches!(self.0[column], Cell::Null)
    }

    pub(super) fn flag(&self, column: usize) -> Result<bool, StoreError> {
        Ok(self.int(column)? != 0)
    }

    pub(super) fn text(&self, column: usize) -> Result<&str, StoreError> {
        self.opt_text(column)?.ok_or_else(|| unexpected("a text", &Cell::Null))
    }

    pub(super) fn opt_text(&self, column: usize) -> Result<Option<&str>, StoreError> {
        match &self.0[column] {
            Cell::Null => Ok(None),
            Cell::Text(text) => Ok(Some(text)),
            other => Err(unexpected("a text", other)),
        }
    }

    pub(super) fn time(&self, column: usize) -> Result<Timestamp, StoreError> {
        match &self.0[column] {
            Cell::Time(time) => Ok(*time),
            Cell::Int(milliseconds) => Timestamp::from_millisecond(*milliseconds)
                .map_err(|error| StoreError::Corrupt(error.to_string())),
            other => Err(unexpected("a time", other)),
        }
    }

    /// Reads a link from the columns of [`Dialect::link`].
    pub(super) fn link(&self) -> Result<Link, StoreError> {
        Ok(Link {
            id: LinkId::from_stored(self.int(0)?),
            long_url: LongUrl::from_stored(self.text(1)?),
            title: self.opt_text(2)?.map(str::to_owned),
            crawlable: self.flag(3)?,
            forward_query: self.flag(4)?,
            created_at: self.time(5)?,
            created_by: ApiKeyId(self.int(6)?),
            details: details(self.opt_text(7)?)?,
        })
    }
}

fn unexpected(expected: &str, found: &Cell) -> StoreError {
    StoreError::Corrupt(format!("expected {expected}, found {found:?}"))
}

/// Parses stored details.
pub(super) fn details(text: Option<&str>) -> Result<Option<Box<Details>>, StoreError> {
    let parse =
        |text| serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("details: {error}")));
    text.map(parse).transpose()
}

/// Serializes details for storage.
pub(super) fn details_text(details: Option<&Details>) -> Result<Option<String>, StoreError> {
    let write =
        |details| serde_json::to_string(details).map_err(|error| StoreError::Corrupt(error.to_string()));
    details.map(write).transpose()
}

/// A change to be notified to other resolvers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Told<'a> {
    /// These links were changed. At most 400 ids fit into one notification.
    Changed(&'a [LinkId]),
    /// The mintable code of this id was taken as a custom slug.
    Picked(LinkId),
}

/// A database transaction.
pub(super) trait Sql {
    /// The dialect of its statements.
    const DIALECT: Dialect;

    /// Runs a statement and returns its rows.
    fn query(
        &mut self,
        sql: &str,
        values: &[Value],
    ) -> impl Future<Output = Result<Vec<Row>, StoreError>> + Send;

    /// Notifies other resolvers of a change when the transaction commits.
    fn tell(&mut self, news: Told<'_>) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Converts a duration to a parameter in milliseconds.
pub(super) fn milliseconds(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// Converts the start and size of a page of ids to parameters.
pub(super) fn page_of_ids(after: Option<LinkId>, most: usize) -> (i64, i64) {
    (after.map_or(0, LinkId::get), i64::try_from(most).unwrap_or(i64::MAX))
}

/// Returns `count` placeholders from `$from` on, separated by commas.
fn places(from: usize, count: usize) -> String {
    (from..from + count).map(|place| format!("${place}")).collect::<Vec<_>>().join(", ")
}

/// Tags by link id.
pub(super) type TagsOf = HashMap<LinkId, Vec<Tag>>;
