//! Postgres under Patroni: three servers, whose primary hands over or is killed while links are
//! created and followed (faults 9 and 29).

use std::time::Duration;

use harness::{
    Acknowledged, Cluster, Load, PgBouncer, PoolMode, Resolver, checks,
    load::Running,
    patroni::{Patroni, Replication},
    wait,
};
use tokio::time::Instant;

const SOON: Duration = Duration::from_secs(60);
/// Clients of each resolver.
const CLIENTS: usize = 4;

/// How a primary stops being one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// An operator asks Patroni for a switch-over.
    Planned,
    /// The machine loses its power.
    Killed,
}

/// Two resolvers: the first has the URL of all servers, and the second that of a pooler, which the
/// test leads to the primary as an operator's script would.
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

    /// Starts a load on each resolver.
    fn loads(&self) -> [Running; 2] {
        [0, 1].map(|number| {
            let load = Load::on(&self.resolvers[number..=number]).clients(CLIENTS).creates(usize::MAX);
            load.per_second(200).retries_unavailable().start()
        })
    }

    /// Makes another server the primary, and waits until the platform and then all servers are
    /// back.
    #[expect(clippy::print_stdout, reason = "the times belong to the result of the test")]
    async fn fail_over(&mut self, end: End, running: &mut [Running; 2]) {
        let before = self.patroni.primary().await.unwrap();
        // A link of each resolver, which the other one has not cached and all servers have.
        let mut cold = Vec::new();
        for number in [0, 1] {
            cold.extend(self.created_on(number, 1).await);
        }
        self.patroni.wait_replicated(before).await.unwrap();
        let began = Instant::now();
        match end {
            End::Planned => self.patroni.switch_over(before).await.unwrap(),
            End::Killed => self.patroni.kill(before).await.unwrap(),
        }
        let next = self.patroni.next_primary(before).await.unwrap();
        let new = Instant::now();
        self.pooler.lead_to(self.patroni.addr(next)).unwrap();
        let lead_on = async || checks::unresolved(&cold, &self.resolvers).await.unwrap().is_empty();
        wait::until(SOON, "cold links lead on", lead_on).await.unwrap();
        let redirects = new.elapsed();
        for load in running {
            // Each client has at most one create under way, so some of these are later ones.
            load.reaches(load.acknowledged() + 5 * CLIENTS, SOON).await.unwrap();
        }
        let (away, creates) = (new - began, new.elapsed());
        println!(
            "{end:?}: a new primary after {away:?}, cold redirects {redirects:?} and creates {creates:?} later"
        );
        match end {
            End::Planned => self.patroni.wait_whole().await.unwrap(),
            End::Killed => self.patroni.restart(before).await.unwrap(),
        }
    }

    /// Creates links on one resolver.
    async fn created_on(&self, number: usize, count: usize) -> Vec<Acknowledged> {
        let load = Load::on(&self.resolvers[number..=number]).clients(1).creates(count);
        let links = load.retries_unavailable().run().await.unwrap();
        links.into_iter().map(|link| Acknowledged { created_on: number, ..link }).collect()
    }
}

/// Ends loads, and returns their links.
async fn finished(running: [Running; 2]) -> Vec<Acknowledged> {
    let mut all = Vec::new();
    for (created_on, load) in running.into_iter().enumerate() {
        load.wind_down();
        let links = load.finish().await.unwrap();
        all.extend(links.into_iter().map(|link| Acknowledged { created_on, ..link }));
    }
    all
}

/// Runs fail-overs of both kinds. Whatever was acknowledged is there afterwards.
async fn nothing_is_lost(rounds: usize) {
    let mut platform = Platform::start(Replication::Synchronous).await;
    let mut running = platform.loads();
    for _ in 0..rounds {
        for end in [End::Planned, End::Killed] {
            platform.fail_over(end, &mut running).await;
        }
    }
    let links = finished(running).await;
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
        let mut running = platform.loads();
        platform.fail_over(End::Killed, &mut running).await;
        all.extend(finished(running).await);
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
    async fn twenty_primaries_of_asynchronous_standbys_are_killed() {
        no_code_is_minted_again(20).await;
    }
}
