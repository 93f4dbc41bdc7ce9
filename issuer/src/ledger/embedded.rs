//! The ledger as one file, for the issuer inside a resolver.
//!
//! 1. One process has the file open. It holds an exclusive lock on a file beside it, which the
//!    operating system releases when the process ends.
//! 2. Each opening raises the epoch, so that a transaction of an earlier start can never apply.
//! 3. A transaction has applied once the file is replaced: the content is written to a temporary
//!    file, synced and renamed, and the folder is synced. A crash leaves the old file or the new
//!    one.
//!
//! 4. A file that lacks numbers which the database has registered is an older copy. It is moved
//!    past them before the issuer serves ([`EmbeddedLedger::go_past`]). So creates need not wait
//!    for the refusal of each number that the copy has as free.
//!
//! Rejected: an append-only log with checkpoints. The whole state is a few kilobytes and changes
//! once per block, which is every thousand links or more.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File, TryLockError},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use numbers::{Epoch, Namespace, Revision};
use serde::{Deserialize, Serialize};

use super::{HeadRead, Ledger, LedgerError, Record, Snapshot, Txn, TxnOutcome, Write, record::HEAD};
use crate::core::NamespaceRecord;

/// The file's content, with etcd's epoch and revisions kept by this module.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Content {
    /// Epoch of the process that has the file open.
    epoch: Epoch,
    /// Count of applied transactions.
    revision: Revision,
    /// Revision at which `head` was last written.
    head: Revision,
    /// Values by key, in the form of [`super::Key::encode`].
    entries: BTreeMap<String, serde_json::Value>,
}

/// An open ledger file.
#[derive(Debug)]
pub struct EmbeddedLedger {
    path: PathBuf,
    content: Arc<Mutex<Content>>,
    /// Keeps the lock on this file.
    _lock: File,
}

impl EmbeddedLedger {
    /// Opens or creates the file, and begins a new epoch. Blocks on the disk, so call it at startup
    /// or on a blocking thread. Returns an error if the file is damaged, cannot be written, or is
    /// open in another process.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(file_error("create the folder of", path))?;
        let lock = lock(path)?;
        let mut content = match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| LedgerError::Damaged(path.display().to_string(), error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Content::default(),
            Err(error) => return Err(file_error("read", path)(error)),
        };
        content.epoch = content.epoch.next();
        replace(path, &content).map_err(file_error("write", path))?;
        Ok(Self { path: path.to_owned(), content: Arc::new(Mutex::new(content)), _lock: lock })
    }

    /// Moves the high watermarks past numbers that the database has registered. Of a namespace that
    /// lacked some, free and leaked numbers are burned as well: links may have them that the copy
    /// does not know of. Blocks on the disk.
    pub fn go_past(&self, registered: &BTreeMap<Namespace, u64>) -> Result<(), LedgerError> {
        let mut current = lock_content(&self.content);
        let Some(HeadRead { mut head, .. }) = read_head(&current) else { return Ok(()) };
        let mut next = current.clone();
        for (name, record) in &mut head.namespaces {
            let end = registered.get(name).copied().unwrap_or(0).min(record.capacity);
            if end <= record.high_watermark {
                continue;
            }
            tracing::info!(namespace = %name, from = record.high_watermark, to = end, "the ledger is an older copy: numbers are burned");
            burn_up_to(record, end);
            let parts = [format!("free/{name}/"), format!("leaked/{name}/")];
            next.entries.retain(|key, _| !parts.iter().any(|part| key.starts_with(part)));
        }
        let head = serde_json::to_value(&head);
        let head = head.map_err(|error| file_error("write", &self.path)(error.into()))?;
        if next.entries.insert(HEAD.to_owned(), head.clone()) != Some(head) {
            replace(&self.path, &next).map_err(file_error("write", &self.path))?;
            *current = next;
        }
        Ok(())
    }

    /// Returns the epoch that this opening began.
    pub fn epoch(&self) -> Epoch {
        lock_content(&self.content).epoch
    }
}

