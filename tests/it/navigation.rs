//! The navigation of the pages.

use reqwest::StatusCode;

use crate::{pages::Browser, rest_calls::Alone};

#[tokio::test(flavor = "multi_thread")]
async fn the_navigation_has_the_pages_that_the_key_may_open() {
    let alone = Alone::start(&[]).await;
    for (name, args, count) in [
        ("all", &["--scopes", "admin"][..], 13),
        ("limited", &["--scopes", "admin", "--own-links-only"], 8),
        ("creates-and-reads", &["--scopes", "create,read"], 6),
        ("creates", &["--scopes", "create"], 2),
        ("reserves", &["--scopes", "reserve"], 1),
        ("counts", &["--scopes", "read,visits"], 5),
        // The page of statistics offers tags and domains too.
        ("only-counts", &["--scopes", "visits"], 0),
    ] {
        let api = alone.with_new_key(name, args).await;
        let browser = Browser::open(&api).await;
        let page = browser.page("/manage/create").await;
        let (_, rest) = page.split_once("<nav class=\"parts\"").expect("there is a navigation");
        let links = rest.split("</nav>").next().unwrap().split("<a href=\"").skip(1);
        let entries: Vec<&str> = links.filter_map(|link| link.split('"').next()).collect();
        assert_eq!(entries.len(), count, "{name}: {entries:?}");
        assert_eq!(rest.contains("<details class=\"menu\">"), count > 0, "{name}");
        for entry in entries {
            assert_eq!(browser.get(entry).await.status(), StatusCode::OK, "{name}: {entry}");
        }
    }
}
