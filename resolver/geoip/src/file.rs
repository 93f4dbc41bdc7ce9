//! A database file that is read again when it changes.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, RwLock},
    time::Duration,
};

use tokio::{task::spawn_blocking, time::sleep};

use crate::{
    GeoIpError,
    database::{Database, mark},
};

const CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// A database file, with its last readable content.
#[derive(Debug)]
pub(crate) struct DatabaseFile {
    path: PathBuf,
    database: RwLock<Arc<Database>>,
}

impl DatabaseFile {
    /// Reads the file for the first time. This call blocks.
    pub(crate) fn open(path: PathBuf) -> Result<Self, GeoIpError> {
        Ok(Self { database: RwLock::new(Arc::new(Database::open(&path)?)), path })
    }

    pub(crate) fn database(&self) -> Arc<Database> {
        Arc::clone(&self.database.read().expect("no code panics while it holds this lock"))
    }

    /// Reads the file again if its modification time or its length has changed. Returns whether it
    /// did. This call blocks, and while it reads, both the old and the new database are in memory.
    /// After an error the old one stays in use, and the next call reads the file again.
    fn reload_if_changed(&self) -> Result<bool, GeoIpError> {
        if mark(fs::metadata(&self.path))? == self.database().mark {
            return Ok(false);
        }
        let database = Arc::new(Database::open(&self.path)?);
        *self.database.write().expect("no code panics while it holds this lock") = database;
        Ok(true)
    }

    /// Reads the file again within a minute of each change, for as long as the process runs.
    pub(crate) async fn follow(self: Arc<Self>) {
        let mut last_error = None;
        loop {
            sleep(CHECK_INTERVAL).await;
            let file = Arc::clone(&self);
            let result = spawn_blocking(move || file.reload_if_changed()).await;
            // The thread has panicked, or the process is stopping.
            let stopped = |_| Err(GeoIpError("the read of the file was interrupted".to_owned()));
            let result = result.unwrap_or_else(stopped);
            let path = self.path.display();
            match &result {
                _ if !is_worth_logging(&mut last_error, &result) => {}
                Ok(_) => tracing::info!(%path, "the places are those of the file"),
                Err(error) => tracing::error!(%path, error = error as &dyn std::error::Error, "read places"),
            }
        }
    }
}

/// Returns whether a result is worth logging: a new file, another error than the last one, or the
/// end of an error.
fn is_worth_logging(last_error: &mut Option<String>, result: &Result<bool, GeoIpError>) -> bool {
    let error = result.as_ref().err().map(ToString::to_string);
    let is_other = *last_error != error;
    *last_error = error;
    is_other || matches!(result, Ok(true))
}

#[cfg(test)]
mod tests {
    use std::{fs::File, time::SystemTime};

    use super::*;
    use crate::fixtures::{put, read};

    fn city(file: &DatabaseFile) -> Option<Box<str>> {
        file.database().place("192.0.2.1".parse().unwrap()).unwrap().city
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_file_is_followed_within_a_minute_unless_it_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("places");
        let [cities, countries, other] = ["city.mmdb", "country.mmdb", "asn.mmdb"].map(read);
        put(&path, &cities);
        let file = Arc::new(DatabaseFile::open(path.clone()).unwrap());
        assert!(!file.reload_if_changed().unwrap());
        tokio::spawn(Arc::clone(&file).follow());
        for (content, expected) in [(other, Some("Berlin")), (countries, None), (cities, Some("Berlin"))] {
            put(&path, &content);
            sleep(CHECK_INTERVAL + Duration::from_secs(1)).await;
            assert_eq!(city(&file).as_deref(), expected);
        }
        File::options().write(true).open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert!(file.reload_if_changed().unwrap() && !file.reload_if_changed().unwrap());
        fs::remove_file(&path).unwrap();
        let GeoIpError(reason) = file.reload_if_changed().unwrap_err();
        assert!(reason.starts_with("the file cannot be read"), "{reason}");
        assert_eq!(city(&file).as_deref(), Some("Berlin"));
    }

    #[test]
    fn an_error_is_told_once_until_it_changes_or_ends() {
        let mut last_error = None;
        let failed = |reason: &str| Err(GeoIpError(reason.to_owned()));
        let (one, again, other) = (failed("stopped"), failed("stopped"), failed("too large"));
        let result = [Ok(false), one, again, other, Ok(false), Ok(false), Ok(true)];
        let logged = result.map(|result| is_worth_logging(&mut last_error, &result));
        assert_eq!(logged, [false, true, false, true, true, false, true]);
    }
}
