//! Counters of past days, which leave Postgres for ClickHouse.

use std::{ops::Range, time::Duration};

use codes::LinkId;
use harness::{ClickhouseCluster, Scratch, wait};
use links::DomainId;
use tokio::time::sleep;
use visit_store::{ClickhouseVisits, Columns, Days, Remaining, VisitReader as _, VisitStore};
use visits::{DAY, Outcome, Subject, VisitId, tally::Tally};

use super::{Databases, SOON, client};
use crate::visit_conformance::{
    Visit, always, erasure, noon, register, store_all, store_batch, tally, today, totals,
};

/// Links 5 and 7 have a tag.
const TAGGED: &str = "INSERT INTO tag (id, name) OVERRIDING SYSTEM VALUE VALUES (40, 'one');
     INSERT INTO visit_tag (link_id, tag_id) VALUES (5, 40), (7, 40)";

fn link(link: i64) -> Subject {
    Subject::Link(LinkId::from_stored(link))
}

fn subjects() -> Vec<Subject> {
    let domains = [None, Some(DomainId::from_stored(1))];
    let wide = domains
        .map(|domain| [Subject::All(domain), Subject::Tag(40, domain), Subject::Orphans(None, domain)]);
    [link(5), link(6), link(7)].into_iter().chain(wide.into_iter().flatten()).collect()
}

/// Visits of three links and of none, on nine days up to today.
fn visits(from: i64) -> Vec<Visit> {
    let visit = |number: i64| {
        let (link, tag) = [(0, None), (5, Some(40)), (6, None), (7, Some(40))]
            [usize::try_from(number.rem_euclid(4)).unwrap()];
        Visit {
            outcome: if link == 0 { Outcome::UnknownCode } else { Outcome::Redirected },
            tag,
            domain: number % 3 / 2,
            is_bot: number % 5 == 0,
            visitor: number.unsigned_abs() % 40,
            ..Visit::of(link, noon(i32::try_from(number % 9).unwrap()) + from + number)
        }
    };
    (0..900).map(visit).collect()
}

/// Returns a store with these visits, and its name.
async fn store_with_visits(databases: &mut Databases) -> (ClickhouseVisits, String) {
    let (store, name) = databases.fresh(TAGGED).await;
    store_visits(&store, 0).await;
    (store, name)
}

async fn store_visits(store: &ClickhouseVisits, from: i64) {
    let mut producers = [register(store, 1).await, register(store, 2).await];
    for (number, part) in visits(from).chunks(90).enumerate() {
        store_all(store, &mut producers[number % 2], part).await;
    }
}

/// What is told of a subject: totals by day, and everything of all days.
type Statistics = (Subject, Vec<(Range<i32>, i64, i64)>, Tally);

async fn statistics(store: &dyn VisitStore) -> Vec<Statistics> {
    let mut all = Vec::new();
    for subject in subjects() {
        let days = store.days(subject, always(), Columns::ALL).await.unwrap();
        assert_eq!(store.spans(subject, always(), Columns::ALL).await.unwrap(), days);
        let totals = days.iter().map(|day| (day.days.clone(), day.counters.total, day.counters.bots));
        all.push((subject, totals.collect(), tally(&days)));
    }
    let links = [5, 6, 7].map(LinkId::from_stored);
    let of_links = store.link_totals(&links, always()).await.unwrap();
    for link in links {
        let (total, bots) = totals(store, Subject::Link(link)).await;
        let counted = of_links.get(&link).map_or((0, 0), |totals| (totals.total, totals.bots));
        assert_eq!((i64::try_from(counted.0).unwrap(), i64::try_from(counted.1).unwrap()), (total, bots));
    }
    all
}

/// Transfers until there is nothing left to transfer.
async fn transfer(store: &dyn VisitStore) {
    let rest = async || {
        while store.merge().await.unwrap() == Remaining::Something {}
        store.merge().await.unwrap() == Remaining::Nothing
    };
    wait::until(SOON, "all is transferred", rest).await.unwrap();
}

/// Returns how many rows of past days Postgres has.
async fn past_rows_in_postgres(databases: &Databases, name: &str) -> i64 {
    let past = format!("SELECT count(*) FROM visit_day WHERE day < {}", today().get() - 1);
    client(&databases.postgres_url(name)).await.query_one(&past, &[]).await.unwrap().get(0)
}

async fn rows_in_clickhouse(databases: &Databases, name: &str, condition: &str) -> String {
    databases.sql(&format!("SELECT count() FROM {name}.visit_day WHERE {condition}")).await
}

