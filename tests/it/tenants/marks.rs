//! Marks, which tell whose a text is, and random numbers.

use std::collections::BTreeSet;

/// Beginning of every mark, made of letters that a host, a tag and a header can have.
pub(super) const MARK: &str = "zqmk";
/// Characters of what was found that a failure shows.
const SHOWN: usize = 160;

/// Random numbers of a seed (splitmix64).
pub(crate) struct Rng(u64);

impl Rng {
    /// Begins at a mixed state: those of neighbouring seeds would give the same numbers, shifted by
    /// one.
    pub(crate) fn new(seed: u64) -> Self {
        Self(Self(seed).next())
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() % most.max(1) as u64).unwrap()
    }

    pub(super) fn is_one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let place = self.below(from.len());
        from.get(place)
    }

    /// Returns a slug that is also a mintable code.
    pub(super) fn code(&mut self) -> String {
        const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        (0..6).map(|_| char::from(DIGITS[self.below(DIGITS.len())])).collect()
    }
}

/// Returns where a text has one of these secrets, unless the caller has sent it.
pub(super) fn leak(text: &str, secrets: &BTreeSet<String>, sent: &BTreeSet<String>) -> Option<String> {
    let mut text = text.to_owned();
    // The longest first, because one may be a part of another.
    let mut sent: Vec<&String> = sent.iter().filter(|text| !text.is_empty()).collect();
    sent.sort_by_key(|text| std::cmp::Reverse(text.len()));
    for own in sent {
        // Names of files in an archive have no slashes.
        text = text.replace(own.as_str(), "(sent)").replace(&own.replace('/', "-"), "(sent)");
    }
    let at = secrets.iter().filter_map(|secret| text.find(secret.as_str())).min()?;
    let before = text[..at].char_indices().rev().take(SHOWN).last().map_or(0, |(start, _)| start);
    Some(text[before..].chars().take(2 * SHOWN).collect())
}
