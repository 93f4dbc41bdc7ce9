//! The subscriptions and the log that they read.
//!
//! Shlink's web client subscribes anew after each message, without the id of the event that it
//! received. It drops what arrives on the former connection meanwhile. So such a stream gets its
//! events one at a time, and the next subscription of the same token and topics continues behind
//! the last event that was sent.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;
use visits::VisitId;

use super::{LiveEvent, LiveFilter, log::Log};

/// Maximum number of events that a subscription takes at a time.
const EVENTS_TAKEN: usize = 64;
/// Maximum memory of the events that a subscription takes at a time, unless one event has more.
const BYTES_TAKEN: usize = 16 << 10;
/// Maximum number of waiting entries of which a client that may subscribe anew is sent one at a
/// time. Nobody counts along with more.
const SINGLY_MAX: u64 = 20;
/// How soon after an event a client ends its subscription because of it, and how soon after that it
/// subscribes anew: it draws its page before. A person who returns to a page later has read the
/// visits up to then from the API.
const WITHIN: Duration = Duration::from_secs(6);
/// Maximum number of ended subscriptions whose places are kept.
const ENDED_MAX: usize = 1_000;

/// The identity of a client that subscribes anew: a hash of its token and its topics that clients
/// cannot choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resumption(pub(super) u64);

/// State shared by the subscriptions of a process.
#[derive(Default)]
pub(super) struct State {
    log: Log,
    /// By number, also those that have ended a moment ago and may continue.
    subscribers: HashMap<u64, Subscriber>,
    next_number: u64,
    pub(super) is_polled: bool,
    /// Whether that task knows which visits are new. Before that, subscriptions have no place in
    /// the log.
    is_primed: bool,
    is_closed: bool,
}

struct Subscriber {
    filter: LiveFilter,
    start: Start,
    fed_at: Option<Instant>,
    /// The number of the entry that it reads next.
    next: Option<u64>,
    /// How many visits at least it was not told; 0 if it may not know the number.
    lost: Option<u64>,
    ended_at: Option<Instant>,
}

/// Where a subscription begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    /// The visit after which it begins; otherwise it begins with the next visit.
    pub since: Option<VisitId>,
    /// The client whose subscription it continues, if that has just ended and `since` is not known.
    pub resumption: Option<Resumption>,
}

pub(super) struct Begun {
    pub(super) number: u64,
    /// Whether it surely continues after the visit that it was to continue after.
    pub(super) is_complete: bool,
}

impl State {
    /// Adds a subscription; `None` if there are none any more.
    pub(super) fn subscribe(&mut self, now: Instant, filter: LiveFilter, start: Start) -> Option<Begun> {
        if self.is_closed {
            return None;
        }
        let resumed = start.resumption.filter(|_| start.since.is_none());
        let resumed = resumed.and_then(|resumption| self.resume(now, resumption));
        let mut subscriber =
            Subscriber { filter, start, fed_at: None, next: None, lost: None, ended_at: None };
        if self.is_primed {
            subscriber.begin(&self.log);
            subscriber.next = resumed.or(subscriber.next);
        }
        let number = self.next_number;
        let is_complete = subscriber.next.is_some() && subscriber.lost.is_none();
        self.next_number += 1;
        self.subscribers.insert(number, subscriber);
        Some(Begun { number, is_complete })
    }

    /// Returns the place of a subscription that its client has ended because of an event. That it
    /// has ended may not be noticed yet.
    fn resume(&mut self, now: Instant, resumption: Resumption) -> Option<u64> {
        self.forget_ended(now);
        let is_same = |other: &Subscriber| other.start.resumption == Some(resumption);
        let same = self.subscribers.values().filter(|other| is_same(other));
        let same = same.filter(|other| other.ended_at.is_some() || other.is_just_fed(now));
        let farthest = same.filter_map(|other| other.next).max();
        self.subscribers.retain(|_, other| other.ended_at.is_none() || !is_same(other));
        farthest.map(|next| next.max(self.log.first))
    }