#[async_trait]
impl Ledger for EmbeddedLedger {
    async fn load(&self) -> Result<Snapshot, LedgerError> {
        let content = lock_content(&self.content).clone();
        let records =
            content.entries.iter().map(|(key, value)| Record::decode(key, value.to_string().as_bytes()));
        Ok(Snapshot { head: content.head, records: records.collect::<Result<_, _>>()? })
    }

    async fn commit(&self, txn: &Txn) -> TxnOutcome {
        let (path, content, txn) = (self.path.clone(), Arc::clone(&self.content), txn.clone());
        // A panic or an abort leaves the outcome unknown, like any other lost reply.
        tokio::task::spawn_blocking(move || apply(&path, &content, &txn)).await.unwrap_or(TxnOutcome::Unknown)
    }
}

/// Checks the guard, replaces the file, then updates the content in memory. The lock is held
/// throughout, since transactions come one at a time anyway.
fn apply(path: &Path, content: &Mutex<Content>, txn: &Txn) -> TxnOutcome {
    let mut current = lock_content(content);
    if current.epoch != txn.epoch || current.head != txn.head {
        return TxnOutcome::Refused(read_head(&current));
    }
    let mut next = current.clone();
    next.revision = next.revision.next();
    next.head = next.revision;
    for write in txn.writes.iter() {
        match write {
            Write::Put(record) => {
                let Ok(value) = serde_json::from_str(&record.encode()) else { return TxnOutcome::Unknown };
                next.entries.insert(record.key().encode(), value);
            }
            Write::Delete(key) => {
                next.entries.remove(&key.encode());
            }
        }
    }
    if let Err(error) = replace(path, &next) {
        tracing::error!(path = %path.display(), %error, "write the ledger");
        return TxnOutcome::Unknown;
    }
    let revision = next.revision;
    *current = next;
    TxnOutcome::Applied(revision)
}

/// Burns all numbers of a namespace below `end` that no holder has open.
fn burn_up_to(record: &mut NamespaceRecord, end: u64) {
    let lost = end - record.high_watermark;
    record.high_watermark = end;
    (record.ceiling, record.announced) = (record.capacity, record.capacity);
    let account = &mut record.account;
    account.allocated += lost;
    account.burned += lost + account.free + account.leaked;
    (account.free, account.leaked) = (0, 0);
}

fn read_head(content: &Content) -> Option<HeadRead> {
    let value = content.entries.get(HEAD)?;
    let head = serde_json::from_value(value.clone()).ok()?;
    Some(HeadRead { head, revision: content.head })
}

fn lock(path: &Path) -> Result<File, LedgerError> {
    let beside = path.with_extension("lock");
    let file = create_private(&beside).map_err(file_error("create", &beside))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(LedgerError::InUse(path.display().to_string())),
        Err(TryLockError::Error(error)) => Err(file_error("lock", &beside)(error)),
    }
}

/// Creates a file that only this user can read and write.
fn create_private(path: &Path) -> io::Result<File> {
    File::options().write(true).create(true).truncate(true).mode(0o600).open(path)
}

fn replace(path: &Path, content: &Content) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = create_private(&beside)?;
    file.write_all(&serde_json::to_vec(content)?)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn file_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LedgerError {
    let path = path.display().to_string();
    move |source| LedgerError::File { action, path, source }
}

fn lock_content(content: &Mutex<Content>) -> std::sync::MutexGuard<'_, Content> {
    content.lock().expect("no code panics while it holds this lock")
}

#[cfg(test)]
mod tests {
    use numbers::{Batch, Generation, Span, StoreEpoch};

    use super::*;
    use crate::core::{Account, Head, Part};