async fn past_days_leave_and_add_up(databases: &mut Databases) {
    let (store, name) = store_with_visits(databases).await;
    let before = statistics(&store).await;
    assert!(past_rows_in_postgres(databases, &name).await > 0);
    transfer(&store).await;
    assert_eq!(statistics(&store).await, before);
    assert_eq!(past_rows_in_postgres(databases, &name).await, 0);
    assert_ne!(rows_in_clickhouse(databases, &name, "1").await, "0");
    assert!(store.oldest_open().await.unwrap() < Duration::from_hours(48));
    let part = Days { first: today().minus(6), end: today().minus(3) };
    let of_part: i64 =
        store.days(link(5), part, Columns::ALL).await.unwrap().iter().map(|day| day.counters.total).sum();
    assert_eq!(of_part, 75, "three days of nine");
    let alone = databases.open_at(&name, "127.0.0.1:1".parse().unwrap());
    let latest = Days { first: today().minus(1), end: today().next() };
    let of_latest = alone.days(link(5), latest, Columns::ALL).await.unwrap();
    assert_eq!(of_latest, store.days(link(5), latest, Columns::ALL).await.unwrap());
    alone.days(link(5), part, Columns::ALL).await.unwrap_err();

    // They come late, and leave in turn.
    store_visits(&store, 1_000).await;
    let twice = statistics(&store).await;
    let total = |all: &[Statistics]| all[0].1.iter().map(|day| day.1).sum::<i64>();
    assert_eq!(total(&twice), 2 * total(&before));
    transfer(&store).await;
    assert_eq!(statistics(&store).await, twice);
    assert_eq!(past_rows_in_postgres(databases, &name).await, 0);
}

/// Collects rows for a transfer, and sends them without being able to note that they are there.
async fn interrupt_transfer(databases: &Databases, name: &str, store: &ClickhouseVisits) {
    assert_eq!(store.merge().await.unwrap(), Remaining::Something);
    let mut client = client(&databases.postgres_url(name)).await;
    // It has the number that comes next.
    client.execute("UPDATE visit_state SET transfer = transferred + 1", &[]).await.unwrap();
    let transaction = client.transaction().await.unwrap();
    transaction.execute("SELECT 1 FROM visit_state FOR UPDATE", &[]).await.unwrap();
    store.merge().await.unwrap_err();
    assert_ne!(rows_in_clickhouse(databases, name, "1").await, "0", "it has been sent");
    assert!(past_rows_in_postgres(databases, name).await > 0);
}

async fn a_transfer_that_was_sent_but_not_noted_counts_once(databases: &mut Databases) {
    let (store, name) = store_with_visits(databases).await;
    let before = statistics(&store).await;
    interrupt_transfer(databases, &name, &store).await;
    assert_eq!(statistics(&store).await, before, "it is in both databases");
    let next = databases.open(&name);
    transfer(&next).await;
    assert_eq!(statistics(&next).await, before);
    assert_eq!(past_rows_in_postgres(databases, &name).await, 0);
    // A process that stood still sends it once more, when the server has forgotten its block.
    let again = format!("INSERT INTO {name}.visit_day SELECT * FROM {name}.visit_day ORDER BY subject DESC");
    databases.sql(&again).await;
    assert_eq!(statistics(&next).await, before);
}

/// A link's visits are deleted while they are on their way, and when they are there.
async fn deleted_visits_do_not_come_back(databases: &mut Databases) {
    let (store, name) = store_with_visits(databases).await;
    let (all, tag) = (totals(&store, Subject::All(None)).await, totals(&store, Subject::Tag(40, None)).await);
    interrupt_transfer(databases, &name, &store).await;
    let mut left = (all, tag);
    for (number, deleted) in [5, 7].into_iter().enumerate() {
        let (total, bots) = totals(&store, link(deleted)).await;
        let removed = store.delete(link(deleted), VisitId::floor(noon(-1))).await.unwrap();
        assert_eq!(i64::try_from(removed).unwrap(), total);
        left = ((left.0.0 - total, left.0.1 - bots), (left.1.0 - total, left.1.1 - bots));
        for _ in 0..2 {
            assert_eq!(totals(&store, link(deleted)).await, (0, 0));
            let wide = [Subject::All(None), Subject::Tag(40, None)];
            let [all, tag] = [totals(&store, wide[0]).await, totals(&store, wide[1]).await];
            assert_eq!((all, tag), left, "deletion {number}");
            transfer(&store).await;
        }
    }
    assert_eq!(past_rows_in_postgres(databases, &name).await, 0);
    // Visits after the deletion count.
    let mut producer = register(&store, 3).await;
    store_all(&store, &mut producer, &[Visit::of(5, noon(4) + 7_000)]).await;
    for _ in 0..2 {
        assert_eq!(totals(&store, link(5)).await, (1, 0));
        transfer(&store).await;
    }
    let orphans = totals(&store, Subject::Orphans(None, None)).await.0;
    let deleted = store.delete(Subject::Orphans(None, None), VisitId::floor(noon(-1))).await.unwrap();
    assert_eq!(i64::try_from(deleted).unwrap(), orphans);
    while store.delete_rows().await.unwrap().is_some() {}
    assert_eq!(rows_in_clickhouse(databases, &name, "kind = 3 OR (kind = 0 AND subject = 7)").await, "0");
    assert_eq!(rows_in_clickhouse(databases, &name, "kind = 0 AND subject = 5").await, "1");
    assert_eq!(totals(&store, Subject::Orphans(None, None)).await, (0, 0));
    assert_eq!(totals(&store, link(5)).await, (1, 0));
    statistics(&store).await;
}

