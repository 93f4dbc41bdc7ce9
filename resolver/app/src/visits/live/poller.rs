//! Reads newly stored visits once a second, for as long as there is a subscription.
//!
//! Bounds for each second: the rows that are read, the visits that are told, and the links that are
//! read for them. What is beyond is counted, and told as skipped.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock},
    time::Duration,
};

use codes::LinkId;
use tokio::time::{Instant, sleep};
use visits::{VisitId, VisitRow};

use super::{
    AppError, LiveEvent, LiveLink, LiveSource, LiveVisit, LiveVisits, cursors::Cursors, log::KEPT_FOR,
};

const PAUSE: Duration = Duration::from_secs(1);
/// Maximum number of visits that are told after one read.
const VISITS_MAX: usize = 2_000;
/// Maximum number of rows in one read: all that are told, and those of the seconds that reads
/// overlap by.
const ROWS_MAX: usize = 6 * VISITS_MAX;
/// Maximum number of rows whose texts are read together.
const TEXTS_TOGETHER: usize = 250;
/// Maximum number of distinct links of the visits that are told after one read.
const LINKS_MAX: usize = 200;
/// Maximum number of visits from before the first subscription, for clients that continue.
const HISTORY_MAX: usize = 1_000;

/// Reads visits until there is no subscription.
pub(super) async fn run(live: Arc<LiveVisits>) {
    let mut cursors = None;
    while live.state().has_subscriptions(Instant::now()) {
        let read = match &mut cursors {
            Some(cursors) => read_new(&live, cursors).await,
            None => prime(&live).await.map(|begun| cursors = Some(begun)),
        };
        if read.is_err() {
            // The cause was logged when the error was converted.
            tracing::warn!("read live visits");
        }
        sleep(PAUSE).await;
    }
}

/// Learns which visits are there already. They are told to clients that continue after one of them.
async fn prime(live: &LiveVisits) -> Result<Cursors, AppError> {
    let now = live.source.now().as_microsecond();
    let back = i64::try_from(KEPT_FOR.as_micros()).unwrap_or(i64::MAX);
    let mut rows = live.source.latest(VisitId::floor(now.saturating_sub(back)), ROWS_MAX).await?;
    let cursors = Cursors::after_rows(&rows, now);
    if live.state().wants_history() {
        rows.sort_unstable_by_key(|row| row.id);
        rows.drain(..rows.len().saturating_sub(HISTORY_MAX));
        let told = tell(&*live.source, &rows).await?;
        add(live, &told, rows.len() - told.len());
    }
    live.state().prime();
    live.changes.send_replace(());
    Ok(cursors)
}

/// Adds the visits to the log that were stored since the last read.
async fn read_new(live: &LiveVisits, cursors: &mut Cursors) -> Result<(), AppError> {
    let read = live.source.latest(cursors.next(live.source.now().as_microsecond()), ROWS_MAX).await?;
    let new = cursors.new_rows(read, ROWS_MAX);
    let latest = &new[new.len().saturating_sub(VISITS_MAX)..];
    let told = tell(&*live.source, latest).await;
    let visits = told.as_deref().unwrap_or_default();
    add(live, visits, new.len() - visits.len());
    told.map(drop)
}

/// Adds visits to the log, and the number of those that are not told before them.
fn add(live: &LiveVisits, visits: &[Arc<LiveVisit>], skipped: usize) {
    if visits.is_empty() && skipped == 0 {
        return;
    }
    let now = Instant::now();
    let skipped = Some(LiveEvent::Skipped(Some(skipped as u64))).filter(|_| skipped > 0);
    let visits = visits.iter().map(|visit| LiveEvent::Visit(Arc::clone(visit)));
    let mut state = live.state();
    skipped.into_iter().chain(visits).for_each(|entry| state.push(now, entry));
    drop(state);
    live.changes.send_replace(());
}

