//! Deliveries of events to webhooks.

use std::{collections::BTreeMap, time::Duration};

use links::webhook::{Delivery, DeliveryId, DeliveryState, OPEN_MAX, PING, Webhook, WebhookId};

use super::super::{Dialect, Row, Sql, Value, insert_rows};
use super::{disable, end_with_keys, gone, select, webhook, webhook_in};
use crate::{
    AfterAttempt, AttemptEnd, Backlog, ClaimedDelivery, Disable, FanOut, FannedOut, Result, StoreError,
};

/// Columns and tables of a delivery, for [`delivery_in`].
const SELECT_DELIVERY: &str =
    "SELECT webhook_delivery.id, webhook_delivery.webhook_id, webhook_delivery.message_id,
        webhook_event.kind, webhook_delivery.state, webhook_delivery.attempts, webhook_delivery.created_at,
        webhook_delivery.due_at, webhook_delivery.last_status, webhook_delivery.last_error,
        webhook_delivery.excerpt, webhook_delivery.ended_at
    FROM webhook_delivery JOIN webhook_event ON webhook_event.id = webhook_delivery.event_id";

/// SQL condition for deliveries that no process attempts and whose time has come.
fn is_due(dialect: Dialect) -> String {
    let now = dialect.now();
    format!("state = 0 AND due_at <= {now} AND (held_until IS NULL OR held_until < {now})")
}

pub(crate) async fn fan_out(sql: &mut dyn Sql, events: &[FanOut]) -> Result<FannedOut> {
    let mut room = room_of(sql, events).await?;
    let (mut done, mut dropped) = (FannedOut::default(), BTreeMap::<WebhookId, i64>::new());
    for event in events {
        if event.webhooks.is_empty() || !take_event(sql, event).await? {
            continue;
        }
        let mut queued = Vec::new();
        for (webhook, message) in &event.webhooks {
            match room.get_mut(webhook) {
                Some(0) => *dropped.entry(*webhook).or_default() += 1,
                Some(left) => {
                    *left -= 1;
                    queued.push((*webhook, message.as_str()));
                }
                // It was disabled or removed since.
                None => {}
            }
        }
        done.queued += queued.len() as u64;
        queue(sql, event, &queued).await?;
    }
    for (webhook, count) in dropped {
        let note = "UPDATE webhook SET dropped = dropped + $1 WHERE id = $2";
        sql.query(note, &[Value::Int(count), Value::Int(webhook.get())]).await?;
        done.dropped += count.unsigned_abs();
    }
    forget(sql, events).await?;
    Ok(done)
}

/// Locks the enabled webhooks of these events, and returns how many more deliveries each may have.
async fn room_of(sql: &mut dyn Sql, events: &[FanOut]) -> Result<BTreeMap<WebhookId, i64>> {
    let mut ids: Vec<WebhookId> =
        events.iter().flat_map(|event| event.webhooks.iter().map(|(id, _)| *id)).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut room = BTreeMap::new();
    let lock = format!(
        "SELECT id FROM webhook WHERE {} AND disabled_at IS NULL ORDER BY id {}",
        sql.dialect().among("id", "$1"),
        sql.dialect().for_update()
    );
    for row in sql.query(&lock, &[Value::numbers(ids.iter().map(|id| id.get()))]).await? {
        let id = row.int(0)?;
        let count = "SELECT count(*) FROM (SELECT id FROM webhook_delivery
                     WHERE webhook_id = $1 AND state = 0 LIMIT $2) AS open_ones";
        let open = sql.number(count, &[Value::Int(id), Value::Int(i64::from(OPEN_MAX))]).await?;
        room.insert(WebhookId::from_stored(id), i64::from(OPEN_MAX) - open.unwrap_or(0));
    }
    Ok(room)
}

/// Writes the body of an event that has no deliveries yet. Returns whether it had none.
async fn take_event(sql: &mut dyn Sql, event: &FanOut) -> Result<bool> {
    let take = format!(
        "UPDATE webhook_event SET payload = $1, fanned_at = {} WHERE id = $2 AND fanned_at IS NULL RETURNING id",
        sql.dialect().now()
    );
    let values = [Value::Text(event.body.clone()), Value::Int(event.event.get())];
    Ok(!sql.query(&take, &values).await?.is_empty())
}

