//! The kind of a device, by the words of its user agent.
//!
//! 1. The most special kind wins: the browser of a television set says `Linux`, that of a console
//!    `Windows NT`, and that of a watch `Mobile`.
//! 2. Android without `Mobile` is a tablet. That is Chrome's own rule.
//! 3. An iPad asks for desktop pages by default, and is then not to be told from a Mac.

use std::sync::LazyLock;

use crate::words::Words;

/// What kind of device a user agent claims to run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DeviceKind {
    /// Desktop or laptop computer.
    Desktop,
    /// Phone or media player.
    Mobile,
    /// Tablet or e-book reader.
    Tablet,
    /// Television set, or a box or stick for one.
    Tv,
    /// Game console.
    Console,
    /// Watch, glasses or headset.
    Wearable,
    /// No person's device: crawler, preview, monitor or library.
    Bot,
    /// Another kind, such as a car.
    Other,
    /// The user agent does not tell.
    Unknown,
}

impl DeviceKind {
    /// Returns the kind in lower case, such as `tablet`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Desktop => "desktop",
            Self::Mobile => "mobile",
            Self::Tablet => "tablet",
            Self::Tv => "tv",
            Self::Console => "console",
            Self::Wearable => "wearable",
            Self::Bot => "bot",
            Self::Other => "other",
            Self::Unknown => "unknown",
        }
    }

    pub(crate) fn of(user_agent: &[u8]) -> Self {
        WORDS.found_in(user_agent).min().map_or(Self::Unknown, |rank| KINDS[rank])
    }
}

/// Words of devices, one a line, with notes behind `#`. Each group is of a kind in [`KINDS`].
const WORDS_OF_DEVICES: &str = include_str!("devices.txt");

/// The kinds of the groups of words, the most special first.
const KINDS: [DeviceKind; 8] = [
    DeviceKind::Other,
    DeviceKind::Wearable,
    DeviceKind::Console,
    DeviceKind::Tv,
    DeviceKind::Tablet,
    DeviceKind::Mobile,
    DeviceKind::Tablet,
    DeviceKind::Desktop,
];

/// The words, each with the rank of its kind.
static WORDS: LazyLock<Words<usize>> = LazyLock::new(|| {
    let word = |line: &'static str| line.split("  # ").next().unwrap_or(line);
    let groups = WORDS_OF_DEVICES.split("\n\n").enumerate();
    Words::new(groups.flat_map(|(rank, group)| group.lines().map(move |line| (word(line), rank))))
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_special_word_decides() {
        for (user_agent, kind) in [
            ("X11; GNU/Linux; QtCarBrowser", DeviceKind::Other),
            ("Linux; Android 14; Mobile; Galaxy Watch6", DeviceKind::Wearable),
            ("Windows NT 10.0; Xbox; Xbox One", DeviceKind::Console),
            ("Linux; Android 9; AFTMM", DeviceKind::Tv),
            ("Linux; Android 12; SM-X700 Mobile", DeviceKind::Tablet),
            ("Linux; Android 12", DeviceKind::Tablet),
            ("Linux; Android 12 Mobile", DeviceKind::Mobile),
            ("Windows NT 6.1; Tablet PC 2.0", DeviceKind::Desktop),
            ("?", DeviceKind::Unknown),
        ] {
            assert_eq!(DeviceKind::of(user_agent.as_bytes()), kind, "{user_agent}");
        }
    }
}
