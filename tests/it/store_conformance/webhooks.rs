//! Webhooks: events are recorded with the change that they tell of, and each becomes deliveries
//! once.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use links::{
    DetailsEdit, DomainId, Edit, PasswordHash, Precondition, Tag,
    api_key::ApiKeyId,
    webhook::{
        Delivery, DeliveryState, EventKind, NewWebhook, NewWebhookEvent, OPEN_MAX, StoredSecret,
        Subscription, Webhook, WebhookEdit, WebhookEvent, WebhookId,
    },
};
use store::{AfterAttempt, AttemptEnd, ClaimedDelivery, Disable, FanOut, FannedOut, InsertedLink, Store};

use super::{custom_link, full_link, new_link, slugs::with_slug};

const BY: ApiKeyId = ApiKeyId(7);
const LEASE: Duration = Duration::from_secs(600);

fn new_webhook(kinds: &[&str], tag: Option<&str>) -> NewWebhook {
    let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    NewWebhook {
        url: "https://a.test/token".to_owned(),
        secret: StoredSecret::new("whsec_one"),
        subscription: Subscription { kinds, domain: Some(DomainId::DEFAULT), tag: None, link: None },
        tag: tag.map(|tag| Tag::parse(tag).unwrap()),
        description: None,
    }
}

async fn add(store: &dyn Store, kinds: &[&str]) -> Webhook {
    let added = store.add_webhook(&new_webhook(kinds, None), 100, BY).await.unwrap();
    // The poll tells Postgres whether creates have events.
    store.poll_settings(None).await.unwrap();
    added.unwrap()
}

async fn remove(store: &dyn Store, webhook: &Webhook) {
    assert!(store.remove_webhook(webhook.id, BY).await.unwrap());
    store.poll_settings(None).await.unwrap();
}

async fn waiting(store: &dyn Store) -> Vec<WebhookEvent> {
    store.waiting_webhook_events(1_000).await.unwrap()
}

fn to(event: &WebhookEvent, webhooks: &[&Webhook]) -> FanOut {
    let webhooks = webhooks.iter().map(|webhook| (webhook.id, format!("msg_{}", webhook.id))).collect();
    FanOut { event: event.id, body: "{\"a\":1}".to_owned(), webhooks }
}

pub(super) async fn webhooks_are_kept_with_a_version_of_the_settings(store: &dyn Store) {
    let before = store.poll_settings(None).await.unwrap().settings.unwrap().version;
    let added =
        store.add_webhook(&new_webhook(&["link.created"], Some("hooked")), 1, BY).await.unwrap().unwrap();
    assert_eq!(added.tag, Some(Tag::from_stored("hooked")));
    assert_eq!(store.add_webhook(&new_webhook(&["link.created"], None), 1, BY).await.unwrap(), None);
    let settings = store.poll_settings(Some(&before)).await.unwrap().settings.unwrap();
    assert_eq!(settings.webhooks, std::slice::from_ref(&added.subscription));

    let rotated =
        store.rotate_webhook(added.id, &StoredSecret::new("whsec_two"), LEASE, BY).await.unwrap().unwrap();
    let (former, until) = rotated.former.unwrap();
    assert_eq!((former, rotated.secret), (added.secret, StoredSecret::new("whsec_two")));
    assert!(until > added.created_at);

    let edit = WebhookEdit {
        kinds: Some(vec!["link.deleted".to_owned()]),
        description: Some(Some("d".to_owned())),
        enabled: Some(false),
        ..WebhookEdit::default()
    };
    let edited = store.edit_webhook(added.id, &edit, BY).await.unwrap().unwrap();
    assert_eq!((edited.url, edited.description.as_deref()), (added.url, Some("d")));
    assert!(edited.disabled.is_some() && edited.version == 2);
    assert_eq!(store.poll_settings(None).await.unwrap().settings.unwrap().webhooks, []);
    assert_eq!(store.webhooks().await.unwrap().len(), 1);
    assert!(store.remove_webhook(added.id, BY).await.unwrap());
    assert!(!store.remove_webhook(added.id, BY).await.unwrap());
    assert_eq!(store.webhook(added.id).await.unwrap(), None);
    let noted = store.audit_entries(&::links::audit::EntryFilter::default(), 4).await.unwrap();
    let noted: Vec<&str> = noted.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(noted, ["remove-webhook", "edit-webhook", "rotate-webhook", "create-webhook"]);
}

