//! Webhooks. Their events are in `events`, and deliveries in `deliveries`.
//!
//! A webhook ends with the API key that answers for it: the one that created it, or has enabled it
//! since. It is shown as disabled from the moment at which that key is revoked or expires, also
//! before a process records that.

mod deliveries;
mod events;

use std::time::Duration;

use links::{
    DomainId, Tag,
    api_key::{ApiKeyId, OPERATOR},
    audit::Action,
    webhook::{Disabled, NewWebhook, StoredSecret, Subscription, Webhook, WebhookEdit, WebhookId, host},
};
use serde_json::{Value as Json, json};

use super::{Dialect, Row, Sql, Value, audit::note, keys::is_valid, note_change, tags::number_of};
use crate::{Result, StoreError};
use codes::LinkId;

pub(crate) use deliveries::{
    add_test_delivery, claim_deliveries, deliveries, due_webhooks, end_attempt, fan_out, purge_webhooks,
    redeliver, webhook_backlog,
};
pub use events::add_webhook_events;
pub(super) use events::{is_called_for, record_create, record_creates, record_link};
pub(crate) use events::{pass_on_webhook_events, waiting_webhook_events, wants_creates};

/// Returns the columns and tables of a webhook, for [`webhook_in`].
fn select(dialect: Dialect) -> String {
    format!(
        "SELECT webhook.id, webhook.url, webhook.secret, webhook.former_secret, webhook.former_until,
            webhook.kinds, webhook.domain_id, webhook.tag_id, webhook.link_id, webhook.description,
            webhook.created_by, webhook.created_at, webhook.disabled_at, webhook.disabled_because,
            webhook.failing_since, webhook.dropped, webhook.version, tag.name,
            CAST(CASE WHEN {} THEN 1 ELSE 0 END AS bigint), coalesce(api_key.revoked_at, api_key.expires_at)
        FROM webhook LEFT JOIN tag ON tag.id = webhook.tag_id
            LEFT JOIN api_key ON api_key.id = webhook.created_by",
        is_valid(dialect)
    )
}

/// The reason shown for a webhook that an API key has disabled.
const BY_KEY: &str = "disabled with an API key";
/// The reason shown for a webhook that has ended with its API key.
const WITH_KEY: &str =
    "the API key that answers for it was revoked or has expired: enable the webhook with another key";

pub(crate) async fn webhooks(sql: &mut dyn Sql) -> Result<Vec<Webhook>> {
    let select = format!("{} ORDER BY webhook.id", select(sql.dialect()));
    sql.query(&select, &[]).await?.iter().map(webhook_in).collect()
}

/// Returns what the enabled webhooks are called for.
///
/// Secrets are not read: the role of a process that serves visitors only has no right to them.
pub(super) async fn subscriptions(sql: &mut dyn Sql) -> Result<Vec<Subscription>> {
    let select =
        "SELECT kinds, domain_id, tag_id, link_id FROM webhook WHERE disabled_at IS NULL ORDER BY id";
    sql.query(select, &[]).await?.iter().map(|row| subscription_at(row, 0)).collect()
}

pub(crate) async fn webhook(sql: &mut dyn Sql, id: WebhookId) -> Result<Option<Webhook>> {
    let select = format!("{} WHERE webhook.id = $1", select(sql.dialect()));
    sql.first(&select, &[Value::Int(id.get())]).await?.as_ref().map(webhook_in).transpose()
}

pub(crate) async fn add_webhook(
    sql: &mut dyn Sql,
    new: &NewWebhook,
    most: u32,
    by: ApiKeyId,
) -> Result<Option<Webhook>> {
    // Every change of webhooks locks this row, so no other one is added after the count.
    note_change(sql).await?;
    if sql.number("SELECT count(*) FROM webhook", &[]).await? >= Some(i64::from(most)) {
        return Ok(None);
    }
    let tag = match &new.tag {
        Some(tag) => Some(number_of(sql, tag).await?.ok_or_else(gone)?),
        None => None,
    };
    let insert =
        "INSERT INTO webhook (url, secret, kinds, domain_id, tag_id, link_id, description, created_by)
                  VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id";
    let values = [
        Value::Text(new.url.clone()),
        Value::Text(new.secret.reveal().to_owned()),
        Value::Text(new.subscription.kinds.join(",")),
        Value::OptInt(new.subscription.domain.map(DomainId::get)),
        Value::OptInt(tag),
        Value::OptInt(new.subscription.link.map(LinkId::get)),
        Value::OptText(new.description.clone()),
        Value::Int(by.0),
    ];
    let id = WebhookId::from_stored(sql.number(insert, &values).await?.ok_or_else(gone)?);
    let added = webhook(sql, id).await?.ok_or_else(gone)?;
    note(sql, by, Action::CreateWebhook, &id.to_string(), Some(told(&added))).await?;
    Ok(Some(added))
}

/// Enabling a webhook forgets earlier failures, and from then on this key answers for it.
pub(crate) async fn edit_webhook(
    sql: &mut dyn Sql,
    id: WebhookId,
    edit: &WebhookEdit,
    by: ApiKeyId,
) -> Result<Option<Webhook>> {
    note_change(sql).await?;
    let Some(before) = webhook(sql, id).await? else { return Ok(None) };
    let now = sql.dialect().now();
    let state = match (edit.enabled, before.disabled.is_some()) {
        (Some(true), true) => format!(
            ", disabled_at = NULL, disabled_because = NULL, failing_since = NULL, created_by = {}",
            by.0
        ),
        (Some(false), false) => format!(", disabled_at = {now}, disabled_because = '{BY_KEY}'"),
        _ => String::new(),
    };
    let update = format!(
        "UPDATE webhook SET url = $1, kinds = $2, description = $3, version = version + 1{state} WHERE id = $4"
    );
    let values = [
        Value::Text(edit.url.clone().unwrap_or(before.url)),
        Value::Text(edit.kinds.as_ref().unwrap_or(&before.subscription.kinds).join(",")),
        Value::OptText(edit.description.clone().unwrap_or(before.description)),
        Value::Int(id.get()),
    ];
    sql.query(&update, &values).await?;
    let edited = webhook(sql, id).await?.ok_or_else(gone)?;
    note(sql, by, Action::EditWebhook, &id.to_string(), Some(told(&edited))).await?;
    Ok(Some(edited))
}

