//! Tests of buffers and of the thread that writes.

use allocation_counter::measure;
use codes::LinkId;
use jiff::Timestamp;
use links::DomainId;
use visits::{Arena, Event, Outcome, URL_MAX, read_block};

use super::*;

/// A block with the number of its visits and their first and last times.
type Block = (Vec<u8>, u32, (i64, i64));

/// A sink that keeps every block.
#[derive(Default)]
struct Kept(Mutex<Vec<Block>>);

impl BlockSink for Kept {
    fn write(&self, block: &[u8], count: u32, span: (i64, i64)) {
        self.0.lock().unwrap().push((block.to_vec(), count, span));
    }
}

impl Kept {
    /// Returns the number of the link and the time of each visit, in the order of writing.
    fn visits(&self) -> Vec<(i64, i64)> {
        let mut visits = Vec::new();
        for (block, count, span) in &*self.0.lock().unwrap() {
            let events: Vec<Event<'_>> = read_block(block).unwrap().1.map(Result::unwrap).collect();
            assert_eq!(events.len(), usize::try_from(*count).unwrap());
            assert_eq!((events[0].at, events[events.len() - 1].at), *span);
            visits.extend(events.iter().map(|event| (event.link.map_or(0, LinkId::get), event.at)));
        }
        visits
    }

    fn count(&self) -> u64 {
        self.0.lock().unwrap().iter().map(|(_, count, _)| u64::from(*count)).sum()
    }
}

fn config(threads: usize, sink: Arc<dyn BlockSink>, page: &daemon::Recorder) -> RecorderConfig {
    let (rules, metrics) = (CaptureRules::default(), Metrics::new(page));
    RecorderConfig { threads, flush: EVERY, rules, sink, seen: Box::new(|_, _| {}), metrics }
}

struct Bench {
    recorder: Recorder,
    writer: Writer,
    kept: Arc<Kept>,
    seen: Arc<Mutex<Vec<(i64, i64)>>>,
    page: daemon::Recorder,
}

impl Bench {
    fn new(threads: usize, flush: Flush) -> Self {
        let (kept, seen, page) =
            (Arc::<Kept>::default(), Arc::<Mutex<Vec<_>>>::default(), daemon::Recorder::new());
        let told = Arc::clone(&seen);
        let tell = move |link: LinkId, at: Timestamp| {
            told.lock().unwrap().push((link.get(), at.as_microsecond()));
        };
        let config = config(threads, kept.clone(), &page);
        let (recorder, writer) = Recorder::new(RecorderConfig { flush, seen: Box::new(tell), ..config });
        Self { recorder, writer, kept, seen, page }
    }

    fn assert_counted(&self, lines: &[&str]) {
        let page = self.page.render();
        for line in lines {
            assert!(page.lines().any(|other| other == *line), "{line} is not in {page}");
        }
    }
}

const EVERY: Flush = Flush::Every(Duration::from_millis(100));

fn event(link: i64, at: i64, target: &[u8]) -> Event<'_> {
    Event {
        at,
        outcome: Outcome::Redirected,
        link: Some(LinkId::from_stored(link)),
        domain: DomainId::DEFAULT,
        rule: 0,
        client: [192, 0, 2, 1].into(),
        country: None,
        is_opted_out: false,
        user_agent: b"",
        referrer: b"",
        languages: b"",
        request: b"",
        target,
    }
}

/// Returns how many visits with such a target an arena holds.
fn fitting(target: &[u8]) -> u64 {
    let (mut arena, mut last) = (Arena::default(), 0);
    while let Some(at) = arena.push(&event(1, 1, target), last) {
        last = at;
    }
    u64::from(arena.count())
}

