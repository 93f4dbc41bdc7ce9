//! Which texts the store has, as far as this process knows.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use visit_store::{StoredText, TextRef};

use crate::minute::Minute;

/// Texts remembered in each of two generations.
const REMEMBERED: usize = 100_000;
/// New texts in a minute. Visitors who send another user agent or referrer each time would
/// otherwise fill the store with texts that no one reads.
const NEW_PER_MINUTE: usize = 10_000;

/// Texts that the store has, and those that the next batch adds.
#[derive(Debug, Default)]
pub struct KnownTexts {
    young: HashSet<TextRef>,
    old: HashSet<TextRef>,
    added: HashMap<TextRef, Vec<u8>>,
    new_texts: Minute,
    /// Texts that were not kept since the start.
    pub(crate) refused: u64,
}

impl KnownTexts {
    /// Returns whether a visit may refer to a text: the store has it, or the next batch adds it.
    /// `now` is the time since any fixed instant.
    pub fn keep(&mut self, at: TextRef, text: &[u8], now: Duration) -> bool {
        if self.young.contains(&at) || self.added.contains_key(&at) {
            return true;
        }
        if self.old.contains(&at) {
            self.remember(at);
            return true;
        }
        let left = self.new_texts.left(NEW_PER_MINUTE, now);
        if *left == 0 {
            self.refused += 1;
            return false;
        }
        *left -= 1;
        self.added.insert(at, text.to_vec());
        true
    }

    /// Takes the texts that the next batch adds. Until it is stored, the store does not have them.
    pub fn take_added(&mut self) -> Vec<StoredText> {
        std::mem::take(&mut self.added).into_iter().map(|(at, text)| StoredText { at, text }).collect()
    }

    /// Notes that a batch with these texts is stored.
    pub fn stored(&mut self, texts: &[StoredText]) {
        texts.iter().for_each(|text| self.remember(text.at));
    }

    fn remember(&mut self, at: TextRef) {
        if self.young.len() >= REMEMBERED {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(at);
    }
}

#[cfg(test)]
mod tests {
    use visits::{Month, TextHash};

    use super::*;

    fn at(hash: i64) -> TextRef {
        TextRef { month: Month::from_stored(1), hash: TextHash::from_stored(hash) }
    }

    fn store(known: &mut KnownTexts) {
        let added = known.take_added();
        known.stored(&added);
    }

    #[test]
    fn a_text_is_added_once_and_again_if_its_batch_was_not_stored() {
        let mut known = KnownTexts::default();
        let now = Duration::from_secs(1);
        for _ in 0..2 {
            assert!(known.keep(at(7), b"a", now) && known.keep(at(7), b"a", now));
            assert_eq!(known.take_added(), [StoredText { at: at(7), text: b"a".to_vec() }]);
        }
        assert!(known.keep(at(7), b"a", now));
        store(&mut known);
        assert!(known.keep(at(7), b"a", now) && known.take_added().is_empty());
    }

    #[test]
    fn new_texts_are_limited_by_the_minute_and_known_ones_are_not() {
        let mut known = KnownTexts::default();
        let kept = |known: &mut KnownTexts, from: i64, now| {
            (from..from + 20_000).filter(|hash| known.keep(at(*hash), b"", Duration::from_secs(now))).count()
        };
        assert_eq!(kept(&mut known, 0, 0), 10_000);
        store(&mut known);
        assert_eq!(kept(&mut known, 0, 59), 10_000);
        assert_eq!(known.refused, 20_000);
        assert_eq!(kept(&mut known, 0, 60), 20_000);
    }

    #[test]
    fn what_is_in_use_is_not_forgotten() {
        let mut known = KnownTexts::default();
        let mut minute = 0;
        known.keep(at(-1), b"", Duration::ZERO);
        store(&mut known);
        for hash in 0..300_000 {
            if hash % 5_000 == 0 {
                minute += 60;
                assert!(known.keep(at(-1), b"", Duration::from_secs(minute)));
                assert!(known.added.is_empty(), "{hash}");
            }
            known.keep(at(hash), b"", Duration::from_secs(minute));
            store(&mut known);
        }
        assert!(known.young.len() + known.old.len() <= 2 * REMEMBERED);
    }
}
