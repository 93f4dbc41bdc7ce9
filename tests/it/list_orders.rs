//! Orders of lists of links by their visits.

use harness::{Answer, Api, Resolver, wait};
use serde_json::json;

use crate::{
    pages::Browser,
    rest_calls::{Place, SOON, get, leads_to, listed, on_either_store},
};

on_either_store!(links_are_listed_in_the_order_of_their_visits);

async fn links_are_listed_in_the_order_of_their_visits(place: Place) {
    let [api, other] = &place.apis();
    let url = "https://example.com/";
    for slug in ["one", "two", "three", "never"] {
        api.create_with(&json!({ "longUrl": url, "customSlug": slug })).await.unwrap();
    }
    // Neither the order of the last visits nor that of their numbers is one of creations. Each
    // visit is counted before the next one, so that their times differ.
    let visits = [(api, "three", 1), (other, "one", 1), (api, "three", 2), (other, "two", 1)];
    for (visitor, slug, total) in visits {
        assert_eq!(visitor.follow(slug).await.unwrap(), leads_to(url));
        let path = format!("short-urls/{slug}");
        let is_counted = async || get(api, &path).await["visitsSummary"]["total"] == total;
        wait::until(SOON, "the visit is counted", is_counted).await.unwrap();
    }
    for (query, expected) in [
        ("orderBy=lastVisit-ASC", ["never", "one", "three", "two"]),
        ("orderBy=lastVisit-DESC", ["two", "three", "one", "never"]),
        ("orderBy=visits-ASC", ["never", "one", "two", "three"]),
        ("orderBy=visits-DESC", ["three", "one", "two", "never"]),
    ] {
        for api in [api, other] {
            assert_eq!(listed(api, query).await, expected, "{query}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_most_visited_of_a_period_come_first_among_any_number_of_links_on_sqlite() {
    // Its pages have the address that they are read at.
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    the_most_visited_of_a_period_come_first(&resolver.api, &resolver.api).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_most_visited_of_a_period_come_first_among_any_number_of_links_on_postgres() {
    let place = Place::postgres().await;
    let [api, other] = &place.apis();
    the_most_visited_of_a_period_come_first(api, other).await;
}

async fn the_most_visited_of_a_period_come_first(api: &Api, other: &Api) {
    // More than are sorted.
    let tags = |number: usize| if number.is_multiple_of(2) { vec!["even"] } else { Vec::new() };
    let item = |number| json!({ "longUrl": format!("https://example.com/{number}"), "tags": tags(number) });
    let body: String = (0..10_050).map(|number| format!("{}\n", item(number))).collect();
    let bulk = api.http().post(format!("{}/rest/v3/short-urls/bulk", api.url()));
    let made = Answer::to(bulk.header("x-api-key", api.key()).timeout(SOON).body(body)).await.unwrap();
    assert_eq!(made.body.matches("\"created\"").count(), 10_050);
    let oldest = async |query: &str| {
        let first = listed(other, &format!("orderBy=dateCreated-ASC&itemsPerPage=10000{query}")).await;
        let last = listed(other, &format!("orderBy=dateCreated-ASC&itemsPerPage=10000&page=2{query}")).await;
        [first, last].concat()
    };
    let (all, even) = (oldest("").await, oldest("&tags[]=even").await);
    let visited = [&even[2_000], &even[4_000], &even[1]];
    for (code, visits) in visited.iter().zip([3, 2, 1]) {
        for _ in 0..visits {
            assert_eq!(other.follow(code).await.unwrap().0, 302);
        }
    }
    let browser = Browser::open(api).await;
    let page = async |query: &str, number: u64| {
        let query = format!("visits=7d&order=visits-DESC&count=10&page={number}{query}");
        let page = browser.page(&format!("/manage?{query}")).await;
        let rows = page.split("<th scope=\"row\">").skip(1);
        rows.filter_map(|row| row.split(['<', '>']).nth(2)).map(str::to_owned).collect::<Vec<_>>()
    };
    let is_sorted = async || page("", 1).await[..3] == visited.map(String::as_str);
    wait::until(SOON, "the visits are counted", is_sorted).await.unwrap();
    for (query, links) in [("", &all), ("&tag=even", &even)] {
        let others = links.iter().filter(|link| !visited.contains(link));
        let expected: Vec<&String> = visited.into_iter().chain(others).collect();
        for number in [1, 2, 200] {
            let end = usize::try_from(number).unwrap() * 10;
            assert_eq!(page(query, number).await.iter().collect::<Vec<_>>(), expected[end - 10..end]);
        }
    }
    let reversed = browser.page("/manage?visits=7d&order=visits-ASC").await;
    assert!(reversed.contains("more than 10,000 links, too many"), "{reversed}");
}
