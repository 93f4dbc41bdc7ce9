//! Visits: the cost of recording one on a listener's thread.
//!
//! 1. Visits go through the resolver's own recorder. Its sink only counts them, on the thread that
//!    writes to the spool in a resolver.
//! 2. They come in bursts, and each burst waits for the last one to be written. So none is dropped,
//!    and the arenas are those that the other core has just read, as in a resolver.
//! 3. The parts take turns in every round.

use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use codes::LinkId;
use daemon::TaskSupervisor;
use links::DomainId;
use lookup::metrics::Metrics;
use recorder::{BlockSink, CaptureRules, Flush, Recorder, RecorderConfig, VisitBuffer};
use serde_json::json;
use tokio::time::Instant;
use visits::{Arena, Event, Outcome};

use crate::{Report, on_runtime, progress, stats::median, table::Table};

/// The number of visits in a burst, which fill two or three arenas.
const BURST: u32 = 500;
/// The pause between two looks at whether a burst was written.
const PAUSE: Duration = Duration::from_micros(100);
/// The longest time that writing a burst may take.
const WRITTEN_WITHIN: Duration = Duration::from_secs(10);

/// The flags of `bench visits record`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Run this many rounds and report the median.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Record this many bursts of 500 visits per part and round.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    bursts: u32,
}

/// Counts visits, and drops them.
#[derive(Default)]
struct Counted(AtomicU64);

impl BlockSink for Counted {
    fn write(&self, block: &[u8], count: u32, _: (i64, i64)) {
        black_box(block);
        self.0.fetch_add(u64::from(count), Ordering::Relaxed);
    }
}

/// Measures and reports.
///
/// # Errors
/// Returns an error if the runtime cannot be started, or if a visit was dropped.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let (mut arena, mut usual, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=args.rounds {
        progress::show(&format!("round {round} of {}", args.rounds));
        arena.push(nanos_of_arena(args.bursts));
        usual.push(on_runtime(nanos_of_buffer(&visit(true), args.bursts))?);
        bare.push(on_runtime(nanos_of_buffer(&visit(false), args.bursts))?);
    }
    progress::clear();
    let parts = [
        ("copied into an arena", median(arena)),
        ("recorded", median(usual)),
        ("recorded, without headers", median(bare)),
    ];
    let mut table = Table::new(&["a visit", "ns"]);
    for (name, nanos) in parts {
        table.row(vec![name.to_owned(), format!("{nanos:.1}")]);
    }
    let text = format!("Visits on one thread; medians of {} rounds in turns.\n\n{table}", args.rounds);
    let json = json!({
        "bench": "visits record",
        "rounds": args.rounds,
        "parts_ns": parts.map(|(name, nanos)| json!({ "part": name, "ns": nanos })),
    });
    Ok(Report { text, json })
}

fn visit(has_headers: bool) -> Event<'static> {
    let header = |text: &'static str| if has_headers { text.as_bytes() } else { &[] };
    Event {
        at: 1_790_000_000_000_000,
        outcome: Outcome::Redirected,
        link: Some(LinkId::from_stored(42)),
        domain: DomainId::DEFAULT,
        rule: 0,
        client: [192, 0, 2, 1].into(),
        country: None,
        is_opted_out: false,
        user_agent: header(
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
             Chrome/142.0.0.0 Safari/537.36",
        ),
        referrer: header("https://www.example.com/articles/2026/11/a-page"),
        languages: header("de-CH,de;q=0.9,en;q=0.8"),
        request: b"",
        target: b"",
    }
}

fn nanos_of_arena(bursts: u32) -> f64 {
    let (mut arena, mut last, visit) = (Arena::default(), 0, visit(true));
    let from = Instant::now();
    for _ in 0..u64::from(bursts) * u64::from(BURST) {
        match arena.push(black_box(&visit), last) {
            Some(at) => last = at,
            None => arena.clear(),
        }
    }
    per_visit(from.elapsed(), bursts)
}

async fn nanos_of_buffer(visit: &Event<'_>, bursts: u32) -> anyhow::Result<f64> {
    let (sink, page) = (Arc::<Counted>::default(), daemon::Recorder::new());
    let supervisor = TaskSupervisor::default();
    let config = RecorderConfig {
        threads: 1,
        flush: Flush::Every(Duration::from_millis(100)),
        rules: CaptureRules::default(),
        sink: sink.clone(),
        seen: Box::new(|_, _| {}),
        metrics: Metrics::new(&page),
    };
    let recorder = Recorder::start(&supervisor, config);
    // Starts the other thread.
    tokio::task::yield_now().await;
    let (buffer, mut taken) = (recorder.buffer(0), Duration::ZERO);
    for burst in 1..=bursts {
        taken += time_of_burst(&buffer, visit);
        buffer.flush();
        let written = || sink.0.load(Ordering::Relaxed) == u64::from(burst) * u64::from(BURST);
        let deadline = Instant::now() + WRITTEN_WITHIN;
        while !written() {
            anyhow::ensure!(Instant::now() < deadline, "a visit was dropped");
            tokio::task::yield_now().await;
            thread::sleep(PAUSE);
        }
    }
    recorder.finish().await;
    Ok(per_visit(taken, bursts))
}

fn time_of_burst(buffer: &VisitBuffer, visit: &Event<'_>) -> Duration {
    let from = Instant::now();
    for _ in 0..BURST {
        buffer.note(black_box(visit));
    }
    from.elapsed()
}

fn per_visit(time: Duration, bursts: u32) -> f64 {
    time.as_secs_f64() * 1e9 / f64::from(bursts) / f64::from(BURST)
}