pub(super) async fn a_change_of_a_link_records_an_event_while_a_webhook_is_called_for_it(store: &dyn Store) {
    let history = store.epoch().await.unwrap();
    store.insert(&history, &[new_link(70_000, "https://x.y/")]).await.unwrap();
    assert_eq!(waiting(store).await, []);

    let kinds = ["link.created", "link.updated", "link.deleted", "link.restored", "link.blocked"];
    let webhook = add(store, &kinds).await;
    let slug = with_slug("SLUGB9", new_link(70_009, "https://x.y/").id, "https://x.y/");
    assert_eq!(store.insert_slugs(&[slug]).await.unwrap(), [None], "an event is to be recorded");
    let batch: Vec<_> = [70_002, 70_001, 70_000].map(|number| new_link(number, "https://x.y/")).into();
    let inserted = store.insert(&history, &batch).await.unwrap();
    assert!(matches!(
        inserted[..],
        [store::Inserted::Stored(_), store::Inserted::Stored(_), store::Inserted::Taken]
    ));
    let tags = [Tag::from_stored("hooked-1"), Tag::from_stored("hooked-2")];
    let full = full_link(70_003, "https://x.y/");
    let stored = store.insert_full(&history, &full, &tags, None).await.unwrap();
    assert!(matches!(stored, InsertedLink::Stored(..)), "{stored:?}");
    let named = custom_link(store, DomainId::DEFAULT, "hooked/slug", "https://x.y/").await;
    store.insert_with_slug(&named, &[], None).await.unwrap();

    let (id, any) = (full.new.id, Precondition::default());
    let details = DetailsEdit { password: Some(PasswordHash::of("hush").ok()), ..DetailsEdit::default() };
    let (title, one) = (Some(Some("T".to_owned())), Some(vec![tags[0].clone()]));
    let retitle = Edit { title, tags: one, details, ..Edit::default() };
    store.edit(id, &retitle, BY).await.unwrap().unwrap();
    store.delete(id, &any, BY).await.unwrap().unwrap();
    store.restore(id, &any, named.keyspaces, BY).await.unwrap().unwrap();
    let block = |reason: Option<&str>| Edit { block: Some(reason.map(str::to_owned)), ..Edit::default() };
    store.edit(id, &block(Some("phishing")), BY).await.unwrap().unwrap();
    store.edit(id, &block(None), BY).await.unwrap().unwrap();

    let events = waiting(store).await;
    let told: Vec<(&str, usize)> = events.iter().map(|event| (&*event.kind, event.tags.len())).collect();
    let expected = [
        ("link.created", 0),
        ("link.created", 0),
        ("link.created", 2),
        ("link.created", 0),
        ("link.updated", 2),
        ("link.deleted", 1),
        ("link.restored", 1),
        ("link.blocked", 1),
    ];
    assert_eq!(told, expected, "no event of the unblocking, which no webhook is called for");
    assert!(
        events[4..].iter().all(|event| event.link == Some(id) && event.domain == Some(DomainId::DEFAULT))
    );
    assert!(events[4].data.contains("\"changed\"") && events[5].data.contains("hooked-1"), "{events:?}");
    assert!(events[4].data.contains("hasPassword") && !events[4].data.contains("argon2"), "{events:?}");
    assert_eq!(events[3].slug().as_deref(), Some("hooked/slug"));

    let forgotten: Vec<FanOut> = events.iter().map(|event| to(event, &[])).collect();
    assert_eq!(store.fan_out(&forgotten).await.unwrap(), FannedOut::default());
    assert_eq!(waiting(store).await, []);
    remove(store, &webhook).await;
    store.insert(&history, &[new_link(70_005, "https://x.y/")]).await.unwrap();
    store.delete(id, &any, BY).await.unwrap().unwrap();
    assert_eq!(waiting(store).await, []);
}

