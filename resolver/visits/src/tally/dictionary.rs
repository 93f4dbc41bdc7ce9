//! Common values of dimensions, which chunks store as one byte.
//!
//! 1. Codes are stored, so the lists are fixed: no value may move or leave. A test holds them.
//! 2. The order of a list means nothing. A value that is missing is spelled out, and counts alike.
//! 3. A release refuses the codes that it does not know. Values may therefore be appended only when
//!    no earlier release reads the same database, or in a later format of chunks.

use std::{collections::HashMap, sync::LazyLock};

use super::{dimension::Dimension, dimensions::OTHER};

/// Upper limit of the codes of a dimension. The bytes above begin values that are spelled out.
pub(super) const CODES: u8 = 0xC0;

/// The two codes that every dimension has: unknown, and folded.
const COMMON: [&str; 2] = ["", OTHER];

/// Returns the list of a dimension; empty if all its values are spelled out. Values are separated
/// by `|`.
fn list(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Referrer => REFERRERS,
        Dimension::Browser => BROWSERS,
        Dimension::Os => SYSTEMS,
        Dimension::Device => DEVICES,
        Dimension::Country => COUNTRIES,
        Dimension::Language => LANGUAGES,
        Dimension::Outcome => OUTCOMES,
        Dimension::Rule => RULES,
        _ => "",
    }
}

const REFERRERS: &str = "\
    www.google.com|google.com|www.bing.com|bing.com|duckduckgo.com|search.yahoo.com|yandex.ru|ya.ru|\
    www.baidu.com|www.ecosia.org|search.brave.com|www.startpage.com|www.qwant.com|www.google.de|\
    www.google.co.uk|www.google.fr|www.google.es|www.google.it|www.google.ca|www.google.nl|\
    www.google.pl|www.google.co.in|www.google.com.br|www.google.co.jp|www.google.com.au|t.co|x.com|\
    twitter.com|www.facebook.com|facebook.com|m.facebook.com|l.facebook.com|lm.facebook.com|\
    www.instagram.com|instagram.com|l.instagram.com|www.linkedin.com|linkedin.com|lnkd.in|\
    www.youtube.com|youtube.com|m.youtube.com|www.reddit.com|reddit.com|old.reddit.com|out.reddit.com|\
    www.tiktok.com|www.pinterest.com|www.threads.net|l.threads.net|bsky.app|go.bsky.app|\
    mastodon.social|web.telegram.org|t.me|web.whatsapp.com|wa.me|discord.com|app.slack.com|\
    teams.microsoft.com|mail.google.com|outlook.live.com|outlook.office.com|mail.yahoo.com|\
    news.google.com|news.ycombinator.com|github.com|gitlab.com|stackoverflow.com|medium.com|\
    substack.com|linktr.ee|www.twitch.tv|vk.com|away.vk.com|weibo.com|www.quora.com|www.xing.com|\
    chatgpt.com|chat.openai.com|www.perplexity.ai|claude.ai|gemini.google.com|copilot.microsoft.com|\
    docs.google.com|www.notion.so|trello.com|www.canva.com|com.google.android.gm|\
    com.google.android.googlequicksearchbox|com.linkedin.android|org.telegram.messenger|com.slack|\
    en.wikipedia.org|www.wikipedia.org|de.wikipedia.org|www.msn.com|flipboard.com|getpocket.com|\
    feedly.com|localhost";