async fn tags_follow_what_was_transferred(databases: &mut Databases) {
    let (store, name) = store_with_visits(databases).await;
    transfer(&store).await;
    let client = client(&databases.postgres_url(&name)).await;
    let follow = async |statements: &str| {
        client.batch_execute(statements).await.unwrap();
        while store.follow_tags().await.unwrap() {}
    };
    follow(
        "INSERT INTO link_tag (link_id, tag_id) VALUES (6, 40), (7, 40);
         INSERT INTO tag_change (link_id) VALUES (5), (6), (7)",
    )
    .await;
    let of_links = [totals(&store, link(6)).await, totals(&store, link(7)).await];
    let expected = (of_links[0].0 + of_links[1].0, of_links[0].1 + of_links[1].1);
    for _ in 0..2 {
        assert_eq!(totals(&store, Subject::Tag(40, None)).await, expected);
        transfer(&store).await;
    }
    follow("INSERT INTO tag_gone (tag_id) VALUES (40); DELETE FROM tag WHERE id = 40").await;
    let is_gone = async || rows_in_clickhouse(databases, &name, "kind = 1").await == "0";
    wait::until(SOON, "counters of the tag are deleted", is_gone).await.unwrap();
}

/// What a copy of Postgres knows of transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Nothing,
    One,
    OneUnderWay,
}

/// Postgres is put back from a copy that is older than some transfers, or that has one under way.
async fn transfers_that_postgres_has_forgotten_do_not_count(databases: &mut Databases) {
    for known in [Known::Nothing, Known::One, Known::OneUnderWay] {
        let (store, name) = store_with_visits(databases).await;
        let client = client(&databases.postgres_url(&name)).await;
        if known == Known::One {
            transfer(&store).await;
            store_visits(&store, 1_000).await;
        }
        let before = statistics(&store).await;
        if known == Known::OneUnderWay {
            interrupt_transfer(databases, &name, &store).await;
        }
        let copy = "CREATE TABLE kept_day AS TABLE visit_day; CREATE TABLE kept_era AS TABLE visit_era;
             CREATE TABLE kept_state AS TABLE visit_state";
        client.batch_execute(copy).await.unwrap();
        transfer(&store).await;
        // As a server that was started with it would find it.
        let put_back = "TRUNCATE visit_day, visit_era, visit_state;
             INSERT INTO visit_day SELECT * FROM kept_day; INSERT INTO visit_state SELECT * FROM kept_state;
             INSERT INTO visit_era SELECT era, 'another server', until FROM kept_era";
        client.batch_execute(put_back).await.unwrap();
        assert_eq!(statistics(&store).await, before);
        transfer(&store).await;
        assert_eq!(statistics(&store).await, before, "{known:?}");
        assert_eq!(past_rows_in_postgres(databases, &name).await, 0);
        // Transfers of both eras count.
        store_visits(&store, 2_000).await;
        let twice = statistics(&store).await;
        transfer(&store).await;
        assert_eq!(statistics(&store).await, twice);
    }
}

async fn nothing_leaves_within_an_hour_of_the_first_start(databases: &mut Databases) {
    let (store, name) = store_with_visits(databases).await;
    let client = client(&databases.postgres_url(&name)).await;
    client.execute("UPDATE visit_state SET transfers_from = NULL", &[]).await.unwrap();
    for _ in 0..2 {
        assert_eq!(store.merge().await.unwrap(), Remaining::Nothing);
        assert_eq!(rows_in_clickhouse(databases, &name, "1").await, "0");
    }
    let hour_ago = "UPDATE visit_state SET transfers_from = transfers_from - interval '1 hour'";
    client.execute(hour_ago, &[]).await.unwrap();
    assert_eq!(store.merge().await.unwrap(), Remaining::Something);
}

