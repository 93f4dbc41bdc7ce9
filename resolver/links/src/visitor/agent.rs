//! Device and browser detection from the words of a user agent (RFC 9110, section 10.1.5).
//!
//! Nearly every browser also names the browsers that it wants to be taken for: Edge and Opera name
//! Chrome, and Chrome names Safari. So words are ranked, and the word that the fewest other
//! browsers use decides. Like Shlink's own parser, this one assigns other browsers, such as
//! Samsung's or Vivaldi, to none of the six.
//!
//! A browser within an app is one that names the app, or Android's WebView, which marks itself as
//! `wv`. On iOS it often names nothing that Safari does not name, and is then taken for Safari.

use crate::rule::{Browser, Device};

/// Device and browser that a user agent names.
pub(super) struct Agent {
    /// Most specific device that is known.
    device: Option<Device>,
    /// The browser, if conditions can match it.
    browser: Option<Browser>,
    /// Whether it is a browser within an app.
    is_in_app: bool,
}

/// A rank and the value that a word names: a higher rank overrules those below.
type Ranked<T> = (u8, Option<T>);

/// A platform that no condition can match and that names some of the others: Microsoft phones,
/// consoles, television sets.
const FOREIGN_PLATFORM: Ranked<Device> = (8, None);
/// A browser or robot that no condition can match.
const FOREIGN_BROWSER: Ranked<Browser> = (5, None);

impl Agent {
    /// Parses a user agent in one pass.
    pub(super) fn read(user_agent: &str) -> Self {
        let (mut platform, mut product) = (None, None);
        let (mut is_mobile, mut is_in_app) = (false, false);
        let mut previous = "";
        for piece in user_agent.split_inclusive(is_separator) {
            let word = piece.trim_end_matches(is_separator);
            // The word after `like` names a product that this one only resembles.
            if previous != "like" {
                platform = platform.max(platform_of(word, previous));
                product = product.max(product_of(word, piece.ends_with('/')));
                is_mobile |= matches!(word, "Mobile" | "IEMobile" | "Phone" | "MIDP");
                is_in_app |= is_app(word, piece.ends_with('/'));
            }
            if !word.is_empty() {
                previous = word;
            }
        }
        let device = platform.and_then(|(_, device)| device);
        Self {
            device: device.or(is_mobile.then_some(Device::Mobile)),
            browser: product.and_then(|(_, browser)| shipped_on(platform, browser?)),
            is_in_app,
        }
    }

    /// Returns `true` if the browser is the wanted one.
    pub(super) fn has(&self, wanted: Browser) -> bool {
        if wanted == Browser::InApp { self.is_in_app } else { self.browser == Some(wanted) }
    }

    /// Returns `true` if the device is the wanted one or of the wanted kind.
    pub(super) fn is(&self, wanted: Device) -> bool {
        self.device.is_some_and(|device| device == wanted || device.kind() == wanted)
    }
}

fn is_separator(one: char) -> bool {
    !one.is_ascii_alphanumeric() && one != '_'
}

fn platform_of(word: &str, previous: &str) -> Option<Ranked<Device>> {
    Some(match word {
        "Linux" | "linux" | "X11" => (1, Some(Device::Linux)),
        // These two are named together with X11, as Linux is.
        "FreeBSD" | "NetBSD" | "OpenBSD" => (2, Some(Device::Desktop)),
        "CrOS" => (3, Some(Device::Chromeos)),
        "Macintosh" => (4, Some(Device::Macos)),
        "Windows" => (5, Some(Device::Windows)),
        "iPhone" | "iPad" | "iPod" => (6, Some(Device::Ios)),
        // Named together with Linux, and by some Microsoft phones together with Windows.
        "Android" | "Adr" => (7, Some(Device::Android)),
        // On its own the word is also part of the names of Android phones.
        "Phone" if previous == "Windows" => FOREIGN_PLATFORM,
        "BlackBerry" | "BB10" | "PlayBook" | "Sailfish" | "Tizen" | "Web0S" | "SmartTV" | "Xbox"
        | "Nintendo" | "PlayStation" | "Playstation" | "PLAYSTATION" => FOREIGN_PLATFORM,
        _ => return None,
    })
}

