//! Recognition of bots: crawlers, previews, monitors and libraries.
//!
//! 1. A bot is what a list knows: the names of crawler-user-agents (`crawlers/README.md`), and the
//!    words below, with which crawlers and libraries call themselves.
//! 2. All others are people: apps, the browsers within them, television sets, and agents that
//!    nobody has heard of. So is a client without a user agent, which is a person who hides it.
//!
//! Bots that imitate a browser in every byte are not recognised.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use crate::{head, words::Words};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// A crawler, or the preview of a chat.
    Crawler,
    Program,
    /// A word that contains a bot's by accident.
    Innocent,
}

static WORDS: LazyLock<Words<Sign>> = LazyLock::new(|| {
    let groups = [(CRAWLERS, Sign::Crawler), (PROGRAMS, Sign::Program), (INNOCENT, Sign::Innocent)];
    Words::new(groups.into_iter().flat_map(|(words, sign)| words.lines().map(move |word| (word, sign))))
});

/// Words of crawlers, previews and monitors in general, and the names of some that the list lacks,
/// one a line. Several chats use the name of another one: Signal sends `WhatsApp`, LINE and
/// iMessage send `facebookexternalhit`.
const CRAWLERS: &str = include_str!("../crawlers/words.txt");

/// Words of programs and libraries that are no app of a person, one a line. `http` begins the
/// address of an operator.
const PROGRAMS: &str = include_str!("../crawlers/programs.txt");

/// Makers of phones, and words of apps.
const INNOCENT: &str = "botim\ncubot\ncurling\ncurly\njavafx/";

/// Words of crawlers that unfurl links, one a line. Each of them is a crawler by the lists above.
const UNFURLER_WORDS: &str = include_str!("../crawlers/unfurlers.txt");

static UNFURLERS: LazyLock<Words<()>> =
    LazyLock::new(|| Words::new(UNFURLER_WORDS.lines().map(|word| (word, ()))));

/// The names of crawlers in the list of crawler-user-agents, one a line; `^` is the beginning of an
/// agent.
const NAMES: &str = include_str!("../crawlers/names.txt");

/// The names as one automaton, and whether each stands at the beginning only.
static NAMED: LazyLock<(AhoCorasick, Vec<bool>)> = LazyLock::new(|| {
    let names = NAMES.lines().map(|name| name.strip_prefix('^').unwrap_or(name));
    let automaton = AhoCorasick::new(names).expect("20 kB of names are far from the limits of an automaton");
    (automaton, NAMES.lines().map(|name| name.starts_with('^')).collect())
});

/// Returns whether a user agent is that of a bot, in about half a microsecond.
pub fn is_bot(user_agent: &[u8]) -> bool {
    let user_agent = head(user_agent);
    let has_word = WORDS.found_in(user_agent).any(|sign| sign != Sign::Innocent);
    has_word || has_mail_address(user_agent) || has_name_of_crawler(user_agent)
}

/// Returns whether a bot is a crawler, a monitor or the preview of a chat, which fetches a link
/// before a person follows it, and not a program that its user has told to fetch the link.
pub fn is_crawler(user_agent: &[u8]) -> bool {
    let user_agent = head(user_agent);
    let mut is_program = false;
    for sign in WORDS.found_in(user_agent) {
        match sign {
            Sign::Crawler => return true,
            Sign::Program => is_program = true,
            Sign::Innocent => {}
        }
    }
    !is_program && has_name_of_crawler(user_agent)
}

/// Returns whether a crawler is one that shows the title and the picture of a link in a chat, a
/// social network or a document.
pub fn is_unfurler(user_agent: &[u8]) -> bool {
    UNFURLERS.found_in(head(user_agent)).next().is_some()
}

/// Returns whether a user agent names the mail address of an operator. Versions such as
/// `android@150` are none.
fn has_mail_address(user_agent: &[u8]) -> bool {
    user_agent.windows(2).any(|pair| pair[0] == b'@' && pair[1].is_ascii_alphabetic())
}