/// Visits of days whose counters are in ClickHouse are erased.
async fn transferred_visits_are_erased(databases: &mut Databases) {
    let (store, name) = store_with_visits(databases).await;
    let producer = register(&store, 3).await;
    let old = [Visit { visitor: 4, ..Visit::of(5, noon(6) + 5_000) }];
    let batch = erasure::with_addresses(&store, &producer, &old).await;
    store_batch(&store, &producer, &batch, store.changes(0).await.unwrap().version).await.unwrap();
    transfer(&store).await;
    let before = statistics(&store).await;
    let erasure = erasure::erasure("2001:db8:1:2::/64", noon(0));
    let id = store.erase(&erasure).await.unwrap().unwrap();
    assert_eq!(erasure::finish(&store, id).await.0, 1);
    let rows = format!("SELECT count() FROM {name}.visit WHERE link_id = 5");
    assert_eq!(databases.sql(&rows).await, (totals(&store, link(5)).await.0 - 1).to_string());
    transfer(&store).await;
    let totals = |all: &[Statistics]| all.iter().map(|(_, days, _)| days.clone()).collect::<Vec<_>>();
    assert_eq!(totals(&statistics(&store).await), totals(&before), "it stays counted");
}

/// Rows of transfers of 400 days ago, and rows of that age that were transferred lately.
async fn old_counters_go_with_their_partitions(databases: &mut Databases) {
    let (store, name) = store_with_visits(databases).await;
    transfer(&store).await;
    let before = statistics(&store).await;
    let total = |all: &[Statistics]| all[0].1.iter().map(|day| day.1).sum::<i64>();
    let (all, old) = (rows_in_clickhouse(databases, &name, "1").await, "day < toInt32(today()) - 300");
    for transferred in [400 * DAY, 0] {
        let copy = format!(
            "INSERT INTO {name}.visit_day
             SELECT kind, subject, part, day - 400, era, transfer - {transferred}, total, bots, quarters, dimensions,
                    visitors, addresses
             FROM {name}.visit_day WHERE day >= toInt32(today()) - 300"
        );
        databases.sql(&copy).await;
    }
    assert!(total(&statistics(&store).await) > total(&before));
    let from = today().minus(200).month().first_day();
    assert_eq!(store.remove_old_counters(from).await.unwrap(), Remaining::Nothing);
    assert_eq!(statistics(&store).await, before);
    assert_eq!(rows_in_clickhouse(databases, &name, old).await, all, "until their partition is old");
}

pub(super) async fn counters_are_transferred(databases: &mut Databases) {
    past_days_leave_and_add_up(databases).await;
    a_transfer_that_was_sent_but_not_noted_counts_once(databases).await;
    deleted_visits_do_not_come_back(databases).await;
    tags_follow_what_was_transferred(databases).await;
    transfers_that_postgres_has_forgotten_do_not_count(databases).await;
    nothing_leaves_within_an_hour_of_the_first_start(databases).await;
    transferred_visits_are_erased(databases).await;
    old_counters_go_with_their_partitions(databases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_killed_while_counters_are_transferred_loses_none() {
    let scratch = Scratch::new().unwrap();
    let mut cluster = ClickhouseCluster::start(&scratch, 2).await.unwrap();
    let mut databases = Databases::new(cluster.url("DATABASE"), cluster.replicas()[0].addr()).await;
    let (store, name) = store_with_visits(&mut databases).await;
    let before = statistics(&store).await;
    let kill = async {
        sleep(Duration::from_millis(20)).await;
        cluster.replicas_mut()[0].process_mut().kill_now().unwrap();
    };
    let send = async { while matches!(store.merge().await, Ok(Remaining::Something)) {} };
    tokio::join!(send, kill);
    assert_eq!(statistics(&store).await, before, "one replica answers");
    assert!(
        past_rows_in_postgres(&databases, &name).await > 0,
        "Postgres keeps what one replica alone may have"
    );
    cluster.replicas_mut()[0].restart().await.unwrap();
    transfer(&store).await;
    assert_eq!(past_rows_in_postgres(&databases, &name).await, 0);
    assert_eq!(statistics(&store).await, before);
    // Each has all.
    let all = format!("SELECT count() FROM {name}.visit_day");
    let [one, other] = [0, 1].map(|replica| cluster.replicas()[replica].query(&all));
    assert_eq!(one.await.unwrap(), other.await.unwrap());
}
