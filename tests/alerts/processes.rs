//! Alerts on the processes: whether they run, and what they refuse.

use std::{
    net::Ipv4Addr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use harness::{Authority, Connection, ErrorOutput, Flow, SecretFolder, net};
use tokio::{
    net::{TcpSocket, TcpStream},
    task::JoinSet,
    time::sleep,
};

use crate::{
    case::Case,
    run::Part,
    server::Server,
    stage::{Setup, Stage},
};

/// Open files of a resolver with few, and connections that use them up.
const DESCRIPTORS: u32 = 92;
const IDLE: u8 = 150;
/// Connections of one client that wait for answers, where it may have fewer.
const BUSY: usize = 40;
/// Connections of a client that guesses codes, and the pause of each after an answer.
const GUESSERS: usize = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// Returns the part.
pub(crate) fn parts() -> Vec<Part> {
    let cases = vec![
        Case::ticket(
            "ShortmintPodsMissing",
            "an issuer in a crash loop, each time at another address",
            crash_loop,
        ),
        Case::page("ShortmintResolverRedundancyLost", "all resolvers killed", async |s: &mut Stage| {
            lost(s, 0).await
        }),
        Case::ticket(
            "ShortmintResolverRedundancyLost",
            "all resolvers but one killed",
            async |s: &mut Stage| lost(s, 1).await,
        ),
        Case::ticket("ShortmintRestarting", "a resolver killed and started four times", restarting),
        Case::ticket("ShortmintAutoscalerAtMaximum", "an autoscaler with all of its pods", autoscaler),
        Case::ticket("ShortmintBackupMissed", "a backup that succeeded long ago", backup),
        Case::ticket("ShortmintVolumeFull", "a volume with a tenth left", volume),
        Case::ticket(
            "ShortmintDescriptorsNearLimit",
            "idle connections to a resolver with 92 files",
            descriptors,
        ),
        Case::ticket("ShortmintConnectionsRefused", "one client holds all of its connections busy", refused)
            .beside(&["ShortmintDatabaseUnreachable"]),
        Case::ticket("ShortmintUnavailableAnswers", "one resolver cut off from Postgres", unavailable)
            .beside(&[
                "ShortmintDatabaseUnreachable",
                "ShortmintRedirectErrorBudgetBurn",
                "ShortmintCreateErrorBudgetBurn",
            ]),
        Case::ticket("ShortmintVisitorsRefused", "a client guesses codes", guessing),
        Case::ticket("ShortmintSeveralVersions", "a target that shows another version", versions),
        Case::ticket("ShortmintLogLinesDropped", "a log that is never read", logs),
        Case::ticket("ShortmintCertificateExpiring", "a certificate for ten days", async |s: &mut Stage| {
            certificate(s, 10).await
        }),
        Case::page("ShortmintCertificateExpiring", "a certificate for two days", async |s: &mut Stage| {
            certificate(s, 2).await
        }),
    ];
    vec![Part { name: "processes", faster: 1, setup: Setup::default(), cases }]
}

/// A pod that never gets ready has an address at which nothing answers, and another one after each
/// crash.
async fn crash_loop(stage: &mut Stage) -> anyhow::Result<()> {
    let mut issuer = stage.cluster.issuers.pop();
    while stage.is_awaited() {
        stage.others = vec![("issuer", format!("http://{}", net::free_addr()?))];
        stage.scrape()?;
        drop(issuer.take());
        sleep(Duration::from_secs(10)).await;
    }
    stage.others.clear();
    stage.cluster.issuer_proxies.pop();
    stage.add_issuer("issuer-again").await.map(drop)
}

async fn lost(stage: &mut Stage, left: usize) -> anyhow::Result<()> {
    for resolver in &mut stage.cluster.resolvers[left..] {
        resolver.process.kill_now()?;
    }
    stage.fires().await;
    for resolver in &mut stage.cluster.resolvers[left..] {
        resolver.restart().await?;
    }
    Ok(())
}

async fn restarting(stage: &mut Stage) -> anyhow::Result<()> {
    for _ in 0..4 {
        stage.cluster.resolvers[1].restart().await?;
        // At least one scrape sees each start.
        sleep(Duration::from_secs(3)).await;
    }
    stage.fires().await;
    Ok(())
}

/// Lets Kubernetes tell of a fault until the alert fires, and then of its end.
async fn told(stage: &Stage, fault: &str, end: &str) -> anyhow::Result<()> {
    stage.kubernetes.answers(200, fault);
    stage.fires().await;
    stage.kubernetes.answers(200, end);
    Ok(())
}

async fn autoscaler(stage: &mut Stage) -> anyhow::Result<()> {
    let labels = "{namespace=\"shortmint\",horizontalpodautoscaler=\"resolver\"}";
    let page = |pods: u32| {
        format!(
            "kube_horizontalpodautoscaler_status_current_replicas{labels} {pods}\n\
             kube_horizontalpodautoscaler_spec_max_replicas{labels} 6\n"
        )
    };
    told(stage, &page(6), &page(3)).await
}

async fn backup(stage: &mut Stage) -> anyhow::Result<()> {
    let labels = "{namespace=\"shortmint\",cronjob=\"backup\"}";
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let page = |at: u64| format!("kube_cronjob_status_last_successful_time{labels} {at}\n");
    told(stage, &page(now - 4 * 3_600), &page(now)).await
}

async fn volume(stage: &mut Stage) -> anyhow::Result<()> {
    let labels = "{namespace=\"shortmint\",persistentvolumeclaim=\"data-postgres-0\"}";
    let page = |left: u32| {
        format!(
            "kubelet_volume_stats_available_bytes{labels} {left}\nkubelet_volume_stats_capacity_bytes{labels} 100\n"
        )
    };
    told(stage, &page(10), &page(50)).await
}

async fn descriptors(stage: &mut Stage) -> anyhow::Result<()> {
    let builder = stage.resolver("few-files")?.descriptors(DESCRIPTORS);
    let to = builder.listen();
    stage.add_resolver(builder).await?;
    let mut idle: Vec<TcpStream> = Vec::new();
    while stage.is_awaited() {
        idle.retain(|stream| matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock));
        for client in idle.len()..usize::from(IDLE) {
            let socket = TcpSocket::new_v4()?;
            socket.bind((Ipv4Addr::new(127, 200, 0, 1 + u8::try_from(client % 200)?), 0).into())?;
            idle.extend(socket.connect(to).await.ok());
        }
        sleep(Duration::from_secs(1)).await;
    }
    drop(idle);
    stage.remove_resolver().await
}

