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
mod dialect;
mod domains;
mod edits;
mod gaps;
mod history;
mod idempotency;
mod import;
mod keys;
mod keyspaces;
mod like;
mod list;
mod long_urls;
mod restore;
mod sessions;
mod settings_version;
mod slugs;
mod sweep;
mod tags;
mod targets;
mod uses;
mod visits;
mod webhooks;

use std::collections::HashMap;

use jiff::Timestamp;

use super::StoreError;
use codes::LinkId;
use links::{Details, Link, LongUrl, StoredObject as _, Tag, api_key::ApiKeyId};

pub(super) use audit::{add_audit_entry, audit_entries};
pub(super) use create::{insert_full, insert_named};
pub(super) use dialect::{Dialect, milliseconds};
pub(super) use domains::{add_domain, domains_with_links, edit_domain, remove_domain, shared_settings};
pub(super) use edits::{delete, edit};
pub(super) use gaps::{Gaps, SCAN_PAGE};
pub(super) use history::{RAISE, Registered, advance, begin_history, mark_of, raise};
pub(super) use import::{export, import, import_position, link_count};
pub(super) use keys::{
    add_api_key, find_api_key, find_grant, key_names, list_api_keys, note_keys_used, revoke_api_key,
    rotate_api_key,
};
pub(super) use keyspaces::{ids_of, number_of_end, parse_keyspaces};
pub(super) use list::{outline, outlines_of, plain_links, records};
pub(super) use long_urls::{index_long_urls, links_of_url};
pub(super) use restore::{find_deleted, restore};
pub(super) use sessions::{end_session, find_session, open_session};
pub(super) use settings_version::NOTE_SETTINGS;
pub(super) use slugs::{FIND_SLUG, find_slug};
pub(super) use sweep::{note_visits, sweep};
pub(super) use tags::{
    delete_tags, gone_tag, has_tag, remove_gone_tag, rename_tag, tag_names, tags, tags_of,
};
pub(super) use targets::{remove_target, set_target};
pub(super) use uses::{is_spent, take_visits};
pub(super) use visits::{
    add_visits, forget_tag_changes, tag_changes, tag_id, tag_visit_totals, take_imported_visits, visit_totals,
};
pub(super) use webhooks::{
    add_test_delivery, add_webhook, add_webhook_events, claim_deliveries, deliveries, due_webhooks,
    edit_webhook, end_attempt, fan_out, insert_announced, pass_on_webhook_events, purge_webhooks,
    record_create, redeliver, remove_webhook, rotate_webhook, waiting_webhook_events, wants_creates, webhook,
    webhook_backlog, webhooks,
};

/// A parameter of a statement.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Int(i64),
    OptInt(Option<i64>),
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
            details: details(self.opt_text(7)?),
        })
    }
}

fn unexpected(expected: &str, found: &Cell) -> StoreError {
    StoreError::Corrupt(format!("expected {expected}, found {found:?}"))
}

/// Parses stored details.
pub(super) fn details(text: Option<&str>) -> Option<Box<Details>> {
    text.map(|text| Box::new(Details::from_stored(text)))
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
