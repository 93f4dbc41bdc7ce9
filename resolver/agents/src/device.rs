//! The kind of a device, by the words of its user agent.
//!
//! 1. The most special kind wins: the browser of a television set says `Linux`, that of a console
//!    `Windows NT`, and that of a watch `Mobile`.
//! 2. Android without `Mobile` is a tablet. That is Chrome's own rule.
//! 3. An iPad asks for desktop pages by default, and is then not to be told from a Mac.

use std::sync::LazyLock;

use crate::words::Words;

pub(crate) const UNKNOWN: &str = "unknown";

/// Groups of a kind of device and its words, the most special first, one a line, with notes behind
/// `#`.
const DEVICES: &str = include_str!("devices.txt");

static WORDS: LazyLock<Words<(usize, &'static str)>> = LazyLock::new(|| {
    let words = DEVICES.split("\n\n").enumerate().flat_map(|(rank, group)| {
        let mut lines = group.lines().map(|line| line.split("  # ").next().unwrap_or(line));
        let kind = lines.next().unwrap_or(UNKNOWN);
        lines.map(move |word| (word, (rank, kind)))
    });
    Words::new(words)
});

/// Returns the kind of the device that a user agent claims to run on.
pub(crate) fn kind(user_agent: &[u8]) -> &'static str {
    WORDS.found_in(user_agent).min().map_or(UNKNOWN, |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_special_word_decides() {
        for (user_agent, expected) in [
            ("X11; GNU/Linux; QtCarBrowser", "other"),
            ("Linux; Android 14; Mobile; Galaxy Watch6", "wearable"),
            ("Windows NT 10.0; Xbox; Xbox One", "console"),
            ("Linux; Android 9; AFTMM", "tv"),
            ("Linux; Android 12; SM-X700 Mobile", "tablet"),
            ("Linux; Android 12", "tablet"),
            ("Linux; Android 12 Mobile", "mobile"),
            ("Windows NT 6.1; Tablet PC 2.0", "desktop"),
            ("?", "unknown"),
        ] {
            assert_eq!(kind(user_agent.as_bytes()), expected, "{user_agent}");
        }
    }
}
