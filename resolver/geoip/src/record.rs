//! One record of a database, in either layout.

use maxminddb::{
    LookupResult, PathElement,
    PathElement::{Index, Key},
};

use crate::{Coordinates, CountryCode};

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

/// A record. Each field is absent if it cannot be read, or is not as it should be.
pub(crate) struct Record<'a>(pub(crate) LookupResult<'a, Vec<u8>>);

impl<'a> Record<'a> {
    pub(crate) fn country(&self) -> Option<CountryCode> {
        self.text(COUNTRY).and_then(CountryCode::parse)
    }

    pub(crate) fn country_name(&self) -> Option<&'a str> {
        self.bounded(COUNTRY_NAME, NAME_MAX)
    }

    pub(crate) fn region(&self) -> Option<&'a str> {
        self.bounded(REGION, NAME_MAX)
    }

    pub(crate) fn city(&self) -> Option<&'a str> {
        self.bounded(CITY, NAME_MAX)
    }

    pub(crate) fn coordinates(&self) -> Option<Coordinates> {
        Coordinates::new(self.number(LATITUDE)?, self.number(LONGITUDE)?)
    }

    pub(crate) fn time_zone(&self) -> Option<&'a str> {
        self.bounded(TIME_ZONE, TIME_ZONE_MAX)
    }

    fn bounded(&self, paths: Paths, max: usize) -> Option<&'a str> {
        self.text(paths).filter(|text| (1..=max).contains(&text.len()))
    }

    fn text(&self, paths: Paths) -> Option<&'a str> {
        paths.iter().find_map(|path| self.0.decode_path(path).ok().flatten())
    }

    /// Returns a number of 64 bits, as MaxMind has it, or of 32.
    fn number(&self, paths: Paths) -> Option<f64> {
        let double = |path| self.0.decode_path::<f64>(path).ok().flatten();
        let float = |path| self.0.decode_path::<f32>(path).ok().flatten();
        paths.iter().find_map(|path| double(path).or_else(|| float(path).map(f64::from)))
    }
}
