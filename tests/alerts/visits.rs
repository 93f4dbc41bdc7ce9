//! Alerts on the way of visits into the store, and on webhooks.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::Context as _;
use harness::{Answer, Flow, Pipeline, Proxy, Resolver};
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_postgres::Client;
use visit_store::{PostgresVisits, SpoolId, VisitStore as _};

use crate::{
    case::Case,
    run::Part,
    stage::{Setup, Stage},
    traffic,
};

/// Slots of producers that there are.
const SLOTS: u128 = 128;
/// Visits of a kilobyte each with which a spool of the smallest size is more than 60 % full.
const MANY: usize = 55_000;
/// Visits that wait in a spool for a moment.
const SOME: usize = 5_000;
/// How long visits wait before their process ends: longer than the least age that a rule has here.
const WAITED: Duration = Duration::from_secs(30);
/// Deliveries that a webhook may have open, and more of them.
const TOO_MANY: usize = 10_500;
/// Keeps all visits from being stored, and nothing else.
const HOLD: &str = "BEGIN; LOCK TABLE visit_producer IN ACCESS EXCLUSIVE MODE";

/// Returns the part.
pub(crate) fn parts() -> Vec<Part> {
    let visits = vec![
        Case::ticket("ShortmintVisitsDropped", "the spool's disk full", dropped),
        Case::ticket("ShortmintVisitsFenced", "a process stopped (SIGSTOP), and its spool moved", fenced),
        Case::ticket("ShortmintVisitsNotStored", "a lock on the table of producers", held),
        Case::ticket("ShortmintVisitSlotsExhausted", "all 128 slots taken", slots),
        Case::page("ShortmintVisitSpoolLarge", "55,000 visits of a kilobyte that cannot be stored", large),
        Case::ticket("ShortmintVisitSpoolFaulty", "bytes of a spool overwritten", faulty),
        Case::ticket("ShortmintVisitsLeftBehind", "a resolver ended while its visits wait", left_behind),
        Case::ticket("ShortmintVisitRowsWaiting", "ClickHouse stopped (SIGSTOP)", rows_waiting),
    ];
    let webhooks = vec![
        Case::ticket("ShortmintWebhooksDisabled", "a receiver that answers 410", gone),
        Case::ticket("ShortmintWebhooksOverdue", "a receiver that hangs, and 10,500 events", hanging),
        Case::ticket(
            "ShortmintWebhookDeliveriesDropped",
            "a receiver that hangs, and 10,500 events",
            hanging,
        ),
    ];
    let upkeep =
        vec![Case::ticket("ShortmintVisitDaysOpen", "the lock of the upkeep held for days", days_open)];
    vec![
        Part { name: "upkeep", faster: 4, setup: Setup::default(), cases: upkeep },
        Part { name: "visits", faster: 1, setup: Setup::default(), cases: visits },
        Part { name: "webhooks", faster: 1, setup: Setup::default(), cases: webhooks },
    ]
}

/// Adds a resolver whose spool is in this folder, and returns a link to follow there.
async fn with_spool(stage: &mut Stage, holder: &str, spool: &Path) -> anyhow::Result<String> {
    let builder = stage.resolver_with(holder, spool)?.args(["--limit", "visits-spool-mib=64"]);
    let resolver = stage.add_resolver(builder).await?;
    let code = resolver.api.create("https://example.com/").await?.code;
    stage.are_scraped().await?;
    stage.strikes();
    Ok(code)
}

/// Keeps visits from being stored until the connection ends.
///
/// # Errors
/// Returns an error if the lock cannot be taken.
pub(crate) async fn hold(stage: &Stage) -> anyhow::Result<Client> {
    let client = stage.cluster.postgres.client().await?;
    client.batch_execute(HOLD).await.context("lock the table of producers")?;
    Ok(client)
}

async fn visit(resolver: &Resolver, code: &str, count: usize) -> anyhow::Result<()> {
    Pipeline::connect(resolver.addr(), code).await?.follow(count).await
}

