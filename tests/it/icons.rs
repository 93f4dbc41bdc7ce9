//! Icons of hosts in the list of links: off by default, and never of a host that is not public.

use std::net::TcpListener;

use harness::{Api, Resolver};
use reqwest::StatusCode;

use crate::pages::Browser;

const ON: [&str; 2] = ["--theme", "icons=on"];
/// An address of this machine at which no other test listens.
const PRIVATE: &str = "127.0.0.43";
/// The port of icons.
const HTTPS: u16 = 443;

#[tokio::test(flavor = "multi_thread")]
async fn icons_are_off_by_default() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    resolver.api.create("https://example.com/").await.unwrap();
    let browser = Browser::open(&resolver.api).await;
    let list = browser.page("/manage").await;
    assert!(list.contains("https://example.com/") && !list.contains("class=\"icon\""), "{list}");
    assert_eq!(browser.get("/manage/icon?host=127.0.0.1").await.status(), StatusCode::NOT_FOUND);
}

/// Not even for an operator, whose webhooks may go there.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_not_public_is_not_connected_to_and_has_a_globe() {
    // Where only root may listen at this port, others check the answers alone.
    let private = TcpListener::bind((PRIVATE, HTTPS)).ok();
    let flags = ["--webhooks", "network=127.0.0.0/8,http"];
    let resolver = Resolver::embedded().unwrap().args(ON).args(flags).start().await.unwrap();
    let browser = Browser::open(&resolver.api).await;
    for host in [PRIVATE, "127.0.0.1", "localhost", "[::1]", "nowhere.invalid", "", "a:443", "a/b"] {
        let answer = browser.get(&format!("/manage/icon?host={host}")).await;
        assert_eq!(answer.status(), StatusCode::OK, "{host}");
        for (name, value) in [
            ("content-type", "image/svg+xml"),
            ("cache-control", "private, max-age=3600"),
            ("content-security-policy", "default-src 'none'; sandbox"),
            ("x-content-type-options", "nosniff"),
        ] {
            assert_eq!(answer.headers()[name], value, "{host}");
        }
        assert!(answer.text().await.unwrap().starts_with("<svg "), "{host}");
    }
    if let Some(private) = private {
        private.set_nonblocking(true).unwrap();
        assert!(private.accept().is_err(), "it was connected to");
    }
    let lost = resolver.api.get("manage/icon?host=localhost").await.unwrap();
    let sign_in = "/_pages/sign-in?to=%2Fmanage%2Ficon%3Fhost%3Dlocalhost";
    assert_eq!((lost.status, lost.header("location")), (303, Some(sign_in)));
}

#[tokio::test(flavor = "multi_thread")]
async fn links_to_a_host_share_an_icon_also_below_a_path() {
    let builder = Resolver::embedded().unwrap().args(ON);
    let url = format!("http://{}/s", builder.listen());
    let resolver = builder.public_url(&url).start().await.unwrap();
    let api = Api::new(resolver.api.http(), url, resolver.api.key().to_owned());
    let hosted = [format!("http://{PRIVATE}/a"), format!("https://{PRIVATE}:8443/b?c")];
    for long_url in hosted.iter().map(String::as_str).chain(["mailto:a@example.com"]) {
        api.create(long_url).await.unwrap();
    }
    let browser = Browser::open(&api).await;
    let list = browser.page("/manage").await;
    let icon = format!("<img class=\"icon\" src=\"/s/manage/icon?host={PRIVATE}\"");
    let counts = [icon.as_str(), "class=\"icon\""].map(|text| list.matches(text).count());
    assert_eq!(counts, [2, 2], "{list}");
    let answer = browser.get(&format!("/manage/icon?host={PRIVATE}")).await;
    assert_eq!(answer.status(), StatusCode::OK);
}