    fn txn(ledger: &EmbeddedLedger, head: Revision, batch: u64) -> Txn {
        let record = Record::Head(Head { epoch: ledger.epoch(), batch: Batch(batch), ..Head::default() });
        Txn { epoch: ledger.epoch(), head, batch: Batch(batch), writes: [Write::Put(record)].into() }
    }

    #[tokio::test]
    async fn a_copy_of_an_applied_transaction_is_refused_with_the_head_it_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = EmbeddedLedger::open(&folder.path().join("ledger.json")).unwrap();
        let first = txn(&ledger, Revision(0), 1);
        assert_eq!(ledger.commit(&first).await, TxnOutcome::Applied(Revision(1)));
        let TxnOutcome::Refused(Some(read)) = ledger.commit(&first).await else {
            panic!("expected a refusal")
        };
        assert_eq!((read.head.batch, read.revision), (Batch(1), Revision(1)));
    }

    #[tokio::test]
    async fn reopening_keeps_the_records_and_shuts_out_the_earlier_epoch() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.json");
        let ledger = EmbeddedLedger::open(&path).unwrap();
        let stale = txn(&ledger, Revision(1), 2);
        ledger.commit(&txn(&ledger, Revision(0), 1)).await;
        assert!(matches!(EmbeddedLedger::open(&path), Err(LedgerError::InUse(_))));
        drop(ledger);

        let ledger = EmbeddedLedger::open(&path).unwrap();
        assert_eq!(ledger.load().await.unwrap().head, Revision(1));
        assert!(matches!(ledger.commit(&stale).await, TxnOutcome::Refused(Some(_))));
    }

    #[tokio::test]
    async fn an_older_copy_goes_past_what_the_database_has_and_keeps_no_free_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.json");
        let name = |name| Namespace::new(name).unwrap();
        let account = Account { allocated: 100, used: 40, open: 20, free: 30, leaked: 10, burned: 0 };
        let record =
            NamespaceRecord { capacity: 1_000, high_watermark: 100, ceiling: 300, announced: 300, account };
        let namespaces = BTreeMap::from([(name("older"), record.clone()), (name("same"), record.clone())]);
        let part = Part {
            span: Span::new(10, 30).unwrap(),
            generation: Generation(1),
            store: StoreEpoch::new("s").unwrap(),
            contested: false,
        };
        let ledger = EmbeddedLedger::open(&path).unwrap();
        let mut txn = txn(&ledger, Revision(0), 1);
        txn.writes = [
            Write::Put(Record::Head(Head { epoch: ledger.epoch(), namespaces, ..Head::default() })),
            Write::Put(Record::Free(name("older"), part.clone())),
            Write::Put(Record::Free(name("same"), part.clone())),
        ]
        .into();
        assert_eq!(ledger.commit(&txn).await, TxnOutcome::Applied(Revision(1)));
        ledger.go_past(&BTreeMap::from([(name("older"), 600), (name("same"), 100)])).unwrap();
        drop(ledger);

        let records = EmbeddedLedger::open(&path).unwrap().load().await.unwrap().records;
        let state = crate::core::State::rebuild(Snapshot { head: Revision(1), records });
        let older = &state.head.namespaces[&name("older")];
        assert_eq!((older.high_watermark, older.ceiling, older.announced), (600, 1_000, 1_000));
        let account = Account { allocated: 600, used: 40, open: 20, free: 0, leaked: 0, burned: 540 };
        assert!(older.account == account && account.balances(), "{older:?}");
        assert_eq!(state.head.namespaces[&name("same")], record);
        assert_eq!(state.free.keys().map(|(name, _)| name.to_string()).collect::<Vec<_>>(), ["same"]);
    }

    #[test]
    fn a_damaged_file_is_an_error_and_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.json");
        fs::write(&path, "{").unwrap();
        assert!(matches!(EmbeddedLedger::open(&path), Err(LedgerError::Damaged(..))));
        assert_eq!(fs::read(&path).unwrap(), b"{");
    }
}