fn last(stage: &Stage) -> anyhow::Result<&Resolver> {
    stage.cluster.resolvers.last().context("the resolver just added")
}

/// A small file system in memory, which only root can make.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn new(path: PathBuf) -> anyhow::Result<Self> {
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(&path).status();
        anyhow::ensure!(mount.context("run mount")?.success(), "this case mounts a tmpfs: run it as root");
        Ok(Self(path))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Its files are still open if the case failed.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

async fn dropped(stage: &mut Stage) -> anyhow::Result<()> {
    let disk = SmallDisk::new(stage.cluster.scratch.folder("small-disk")?)?;
    let code = with_spool(stage, "full-disk", &disk.0).await?;
    let junk = disk.0.join("junk");
    // It ends with an error once the disk is full.
    let _ = fs::write(&junk, vec![1; 16 << 20]);
    let held = hold(stage).await?;
    visit(last(stage)?, &code, SOME).await?;
    stage.fires().await;
    drop(held);
    fs::remove_file(junk).context("free the disk")?;
    stage.remove_resolver().await
}

/// As a node that was taken for dead: another one has its volume, and it comes back.
async fn fenced(stage: &mut Stage) -> anyhow::Result<()> {
    let spool = stage.cluster.scratch.folder("stalled")?;
    let code = with_spool(stage, "stalled", &spool).await?;
    let stalled = stage.cluster.resolvers.last_mut().context("the resolver just added")?;
    visit(stalled, &code, SOME).await?;
    sleep(Duration::from_secs(3)).await;
    stalled.process.pause().await?;
    let moved = stage.cluster.scratch.folder("moved")?;
    for file in fs::read_dir(&spool).context("read the spool")? {
        let file = file?;
        fs::copy(file.path(), moved.join(file.file_name())).context("move the spool")?;
    }
    let other = stage.resolver_with("moved", &moved)?.start().await?;
    visit(&other, &code, SOME).await?;
    sleep(Duration::from_secs(3)).await;
    let stalled = stage.cluster.resolvers.last_mut().context("the resolver just added")?;
    stalled.process.resume()?;
    visit(stalled, &code, SOME).await?;
    stage.fires().await;
    stage.remove_resolver().await
}

async fn held(stage: &mut Stage) -> anyhow::Result<()> {
    let held = hold(stage).await?;
    stage.fires().await;
    drop(held);
    Ok(())
}

async fn slots(stage: &mut Stage) -> anyhow::Result<()> {
    let store = PostgresVisits::new(&stage.cluster.postgres.url())?;
    for pod in 0..SLOTS {
        // The resolvers that run have some of the slots.
        let _ = store.register(SpoolId(1 << 64 | pod), "a pod").await;
    }
    let spool = stage.cluster.scratch.folder("without-slot")?;
    let code = with_spool(stage, "without-slot", &spool).await?;
    visit(last(stage)?, &code, 10).await?;
    stage.fires().await;
    stage
        .sql("UPDATE visit_producer SET seen_at = now() - interval '6 minutes' WHERE holder = 'a pod'")
        .await?;
    stage.clears().await;
    stage.remove_resolver().await
}

/// What a visit ten days ago has left, while a process that stands still holds the upkeep's lock.
async fn days_open(stage: &mut Stage) -> anyhow::Result<()> {
    let upkeep = stage.cluster.postgres.client().await?;
    upkeep.batch_execute("SELECT pg_advisory_lock(x'53484f52564d5247'::bigint)").await?;
    stage
        .sql(
            "INSERT INTO visit_day SELECT 1, 1, 0, extract(epoch FROM now())::bigint / 86400 - 10, 1,
                                          0, 0, 1, 0, '', '', '', ''",
        )
        .await?;
    stage.fires().await;
    stage.sql("DELETE FROM visit_day WHERE kind = 1 AND subject = 1").await?;
    stage.clears().await;
    Ok(())
}

