//! SQL statements that both stores share: all statements on links except batch inserts and reads
//! for redirects.
//!
//! 1. Each statement has one text for both dialects. Parameters are numbered `$1`, `$2` in the
//!    order in which they first appear: SQLite takes them as names, and numbers names by their
//!    first appearance.
//! 2. The method of a port that runs an operation (`operation.rs`) says what it does, and its
//!    function here how.
//! 3. Times are `timestamptz` on Postgres and milliseconds on SQLite; [`Row::time`] reads both.
//!
//! Rejected: a query builder. It would express the same statements in more words; the one statement
//! that is composed at run time (`list`) has a dozen parts.

mod audit;
mod blocks;
mod create;
mod deployment;
mod details;
mod dialect;
mod domains;
mod edits;
mod history;
mod idempotency;
mod import;
mod keys;
mod keyspaces;
mod like;
mod list;
mod long_urls;
mod reservations;
mod restore;
mod sessions;
mod slugs;
mod sweep;
mod tags;
mod targets;
mod transaction;
mod uses;
mod visits;
mod webhooks;

use super::{Result, StoreError};
use codes::LinkId;
use links::{Details, Link, LongUrl, StoredObject as _, api_key::ApiKeyId};

pub(super) use audit::{add_audit_entry, audit_entries};
pub(super) use blocks::{
    LINKS_PAGE, holds, page_of_links, register_block, registered_end, release_block, take_over_block,
};
pub(super) use create::{insert_full, insert_links, insert_named};
pub(super) use deployment::{adopt_fingerprint, adopt_ledger, fingerprint, forget_ledger};
pub use dialect::Dialect;
pub(super) use domains::{add_domain, domains_with_links, edit_domain, remove_domain, shared_settings};
pub(super) use edits::{delete, edit};
pub(super) use history::{advance, begin_history, raise};
pub(super) use import::{export, import, import_position, link_count};
pub(super) use keys::{
    add_api_key, add_first_api_key, find_api_key, find_grant, key_names, list_api_keys, note_keys_used,
    revoke_api_key, rotate_api_key,
};
pub(super) use keyspaces::{adopt_keyspaces, ids_of, number_of_end};
pub(super) use list::{find_links, outline, outlines_of, plain_links, records};
pub(super) use long_urls::{index_long_urls, links_of_url};
pub(super) use reservations::{
    add_reservation, close_reservation, count_reserved, reservation, reservations,
};
pub(super) use restore::{find_deleted, restore};
pub(super) use sessions::{end_session, find_session, open_session};
pub(super) use slugs::{FIND_SLUG, find_slug};
pub(super) use sweep::{note_visits, sweep};
pub(super) use tags::{
    delete_tags, gone_tag, has_tag, remove_gone_tag, rename_tag, tag_id, tag_names, tags, tags_of_link,
};
pub(super) use targets::{remove_target, set_target};
pub(super) use transaction::Cell;
pub use transaction::{Notice, Row, Sql, Value};
pub(super) use uses::{is_spent, take_visits};
pub use visits::{add_to_links, tag_changes};
pub(super) use visits::{
    add_visits, forget_tag_changes, tag_visit_totals, take_imported_visits, visit_totals,
};
pub(super) use webhooks::{
    add_test_delivery, add_webhook, add_webhook_events, claim_deliveries, deliveries, due_webhooks,
    edit_webhook, end_attempt, fan_out, pass_on_webhook_events, purge_webhooks, redeliver, remove_webhook,
    rotate_webhook, waiting_webhook_events, wants_creates, webhook, webhook_backlog, webhooks,
};

/// Maximum number of rows in one statement.
const ROWS_AT_ONCE: usize = 500;

impl Row {
    /// Reads a link from the columns of [`Dialect::link`].
    pub(super) fn link(&self) -> Result<Link> {
        Ok(Link {
            id: LinkId::from_stored(self.int(0)?),
            long_url: LongUrl::from_stored(self.text(1)?),
            title: self.opt_text(2)?.map(str::to_owned),
            crawlable: self.flag(3)?,
            forward_query: self.flag(4)?,
            created_at: self.time(5)?,
            created_by: ApiKeyId(self.int(6)?),
            details: self.opt_text(7)?.map(|text| Box::new(Details::from_stored(text))),
        })
    }
}

/// Raises the settings' version: once the transaction is committed, all resolvers read them again.
async fn note_change(sql: &mut dyn Sql) -> Result<()> {
    sql.query("UPDATE settings_version SET version = version + 1", &[]).await.map(drop)
}

/// Serializes details for storage.
pub(super) fn details_text(details: Option<&Details>) -> Result<Option<String>> {
    let write =
        |details| serde_json::to_string(details).map_err(|error| StoreError::Corrupt(error.to_string()));
    details.map(write).transpose()
}

/// Inserts rows, up to [`ROWS_AT_ONCE`] with one statement. `into` is what stands before VALUES,
/// and `then` what stands after the rows.
async fn insert_rows<const N: usize>(
    sql: &mut dyn Sql,
    into: &str,
    rows: &[[Value; N]],
    then: &str,
) -> Result<()> {
    for rows in rows.chunks(ROWS_AT_ONCE) {
        let row = |row: usize| format!("({})", places(N * row + 1, N));
        let all = (0..rows.len()).map(row).collect::<Vec<_>>().join(", ");
        sql.query(&format!("{into} VALUES {all} {then}"), &rows.concat()).await?;
    }
    Ok(())
}

/// Returns `count` placeholders from `$from` on, separated by commas.
fn places(from: usize, count: usize) -> String {
    (from..from + count).map(|place| format!("${place}")).collect::<Vec<_>>().join(", ")
}