#[test]
fn visits_keep_their_order_and_their_times_strictly_increase_across_arenas() {
    let bench = Bench::new(1, EVERY);
    let (buffer, target) = (bench.recorder.buffer(0), [b'x'; URL_MAX]);
    let count = i64::try_from(3 * fitting(&target)).unwrap() + 5;
    for link in 1..=count {
        // The clock stands still, and is then set back.
        buffer.note(&event(link, 1_000_000 - link / 40, &target));
        bench.writer.drain();
    }
    buffer.flush();
    bench.writer.drain();
    let visits = bench.kept.visits();
    assert_eq!(visits.iter().map(|(link, _)| *link).collect::<Vec<_>>(), (1..=count).collect::<Vec<_>>());
    assert!(visits.is_sorted_by(|(_, earlier), (_, later)| earlier < later));
    assert_eq!(bench.kept.0.lock().unwrap().len(), 4);
    assert_eq!(*bench.seen.lock().unwrap(), visits);
}

#[test]
fn arenas_are_recycled() {
    let bench = Bench::new(2, EVERY);
    let pool = &bench.writer.spooler.pool;
    let ready = pool.left();
    assert_eq!(ready, 2 + SPARES_MAX - 2 * READY);
    for link in 1..=1_000 {
        for index in 0..2 {
            bench.recorder.buffer(index).note(&event(link, link, b""));
            bench.recorder.buffer(index).flush();
        }
        bench.writer.drain();
    }
    assert_eq!((pool.left(), bench.kept.visits().len()), (ready, 2_000));
}

#[test]
fn visits_without_a_spare_arena_are_dropped_and_counted() {
    let bench = Bench::new(1, EVERY);
    let (buffer, target) = (bench.recorder.buffer(0), [b'x'; URL_MAX]);
    let kept = (1 + SPARES_MAX as u64) * fitting(&target);
    for link in 0..kept + 7 {
        buffer.note(&event(link.try_into().unwrap(), 1, &target));
    }
    buffer.note(&Event { outcome: Outcome::BaseUrl, link: None, ..event(0, 1, b"") });
    buffer.flush();
    let dropped = "resolver_visits_dropped_total{reason=\"queue-full\"} 8";
    bench.assert_counted(&[
        dropped,
        &format!("resolver_visits_total {kept}"),
        &format!("resolver_redirects_total {}", kept + 7),
    ]);
    bench.writer.drain();
    assert_eq!(bench.kept.visits().len() as u64, kept);
    buffer.note(&event(9, 1, b""));
    buffer.flush();
    bench.writer.drain();
    assert_eq!(bench.kept.visits().len() as u64, kept + 1, "arenas are back");
    bench.assert_counted(&[dropped]);
}

#[test]
fn redirects_visits_and_orphans_are_counted_apart_and_only_redirects_are_seen() {
    let bench = Bench::new(1, EVERY);
    let buffer = bench.recorder.buffer(0);
    buffer.note(&event(7, 1_000, b""));
    buffer.note(&Event { outcome: Outcome::Expired, ..event(8, 1_000, b"") });
    buffer.note_redirect();
    buffer.commit();
    bench.assert_counted(&["resolver_redirects_total 0"]);
    buffer.flush();
    buffer.flush();
    bench.writer.drain();
    bench.assert_counted(&[
        "resolver_redirects_total 2",
        "resolver_visits_total 1",
        "resolver_orphan_visits_total 1",
        "resolver_visits_dropped_total{reason=\"queue-full\"} 0",
    ]);
    assert_eq!(bench.kept.visits(), [(7, 1_000), (8, 1_001)]);
    assert_eq!(*bench.seen.lock().unwrap(), [(7, 1_000)]);
}

#[test]
fn each_turn_is_written_before_its_commit_returns() {
    let bench = Bench::new(1, Flush::Turn);
    let buffer = bench.recorder.buffer(0);
    for turn in 1..=3 {
        buffer.note(&event(turn, 1_000, b""));
        buffer.note(&event(turn, 1_000, b""));
        buffer.commit();
        buffer.commit();
        assert_eq!(bench.kept.visits().len(), usize::try_from(2 * turn).unwrap());
        assert_eq!(*bench.seen.lock().unwrap(), bench.kept.visits());
    }
    let target = [b'x'; URL_MAX];
    (0..=fitting(&target)).for_each(|_| buffer.note(&event(9, 1, &target)));
    buffer.commit();
    assert_eq!(bench.kept.0.lock().unwrap().len(), 5, "a turn that fills an arena is two blocks");
    assert!(bench.kept.visits().is_sorted_by(|(_, earlier), (_, later)| earlier < later));
    assert_eq!(bench.writer.drain(), mpsc::TryRecvError::Empty, "the other thread has nothing to do");
}

