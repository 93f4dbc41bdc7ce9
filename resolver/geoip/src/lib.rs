//! GeoIP: where an address is, from files in MaxMind DB format (version 2.0).
//!
//! 1. Two layouts are supported: MaxMind's (`country.iso_code`, `city.names.en`) and that of
//!    ip-location-db (`country_code`, `city`).
//! 2. A field that is damaged, too long or out of range is absent. No content of a file panics.
//! 3. The file is read into memory. It must be replaced by renaming another file into its place, as
//!    geoipupdate does, so that no mixture of the two is read.
//! 4. A new file that cannot be read is ignored: slightly outdated locations are better than none.

mod database;
mod file;
#[cfg(test)]
mod fixtures;
mod place;

use std::{net::IpAddr, path::PathBuf, sync::Arc};

use daemon::TaskSupervisor;
use file::DatabaseFile;

pub use place::{Coordinates, CountryCode, Place};

/// The reason why a database cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct GeoIpError(String);

/// The configured GeoIP files. Databases of cities often have one file per address family.
#[derive(Clone, Debug, Default)]
pub struct GeoIp {
    files: Vec<Arc<DatabaseFile>>,
}

impl GeoIp {
    /// Reads the files for the first time, which blocks. An error comes with its file's path.
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

    /// Returns all that the files tell about an address. A field comes from the first file that has
    /// it.
    pub fn place(&self, address: IpAddr) -> Place {
        let found = self.files.iter().filter_map(|file| file.database().place(address));
        found.reduce(Place::or).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_comes_from_the_first_file_that_has_it() {
        let geoip = GeoIp::open(&["country.mmdb", "flat.mmdb", "city.mmdb"].map(fixtures::path)).unwrap();
        let place = geoip.place("192.0.2.1".parse().unwrap());
        assert_eq!(place.country.as_ref().map(CountryCode::as_str), Some("DE"));
        // The second file has no name, and the third has another one.
        assert_eq!(place.country_name.as_deref(), Some("Country DE"));
        assert_eq!((place.region.as_deref(), place.city.as_deref()), (Some("Land Berlin"), Some("Berlin")));
        assert_eq!(place.coordinates.map(|it| it.latitude), Some(52.52));
        assert_eq!(geoip.place("203.0.114.1".parse().unwrap()), Place::default());
    }
}
