//! The subscriptions and the log that they read.

use std::collections::HashMap;

use tokio::time::Instant;
use visits::VisitId;

use super::{
    LiveEvent, LiveFilter,
    log::{Entry, Log},
};

/// Maximum number of events that a subscription takes at a time.
const EVENTS_TAKEN: usize = 64;
/// Maximum memory of the events that a subscription takes at a time, unless one event has more.
const BYTES_TAKEN: usize = 16 << 10;

/// What the subscriptions of a process share.
#[derive(Default)]
pub(super) struct State {
    log: Log,
    subscribers: HashMap<u64, Subscriber>,
    next_number: u64,
    /// Whether the task that reads visits runs.
    pub(super) is_polled: bool,
    /// Whether that task knows which visits are new. Before that, subscriptions have no place in the
    /// log.
    is_primed: bool,
    is_closed: bool,
}

/// A subscription.
struct Subscriber {
    filter: LiveFilter,
    since: Option<VisitId>,
    /// The number of the entry that it reads next.
    next: Option<u64>,
    lost: Lost,
}

/// Visits that a subscription was not told.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    /// Whether there are any.
    is_some: bool,
    /// How many it may know of, at least.
    count: u64,
    /// Whether there are some whose number it may not know.
    has_unknown: bool,
}

/// The beginning of a subscription.
pub(super) struct Begun {
    pub(super) number: u64,
    /// Whether it surely continues after the visit that it was to continue after.
    pub(super) is_complete: bool,
}

impl State {
    /// Adds a subscription; `None` if there are none any more.
    pub(super) fn subscribe(&mut self, filter: LiveFilter, since: Option<VisitId>) -> Option<Begun> {
        if self.is_closed {
            return None;
        }
        let mut subscriber = Subscriber { filter, since, next: None, lost: Lost::default() };
        if self.is_primed {
            subscriber.begin(&self.log);
        }
        let number = self.next_number;
        let is_complete = subscriber.next.is_some() && !subscriber.lost.is_some;
        self.next_number += 1;
        self.subscribers.insert(number, subscriber);
        Some(Begun { number, is_complete })
    }

    /// Removes a subscription.
    pub(super) fn unsubscribe(&mut self, number: u64) {
        self.subscribers.remove(&number);
    }

    /// Ends all subscriptions.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.subscribers.clear();
        self.log.clear();
    }

    /// Returns whether there is a subscription. If there is none, the task that reads visits has to
    /// end, and the log is emptied.
    pub(super) fn has_subscriptions(&mut self) -> bool {
        let has_some = !self.subscribers.is_empty();
        if !has_some {
            (self.is_polled, self.is_primed) = (false, false);
            self.log.clear();
        }
        has_some
    }

    /// Returns whether a subscription is to continue after a visit, and the log was not begun.
    pub(super) fn wants_history(&self) -> bool {
        !self.is_primed && self.subscribers.values().any(|subscriber| subscriber.since.is_some())
    }

    /// Gives all subscriptions their places: from now on new visits are added.
    pub(super) fn prime(&mut self) {
        self.is_primed = true;
        for subscriber in self.subscribers.values_mut().filter(|subscriber| subscriber.next.is_none()) {
            subscriber.begin(&self.log);
        }
    }

    /// Adds an entry to the log. Subscriptions that have not read what leaves it lose that.
    pub(super) fn push(&mut self, now: Instant, entry: Entry) {
        let Self { log, subscribers, .. } = self;
        log.push(now, entry, |number, entry| {
            let slow = subscribers.values_mut();
            slow.filter(|slow| slow.next.is_some_and(|next| next <= number))
                .for_each(|slow| slow.lose(entry));
        });
    }

    /// Takes the next events of a subscription; `None` if it has ended.
    pub(super) fn take(&mut self, number: u64) -> Option<Vec<LiveEvent>> {
        let Self { log, subscribers, .. } = self;
        let subscriber = subscribers.get_mut(&number)?;
        Some(subscriber.take(log))
    }
}

impl Subscriber {
    /// Gives it its place in the log.
    fn begin(&mut self, log: &Log) {
        let Some(since) = self.since else {
            self.next = Some(log.end());
            return;
        };
        let (next, is_complete) = log.after(since);
        self.next = Some(next);
        if !is_complete {
            self.lost = Lost { is_some: true, count: 0, has_unknown: true };
        }
    }

    fn lose(&mut self, entry: &Entry) {
        match entry {
            Entry::Visit(visit) if !self.filter.matches(visit) => {}
            Entry::Visit(_) => self.lost.add(Some(1)),
            Entry::Skipped(count) => self.lost.add(Some(*count).filter(|_| self.filter.sees_counts())),
        }
    }

    fn take(&mut self, log: &Log) -> Vec<LiveEvent> {
        let Some(next) = self.next else { return Vec::new() };
        let mut events: Vec<LiveEvent> = self.lost.take().map(LiveEvent::Skipped).into_iter().collect();
        let (mut bytes, mut reached) = (0, next.max(log.first()));
        for (number, entry) in log.since(next) {
            if let Some(event) = self.event(entry) {
                bytes += entry.bytes();
                if !events.is_empty() && (bytes > BYTES_TAKEN || events.len() == EVENTS_TAKEN) {
                    break;
                }
                events.push(event);
            }
            reached = number + 1;
        }
        self.next = Some(reached);
        events
    }

    /// Returns an entry as the subscription sees it, if it does.
    fn event(&self, entry: &Entry) -> Option<LiveEvent> {
        match entry {
            Entry::Visit(visit) => self.filter.matches(visit).then(|| LiveEvent::Visit(visit.clone())),
            Entry::Skipped(count) => {
                Some(LiveEvent::Skipped(Some(*count).filter(|_| self.filter.sees_counts())))
            }
        }
    }
}

