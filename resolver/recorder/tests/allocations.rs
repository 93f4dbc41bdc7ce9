//! Recording a visit allocates nothing on the listener's thread, also when arenas are handed over.
//! A test binary of its own, because it counts with its own allocator.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use allocation_counter::measure;
use codes::LinkId;
use daemon::TaskSupervisor;
use links::DomainId;
use lookup::metrics::Metrics;
use recorder::{BlockSink, CaptureRules, Flush, Recorder, RecorderConfig, VisitBuffer};
use visits::{Event, Outcome};

/// Visits of a round: more than one arena takes.
const ROUND: u64 = 500;
const ROUNDS: u64 = 200;

/// Counts the visits that are written.
#[derive(Default)]
struct Written(AtomicU64);

impl BlockSink for Written {
    fn write(&self, _: &[u8], count: u32, _: (i64, i64)) {
        self.0.fetch_add(u64::from(count), Ordering::Relaxed);
    }
}

fn visit() -> Event<'static> {
    Event {
        at: 1_790_000_000_000_000,
        outcome: Outcome::Redirected,
        link: Some(LinkId::from_stored(42)),
        domain: DomainId::DEFAULT,
        rule: 0,
        client: [192, 0, 2, 1].into(),
        country: None,
        is_opted_out: false,
        user_agent: b"Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
        referrer: b"https://www.example.com/articles/2026/11/a-page",
        languages: b"de-CH,de;q=0.9,en;q=0.8",
        request: b"/abc?utm_source=mail",
        target: b"",
    }
}

/// Notes the visits of a round, and waits until they are written.
fn note_round(buffer: &VisitBuffer, written: &Written, until: u64) {
    (0..ROUND).for_each(|_| buffer.note(&visit()));
    buffer.flush();
    while written.0.load(Ordering::Relaxed) < until {
        thread::sleep(Duration::from_micros(50));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recording_a_visit_allocates_nothing() {
    let (written, page) = (Arc::<Written>::default(), daemon::Recorder::new());
    let supervisor = TaskSupervisor::default();
    let config = RecorderConfig {
        threads: 1,
        flush: Flush::Every(Duration::from_millis(100)),
        rules: CaptureRules::default(),
        sink: written.clone(),
        seen: Box::new(|_, _| {}),
        metrics: Metrics::new(&page),
    };
    let recorder = Recorder::start(&supervisor, config);
    let buffer = recorder.buffer(0);
    let counting = Arc::clone(&written);
    let counted = tokio::task::spawn_blocking(move || {
        // The first arenas are allocated once, and recycled from then on.
        (1..=5).for_each(|round| note_round(&buffer, &counting, round * ROUND));
        measure(|| (6..=5 + ROUNDS).for_each(|round| note_round(&buffer, &counting, round * ROUND)))
    });
    let counted = counted.await.unwrap();
    assert_eq!((counted.count_total, counted.bytes_total), (0, 0), "{ROUNDS} rounds of {ROUND} visits");
    recorder.finish().await;
    assert_eq!(written.0.load(Ordering::Relaxed), (5 + ROUNDS) * ROUND, "none was dropped");
}
