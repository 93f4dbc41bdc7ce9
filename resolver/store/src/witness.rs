//! The witness file: one process's record of how far the database had come. It outlasts the stores.
//!
//! A database that is restored from an older copy lacks its last links, and would mint their codes
//! again. The ledger detects that, unless it was restored as well. The witness file is the third
//! record.
//!
//! 1. Its mark was committed by the database. Its ends are past every number that this process has
//!    registered, and past those that others had registered at its last beat. So it never claims
//!    more than there was.
//! 2. The mark is written but not synced. A killed process loses none of it, and a machine that
//!    loses power finds an older mark, which claims less. The ends are synced before a number below
//!    them is claimed. A failed write is logged, and minting goes on.
//! 3. The file belongs on another disk than the stores, or at least not into their backups.
//!    Restored together with them, it proves nothing.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _},
    path::Path,
    sync::{Arc, Mutex},
};

use codes::KeyspaceIndex;
use numbers::Mark;

use super::Advanced;

/// First line of every witness file; names the format's version.
const HEADING: &str = "shortmint witness 1";

/// Last line of every witness file. A truncated file is refused, because it claims less than was
/// known.
const END: &str = "end\n";

/// An open witness file.
#[derive(Debug)]
pub struct Witness {
    file: File,
    known: Mutex<Known>,
}

/// The contents of a witness file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// The highest mark that the database was seen at.
    pub(crate) mark: Mark,
    /// The history in which the numbers below the ends are known to be withheld or registered.
    pub(crate) history: i64,
    /// The end of the registered numbers of each keyspace, exclusive.
    pub(crate) ends: BTreeMap<KeyspaceIndex, u64>,
}

impl Witness {
    /// Opens or creates the file. Blocks on the disk: call it at start-up.
    pub fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let options =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).to_owned();
        let mut file = options.open(path)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let known =
            if text.is_empty() { Known::default() } else { Known::read(&text).ok_or_else(damaged)? };
        Ok(Self { file, known: Mutex::new(known) })
    }

    /// Reads the mark in a file that another process may have open; `None` if there is none yet.
    pub fn mark_in(path: &Path) -> io::Result<Option<Mark>> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        if text.is_empty() {
            return Ok(None);
        }
        Known::read(&text).map(|known| Some(known.mark)).ok_or_else(damaged)
    }

    /// Returns what the file says, and nothing without one.
    pub(super) fn known_of(witness: Option<&Arc<Self>>) -> Known {
        witness.map(|witness| witness.known().clone()).unwrap_or_default()
    }

    /// Records the result of a comparison, and the history in which the ends are withheld from now
    /// on.
    pub(super) fn note_advanced(witness: Option<&Arc<Self>>, advanced: Advanced, history: i64) {
        let Some(witness) = witness else { return };
        if let Advanced::To(mark) | Advanced::Began(mark) = advanced {
            let mut known = witness.known();
            if mark > known.mark || history != known.history {
                (known.mark, known.history) = (mark.max(known.mark), history);
                witness.write(&known);
            }
        }
    }

    /// Records the end of a keyspace's registered numbers, whichever holder the last block belongs
    /// to. That of a block is recorded before a number of the block is claimed.
    pub(super) async fn note_registered(witness: Option<&Arc<Self>>, keyspace: KeyspaceIndex, end: u64) {
        let is_below = |witness: &&Arc<Self>| witness.known().is_below(keyspace, end);
        let Some(witness) = witness.filter(is_below).map(Arc::clone) else { return };
        let noted = tokio::task::spawn_blocking(move || witness.note_end(keyspace, end)).await;
        noted.expect("to write a few bytes does not panic");
    }

    /// Records a mark that the database has committed.
    pub(super) fn note_mark(&self, mark: Mark) {
        let mut known = self.known();
        if mark > known.mark {
            known.mark = mark;
            self.write(&known);
        }
    }

    fn note_end(&self, keyspace: KeyspaceIndex, end: u64) {
        let mut known = self.known();
        if known.is_below(keyspace, end) {
            known.ends.insert(keyspace, end);
            self.write(&known);
            if let Err(error) = self.file.sync_data() {
                tracing::error!(%error, "sync the witness file");
            }
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().expect("no code panics while it holds this lock")
    }

    /// Overwrites the file in place: the text never becomes shorter.
    fn write(&self, known: &Known) {
        if let Err(error) = self.file.write_all_at(known.text().as_bytes(), 0) {
            tracing::error!(%error, "write the witness file: an older copy of the stores may not be noticed");
        }
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is no witness file, or damaged")
}

impl Known {
    fn is_below(&self, keyspace: KeyspaceIndex, end: u64) -> bool {
        self.ends.get(&keyspace).is_none_or(|known| *known < end)
    }

    /// Formats the contents. Numbers have leading zeros, so that each stays at its offset.
    fn text(&self) -> String {
        let mut text = format!("{HEADING}\nmark {:020}\nhistory {:020}\n", self.mark.0, self.history);
        for (keyspace, end) in &self.ends {
            let _ = writeln!(text, "keyspace {:05} {end:020}", keyspace.get());
        }
        text.push_str(END);
        text
    }

    fn read(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix(END)?.lines().skip(1);
        let mark = Mark(lines.next()?.strip_prefix("mark ")?.parse().ok()?);
        let history = lines.next()?.strip_prefix("history ")?.parse().ok()?;
        let ends = lines.map(|line| {
            let (keyspace, end) = line.strip_prefix("keyspace ")?.split_once(' ')?;
            Some((KeyspaceIndex::new(keyspace.parse().ok()?).ok()?, end.parse().ok()?))
        });
        let known = Self { mark, history, ends: ends.collect::<Option<_>>()? };
        (known.text() == text).then_some(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyspace(index: i64) -> KeyspaceIndex {
        KeyspaceIndex::new(index).unwrap()
    }

    #[test]
    fn what_is_noted_is_read_again_and_never_becomes_less() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/witness");
        assert_eq!(Witness::mark_in(&path).unwrap(), None, "and none is created");
        assert!(!path.exists());
        let witness = Witness::open(&path).unwrap();
        assert_eq!(Witness::mark_in(&path).unwrap(), None);
        assert_eq!(*witness.known(), Known::default());
        witness.note_mark(Mark(7));
        witness.note_end(keyspace(2), 1_000);
        witness.note_end(keyspace(1), 5);
        witness.note_mark(Mark(3));
        witness.note_end(keyspace(2), 10);
        assert_eq!(Witness::mark_in(&path).unwrap(), Some(Mark(7)));
        drop(witness);
        let ends = BTreeMap::from([(keyspace(1), 5), (keyspace(2), 1_000)]);
        let witness = Witness::open(&path).unwrap();
        assert_eq!(*witness.known(), Known { mark: Mark(7), history: 0, ends });
    }

    #[test]
    fn a_file_that_is_cut_or_another_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("witness");
        let known = Known { mark: Mark(9), history: 4, ends: BTreeMap::from([(keyspace(1), 62)]) };
        let text = known.text();
        assert_eq!(Known::read(&text), Some(known));
        for text in [
            "{}",
            "shortmint witness 2\nmark 1\n",
            &text[..text.len() - 4],
            &text[..30],
            &text.replace("62", "x2"),
        ] {
            std::fs::write(&path, text).unwrap();
            assert!(Witness::open(&path).is_err() && Witness::mark_in(&path).is_err(), "{text:?}");
        }
    }
}
