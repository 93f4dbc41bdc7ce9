//! Recognition of bots: crawlers, previews, monitors and libraries.
//!
//! 1. A bot is what a list knows: the names of crawler-user-agents (`crawlers/README.md`), the
//!    spiders among the devices of uap-core, and the words below, with which crawlers and libraries
//!    call themselves.
//! 2. All others are people: apps, the browsers within them, television sets, and agents that
//!    nobody has heard of. So is a client without a user agent, which is a person who hides it.
//!
//! Bots that imitate a browser in every byte are not recognised.

use std::sync::LazyLock;

use crate::{crawlers, head, words::Words};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// A crawler, or the preview of a chat.
    Crawler,
    Program,
    /// A word that contains a bot's by accident.
    Innocent,
}

static WORDS: LazyLock<Words<Sign>> = LazyLock::new(|| {
    let [crawlers, programs] = [CRAWLERS, PROGRAMS].map(|words| words.lines().collect::<Vec<_>>());
    Words::new(&[(Sign::Crawler, &crawlers[..]), (Sign::Program, &programs[..]), (Sign::Innocent, INNOCENT)])
});

/// Words of crawlers, previews and monitors in general, and the names of some that the list lacks,
/// one a line. Several chats use the name of another one: Signal sends `WhatsApp`, LINE and
/// iMessage send `facebookexternalhit`.
const CRAWLERS: &str = include_str!("../crawlers/words.txt");

/// Words of programs and libraries that are no app of a person, one a line. `http` begins the
/// address of an operator.
const PROGRAMS: &str = include_str!("../crawlers/programs.txt");

/// Makers of phones, and words of apps.
const INNOCENT: &[&str] = &["botim", "cubot", "curling", "curly", "javafx/"];

/// Returns whether a user agent is that of a bot, in about half a microsecond.
pub fn is_bot(user_agent: &[u8]) -> bool {
    let user_agent = head(user_agent);
    let has_word = WORDS.found_in(user_agent).any(|sign| sign != Sign::Innocent);
    has_word || has_mail_address(user_agent) || crawlers::is_named_in(user_agent)
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
    !is_program && crawlers::is_named_in(user_agent)
}

/// Returns whether a user agent names the mail address of an operator. Versions such as
/// `android@150` are none.
fn has_mail_address(user_agent: &[u8]) -> bool {
    user_agent.windows(2).any(|pair| pair[0] == b'@' && pair[1].is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::tests::PARSER;

    const PROGRAMS_OF_USERS: [&str; 12] = [
        "curl/8.5.0",
        "Wget/1.21.4",
        "GuzzleHttp/7",
        "python-requests/2.32.3",
        "Python/3.11 aiohttp/3.9.5",
        "Go-http-client/2.0",
        "okhttp/4.12.0",
        "Apache-HttpClient/4.5.14 (Java/17.0.10)",
        "libwww-perl/6.67",
        "axios/1.7.2",
        "HTTPie/3.2.2",
        "PostmanRuntime/7.39.0",
    ];
    const PREVIEWS: [&str; 24] = [
        "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
        "Slack-ImgProxy (+https://api.slack.com/robots)",
        "WhatsApp/2.23.20.0 A",
        "TelegramBot (like TwitterBot)",
        "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_11_1) AppleWebKit/601.2.4 (KHTML, like Gecko) Version/9.0.1 Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0",
        "facebookexternalhit/1.1; kakaotalk-scrap/1.0; +https://devtalk.kakao.com/t/scrap/33984",
        "facebookexternalhit/1.1;line-poker/1.0",
        "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)",
        "LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)",
        "Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5 skype-url-preview@microsoft.com",
        "MicrosoftPreview/2.0; +https://aka.ms/MicrosoftPreview",
        "Mozilla/4.0 (compatible; ms-office; MSOffice 16)",
        "Microsoft Office Existence Discovery",
        "Synapse (bot; +https://github.com/matrix-org/synapse)",
        "Mozilla/5.0 (compatible; Bluesky Cardyb/1.1; +mailto:support@bsky.app)",
        "Mastodon/4.3.0 (http.rb/5.2.0; +https://mastodon.example/)",
        "Misskey/2024.5.0",
        "Mozilla/5.0 (compatible; Google-PageRenderer Google (+https://developers.google.com/+/web/snippet/))",
        "Viber",
        "Snap URL Preview Service; bot; snapchat; https://developers.snap.com/robots",
        "Discourse Forum Onebox v3.3.0",
        "ZoomBot (zoombot 0.1 +https://zoom.us)",
        "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/109.0 Safari/537.36 RuxitSynthetic/1.0",
    ];
    /// Agents of people, one a line.
    const PEOPLE: &str = include_str!("people.txt");
    const KNOWN_BOTS: &str = include_str!("known_bots.txt");

    #[test]
    fn apps_and_agents_that_no_list_knows_are_people() {
        for person in PEOPLE.lines().chain(["", " ", "-", "?", "shlink-tests-agent"]) {
            assert!(!is_bot(person.as_bytes()), "{person}");
            assert!(!PARSER.parse(person.as_bytes()).bot, "{person}");
        }
    }

    #[test]
    fn crawlers_previews_monitors_and_libraries_are_bots() {
        for bot in KNOWN_BOTS.lines() {
            assert!(is_bot(bot.as_bytes()), "{bot}");
        }
    }

    #[test]
    fn crawlers_and_previews_are_told_from_programs_and_people() {
        for program in PROGRAMS_OF_USERS {
            assert!(is_bot(program.as_bytes()) && !is_crawler(program.as_bytes()), "{program}");
        }
        for preview in PREVIEWS {
            assert!(is_crawler(preview.as_bytes()), "{preview}");
        }
        for person in PEOPLE.lines().chain([""]) {
            assert!(!is_crawler(person.as_bytes()), "{person}");
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
}
