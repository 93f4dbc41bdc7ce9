//! Acknowledged links beside a Postgres that is stopped at once, and one of whose backends is killed, again and again at full speed.
//!
//! 1. Bulk calls and single creates run all the time, on Postgres with its default settings. Each URL carries a number, so what is
//!    stored is compared with what was acknowledged, link by link.
//! 2. An answer that breaks off acknowledges the lines that came whole.
//! 3. After each blow the load goes on until links are acknowledged again, then for a random while: blows fall anywhere in a commit.

use std::{
    collections::HashSet,
    fmt::Write as _,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use futures_util::{TryStreamExt as _, future::join_all};
use harness::{Api, Postgres, Resolver, Scratch, migrate, secret, wait};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{Report, progress, table::Table};

/// Every URL is this and a number.
const URL: &str = "https://example.org/some/where/";
/// How long the platform may take to acknowledge links after a blow.
const RECOVERY_WITHIN: Duration = Duration::from_secs(60);
/// How long a client waits after a refusal.
const PAUSE: Duration = Duration::from_millis(20);
/// How long the load lasts between recovery and the next blow, at most, in milliseconds.
const BETWEEN_MAX_MS: u64 = 400;
/// How long one answer may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// How to measure.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Immediate stops (SIGQUIT), and as many kills of one backend (SIGKILL).
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    blows: u32,
    /// Bulk calls at the same time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=4))]
    calls: u32,
    /// Links in a call.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    links: u64,
    /// Clients that create links one by one.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(0..))]
    clients: u32,
}

/// What is done to Postgres.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blow {
    ImmediateStop,
    KilledBackend,
}

/// What came of one kind of blow.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    blows: u32,
    by_bulk: u64,
    singly: u64,
    lost: u64,
    /// Codes that two links were given.
    twice: u64,
}

/// What the clients were told.
#[derive(Debug, Default)]
struct Told {
    /// Numbers of acknowledged URLs.
    numbers: HashSet<u64>,
    codes: HashSet<Box<str>>,
    by_bulk: u64,
    singly: u64,
    twice: u64,
}

/// What the load's tasks share.
#[derive(Debug, Default)]
struct Shared {
    next: AtomicU64,
    is_over: AtomicBool,
    told: Mutex<Told>,
}

impl Shared {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().expect("no code panics while it holds this lock")
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn acknowledged(&self) -> usize {
        self.told().numbers.len()
    }

    /// Takes one answer in: what was asked with this number got this code.
    fn note(&self, number: u64, code: &str, by_bulk: bool) {
        let mut told = self.told();
        told.numbers.insert(number);
        told.twice += u64::from(!told.codes.insert(code.into()));
        *(if by_bulk { &mut told.by_bulk } else { &mut told.singly }) += 1;
    }
}

/// Starts everything, strikes, and compares.
///
/// # Errors
/// A server does not start or does not come back.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let counts = crate::on_runtime(async {
        let mut counts = Vec::new();
        for blow in [Blow::ImmediateStop, Blow::KilledBackend] {
            counts.push((blow, measure(args, blow).await?));
        }
        anyhow::Ok(counts)
    })?;
    Ok(report(args, &counts))
}

async fn measure(args: &Args, blow: Blow) -> anyhow::Result<Count> {
    progress::show("building the resolver and starting the servers …");
    let scratch = Scratch::new()?;
    let mut postgres = Postgres::builder().scratch(&scratch).start().await?;
    migrate(&scratch, &postgres.url()).await?.success()?;
    let key = secret::random_hex()?;
    let resolver = Resolver::builder(&scratch, "resolver", &key)?.database(&postgres.url()).start().await?;
    let shared = Arc::<Shared>::default();
    let mut load = Vec::new();
    for _ in 0..args.calls {
        load.push(tokio::spawn(bulk(Arc::clone(&shared), resolver.api.clone(), args.links)));
    }
    for _ in 0..args.clients {
        load.push(tokio::spawn(single(Arc::clone(&shared), resolver.api.clone())));
    }
    let mut count = Count { blows: args.blows, ..Count::default() };
    for round in 1..=args.blows {
        let before = shared.acknowledged();
        let goes_on = async || shared.acknowledged() > before;
        wait::until(RECOVERY_WITHIN, "links are acknowledged again", goes_on).await?;
        sleep(Duration::from_millis(random_below(BETWEEN_MAX_MS)?)).await;
        progress::show(&format!(
            "{blow:?} {round} of {}: {} acknowledged",
            args.blows,
            shared.acknowledged()
        ));
        match blow {
            Blow::ImmediateStop => {
                postgres.stop_immediately().await?;
                postgres.restart().await?;
            }
            Blow::KilledBackend => postgres.kill_a_backend().await?,
        }
    }
    shared.is_over.store(true, Ordering::Relaxed);
    join_all(load).await.into_iter().collect::<Result<Vec<_>, _>>().context("a client's task failed")?;
    progress::show("comparing …");
    let stored = stored(&postgres).await?;
    let told = shared.told();
    count.lost = u64::try_from(told.numbers.iter().filter(|number| !stored.contains(number)).count())?;
    (count.by_bulk, count.singly, count.twice) = (told.by_bulk, told.singly, told.twice);
    progress::clear();
    Ok(count)
}