#[test]
fn threads_beyond_the_last_buffer_share_one() {
    let bench = Bench::new(100, EVERY);
    for index in 0..100 {
        let link = i64::try_from(index % 64 + 1).unwrap();
        bench.recorder.buffer(index).note(&event(link, 5, b""));
    }
    (0..100).for_each(|index| bench.recorder.buffer(index).flush());
    bench.writer.drain();
    let blocks = bench.kept.0.lock().unwrap();
    let threads: Vec<u8> = blocks.iter().map(|(block, ..)| read_block(block).unwrap().0.get()).collect();
    assert_eq!(threads, (0..64).collect::<Vec<_>>());
    let counts: Vec<u32> = blocks.iter().map(|(_, count, _)| *count).collect();
    assert_eq!(counts, [vec![2; 36], vec![1; 28]].concat());
}

#[tokio::test]
async fn the_end_waits_for_all_visits_and_later_ones_are_dropped() {
    let (kept, page) = (Arc::<Kept>::default(), daemon::Recorder::new());
    let supervisor = TaskSupervisor::default();
    let recorder = Recorder::start(&supervisor, config(2, kept.clone(), &page));
    // Fewer flushes than arenas: the other thread may begin only now.
    for link in 1..=20 {
        for index in 0..2 {
            recorder.buffer(index).note(&event(link, link, b""));
            recorder.buffer(index).flush();
        }
    }
    recorder.finish().await;
    assert_eq!(kept.visits().len(), 40);
    recorder.finish().await;
    recorder.buffer(0).note(&event(1, 1, b""));
    recorder.buffer(0).flush();
    assert!(page.render().contains("resolver_visits_dropped_total{reason=\"queue-full\"} 1\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recording_a_visit_allocates_nothing_on_the_listeners_thread() {
    /// More visits than one arena takes.
    const ROUND: u64 = 500;
    let (kept, page) = (Arc::<Kept>::default(), daemon::Recorder::new());
    let supervisor = TaskSupervisor::default();
    let recorder = Recorder::start(&supervisor, config(1, kept.clone(), &page));
    let (buffer, written) = (recorder.buffer(0), Arc::clone(&kept));
    let counted = tokio::task::spawn_blocking(move || {
        let visit = Event {
            user_agent: b"Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
            referrer: b"https://www.example.com/articles/2026/11/a-page",
            languages: b"de-CH,de;q=0.9,en;q=0.8",
            request: b"/abc?utm_source=mail",
            ..event(42, 1_790_000_000_000_000, b"")
        };
        let note_rounds = |rounds: std::ops::Range<u64>| {
            for round in rounds {
                (0..ROUND).for_each(|_| buffer.note(&visit));
                buffer.flush();
                while written.count() < (round + 1) * ROUND {
                    thread::sleep(Duration::from_micros(50));
                }
            }
        };
        // The first arenas are allocated once, and recycled from then on.
        note_rounds(0..5);
        measure(|| note_rounds(5..205))
    });
    let counted = counted.await.unwrap();
    assert_eq!((counted.count_total, counted.bytes_total), (0, 0), "200 rounds of {ROUND} visits");
    recorder.finish().await;
    assert_eq!(kept.count(), 205 * ROUND, "none was dropped");
}

#[tokio::test]
async fn a_failure_of_the_thread_that_writes_is_heard_of() {
    struct Broken;
    impl BlockSink for Broken {
        fn write(&self, _: &[u8], _: u32, _: (i64, i64)) {
            panic!("as the test wants it");
        }
    }
    let supervisor = TaskSupervisor::default();
    let recorder = Recorder::start(&supervisor, config(1, Arc::new(Broken), &daemon::Recorder::new()));
    recorder.buffer(0).note(&event(1, 1, b""));
    recorder.buffer(0).flush();
    assert_eq!(supervisor.first_failure().await, "writer of visits");
}