async fn queue(sql: &mut dyn Sql, event: &FanOut, to: &[(WebhookId, &str)]) -> Result<()> {
    let row = |(webhook, message): &(WebhookId, &str)| {
        [Value::Int(webhook.get()), Value::Int(event.event.get()), Value::Text((*message).to_owned())]
    };
    let rows: Vec<_> = to.iter().map(row).collect();
    insert_rows(sql, "INSERT INTO webhook_delivery (webhook_id, event_id, message_id)", &rows, "").await
}

/// Removes the events that no webhook is called for.
async fn forget(sql: &mut dyn Sql, events: &[FanOut]) -> Result<()> {
    let unwanted = events.iter().filter(|event| event.webhooks.is_empty());
    let delete =
        format!("DELETE FROM webhook_event WHERE {} AND fanned_at IS NULL", sql.dialect().among("id", "$1"));
    sql.query(&delete, &[Value::numbers(unwanted.map(|event| event.event.get()))]).await.map(drop)
}

pub(crate) async fn add_test_delivery(
    sql: &mut dyn Sql,
    id: WebhookId,
    message_id: &str,
    body: &str,
) -> Result<Option<Delivery>> {
    if webhook(sql, id).await?.is_none_or(|webhook| webhook.disabled.is_some()) {
        return Ok(None);
    }
    let insert = format!(
        "INSERT INTO webhook_event (kind, payload, fanned_at) VALUES ('{PING}', $1, {}) RETURNING id",
        sql.dialect().now()
    );
    let event = sql.number(&insert, &[Value::Text(body.to_owned())]).await?.ok_or_else(gone)?;
    let insert =
        "INSERT INTO webhook_delivery (webhook_id, event_id, message_id) VALUES ($1, $2, $3) RETURNING id";
    let values = [Value::Int(id.get()), Value::Int(event), Value::Text(message_id.to_owned())];
    let added = sql.number(insert, &values).await?.ok_or_else(gone)?;
    delivery(sql, id, DeliveryId::from_stored(added)).await
}

pub(crate) async fn due_webhooks(sql: &mut dyn Sql) -> Result<Vec<Webhook>> {
    let select = format!(
        "{} WHERE webhook.disabled_at IS NULL
         AND EXISTS (SELECT 1 FROM webhook_delivery WHERE webhook_id = webhook.id AND {}) ORDER BY webhook.id",
        select(sql.dialect()),
        is_due(sql.dialect())
    );
    let mut due: Vec<Webhook> =
        sql.query(&select, &[]).await?.iter().map(webhook_in).collect::<Result<_, _>>()?;
    due.retain(|webhook| webhook.disabled.is_none());
    Ok(due)
}

pub(crate) async fn claim_deliveries(
    sql: &mut dyn Sql,
    most: &[(WebhookId, u32)],
    lease: Duration,
) -> Result<Vec<ClaimedDelivery>> {
    let select = format!(
        "SELECT id FROM webhook_delivery WHERE webhook_id = $1 AND {} ORDER BY due_at LIMIT $2 {}",
        is_due(sql.dialect()),
        sql.dialect().skip_locked()
    );
    let mut ids = Vec::new();
    for (webhook, most) in most {
        for row in sql.query(&select, &[Value::Int(webhook.get()), Value::Int(i64::from(*most))]).await? {
            ids.push(row.int(0)?);
        }
    }
    let ids = Value::numbers(ids);
    let hold = format!(
        "UPDATE webhook_delivery SET held_until = {}, attempts = attempts + 1 WHERE {}",
        sql.dialect().now_plus("$1"),
        sql.dialect().among("id", "$2")
    );
    sql.query(&hold, &[Value::milliseconds(lease), ids.clone()]).await?;
    let read = format!(
        "SELECT webhook_delivery.id, webhook_delivery.webhook_id, webhook_delivery.message_id,
                webhook_delivery.attempts, webhook_event.payload, webhook_delivery.due_at
         FROM webhook_delivery JOIN webhook_event ON webhook_event.id = webhook_delivery.event_id
         WHERE {} ORDER BY webhook_delivery.id",
        sql.dialect().among("webhook_delivery.id", "$1")
    );
    sql.query(&read, &[ids]).await?.iter().map(claimed_in).collect()
}

