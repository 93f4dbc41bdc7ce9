//! Where an address is, read from a record of a database in either layout.

use std::borrow::Cow;

use maxminddb::{
    LookupResult, PathElement,
    PathElement::{Index, Key},
};

/// The maximum length of a name in bytes; no rule can have a longer one.
const NAME_MAX: usize = 255;
/// The maximum length of the name of a time zone in bytes, twice that of the longest one.
const TIME_ZONE_MAX: usize = 64;

/// The paths of a field in MaxMind's layout and in that of ip-location-db. The first one present is
/// used.
type Paths = [&'static [PathElement<'static>]; 2];

const COUNTRY: Paths = [&[Key("country"), Key("iso_code")], &[Key("country_code")]];
const COUNTRY_NAME: Paths = [&[Key("country"), Key("names"), Key("en")], &[Key("country_name")]];
const REGION: Paths = [&[Key("subdivisions"), Index(0), Key("names"), Key("en")], &[Key("state1")]];
const CITY: Paths = [&[Key("city"), Key("names"), Key("en")], &[Key("city")]];
const LATITUDE: Paths = [&[Key("location"), Key("latitude")], &[Key("latitude")]];
const LONGITUDE: Paths = [&[Key("location"), Key("longitude")], &[Key("longitude")]];
const TIME_ZONE: Paths = [&[Key("location"), Key("time_zone")], &[Key("timezone")]];

/// All that is known about an address.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// The country.
    pub country: Option<CountryCode>,
    /// The English name of this country, at most 255 bytes: that of the file, or else that of ISO
    /// 3166-1. Without a country there is no name.
    pub country_name: Option<Cow<'static, str>>,
    /// The English name of the largest region within the country, such as a federal state, at most
    /// 255 bytes.
    pub region: Option<Box<str>>,
    /// The English name of the city, at most 255 bytes.
    pub city: Option<Box<str>>,
    /// The coordinates, which are often the middle of the city or of the country.
    pub coordinates: Option<Coordinates>,
    /// The name of the time zone in the IANA database, at most 64 bytes, such as `Europe/Berlin`.
    /// It comes from the file, so it need not be a zone that this system knows.
    pub time_zone: Option<Box<str>>,
}

impl Place {
    /// Returns all that a record tells. A field that cannot be read, or is not as it should be, is
    /// absent.
    pub(crate) fn read(record: &LookupResult<'_, Vec<u8>>) -> Self {
        let named = |paths, max| text(record, paths).filter(|text| (1..=max).contains(&text.len()));
        let country = text(record, COUNTRY).and_then(CountryCode::parse);
        let country_name = country.and_then(|code| {
            let named = named(COUNTRY_NAME, NAME_MAX).map(|name| Cow::Owned(name.to_owned()));
            named.or_else(|| code.name().map(Cow::Borrowed))
        });
        let degrees = number(record, LATITUDE).zip(number(record, LONGITUDE));
        Self {
            country,
            country_name,
            region: named(REGION, NAME_MAX).map(Box::from),
            city: named(CITY, NAME_MAX).map(Box::from),
            coordinates: degrees.and_then(|(latitude, longitude)| Coordinates::new(latitude, longitude)),
            time_zone: named(TIME_ZONE, TIME_ZONE_MAX).map(Box::from),
        }
    }

    /// Fills absent fields from another place. The name of a country stays with its code.
    pub(crate) fn or(self, other: Self) -> Self {
        let (country, country_name) = match self.country {
            Some(_) => (self.country, self.country_name),
            None => (other.country, other.country_name),
        };
        Self {
            country,
            country_name,
            region: self.region.or(other.region),
            city: self.city.or(other.city),
            coordinates: self.coordinates.or(other.coordinates),
            time_zone: self.time_zone.or(other.time_zone),
        }
    }
}

fn text<'a>(record: &LookupResult<'a, Vec<u8>>, paths: Paths) -> Option<&'a str> {
    paths.iter().find_map(|path| record.decode_path(path).ok().flatten())
}

/// Returns a number of 64 bits, as MaxMind has it, or of 32.
fn number(record: &LookupResult<'_, Vec<u8>>, paths: Paths) -> Option<f64> {
    let double = |path| record.decode_path::<f64>(path).ok().flatten();
    let float = |path| record.decode_path::<f32>(path).ok().flatten();
    paths.iter().find_map(|path| double(path).or_else(|| float(path).map(f64::from)))
}

