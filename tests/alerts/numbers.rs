//! Alerts on numbers: what is left, and whether resolvers get more.

use std::time::Duration;

use anyhow::Context as _;
use futures_util::future::try_join_all;
use harness::{Load, Proxy};
use proto::issuer::v1::{NamespaceSpec, RegisterRequest, issuer_client::IssuerClient};
use serde_json::{Value, json};

use crate::{
    case::Case,
    run::Part,
    stage::{Setup, Stage},
};

const SOON: Duration = Duration::from_secs(60);
/// A keyspace of 3,844 codes; the other one serves the traffic.
const SMALL: &str = "default=6:0-9A-Za-z,small=3:7";
/// Links that use up more than nine tenths of it.
const MOST_OF_IT: usize = 3_600;
/// Creates that wait for their answers at once.
const AT_ONCE: usize = 60;
/// The ledger's record of keyspaces and their accounts.
const HEAD: &str = "/shortmint/default/head";

/// Returns the parts with the usual keyspace, with a small one, and with a damaged ledger.
pub(crate) fn parts() -> Vec<Part> {
    let usual = vec![
        Case::ticket("ShortmintSupplyLow", "issuers out of reach, and a burst of creates", supply)
            .beside(&["ShortmintSupplyEmpty", "ShortmintIssuerUnreachable"]),
        Case::page("ShortmintSupplyEmpty", "issuers out of reach, and a burst of creates", supply)
            .beside(&["ShortmintIssuerUnreachable", "ShortmintCreateErrorBudgetBurn"]),
        Case::page("ShortmintIssuerUnreachable", "the issuers' ports closed", unreachable),
        Case::ticket("ShortmintHoldersMissing", "one resolver cut off from the issuers", holder)
            .beside(&["ShortmintIssuerUnreachable"]),
        // The last one, because a ledger never takes a capacity back.
        Case::ticket(
            "ShortmintRefillsFailing",
            "another program has raised the keyspace's capacity",
            refused,
        )
        .beside(&["ShortmintSupplyEmpty"]),
    ];
    let small = vec![
        Case::ticket("ShortmintNumbersLow", "a keyspace of 3,844 codes used up to a tenth", use_up)
            .beside(&["ShortmintNumbersExhaustion"]),
    ];
    let at_its_end =
        vec![Case::page("ShortmintNumbersExhaustion", "a keyspace that lasts minutes at its rate", use_up)];
    let restored = vec![
        Case::page("ShortmintBlocksOverlapping", "etcd restored from a backup", restore)
            .beside(&["ShortmintNoLeader", "ShortmintSupplyEmpty"]),
    ];
    let damaged = vec![
        Case::page(
            "ShortmintNumbersUnaccounted",
            "an account of the ledger changed by hand (needs --release)",
            damage,
        )
        .beside(&["ShortmintNoLeader"]),
    ];
    let (keyspaces, blocks) = (SMALL, &["--block-min", "100", "--block-max", "100"]);
    vec![
        Part { name: "numbers", faster: 1, setup: Setup::default(), cases: usual },
        Part {
            name: "a small keyspace",
            faster: 2,
            setup: Setup { keyspaces, issuer_args: blocks, ..Setup::default() },
            cases: small,
        },
        Part {
            name: "a keyspace at its end",
            faster: 2,
            setup: Setup { keyspaces, issuer_args: blocks, ..Setup::default() },
            cases: at_its_end,
        },
        Part {
            name: "a restored ledger",
            faster: 1,
            setup: Setup { issuer_args: blocks, ..Setup::default() },
            cases: restored,
        },
        Part { name: "a damaged ledger", faster: 1, setup: Setup::default(), cases: damaged },
    ]
}

async fn close_issuers(stage: &Stage) {
    for proxy in &stage.cluster.issuer_proxies {
        proxy.refuse().await;
        proxy.reset_all();
    }
}

async fn open_issuers(stage: &Stage) -> anyhow::Result<()> {
    for proxy in &stage.cluster.issuer_proxies {
        proxy.accept().await?;
    }
    Ok(())
}