fn claimed_in(row: &Row) -> Result<ClaimedDelivery> {
    Ok(ClaimedDelivery {
        id: DeliveryId::from_stored(row.int(0)?),
        webhook: WebhookId::from_stored(row.int(1)?),
        message_id: row.text(2)?.to_owned(),
        attempts: u32::try_from(row.int(3)?).unwrap_or(u32::MAX),
        body: row.text(4)?.to_owned(),
        due_at: row.time(5)?,
    })
}

/// Records the end of an attempt, unless another process has claimed the delivery since, or
/// somebody has asked for it again. Returns whether this disabled the webhook.
pub(crate) async fn end_attempt(sql: &mut dyn Sql, end: &AttemptEnd) -> Result<bool> {
    let (state, wait) = match end.next {
        AfterAttempt::Delivered => (DeliveryState::Delivered, Duration::ZERO),
        AfterAttempt::RetryIn(wait) => (DeliveryState::Open, wait),
        AfterAttempt::Dead => (DeliveryState::Dead, Duration::ZERO),
    };
    let ended = if state == DeliveryState::Open { "NULL" } else { sql.dialect().now() };
    let update = format!(
        "UPDATE webhook_delivery SET state = $1, due_at = {}, held_until = NULL, last_status = $3,
                last_error = $4, excerpt = $5, ended_at = {ended}
         WHERE id = $6 AND attempts = $7 AND due_at = $8 AND state = 0 RETURNING id",
        sql.dialect().now_plus("$2")
    );
    let values = [
        Value::Int(state.stored()),
        Value::milliseconds(wait),
        Value::OptInt(end.status.map(i64::from)),
        Value::OptText(end.error.clone()),
        Value::Text(end.excerpt.clone()),
        Value::Int(end.delivery.id.get()),
        Value::Int(i64::from(end.delivery.attempts)),
        Value::Time(end.delivery.due_at),
    ];
    if sql.query(&update, &values).await?.is_empty() {
        // Only a delivery that was asked for again is held without an attempt.
        let free = "UPDATE webhook_delivery SET held_until = NULL WHERE id = $1 AND attempts = 0";
        sql.query(free, &[Value::Int(end.delivery.id.get())]).await?;
        return Ok(false);
    }
    let own = [Value::Int(end.delivery.webhook.get())];
    let health = match end.next {
        AfterAttempt::Delivered => {
            "UPDATE webhook SET failing_since = NULL WHERE id = $1 AND failing_since IS NOT NULL".to_owned()
        }
        AfterAttempt::RetryIn(_) | AfterAttempt::Dead => format!(
            "UPDATE webhook SET failing_since = {} WHERE id = $1 AND failing_since IS NULL",
            sql.dialect().now()
        ),
    };
    sql.query(&health, &own).await?;
    match end.disable {
        Some(why @ Disable::Gone) => disable(sql, end.delivery.webhook, why.reason(), "").await,
        Some(why @ Disable::Failing) => {
            disable(sql, end.delivery.webhook, why.reason(), " AND failing_since IS NOT NULL").await
        }
        None => Ok(false),
    }
}

pub(crate) async fn deliveries(
    sql: &mut dyn Sql,
    webhook: WebhookId,
    before: Option<DeliveryId>,
    most: usize,
) -> Result<Vec<Delivery>> {
    let select = format!(
        "{SELECT_DELIVERY} WHERE webhook_delivery.webhook_id = $1 AND webhook_delivery.id < $2
         ORDER BY webhook_delivery.id DESC LIMIT $3"
    );
    let before = before.map_or(i64::MAX, DeliveryId::get);
    let values = [Value::Int(webhook.get()), Value::Int(before), Value::count(most)];
    // A state that only a later release knows hides its own delivery, and no other.
    let is_known = |row: &&Row| row.int(4).is_ok_and(|state| DeliveryState::from_stored(state).is_some());
    sql.query(&select, &values).await?.iter().filter(is_known).map(delivery_in).collect()
}

async fn delivery(sql: &mut dyn Sql, webhook: WebhookId, id: DeliveryId) -> Result<Option<Delivery>> {
    let select =
        format!("{SELECT_DELIVERY} WHERE webhook_delivery.webhook_id = $1 AND webhook_delivery.id = $2");
    let values = [Value::Int(webhook.get()), Value::Int(id.get())];
    sql.first(&select, &values).await?.as_ref().map(delivery_in).transpose()
}

