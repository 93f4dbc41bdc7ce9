//! Bulk creation of stored links for the benchmarks.

use std::time::Duration;

use anyhow::Context;
use harness::Resolver;

use crate::progress;

/// The number of links per bulk call.
const AT_ONCE: usize = 100_000;
const ANSWERED_WITHIN: Duration = Duration::from_secs(300);

/// Creates `count` links by bulk calls and returns their paths.
pub(crate) async fn create(resolver: &Resolver, count: usize) -> anyhow::Result<Vec<String>> {
    let mut paths = Vec::with_capacity(count);
    while paths.len() < count {
        progress::show(&format!("creating {count} links: {} are stored", paths.len()));
        let numbers = paths.len()..count.min(paths.len() + AT_ONCE);
        let expected = numbers.end;
        let line = |number: usize| format!("{{\"longUrl\":\"https://example.org/some/where/{number}\"}}\n");
        let codes = bulk(resolver, numbers.map(line).collect()).await?;
        paths.extend(codes.into_iter().map(|code| format!("/{code}")));
        anyhow::ensure!(paths.len() == expected, "a link was not created");
    }
    Ok(paths)
}

/// Makes one bulk call with a body of JSON lines and returns the codes of the created links.
pub(crate) async fn bulk(resolver: &Resolver, body: String) -> anyhow::Result<Vec<String>> {
    let api = &resolver.api;
    let request = api.http().post(format!("{}/rest/v3/short-urls/bulk", api.url()));
    let request = request.header("X-Api-Key", api.key()).timeout(ANSWERED_WITHIN).body(body);
    let answer = request.send().await.context("send a bulk call")?.text().await.context("read its answer")?;
    let code = |line: &str| {
        let (_, rest) = line.split_once("\"shortCode\":\"")?;
        Some(rest.split_once('"')?.0.to_owned())
    };
    Ok(answer.lines().filter_map(code).collect())
}