/// Returns the browser that a word names. `has_version` distinguishes a product from the same word
/// elsewhere: some phones are called Edge.
fn product_of(word: &str, has_version: bool) -> Option<Ranked<Browser>> {
    Some(match word {
        // Android's own browser names no product but this engine, and Safari.
        "AppleWebKit" => (1, Some(Browser::AndroidBrowser)),
        "Safari" if has_version => (2, Some(Browser::Safari)),
        "Chrome" | "CriOS" if has_version => (3, Some(Browser::Chrome)),
        "Firefox" | "FxiOS" | "Iceweasel" | "IceCat" if has_version => (4, Some(Browser::Firefox)),
        "Edg" | "EdgA" | "EdgiOS" | "Edge" if has_version => (6, Some(Browser::Edge)),
        "OPR" | "OPiOS" | "OPT" | "OPX" if has_version => (7, Some(Browser::Opera)),
        // Before version 9.8 Opera came after the other products, followed by a space.
        "Opera" => (7, Some(Browser::Opera)),
        "MSIE" | "Trident" | "IEMobile" | "SamsungBrowser" | "Vivaldi" | "YaBrowser" | "YaApp_Android"
        | "UCBrowser" | "MiuiBrowser" | "Whale" | "Silk" | "Kindle" | "OculusBrowser" | "Puffin"
        | "Midori" | "SailfishBrowser" | "Tenfoot" | "HeadlessChrome" => FOREIGN_BROWSER,
        "Googlebot" | "AdsBot" | "bingbot" | "Applebot" | "YandexBot" | "GPTBot" | "Facebot" => {
            FOREIGN_BROWSER
        }
        _ => return None,
    })
}

/// Returns whether a word names an app that shows pages itself, or Android's WebView.
fn is_app(word: &str, has_version: bool) -> bool {
    match word {
        "Line" => has_version,
        "FBAN" | "FBAV" | "FB_IAB" | "Instagram" | "Barcelona" | "BytedanceWebview" | "LinkedInApp"
        | "MicroMessenger" | "Pinterest" | "Snapchat" | "Twitter" | "TwitterAndroid" | "KAKAOTALK"
        | "Weibo" | "wv" => true,
        _ => word.starts_with("musical_ly_") || word.starts_with("trill_"),
    }
}

