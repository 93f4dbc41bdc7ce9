//! Recognition of preview bots: programs that fetch a link before a person follows it.
//!
//! Chats and social networks fetch every link that is posted. They identify themselves in the user
//! agent, which any client can imitate. So a client that is taken for a preview bot gets less than
//! others, and never more.

/// Substrings of user agents, in lower case. Several chats use the name of another one: Signal
/// sends `WhatsApp`, LINE and iMessage send `facebookexternalhit`.
const WORDS: [&str; 35] = [
    "applebot",
    "bingbot",
    "bingpreview",
    "cardyb",
    "discordbot",
    "duckduckbot",
    "embedly",
    "facebookcatalog",
    "facebookexternalhit",
    "facebot",
    "flipboardproxy",
    "google-inspectiontool",
    "google-pagerenderer",
    "googlebot",
    "iframely",
    "kakaotalk-scrap",
    "line-poker",
    "linkedinbot",
    "mastodon",
    "mattermost-bot",
    "meta-externalagent",
    "meta-externalfetcher",
    "microsoftpreview",
    "nextcloud server crawler",
    "pinterestbot",
    "redditbot",
    "rocket.chat",
    "skypeuripreview",
    "slack-imgproxy",
    "slackbot",
    "synapse",
    "telegrambot",
    "twitterbot",
    "vkshare",
    "whatsapp",
];

/// Returns `true` if the user agent is that of a preview bot.
#[must_use]
pub fn is_preview(user_agent: &str) -> bool {
    let user_agent = user_agent.to_ascii_lowercase();
    WORDS.iter().any(|word| user_agent.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn previews_are_told_from_people() {
        for user_agent in [
            "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
            "WhatsApp/2.23.20.0 A",
            "TelegramBot (like TwitterBot)",
            "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
            "Twitterbot/1.0",
            "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)",
            "LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)",
            "Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5 skype-url-preview@microsoft.com",
            "Synapse (bot; +https://github.com/matrix-org/synapse)",
        ] {
            assert!(is_preview(user_agent), "{user_agent}");
        }
        for user_agent in [
            "",
            "curl/8.5.0",
            "GuzzleHttp/7",
            "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148 [FBAN/FBIOS;FBAV/400.0]",
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 Instagram 300.0",
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 Snapchat/12.0.0.0 (like Safari/604.1)",
        ] {
            assert!(!is_preview(user_agent), "{user_agent}");
        }
    }
}
