//! Files of this machine: the spool of visits with the room on its disk, and GeoIP databases.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rustix::fs::{Access, access, statvfs};
use spool::bytes_in;

use super::{Finding, Verdict};
use crate::config::Settings;

const MIB: u64 = 1 << 20;
/// The share of a spool from which it is large, in percent, as for the alert.
const LARGE_PERCENT: u64 = 60;
/// Free databases of places are renewed each month or more often.
const PLACES_OLD: Duration = Duration::from_secs(90 * 24 * 3_600);

pub(super) fn look(settings: &Settings) -> Vec<Finding> {
    let visits = &settings.visits;
    let mut findings = Vec::new();
    if visits.is_on && settings.flags.role.serves_visitors() {
        findings.push(spool(&visits.spool, visits.spool_bytes));
    }
    findings.extend(settings.flags.places.iter().map(|path| places(path)));
    findings
}

fn spool(folder: &Path, most: u64) -> Finding {
    let shown = folder.display();
    let looked = existing(folder).and_then(|(at, is_it)| {
        access(&at, Access::WRITE_OK | Access::EXEC_OK)?;
        let disk = statvfs(&at)?;
        let waiting = if is_it { bytes_in(folder).map_err(io::Error::other)? } else { 0 };
        Ok((disk.f_bavail.saturating_mul(disk.f_frsize), waiting))
    });
    let (free, waiting) = match looked {
        Ok(found) => found,
        Err(error) => {
            return Finding::wrong("spool", format!("{shown} cannot be written: {error}")).advise(
                "A process that records visits does not start without its spool.",
                "Name a folder in --visits-spool that belongs to this process.",
            );
        }
    };
    let (verdict, what) = judge(free, waiting, most);
    let [has, of, room] = [waiting, most, free].map(|bytes| bytes / MIB);
    let found = format!("{shown} has {has} of {of} MiB, and its disk {room} MiB free{what}");
    let finding = Finding::new(verdict, "spool", found);
    if verdict == Verdict::Ok {
        return finding;
    }
    finding
        .advise(
            "Visits that find no room are dropped.",
            "See that visits are stored, make room, or lower --limit visits-spool-mib.",
        )
        .see("visits.md#shortmintvisitspoollarge")
}

fn judge(free: u64, waiting: u64, most: u64) -> (Verdict, &'static str) {
    if waiting.saturating_mul(100) > most.saturating_mul(LARGE_PERCENT) {
        return (Verdict::Warning, ": much waits to be stored");
    }
    if free < most.saturating_sub(waiting) {
        return (Verdict::Warning, ": less than the spool may take");
    }
    (Verdict::Ok, "")
}

/// Returns the folder, or the one above it in which it would be created, and which of them it is.
fn existing(folder: &Path) -> io::Result<(PathBuf, bool)> {
    for (depth, above) in std::path::absolute(folder)?.ancestors().enumerate() {
        match fs::metadata(above) {
            Ok(found) if found.is_dir() => return Ok((above.to_owned(), depth == 0)),
            Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// Judges the age of a GeoIP file. The configuration is invalid if it cannot be read.
fn places(path: &Path) -> Finding {
    let shown = path.display();
    let age = fs::metadata(path).and_then(|file| file.modified());
    let age = age.map(|at| SystemTime::now().duration_since(at).unwrap_or_default());
    match age {
        Err(error) => Finding::unknown("places", format!("{shown}: {error}")),
        Ok(age) if age > PLACES_OLD => {
            Finding::warning("places", format!("{shown} is {} days old", age.as_secs() / 86_400)).advise(
                "Addresses move: countries and cities of visitors become wrong.",
                "Replace the file, which is read again within a minute.",
            )
        }
        Ok(age) => Finding::ok("places", format!("{shown} is {} days old", age.as_secs() / 86_400)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spool_is_judged_by_what_waits_and_by_the_room_for_the_rest() {
        for (free, waiting, verdict) in [
            (1_000, 0, Verdict::Ok),
            (999, 0, Verdict::Warning),
            (500, 500, Verdict::Ok),
            (5_000, 601, Verdict::Warning),
        ] {
            assert_eq!(judge(free, waiting, 1_000).0, verdict, "{free} {waiting}");
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_judged_by_the_one_above() {
        let folder = std::env::temp_dir();
        assert_eq!(existing(&folder).unwrap(), (folder.clone(), true));
        assert_eq!(existing(&folder.join("no-such-folder/visits")).unwrap(), (folder, false));
        assert!(existing(&std::env::current_exe().unwrap().join("visits")).is_err());
    }
}
