//! A database of countries and cities, in memory.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read as _},
    net::IpAddr,
    path::Path,
    time::SystemTime,
};

use maxminddb::Reader;

use crate::{GeoIpError, Place};

/// The maximum size of a file in bytes, several times that of the largest free ones.
pub(crate) const FILE_MAX: u64 = 512 << 20;
/// The maximum length of a file's type in an error, in characters.
const TYPE_SHOWN: usize = 64;
/// The words that mark types of databases with countries, such as GeoLite2-City.
const TYPES: [&str; 3] = ["country", "city", "enterprise"];

#[derive(Debug)]
pub(crate) struct Database {
    reader: Reader<Vec<u8>>,
    pub(crate) mark: Mark,
}

/// The identity of a file's content: its modification time and its length.
pub(crate) type Mark = (Option<SystemTime>, u64);

pub(crate) fn mark(file: io::Result<Metadata>) -> Result<Mark, GeoIpError> {
    let file = file.map_err(unreadable)?;
    if !file.is_file() {
        return Err(GeoIpError("not a regular file".to_owned()));
    }
    Ok((file.modified().ok(), file.len()))
}

fn unreadable(error: io::Error) -> GeoIpError {
    GeoIpError(format!("the file cannot be read: {error}"))
}

impl Database {
    /// Reads a file. This call blocks.
    pub(crate) fn open(path: &Path) -> Result<Self, GeoIpError> {
        // Opening a pipe would wait for its writer.
        mark(fs::metadata(path))?;
        let file = File::open(path).map_err(unreadable)?;
        // The mark of the open file, taken before it is read: a later write to the file then shows
        // as a change.
        let mark = mark(file.metadata())?;
        let too_large = || GeoIpError(format!("the file has more than {} MiB", FILE_MAX >> 20));
        let len = usize::try_from(mark.1).ok().filter(|_| mark.1 <= FILE_MAX).ok_or_else(too_large)?;
        let mut content = Vec::with_capacity(len);
        file.take(FILE_MAX).read_to_end(&mut content).map_err(unreadable)?;
        Self::from_content(content, mark)
    }

    fn from_content(content: Vec<u8>, mark: Mark) -> Result<Self, GeoIpError> {
        let reader = Reader::from_source(content)
            .map_err(|error| GeoIpError(format!("not a database in MaxMind DB format: {error}")))?;
        let kind = &reader.metadata().database_type;
        let mut words = kind.split(|letter: char| !letter.is_ascii_alphanumeric());
        if !words.any(|word| TYPES.iter().any(|known| word.eq_ignore_ascii_case(known))) {
            let kind: String = kind.chars().take(TYPE_SHOWN).collect();
            return Err(GeoIpError(format!(
                "a database of the type {kind:?} has no countries or cities: use one such as GeoLite2-City"
            )));
        }
        Ok(Self { reader, mark })
    }

    /// Returns all that the database tells about an address. A field that cannot be read is treated
    /// as absent. Returns `None` if no field is present.
    pub(crate) fn place(&self, address: IpAddr) -> Option<Place> {
        let record = self.reader.lookup(address.to_canonical()).ok()?;
        let place = Place::read(&record);
        (place != Place::default()).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        CountryCode,
        fixtures::{put, read},
    };

    /// Formats the fields of a place, with a dash for an unknown one.
    fn place(database: &Database, ip: &str) -> String {
        let Some(place) = database.place(ip.parse().unwrap()) else {
            return "none".into();
        };
        let dash = |text: Option<&str>| text.unwrap_or("-").to_owned();
        let coordinates = place.coordinates.map(|it| format!("{} {}", it.latitude, it.longitude));
        [
            dash(place.country.as_ref().map(CountryCode::as_str)),
            dash(place.country_name.as_deref()),
            dash(place.region.as_deref()),
            dash(place.city.as_deref()),
            dash(coordinates.as_deref()),
            dash(place.time_zone.as_deref()),
        ]
        .join(", ")
    }

