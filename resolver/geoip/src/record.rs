//! One record of a database, in either layout.

use std::borrow::Cow;

use maxminddb::{
    LookupResult, PathElement,
    PathElement::{Index, Key},
};

use crate::{Coordinates, CountryCode, Place};

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

/// Returns all that a record tells. A field that cannot be read, or is not as it should be, is
/// absent.
pub(crate) fn place(record: &LookupResult<'_, Vec<u8>>) -> Place {
    let named = |paths, max| text(record, paths).filter(|text| (1..=max).contains(&text.len()));
    let country = text(record, COUNTRY).and_then(CountryCode::parse);
    let country_name = country.and_then(|code| {
        let named = named(COUNTRY_NAME, NAME_MAX).map(|name| Cow::Owned(name.to_owned()));
        named.or_else(|| code.name().map(Cow::Borrowed))
    });
    let degrees = number(record, LATITUDE).zip(number(record, LONGITUDE));
    Place {
        country,
        country_name,
        region: named(REGION, NAME_MAX).map(Box::from),
        city: named(CITY, NAME_MAX).map(Box::from),
        coordinates: degrees.and_then(|(latitude, longitude)| Coordinates::new(latitude, longitude)),
        time_zone: named(TIME_ZONE, TIME_ZONE_MAX).map(Box::from),
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