/// An attempt that is under way keeps its lease, and its end changes nothing else: the delivery is
/// due since another time.
pub(crate) async fn redeliver(
    sql: &mut dyn Sql,
    webhook: WebhookId,
    id: DeliveryId,
) -> Result<Option<Delivery>> {
    let again = format!(
        "UPDATE webhook_delivery SET state = 0, due_at = {}, ended_at = NULL, attempts = 0
         WHERE webhook_id = $1 AND id = $2",
        sql.dialect().now()
    );
    sql.query(&again, &[Value::Int(webhook.get()), Value::Int(id.get())]).await?;
    delivery(sql, webhook, id).await
}

fn delivery_in(row: &Row) -> Result<Delivery> {
    let state = row.int(4)?;
    let unknown = || StoreError::Corrupt(format!("table webhook_delivery: the state {state}"));
    Ok(Delivery {
        id: DeliveryId::from_stored(row.int(0)?),
        webhook: WebhookId::from_stored(row.int(1)?),
        message_id: row.text(2)?.to_owned(),
        kind: row.text(3)?.to_owned(),
        state: DeliveryState::from_stored(state).ok_or_else(unknown)?,
        attempts: u32::try_from(row.int(5)?).unwrap_or(u32::MAX),
        created_at: row.time(6)?,
        due_at: row.time(7)?,
        last_status: row.opt_int(8)?.and_then(|status| u16::try_from(status).ok()),
        last_error: row.opt_text(9)?.map(str::to_owned),
        excerpt: row.opt_text(10)?.map(str::to_owned),
        ended_at: row.opt_time(11)?,
    })
}

pub(crate) async fn webhook_backlog(sql: &mut dyn Sql) -> Result<Backlog> {
    let open = sql.number("SELECT count(*) FROM webhook_delivery WHERE state = 0", &[]).await?;
    let oldest = format!(
        "SELECT min(webhook_delivery.due_at), {} FROM webhook
         JOIN webhook_delivery ON webhook_delivery.webhook_id = webhook.id AND webhook_delivery.state = 0
         WHERE webhook.disabled_at IS NULL",
        sql.dialect().now()
    );
    let overdue = match sql.first(&oldest, &[]).await? {
        Some(row) => {
            row.opt_time(0)?.map(|due| row.time(1).map(|now| now.duration_since(due))).transpose()?
        }
        None => None,
    };
    Ok(Backlog {
        open: open.and_then(|open| u64::try_from(open).ok()).unwrap_or(0),
        overdue: overdue.and_then(|overdue| overdue.try_into().ok()).unwrap_or_default(),
    })
}

/// Records which webhooks have ended with their keys as well.
pub(crate) async fn purge_webhooks(sql: &mut dyn Sql, kept: Duration, most: u32) -> Result<bool> {
    end_with_keys(sql).await?;
    let (cut, now, skip) = (sql.dialect().now_minus(kept), sql.dialect().now(), sql.dialect().skip_locked());
    let statements = [
        format!(
            "UPDATE webhook_delivery SET state = 2, ended_at = {now}, last_error = 'the webhook stayed disabled'
             WHERE id IN (SELECT webhook_delivery.id FROM webhook_delivery
                 JOIN webhook ON webhook.id = webhook_delivery.webhook_id
                 WHERE webhook_delivery.state = 0 AND webhook.disabled_at < {cut} LIMIT $1) RETURNING id"
        ),
        format!(
            "DELETE FROM webhook_delivery WHERE id IN (SELECT id FROM webhook_delivery
                 WHERE state <> 0 AND ended_at < {cut} LIMIT $1 {skip}) RETURNING id"
        ),
        format!(
            "DELETE FROM webhook_event WHERE id IN (SELECT id FROM webhook_event
                 WHERE fanned_at < {cut} AND NOT EXISTS (SELECT 1 FROM webhook_delivery
                     WHERE webhook_delivery.event_id = webhook_event.id) LIMIT $1 {skip}) RETURNING id"
        ),
        format!(
            "DELETE FROM webhook_event WHERE id IN (SELECT id FROM webhook_event
                 WHERE fanned_at IS NULL AND at < {cut} LIMIT $1 {skip}) RETURNING id"
        ),
    ];
    let mut is_more = false;
    for statement in statements {
        let removed = sql.query(&statement, &[Value::Int(i64::from(most))]).await?.len();
        is_more |= removed >= usize::try_from(most).unwrap_or(usize::MAX);
    }
    Ok(is_more)
}
