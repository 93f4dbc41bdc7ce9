//! Lists by a searched text and by visits: the same links in the same order as if all were read.

use std::time::Duration;

use codes::LinkId;
use harness::{Postgres, wait};
use jiff::Timestamp;
use links::{
    DomainId, Edit, Filter, LongUrl, NewLink, OrderBy, OrderField, PER_PAGE_MAX, Precondition, Tag, TagsMode,
    api_key::ApiKeyId, search_key,
};
use store::{Indexed, Inserted, LinkIndex, LinkVisits, Store};
use tokio::time::sleep;

use super::{import, new_link, old_item};

/// The `held_for` of an index step, longer than any step takes here.
const HELD_FOR: Duration = Duration::from_secs(3);
/// What all links here contain, and no others.
const HERE: &str = "lists.example";

fn link(number: u64, path: &str, title: &str) -> NewLink {
    let mut link = new_link(number, &format!("https://{HERE}/{path}"));
    link.draft.title = Some(title.to_owned());
    link
}

fn searched(text: &str) -> Filter {
    Filter { search: Some(text.to_owned()), sees_all: true, ..Filter::default() }
}

/// Returns the ids of a page, and the total.
async fn page(store: &dyn Store, filter: &Filter) -> (Vec<LinkId>, u64) {
    let outline = store.outline(filter, None).await.unwrap();
    (outline.ids, outline.total)
}

/// What is searched for.
const WANTED: [&str; 24] = [
    HERE,
    "strasse",
    "STRAßE",
    "ü-dorf",
    "dorf",
    "%",
    "50%",
    "0%_o",
    "_",
    "\\",
    "k\\s",
    "οδος",
    "привіт",
    "світе",
    "日本",
    "短",
    "old title",
    "new title",
    "titl",
    "sale",
    "x\ny",
    "/plain",
    "imported",
    "nowhere-at-all",
];

/// Checks that each search finds the known links that contain the text, in every kind of list.
async fn check(store: &dyn Store, known: &[(LinkId, String)], when: &str) {
    for text in WANTED {
        let has = |(_, texts): &&(LinkId, String)| search_key(texts).contains(&*search_key(text));
        let mut expected: Vec<LinkId> = known.iter().filter(has).map(|(id, _)| *id).collect();
        // Others contain short texts too.
        let here = |ids: Vec<LinkId>| {
            let mut ids: Vec<_> =
                ids.into_iter().filter(|id| known.iter().any(|(one, _)| one == id)).collect();
            ids.sort_unstable();
            ids
        };
        expected.sort_unstable();
        let (found, total) = page(store, &searched(text)).await;
        assert!(total >= expected.len() as u64, "{when}: {text}");
        assert_eq!(here(found), expected, "{when}: {text}");
        let by_some = Filter { sees_all: false, ..searched(text) };
        assert_eq!(here(page(store, &by_some).await.0), expected, "{when}: {text}, some links seen");
        // A list whose links need not all be counted looks among the newest first.
        let counted = Filter { count_max: Some(1_000), per_page: Some(3), ..searched(text) };
        let outline = store.outline(&counted, None).await.unwrap();
        assert_eq!(outline.is_counted, total <= 3, "{when}: {text}");
        assert_eq!(outline.total, total.min(4), "{when}: {text}");
        let mut pages = Vec::new();
        for number in 1..=total.div_ceil(3) {
            pages.extend(page(store, &Filter { page: number, ..counted.clone() }).await.0);
        }
        let oldest = OrderBy { field: OrderField::DateCreated, descending: false };
        let mut reversed = Vec::new();
        for number in 1..=total.div_ceil(3) {
            let filter = Filter { page: number, order: oldest, ..counted.clone() };
            reversed.extend(page(store, &filter).await.0);
        }
        reversed.reverse();
        assert_eq!(reversed, pages, "{when}: {text}, from the oldest on");
        assert_eq!(here(pages), expected, "{when}: {text}, in pages");
    }
    assert_eq!(page(store, &searched("some-of-LISTS")).await.0, [known[0].0], "{when}: by a tag");
}

/// Edits the title of a known link.
async fn rename(store: &dyn Store, known: &mut (LinkId, String), title: &str) {
    let edit = Edit { title: Some(Some(title.to_owned())), ..Edit::default() };
    store.edit(known.0, &edit, ApiKeyId(1)).await.unwrap().unwrap();
    known.1 = format!("{} | {title}", known.1.split(" | ").next().unwrap());
}

