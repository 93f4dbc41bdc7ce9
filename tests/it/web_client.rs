//! Shlink's web client works unchanged, in a real browser, on a link with many visits. The program
//! in `tests/browser` is its component with its own SDK. `tests/run` installs both and Chromium.

use std::time::Duration;

use harness::{Program, Resolver, Scratch, installed::node, wait};

use crate::visits::{client, create, get, visit};

const VISITORS: u64 = 8;
const COUNTED_WITHIN: Duration = Duration::from_secs(120);
const RUN_WITHIN: Duration = Duration::from_secs(300);

#[tokio::test(flavor = "multi_thread")]
async fn the_web_client_shows_visits_and_counts_live() {
    the_client_shows(5_000).await;
}

mod long {
    #[tokio::test(flavor = "multi_thread")]
    async fn the_web_client_shows_100_000_visits_and_counts_live() {
        super::the_client_shows(100_000).await;
    }
}

async fn the_client_shows(visits: u64) {
    let (scratch, resolver) = (Scratch::new().unwrap(), Resolver::embedded().unwrap().start().await.unwrap());
    let key = resolver.api.key();
    let code = create(&resolver, key).await;
    let visitor = async || {
        let client = client();
        for _ in 0..visits / VISITORS {
            assert!(visit(&client, &resolver, &code).await);
        }
    };
    futures_util::future::join_all((0..VISITORS).map(|_| visitor())).await;
    wait::until(COUNTED_WITHIN, "all visits are counted", async || {
        let link = get(&resolver, key, &format!("short-urls/{code}")).await;
        link["visitsSummary"]["total"] == visits
    })
    .await
    .unwrap();

    let node = node(&scratch, "browser/drive.mjs", "browser").unwrap();
    let node = node.arg(Program::Chromium.path().unwrap());
    let node = node.args([resolver.api.url(), key, &code, &visits.to_string(), "news"]);
    let finished = node.run(RUN_WITHIN).await.unwrap();
    assert!(finished.status.success(), "{}\n{}", finished.stdout, finished.stderr);
    assert!(finished.stdout.contains("all holds"), "{}", finished.stdout);
}
