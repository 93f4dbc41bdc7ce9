//! The parts that only SQLite's store has, files and their copies; and rows that a test writes
//! itself, because no port does: the size of links, visits, rules of a later release.

use std::time::Duration;

use codes::LinkId;
use harness::Scratch;
use jiff::{SignedDuration, Timestamp};
use links::{
    DomainId, Draft, Filter, Idempotency, LongUrl, NewLink, OrderBy, OrderField, Tag, api_key::ApiKeyId,
};
use numbers::StoreEpoch;
use rusqlite::Connection;
use store::{
    Catalog as _, FullLink, InsertedLink, LinkVisits, Links as _, Store as _, Visible, VisitTotals,
    sqlite::{Snapshot, SqliteStore, attach, open_reader, open_writer},
};

/// Creates a store in a file, and opens a connection to it that has run these statements.
async fn store(fill: &str) -> (Scratch, Connection, SqliteStore) {
    let scratch = Scratch::new().unwrap();
    let path = scratch.path().join("links.db");
    let store = SqliteStore::open(&path).unwrap();
    store.migrate().await.unwrap();
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(fill).unwrap();
    (scratch, connection, store)
}

/// Creates a store with links 1 to `count`; the first one has a hundred long tags.
async fn links(count: i64) -> (Scratch, Connection, SqliteStore) {
    let fill = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
         INSERT INTO link (id, long_url, crawlable, forward_query, created_by)
           SELECT i, 'https://example.com/' || i, 0, 0, 1 FROM n;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
         INSERT INTO tag (id, name) SELECT i, printf('%0250d', i) FROM n;
         INSERT INTO link_tag (tag_id, link_id) SELECT id, 1 FROM tag;"
    );
    store(&fill).await
}