pub(super) async fn links_are_found_by_what_they_contain(store: &dyn Store) {
    let history = store.epoch().await.unwrap();
    let texts = [
        ("a", "Straße nach Ü-Dorf"),
        ("50%_off", "Sale"),
        ("back\\slash", "x\ny"),
        ("ΟΔΟΣ", "Привіт, світе"),
        ("plain", "Old title"),
        ("日本語", "短縮"),
        ("50-off", "50%"),
    ];
    let links: Vec<NewLink> =
        (40_000..).zip(texts).map(|(number, (path, title))| link(number, path, title)).collect();
    store.insert(&history, &links).await.unwrap();
    let tagged = Edit { tags: Some(vec![Tag::parse("some-of-lists").unwrap()]), ..Edit::default() };
    store.edit(links[0].id, &tagged, ApiKeyId(1)).await.unwrap().unwrap();
    let mut known: Vec<(LinkId, String)> = links
        .iter()
        .zip(texts)
        .map(|(link, (path, title))| (link.id, format!("https://{HERE}/{path} | {title}")))
        .collect();
    check(store, &known, "before the index has them").await;

    rename(store, &mut known[4], "New title").await;
    check(store, &known, "edited before the index has them").await;
    assert!(is_indexed(store).await);
    check(store, &known, "in the index").await;
    rename(store, &mut known[4], "Another new title").await;
    let elsewhere = LongUrl::from_stored(format!("https://{HERE}/moved/50%_of"));
    let edit = Edit { long_url: Some(elsewhere.clone()), ..Edit::default() };
    store.edit(known[5].0, &edit, ApiKeyId(1)).await.unwrap().unwrap();
    known[5].1 = format!("{} | 短縮", elsewhere.as_str());
    let imported = old_item("lists-picked", &format!("https://{HERE}/imported"));
    known.push((import(store, imported).await, format!("https://{HERE}/imported |  | lists-picked")));
    check(store, &known, "changed and imported since").await;
    assert_eq!(page(store, &searched("lists-PICKED")).await.0, [known[7].0], "by a slug");
    assert_eq!(page(store, &Filter { deleted: true, ..searched(HERE) }).await.1, 0);
    let of_domain = Filter { search_domains: vec![DomainId::DEFAULT], ..searched("lists.EXAMPLE/plain") };
    let nowhere =
        Filter { search_domains: vec![DomainId::from_stored(99)], ..searched("lists.EXAMPLE/plain") };
    assert!(page(store, &of_domain).await.1 > 8, "all links of the domain");
    assert_eq!(page(store, &nowhere).await.0, [known[4].0], "the text itself");
}

/// Waits until the index may have all links: some seconds, and longer if nodes have clocks of
/// their own.
async fn settle(store: &dyn Store) {
    sleep(Duration::from_secs(if store.open_bucket().is_some() { 42 } else { 3 })).await;
}

/// Returns whether the index has all links.
async fn is_indexed(store: &dyn Store) -> bool {
    settle(store).await;
    loop {
        match store.index_links(LinkIndex::Texts, "one", HELD_FOR).await.unwrap() {
            Indexed::Some(_) => {}
            Indexed::Done => return true,
            Indexed::NotOurs => return false,
        }
    }
}

/// Returns the pages of a list by visits, read one after another until one is empty.
async fn pages_by_visits(store: &dyn Store, descending: bool, per_page: u64, numbers: &[u64]) -> Vec<LinkId> {
    let mut found = Vec::new();
    for number in numbers {
        let order = OrderBy { field: OrderField::Visits, descending };
        let filter = Filter { order, page: *number, per_page: Some(per_page), ..searched(VISITED) };
        let (ids, total) = page(store, &filter).await;
        assert_eq!(total, LISTED);
        found.extend(ids);
    }
    found
}

const VISITED: &str = "visited.example";
/// From two thousand links on, a list by visits is read in the order of an index, from ten thousand
/// on, pages far down a list by time are, and from fifteen thousand on, lists with a condition are
/// not counted.
const LISTED: u64 = 15_012;

