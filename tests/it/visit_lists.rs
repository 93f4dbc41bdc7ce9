//! Lists of visits, with the parameters that Shlink's clients send.

use harness::{Api, wait};
use reqwest::header::USER_AGENT;
use serde_json::{Value, json};

use crate::rest_calls::{Alone, SOON, get};

const PERSON: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0";
const BOT: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";

async fn visit(api: &Api, path: &str, user_agent: &str) {
    let request = api.http().get(format!("{}/{path}", api.url())).header(USER_AGENT, user_agent);
    request.send().await.unwrap();
}

/// Returns the numbers of a page: current page, pages, items per page, items on it, items.
async fn numbers(api: &Api, path: &str) -> [u64; 5] {
    let page = get(api, path).await["visits"].clone();
    let told = &page["pagination"];
    let number = |name: &str| told[name].as_u64().unwrap();
    assert_eq!(page["data"].as_array().unwrap().len() as u64, number("itemsInCurrentPage"), "{path}");
    ["currentPage", "pagesCount", "itemsPerPage", "itemsInCurrentPage", "totalItems"].map(number)
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_take_the_parameters_of_shlinks_clients() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let body = json!({ "longUrl": "https://example.com/", "tags": ["news"] });
    let code = api.create_with(&body).await.unwrap().code;
    for user_agent in [PERSON, PERSON, PERSON, BOT, BOT] {
        visit(api, &code, user_agent).await;
        visit(api, "no/such-slug", user_agent).await;
    }
    visit(api, "a//b", PERSON).await;
    visit(api, "", BOT).await;
    let link = format!("short-urls/{code}/visits");
    wait::until(SOON, "all visits are stored", async || {
        let (of_link, orphans) = (numbers(api, &link).await, numbers(api, "visits/orphan").await);
        // Counters of a new tag follow a little later.
        let of_tag = numbers(api, "tags/news/visits").await;
        [of_link[4], of_tag[4], orphans[4]] == [5, 5, 7]
    })
    .await
    .unwrap();

    for path in [&link, "tags/news/visits", "visits/non-orphan", "domains/DEFAULT/visits"] {
        // A size below 1 asks for all, as does none; a page below 1 is the first.
        for query in ["", "itemsPerPage=0", "itemsPerPage=-1", "itemsPerPage=-20&page=0", "page=-3"] {
            assert_eq!(numbers(api, &format!("{path}?{query}")).await, [1, 1, 5, 5, 5], "{path} {query}");
        }
        assert_eq!(numbers(api, &format!("{path}?itemsPerPage=2&page=3")).await, [3, 3, 2, 1, 5]);
        for query in ["excludeBots=true", "excludeBots=false", "excludeBots"] {
            assert_eq!(numbers(api, &format!("{path}?{query}")).await, [1, 1, 3, 3, 3], "{path} {query}");
        }
    }
    for (query, expected) in [
        ("itemsPerPage=0", [1, 1, 7, 7, 7]),
        ("excludeBots=true", [1, 1, 4, 4, 4]),
        ("excludeBots=true&itemsPerPage=3&page=2", [2, 2, 3, 1, 4]),
        // Four times 2^62 is 0 in 64 bits.
        ("itemsPerPage=4&page=4611686018427387905", [(1_u64 << 62) + 1, 2, 4, 0, 7]),
        ("type=invalid_short_url", [1, 1, 5, 5, 5]),
        ("type=invalid_short_url&excludeBots=1", [1, 1, 3, 3, 3]),
        ("type=regular_404", [1, 1, 1, 1, 1]),
        ("type=base_url", [1, 1, 1, 1, 1]),
        ("type=base_url&excludeBots", [1, 1, 1, 0, 0]),
        ("type=base_url&domain=DEFAULT", [1, 1, 1, 1, 1]),
        ("type=base_url&domain=none.example", [1, 1, 1, 0, 0]),
    ] {
        assert_eq!(numbers(api, &format!("visits/orphan?{query}")).await, expected, "{query}");
    }
    let orphans = get(api, "visits/orphan?itemsPerPage=2").await;
    let types: Vec<&Value> =
        orphans["visits"]["data"].as_array().unwrap().iter().map(|visit| &visit["type"]).collect();
    assert_eq!(types, ["base_url", "regular_404"]);
}
