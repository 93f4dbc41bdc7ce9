//! Events of webhooks: the outbox. Each event is recorded in the transaction that it tells of.
//!
//! Imports record no events: they bring links of another system in, often by the million.

use codes::LinkId;
use links::{
    DomainId, Link, Tag,
    audit::state,
    webhook::{EventId, EventKind, NewWebhookEvent, WebhookEvent},
};
use serde_json::{Value as Json, json};

use super::super::{Row, Sql, Value, insert_rows, places, visits::advance};
use crate::Result;

/// The chore whose position is that of the last events of visits that were passed on.
const CHORE: &str = "pass on events of visits";

/// SQL condition: an enabled webhook is called for the kind of the parameter.
fn is_wanted(kind: &str) -> String {
    format!(
        "EXISTS (SELECT 1 FROM webhook WHERE disabled_at IS NULL
                 AND ',' || kinds || ',' LIKE '%,' || CAST({kind} AS text) || ',%')"
    )
}

/// Returns whether an enabled webhook is called for new links.
pub(crate) async fn wants_creates(sql: &mut dyn Sql) -> Result<bool> {
    is_called_for(sql, EventKind::Created).await
}

/// Returns whether an enabled webhook is called for a kind of event.
pub(in crate::sql) async fn is_called_for(sql: &mut dyn Sql, kind: EventKind) -> Result<bool> {
    let select = format!("SELECT 1 WHERE {}", is_wanted("$1"));
    Ok(!sql.query(&select, &[Value::Text(kind.as_str().to_owned())]).await?.is_empty())
}

/// Records the event of a changed link, if a webhook is called for its kind. `tags` are those
/// before and after the change.
pub(in crate::sql) async fn record_link(
    sql: &mut dyn Sql,
    event: EventKind,
    link: &Link,
    tags: &[Tag],
    data: &Json,
) -> Result<()> {
    let ids = match tags.len() {
        0 => "NULL".to_owned(),
        count => format!(
            "(SELECT string_agg(CAST(id AS text), ',') FROM tag WHERE name IN ({}))",
            places(4, count)
        ),
    };
    let insert = format!(
        "INSERT INTO webhook_event (kind, domain_id, link_id, tags, payload)
         SELECT $1, CAST($2 AS bigint), CAST($3 AS bigint), {ids}, ${} WHERE {}",
        4 + tags.len(),
        is_wanted("$1")
    );
    let mut values = vec![
        Value::Text(event.as_str().to_owned()),
        Value::Int(link.domain().get()),
        Value::Int(link.id.get()),
    ];
    values.extend(tags.iter().map(|tag| Value::Text(tag.to_string())));
    values.push(Value::Text(data.to_string()));
    sql.query(&insert, &values).await.map(drop)
}

/// Records the event of a new link, if a webhook is called for it.
pub(in crate::sql) async fn record_create(sql: &mut dyn Sql, link: &Link, tags: &[Tag]) -> Result<()> {
    record_link(sql, EventKind::Created, link, tags, &created(link, tags)).await
}

/// Records the events of new links, each with its tags and their numbers.
pub(in crate::sql) async fn record_creates(
    sql: &mut dyn Sql,
    links: Vec<(Link, &[Tag], Vec<i64>)>,
) -> Result<()> {
    let event = |(link, tags, numbers): (Link, &[Tag], Vec<i64>)| NewWebhookEvent {
        kind: EventKind::Created.as_str(),
        domain: Some(link.domain()),
        link: Some(link.id),
        tags: numbers,
        data: created(&link, tags).to_string(),
    };
    let events: Vec<NewWebhookEvent> = links.into_iter().map(event).collect();
    add_webhook_events(sql, &events).await
}

fn created(link: &Link, tags: &[Tag]) -> Json {
    let mut data = state(link);
    data["tags"] = json!(tags);
    data
}

pub(crate) async fn pass_on_webhook_events(
    sql: &mut dyn Sql,
    up_to: i64,
    events: &[NewWebhookEvent],
) -> Result<()> {
    if advance(sql, CHORE, up_to).await? { add_webhook_events(sql, events).await } else { Ok(()) }
}

/// Records events in a transaction of the caller, such as the one that stores visits.
pub async fn add_webhook_events(sql: &mut dyn Sql, events: &[NewWebhookEvent]) -> Result<()> {
    let rows: Vec<[Value; 5]> = events.iter().map(row_of).collect();
    let into = "INSERT INTO webhook_event (kind, domain_id, link_id, tags, payload)";
    insert_rows(sql, into, &rows, "").await
}

fn row_of(event: &NewWebhookEvent) -> [Value; 5] {
    let tags: Vec<String> = event.tags.iter().map(ToString::to_string).collect();
    [
        Value::Text(event.kind.to_owned()),
        Value::OptInt(event.domain.map(DomainId::get)),
        Value::OptInt(event.link.map(LinkId::get)),
        Value::OptText((!tags.is_empty()).then(|| tags.join(","))),
        Value::Text(event.data.clone()),
    ]
}

pub(crate) async fn waiting_webhook_events(sql: &mut dyn Sql, most: usize) -> Result<Vec<WebhookEvent>> {
    let select = "SELECT id, kind, domain_id, link_id, tags, payload, at FROM webhook_event
                  WHERE fanned_at IS NULL ORDER BY id LIMIT $1";
    sql.query(select, &[Value::count(most)]).await?.iter().map(event_in).collect()
}

fn event_in(row: &Row) -> Result<WebhookEvent> {
    let tags = row.opt_text(4)?.unwrap_or_default();
    Ok(WebhookEvent {
        id: EventId::from_stored(row.int(0)?),
        kind: row.text(1)?.to_owned(),
        domain: row.opt_int(2)?.map(DomainId::from_stored),
        link: row.opt_int(3)?.map(LinkId::from_stored),
        tags: tags.split(',').filter_map(|tag| tag.parse().ok()).collect(),
        data: row.text(5)?.to_owned(),
        at: row.time(6)?,
    })
}