async fn large(stage: &mut Stage) -> anyhow::Result<()> {
    let spool = stage.cluster.scratch.folder("large")?;
    let code = with_spool(stage, "large", &spool).await?;
    let held = hold(stage).await?;
    Pipeline::connect(last(stage)?.addr(), &code).await?.follow_from_pages(MANY).await?;
    stage.fires().await;
    drop(held);
    stage.clears().await;
    stage.remove_resolver().await
}

async fn faulty(stage: &mut Stage) -> anyhow::Result<()> {
    let spool = stage.cluster.scratch.folder("faulty")?;
    let code = with_spool(stage, "faulty", &spool).await?;
    let held = hold(stage).await?;
    // More than is read ahead.
    Pipeline::connect(last(stage)?.addr(), &code).await?.follow_from_pages(MANY / 2).await?;
    sleep(Duration::from_secs(2)).await;
    for segment in segments(&spool)? {
        use std::os::unix::fs::FileExt as _;
        let file = fs::OpenOptions::new().write(true).open(&segment).context("open a segment")?;
        for place in (0..file.metadata()?.len()).step_by(64 * 1024) {
            file.write_all_at(&[0xff; 64], place).context("overwrite a segment")?;
        }
    }
    drop(held);
    stage.fires().await;
    stage.remove_resolver().await
}

/// Returns the files of a spool that have visits.
///
/// # Errors
/// Returns an error if the folder cannot be read.
pub(crate) fn segments(spool: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let files = fs::read_dir(spool).with_context(|| format!("read {}", spool.display()))?;
    let files = files.map(|file| Ok(file?.path())).collect::<anyhow::Result<Vec<PathBuf>>>()?;
    let is_segment = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "segment");
    Ok(files.into_iter().filter(is_segment).collect())
}

async fn left_behind(stage: &mut Stage) -> anyhow::Result<()> {
    let spool = stage.cluster.scratch.folder("left-behind")?;
    let code = with_spool(stage, "left-behind", &spool).await?;
    let held = hold(stage).await?;
    visit(last(stage)?, &code, SOME).await?;
    sleep(WAITED).await;
    stage.strikes();
    stage.remove_resolver().await?;
    stage.fires().await;
    drop(held);
    Ok(())
}

async fn rows_waiting(stage: &mut Stage) -> anyhow::Result<()> {
    stage.clickhouse.process_mut().pause().await?;
    stage.fires().await;
    stage.clickhouse.process_mut().resume()
}

/// Creates a webhook for new links, and returns the URL at which it is removed.
async fn add_webhook(stage: &Stage, receiver: std::net::SocketAddr) -> anyhow::Result<String> {
    let api = &stage.cluster.resolvers[0].api;
    let webhooks = format!("{}/rest/v3/webhooks", api.url());
    let body = json!({ "url": format!("http://{receiver}/"), "events": ["link.created"] });
    let call = api.http().post(&webhooks).header("X-Api-Key", api.key()).json(&body);
    let webhook: Value = Answer::to(call).await?.success()?.json()?;
    Ok(format!("{webhooks}/{}", webhook["id"]))
}

async fn remove_webhook(stage: &Stage, url: &str) -> anyhow::Result<()> {
    let api = &stage.cluster.resolvers[0].api;
    Answer::to(api.http().delete(url).header("X-Api-Key", api.key())).await?.success().map(drop)
}

async fn gone(stage: &mut Stage) -> anyhow::Result<()> {
    stage.receiver.answers(410, "");
    let webhook = add_webhook(stage, stage.receiver.addr).await?;
    stage.fires().await;
    stage.receiver.answers(204, "");
    remove_webhook(stage, &webhook).await
}

async fn hanging(stage: &mut Stage) -> anyhow::Result<()> {
    let proxy = Proxy::start(stage.receiver.addr).await?;
    proxy.set_both(Flow::Stall);
    let webhook = add_webhook(stage, proxy.addr()).await?;
    traffic::create(&stage.cluster.resolvers[0], TOO_MANY).await?;
    stage.fires().await;
    remove_webhook(stage, &webhook).await?;
    Ok(())
}