async fn refused(stage: &mut Stage) -> anyhow::Result<()> {
    let cut = harness::Proxy::start(stage.cluster.postgres.addr()).await?;
    let builder = stage.resolver("busy")?.database(&stage.cluster.postgres.url_via(&cut));
    let builder = builder.args(["--limit", "connections-per-client=20"]);
    let to = builder.listen();
    stage.add_resolver(builder).await?;
    stage.strikes();
    // Connections that wait for the database are busy, so that none of the client's can be ended.
    cut.set_both(Flow::Stall);
    while stage.is_awaited() {
        let mut busy = Vec::new();
        for number in 0..BUSY {
            let Ok(mut connection) = Connection::open(to).await else { continue };
            let path = format!("/{}", stage.cluster.api_key[..6].to_owned() + &number.to_string());
            busy.push(tokio::spawn(async move { connection.get(&path).await.is_ok() }));
        }
        sleep(Duration::from_secs(2)).await;
        busy.iter().for_each(tokio::task::JoinHandle::abort);
    }
    cut.set_both(Flow::Pass);
    stage.remove_resolver().await
}

async fn unavailable(stage: &mut Stage) -> anyhow::Result<()> {
    let cut = harness::Proxy::start(stage.cluster.postgres.addr()).await?;
    let builder = stage.resolver("cut-off")?.database(&stage.cluster.postgres.url_via(&cut));
    stage.add_resolver(builder).await?;
    stage.are_scraped().await?;
    stage.strikes();
    cut.refuse().await;
    cut.reset_all();
    stage.fires().await;
    stage.remove_resolver().await
}

async fn guessing(stage: &mut Stage) -> anyhow::Result<()> {
    let api = stage.cluster.resolvers[0].api.clone();
    let mut guesses = JoinSet::new();
    for first in 0..GUESSERS {
        let api = api.clone();
        guesses.spawn(async move {
            for number in (first..).step_by(GUESSERS) {
                // A refusal is what is wanted.
                let _ = api.get(&format!("z{:05}", number % 100_000)).await;
                sleep(PAUSE).await;
            }
        });
    }
    stage.fires().await;
    guesses.shutdown().await;
    Ok(())
}

async fn versions(stage: &mut Stage) -> anyhow::Result<()> {
    let other = Server::start(200).await?;
    other.answers(200, "resolver_build_info{version=\"0.0.0\",role=\"all\"} 1\n");
    stage.others = vec![("resolver", format!("http://{}", other.addr))];
    stage.scrape()?;
    stage.fires().await;
    stage.others.clear();
    stage.scrape()
}

async fn logs(stage: &mut Stage) -> anyhow::Result<()> {
    let builder = stage.resolver("mute")?.error_output(ErrorOutput::Unread).env("RUST_LOG", "trace");
    stage.add_resolver(builder).await?;
    stage.fires().await;
    stage.remove_resolver().await
}

async fn certificate(stage: &mut Stage, days: i64) -> anyhow::Result<()> {
    let authority = Authority::new("public")?;
    let name = net::address().to_string();
    let path = stage.cluster.scratch.path().join(stage.cluster.scratch.stem("public"));
    let pair = authority.issue_for_days(&[&name], days)?;
    let files = SecretFolder::create(path, authority.pem(), &pair)?;
    let args = ["--tls", &files.entries(&["cert", "key"])];
    let builder = stage.resolver("secured")?.args(args);
    let url = format!("https://{}", builder.listen());
    stage.add_resolver(builder.public_url(&url)).await?;
    stage.fires().await;
    files.replace(authority.pem(), &authority.issue_for_days(&[&name], 90)?)?;
    stage.clears().await;
    stage.remove_resolver().await
}
