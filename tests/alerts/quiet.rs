//! Intended actions of an operator, during which no alert fires at all.

use std::time::Duration;

use futures_util::{FutureExt as _, future::LocalBoxFuture};
use tokio::time::{Instant, sleep};

use crate::stage::{Setup, Stage};

const SOON: Duration = Duration::from_secs(60);
/// How long the alerts are watched afterwards: with a factor of 12, longer than a rule for a
/// quarter of an hour waits.
const WATCHED: Duration = Duration::from_secs(100);
/// How long a Deployment waits between two pods.
const BETWEEN: Duration = Duration::from_secs(3);

/// Something that is done on purpose.
type Act = for<'a> fn(&'a mut Stage) -> LocalBoxFuture<'a, anyhow::Result<()>>;

const ACTS: [(&str, Act); 4] = [
    ("rolling restart of issuers and resolvers", |stage| roll(stage).boxed_local()),
    ("scale-up and scale-down of resolvers", |stage| scale(stage).boxed_local()),
    ("restart of Postgres", |stage| restart_postgres(stage).boxed_local()),
    ("restart of each member of etcd", |stage| restart_etcd(stage).boxed_local()),
];

/// The alerts during an intended action.
pub(crate) struct Calm {
    pub(crate) what: &'static str,
    pub(crate) watched: Duration,
    /// The alerts that fired, although they should not.
    pub(crate) fired: Vec<String>,
}

/// Does each of it, and watches all alerts.
///
/// # Errors
/// Returns an error if a server does not start again.
pub(crate) async fn run(factor: u32, tell: &dyn Fn(&str)) -> anyhow::Result<Vec<Calm>> {
    let mut stage = Stage::start(Setup::default(), factor).await?;
    let mut calms = Vec::new();
    for (what, act) in ACTS {
        tell(what);
        let begin = Instant::now();
        act(&mut stage).await?;
        sleep(WATCHED).await;
        let spans = stage.watcher.spans().into_iter().filter(|span| span.from >= begin);
        let fired = spans.map(|span| format!("{} ({})", span.name.alert, span.name.severity)).collect();
        calms.push(Calm { what, watched: begin.elapsed(), fired });
    }
    Ok(calms)
}

async fn roll(stage: &mut Stage) -> anyhow::Result<()> {
    for issuer in &mut stage.cluster.issuers {
        issuer.stop(SOON).await?;
        issuer.restart().await?;
        sleep(BETWEEN).await;
    }
    for resolver in &mut stage.cluster.resolvers {
        resolver.stop(SOON).await?;
        resolver.restart().await?;
        sleep(BETWEEN).await;
    }
    Ok(())
}

async fn scale(stage: &mut Stage) -> anyhow::Result<()> {
    let builder = stage.resolver("resolver-2")?;
    stage.add_resolver(builder).await?;
    stage.are_scraped().await?;
    sleep(BETWEEN).await;
    if let Some(mut last) = stage.cluster.resolvers.pop() {
        stage.scrape()?;
        last.stop(SOON).await?;
    }
    Ok(())
}

async fn restart_postgres(stage: &mut Stage) -> anyhow::Result<()> {
    stage.cluster.postgres.restart().await
}

async fn restart_etcd(stage: &mut Stage) -> anyhow::Result<()> {
    for member in 0..stage.cluster.etcd.members().len() {
        stage.cluster.etcd.members_mut()[member].restart()?;
        stage.cluster.etcd.wait_ready().await?;
        sleep(BETWEEN).await;
    }
    Ok(())
}