impl Lost {
    fn add(&mut self, count: Option<u64>) {
        self.is_some = true;
        match count {
            Some(count) => self.count = self.count.saturating_add(count),
            None => self.has_unknown = true,
        }
    }

    /// Returns the number to tell, if there is something to tell, and begins anew.
    fn take(&mut self) -> Option<Option<u64>> {
        let Self { is_some, count, has_unknown } = std::mem::take(self);
        is_some.then_some(Some(count).filter(|count| *count > 0 || !has_unknown))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use links::api_key::KeyLimits;

    use super::{
        super::{
            Topics,
            filter::tests::filter,
            log::KEPT_FOR,
            poller::tests::{live_link, live_visit},
        },
        *,
    };

    fn entry(number: i64) -> Entry {
        Entry::Visit(Arc::new(live_visit(number, Some(live_link(7)))))
    }

    fn primed() -> State {
        let mut state = State::default();
        state.prime();
        state
    }

    /// The numbers of visits, and those of skipped ones as negative numbers.
    fn told(events: &[LiveEvent]) -> Vec<i64> {
        let told = |event: &LiveEvent| match event {
            LiveEvent::Visit(visit) => visit.id.micros() - live_visit(0, None).id.micros(),
            LiveEvent::Skipped(count) => count.map_or(i64::MIN, |count| -i64::try_from(count).unwrap()),
        };
        events.iter().map(told).collect()
    }

    fn all() -> LiveFilter {
        filter(KeyLimits::default())
    }

    #[test]
    fn a_subscription_sees_what_is_added_after_it_once_and_in_order() {
        let (mut state, now) = (primed(), Instant::now());
        state.push(now, entry(1));
        let begun = state.subscribe(all(), None).unwrap();
        assert!(begun.is_complete);
        for number in 2..100 {
            state.push(now, entry(number));
        }
        let mut seen = Vec::new();
        loop {
            let events = state.take(begun.number).unwrap();
            assert!(events.len() <= EVENTS_TAKEN);
            if events.is_empty() {
                break;
            }
            seen.extend(told(&events));
        }
        assert_eq!(seen, (2..100).collect::<Vec<i64>>());
    }

    #[test]
    fn a_slow_subscription_is_told_how_many_of_its_own_visits_it_has_lost() {
        let (mut state, start) = (primed(), Instant::now());
        let slow = state.subscribe(all(), None).unwrap().number;
        let orphans = Topics { orphans: true, ..Topics::default() };
        let other = state.subscribe(LiveFilter { topics: orphans, ..all() }, None).unwrap().number;
        let own = KeyLimits { own_links_only: true, ..KeyLimits::default() };
        let limited = state.subscribe(filter(own), None).unwrap().number;
        for number in 0..5 {
            state.push(start, entry(number));
        }
        state.push(start, Entry::Skipped(40));
        let later = start + KEPT_FOR;
        state.push(later, entry(9));
        assert_eq!(told(&state.take(slow).unwrap()), [-45, 9]);
        assert_eq!(told(&state.take(other).unwrap()), [-40]);
        assert_eq!(told(&state.take(limited).unwrap()), [i64::MIN], "not its links, and not its counts");
        assert!(told(&state.take(slow).unwrap()).is_empty());
    }

    #[test]
    fn a_subscription_continues_after_a_visit_and_is_told_of_a_gap() {
        let (mut state, now) = (primed(), Instant::now());
        for number in [10, 20, 30] {
            state.push(now, entry(number));
        }
        let since = |number| Some(live_visit(number, None).id);
        let known = state.subscribe(all(), since(20)).unwrap();
        assert!(known.is_complete);
        assert_eq!(told(&state.take(known.number).unwrap()), [30]);
        let unknown = state.subscribe(all(), since(5)).unwrap();
        assert!(!unknown.is_complete);
        assert_eq!(told(&state.take(unknown.number).unwrap()), [i64::MIN, 10, 20, 30]);
    }

    #[test]
    fn places_are_given_when_it_is_known_which_visits_are_new() {
        let (mut state, now) = (State::default(), Instant::now());
        let (fresh, resumed) = (
            state.subscribe(all(), None).unwrap(),
            state.subscribe(all(), Some(live_visit(1, None).id)).unwrap(),
        );
        assert!(!resumed.is_complete && state.wants_history());
        for number in 1..3 {
            state.push(now, entry(number));
        }
        assert!(told(&state.take(fresh.number).unwrap()).is_empty());
        state.prime();
        assert!(told(&state.take(fresh.number).unwrap()).is_empty());
        assert_eq!(told(&state.take(resumed.number).unwrap()), [2]);
        state.push(now, entry(3));
        assert_eq!(told(&state.take(fresh.number).unwrap()), [3]);
    }

    #[test]
    fn without_subscriptions_nothing_is_kept_and_after_the_end_there_are_none() {
        let (mut state, now) = (primed(), Instant::now());
        state.is_polled = true;
        let number = state.subscribe(all(), None).unwrap().number;
        state.push(now, entry(1));
        assert!(state.has_subscriptions());
        state.unsubscribe(number);
        assert!(!state.has_subscriptions() && !state.is_polled);
        assert_eq!(state.log.since(0).count(), 0);
        let number = state.subscribe(all(), None).unwrap().number;
        state.close();
        assert!(state.take(number).is_none() && state.subscribe(all(), None).is_none());
    }
}