    pub(super) fn unsubscribe(&mut self, now: Instant, number: u64) {
        self.forget_ended(now);
        let has_room = self.subscribers.values().filter(|other| other.ended_at.is_some()).count() < ENDED_MAX;
        let Some(ended) = self.subscribers.get_mut(&number) else { return };
        if has_room && ended.start.resumption.is_some() && ended.next.is_some() && ended.is_just_fed(now) {
            ended.ended_at = Some(now);
            // Only the place is needed, and names may be many.
            ended.filter.topics.names.clear();
        } else {
            self.subscribers.remove(&number);
        }
    }

    /// Removes subscriptions that have ended and do not continue any more.
    fn forget_ended(&mut self, now: Instant) {
        let may_continue = |ended_at: Instant| now.duration_since(ended_at) < WITHIN;
        self.subscribers.retain(|_, subscriber| subscriber.ended_at.is_none_or(may_continue));
    }

    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.subscribers.clear();
        self.log.clear();
    }

    /// Returns whether there is a subscription, or one that may continue. If there is none, the
    /// task that reads visits has to end, and the log is emptied.
    pub(super) fn has_subscriptions(&mut self, now: Instant) -> bool {
        self.forget_ended(now);
        let has_some = !self.subscribers.is_empty();
        if !has_some {
            (self.is_polled, self.is_primed) = (false, false);
            self.log.clear();
        }
        has_some
    }

    /// Returns whether a subscription is to continue after a visit, and the log was not begun.
    pub(super) fn wants_history(&self) -> bool {
        !self.is_primed && self.subscribers.values().any(|subscriber| subscriber.start.since.is_some())
    }

    /// Gives all subscriptions their places: from now on new visits are added.
    pub(super) fn prime(&mut self) {
        self.is_primed = true;
        for subscriber in self.subscribers.values_mut().filter(|subscriber| subscriber.next.is_none()) {
            subscriber.begin(&self.log);
        }
    }

    /// Adds an entry to the log. Subscriptions that have not read what leaves it lose that.
    pub(super) fn push(&mut self, now: Instant, entry: LiveEvent) {
        let Self { log, subscribers, .. } = self;
        log.push(now, entry, |number, entry| {
            let slow = subscribers.values_mut();
            slow.filter(|slow| slow.next.is_some_and(|next| next <= number))
                .for_each(|slow| slow.lose(entry));
        });
    }

    /// Takes the next events of a subscription; `None` if it has ended.
    pub(super) fn take(&mut self, now: Instant, number: u64) -> Option<Vec<LiveEvent>> {
        let Self { log, subscribers, .. } = self;
        let subscriber = subscribers.get_mut(&number)?;
        let events = subscriber.take(log);
        if !events.is_empty() {
            subscriber.fed_at = Some(now);
        }
        Some(events)
    }
}

impl Subscriber {
    fn begin(&mut self, log: &Log) {
        let Some(since) = self.start.since else {
            self.next = Some(log.end());
            return;
        };
        let (next, is_complete) = log.after(since);
        self.next = Some(next);
        if !is_complete {
            self.lost = Some(0);
        }
    }

    fn lose(&mut self, entry: &LiveEvent) {
        let count = match entry {
            LiveEvent::Visit(visit) if !self.filter.matches(visit) => return,
            LiveEvent::Visit(_) => 1,
            LiveEvent::Skipped(count) => count.filter(|_| self.filter.sees_counts()).unwrap_or(0),
        };
        self.lost = Some(self.lost.unwrap_or(0).saturating_add(count));
    }

    /// Returns whether it was sent something a moment ago.
    fn is_just_fed(&self, now: Instant) -> bool {
        self.fed_at.is_some_and(|fed_at| now.duration_since(fed_at) < WITHIN)
    }