/// Returns the visits of rows with their links, in the order of the rows. Those of too many links,
/// and those whose link is not known, are left out.
async fn tell(source: &dyn LiveSource, rows: &[VisitRow]) -> Result<Vec<Arc<LiveVisit>>, AppError> {
    // The links of the latest visits, each once.
    let mut seen = HashSet::new();
    let ids = rows.iter().rev().filter_map(|row| row.link).filter(|id| seen.insert(*id));
    let ids: Vec<LinkId> = ids.take(LINKS_MAX).collect();
    let links = if ids.is_empty() { Vec::new() } else { source.links(&ids).await? };
    // The rows ascend.
    let with_last_visit = |mut link: LiveLink| {
        let id = link.record.link.id;
        let last = rows.iter().rev().find(|row| row.link == Some(id));
        link.visits.last = last.map(|row| row.id.at());
        (id, Arc::new(link))
    };
    let links: HashMap<LinkId, Arc<LiveLink>> = links.into_iter().map(with_last_visit).collect();
    let is_told = |row: &&VisitRow| row.link.is_none_or(|id| links.contains_key(&id));
    let rows: Vec<VisitRow> = rows.iter().filter(is_told).copied().collect();
    let mut visits = Vec::with_capacity(rows.len());
    for rows in rows.chunks(TEXTS_TOGETHER) {
        let views = source.views(rows).await?;
        visits.extend(rows.iter().zip(views).map(|(row, view)| {
            let link = row.link.and_then(|id| links.get(&id)).cloned();
            Arc::new(LiveVisit { id: row.id, domain: row.domain, view, link, written: OnceLock::new() })
        }));
    }
    Ok(visits)
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    };

    use async_trait::async_trait;
    use daemon::TaskSupervisor;
    use jiff::Timestamp;
    use links::{
        DomainId, Link, LongUrl, Record, Tag,
        api_key::{ApiKeyId, KeyLimits},
    };
    use store::VisitTotals;
    use tokio::time::timeout;
    use visits::{Flags, Outcome, Slot, Thread};

    use super::{
        super::{Refusal, SUBSCRIPTIONS_OF_CLIENT, Start, Subscription, VisitView, filter::tests::filter},
        *,
    };
    use limits::ExceededShare;

    use crate::{
        key_names::Names,
        visits::visit_memory::{self, START},
    };

    pub(in super::super) fn row(id: VisitId) -> VisitRow {
        let flags = Flags::new(Outcome::UnknownCode, false);
        VisitRow { link: None, id, flags, ..visit_memory::row(START, 0) }
    }

    fn id_of(number: u64) -> LinkId {
        visit_memory::link(i64::try_from(number).unwrap())
    }

    /// A link with a number, a name after it, and a tag.
    pub(in super::super) fn live_link(number: u64) -> LiveLink {
        let link = Link {
            id: id_of(number),
            long_url: LongUrl::from_stored("https://a.test/"),
            title: None,
            crawlable: false,
            forward_query: true,
            created_at: Timestamp::from_microsecond(START).unwrap(),
            created_by: ApiKeyId(2),
            details: None,
        };
        let record = Record { link, tags: vec![Tag::exactly("news").unwrap()] };
        LiveLink {
            record,
            name: format!("slug{number}"),
            names: Names::default(),
            visits: VisitTotals { total: 3, bots: 1, last: None },
            written: OnceLock::new(),
        }
    }

    /// A visit with a number, which is its time in microseconds.
    pub(in super::super) fn live_visit(number: i64, link: Option<LiveLink>) -> LiveVisit {
        let (id, domain, link) = (id(number), DomainId::DEFAULT, link.map(Arc::new));
        LiveVisit { id, domain, view: view(&row(id)), link, written: OnceLock::new() }
    }

    fn id(number: i64) -> VisitId {
        VisitId::new(START + number, Slot::new(0).unwrap(), Thread::of(0))
    }

    fn view(row: &VisitRow) -> VisitView {
        VisitView {
            referrer: "".into(),
            at: row.id.at(),
            user_agent: "".into(),
            place: None,
            is_bot: false,
            visited_url: None,
            redirect_url: None,
            orphan: row.flags.outcome().orphan().filter(|_| row.link.is_none()),
        }
    }

    /// A store whose rows a test adds, by a clock that stands.
    #[derive(Default)]
    struct Rows {
        rows: Mutex<Vec<VisitRow>>,
        reads: AtomicUsize,
        is_away: AtomicBool,
    }

    impl Rows {
        fn add(&self, rows: impl IntoIterator<Item = VisitRow>) {
            self.rows.lock().unwrap().extend(rows);
        }
    }

    #[async_trait]
    impl LiveSource for Rows {
        async fn latest(&self, after: VisitId, most: usize) -> Result<Vec<VisitRow>, AppError> {
            self.reads.fetch_add(1, Relaxed);
            let mut rows = self.rows.lock().unwrap().clone();
            rows.retain(|row| row.id > after);
            rows.sort_unstable_by_key(|row| std::cmp::Reverse(row.id));
            rows.truncate(most);
            Ok(rows)
        }

        async fn views(&self, rows: &[VisitRow]) -> Result<Vec<VisitView>, AppError> {
            assert!(rows.len() <= TEXTS_TOGETHER);
            if self.is_away.load(Relaxed) {
                return Err(AppError::Unavailable);
            }
            Ok(rows.iter().map(view).collect())
        }

        async fn links(&self, ids: &[LinkId]) -> Result<Vec<LiveLink>, AppError> {
            assert!(ids.len() <= LINKS_MAX);
            Ok(ids.iter().map(|id| live_link(id.unpack().unwrap().1)).collect())
        }

        fn now(&self) -> Timestamp {
            Timestamp::from_microsecond(START).unwrap()
        }
    }

    fn live() -> (Arc<Rows>, Arc<LiveVisits>) {
        let rows = Arc::new(Rows::default());
        (rows.clone(), LiveVisits::new(&TaskSupervisor::default(), rows, 100))
    }

    fn subscribe(live: &Arc<LiveVisits>, since: Option<VisitId>) -> Subscription {
        live.subscribe([192, 0, 2, 1].into(), filter(KeyLimits::default()), Start { since, resumption: None })
            .unwrap()
            .0
    }

    /// Returns the next events: the numbers of visits, and those of skipped ones as negative
    /// numbers.
    async fn told(subscription: &mut Subscription) -> Vec<i64> {
        let events = timeout(Duration::from_secs(600), subscription.next()).await.unwrap().unwrap();
        let told = |event: &LiveEvent| match event {
            LiveEvent::Visit(visit) => visit.id.micros() - START,
            LiveEvent::Skipped(count) => -i64::try_from(count.unwrap()).unwrap(),
        };
        events.iter().map(told).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn visits_are_told_from_the_subscription_on_and_read_only_while_there_is_one() {
        let (rows, live) = live();
        rows.add([row(id(1))]);
        let mut one = subscribe(&live, None);
        let mut other = subscribe(&live, None);
        sleep(PAUSE / 2).await;
        rows.add([VisitRow { link: Some(id_of(7)), ..row(id(3)) }, row(id(2))]);
        assert_eq!(told(&mut one).await, [2, 3]);
        assert_eq!(told(&mut other).await, [2, 3]);
        assert!(timeout(20 * PAUSE, one.next()).await.is_err(), "nothing is told twice");
        drop((one, other));
        sleep(2 * PAUSE).await;
        let reads = rows.reads.load(Relaxed);
        sleep(20 * PAUSE).await;
        assert_eq!(rows.reads.load(Relaxed), reads);
        let mut again = subscribe(&live, None);
        sleep(PAUSE / 2).await;
        rows.add([row(id(4))]);
        assert_eq!(told(&mut again).await, [4]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_comes_back_is_told_what_was_stored_meanwhile() {
        let (rows, live) = live();
        rows.add((1..5).map(|number| row(id(number))));
        let mut back = subscribe(&live, Some(id(2)));
        let mut fresh = subscribe(&live, None);
        assert_eq!(told(&mut back).await, [3, 4]);
        rows.add([row(id(9))]);
        assert_eq!(told(&mut back).await, [9]);
        assert_eq!(told(&mut fresh).await, [9]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_beyond_the_bounds_is_counted() {
        let (rows, live) = live();
        let mut subscription = subscribe(&live, None);
        sleep(PAUSE / 2).await;
        let of_links = (1..=LINKS_MAX + 50).map(|number| {
            let link = Some(id_of(number as u64));
            VisitRow { link, ..row(id(i64::try_from(number).unwrap())) }
        });
        rows.add(of_links);
        assert_eq!(told(&mut subscription).await[..2], [-50, 51]);
        while timeout(2 * PAUSE, subscription.next()).await.is_ok() {}
        let many = 1_000..1_000 + i64::try_from(VISITS_MAX).unwrap() + 10;
        rows.add(many.map(|number| row(id(number))));
        assert_eq!(told(&mut subscription).await[..2], [-10, 1_010]);
    }

    #[tokio::test(start_paused = true)]
    async fn visits_whose_texts_cannot_be_read_are_counted_and_later_ones_are_told() {
        let (rows, live) = live();
        let mut subscription = subscribe(&live, None);
        sleep(PAUSE / 2).await;
        rows.is_away.store(true, Relaxed);
        rows.add([row(id(1)), row(id(2))]);
        assert_eq!(told(&mut subscription).await, [-2]);
        rows.is_away.store(false, Relaxed);
        rows.add([row(id(3))]);
        assert_eq!(told(&mut subscription).await, [3]);
    }

    #[tokio::test(start_paused = true)]
    async fn subscriptions_are_limited_by_key_and_by_client_and_end_with_the_process() {
        let (_rows, live) = live();
        let subscribe = |client: u8, key: i64| {
            let mut filter = filter(KeyLimits::default());
            filter.by.id = ApiKeyId(key);
            live.subscribe([192, 0, 2, client].into(), filter, Start::default())
        };
        let of_key: Vec<_> = (0..12).map(|client| subscribe(client, 1).unwrap()).collect();
        assert_eq!(subscribe(99, 1).err(), Some(Refusal::Full(ExceededShare::Own)));
        assert!(subscribe(99, 2).is_ok());
        drop(of_key);
        assert!(subscribe(99, 1).is_ok());

        let mut of_client: Vec<_> = (0..SUBSCRIPTIONS_OF_CLIENT).map(|_| subscribe(1, 1).unwrap()).collect();
        assert_eq!(subscribe(1, 1).err(), Some(Refusal::Full(ExceededShare::Own)));
        of_client.pop();
        of_client.push(subscribe(1, 1).unwrap());
        let (mut other, _slot) = subscribe(2, 1).unwrap();
        live.close();
        assert!(other.next().await.is_none());
        assert_eq!(subscribe(3, 1).err(), Some(Refusal::Closing));
    }
}