const BROWSERS: &str = "\
    Chrome|Chrome Mobile|Chrome Mobile WebView|Chrome Mobile iOS|Chromium|HeadlessChrome|Safari|\
    Mobile Safari|Mobile Safari UI/WKWebView|Firefox|Firefox Mobile|Firefox iOS|Edge|Edge Mobile|\
    Samsung Internet|Opera|Opera Mobile|Opera Mini|Opera Touch|Brave|Vivaldi|DuckDuckGo Mobile|\
    UC Browser|Yandex Browser|QQ Browser|QQ Browser Mobile|MiuiBrowser|Amazon Silk|Whale|Coc Coc|\
    Maxthon|Sogou Explorer|Iron|Konqueror|Epiphany|Avast Secure Browser|Ecosia iOS|IE|IE Mobile|Android|\
    Facebook|Facebook Messenger|Instagram|Twitter|Snapchat|Pinterest|LinkedIn|TikTok|WhatsApp|Google|\
    Spotify|Electron|Outlook|Thunderbird|Apple Mail|Googlebot|bingbot|YandexBot|Baiduspider|Applebot|\
    DuckDuckBot|AhrefsBot|SemrushBot|Twitterbot|FacebookBot|LinkedInBot|Slackbot-LinkExpanding|\
    TelegramBot|Discordbot|GPTBot|ClaudeBot|curl|Wget|Python Requests|Go-http-client|okhttp|Other|\
    chrome|firefox|edge|safari|opera|android_browser";

const SYSTEMS: &str = "\
    Windows|Android|iOS|Mac OS X|Linux|Ubuntu|Chrome OS|Debian|Fedora|FreeBSD|OpenBSD|NetBSD|Red Hat|\
    Tizen|KaiOS|HarmonyOS|Windows Phone|Windows Mobile|BlackBerry OS|Symbian OS|Firefox OS|webOS|tvOS|\
    WatchOS|Roku|GoogleTV|Chromecast Linux|Kindle|Solaris|Other|macOS|iPadOS|ChromeOS|Arch Linux|\
    Linux Mint|CentOS|PlayStation|Nintendo";

const DEVICES: &str = "\
    desktop|mobile|tablet|phone|tv|console|watch|car|bot|other|android|ios|windows|macos|linux|chromeos|\
    Other|Spider|Mac|iPhone|iPad|Generic Smartphone|Generic Tablet";

const COUNTRIES: &str = "\
    AD|AE|AF|AL|AM|AO|AR|AT|AU|AW|AZ|BA|BB|BD|BE|BF|BG|BH|BI|BJ|BM|BN|BO|BR|BS|BT|BW|BY|BZ|CA|\
    CD|CF|CG|CH|CI|CL|CM|CN|CO|CR|CU|CV|CW|CY|CZ|DE|DJ|DK|DO|DZ|EC|EE|EG|ER|ES|ET|FI|FJ|FM|FR|\
    GA|GB|GD|GE|GH|GI|GM|GN|GP|GQ|GR|GT|GU|GY|HK|HN|HR|HT|HU|ID|IE|IL|IM|IN|IQ|IR|IS|IT|JM|JO|\
    JP|KE|KG|KH|KR|KW|KY|KZ|LA|LB|LI|LK|LR|LS|LT|LU|LV|LY|MA|MC|MD|ME|MG|MK|ML|MM|MN|MO|MQ|MR|\
    MT|MU|MV|MW|MX|MY|MZ|NA|NE|NG|NI|NL|NO|NP|NZ|OM|PA|PE|PG|PH|PK|PL|PR|PS|PT|PY|QA|RE|RO|RS|\
    RU|RW|SA|SC|SD|SE|SG|SI|SK|SL|SN|SO|SR|SS|SV|SY|SZ|TD|TG|TH|TJ|TL|TM|TN|TR|TT|TW|TZ|UA|UG|\
    US|UY|UZ|VE|VN|YE|ZA|ZM|ZW";

const LANGUAGES: &str = "\
    en|en-US|en-GB|en-CA|en-AU|en-IN|en-NZ|en-IE|en-ZA|en-SG|en-PH|de|de-DE|de-AT|de-CH|fr|fr-FR|fr-CA|\
    fr-BE|fr-CH|es|es-ES|es-MX|es-AR|es-CO|es-CL|es-PE|es-US|pt|pt-BR|pt-PT|it|it-IT|it-CH|nl|nl-NL|nl-BE|\
    pl|pl-PL|ru|ru-RU|uk|uk-UA|tr|tr-TR|ja|ja-JP|ko|ko-KR|zh|zh-CN|zh-TW|zh-HK|ar|ar-SA|ar-EG|ar-AE|he|\
    he-IL|fa|fa-IR|hi|hi-IN|bn|bn-BD|bn-IN|ta|ta-IN|te|mr|ur|ur-PK|id|id-ID|ms|ms-MY|vi|vi-VN|th|th-TH|fil|\
    sv|sv-SE|da|da-DK|nb|nb-NO|no|nn|fi|fi-FI|is|cs|cs-CZ|sk|sk-SK|hu|hu-HU|ro|ro-RO|bg|bg-BG|el|el-GR|hr|\
    hr-HR|sr|sr-RS|sl|sl-SI|et|et-EE|lv|lv-LV|lt|lt-LT|ca|ca-ES|eu|gl|sq|mk|bs|be|kk|ka|hy|az|uz|mn|ne|si|km|\
    lo|my|sw|am|af|zu|ga|cy|mt|lb|eo";