async fn record(store: &dyn Store, count: usize) -> Vec<WebhookEvent> {
    let event = NewWebhookEvent {
        kind: EventKind::Created.as_str(),
        domain: Some(DomainId::DEFAULT),
        link: None,
        tags: vec![3, 4],
        data: "{}".to_owned(),
    };
    static UP_TO: AtomicI64 = AtomicI64::new(1);
    let (up_to, events) = (UP_TO.fetch_add(1, Ordering::Relaxed), vec![event; count]);
    for _ in 0..2 {
        // For the second time after a crash, before the visits' file has forgotten them.
        store.pass_on_webhook_events(up_to, &events).await.unwrap();
    }
    waiting(store).await
}

fn end(claimed: &ClaimedDelivery, next: AfterAttempt, disable: Option<Disable>) -> AttemptEnd {
    AttemptEnd {
        delivery: claimed.clone(),
        status: Some(500),
        error: Some("expected 2xx".to_owned()),
        excerpt: "oops".to_owned(),
        next,
        disable,
    }
}

pub(super) async fn a_delivery_is_attempted_by_one_process_at_a_time(store: &dyn Store) {
    let (one, other) = (add(store, &["link.created"]).await, add(store, &["link.created"]).await);
    let events = record(store, 3).await;
    assert_eq!((events.len(), &events[0].tags), (3, &vec![3, 4]));
    let plans: Vec<FanOut> = events.iter().map(|event| to(event, &[&one, &other])).collect();
    assert_eq!(store.fan_out(&plans).await.unwrap(), FannedOut { queued: 6, dropped: 0 });
    assert_eq!(
        store.fan_out(&plans).await.unwrap(),
        FannedOut::default(),
        "each event becomes deliveries once"
    );
    assert_eq!(store.due_webhooks().await.unwrap().len(), 2);
    assert_eq!(store.webhook_backlog().await.unwrap().open, 6);

    let claimed = store.claim_deliveries(&[(one.id, 2), (other.id, 1)], LEASE).await.unwrap();
    let of_one: Vec<&ClaimedDelivery> = claimed.iter().filter(|claimed| claimed.webhook == one.id).collect();
    assert_eq!((claimed.len(), of_one.len()), (3, 2));
    assert_eq!((&*claimed[0].body, claimed[0].attempts), ("{\"a\":1}", 1));
    let rest = store.claim_deliveries(&[(one.id, 9)], Duration::ZERO).await.unwrap();
    assert_eq!(rest.len(), 1, "the others are held");
    tokio::time::sleep(Duration::from_millis(5)).await;
    let taken_over = store.claim_deliveries(&[(one.id, 9)], LEASE).await.unwrap();
    assert_eq!((taken_over[0].id, taken_over[0].attempts), (rest[0].id, 2), "a lease has ended");

    store.end_attempt(&end(&rest[0], AfterAttempt::Delivered, None)).await.unwrap();
    let shown = async |claimed: &ClaimedDelivery| shown(store, claimed).await;
    assert_eq!(shown(&rest[0]).await.state, DeliveryState::Open, "the former holder is not heard");
    store.end_attempt(&end(&taken_over[0], AfterAttempt::RetryIn(LEASE), None)).await.unwrap();
    let retried = shown(&taken_over[0]).await;
    assert_eq!((retried.state, retried.last_status, retried.attempts), (DeliveryState::Open, Some(500), 2));
    assert_eq!(
        (retried.last_error.as_deref(), retried.excerpt.as_deref()),
        (Some("expected 2xx"), Some("oops"))
    );
    assert!(retried.due_at > retried.created_at);
    assert!(store.webhook(one.id).await.unwrap().unwrap().failing_since.is_some());
    store.end_attempt(&end(of_one[0], AfterAttempt::Delivered, None)).await.unwrap();
    assert_eq!(store.webhook(one.id).await.unwrap().unwrap().failing_since, None);

    let late = end(of_one[1], AfterAttempt::Dead, Some(Disable::Gone));
    assert!(store.end_attempt(&late).await.unwrap(), "it disables the webhook");
    assert!(!store.end_attempt(&late).await.unwrap());
    let gone = store.webhook(one.id).await.unwrap().unwrap();
    assert!(gone.disabled.unwrap().reason.contains("410"));
    assert_eq!(
        store.audit_entries(&::links::audit::EntryFilter::default(), 1).await.unwrap()[0].action,
        "disable-webhook"
    );
    let due = store.due_webhooks().await.unwrap();
    assert_eq!(due.iter().map(|webhook| webhook.id).collect::<Vec<_>>(), [other.id]);
    assert_eq!(store.add_test_delivery(one.id, "msg_t", "{}").await.unwrap(), None);

    deliver_again(store, of_one[1], other.id).await;
    remove(store, &one).await;
    remove(store, &other).await;
}

