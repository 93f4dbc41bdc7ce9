//! Acknowledged links under repeated immediate stops of Postgres, and repeated kills of a backend,
//! at full speed.
//!
//! 1. Bulk calls and single creates run all the time, on a Postgres with default settings. Each URL
//!    contains a number, so stored and acknowledged links are compared one by one.
//! 2. A response that breaks off acknowledges its complete lines.
//! 3. After each blow the load runs until links are acknowledged again, and then for a random time,
//!    so that blows fall at any point of a commit.

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

/// The common prefix of all URLs; a number follows.
const URL: &str = "https://example.org/some/where/";
/// The time limit for links to be acknowledged again after a blow.
const RECOVERY_WITHIN: Duration = Duration::from_secs(60);
/// The pause of a client after a refusal.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest time between recovery and the next blow, in milliseconds.
const BETWEEN_MAX_MS: u64 = 400;
/// The time limit for one response.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// The flags of `bench losses`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Stop Postgres immediately (SIGQUIT) this many times, and kill a backend (SIGKILL) as many
    /// times.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    blows: u32,
    /// Make this many bulk calls concurrently.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=4))]
    calls: u32,
    /// Create this many links per bulk call.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    links: u64,
    /// Create links one by one with this many clients.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(0..))]
    clients: u32,
}

/// The faults inflicted on Postgres.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blow {
    ImmediateStop,
    KilledBackend,
}

/// The result for one kind of blow.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    blows: u32,
    by_bulk: u64,
    singly: u64,
    lost: u64,
    /// Codes given to two links.
    twice: u64,
}

/// The acknowledgements that the clients received.
#[derive(Debug, Default)]
struct Told {
    /// The numbers of the acknowledged URLs.
    numbers: HashSet<u64>,
    codes: HashSet<Box<str>>,
    by_bulk: u64,
    singly: u64,
    twice: u64,
}

/// The state shared by the load's tasks.
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

    /// Records an acknowledgement: the create of the URL with this number received this code.
    fn note(&self, number: u64, code: &str, by_bulk: bool) {
        let mut told = self.told();
        told.numbers.insert(number);
        told.twice += u64::from(!told.codes.insert(code.into()));
        *(if by_bulk { &mut told.by_bulk } else { &mut told.singly }) += 1;
    }
}

/// Starts the servers, runs the load with blows, and compares.
///
/// # Errors
/// Returns an error if a server does not start or does not recover.
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

/// Makes bulk calls, one after another.
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

/// Creates links one by one.
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

/// Returns the numbers of all stored URLs.
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