    fn take(&mut self, log: &Log) -> Vec<LiveEvent> {
        let Some(next) = self.next else { return Vec::new() };
        let is_single = self.start.resumption.is_some() && log.end().saturating_sub(next) <= SINGLY_MAX;
        let most = if is_single { 1 } else { EVENTS_TAKEN };
        let lost = self.lost.take().map(|count| LiveEvent::Skipped(Some(count).filter(|count| *count > 0)));
        let mut events: Vec<LiveEvent> = lost.into_iter().collect();
        let (mut bytes, mut reached) = (0, next.max(log.first));
        for (number, entry) in log.since(next) {
            if let Some(event) = self.event(entry) {
                bytes += entry.bytes();
                if !events.is_empty() && (bytes > BYTES_TAKEN || events.len() >= most) {
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
    fn event(&self, entry: &LiveEvent) -> Option<LiveEvent> {
        match entry {
            LiveEvent::Visit(visit) => self.filter.matches(visit).then(|| entry.clone()),
            LiveEvent::Skipped(count) => {
                Some(LiveEvent::Skipped(count.filter(|_| self.filter.sees_counts())))
            }
        }
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

    fn entry(number: i64) -> LiveEvent {
        LiveEvent::Visit(Arc::new(live_visit(number, Some(live_link(7)))))
    }

    fn subscribe(state: &mut State, filter: LiveFilter, since: Option<VisitId>) -> Option<Begun> {
        state.subscribe(Instant::now(), filter, Start { since, resumption: None })
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

    fn read(state: &mut State, number: u64) -> Vec<i64> {
        told(&state.take(Instant::now(), number).unwrap())
    }

    fn all() -> LiveFilter {
        filter(KeyLimits::default())
    }

    #[test]
    fn a_subscription_sees_what_is_added_after_it_once_and_in_order() {
        let (mut state, now) = (primed(), Instant::now());
        state.push(now, entry(1));
        let begun = subscribe(&mut state, all(), None).unwrap();
        assert!(begun.is_complete);
        for number in 2..100 {
            state.push(now, entry(number));
        }
        let mut seen = Vec::new();
        loop {
            let events = state.take(now, begun.number).unwrap();
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
        let slow = subscribe(&mut state, all(), None).unwrap().number;
        let orphans = Topics { orphans: true, ..Topics::default() };
        let other = subscribe(&mut state, LiveFilter { topics: orphans, ..all() }, None).unwrap().number;
        let own = KeyLimits { own_links_only: true, ..KeyLimits::default() };
        let limited = subscribe(&mut state, filter(own), None).unwrap().number;
        for number in 0..5 {
            state.push(start, entry(number));
        }
        state.push(start, LiveEvent::Skipped(Some(40)));
        let later = start + KEPT_FOR;
        state.push(later, entry(9));
        assert_eq!(read(&mut state, slow), [-45, 9]);
        assert_eq!(read(&mut state, other), [-40]);
        assert_eq!(read(&mut state, limited), [i64::MIN], "not its links, and not its counts");
        assert!(read(&mut state, slow).is_empty());
    }

    #[test]
    fn a_subscription_continues_after_a_visit_and_is_told_of_a_gap() {
        let (mut state, now) = (primed(), Instant::now());
        for number in [10, 20, 30] {
            state.push(now, entry(number));
        }
        let since = |number| Some(live_visit(number, None).id);
        let known = subscribe(&mut state, all(), since(20)).unwrap();
        assert!(known.is_complete);
        assert_eq!(read(&mut state, known.number), [30]);
        let unknown = subscribe(&mut state, all(), since(5)).unwrap();
        assert!(!unknown.is_complete);
        assert_eq!(read(&mut state, unknown.number), [i64::MIN, 10, 20, 30]);
    }

    #[test]
    fn places_are_given_when_it_is_known_which_visits_are_new() {
        let (mut state, now) = (State::default(), Instant::now());
        let (fresh, resumed) = (
            subscribe(&mut state, all(), None).unwrap(),
            subscribe(&mut state, all(), Some(live_visit(1, None).id)).unwrap(),
        );
        assert!(!resumed.is_complete && state.wants_history());
        for number in 1..3 {
            state.push(now, entry(number));
        }
        assert!(read(&mut state, fresh.number).is_empty());
        state.prime();
        assert!(read(&mut state, fresh.number).is_empty());
        assert_eq!(read(&mut state, resumed.number), [2]);
        state.push(now, entry(3));
        assert_eq!(read(&mut state, fresh.number), [3]);
    }

    #[test]
    fn without_subscriptions_nothing_is_kept_and_after_the_end_there_are_none() {
        let (mut state, now) = (primed(), Instant::now());
        state.is_polled = true;
        let number = subscribe(&mut state, all(), None).unwrap().number;
        state.push(now, entry(1));
        assert!(state.has_subscriptions(Instant::now()));
        state.unsubscribe(Instant::now(), number);
        assert!(!state.has_subscriptions(Instant::now()) && !state.is_polled);
        assert_eq!(state.log.since(0).count(), 0);
        let number = subscribe(&mut state, all(), None).unwrap().number;
        state.close();
        assert!(state.take(now, number).is_none() && subscribe(&mut state, all(), None).is_none());
    }

    /// A client that subscribes anew after each event, `times` times in all.
    fn resubscribing(state: &mut State, start: Instant, times: u32) -> Vec<i64> {
        let resumption = Some(Resumption(7));
        let mut seen = Vec::new();
        for turn in 0..times {
            let now = start + WITHIN / 4 * turn;
            let number = state.subscribe(now, all(), Start { since: None, resumption }).unwrap().number;
            let events = state.take(now, number).unwrap();
            assert!(events.len() <= 1, "it would lose the others");
            seen.extend(told(&events));
            state.unsubscribe(now, number);
        }
        seen
    }

    #[test]
    fn a_client_that_subscribes_anew_after_each_event_gets_each_once() {
        let (mut state, now) = (primed(), Instant::now());
        let resumption = Some(Resumption(7));
        let first = state.subscribe(now, all(), Start { since: None, resumption }).unwrap().number;
        for number in 1..=5 {
            state.push(now, entry(number));
        }
        assert_eq!(told(&state.take(now, first).unwrap()), [1]);
        // That its connection has ended is noticed late.
        let seen = resubscribing(&mut state, now, 3);
        state.unsubscribe(now + WITHIN / 2, first);
        assert!(state.has_subscriptions(now + WITHIN));
        assert_eq!([seen, resubscribing(&mut state, now + WITHIN / 4 * 3, 2)].concat(), [2, 3, 4, 5]);
        let other = Start { since: None, resumption: Some(Resumption(8)) };
        let other = state.subscribe(now + WITHIN, all(), other).unwrap().number;
        assert!(told(&state.take(now + WITHIN, other).unwrap()).is_empty(), "another client");
    }

    #[test]
    fn a_client_that_comes_back_later_or_left_for_another_reason_begins_with_the_next_visit() {
        let (mut state, now) = (primed(), Instant::now());
        let start = Start { since: None, resumption: Some(Resumption(7)) };
        let first = state.subscribe(now, all(), start).unwrap().number;
        state.unsubscribe(now, first);
        state.push(now, entry(1));
        let quiet = state.subscribe(now, all(), start).unwrap().number;
        assert!(told(&state.take(now, quiet).unwrap()).is_empty(), "it was sent nothing");
        state.push(now, entry(2));
        state.push(now, entry(3));
        assert_eq!(told(&state.take(now, quiet).unwrap()), [2]);
        state.unsubscribe(now, quiet);
        let later = now + WITHIN;
        assert!(!state.has_subscriptions(later));
        state.prime();
        let late = state.subscribe(later, all(), start).unwrap().number;
        assert!(told(&state.take(later, late).unwrap()).is_empty());
    }

    #[test]
    fn a_crowd_of_visits_is_not_sent_one_by_one() {
        let (mut state, now) = (primed(), Instant::now());
        let start = Start { since: None, resumption: Some(Resumption(7)) };
        let number = state.subscribe(now, all(), start).unwrap().number;
        for number in 0..100 {
            state.push(now, entry(number));
        }
        assert!(state.take(now, number).unwrap().len() > 1);
    }
}
