//! Parser of user agents by the rules of uap-core.
//!
//! 1. Of each list (browsers, systems), the first rule that matches is taken. Literals that a rule
//!    requires are searched for in one pass, so a parse takes some microseconds.
//! 2. The rules match printable ASCII only (`uap-core/README.md`), so a text has no other letters.

use serde::Deserialize;
use ua_parser::{os, user_agent};

use crate::{
    bots::is_bot,
    device::{self, UNKNOWN},
    head,
};

const RULES: &str = include_str!("../uap-core/rules.json");
/// The word by which a rule says that it does not know.
const NOT_KNOWN: &str = "Other";
const BOT: &str = "bot";
const NAME_MAX: usize = 64;

/// A client, as far as its user agent describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The browser, app or bot, such as `Chrome Mobile` or `GPTBot`; `unknown` if not told.
    pub browser: Box<str>,
    /// The operating system, such as `Windows` or `iOS`; `unknown` if not told.
    pub os: Box<str>,
    /// The kind of device, such as `tablet`: one of `devices.txt`, or `unknown`; `bot` for every
    /// bot.
    pub device: &'static str,
    /// Whether the client is a bot: a crawler, preview, monitor or library.
    pub bot: bool,
}

/// A parser of user agents.
///
/// Each expression has caches that grow with the texts it is tried on, once for each thread that
/// uses the parser at the same time. So it belongs to one thread.
pub(crate) struct Parser {
    browsers: user_agent::Extractor<'static>,
    systems: os::Extractor<'static>,
}

/// The rules as they stand in the file.
#[derive(Deserialize)]
struct Rules {
    user_agent_parsers: Vec<user_agent::Parser<'static>>,
    os_parsers: Vec<os::Parser<'static>>,
}

impl Parser {
    pub(crate) fn new() -> Self {
        let rules: Rules =
            serde_json::from_str(RULES).expect("the rules are compiled in, and every test reads them");
        let browsers = user_agent::Builder::new().push_all(rules.user_agent_parsers);
        let systems = os::Builder::new().push_all(rules.os_parsers);
        let built = "the rules are compiled in, and every test builds them";
        Self {
            browsers: browsers.expect(built).build().expect(built),
            systems: systems.expect(built).build().expect(built),
        }
    }

    pub(crate) fn parse(&self, user_agent: &[u8]) -> Agent {
        let text = printable(user_agent);
        let bot = is_bot(user_agent);
        let browser = name(self.browsers.extract(&text).as_ref().map(|it| &*it.family));
        let os = name(self.systems.extract(&text).as_ref().map(|it| &*it.os));
        let device = if bot { BOT } else { device::kind(text.as_bytes()) };
        Agent { browser, os, device, bot }
    }
}

/// Returns the start of a user agent with a question mark for each byte outside printable ASCII.
fn printable(user_agent: &[u8]) -> String {
    let letter = |byte: &u8| if matches!(byte, b' '..=b'~') { char::from(*byte) } else { '?' };
    head(user_agent).iter().map(letter).collect()
}

/// Returns the name that a rule gives, cut between two characters.
fn name(text: Option<&str>) -> Box<str> {
    let known = text.map(str::trim).filter(|it| !it.is_empty() && *it != NOT_KNOWN);
    let known = known.unwrap_or(UNKNOWN);
    known[..known.floor_char_boundary(NAME_MAX)].trim_end().into()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    /// Building one for each test would take most of their time.
    pub(crate) static PARSER: LazyLock<Parser> = LazyLock::new(Parser::new);

    /// User agents, each followed by a line with its browser, system and kind of device.
    const AGENTS: &str = include_str!("real_agents.txt");

    #[test]
    fn real_agents_are_recognised() {
        let mut lines = AGENTS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut count = 0;
        while let Some(user_agent) = lines.next() {
            let it = PARSER.parse(user_agent.as_bytes());
            let said = format!("= {}, {}, {}", it.browser, it.os, it.device);
            assert_eq!(Some(said.as_str()), lines.next(), "{user_agent}");
            assert_eq!(it.bot, said.ends_with(", bot"), "{user_agent}");
            count += 1;
        }
        assert!(count > 50, "{count} agents");
    }

    #[test]
    fn agents_that_say_nothing_are_unknown() {
        let junk: Vec<u8> =
            (0..8192_u32).map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[2] | 0x80).collect();
        for user_agent in [&b""[..], b" ", b"\xff\xfe\x80", &[0; 8192], &junk, "…".as_bytes()] {
            let agent = PARSER.parse(user_agent);
            assert_eq!((&*agent.browser, &*agent.os), (UNKNOWN, UNKNOWN), "{agent:?}");
            assert!(!agent.bot && agent.device == UNKNOWN);
        }
    }

    #[test]
    fn letters_outside_ascii_do_not_hide_the_rest() {
        let agent = PARSER
            .parse(b"Mozilla/5.0 (X11; Linux x86_64; f\xfcr \xe2\x82\xac) Gecko/20100101 Firefox/132.0");
        assert_eq!(&*agent.browser, "Firefox");
    }

    #[test]
    fn names_are_cut_between_characters_and_empty_ones_are_unknown() {
        let (long, wide) = ("x".repeat(65), format!("x{}", "\u{fc}".repeat(40)));
        for (text, expected) in [
            (" Chrome Mobile ", "Chrome Mobile"),
            (&long, &long[..NAME_MAX]),
            (&wide, &wide[..NAME_MAX - 1]),
            (&format!("{} y", &long[2..]), &long[2..]),
            (" ", UNKNOWN),
            (NOT_KNOWN, UNKNOWN),
        ] {
            assert_eq!(&*name(Some(text)), expected, "{text:?}");
        }
        assert_eq!(&*name(None), UNKNOWN);
    }

    #[test]
    fn only_the_first_bytes_are_parsed() {
        let text = |blanks| format!("Mozilla/5.0 AppleWebKit {}Firefox/132.0", " ".repeat(blanks));
        assert_eq!(&*PARSER.parse(text(400).as_bytes()).browser, "Firefox");
        assert_eq!(&*PARSER.parse(text(500).as_bytes()).browser, UNKNOWN);
    }

    /// Bytes, and texts made of the words that rules look for.
    fn user_agents() -> impl Strategy<Value = Vec<u8>> {
        let words = "Mozilla/5.0 (|Linux; Android 1|; | Build/|) AppleWebKit/537.36|Chrome/1.2.3|Mobile |\
                     iPhone|CFNetwork/1 Darwin/1|HbbTV/1.1.1 (|Windows Phone |IEMobile/|Opera/9.80 |bot|\
                     SAMSUNG|(|)|\u{7f}|é|$1|MSIE |Windows NT 10.0";
        let word = prop::sample::select(words.split('|').collect::<Vec<_>>());
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..600),
            prop::collection::vec(word, 0..40).prop_map(|words| words.concat().into_bytes()),
        ]
    }

    proptest! {
        #[test]
        fn every_text_has_bounded_and_printable_names(user_agent in user_agents()) {
            let agent = PARSER.parse(&user_agent);
            for name in [&agent.browser, &agent.os] {
                prop_assert!((1..=NAME_MAX).contains(&name.len()));
                prop_assert!(!name.contains(char::is_control));
            }
            prop_assert_eq!(agent.bot, agent.device == BOT);
        }
    }
}