/// A point on the earth (WGS 84), with four decimals: 11 m at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coordinates {
    /// The latitude in degrees: -90 to 90, positive in the north.
    pub latitude: f64,
    /// The longitude in degrees: -180 to 180, positive in the east.
    pub longitude: f64,
}

impl Coordinates {
    /// Creates a point from degrees. Returns `None` if one is out of range or not a number.
    pub(crate) fn new(latitude: f64, longitude: f64) -> Option<Self> {
        let is_on_earth = (-90.0..=90.0).contains(&latitude) && (-180.0..=180.0).contains(&longitude);
        // Some files have numbers of 32 bits, whose further decimals are noise.
        let rounded = |degrees: f64| (degrees * 1e4).round() / 1e4;
        is_on_earth.then(|| Self { latitude: rounded(latitude), longitude: rounded(longitude) })
    }
}

/// Codes of ISO 3166-1 in alphabetical order, each with its short English name, and XK, which is in
/// common use for Kosovo.
const COUNTRIES: &str = include_str!("countries.txt");
/// Names that some of them have in exports of other systems.
const OTHER_NAMES: &str = include_str!("other_names.txt");

/// A country code: two capital letters, usually of ISO 3166-1. Databases have a few more countries
/// than the standard, such as XK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CountryCode([u8; 2]);

impl CountryCode {
    /// Reads a code of two ASCII letters in either case. Returns `None` for any other text.
    pub fn parse(code: &str) -> Option<Self> {
        let letters: [u8; 2] = code.as_bytes().try_into().ok()?;
        letters.iter().all(u8::is_ascii_alphabetic).then(|| Self(letters.map(|it| it.to_ascii_uppercase())))
    }

    /// Finds a country by an English name.
    pub fn named(name: &str) -> Option<Self> {
        let lines = COUNTRIES.lines().chain(OTHER_NAMES.lines());
        let mut pairs = lines.filter_map(|line| line.split_once(' '));
        pairs.find(|(_, known)| *known == name).and_then(|(code, _)| Self::parse(code))
    }

    /// Returns the two capital letters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("ASCII letters are UTF-8")
    }

    /// Returns the English name of the country, for codes of ISO 3166-1 and XK.
    pub fn name(self) -> Option<&'static str> {
        COUNTRIES.lines().find_map(|line| line.strip_prefix(self.as_str())?.strip_prefix(' '))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_two_letters() {
        let name = |code| CountryCode::parse(code).map(CountryCode::name);
        assert_eq!(["de", "Xk", "XX"].map(name), [Some(Some("Germany")), Some(Some("Kosovo")), Some(None)]);
        assert_eq!(["", "D", "DEU", "D1", "Ä", "D "].map(name), [None; 6]);
    }

    #[test]
    fn each_country_is_found_by_its_code_and_its_names() {
        assert!(COUNTRIES.lines().is_sorted() && COUNTRIES.lines().count() == 250);
        for (code, name) in COUNTRIES.lines().map(|line| line.split_once(' ').unwrap()) {
            assert_eq!(CountryCode::parse(code).unwrap().name(), Some(name));
            assert_eq!(CountryCode::named(name).unwrap().as_str(), code);
        }
        for (code, name) in OTHER_NAMES.lines().map(|line| line.split_once(' ').unwrap()) {
            let country = CountryCode::named(name).unwrap();
            assert!(country.as_str() == code && country.name() != Some(name), "{name}");
        }
        assert_eq!(["", "DE", "Atlantis"].map(CountryCode::named), [None; 3]);
    }

    #[test]
    fn coordinates_are_on_earth_and_have_four_decimals() {
        let degrees = |(latitude, longitude)| {
            Coordinates::new(latitude, longitude).map(|it| (it.latitude, it.longitude))
        };
        assert_eq!(degrees((f64::from(52.5244_f32), 13.410_54)), Some((52.5244, 13.4105)));
        assert_eq!(degrees((-90.0, 180.0)), Some((-90.0, 180.0)));
        for outside in [(90.1, 0.0), (0.0, -180.1), (f64::NAN, 0.0), (0.0, f64::INFINITY)] {
            assert_eq!(degrees(outside), None);
        }
    }

    #[test]
    fn the_name_of_a_country_stays_with_its_code() {
        let place = |code, name: Option<&'static str>| Place {
            country: CountryCode::parse(code),
            country_name: name.map(Cow::Borrowed),
            ..Place::default()
        };
        assert_eq!(place("AA", None).or(place("FR", Some("France"))), place("AA", None));
        assert_eq!(Place::default().or(place("FR", Some("France"))), place("FR", Some("France")));
    }
}
