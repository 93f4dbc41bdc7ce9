//! Parser of user agents by the rules of uap-core.
//!
//! 1. Of each list (browsers, systems, devices), the first rule that matches is taken. Literals
//!    that a rule requires are searched for in one pass, so a parse takes 5 to 10 µs.
//! 2. The rules match printable ASCII only (`uap-core/README.md`), so a text has no other letters.

use ua_parser::{Extractor, Regexes, device, os, user_agent};

use crate::{Agent, DeviceKind, Name, bots::is_bot, head};

/// The rules of uap-core 0.18.0, in JSON.
const RULES: &str = include_str!("../uap-core/rules.json");
/// The word by which a rule says that it does not know.
const NOT_KNOWN: &str = "Other";
/// The device of bots.
const SPIDER: &str = "Spider";
/// The start of brands that are none.
const GENERIC: &str = "Generic";
/// Models of generic brands that are none. Chrome on Android writes K in place of each model.
const NO_MODELS: [&str; 4] = ["Feature Phone", "K", "Smartphone", "Tablet"];

/// A parser of user agents.
///
/// Each expression has caches that grow with the texts it is tried on, once for each thread that
/// uses the parser at the same time. So it belongs to one thread.
pub struct Parser {
    rules: Extractor<'static>,
}

impl Parser {
    /// Builds the parser. This takes about 0.1 s of processor time.
    #[must_use]
    pub fn new() -> Self {
        let rules: Regexes<'static> =
            serde_json::from_str(RULES).expect("the rules are compiled in, and every test reads them");
        let rules = rules.try_into().expect("the rules are compiled in, and every test builds them");
        Self { rules }
    }

    /// Parses a user agent. Names that it does not tell are unknown.
    #[must_use]
    pub fn parse(&self, user_agent: &[u8]) -> Agent {
        let text = printable(user_agent);
        let (browser, os, device) = self.rules.extract(&text);
        let bot = is_bot(user_agent) || device.as_ref().is_some_and(|it| it.device == SPIDER);
        let kind = if bot { DeviceKind::Bot } else { DeviceKind::of(text.as_bytes()) };
        let (browser, browser_version) = browser.as_ref().map(browser_names).unwrap_or_default();
        let (os, os_version) = os.as_ref().map(os_names).unwrap_or_default();
        let (brand, model) = device.as_ref().filter(|_| !bot).map(device_names).unwrap_or_default();
        Agent { browser, browser_version, os, os_version, device: kind, brand, model, bot }
    }
}

impl Default for Parser {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Parser {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Parser").finish_non_exhaustive()
    }
}

/// Returns the start of a user agent with a question mark for each byte outside printable ASCII.
fn printable(user_agent: &[u8]) -> String {
    let letter = |byte: &u8| if matches!(byte, b' '..=b'~') { char::from(*byte) } else { '?' };
    head(user_agent).iter().map(letter).collect()
}

fn browser_names(found: &user_agent::ValueRef<'_>) -> (Name, Name) {
    (name(Some(&found.family)), name(found.major))
}

fn os_names(found: &os::ValueRef<'_>) -> (Name, Name) {
    (name(Some(&found.os)), name(found.major.as_deref()))
}

fn device_names(found: &device::ValueRef<'_>) -> (Name, Name) {
    let brand = found.brand.as_deref().unwrap_or_default();
    let model = found.model.as_deref();
    match brand.starts_with(GENERIC) {
        true => (Name::default(), name(model.filter(|it| !NO_MODELS.contains(it)))),
        false => (name(Some(brand)), name(model)),
    }
}

fn name(text: Option<&str>) -> Name {
    text.filter(|it| *it != NOT_KNOWN).map(Name::new).unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    /// Building one for each test would take most of their time.
    pub(crate) static PARSER: LazyLock<Parser> = LazyLock::new(Parser::new);

    fn names(agent: &Agent) -> [&Name; 6] {
        [&agent.browser, &agent.browser_version, &agent.os, &agent.os_version, &agent.brand, &agent.model]
    }

    #[test]
    fn agents_that_say_nothing_are_unknown() {
        let junk: Vec<u8> =
            (0..8192_u32).map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[2] | 0x80).collect();
        for user_agent in [&b""[..], b" ", b"\xff\xfe\x80", &[0; 8192], &junk, "…".as_bytes()] {
            let agent = PARSER.parse(user_agent);
            assert!(names(&agent).iter().all(|name| name.as_str() == Name::UNKNOWN), "{agent:?}");
            assert!(!agent.bot && agent.device == DeviceKind::Unknown);
        }
    }

    #[test]
    fn letters_outside_ascii_do_not_hide_the_rest() {
        let agent = PARSER
            .parse(b"Mozilla/5.0 (X11; Linux x86_64; f\xfcr \xe2\x82\xac) Gecko/20100101 Firefox/132.0");
        assert_eq!((agent.browser.as_str(), agent.browser_version.as_str()), ("Firefox", "132"));
    }

    #[test]
    fn long_names_are_cut() {
        let model = "M".repeat(90);
        let text = format!(
            "Mozilla/5.0 (Linux; Android 14; {model} Build/A) AppleWebKit/537.36 \
             (KHTML, like Gecko) Chrome/131.0.0.0 Mobile Safari/537.36"
        );
        assert_eq!(PARSER.parse(text.as_bytes()).model.as_str(), &model[..Name::MAX]);
    }

    #[test]
    fn only_the_first_bytes_are_parsed() {
        let text = |blanks| format!("Mozilla/5.0 AppleWebKit {}Firefox/132.0", " ".repeat(blanks));
        assert_eq!(PARSER.parse(text(400).as_bytes()).browser.as_str(), "Firefox");
        assert!(!PARSER.parse(text(500).as_bytes()).browser.is_known());
    }

    /// Bytes, and texts made of the words that rules look for.
    fn user_agents() -> impl Strategy<Value = Vec<u8>> {
        let word = prop::sample::select(vec![
            "Mozilla/5.0 (",
            "Linux; Android 1",
            "; ",
            " Build/",
            ") AppleWebKit/537.36",
            "Chrome/1.2.3",
            "Mobile ",
            "iPhone",
            "CFNetwork/1 Darwin/1",
            "HbbTV/1.1.1 (",
            "Windows Phone ",
            "IEMobile/",
            "Opera/9.80 ",
            "bot",
            "SAMSUNG",
            "(",
            ")",
            "\u{7f}",
            "é",
            "$1",
            "MSIE ",
            "Windows NT 10.0",
        ]);
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..600),
            prop::collection::vec(word, 0..40).prop_map(|words| words.concat().into_bytes()),
        ]
    }

    proptest! {
        #[test]
        fn every_text_has_bounded_and_printable_names(user_agent in user_agents()) {
            let agent = PARSER.parse(&user_agent);
            for name in names(&agent) {
                prop_assert!((1..=Name::MAX).contains(&name.as_str().len()));
                prop_assert!(!name.as_str().contains(char::is_control));
            }
            prop_assert!(agent.bot || !is_bot(&user_agent));
            prop_assert_eq!(agent.bot, agent.device == DeviceKind::Bot);
        }
    }
}
