//! GeoIP: the country and the city of an address, from a file in MaxMind DB format (version 2.0).
//!
//! 1. Two layouts are supported: MaxMind's (`country.iso_code`, `city.names.en`) and that of
//!    ip-location-db (`country_code`, `city`).
//! 2. The file is read into memory. It must be replaced by renaming another file into its place, as
//!    geoipupdate does, so that no mixture of the two is read.
//! 3. A new file that cannot be read is ignored: slightly outdated locations are better than none.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read as _},
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{Arc, RwLock},
    time::{Duration, SystemTime},
};

use daemon::TaskSupervisor;
use maxminddb::{MaxMindDbError, PathElement, PathElement::Key, Reader};
use tokio::{task::spawn_blocking, time::sleep};

/// The maximum size of a file in bytes, several times that of the largest free ones.
const FILE_MAX: u64 = 512 << 20;
/// The maximum length of a city's name in bytes; no rule can have a longer one.
const CITY_MAX: usize = 255;
/// The maximum length of a file's type in an error, in characters.
const TYPE_SHOWN: usize = 64;
/// The interval at which the file is checked for changes.
const LOOKED_EVERY: Duration = Duration::from_secs(60);
/// The words that mark types of databases with countries, such as GeoLite2-City.
const TYPES: [&str; 3] = ["country", "city", "enterprise"];
/// The paths of a record's country; the first one present is used.
const COUNTRY: [&[PathElement<'static>]; 2] = [&[Key("country"), Key("iso_code")], &[Key("country_code")]];
/// The paths of a record's city; the first one present is used.
const CITY: [&[PathElement<'static>]; 2] = [&[Key("city"), Key("names"), Key("en")], &[Key("city")]];

/// The location of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The country, if known.
    pub country: Option<CountryCode>,
    /// The English name of the city, at most 255 bytes, if known.
    pub city: Option<Box<str>>,
}

/// A country code: two capital letters, usually of ISO 3166-1. Databases have a few more countries
/// than the standard, such as XK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountryCode([u8; 2]);

impl CountryCode {
    fn parse(code: &str) -> Option<Self> {
        let letters: [u8; 2] = code.as_bytes().try_into().ok()?;
        letters.iter().all(u8::is_ascii_alphabetic).then(|| Self(letters.map(|it| it.to_ascii_uppercase())))
    }

    /// Returns the two capital letters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("ASCII letters are UTF-8")
    }
}

/// The reason why a database cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum GeoIpError {
    /// The file does not exist or cannot be read.
    #[error("expected a file that can be read: {0}")]
    Io(io::Error),
    /// The path is a folder, a device or the like.
    #[error("expected a regular file")]
    NotAFile,
    /// The file is larger than the limit on its memory.
    #[error("expected a file of at most {} MiB", FILE_MAX >> 20)]
    TooLarge,
    /// The content has another format, or is damaged.
    #[error("expected a database in MaxMind DB format: {0}")]
    Malformed(MaxMindDbError),
    /// The database has other data than countries or cities.
    #[error("expected a database of countries or cities, such as GeoLite2-City, not one of the type {0:?}")]
    OtherType(String),
    /// The thread that read the file has panicked, or the process is stopping.
    #[error("the read of the file was interrupted")]
    Stopped,
}

/// A database of countries and cities, in memory.
#[derive(Debug)]
pub struct Database {
    reader: Reader<Vec<u8>>,
    mark: Mark,
}

/// The identity of a file's content: its modification time and its length.
type Mark = (Option<SystemTime>, u64);

fn mark(file: io::Result<Metadata>) -> Result<Mark, GeoIpError> {
    let file = file.map_err(GeoIpError::Io)?;
    if file.is_file() { Ok((file.modified().ok(), file.len())) } else { Err(GeoIpError::NotAFile) }
}

impl Database {
    /// Reads a file. This call blocks.
    ///
    /// # Errors
    /// Returns [`GeoIpError`] if the file cannot be read, is too large, or is not a database of
    /// countries or cities.
    pub fn open(path: &Path) -> Result<Self, GeoIpError> {
        // Opening a pipe would wait for its writer.
        mark(fs::metadata(path))?;
        let file = File::open(path).map_err(GeoIpError::Io)?;
        // The mark of the open file, taken before it is read: a later write to the file then shows
        // as a change.
        let mark = mark(file.metadata())?;
        let len = usize::try_from(mark.1).ok().filter(|_| mark.1 <= FILE_MAX).ok_or(GeoIpError::TooLarge)?;
        let mut content = Vec::with_capacity(len);
        file.take(FILE_MAX).read_to_end(&mut content).map_err(GeoIpError::Io)?;
        Self::from_content(content, mark)
    }

    fn from_content(content: Vec<u8>, mark: Mark) -> Result<Self, GeoIpError> {
        let reader = Reader::from_source(content).map_err(GeoIpError::Malformed)?;
        let kind = &reader.metadata().database_type;
        let mut words = kind.split(|letter: char| !letter.is_ascii_alphanumeric());
        if !words.any(|word| TYPES.iter().any(|known| word.eq_ignore_ascii_case(known))) {
            return Err(GeoIpError::OtherType(kind.chars().take(TYPE_SHOWN).collect()));
        }
        Ok(Self { reader, mark })
    }

    /// Returns the location of an address. A field that cannot be read is treated as absent.
    /// Returns `None` if no field is present.
    #[must_use]
    pub fn locate(&self, address: IpAddr) -> Option<Location> {
        let found = self.reader.lookup(address.to_canonical()).ok()?;
        let text = |paths: [&[_]; 2]| paths.iter().find_map(|path| found.decode_path(path).ok().flatten());
        let country = text(COUNTRY).and_then(CountryCode::parse);
        let city = text(CITY).filter(|name: &&str| (1..=CITY_MAX).contains(&name.len())).map(Box::from);
        (country.is_some() || city.is_some()).then_some(Location { country, city })
    }
}

/// A database file, with its last readable content.
#[derive(Debug)]
pub struct DatabaseFile {
    path: PathBuf,
    database: RwLock<Arc<Database>>,
}

impl DatabaseFile {
    /// Reads the file for the first time. This blocks as [`Database::open`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Database::open`].
    pub fn open(path: PathBuf) -> Result<Self, GeoIpError> {
        Ok(Self { database: RwLock::new(Arc::new(Database::open(&path)?)), path })
    }

    /// Returns the current database.
    #[must_use]
    pub fn database(&self) -> Arc<Database> {
        Arc::clone(&self.database.read().expect("no code panics while it holds this lock"))
    }

    /// Reads the file again if its modification time or its length has changed. Returns whether it
    /// did. This call blocks, and while it reads, both the old and the new database are in memory.
    ///
    /// # Errors
    /// Returns the errors of [`Database::open`]. The previous database then stays in use, and the
    /// next call reads the file again.
    pub fn reload_if_changed(&self) -> Result<bool, GeoIpError> {
        if mark(fs::metadata(&self.path))? == self.database().mark {
            return Ok(false);
        }
        let database = Arc::new(Database::open(&self.path)?);
        *self.database.write().expect("no code panics while it holds this lock") = database;
        Ok(true)
    }

    /// Reads the file again within a minute of each change, for as long as the process runs.
    pub async fn follow(self: Arc<Self>) {
        let mut told = None;
        loop {
            sleep(LOOKED_EVERY).await;
            let file = Arc::clone(&self);
            let looked = spawn_blocking(move || file.reload_if_changed()).await;
            let looked = looked.unwrap_or(Err(GeoIpError::Stopped));
            let path = self.path.display();
            match &looked {
                _ if !is_news(&mut told, &looked) => {}
                Ok(_) => tracing::info!(%path, "the places are those of the file"),
                Err(error) => tracing::error!(%path, error = error as &dyn std::error::Error, "read places"),
            }
        }
    }
}

/// The configured GeoIP files. Databases of cities often have one file per address family.
#[derive(Clone, Debug, Default)]
pub struct GeoIp {
    files: Vec<Arc<DatabaseFile>>,
}

impl GeoIp {
    /// Reads the files for the first time. This blocks as [`Database::open`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Database::open`], with the path of the file that they concern.
    pub fn open(paths: &[PathBuf]) -> Result<Self, (PathBuf, GeoIpError)> {
        let open = |path: &PathBuf| DatabaseFile::open(path.clone()).map_err(|error| (path.clone(), error));
        Ok(Self { files: paths.iter().map(|path| open(path).map(Arc::new)).collect::<Result<_, _>>()? })
    }

    /// Starts the tasks that read the files again when they change, on the current runtime.
    pub fn follow(&self, supervisor: &TaskSupervisor) {
        for file in &self.files {
            supervisor.spawn("reader of places", Arc::clone(file).follow());
        }
    }

    /// Returns the location of an address. A field comes from the first file that has it.
    #[must_use]
    pub fn locate(&self, address: IpAddr) -> Location {
        let mut located = Location::default();
        for found in self.files.iter().filter_map(|file| file.database().locate(address)) {
            located.country = located.country.or(found.country);
            located.city = located.city.or(found.city);
        }
        located
    }
}

/// Returns whether a result is worth logging: a new file, another error than the last one, or the
/// end of an error.
fn is_news(told: &mut Option<String>, looked: &Result<bool, GeoIpError>) -> bool {
    let error = looked.as_ref().err().map(ToString::to_string);
    let is_other = *told != error;
    *told = error;
    is_other || matches!(looked, Ok(true))
}

#[cfg(test)]
mod tests {
    use super::{GeoIpError::*, *};

    fn fixture(name: &str) -> Vec<u8> {
        fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/places").join(name))
            .unwrap()
    }

    fn put(path: &Path, content: &[u8]) {
        let new = path.with_extension("new");
        fs::write(&new, content).and_then(|()| fs::rename(&new, path)).unwrap();
    }

    /// Formats the country and the city, with a dash for an unknown field.
    fn locate(database: &Database, ip: &str) -> String {
        let Some(Location { country, city }) = database.locate(ip.parse().unwrap()) else {
            return "none".into();
        };
        format!("{} {}", country.as_ref().map_or("-", CountryCode::as_str), city.as_deref().unwrap_or("-"))
    }

    #[test]
    fn addresses_are_located_in_either_layout() {
        for (name, expected) in [
            ("city.mmdb", ["DE Berlin", "CN Shanghai", "FR -"]),
            ("country.mmdb", ["DE -", "CN -", "FR -"]),
            ("flat.mmdb", ["DE Berlin", "FR -", "none"]),
        ] {
            let database = Database::from_content(fixture(name), (None, 0)).unwrap();
            let at = |address| locate(&database, address);
            assert_eq!(["192.0.2.0", "198.51.100.7", "2001:db8::1"].map(at), expected, "{name}");
            assert_eq!(["::ffff:192.0.2.255", "::ffff:198.51.100.7"].map(at), expected[..2], "{name}");
            assert_eq!(["192.0.3.0", "::1", "2001:db9::", "0.0.0.0"].map(at), ["none"; 4], "{name}");
        }
    }

    #[test]
    fn what_is_not_as_it_should_be_in_a_record_is_not_there() {
        let database = Database::from_content(fixture("odd.mmdb"), (None, 0)).unwrap();
        let long = format!("XK {}x", "ü".repeat(127));
        let known = [(1, "DE -"), (2, "- Zürich"), (6, long.as_str()), (10, "DE -"), (11, "FR -")];
        for last in 0..=12 {
            let expected = known.iter().find(|(one, _)| *one == last).map_or("none", |(_, text)| text);
            assert_eq!(locate(&database, &format!("203.0.113.{last}")), expected, "{last}");
        }
    }

    #[test]
    fn files_of_anything_else_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("places");
        assert!(matches!(Database::open(&path), Err(Io(_))));
        for content in [&b""[..], &fixture("city.mmdb")[..900]] {
            put(&path, content);
            assert!(matches!(Database::open(&path), Err(Malformed(_))));
        }
        put(&path, &fixture("asn.mmdb"));
        assert!(matches!(Database::open(&path), Err(OtherType(kind)) if kind == "Test-ASN"));
        File::create(&path).unwrap().set_len(FILE_MAX + 1).unwrap();
        assert_eq!(Database::open(&path).unwrap_err().to_string(), "expected a file of at most 512 MiB");
        assert!(matches!(Database::open(folder.path()), Err(NotAFile)));
    }

    #[test]
    fn no_damaged_byte_makes_anything_panic() {
        let ips = ["192.0.2.1", "203.0.113.6", "2001:db8::1", "::"].map(|ip| ip.parse().unwrap());
        for mut content in ["city.mmdb", "country.mmdb", "flat.mmdb", "odd.mmdb"].map(fixture) {
            for (index, flipped) in (0..content.len()).flat_map(|at| [1, 32, 128, 255].map(|it| (at, it))) {
                content[index] ^= flipped;
                let _ = Database::from_content(content.clone(), (None, 0))
                    .map(|database| ips.map(|ip| database.locate(ip)));
                content[index] ^= flipped;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_file_is_followed_within_a_minute_unless_it_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("places");
        let [cities, countries, other] = ["city.mmdb", "country.mmdb", "asn.mmdb"].map(fixture);
        put(&path, &cities);
        let file = Arc::new(DatabaseFile::open(path.clone()).unwrap());
        assert!(!file.reload_if_changed().unwrap());
        tokio::spawn(Arc::clone(&file).follow());
        for (content, expected) in [(other, "DE Berlin"), (countries, "DE -"), (cities, "DE Berlin")] {
            put(&path, &content);
            sleep(LOOKED_EVERY + Duration::from_secs(1)).await;
            assert_eq!(locate(&file.database(), "192.0.2.1"), expected);
        }
        File::options().write(true).open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert!(file.reload_if_changed().unwrap() && !file.reload_if_changed().unwrap());
        fs::remove_file(&path).unwrap();
        assert!(matches!(file.reload_if_changed(), Err(Io(_))));
        assert_eq!(locate(&file.database(), "192.0.2.1"), "DE Berlin");
    }

    #[test]
    fn an_error_is_told_once_until_it_changes_or_ends() {
        let mut told = None;
        let looked = [Ok(false), Err(Stopped), Err(Stopped), Err(TooLarge), Ok(false), Ok(false), Ok(true)];
        let news = looked.map(|looked| is_news(&mut told, &looked));
        assert_eq!(news, [false, true, false, true, true, false, true]);
    }
}