/// Delivers anew what was given up of a webhook that was disabled.
async fn deliver_again(store: &dyn Store, dead: &ClaimedDelivery, other: WebhookId) {
    store
        .edit_webhook(dead.webhook, &WebhookEdit { enabled: Some(true), ..WebhookEdit::default() }, BY)
        .await
        .unwrap();
    let again = store.redeliver(dead.webhook, dead.id).await.unwrap().unwrap();
    assert_eq!((again.state, again.attempts), (DeliveryState::Open, 0));
    // It is asked for again while an attempt is under way, which then gives it up.
    let held = store.claim_deliveries(&[(dead.webhook, 1)], LEASE).await.unwrap();
    assert_eq!((held[0].id, held[0].attempts), (again.id, 1));
    tokio::time::sleep(Duration::from_millis(5)).await;
    store.redeliver(dead.webhook, again.id).await.unwrap();
    let next = async || store.claim_deliveries(&[(dead.webhook, 1)], LEASE).await.unwrap();
    assert_eq!(next().await, [], "the attempt is under way");
    store.end_attempt(&end(&held[0], AfterAttempt::Dead, None)).await.unwrap();
    let open = shown(store, &held[0]).await;
    assert_eq!((open.state, open.attempts), (DeliveryState::Open, 0), "it is due as asked");
    let asked_for = next().await;
    assert_eq!((asked_for[0].id, asked_for[0].attempts), (again.id, 1));
    store.end_attempt(&end(&held[0], AfterAttempt::Delivered, None)).await.unwrap();
    assert_eq!(shown(store, &held[0]).await.state, DeliveryState::Open, "the former holder is not heard");
    assert_eq!(next().await, [], "nor does it end the other's lease");
    assert_eq!(store.redeliver(other, dead.id).await.unwrap(), None, "it is another webhook's");
    let test = store.add_test_delivery(dead.webhook, "msg_t", "{}").await.unwrap().unwrap();
    assert_eq!((&*test.kind, &*test.message_id), ("ping", "msg_t"));
    let before = store.deliveries(dead.webhook, Some(test.id), 10).await.unwrap();
    assert!(before.iter().all(|delivery| delivery.id < test.id) && before.len() == 3);
}

async fn shown(store: &dyn Store, claimed: &ClaimedDelivery) -> Delivery {
    let all = store.deliveries(claimed.webhook, None, 10).await.unwrap();
    all.into_iter().find(|delivery| delivery.id == claimed.id).unwrap()
}

pub(super) async fn further_deliveries_are_dropped_and_old_ones_removed(store: &dyn Store) {
    while store.purge_webhooks(Duration::ZERO, 1_000).await.unwrap() {}
    assert_eq!(store.webhook_backlog().await.unwrap().open, 0);
    let webhook = add(store, &["link.created"]).await;
    let many = vec![&webhook; 4_000];
    let events = record(store, 3).await;
    let mut total = FannedOut::default();
    for event in &events {
        let done = store.fan_out(&[to(event, &many)]).await.unwrap();
        total = FannedOut { queued: total.queued + done.queued, dropped: total.dropped + done.dropped };
    }
    let most = u64::from(OPEN_MAX);
    assert_eq!(total, FannedOut { queued: most, dropped: 12_000 - most });
    assert_eq!(store.webhook(webhook.id).await.unwrap().unwrap().dropped, 12_000 - most);
    assert_eq!(store.webhook_backlog().await.unwrap().open, most);

    assert!(!store.purge_webhooks(LEASE, 1_000).await.unwrap(), "nothing is that old");
    remove(store, &webhook).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let mut steps = 0;
    while store.purge_webhooks(Duration::ZERO, 4_000).await.unwrap() {
        steps += 1;
    }
    assert_eq!(steps, 2, "in steps of 4,000");
    assert_eq!(store.deliveries(webhook.id, None, 10).await.unwrap(), []);
}