    #[test]
    fn places_have_all_fields_of_either_layout() {
        for (name, expected) in [
            (
                "city.mmdb",
                [
                    "DE, Country DE, Land Berlin, Berlin, 52.5244 13.4105, Europe/Berlin",
                    "CN, Country CN, Shanghai Shi, Shanghai, 31.2222 121.4581, Asia/Shanghai",
                    "FR, Country FR, -, -, 48.8582 2.3387, Europe/Paris",
                ],
            ),
            (
                "country.mmdb",
                ["DE, Country DE, -, -, -, -", "CN, Country CN, -, -, -, -", "FR, Country FR, -, -, -, -"],
            ),
            (
                "flat.mmdb",
                [
                    "DE, Germany, Land Berlin, Berlin, 52.52 13.4051, Europe/Berlin",
                    "FR, France, -, -, 46.2276 -2.5, -",
                    "none",
                ],
            ),
        ] {
            let database = Database::from_content(read(name), (None, 0)).unwrap();
            let at = |address| place(&database, address);
            assert_eq!(["192.0.2.0", "198.51.100.7", "2001:db8::1"].map(at), expected, "{name}");
            assert_eq!(["::ffff:192.0.2.255", "::ffff:198.51.100.7"].map(at), expected[..2], "{name}");
            assert_eq!(["192.0.3.0", "::1", "2001:db9::", "0.0.0.0"].map(at), ["none"; 4], "{name}");
        }
    }

    #[test]
    fn fields_of_a_place_that_are_not_as_they_should_be_are_not_there() {
        let database = Database::from_content(read("odd.mmdb"), (None, 0)).unwrap();
        let long = format!("XK, Country XK, -, {}x, -, -", "ü".repeat(127));
        for (last, expected) in [
            (0, "none"),
            (1, "DE, Country de, -, -, -, -"),
            (2, "-, -, -, Zürich, -, -"),
            (3, "none"),
            (4, "none"),
            (5, "none"),
            (6, &long),
            (7, "none"),
            (8, "none"),
            (9, "none"),
            (10, "DE, Country DE, -, -, -, -"),
            (11, "FR, France, -, -, -, -"),
            (12, "none"),
            (20, "DE, Germany, -, -, -, -"),
            (21, "XX, -, -, -, -, -"),
            (22, "none"),
            (23, "-, -, Berlin, -, -, Europe/Berlin"),
            (24, "-, -, -, -, 1.5 -1.5, -"),
            (25, "none"),
            (26, "-, -, -, -, -90 180, -"),
            (27, "none"),
        ] {
            assert_eq!(place(&database, &format!("203.0.113.{last}")), expected, "{last}");
        }
    }

    #[test]
    fn files_of_anything_else_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("places");
        let check = |path: &Path, expected: &str| {
            let GeoIpError(reason) = Database::open(path).unwrap_err();
            assert!(reason.starts_with(expected), "{reason}");
        };
        check(&path, "the file cannot be read");
        for content in [&b""[..], &read("city.mmdb")[..900]] {
            put(&path, content);
            check(&path, "not a database in MaxMind DB format");
        }
        put(&path, &read("asn.mmdb"));
        check(&path, "a database of the type \"Test-ASN\" has no countries");
        File::create(&path).unwrap().set_len(FILE_MAX + 1).unwrap();
        check(&path, "the file has more than 512 MiB");
        check(folder.path(), "not a regular file");
    }

    #[test]
    fn no_damaged_byte_makes_anything_panic() {
        let ips = ["192.0.2.1", "203.0.113.6", "2001:db8::1", "::"].map(|ip| ip.parse().unwrap());
        for mut content in ["city.mmdb", "country.mmdb", "flat.mmdb", "odd.mmdb"].map(read) {
            for (index, flipped) in (0..content.len()).flat_map(|at| [1, 32, 128, 255].map(|it| (at, it))) {
                content[index] ^= flipped;
                let _ = Database::from_content(content.clone(), (None, 0))
                    .map(|database| ips.map(|ip| database.place(ip)));
                content[index] ^= flipped;
            }
        }
    }
}
