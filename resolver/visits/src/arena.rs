//! Arenas: fixed buffers into which a thread records visits without allocating.

use crate::{
    Thread,
    event::{EVENT_MAX, Event, Malformed},
};

const ARENA_BYTES: usize = 64 * 1024;
/// The format of a block; a later one has another number.
const FORMAT: u8 = 1;
/// Length of the head: format, thread and base time.
const HEAD: usize = 1 + 1 + 8;
/// The longest span of an arena in microseconds. An event's time is stored in 32 bits.
const SPAN_MAX: i64 = 3_600_000_000;

const _: () = assert!(HEAD + EVENT_MAX < ARENA_BYTES, "an empty arena has room for any event");

/// A buffer of encoded visits, recycled for ever.
#[derive(Debug)]
pub struct Arena {
    bytes: Box<[u8]>,
    len: usize,
    count: u32,
    base: i64,
    last: i64,
}

impl Arena {
    /// Adds a visit. Returns its time, or `None` if there is no room, or the arena spans an hour.
    ///
    /// `after` is the time of the thread's last visit. The times of a thread strictly increase, so
    /// a visit in the same microsecond is recorded one later.
    #[inline]
    pub fn push(&mut self, event: &Event<'_>, after: i64) -> Option<i64> {
        let mut event = event.cut();
        event.at = event.at.max(after.saturating_add(1));
        let base = if self.count == 0 { event.at } else { self.base };
        let len = event.encoded_len();
        let room = self.bytes.get_mut(self.len..self.len + len)?;
        if event.at - base > SPAN_MAX {
            return None;
        }
        event.encode(base, room);
        self.len += len;
        self.count += 1;
        self.base = base;
        self.last = event.at;
        Some(event.at)
    }

    /// Returns the number of visits.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the times of the first and the last visit, in microseconds since 1970.
    pub fn span(&self) -> (i64, i64) {
        (self.base, self.last)
    }

    /// Returns the visits as a block of bytes, for [`read_block`].
    pub fn block(&mut self, thread: Thread) -> &[u8] {
        self.bytes[0] = FORMAT;
        self.bytes[1] = thread.get();
        self.bytes[2..HEAD].copy_from_slice(&self.base.to_le_bytes());
        &self.bytes[..self.len]
    }

    /// Removes all visits.
    pub fn clear(&mut self) {
        (self.len, self.count) = (HEAD, 0);
    }
}

impl Default for Arena {
    fn default() -> Self {
        Self { bytes: vec![0; ARENA_BYTES].into(), len: HEAD, count: 0, base: 0, last: 0 }
    }
}

/// Reads the visits of a block, in the order in which they were recorded. The iterator ends after
/// the first malformed one. A block of another format is malformed as a whole.
pub fn read_block(
    block: &[u8],
) -> Result<(Thread, impl Iterator<Item = Result<Event<'_>, Malformed>>), Malformed> {
    let (&[format, thread], rest) = block.split_first_chunk::<2>().ok_or(Malformed)?;
    let (base, mut rest) = rest.split_first_chunk::<8>().ok_or(Malformed)?;
    if format != FORMAT {
        return Err(Malformed);
    }
    let base = i64::from_le_bytes(*base);
    let events = std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let decoded = Event::decode(base, rest);
        rest = decoded.as_ref().map_or(&[], |(_, rest)| *rest);
        Some(decoded.map(|(event, _)| event))
    });
    Ok((Thread::of(thread.into()), events))
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv6Addr};

    use codes::LinkId;
    use links::DomainId;
    use proptest::prelude::*;

    use super::*;
    use crate::Outcome;

    fn event(at: i64, text: &[u8]) -> Event<'_> {
        Event {
            at,
            outcome: Outcome::Redirected,
            link: Some(LinkId::from_stored(42)),
            domain: DomainId::from_stored(3),
            rule: 2,
            client: [192, 0, 2, 1].into(),
            country: None,
            is_opted_out: false,
            user_agent: text,
            referrer: text,
            languages: text,
            request: text,
            target: text,
        }
    }

    fn read(block: &[u8]) -> Vec<Event<'_>> {
        read_block(block).unwrap().1.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn long_texts_are_cut_and_equal_times_become_distinct() {
        let mut arena = Arena::default();
        let long = vec![b'x'; 10_000];
        assert_eq!(arena.push(&event(1_000, &long), 0), Some(1_000));
        assert_eq!(arena.push(&event(1_000, b""), 1_000), Some(1_001));
        assert_eq!(arena.push(&event(900, b"a"), 1_001), Some(1_002));
        let block = arena.block(Thread::of(7)).to_vec();
        assert_eq!(read_block(&block).unwrap().0, Thread::of(7));
        let read = read(&block);
        assert_eq!(read[0], event(1_000, &long).cut());
        assert_eq!(read[0].user_agent.len(), crate::event::USER_AGENT_MAX);
        assert_eq!((read[1], read[2]), (event(1_001, b""), event(1_002, b"a")));
        arena.clear();
        assert_eq!((arena.count(), arena.push(&event(5, b""), 0)), (0, Some(5)));
    }

    #[test]
    fn a_full_arena_takes_no_more_and_an_hour_is_the_longest_span() {
        let mut arena = Arena::default();
        let mut last = 0;
        while let Some(at) = arena.push(&event(1, &[b'x'; 400]), last) {
            last = at;
        }
        assert!(arena.count() > 20);
        assert_eq!(read(arena.block(Thread::of(0))).len(), arena.count() as usize);
        arena.clear();
        assert!(arena.push(&event(0, b""), -1).is_some());
        assert_eq!(arena.push(&event(SPAN_MAX + 1, b""), 0), None);
    }

    proptest! {
        #[test]
        fn every_event_comes_out_as_it_went_in(
            texts in prop::collection::vec(any::<u8>(), 0..60),
            (at, link, domain, rule) in (0_i64..4_000_000_000_000_000, 0_i64..i64::MAX, 0_u32..9, any::<u8>()),
            (outcome, address, is_v6, is_opted_out) in (0_u8..10, any::<u128>(), any::<bool>(), any::<bool>()),
            country in any::<Option<[u8; 2]>>(),
        ) {
            let v6 = IpAddr::V6(Ipv6Addr::from(address));
            let given = Event {
                outcome: Outcome::from_stored(outcome).unwrap(),
                link: (link != 0).then(|| LinkId::from_stored(link)),
                domain: DomainId::from_stored(i64::from(domain)),
                rule,
                client: if is_v6 { v6 } else { IpAddr::V4(std::net::Ipv4Addr::from(rule as u32)) },
                is_opted_out,
                country,
                ..event(at, &texts)
            };
            let mut arena = Arena::default();
            prop_assert_eq!(arena.push(&given, 0), Some(at.max(1)));
            let given = Event { at: at.max(1), ..given };
            prop_assert_eq!(read(arena.block(Thread::of(1))), vec![given.cut()]);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut block = vec![FORMAT];
            block.extend_from_slice(&bytes);
            for block in [&block, &bytes] {
                if let Ok((_, events)) = read_block(block) {
                    prop_assert!(events.count() <= block.len());
                }
            }
        }
    }
}
