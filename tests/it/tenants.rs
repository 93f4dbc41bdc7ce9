//! Tenants apart: one limited key makes links, visits, rules, tags, domains and deletions with a
//! mark in every field, in random order. Then another key calls every route of the OpenAPI
//! document, gRPC and the streams with the first one's codes, ids, tags and names. No mark comes
//! back, but what the caller has sent itself. (Webhooks belong to operators, who see everything.)
//!
//! The tests run a small sample. `SHORTMINT_TENANTS=2000` runs as many sequences on each store, and
//! `SHORTMINT_TENANTS_SEED` begins at another seed than the sample.

mod intruder;
mod marks;
mod moved_away;
mod outlived;
mod picked_again;
mod stage;
mod streams;
mod tenant;
mod trickled;
mod without_read;

use intruder::Intruder;
use stage::Stage;
use streams::Streams;
use tenant::Tenant;

use crate::rng::Rng;

/// Sequences of a store in a run of all tests.
const SAMPLE: u64 = 24;
/// The first of them. In the sequences from here a link is visited and deleted, and its name is
/// picked by the intruder.
const FIRST: u64 = 55;
/// Maximum number of sequences whose visits are stored before the intruder's calls. They share the
/// wait for it.
const TOGETHER: u64 = 200;

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().map_or(otherwise, |text| text.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_gets_what_is_another_tenants_on_sqlite() {
    run(&Stage::on_sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_gets_what_is_another_tenants_on_postgres() {
    run(&Stage::on_postgres().await).await;
}

#[expect(clippy::print_stdout, reason = "counts for readers of the test output")]
async fn run(stage: &Stage) {
    let (seed, count) = (number("SHORTMINT_TENANTS_SEED", FIRST), number("SHORTMINT_TENANTS", SAMPLE));
    let pairs = stage.pairs().await;
    let document = intruder::operations(&stage.resolver.api).await;
    let streams = Streams::open(&pairs).await;
    let (mut calls, mut picked) = (0, 0);
    let together = (count / 2).clamp(1, TOGETHER);
    for first in (seed..seed + count).step_by(usize::try_from(together).unwrap()) {
        let mut met = Vec::new();
        for seed in first..(first + together).min(seed + count) {
            let pair = &pairs[usize::try_from(seed).unwrap() % pairs.len()];
            let mut tenant = Tenant::new(seed, &pair.tenant, pair.is_of_domain);
            tenant.act(stage).await;
            let mut intruder = Intruder::new(&pair.intruder, stage.grpc(), Rng::new(!seed));
            picked += intruder.pick_what_was_left(&tenant).await;
            met.push((tenant, intruder));
        }
        stage.wait_for_visits().await;
        for (tenant, intruder) in &mut met {
            calls += intruder.call_everything(&document, tenant).await;
        }
        streams.check();
    }
    println!("{count} sequences from {seed}: {calls} calls, {picked} names picked again");
    assert!(picked > 0 || count < SAMPLE, "names are picked again");
}
