//! Postgres under Patroni: three servers, whose primary hands over or is killed while links are
//! created and followed (faults 9 and 29).

use std::time::Duration;

use harness::{
    Cluster, Load, PgBouncer, PoolMode, Resolver, checks,
    load::Running,
    patroni::{Patroni, Replication},
    wait,
};
use tokio::time::Instant;

const SOON: Duration = Duration::from_secs(60);
const CLIENTS: usize = 8;

/// How a primary stops being one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Somebody asks Patroni for a switch-over.
    Planned,
    /// The machine loses its power.
    Killed,
}

/// Two resolvers: the first has the URL of all servers, and the second a pooler that somebody leads to
/// the primary.
struct Platform {
    cluster: Cluster,
    patroni: Patroni,
    pooler: PgBouncer,
    resolvers: Vec<Resolver>,
}

impl Platform {
    async fn start(replication: Replication) -> Self {
        let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(0).start().await.unwrap();
        let patroni = Patroni::start(&cluster.scratch, &cluster.etcd, replication).await.unwrap();
        let migrate = ["migrate", "--database", &patroni.url()];
        cluster.run_resolver(&migrate, SOON).await.unwrap().success().unwrap();
        let primary = patroni.primary().await.unwrap();
        let (server, url) = (patroni.addr(primary), patroni.url_of(primary));
        let pooler = PgBouncer::before(&cluster.scratch, server, &url, PoolMode::Session).await.unwrap();
        let mut resolvers = Vec::new();
        for (holder, url) in [("resolver-0", patroni.url()), ("resolver-1", pooler.url())] {
            let resolver = cluster.resolver(holder).unwrap().database(&url);
            resolvers.push(resolver.start().await.unwrap());
        }
        Self { cluster, patroni, pooler, resolvers }
    }

    fn load(&self) -> Running {
        let load = Load::on(&self.resolvers).clients(CLIENTS).creates(usize::MAX);
        load.per_second(400).retries_unavailable().start()
    }

    /// Ends the reign of the primary, and waits until the platform and then all servers are back.
    #[expect(clippy::print_stdout, reason = "the times belong to the result of the test")]
    async fn fail_over(&mut self, end: End, running: &mut Running) {
        let Self { patroni, pooler, resolvers, .. } = self;
        // A link of each resolver, which the other one has not cached.
        let cold = Load::on(&*resolvers).clients(2).creates(2).retries_unavailable().run().await.unwrap();
        let before = patroni.primary().await.unwrap();
        let began = Instant::now();
        match end {
            End::Planned => patroni.switch_over(before).await.unwrap(),
            End::Killed => patroni.kill(before).await.unwrap(),
        }
        let next = patroni.next_primary(before).await.unwrap();
        let new = Instant::now();
        pooler.lead_to(patroni.addr(next)).unwrap();
        let lead_on = async || checks::unresolved(&cold, resolvers).await.unwrap().is_empty();
        wait::until(SOON, "cold links lead on", lead_on).await.unwrap();
        let redirects = new.elapsed();
        // Each client has at most one create under way, so some of these are later, on both resolvers.
        running.reaches(running.acknowledged() + 10 * CLIENTS, SOON).await.unwrap();
        let (away, creates) = (new - began, new.elapsed());
        println!(
            "{end:?}: a new primary after {away:?}, a cold redirect {redirects:?} and creates {creates:?} later"
        );
        match end {
            End::Planned => patroni.wait_whole().await.unwrap(),
            End::Killed => patroni.restart(before).await.unwrap(),
        }
    }
}

/// Runs fail-overs of both kinds. Whatever was acknowledged is there afterwards.
async fn nothing_is_lost(rounds: usize) {
    let mut platform = Platform::start(Replication::Synchronous).await;
    let mut running = platform.load();
    for _ in 0..rounds {
        for end in [End::Planned, End::Killed] {
            platform.fail_over(end, &mut running).await;
        }
    }
    running.wind_down();
    let links = running.finish().await.unwrap();
    checks::all_distinct(&links).unwrap();
    checks::all_resolve(&links, &platform.resolvers).await.unwrap();
}

/// Kills primaries whose standbys may lack the last links. No code is given to two links, and what
/// was created since the last one leads on.
#[expect(clippy::print_stdout, reason = "the count belongs to the result of the test")]
async fn no_code_is_minted_again(rounds: usize) {
    let mut platform = Platform::start(Replication::Asynchronous).await;
    let mut all = Vec::new();
    for _ in 0..rounds {
        let mut running = platform.load();
        platform.fail_over(End::Killed, &mut running).await;
        running.wind_down();
        all.extend(running.finish().await.unwrap());
        let later = Load::on(&platform.resolvers).creates(500).run().await.unwrap();
        checks::all_resolve(&later, &platform.resolvers).await.unwrap();
        all.extend(later);
        checks::all_distinct(&all).unwrap();
    }
    let lost = checks::unresolved(&all, &platform.resolvers).await.unwrap().len();
    println!("{lost} of {} links were lost", all.len());
    let status = platform.cluster.status().await.unwrap();
    assert!(status.only_namespace().unwrap().burned > 0, "blocks from before a fail-over are given up");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_synchronous_standby_no_acknowledged_link_is_lost() {
    nothing_is_lost(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_asynchronous_standbys_no_code_is_minted_again() {
    no_code_is_minted_again(1).await;
}

mod long {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn twenty_switch_overs_and_twenty_killed_primaries_lose_nothing() {
        nothing_is_lost(20).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn twenty_primaries_whose_standbys_lag_are_killed() {
        no_code_is_minted_again(20).await;
    }
}
