//! Values that conditions compare with, each validated once and kept as it was written.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net};
use jiff::{Timestamp, civil, tz::TimeZone};

use crate::text_value::text_value;

/// Assigned codes of ISO 3166-1 alpha-2.
const COUNTRIES: &str = "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT \
    BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM \
    FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO \
    JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT \
    MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA \
    SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US \
    UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW";

/// Text of 1 to 255 bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Text(Box<str>);

text_value!(Text);

impl Text {
    /// Maximum length of a text, in bytes.
    pub const MAX_LEN: usize = 255;

    /// Validates a text. NUL is refused, because Postgres cannot store it in text.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = (1..=Self::MAX_LEN).contains(&text.len()) && !text.contains('\0');
        fits.then(|| Self(text.into()))
    }
}

codes::named_values! {
    /// Operating system or kind of a visitor's device.
    pub enum Device {
        /// A phone or tablet with Android.
        Android => "android",
        /// An iPhone, an iPod, or an iPad that does not identify as a Mac, the default of iPads.
        Ios => "ios",
        /// Any phone or tablet.
        Mobile => "mobile",
        /// A computer with Windows.
        Windows => "windows",
        /// A computer with macOS.
        Macos => "macos",
        /// A computer with Linux.
        Linux => "linux",
        /// A computer with ChromeOS.
        Chromeos => "chromeos",
        /// Any computer.
        Desktop => "desktop",
    }
}

impl Device {
    /// Returns the kind of the device, which is [`Device::Mobile`] or [`Device::Desktop`].
    pub fn kind(self) -> Self {
        match self {
            Self::Android | Self::Ios | Self::Mobile => Self::Mobile,
            Self::Windows | Self::Macos | Self::Linux | Self::Chromeos | Self::Desktop => Self::Desktop,
        }
    }
}

codes::named_values! {
    /// A browser that conditions can match.
    pub enum Browser {
        /// Google Chrome, and browsers that identify as it.
        Chrome => "chrome",
        /// Mozilla Firefox.
        Firefox => "firefox",
        /// Microsoft Edge.
        Edge => "edge",
        /// Apple Safari.
        Safari => "safari",
        /// Opera, and Opera Mini.
        Opera => "opera",
        /// The browser that came with Android before Chrome did.
        AndroidBrowser => "android_browser",
        /// A browser within an app, such as that of a social network, besides the one that it
        /// identifies as.
        InApp => "in-app",
    }
}

/// Country code of ISO 3166-1 alpha-2, in capital letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Country(pub(crate) &'static str);

impl Country {
    /// Parses an assigned country code in capital letters.
    pub fn parse(code: &str) -> Option<Self> {
        COUNTRIES.split_ascii_whitespace().find(|one| *one == code).map(Self)
    }
}

/// A point in time, written as a date or with a time of day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Date {
    /// The date as it was written.
    pub(crate) text: Text,
    pub(crate) time: Timestamp,
}

impl Date {
    /// Parses an ISO 8601 time with an offset or `Z`, or a date, which stands for midnight UTC.
    pub fn parse(text: Text) -> Option<Self> {
        let is_day = text.as_str().bytes().all(|one| one.is_ascii_digit() || one == b'-');
        let time = if is_day {
            let day: civil::Date = text.as_str().parse().ok()?;
            day.to_zoned(TimeZone::UTC).ok()?.timestamp()
        } else {
            text.as_str().parse().ok()?
        };
        Some(Self { text, time })
    }
}

/// A share of a link's visitors, in percent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The percentage as it was written.
    pub(crate) text: Text,
    pub(crate) percent: u8,
}

impl Share {
    /// Parses a whole percentage from 1 to 99, in digits alone.
    pub fn parse(text: Text) -> Option<Self> {
        let percent = text.as_str().parse::<u8>().ok().filter(|percent| (1..=99).contains(percent))?;
        let is_plain = !text.as_str().starts_with(['+', '0']);
        is_plain.then_some(Self { text, percent })
    }
}

/// A set of IP addresses: one address, a network or an IPv4 pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPattern {
    /// The pattern as it was written.
    pub(crate) text: Text,
    /// An address of the set.
    base: IpAddr,
    /// The bits in which all addresses of the set are like `base`.
    mask: u128,
}

impl AddressPattern {
    /// Parses an address, a network such as `192.0.2.0/24`, or an IPv4 pattern such as `192.0.*.7`.
    pub fn parse(text: Text) -> Option<Self> {
        let written = text.as_str();
        let (base, mask) = if written.contains('*') {
            octets(written)?
        } else if written.contains('/') {
            let net = unmapped_network(written.parse().ok()?);
            (net.addr(), bits(net.netmask()))
        } else {
            (written.parse::<IpAddr>().ok()?.to_canonical(), u128::MAX)
        };
        Some(Self { text, base, mask })
    }