pub(super) async fn links_are_listed_by_visits_and_those_without_by_age(store: &dyn Store) {
    let history = store.epoch().await.unwrap();
    let links: Vec<NewLink> = (41_000..41_000 + LISTED)
        .map(|number| new_link(number, &format!("https://{VISITED}/{number}")))
        .collect();
    let mut made = Vec::new();
    for links in links.chunks(1_000) {
        for (link, inserted) in links.iter().zip(store.insert(&history, links).await.unwrap()) {
            let Inserted::Stored(at) = inserted else { panic!("{link:?} is new") };
            made.push((at, link.id));
        }
    }
    // A distributed database stores a batch at several times.
    made.sort_unstable();
    let links: Vec<LinkId> = made.into_iter().map(|(_, id)| id).collect();
    let totals = [0, 5, 0, 5, 1, 900, 0, 0, 5, 1, 0, 3];
    let totals = totals.into_iter().chain(std::iter::repeat(0));
    let totals: Vec<(i64, LinkId)> = totals.zip(links.iter().copied()).collect();
    let visits = |(total, link): &(i64, LinkId)| {
        let (link, total) = (*link, *total);
        LinkVisits { link, total, bots: 0, last: 1_000_000, imported: 0 }
    };
    let visits: Vec<_> = totals.iter().filter(|(total, _)| *total > 0).map(visits).collect();
    store.add_visits(4, &visits).await.unwrap();
    for descending in [true, false] {
        let mut expected = totals.clone();
        // Stable: links with the same number stay in the order of their creation.
        expected.sort_by_key(|(total, _)| if descending { -total } else { *total });
        let expected: Vec<LinkId> = expected.into_iter().map(|(_, id)| id).collect();
        for per_page in [3, 7, 1_000] {
            // The pages at both ends, and where links without a visit begin or end.
            let last = LISTED.div_ceil(per_page);
            let numbers: Vec<u64> =
                (1..=4).chain(last.saturating_sub(4)..=last + 1).filter(|number| *number > 0).collect();
            let found = pages_by_visits(store, descending, per_page, &numbers).await;
            let len = usize::try_from(per_page).unwrap();
            let of_page = |number: &u64| {
                let first = usize::try_from((number - 1) * per_page).unwrap().min(expected.len());
                &expected[first..expected.len().min(first + len)]
            };
            let wanted: Vec<LinkId> = numbers.iter().flat_map(of_page).copied().collect();
            assert_eq!(found, wanted, "{per_page} on a page, descending: {descending}");
        }
    }
    for descending in [true, false] {
        far_pages_follow_the_near_ones(store, &links, descending).await;
    }
    pages_go_on_behind_links_that_are_listed_before(store, &links).await;
    a_page_of_all_links_has_the_total_of_a_counted_list(store).await;
    pages_of_a_search_are_those_of_a_counted_list(store).await;
    a_page_of_all_links_of_tags_has_those_of_a_counted_list(store, &links[200..220]).await;
    assert_eq!(store.most_visited(1).await.unwrap(), [totals[5].1]);
    let most = store.most_visited(1_000).await.unwrap();
    assert!(visits.iter().all(|visited| most.contains(&visited.link)));
    assert!(!most.contains(&totals[0].1), "it has no visit");
}

/// Compares pages of all links with those of all since 1970, which are counted one by one.
async fn far_pages_follow_the_near_ones(store: &dyn Store, links: &[LinkId], descending: bool) {
    let first = if descending { 100 } else { 8_000 };
    for link in &links[first..first + 20] {
        store.delete(*link, &Precondition::default(), ApiKeyId(1)).await.unwrap().unwrap();
    }
    let order = OrderBy { field: OrderField::DateCreated, descending };
    for (per_page, numbers) in [(5_000, 1..=4), (500, 19..=23), (7, 1_428..=1_430)] {
        for number in numbers {
            let all = Filter { order, page: number, per_page: Some(per_page), ..Filter::default() };
            let counted = Filter { since: Some(Timestamp::UNIX_EPOCH), ..all.clone() };
            let (found, expected) = (page(store, &all).await, page(store, &counted).await);
            assert_eq!(found, expected, "page {number} of {per_page}, descending: {descending}");
            assert!(number * per_page > expected.1 || expected.0.len() as u64 == per_page);
        }
    }
}

async fn pages_go_on_behind_links_that_are_listed_before(store: &dyn Store, links: &[LinkId]) {
    let order = OrderBy { field: OrderField::DateCreated, descending: false };
    let since = |seconds| Some(Timestamp::from_second(seconds).unwrap());
    let visited = |seconds| Filter { order, visited_since: since(seconds), ..searched(VISITED) };
    let expected = [1, 3, 4, 5, 8, 9, 11].map(|place: usize| links[place]);
    assert_eq!(page(store, &visited(1)).await, (expected.to_vec(), 7));
    assert_eq!(page(store, &visited(2)).await, (Vec::new(), 0));
    // A restored link counts as seen, and has no visit.
    let any = Precondition::default();
    store.delete(links[2], &any, ApiKeyId(1)).await.unwrap().unwrap();
    store.restore(links[2], &any, 0, ApiKeyId(1)).await.unwrap().unwrap();
    assert_eq!(page(store, &visited(1)).await.1, 7);
    let listed_before = vec![links[4], links[1]];
    let behind = |number, count_max| {
        let (page, per_page, listed_before) = (number, Some(3), listed_before.clone());
        Filter { page, per_page, count_max, listed_before, ..visited(1) }
    };
    for (number, expected) in [(1, vec![3]), (2, vec![5, 8, 9]), (3, vec![11]), (4, Vec::new())] {
        let expected: Vec<LinkId> = expected.into_iter().map(|place: usize| links[place]).collect();
        assert_eq!(page(store, &behind(number, None)).await, (expected.clone(), 5), "page {number}");
        let uncounted = store.outline(&behind(number, Some(2)), None).await.unwrap();
        assert_eq!(uncounted.ids, expected, "page {number}");
    }
    let all = Filter { per_page: Some(2), ..behind(1, Some(3)) };
    let outline = store.outline(&all, None).await.unwrap();
    assert!(outline.ids.is_empty() && !outline.is_counted, "{outline:?}");
}

