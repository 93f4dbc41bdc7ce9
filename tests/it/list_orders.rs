//! Orders of lists of links by their visits.

use harness::wait;
use serde_json::json;

use crate::rest_calls::{Place, SOON, get, leads_to, listed, on_either_store};

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