pub(crate) async fn rotate_webhook(
    sql: &mut dyn Sql,
    id: WebhookId,
    secret: &StoredSecret,
    keep: Duration,
    by: ApiKeyId,
) -> Result<Option<Webhook>> {
    let rotate = format!(
        "UPDATE webhook SET former_secret = secret, former_until = {}, secret = $2, version = version + 1
         WHERE id = $3 RETURNING id",
        sql.dialect().now_plus("$1")
    );
    let values = [Value::milliseconds(keep), Value::Text(secret.reveal().to_owned()), Value::Int(id.get())];
    if sql.query(&rotate, &values).await?.is_empty() {
        return Ok(None);
    }
    note(sql, by, Action::RotateWebhook, &id.to_string(), None).await?;
    webhook(sql, id).await
}

/// Removes a webhook. Its open deliveries end, so that they are removed with the others.
pub(crate) async fn remove_webhook(sql: &mut dyn Sql, id: WebhookId, by: ApiKeyId) -> Result<bool> {
    note_change(sql).await?;
    let Some(before) = webhook(sql, id).await? else { return Ok(false) };
    let own = [Value::Int(id.get())];
    sql.query("DELETE FROM webhook WHERE id = $1", &own).await?;
    let end = format!(
        "UPDATE webhook_delivery SET state = 2, ended_at = {} WHERE webhook_id = $1 AND state = 0",
        sql.dialect().now()
    );
    sql.query(&end, &own).await?;
    note(sql, by, Action::RemoveWebhook, &id.to_string(), Some(told(&before))).await?;
    Ok(true)
}

/// Records that webhooks have ended with their API keys.
async fn end_with_keys(sql: &mut dyn Sql) -> Result<()> {
    for webhook in webhooks(sql).await? {
        if webhook.disabled.is_some_and(|disabled| disabled.reason == WITH_KEY) {
            disable(sql, webhook.id, WITH_KEY, "").await?;
        }
    }
    Ok(())
}

/// Disables a webhook for a reason, on a further condition. Returns whether it was enabled.
async fn disable(sql: &mut dyn Sql, id: WebhookId, reason: &str, only: &str) -> Result<bool> {
    let disable = format!(
        "UPDATE webhook SET disabled_at = {}, disabled_because = $1
         WHERE id = $2 AND disabled_at IS NULL{only} RETURNING id",
        sql.dialect().now()
    );
    let values = [Value::Text(reason.to_owned()), Value::Int(id.get())];
    if sql.query(&disable, &values).await?.is_empty() {
        return Ok(false);
    }
    let details = json!({ "reason": reason });
    note(sql, OPERATOR, Action::DisableWebhook, &id.to_string(), Some(details)).await?;
    note_change(sql).await?;
    Ok(true)
}

/// Returns what the audit log shows of a webhook: not the path of its URL, which may carry a token.
fn told(webhook: &Webhook) -> Json {
    json!({
        "host": host(&webhook.url),
        "events": webhook.subscription.kinds,
        "description": webhook.description,
        "enabled": webhook.disabled.is_none(),
    })
}

fn webhook_in(row: &Row) -> Result<Webhook> {
    let former = row.opt_text(3)?.map(StoredSecret::new).zip(row.opt_time(4)?);
    let (created_by, created_at) = (ApiKeyId(row.int(10)?), row.time(11)?);
    // Rows of keys are never removed, so without one the webhook is not a key's.
    let has_key = row.flag(18)?;
    let disabled = match row.opt_time(12)? {
        Some(at) => Some(Disabled { at, reason: row.opt_text(13)?.unwrap_or_default().to_owned() }),
        None if has_key => None,
        None => {
            let at = row.opt_time(19)?.unwrap_or(created_at);
            Some(Disabled { at, reason: WITH_KEY.to_owned() })
        }
    };
    let subscription = subscription_at(row, 5)?;
    Ok(Webhook {
        id: WebhookId::from_stored(row.int(0)?),
        url: row.text(1)?.to_owned(),
        secret: StoredSecret::new(row.text(2)?),
        former,
        subscription,
        tag: row.opt_text(17)?.map(Tag::from_stored),
        description: row.opt_text(9)?.map(str::to_owned),
        created_by,
        created_at,
        disabled,
        failing_since: row.opt_time(14)?,
        dropped: row.count(15)?,
        version: row.count(16)?,
    })
}

/// Reads a subscription from four columns, of which this is the first.
fn subscription_at(row: &Row, first: usize) -> Result<Subscription> {
    Ok(Subscription {
        kinds: row.text(first)?.split(',').map(str::to_owned).collect(),
        domain: row.opt_int(first + 1)?.map(DomainId::from_stored),
        tag: row.opt_int(first + 2)?,
        link: row.opt_int(first + 3)?.map(LinkId::from_stored),
    })
}

fn gone() -> StoreError {
    StoreError::Corrupt("a row of a webhook is gone".to_owned())
}