/// Compares pages that all counted links fit on with lists that are counted first.
async fn a_page_of_all_links_has_the_total_of_a_counted_list(store: &dyn Store) {
    let order = OrderBy { field: OrderField::DateCreated, descending: false };
    let ten = "visited.example/4200";
    let lists = [(VISITED, PER_PAGE_MAX), (ten, 9), (ten, 10), (ten, 11), ("not-visited", 9)];
    for sees_all in [true, false] {
        for (text, per_page) in lists {
            check_whole(store, per_page, Filter { order, sees_all, ..searched(text) }).await;
        }
    }
}

/// Compares a page that all counted links fit on with the list that is counted first. Returns the
/// number of its links.
async fn check_whole(store: &dyn Store, per_page: u64, filter: Filter) -> u64 {
    let counted = Filter { per_page: Some(per_page), ..filter };
    let (ids, total) = page(store, &counted).await;
    let whole = Filter { count_max: Some(per_page + 1), ..counted };
    let outline = store.outline(&whole, None).await.unwrap();
    assert_eq!(outline.ids, ids, "{whole:?}");
    assert_eq!(outline.total, total.min(per_page + 1), "{whole:?}");
    assert_eq!(outline.is_counted, total <= per_page, "{whole:?}");
    total
}

/// Compares such pages of lists by tags, of more and of fewer links than are read for a page.
async fn a_page_of_all_links_of_tags_has_those_of_a_counted_list(store: &dyn Store, links: &[LinkId]) {
    let [one, other, none] = ["whole-one", "whole-other", "whole-none"].map(|name| Tag::parse(name).unwrap());
    let both = vec![one.clone(), other.clone()];
    // The latest link first, so that the order of the lists is not that of the tags.
    for (number, link) in links.iter().rev().enumerate() {
        let tags = match number % 3 {
            0 => vec![one.clone()],
            1 => vec![other.clone()],
            _ => both.clone(),
        };
        let edit = Edit { tags: Some(tags), ..Edit::default() };
        store.edit(*link, &edit, ApiKeyId(1)).await.unwrap().unwrap();
    }
    store.delete(links[19], &Precondition::default(), ApiKeyId(1)).await.unwrap().unwrap();
    for (tags, tags_mode, exclude_tags, expected) in [
        (vec![one.clone()], TagsMode::Any, Vec::new(), 12),
        (vec![one.clone()], TagsMode::Any, vec![other], 6),
        (both.clone(), TagsMode::Any, Vec::new(), 19),
        (both, TagsMode::All, Vec::new(), 6),
        (vec![one, none.clone()], TagsMode::All, Vec::new(), 0),
        (vec![none], TagsMode::Any, Vec::new(), 0),
    ] {
        for (descending, sees_all) in [(false, true), (true, true), (false, false)] {
            let order = OrderBy { field: OrderField::DateCreated, descending };
            let (tags, exclude_tags) = (tags.clone(), exclude_tags.clone());
            let filter = Filter { order, tags, tags_mode, exclude_tags, sees_all, ..Filter::default() };
            for per_page in [3, 12, 100] {
                assert_eq!(check_whole(store, per_page, filter.clone()).await, expected, "{filter:?}");
            }
        }
    }
}