/// One bulk call after another.
async fn bulk(shared: Arc<Shared>, api: Api, links: u64) {
    while !shared.is_over() {
        let first = shared.next.fetch_add(links, Ordering::Relaxed);
        let line = |number: u64| format!("{{\"longUrl\":\"{URL}{number}\"}}\n");
        let body: String = (first..first + links).map(line).collect();
        let request = api.http().post(format!("{}/rest/v3/short-urls/bulk", api.url()));
        let request = request.header("X-Api-Key", api.key()).timeout(ANSWER_WITHIN).body(body);
        if let Ok(mut answer) = request.send().await {
            let (mut text, mut number) = (Vec::new(), first);
            while let Ok(Some(piece)) = answer.chunk().await {
                text.extend_from_slice(&piece);
                while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = text.drain(..=end).collect();
                    if let Some(code) = code(&line) {
                        shared.note(number, &code, true);
                    }
                    number += 1;
                }
            }
        }
        sleep(PAUSE).await;
    }
}

/// One link after another.
async fn single(shared: Arc<Shared>, api: Api) {
    while !shared.is_over() {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        match api.try_create(&format!("{URL}{number}")).await {
            Ok(answer) if answer.status == 200 => {
                if let Some(code) = code(answer.body.as_bytes()) {
                    shared.note(number, &code, false);
                }
            }
            _ => sleep(PAUSE).await,
        }
    }
}

fn code(line: &[u8]) -> Option<String> {
    let line: Value = serde_json::from_slice(line).ok()?;
    line["shortCode"].as_str().map(str::to_owned)
}

/// The numbers of all stored URLs.
async fn stored(postgres: &Postgres) -> anyhow::Result<HashSet<u64>> {
    let client = postgres.client().await?;
    let sql = format!("SELECT substr(long_url, {})::bigint FROM link", URL.len() + 1);
    let none: [&(dyn tokio_postgres::types::ToSql + Sync); 0] = [];
    let mut rows = std::pin::pin!(client.query_raw(&sql, none).await?);
    let mut stored = HashSet::new();
    while let Some(row) = rows.try_next().await? {
        stored.insert(u64::try_from(row.try_get::<_, i64>(0)?)?);
    }
    Ok(stored)
}

fn random_below(end: u64) -> anyhow::Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).context("draw a random number")?;
    Ok(u64::from_le_bytes(bytes) % end)
}

fn report(args: &Args, counts: &[(Blow, Count)]) -> Report {
    let mut table =
        Table::new(&["blow", "times", "acknowledged by bulk", "singly", "lost", "codes given twice"]);
    let number = |count: u64| count.to_string();
    for (blow, count) in counts {
        let what = match blow {
            Blow::ImmediateStop => "immediate stop (SIGQUIT)",
            Blow::KilledBackend => "kill -9 of a backend",
        };
        table.row(vec![
            what.to_owned(),
            count.blows.to_string(),
            number(count.by_bulk),
            number(count.singly),
            number(count.lost),
            number(count.twice),
        ]);
    }
    let met = counts.iter().all(|(_, count)| count.lost == 0 && count.twice == 0);
    let mut text = format!(
        "{} bulk calls of {} links and {} clients that create one at a time, all the time.\n\n{table}\n",
        args.calls, args.links, args.clients
    );
    let _ = writeln!(
        text,
        "{}: no acknowledged link is lost, and no code given twice",
        if met { "met" } else { "NOT MET" }
    );
    let rows = counts.iter().map(|(blow, count)| {
        json!({
            "blow": format!("{blow:?}"), "times": count.blows, "bulk": count.by_bulk, "singly": count.singly,
            "lost": count.lost, "twice": count.twice,
        })
    });
    let json = json!({ "bench": "losses", "blows": rows.collect::<Vec<_>>(), "met": met });
    Report { text, json }
}
