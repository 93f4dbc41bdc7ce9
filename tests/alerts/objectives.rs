//! Alerts on the objectives: redirects and creates that fail or are slow.

use std::time::Duration;

use harness::{Flow, Proxy};
use tokio::time::interval;

use crate::{
    case::Case,
    run::Part,
    stage::{Setup, Stage},
    traffic,
};

const POSTGRES_AWAY: &[&str] =
    &["ShortmintDatabaseUnreachable", "ShortmintRedirectErrorBudgetBurn", "ShortmintCreateErrorBudgetBurn"];
/// Links that one resolver looks up, each once.
const LOOKED_UP: usize = 2_000;
/// The time between two requests that fail: below one of the hundred requests a second of the
/// traffic in a hundred, and above one in a thousand.
const RARELY: Duration = Duration::from_millis(2_200);

/// Returns the part.
pub(crate) fn parts() -> Vec<Part> {
    let cases = vec![
        Case::ticket(
            "ShortmintRedirectErrorBudgetBurn",
            "0.5 % of the redirects fail",
            async |s: &mut Stage| rarely(s, Kind::Redirect).await,
        )
        .beside(POSTGRES_AWAY),
        // Before the pages, whose outages spend the budgets of days.
        Case::ticket(
            "ShortmintCreateErrorBudgetBurn",
            "a twentieth of the creates fails",
            async |s: &mut Stage| rarely(s, Kind::Create).await,
        )
        .beside(POSTGRES_AWAY),
        Case::page("ShortmintRedirectErrorBudgetBurn", "Postgres refuses connections", away)
            .beside(POSTGRES_AWAY),
        Case::page("ShortmintCreateErrorBudgetBurn", "Postgres refuses connections", away)
            .beside(POSTGRES_AWAY),
        Case::ticket(
            "ShortmintRedirectLatencyBudgetBurn",
            "each call to Postgres takes 100 ms longer",
            async |s: &mut Stage| slow(s, Duration::from_millis(50)).await,
        ),
    ];
    // Apart, because its window is longer than anybody would wait between two cases.
    let creates = vec![Case::ticket(
        "ShortmintCreateLatencyBudgetBurn",
        "each call to Postgres takes 300 ms longer",
        async |s: &mut Stage| slow(s, Duration::from_millis(150)).await,
    )];
    vec![
        Part { name: "objectives", faster: 2, setup: Setup::default(), cases },
        Part { name: "the latency of creates", faster: 2, setup: Setup::default(), cases: creates },
    ]
}

/// The kind of request that fails rarely.
#[derive(Clone, Copy)]
enum Kind {
    Redirect,
    Create,
}

/// Sends a small share of the requests to a resolver without a database.
async fn rarely(stage: &mut Stage, kind: Kind) -> anyhow::Result<()> {
    let codes = traffic::create(&stage.cluster.resolvers[0], LOOKED_UP).await?;
    let cut = Proxy::start(stage.cluster.postgres.addr()).await?;
    let primary = stage.cluster.postgres.url_via(&cut);
    let builder = stage.cluster.resolver("cut-off")?.database(&primary);
    let api = stage.add_resolver(builder).await?.api.clone();
    stage.traffic.to(&stage.cluster.resolvers[..2]);
    stage.are_scraped().await?;
    stage.strikes();
    cut.refuse().await;
    cut.reset_all();
    let failing = tokio::spawn(async move {
        let mut ticks = interval(RARELY);
        for code in codes.iter().cycle() {
            ticks.tick().await;
            // Its failure is what is wanted.
            match kind {
                Kind::Redirect => drop(api.follow(code).await),
                Kind::Create => drop(api.try_create("https://example.com/").await),
            }
        }
    });
    stage.fires().await;
    failing.abort();
    stage.remove_resolver().await
}

async fn away(stage: &mut Stage) -> anyhow::Result<()> {
    stage.postgres_proxy().refuse().await;
    stage.postgres_proxy().reset_all();
    stage.fires().await;
    stage.postgres_proxy().accept().await
}

/// Delays each direction.
async fn slow(stage: &mut Stage, by: Duration) -> anyhow::Result<()> {
    let delay = Flow::Delay(by);
    stage.postgres_proxy().set_both(delay);
    stage.standby_proxy.set_both(delay);
    stage.fires().await;
    stage.postgres_proxy().set_both(Flow::Pass);
    stage.standby_proxy.set_both(Flow::Pass);
    Ok(())
}