/// Compares pages of a list that looks among its first links with those of one that is counted: of
/// a text that a hundred links contain, for which there is no use of the index, and of a rare one.
async fn pages_of_a_search_are_those_of_a_counted_list(store: &dyn Store) {
    for (text, expected) in [("visited.example/420", 100), ("visited.example/4201", 10)] {
        for (per_page, number) in [(99, 1), (99, 2), (100, 1), (100, 2), (7, 2), (7, 3)] {
            for since in [None, Some(Timestamp::UNIX_EPOCH)] {
                let counted = Filter { since, page: number, per_page: Some(per_page), ..searched(text) };
                let (ids, total) = page(store, &counted).await;
                assert_eq!(total, expected, "{text}");
                let outline = store.outline(&Filter { count_max: Some(1_000), ..counted }, None).await;
                let outline = outline.unwrap();
                let when = format!("{text}, page {number} of {per_page}, since {since:?}");
                assert_eq!(outline.ids, ids, "{when}");
                assert_eq!(outline.total, total.min(number * per_page + 1), "{when}");
                assert_eq!(outline.is_counted, total <= number * per_page, "{when}");
            }
        }
    }
}

/// On Postgres: the links of a key, and those of a domain, are looked up in indexes where they are
/// few among many others.
pub(super) async fn a_few_links_of_a_key_or_domain_have_an_index(store: &dyn Store, postgres: &Postgres) {
    let sql = postgres.client().await.unwrap();
    let history = store.epoch().await.unwrap();
    let (key, domain) = (ApiKeyId(77), DomainId::from_stored(99));
    let mut links = [link(60_010, "of-a-key", "Few"), link(60_011, "of-a-domain", "Few")];
    links[0].draft.created_by = key;
    store.insert(&history, &links).await.unwrap();
    let moved = "UPDATE link SET details = jsonb_build_object('domain', $2::bigint) WHERE id = $1";
    sql.execute(moved, &[&links[1].id.get(), &domain.get()]).await.unwrap();
    sql.batch_execute("ANALYZE link").await.unwrap();
    let of_key = Filter { created_by: Some(vec![key]), ..Filter::default() };
    let of_domain = Filter { domain: Some(domain), sees_all: true, ..Filter::default() };
    for (index, filter, link) in
        [("link_created_by", of_key, &links[0]), ("link_domain", of_domain, &links[1])]
    {
        let used = async || {
            let used = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = $1";
            sql.query_one(used, &[&index]).await.unwrap().get::<_, i64>(0)
        };
        let before = used().await;
        // Postgres adds up its uses at times, and those of a distributed table on its nodes.
        let is_used = async || {
            assert_eq!(page(store, &filter).await, (vec![link.id], 1), "{index}");
            store.open_bucket().is_some() || used().await > before
        };
        wait::until(Duration::from_secs(30), index, is_used).await.unwrap();
    }
}

/// On Postgres, where texts have an index: it is used, and built anew after an older release has
/// changed links behind it.
pub(super) async fn searches_use_an_index_that_can_be_built_anew(store: &dyn Store, postgres: &Postgres) {
    let sql = postgres.client().await.unwrap();
    let history = store.epoch().await.unwrap();
    let made = link(60_000, "anew", "Some rare words");
    store.insert(&history, std::slice::from_ref(&made)).await.unwrap();
    // The last link in the index may have others of its time, so it is not looked for there.
    store.insert(&history, &[link(60_002, "last", "Last")]).await.unwrap();
    while !is_indexed(store).await {}
    assert_eq!(page(store, &searched("rare WORDS")).await.0, [made.id]);
    sql.execute("DELETE FROM link_text WHERE link_id = $1", &[&made.id.get()]).await.unwrap();
    assert!(page(store, &searched("rare WORDS")).await.0.is_empty(), "only the index is asked");
    let by_some = Filter { sees_all: false, ..searched("rare WORDS") };
    assert_eq!(page(store, &by_some).await.0, [made.id], "and nothing that others have to do with");

    sql.batch_execute("UPDATE link_text_state SET indexed_until = 'epoch', after_id = 0").await.unwrap();
    let edit = Edit { title: Some(Some("A title of now".to_owned())), ..Edit::default() };
    store.edit(made.id, &edit, ApiKeyId(1)).await.unwrap().unwrap();
    let older = "UPDATE link SET title = 'A title by an older release' WHERE id = $1";
    sql.execute(older, &[&made.id.get()]).await.unwrap();
    while !is_indexed(store).await {}
    assert_eq!(page(store, &searched("older release")).await.0, [made.id]);
    assert!(page(store, &searched("title of now")).await.0.is_empty());

    let upgraded = "UPDATE link_text_state SET holder = 'upgrade', held_until = now()";
    sql.batch_execute(upgraded).await.unwrap();
    for _ in 0..2 {
        let step = store.index_links(LinkIndex::Texts, "another", HELD_FOR).await.unwrap();
        assert_eq!(step, Indexed::NotOurs, "it waits for an hour");
        store.insert(&history, &[link(60_001, "later", "Later")]).await.unwrap();
        settle(store).await;
    }
}
