//! The embedded form: issuer and database run inside the resolver, and its links survive a stop and
//! a kill.

use std::time::Duration;

use harness::{Acknowledged, Load, Resolver, checks, wait};

const STOP_WITHIN: Duration = Duration::from_secs(30);
const SOON: Duration = Duration::from_secs(5);

/// The text before the key in the printed line that people copy.
const KEY_HEADER: &str = "X-Api-Key: ";

#[tokio::test(flavor = "multi_thread")]
async fn the_first_start_prints_a_key_once_and_what_it_creates_survives_a_stop_and_a_kill() {
    let mut resolver = Resolver::embedded().unwrap().draws_its_first_key().start().await.unwrap();
    let key = printed_key(&resolver).await;
    resolver.use_key(&key);
    let first = resolver.api.create("https://example.com/first").await.unwrap();
    assert_eq!(first.short_url, format!("{}/{}", resolver.api.url(), first.code));
    expect_redirect(&resolver, &first.code, "https://example.com/first").await;

    resolver.stop(STOP_WITHIN).await.unwrap();
    resolver.restart().await.unwrap();
    expect_redirect(&resolver, &first.code, "https://example.com/first").await;
    let second = resolver.api.create("https://example.com/second").await.unwrap();

    resolver.process.kill_now().unwrap();
    resolver.restart().await.unwrap();
    expect_redirect(&resolver, &first.code, "https://example.com/first").await;
    expect_redirect(&resolver, &second.code, "https://example.com/second").await;

    // The logs continue over restarts, so they have the output of all three starts.
    let logs = resolver.process.logs();
    assert_eq!(logs.matches(KEY_HEADER).count(), 1, "not exactly one line with a key:\n{logs}");
    assert!(logs.matches(&key).count() <= 2, "once alone and once in the line to copy is enough:\n{logs}");
    assert!(!resolver.process.stderr().contains(&key), "the key is in the log:\n{logs}");
}

#[tokio::test(flavor = "multi_thread")]
async fn three_kills_in_the_middle_of_creates_lose_no_acknowledged_link_and_give_no_code_twice() {
    let mut resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let mut links: Vec<Acknowledged> = Vec::new();
    for _ in 0..3 {
        links.extend(Load::on([&resolver]).clients(8).creates(200).run().await.unwrap());
        let mut load = Load::on([&resolver]).clients(8).creates(1_000_000).start();
        load.reaches(100, STOP_WITHIN).await.unwrap();
        resolver.process.kill_now().unwrap();
        // All clients fail together with the resolver. Links acknowledged before that count.
        let interrupted = load.end().await.unwrap();
        assert_eq!(interrupted.failures.len(), 8);
        links.extend(interrupted.links);
        resolver.restart().await.unwrap();
    }
    links.extend(Load::on([&resolver]).clients(8).creates(200).run().await.unwrap());
    checks::all_distinct(&links).unwrap();
    checks::all_resolve(&links, std::slice::from_ref(&resolver)).await.unwrap();
}

/// Waits for the printed curl command and returns the API key in it.
async fn printed_key(resolver: &Resolver) -> String {
    let printed = wait::until_some(SOON, "the key is printed in a curl command", async || {
        let stdout = resolver.process.stdout();
        let line = stdout.lines().find(|line| line.contains("curl ") && line.contains(KEY_HEADER))?;
        let (_, rest) = line.split_once(KEY_HEADER)?;
        Some(rest.chars().take_while(char::is_ascii_alphanumeric).collect::<String>())
    });
    let key = printed.await.unwrap();
    assert!(key.len() >= 32, "a key that can be guessed: {key}");
    key
}

async fn expect_redirect(resolver: &Resolver, code: &str, long_url: &str) {
    assert_eq!(resolver.api.follow(code).await.unwrap(), (302, Some(long_url.to_owned())));
}