fn has_name_of_crawler(user_agent: &[u8]) -> bool {
    let (automaton, is_first) = &*NAMED;
    let mut found = automaton.find_overlapping_iter(user_agent);
    found.any(|name| name.start() == 0 || !is_first[name.pattern().as_usize()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::tests::PARSER;

    /// Agents of several kinds, one a line.
    const PROGRAMS_OF_USERS: &str = include_str!("programs_of_users.txt");
    const PREVIEWS: &str = include_str!("previews.txt");
    const PEOPLE: &str = include_str!("people.txt");
    const KNOWN_BOTS: &str = include_str!("known_bots.txt");

    #[test]
    fn bots_are_told_from_people_and_crawlers_from_programs() {
        for person in PEOPLE.lines().chain(["", " ", "-", "?", "shlink-tests-agent"]) {
            let agent = person.as_bytes();
            assert!(!is_bot(agent) && !is_crawler(agent) && !PARSER.parse(agent).bot, "{person}");
        }
        for bot in KNOWN_BOTS.lines() {
            assert!(is_bot(bot.as_bytes()), "{bot}");
        }
        for program in PROGRAMS_OF_USERS.lines() {
            assert!(is_bot(program.as_bytes()) && !is_crawler(program.as_bytes()), "{program}");
        }
        for preview in PREVIEWS.lines() {
            assert!(is_crawler(preview.as_bytes()), "{preview}");
        }
    }

    #[test]
    fn every_unfurler_is_a_crawler_and_others_are_none() {
        for word in UNFURLER_WORDS.lines() {
            let agent = word.to_uppercase();
            assert!(is_unfurler(agent.as_bytes()) && is_crawler(agent.as_bytes()), "{word}");
        }
        let unfurling = PREVIEWS.lines().filter(|agent| is_unfurler(agent.as_bytes())).count();
        assert!(unfurling > PREVIEWS.lines().count() / 2, "{unfurling}");
        let search = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
        for other in PEOPLE.lines().chain(PROGRAMS_OF_USERS.lines()).chain([search, ""]) {
            assert!(!is_unfurler(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn words_within_words_are_no_bots() {
        let phone = "Mozilla/5.0 (Linux; Android 13; CUBOT X70) AppleWebKit/537.36 Safari/537.36";
        assert!(!is_bot(phone.as_bytes()));
        assert!(is_bot(b"Mozilla/5.0 (CUBOT X70) AppleWebKit/537.36 (compatible; cubot-bot/1.0)"));
    }

    #[test]
    fn only_the_first_bytes_count() {
        let long = |text: &str| format!("AppleWebKit{}{text}", " ".repeat(crate::AGENT_MAX - 14));
        assert!(is_bot(long("bot").as_bytes()));
        assert!(!is_bot(long(" bot").as_bytes()));
    }

    #[test]
    fn texts_in_the_same_memory_are_told_apart() {
        let mut buffer = b"Mozilla/5.0 AppleWebKit/537.36 (compatible; GPTBot/1.2) Safari/537.36".to_vec();
        assert!(is_bot(&buffer));
        buffer[44..50].copy_from_slice(b"Chrome");
        assert!(!is_bot(&buffer));
    }

    #[test]
    fn every_name_of_the_list_is_found() {
        for name in NAMES.lines() {
            let name = name.strip_prefix('^').unwrap_or(name);
            assert!(has_name_of_crawler(name.as_bytes()), "{name}");
        }
        assert!(NAMES.lines().count() > 1_000);
    }

    #[test]
    fn a_name_that_stands_first_is_none_elsewhere() {
        for (agent, is_named) in [
            ("Silk/44.1.54 like Chrome/44.0", true),
            ("Mozilla/5.0 (Linux) AppleWebKit/537.36 Silk/130.4.1 like Chrome/130.0", false),
            ("HTTPie/3.2.2", true),
            ("Mozilla/5.0 HTTPie/3.2.2", false),
        ] {
            assert_eq!(has_name_of_crawler(agent.as_bytes()), is_named, "{agent}");
        }
    }
}