    /// Returns `true` if the pattern matches the address. An IPv4-mapped IPv6 address (RFC 4291,
    /// section 2.5.5.2) counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let differing = bits(self.base) ^ bits(address);
        self.base.is_ipv4() == address.is_ipv4() && differing & self.mask == 0
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(four) => four.to_bits().into(),
        IpAddr::V6(six) => six.to_bits(),
    }
}

/// Returns an address of an IPv4 pattern, and the bits of the octets that it names.
fn octets(pattern: &str) -> Option<(IpAddr, u128)> {
    // The parser of the standard library defines an octet: it refuses signs and leading zeros.
    let base: Ipv4Addr = pattern.replace('*', "0").parse().ok()?;
    let mut mask = 0;
    for octet in pattern.split('.') {
        match octet {
            "*" => mask <<= 8,
            octet if octet.contains('*') => return None,
            _ => mask = (mask << 8) | 0xff,
        }
    }
    Some((base.into(), mask))
}

/// Converts a network of IPv4-mapped IPv6 addresses to the IPv4 network. Others stay as they are.
pub fn unmapped_network(net: IpNet) -> IpNet {
    let IpNet::V6(six) = net else { return net };
    let four = six.addr().to_ipv4_mapped().zip(six.prefix_len().checked_sub(96));
    four.and_then(|(address, length)| Ipv4Net::new(address, length).ok()).map_or(net, IpNet::V4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Text {
        Text::parse(text).unwrap()
    }

    #[test]
    fn countries_are_two_capital_letters_of_the_standard() {
        assert_eq!(COUNTRIES.split_ascii_whitespace().count(), 249);
        assert!(COUNTRIES.split_ascii_whitespace().is_sorted_by(|one, next| one < next));
        for code in ["AD", "DE", "GB", "US", "ZW"] {
            assert_eq!(Country::parse(code).unwrap().0, code);
        }
        for code in ["", "D", "de", "De", "DEU", "UK", "XX", "D E", "AD AE", " "] {
            assert_eq!(Country::parse(code), None, "{code:?}");
        }
    }

    #[test]
    fn dates_are_moments_or_days_in_utc() {
        for (written, seconds) in [
            ("1970-01-02", 86_400),
            ("1970-01-01T00:00:10Z", 10),
            ("1970-01-01T01:00:00+01:00", 0),
            ("1970-01-01T00:00:00-00:30", 1800),
            ("1970-01-01T00:00:00.5Z", 0),
        ] {
            assert_eq!(Date::parse(text(written)).unwrap().time.as_second(), seconds, "{written}");
        }
        let wrong = "tomorrow|2030|2030-02-30|2030-1-1|2030-01-01T10:00:00|2030-01-01T25:00:00Z|\
                     99999-01-01|٢٠٣٠-٠١-٠١| 2030-01-01|-";
        for written in wrong.split('|') {
            assert_eq!(Date::parse(text(written)), None, "{written}");
        }
    }

    #[test]
    fn shares_are_whole_percentages() {
        for (written, percent) in [("1", 1), ("50", 50), ("99", 99)] {
            assert_eq!(Share::parse(text(written)).unwrap().percent, percent);
        }
        for written in "0|100|256|-1|+5|05|5.5|5%| 5|5 |five|٥".split('|') {
            assert_eq!(Share::parse(text(written)), None, "{written}");
        }
    }

    #[test]
    fn patterns_contain_their_addresses_and_no_others() {
        for (pattern, inside, outside) in [
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("192.0.2.7", "::ffff:192.0.2.7", "2001:db8::7"),
            ("::ffff:192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("192.0.2.7/24", "192.0.2.255", "192.0.3.0"),
            ("0.0.0.0/0", "::ffff:1.2.3.4", "::1"),
            ("::/0", "2001:db8::1", "1.2.3.4"),
            ("::ffff:192.0.2.0/120", "192.0.2.255", "192.0.3.0"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::1"),
            ("2001:DB8::1", "2001:db8::1", "2001:db8::2"),
            ("192.*.2.7", "192.255.2.7", "192.0.3.7"),
            ("*.*.*.*", "::ffff:8.8.8.8", "::1"),
            ("11.22.*.*", "11.22.0.255", "11.23.0.0"),
        ] {
            let parsed = AddressPattern::parse(text(pattern)).unwrap();
            assert!(parsed.contains(inside.parse().unwrap()), "{pattern} {inside}");
            assert!(!parsed.contains(outside.parse().unwrap()), "{pattern} {outside}");
        }
        let wrong = "1.2.3|1.2.3.4.5|1.2.3.256|1.2.3.04| 1.2.3.4|1.2.3.4/33|1.2.3.4/|1.2.3.4/-1|/24|\
                     ::1/129|:::1|fe80::1%eth0|1.2.*|1.2.*.4.*|1.2.*.+4|1.2.*.04|1.2.3*.4|1.2.**.4|\
                     1.2.*.0/24|2001:db8::*|*|localhost";
        for pattern in wrong.split('|') {
            assert_eq!(AddressPattern::parse(text(pattern)), None, "{pattern}");
        }
    }
}
