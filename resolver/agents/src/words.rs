//! Words that are searched for in a text in one pass, regardless of case.

use aho_corasick::{AhoCorasick, MatchKind};

/// Words, each with its meaning. Of overlapping words in a text, the one that begins first is
/// found, and of those that begin at the same place the longest.
#[derive(Debug)]
pub(crate) struct Words<T> {
    automaton: AhoCorasick,
    meanings: Vec<T>,
}

impl<T: Copy> Words<T> {
    pub(crate) fn new<'a>(words: impl Iterator<Item = (&'a str, T)>) -> Self {
        let (words, meanings): (Vec<_>, Vec<_>) = words.unzip();
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::LeftmostLongest)
            .build(words)
            .expect("a few short words are far from the limits of an automaton");
        Self { automaton, meanings }
    }

    /// Returns the meanings of the words that a text contains, in the order of the text.
    pub(crate) fn found_in<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = T> + 'a {
        self.automaton.find_iter(text).map(|found| self.meanings[found.pattern().as_usize()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_word_hides_those_within_it() {
        let words = Words::new([("bot", 1), ("cubot", 2), ("bottle", 2), ("x", 3)].into_iter());
        let found: Vec<_> = words.found_in(b"XCubot BOT\xff bottles").collect();
        assert_eq!(found, [3, 2, 1, 2]);
    }
}