async fn supply(stage: &mut Stage) -> anyhow::Result<()> {
    close_issuers(stage).await;
    let load = Load::on(&stage.cluster.resolvers).creates(usize::MAX).retries_unavailable().start();
    stage.fires().await;
    open_issuers(stage).await?;
    load.wind_down();
    load.end().await.map(drop)
}

async fn unreachable(stage: &mut Stage) -> anyhow::Result<()> {
    close_issuers(stage).await;
    stage.fires().await;
    open_issuers(stage).await
}

/// The issuer refuses to register a keyspace that is smaller than it was.
async fn refused(stage: &mut Stage) -> anyhow::Result<()> {
    raise(stage, "default", 1 << 47).await?;
    let builder = stage.resolver("refused")?.args(["--start-deadline", "5s"]);
    stage.add_resolver(builder).await?;
    stage.fires().await;
    stage.remove_resolver().await
}

/// Raises the capacity of a keyspace, as no resolver with the same definition does.
async fn raise(stage: &mut Stage, keyspace: &str, capacity: u64) -> anyhow::Result<()> {
    let leader = stage.cluster.wait_leader(SOON).await?;
    let mut issuer = IssuerClient::connect(stage.cluster.issuers[leader].url()).await?;
    let register = RegisterRequest {
        holder: "another".to_owned(),
        instance: "1".to_owned(),
        namespaces: vec![NamespaceSpec { name: keyspace.to_owned(), capacity }],
        reserved: false,
    };
    issuer.register(register).await?;
    Ok(())
}

async fn holder(stage: &mut Stage) -> anyhow::Result<()> {
    let leader = stage.cluster.wait_leader(SOON).await?;
    let cut = Proxy::start(stage.cluster.issuers[leader].listen()).await?;
    let builder = stage.resolver("cut-off")?.issuers([cut.url()]);
    stage.add_resolver(builder).await?;
    stage.are_scraped().await?;
    stage.strikes();
    cut.refuse().await;
    cut.reset_all();
    stage.fires().await;
    stage.remove_resolver().await
}

async fn use_up(stage: &mut Stage) -> anyhow::Result<()> {
    let api = &stage.cluster.resolvers[0].api;
    let link = json!({ "longUrl": "https://example.com/", "keyspace": "small" });
    // A call for many links creates those of another keyspace one by one.
    for _ in 0..MOST_OF_IT / AT_ONCE {
        try_join_all((0..AT_ONCE).map(|_| api.create_with(&link))).await?;
    }
    stage.strikes();
    stage.fires().await;
    raise(stage, "small", 1 << 30).await
}

async fn restore(stage: &mut Stage) -> anyhow::Result<()> {
    let backup = stage.cluster.etcd.save_snapshot().await?;
    Load::on(&stage.cluster.resolvers).creates(3_000).run().await?;
    stage.cluster.etcd.restore_snapshot(&backup).await?;
    stage.strikes();
    Load::on(&stage.cluster.resolvers).creates(3_000).retries_unavailable().run().await?;
    stage.fires().await;
    Ok(())
}

async fn damage(stage: &mut Stage) -> anyhow::Result<()> {
    miscount(stage, 1_000).await?;
    stage.fires().await;
    miscount(stage, -1_000).await
}

/// Adds to the numbers that the ledger calls burned, by hand.
async fn miscount(stage: &Stage, by: i64) -> anyhow::Result<()> {
    let head = stage.cluster.etcd.get_prefix(HEAD).await?;
    let (key, head) = head.first().context("the ledger has a head")?;
    let mut head: Value = serde_json::from_str(head)?;
    let burned = &mut head["namespaces"]["default"]["account"]["burned"];
    *burned = json!(burned.as_i64().context("the keyspace has an account")? + by);
    stage.cluster.etcd.put(key, &head.to_string()).await?;
    change_leader(stage).await
}

/// Lets another leader read the ledger.
async fn change_leader(stage: &Stage) -> anyhow::Result<()> {
    for lease in stage.cluster.etcd.leases().await? {
        stage.cluster.etcd.revoke_lease(lease).await?;
    }
    Ok(())
}