const OUTCOMES: &str = "\
    redirected|disabled|expired|not-yet-valid|limit-reached|wrong-password|unknown-code|invalid-path|\
    base-url|taken-down";

const RULES: &str = "0|1|2|3|4|5|6|7|8|9|10|11|12|13|14|15|16|17|18|19|20";

struct Dictionary {
    texts: Vec<&'static str>,
    codes: HashMap<&'static str, u8>,
}

impl Dictionary {
    fn new(list: &'static str) -> Self {
        let listed = list.split('|').filter(|text| !text.is_empty());
        let texts: Vec<&str> = COMMON.into_iter().chain(listed).collect();
        let codes = texts.iter().copied().zip(0..CODES).collect();
        Self { texts, codes }
    }
}

static DICTIONARIES: LazyLock<[Dictionary; Dimension::ALL.len()]> =
    LazyLock::new(|| Dimension::ALL.map(|dimension| Dictionary::new(list(dimension))));

pub(super) fn code(dimension: Dimension, text: &str) -> Option<u8> {
    DICTIONARIES[dimension as usize].codes.get(text).copied()
}

pub(super) fn text(dimension: Dimension, code: u8) -> Option<&'static str> {
    DICTIONARIES[dimension as usize].texts.get(usize::from(code)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::VALUE_BYTES_MAX;

    /// FNV-1a, which does not change between releases.
    fn fingerprint(texts: &[&str]) -> u64 {
        let bytes = texts.iter().flat_map(|text| text.bytes().chain([0]));
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }

    #[test]
    fn every_value_has_a_code_of_its_own_and_no_code_has_moved() {
        let stored: [(Dimension, usize, u64); 8] = [
            (Dimension::Referrer, 103, 0xc62d_9376_73e8_dacb),
            (Dimension::Browser, 85, 0x2b0b_6c0d_18f5_84b1),
            (Dimension::Os, 40, 0xd8b0_9b0b_c0d2_f591),
            (Dimension::Device, 25, 0x0fd3_9f94_ab5d_81d9),
            (Dimension::Country, 191, 0xabb3_a6f7_c074_3193),
            (Dimension::Language, 146, 0x7796_cd13_271a_8920),
            (Dimension::Outcome, 12, 0xbd4d_e3a0_b126_3538),
            (Dimension::Rule, 23, 0xf3eb_b934_283e_6c8c),
        ];
        for dimension in Dimension::ALL {
            let listed = stored.iter().find(|(of, _, _)| *of == dimension);
            // Any other dimension has the common codes alone.
            let (_, count, hash) = listed.copied().unwrap_or((dimension, 2, 0x0a32_3a61_985f_ab8c));
            let texts = &DICTIONARIES[dimension as usize].texts;
            assert_eq!(fingerprint(&texts[..count]), hash, "{dimension:?}");
            assert_eq!(texts.len() > COMMON.len(), listed.is_some(), "{dimension:?}");
            assert!(texts.len() <= usize::from(CODES), "{dimension:?}");
            for (known, number) in texts.iter().zip(0..) {
                assert_eq!((code(dimension, known), text(dimension, number)), (Some(number), Some(*known)));
                assert!(known.len() <= VALUE_BYTES_MAX);
            }
        }
        assert_eq!(code(Dimension::City, "London"), None);
        assert_eq!(text(Dimension::City, 2), None);
    }
}