/// Returns the browser of this platform that names `product` and none of a higher rank.
fn shipped_on(platform: Option<Ranked<Device>>, product: Browser) -> Option<Browser> {
    let is_android = platform.is_some_and(|(_, device)| device == Some(Device::Android));
    match product {
        Browser::Safari | Browser::AndroidBrowser if is_android => Some(Browser::AndroidBrowser),
        Browser::AndroidBrowser => None,
        // Browsers of consoles and television sets name Safari and no product of their own.
        Browser::Safari if platform == Some(FOREIGN_PLATFORM) => None,
        named => Some(named),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Most specific device, browser and user agent of each line; a dash for none.
    const AGENTS: &str = "\
windows chrome Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36
macos chrome Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/107.0.0.0 Safari/537.36
linux chrome Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/535.19 (KHTML, like Gecko) Ubuntu/12.04 Chromium/18.0.1025.151 Chrome/18.0.1025.151 Safari/535.19
chromeos chrome Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36
android chrome Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/118.0.0.0 Mobile Safari/537.36
android chrome Mozilla/5.0 (Linux; Android 13; SM-X906C) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/114.0.5735.130 Safari/537.36
android chrome Mozilla/5.0 (Linux; Android 11; motorola edge 20 lite) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/102.0.5005.78 Mobile Safari/537.36
android chrome Mozilla/5.0 (Linux; Android 11; ASUS ROG Phone 3) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/96.0.4664.104 Mobile Safari/537.36
android chrome Mozilla/5.0 (Linux; Android 8.0.0; SM-G930F Build/R16NW; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/74.0.3729.157 Mobile Safari/537.36
ios chrome Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/126.0.6478.35 Mobile/15E148 Safari/604.1
ios chrome Mozilla/5.0 (iPad; CPU OS 7_0 like Mac OS X) AppleWebKit/537.51.1 (KHTML, like Gecko) CriOS/30.0.1599.12 Mobile/11A465 Safari/8536.25
windows firefox Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:109.0) Gecko/20100101 Firefox/118.0
macos firefox Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:109.0) Gecko/20100101 Firefox/118.0
linux firefox Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:82.0) Gecko/20100101 Firefox/82.0
linux firefox Mozilla/5.0 (X11; U; Linux i686; en-US; rv:1.8.1) Gecko/20061024 Iceweasel/2.0 (Debian-2.0+dfsg-1)
android firefox Mozilla/5.0 (Android 10; Mobile; rv:84.0) Gecko/84.0 Firefox/84.0
android firefox Mozilla/5.0 (Android 13; Tablet; rv:109.0) Gecko/115.0 Firefox/115.0
ios firefox Mozilla/5.0 (iPhone; CPU iPhone OS 14_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) FxiOS/127.0 Mobile/15E148 Safari/605.1.15
desktop firefox Mozilla/5.0 (X11; FreeBSD amd64; rv:43.0) Gecko/20100101 Firefox/43.0
mobile firefox Mozilla/5.0 (Mobile; Nokia_8110_4G; rv:48.0) Gecko/48.0 Firefox/48.0 KAIOS/2.5
windows edge Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36 Edg/126.0.2592.56
windows edge Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/52.0.2743.116 Safari/537.36 Edge/15.15063
macos edge Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/107.0.0.0 Safari/537.36 Edg/107.0.1418.42
android edge Mozilla/5.0 (Linux; Android 10; Pixel 3 XL) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/100.0.4896.127 Mobile Safari/537.36 EdgA/97.0.1072.69
ios edge Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 EdgiOS/125.0.2535.96 Mobile/15E148 Safari/604.1
mobile edge Mozilla/5.0 (Windows Phone 10.0;  Android 4.2.1; Nokia; Lumia 520) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/42.0.2311.135 Mobile Safari/537.36 Edge/12.10130
- edge Mozilla/5.0 (Windows NT 10.0; Win64; x64; Xbox; Xbox One) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/100.0.4896.127 Safari/537.36 Edge/44.18363.8131
macos safari Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15
ios safari Mozilla/5.0 (iPhone; CPU iPhone OS 16_6_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/16.6 Mobile/15E148 Safari/604.1
ios safari Mozilla/5.0 (iPad; CPU OS 12_2 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/12.1 Mobile/15E148 Safari/604.1
ios safari Mozilla/5.0 (iPod touch; CPU iPhone OS 7_0_3 like Mac OS X) AppleWebKit/537.51.1 (KHTML, like Gecko) Version/7.0 Mobile/11B511 Safari/9537.53
ios - Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148
windows opera Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/100.0.4896.127 Safari/537.36 OPR/85.0.4341.18
windows opera Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1; de) Opera 11.01
windows opera Mozilla/5.0 (Windows NT 6.1; U; nl; rv:1.9.1.6) Gecko/20091201 Firefox/3.5.6 Opera 11.01
macos opera Opera/9.80 (Macintosh; Intel Mac OS X 10.6.8; U; Edition MacAppStore; en) Presto/2.10.229 Version/11.61
android opera Mozilla/5.0 (Linux; Android 10; VOG-L29) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/100.0.4896.127 Mobile Safari/537.36 OPR/63.3.3216.58675
android opera Opera/9.80 (Android; Opera Mini/36.2.2254/119.132; U; id) Presto/2.12.423 Version/12.16
ios opera Mozilla/5.0 (iPhone; CPU iPhone OS 15_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/15.5 Mobile/15E148 Safari/604.1 OPT/3.3.3
android android_browser Mozilla/5.0 (Linux; U; Android 4.0.2; en-us; Galaxy Nexus Build/ICL53F) AppleWebKit/534.30 (KHTML, like Gecko) Version/4.0 Mobile Safari/534.30
android android_browser Mozilla/5.0 (Linux; U; Android 3.2.1; hu-hu; Transformer TF101 Build/HTK75) AppleWebKit/534.13 (KHTML, like Gecko) Version/4.0 Safari/534.13
android - Mozilla/5.0 (Linux; Android 5.0.2; SAMSUNG SM-G925F Build/LRX22G) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/4.0 Chrome/44.0.2403.133 Mobile Safari/537.36
android - Mozilla/5.0 (Linux; U; Android 4.4.2; en-US; LG-D325 Build/KOT49I.A1411471607) AppleWebKit/534.30 (KHTML, like Gecko) Version/4.0 UCBrowser/10.2.0.535 U3/0.8.0 Mobile Safari/534.30
android - Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/125.0.6422.141 Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)
linux - Mozilla/5.0 (X11; Linux x86_64; U; en-us) AppleWebKit/537.36 (KHTML, like Gecko) Silk/3.22 like Chrome/34.0.1847.137 Safari/537.36
linux - Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/69.0.3452.0 Safari/537.36
windows - Mozilla/5.0 (Windows NT 10.0; WOW64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/100.0.4896.127 Safari/537.36 Vivaldi/4.3
windows - Mozilla/5.0 (Windows NT 6.3; WOW64; Trident/7.0; Touch; rv:11.0) like Gecko
mobile - Mozilla/5.0 (Mobile; Windows Phone 8.1; Android 4.0; ARM; Trident/7.0; Touch; rv:11.0; IEMobile/11.0; NOKIA; Lumia 520) like iPhone OS 7_0_3 Mac OS X AppleWebKit/537 (KHTML, like Gecko) Mobile Safari/537
mobile - Mozilla/5.0 (BB10; Touch) AppleWebKit/537.10+ (KHTML, like Gecko) Version/10.0.9.2372 Mobile Safari/537.10+
mobile - Mozilla/5.0 (New Nintendo 3DS like iPhone) AppleWebKit/536.30 (KHTML, like Gecko) NX/3.0.0.5.8 Mobile NintendoBrowser/1.0.9934.JP
mobile - Mozilla/5.0 (Maemo; Linux; U; Jolla; Sailfish; Mobile; rv:31.0) Gecko/31.0 Firefox/31.0 SailfishBrowser/1.0
- - Mozilla/5.0 (PlayStation; PlayStation 5/3.21) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/14.0 Safari/605.1.15
- - curl/8.5.0
";

    #[test]
    fn real_user_agents_are_told_apart() {
        assert!(AGENTS.lines().count() > 50);
        for line in AGENTS.lines() {
            let mut fields = line.splitn(3, ' ');
            let (device, browser) = (fields.next().unwrap(), fields.next().unwrap());
            let agent = Agent::read(fields.next().unwrap());
            assert_eq!(agent.device.map_or("-", Device::as_str), device, "{line}");
            assert_eq!(agent.browser.map_or("-", Browser::as_str), browser, "{line}");
            assert_eq!(agent.has(Browser::InApp), line.contains("; wv)"), "{line}");
        }
    }

    /// Browsers within apps: what follows the beginning that is [`IOS`] or [`ANDROID`].
    const IN_APPS: &str = "\
ios Mobile/15E148 [FBAN/FBIOS;FBAV/470.0.0.40.98;FBBV/612345678;FBDV/iPhone15,3;FBMD/iPhone;FBSN/iOS;FBSV/17.5]
ios Mobile/15E148 Instagram 337.0.3.23.54 (iPhone15,3; iOS 17_5; en_US; en; scale=3.00; 1290x2796; 615584364)
ios Mobile/15E148 musical_ly_32.5.0 JsSdk/2.0 NetType/WIFI Channel/App Store ByteLocale/en Region/US
ios Mobile/15E148 Safari Line/14.10.0
ios Mobile/15E148 MicroMessenger/8.0.50(0x18003237) NetType/WIFI Language/zh_CN
ios Mobile/15E148 Snapchat/12.80.0.35 (like Safari/8617.1.17.10.12, panda)
ios Mobile/15E148 [LinkedInApp]/9.30.1
ios Mobile/15E148 Twitter for iPhone/10.49
android Chrome/125.0.6422.165 Mobile Safari/537.36 [FB_IAB/FB4A;FBAV/468.0.0.49.76;]
android Chrome/119.0.0.0 Mobile Safari/537.36 Instagram 302.0.0.23.109 Android (33/13; 420dpi; 1080x2177)
android Chrome/120.0.6099.43 Mobile Safari/537.36 trill_310503 BytedanceWebview/d8a21c6
android Chrome/126.0.6478.71 Mobile Safari/537.36 TwitterAndroid
";
    const IOS: &str =
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)";
    const ANDROID: &str =
        "Mozilla/5.0 (Linux; Android 13; SM-A536B) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0";

    #[test]
    fn browsers_within_apps_are_what_they_were_besides() {
        assert!(IN_APPS.lines().count() > 10);
        for line in IN_APPS.lines() {
            let (system, rest) = line.split_once(' ').unwrap();
            let (beginning, device) = if system == "ios" { (IOS, "ios") } else { (ANDROID, "android") };
            let agent = Agent::read(&format!("{beginning} {rest}"));
            assert!(agent.has(Browser::InApp), "{line}");
            assert_eq!(agent.device.map(Device::as_str), Some(device), "{line}");
            assert_eq!(agent.has(Browser::Chrome), system == "android", "{line}");
        }
        let others = "Twitterbot/1.0|Pinterestbot/1.0|LinkedInBot/1.0|facebookexternalhit/1.1|Line";
        for user_agent in others.split('|') {
            assert!(!Agent::read(user_agent).has(Browser::InApp), "{user_agent}");
        }
    }

    #[test]
    fn a_device_is_itself_and_its_kind_and_nothing_else() {
        for (own, kind) in [
            (Device::Android, Device::Mobile),
            (Device::Ios, Device::Mobile),
            (Device::Mobile, Device::Mobile),
            (Device::Windows, Device::Desktop),
            (Device::Macos, Device::Desktop),
            (Device::Linux, Device::Desktop),
            (Device::Chromeos, Device::Desktop),
            (Device::Desktop, Device::Desktop),
        ] {
            let agent = Agent { device: Some(own), browser: None, is_in_app: false };
            for wanted in Device::ALL {
                assert_eq!(agent.is(wanted), wanted == own || wanted == kind, "{own:?} {wanted:?}");
            }
        }
        let unknown = Agent { device: None, browser: None, is_in_app: false };
        assert!(!Device::ALL.into_iter().any(|wanted| unknown.is(wanted)));
    }

    #[test]
    fn what_makes_no_sense_is_no_device_and_no_browser() {
        let long = "like ".repeat(4096) + "Chrome/1";
        for user_agent in
            ["", "/", "like", "like Android", "Edge", "Chrome 1", "\u{fffd}Ünïcode/1 ✓", "ChromeX/1", &long]
        {
            let agent = Agent::read(user_agent);
            assert_eq!((agent.device, agent.browser), (None, None), "{user_agent}");
        }
        assert_eq!(Agent::read(&("/".repeat(16 * 1024) + "Chrome/1")).browser, Some(Browser::Chrome));
    }
}