#[tokio::test]
async fn a_link_weighs_what_its_tags_do_and_is_weighed_as_it_is_now() {
    let (_scratch, connection, store) = links(3).await;
    let filter = Filter {
        order: OrderBy { field: OrderField::Id, descending: true },
        per_page: Some(2),
        page: 2,
        ..Filter::default()
    };
    let outline = store.outline(&filter, None).await.unwrap();
    assert_eq!((outline.total, outline.ids), (3, vec![LinkId::from_stored(1)]));

    let ids = [3, 9, 1, 2].map(LinkId::from_stored);
    let bytes = async || {
        let weighed = store.outlines_of(&ids).await.unwrap();
        weighed.iter().map(|entry| (entry.id.get(), entry.bytes)).collect::<Vec<_>>()
    };
    let weighed = bytes().await;
    assert!((25_000..30_000).contains(&weighed[1].1), "{weighed:?}");
    assert_eq!(weighed, [(3, 21), (1, weighed[1].1), (2, 21)]);
    let tag = "INSERT INTO link_tag (tag_id, link_id) VALUES (7, 3)";
    connection.execute(tag, []).unwrap();
    assert_eq!(bytes().await[0], (3, 21 + 250 + 32));
    assert!(store.outlines_of(&[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn links_are_ordered_by_visits_and_those_without_come_as_zero() {
    let (_scratch, connection, store) = links(4).await;
    let seen = "INSERT INTO link_seen (link_id, seen_at, total, bots) VALUES (2, 10, 9, 7), (4, 20, 5, 0), (3, 30, 0, 0)";
    connection.execute(seen, []).unwrap();
    for (field, descending, expected) in [
        (OrderField::Visits, true, [2, 4, 1, 3]),
        (OrderField::Visits, false, [1, 3, 4, 2]),
        (OrderField::NonBotVisits, true, [4, 2, 1, 3]),
        (OrderField::NonBotVisits, false, [1, 3, 2, 4]),
        (OrderField::LastVisit, true, [4, 2, 1, 3]),
        (OrderField::LastVisit, false, [1, 3, 2, 4]),
    ] {
        let mut ids = Vec::new();
        for page in 1..=2 {
            let order = OrderBy { field, descending };
            let filter = Filter { order, per_page: Some(2), page, ..Filter::default() };
            let outline = store.outline(&filter, None).await.unwrap();
            ids.extend(outline.ids.iter().map(|id| id.get()));
        }
        assert_eq!(ids, expected, "{field:?}, descending: {descending}");
    }
}

#[tokio::test]
async fn an_export_reads_few_links_at_a_time_where_they_are_long() {
    let (_scratch, connection, store) = links(1_000).await;
    let exported = async |after: i64| {
        let page = store.export(Some(LinkId::from_stored(after)), 500).await.unwrap();
        page.iter().map(|exported| exported.record.link.id.get()).collect::<Vec<_>>()
    };
    assert_eq!(exported(0).await, (1..=500).collect::<Vec<_>>());
    // About 28 KB each; a page of an export ends at 8 MiB.
    let tags = "INSERT OR IGNORE INTO link_tag (tag_id, link_id) SELECT tag.id, link.id FROM tag, link";
    connection.execute(tags, []).unwrap();
    let first = exported(0).await;
    assert!((250..350).contains(&first.len()), "{}", first.len());
    let last = *first.last().unwrap();
    assert_eq!(exported(last).await[0], last + 1, "the next page follows");
    let long = "UPDATE link SET title = printf('%09000000d', 1) WHERE id IN (901, 902)";
    connection.execute(long, []).unwrap();
    assert_eq!(exported(900).await, [901], "one that is too long is by itself");
}

fn visits(link: i64, total: i64, bots: i64, last: i64) -> LinkVisits {
    LinkVisits { link: LinkId::from_stored(link), total, bots, last, imported: 0 }
}

fn totals_of(link: i64, total: u64, bots: u64, last: Option<i64>) -> (LinkId, VisitTotals) {
    let last = last.map(|last| Timestamp::from_microsecond(last).unwrap());
    (LinkId::from_stored(link), VisitTotals { total, bots, last })
}

#[tokio::test]
async fn visits_are_added_once_and_the_last_one_stays_the_last() {
    let (_scratch, _, store) = store("").await;
    let ids: Vec<LinkId> = (1..=1_200).map(LinkId::from_stored).collect();
    let first: Vec<LinkVisits> = (1..=1_100).map(|link| visits(link, 3, 1, 5_000_000)).collect();
    let stored = async || {
        let mut stored = store.visit_totals(&ids).await.unwrap();
        stored.sort_by_key(|(link, _)| *link);
        stored
    };
    for _ in 0..2 {
        store.add_visits(40, &first).await.unwrap();
        let expected: Vec<_> = (1..=1_100).map(|link| totals_of(link, 3, 1, Some(5_000_000))).collect();
        assert_eq!(stored().await, expected);
    }
    let second = [visits(1, 4, 0, 9_000_999), visits(2, -3, -1, 0), visits(3, 2, 2, 1_000_000)];
    store.add_visits(39, &second).await.unwrap();
    assert_eq!(stored().await[0], totals_of(1, 3, 1, Some(5_000_000)), "39 is before 40");
    store.add_visits(41, &second).await.unwrap();
    let expected =
        [totals_of(1, 7, 1, Some(9_000_000)), totals_of(2, 0, 0, None), totals_of(3, 5, 3, Some(5_000_000))];
    assert_eq!(stored().await[..3], expected);
}

#[tokio::test]
async fn the_visits_of_a_tag_are_those_of_its_visible_links() {
    let fill = r#"INSERT INTO link (id, long_url, crawlable, forward_query, created_by, details) VALUES
            (1, 'a', 0, 0, 1, NULL), (2, 'b', 0, 0, 2, '{"domain":7}'), (3, 'c', 0, 0, 1, '{"domain":7}');
         INSERT INTO tag (id, name) VALUES (1, 'one'), (2, 'two'), (3, 'none');
         INSERT INTO link_tag (tag_id, link_id) VALUES (1, 1), (1, 2), (2, 2), (2, 3)"#;
    let (_scratch, _, store) = store(fill).await;
    store.add_visits(1, &[visits(1, 1, 0, 0), visits(2, 20, 10, 0)]).await.unwrap();
    let tags = ["one", "two", "none", "absent"].map(Tag::from_stored);
    let of = async |of: Visible| {
        let mut found = store.tag_visit_totals(&tags, &of).await.unwrap();
        found.sort_by(|one, other| one.0.cmp(&other.0));
        let numbers = |(tag, totals): (Tag, VisitTotals)| format!("{tag} {} {}", totals.total, totals.bots);
        found.into_iter().map(numbers).collect::<Vec<_>>()
    };
    assert_eq!(of(Visible::default()).await, ["none 0 0", "one 21 10", "two 20 10"]);
    let domain = Visible { domain: Some(DomainId::from_stored(7)), created_by: None };
    assert_eq!(of(domain).await, ["one 20 10", "two 20 10"]);
    let own = Visible { domain: None, created_by: Some(ApiKeyId(1)) };
    assert_eq!(of(own).await, ["one 1 0", "two 0 0"]);
}

#[tokio::test]
async fn a_link_with_a_rule_of_a_later_release_answers_a_repeated_request() {
    let (_scratch, connection, store) = store("").await;
    let draft = Draft {
        long_url: LongUrl::from_stored("https://x.y/"),
        title: None,
        crawlable: false,
        forward_query: true,
        created_by: ApiKeyId(1),
        details: None,
    };
    let lifetime = Duration::from_secs(3_600);
    let request = Idempotency { digest: "a wish".to_owned(), lifetime, fingerprint: None };
    let history = StoreEpoch::new("1").unwrap();
    let ask = async |id: i64| {
        let new = NewLink { id: LinkId::from_stored(id), draft: draft.clone() };
        let link = FullLink { new, code: format!("code{id}") };
        store.insert_full(&history, &link, &[], Some(&request)).await.unwrap()
    };
    assert!(matches!(ask(1).await, InsertedLink::Stored(..)));
    let rules = r#"UPDATE link SET details = '{"rules": [
        {"longUrl": "https://x.y/", "conditions": [{"type": "of-a-later-release"}]}
    ]}'"#;
    connection.execute(rules, []).unwrap();
    assert_eq!(ask(2).await, InsertedLink::Existing(LinkId::from_stored(1)));
}

#[test]
fn a_copy_is_of_one_moment_though_others_write_meanwhile() {
    let folder = Scratch::new().unwrap();
    let (from, to) = (folder.path().join("links.db"), folder.path().join("copy.db"));
    let writer = open_writer(&from).unwrap();
    let filled = "CREATE TABLE row (number INTEGER, text TEXT);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
         INSERT INTO row SELECT i, printf('%0500d', i) FROM n";
    writer.execute_batch(filled).unwrap();
    let mut steps = 0;
    let mut progress = |_, _| {
        steps += 1;
        writer.execute_batch("UPDATE row SET number = number + 1").unwrap();
    };
    let made_at = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1);
    let (snapshot, _) = Snapshot::of(&from, None).unwrap();
    snapshot.copy(&to, Some(made_at), &mut progress).unwrap();
    assert!(steps > 1 && steps < 10, "it began again: {steps}");
    let copy = open_reader(&to).unwrap();
    let found: (i64, i64, i64) = copy
        .query_row("SELECT count(*), min(number), max(number) FROM row", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .unwrap();
    assert_eq!(found, (20_000, 1, 20_000));
    let marked: i64 = copy.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(marked, 60);
}

#[test]
fn both_files_are_of_the_same_moment() {
    let folder = Scratch::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (from, to) = (["links.db", "visits.db"].map(path), ["l.db", "v.db"].map(path));
    let writers = from.each_ref().map(|path| open_writer(path).unwrap());
    for writer in &writers {
        writer.execute_batch("CREATE TABLE waits (n INTEGER); INSERT INTO waits VALUES (1)").unwrap();
    }
    let (links, visits) = Snapshot::of(&from[0], Some(&from[1])).unwrap();
    for writer in &writers {
        writer.execute_batch("DELETE FROM waits").unwrap();
    }
    let visits = visits.unwrap();
    for (snapshot, to) in [(&visits, &to[1]), (&links, &to[0])] {
        snapshot.copy(to, None, &mut |_, _| {}).unwrap();
        let count = "SELECT count(*) FROM waits";
        assert_eq!(open_reader(to).unwrap().query_row(count, [], |row| row.get(0)), Ok(1));
    }
}

#[test]
fn nothing_is_passed_on_between_the_moments_of_the_two_files() {
    let folder = Scratch::new().unwrap();
    let path = folder.path().join("links.db");
    let writer = open_writer(&path).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(Snapshot::of(&path, None).is_err(), "a transaction adds to the links");
    writer.execute_batch("COMMIT").unwrap();
    assert!(Snapshot::of(&path, None).is_ok());
}

#[test]
fn an_attached_file_is_read_and_neither_written_nor_created() {
    let folder = Scratch::new().unwrap();
    let path = folder.path().join("50% of #1?mode=rwc.db");
    let writer = open_writer(&path).unwrap();
    writer.execute_batch("CREATE TABLE one (number INTEGER); INSERT INTO one VALUES (7)").unwrap();
    let other = open_writer(&folder.path().join("other.db")).unwrap();
    attach(&other, "links", &path).unwrap();
    let number: i64 = other.query_row("SELECT number FROM links.one", [], |row| row.get(0)).unwrap();
    assert_eq!(number, 7);
    other.execute("INSERT INTO links.one VALUES (8)", []).unwrap_err();
    let absent = folder.path().join("absent.db");
    attach(&other, "absent", &absent).unwrap_err();
    assert!(!absent.exists());
}
