//! Checks and creates the items of a bulk call, and makes their results.
//!
//! Plain links of a batch are one insert, and those with names, tags or domains one transaction.
//! Other links, and those that the transaction skipped, are created one by one, of one batch at a
//! time, so that a call has at most [`AT_ONCE`] of them under way. Each begins only while its key
//! is valid, the client is there and the server is not stopping, and runs to its end: otherwise
//! calls that their clients leave at once would pile up creates.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use app::{
    AppError, Field, InvalidField,
    create_link::{CheckedCreate, IdempotencyKey},
    create_many::{CheckedLink, CreatedTogether},
    creator::{CreateError, Created},
    error::FIELDS_TOLD,
};
use dto::{BatchResult, BatchWord, ShortUrlName};
use futures_util::{StreamExt as _, stream};
use links::{Draft, Record, api_key::Grant};
use tokio::{
    join,
    sync::{Mutex, mpsc::WeakSender},
};

use super::super::{
    link_fields::{canonical, create_command, link_name},
    read::{in_order, read_fields},
};
use crate::{Api, Task, authenticate::is_still_granted, kind::Kind};
use web::Piece;

/// Maximum number of links of one call that are created one by one, at a time.
const AT_ONCE: usize = 64;
/// Maximum number of links of one call that have a password: a hash takes tens of milliseconds of
/// a core, which visitors of such links wait for too.
pub(super) const PASSWORDS_MAX: usize = 100;
/// Maximum length of an invalid item's result, in bytes.
const INVALID_BYTES: usize = 512;
/// Maximum length of the results of a call's invalid items that say what was expected, in bytes.
const EXPECTED_BYTES: usize = 2 * 1024 * 1024;
/// Why a key's links are not created any more.
pub(super) const REVOKED: &str = "the API key was revoked, has expired or was limited";
/// The name of an item that is wrong as a whole.
const ITEM: &str = "(the item)";

/// A link that may be created, or the result of an item that may not.
pub(super) type Item = Result<CheckedLink, BatchResult>;
/// The result of an item, with its place in the batch.
type Placed = (usize, BatchResult);
/// An item that is not plain, with its place in the batch.
type Single = (usize, Box<CheckedCreate>);

/// What the batches of a call share.
pub(super) struct Creates {
    pub(super) api: Arc<Api>,
    pub(super) by: Grant,
    /// The idempotency key of the call.
    idempotency: Option<IdempotencyKey>,
    /// Where the results go. It is closed once the client has gone.
    answers: WeakSender<Piece>,
    /// Length of the results so far that say what was expected, in bytes.
    expected_bytes: AtomicUsize,
    /// The number of links so far that have a password.
    passwords: AtomicUsize,
    /// Held by the batch whose links are created one by one.
    singles: Mutex<()>,
    /// Held by the create whose password is hashed: few hashes of new passwords may wait.
    hashing: Mutex<()>,
}

impl Creates {
    pub(super) fn new(
        api: &Arc<Api>,
        by: &Grant,
        idempotency: Option<IdempotencyKey>,
        answers: WeakSender<Piece>,
    ) -> Arc<Self> {
        Arc::new(Self {
            api: Arc::clone(api),
            by: by.clone(),
            idempotency,
            answers,
            expected_bytes: AtomicUsize::new(0),
            passwords: AtomicUsize::new(0),
            singles: Mutex::new(()),
            hashing: Mutex::new(()),
        })
    }

    /// Checks the item at this place of the body. What is wrong with it is reported as long as
    /// there is room.
    pub(super) fn check(&self, item: &[u8], place: usize) -> Item {
        self.check_item(item, place).map_err(|refused| self.shortened(refused))
    }

    fn check_item(&self, item: &[u8], place: usize) -> Item {
        let no_object = || wrong(ITEM, "expected a JSON object");
        let (fields, mut errors) = read_fields::<dto::LinkFields>(item).map_err(|_| no_object())?;
        let idempotency = match &self.idempotency {
            Some(key) => Some(key.of_item(place, canonical(item).map_err(|_| no_object())?)),
            None => None,
        };
        let request = create_command(&self.api, fields, &mut errors);
        let checked = self.api.links.check_link(request, idempotency, errors, &self.by);
        let checked = checked.map_err(|error| refused(&in_order(error, item)))?;
        let has_password = matches!(&checked, CheckedLink::Single(create) if create.has_password());
        if has_password && self.passwords.fetch_add(1, Ordering::Relaxed) >= PASSWORDS_MAX {
            let expected = format!("expected at most {PASSWORDS_MAX} links with a password in a call");
            return Err(wrong(Field::Password.name(), expected));
        }
        Ok(checked)
    }

    /// Leaves out what was expected, once that has taken much room.
    fn shortened(&self, mut refused: BatchResult) -> BatchResult {
        if refused.expected.is_some() {
            let bytes = written(&refused).len();
            if self.expected_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > EXPECTED_BYTES {
                refused.expected = None;
            }
        }
        refused
    }

    /// Creates the links of a batch that may be created. Returns the results in the order of the
    /// items.
    pub(super) async fn create(self: Arc<Self>, items: Vec<Item>) -> Vec<BatchResult> {
        let count = items.len();
        let mut results: Vec<Option<BatchResult>> = vec![None; count];
        let (mut places, mut drafts) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let (mut together, mut singles) = (Vec::new(), Vec::new());
        for (place, item) in items.into_iter().enumerate() {
            match item {
                Ok(CheckedLink::Plain(draft)) => {
                    places.push(place);
                    drafts.push(draft);
                }
                Ok(CheckedLink::Together(checked)) => together.push((place, checked)),
                Ok(CheckedLink::Single(checked)) => singles.push((place, checked)),
                Err(refused) => results[place] = Some(refused),
            }
        }
        let (plain, others) = join!(self.create_plain(drafts), self.create_others(together, singles));
        for (place, result) in places.into_iter().zip(plain).chain(others) {
            results[place] = Some(result);
        }
        results.into_iter().flatten().collect()
    }

    async fn create_plain(&self, drafts: Vec<Draft>) -> Vec<BatchResult> {
        if drafts.is_empty() {
            return Vec::new();
        }
        let created = self.api.links.creator.create_many(drafts).await;
        created.into_iter().map(|created| result_of_plain(&self.api, created)).collect()
    }

    /// Creates links in one transaction, and then one by one those that it skipped or cannot carry.
    async fn create_others(self: &Arc<Self>, together: Vec<Single>, mut singles: Vec<Single>) -> Vec<Placed> {
        let (mut results, left) = self.create_together(together).await;
        singles.extend(left);
        results.extend(self.create_singles(singles).await);
        results
    }

    /// Creates links in one transaction. Returns the results, and the links that it skipped.
    async fn create_together(self: &Arc<Self>, links: Vec<Single>) -> (Vec<Placed>, Vec<Single>) {
        let (mut results, mut left) = (Vec::with_capacity(links.len()), Vec::new());
        if links.is_empty() {
            return (results, left);
        }
        let (places, links): (Vec<usize>, Vec<_>) =
            links.into_iter().map(|(place, checked)| (place, *checked)).unzip();
        let call = Arc::clone(self);
        let task: Task<Vec<CreatedTogether>> =
            Box::pin(async move { call.api.links.create_together(links, &call.by).await });
        match self.api.runtime.spawn(task).await {
            Ok(created) => {
                for (place, created) in places.into_iter().zip(created) {
                    match created {
                        CreatedTogether::Ended(created) => results.push((place, self.result_of(created))),
                        CreatedTogether::Left(link) => left.push((place, link)),
                    }
                }
            }
            // Only after a panic.
            Err(_) => {
                results.extend(places.into_iter().map(|place| (place, result(BatchWord::Unavailable))));
            }
        }
        (results, left)
    }

    /// Creates links one by one, some at a time. The work is a task of its own: a create that is
    /// dropped would leave its number without an outcome.
    async fn create_singles(self: &Arc<Self>, singles: Vec<Single>) -> Vec<Placed> {
        if singles.is_empty() {
            return Vec::new();
        }
        let places: Vec<usize> = singles.iter().map(|(place, _)| *place).collect();
        let call = Arc::clone(self);
        let task: Task<Vec<Placed>> = Box::pin(async move {
            let _turn = call.singles.lock().await;
            let of_each = Arc::clone(&call);
            let create = move |(place, checked): Single| -> Task<Placed> {
                let call = Arc::clone(&of_each);
                Box::pin(async move { (place, call.create_single(*checked).await) })
            };
            stream::iter(singles.into_iter().map(create)).buffer_unordered(AT_ONCE).collect().await
        });
        let created = self.api.runtime.spawn(task).await;
        // Only after a panic.
        let unknown = |place| (place, result(BatchWord::Unavailable));
        created.unwrap_or_else(|_| places.into_iter().map(unknown).collect())
    }

    async fn create_single(&self, checked: CheckedCreate) -> BatchResult {
        let _hashing = if checked.has_password() { Some(self.hashing.lock().await) } else { None };
        let has_client = self.answers.upgrade().is_some_and(|answers| !answers.is_closed());
        if !has_client || self.api.stop.is_cancelled() {
            return result(BatchWord::Unavailable);
        }
        match is_still_granted(&self.api, &self.by).await {
            Ok(true) => {}
            Ok(false) => return self.shortened(wrong(ITEM, REVOKED)),
            Err(_) => return result(BatchWord::Unavailable),
        }
        self.result_of(self.api.links.create_checked(checked, &self.by).await)
    }

    fn result_of(&self, record: Result<Record, AppError>) -> BatchResult {
        match record {
            Ok(record) => link_name(&self.api, &record).map_or(result(BatchWord::Unavailable), created),
            Err(error) => self.shortened(refused(&error)),
        }
    }
}

fn result(word: BatchWord) -> BatchResult {
    BatchResult { result: word, short_code: None, short_url: None, expected: None }
}

fn created(ShortUrlName { short_url, short_code }: ShortUrlName) -> BatchResult {
    let (short_url, short_code) = (Some(short_url), Some(short_code));
    BatchResult { short_code, short_url, ..result(BatchWord::Created) }
}

/// Returns the result of an item that was refused, or whose outcome is unknown.
fn refused(error: &AppError) -> BatchResult {
    let field = match error {
        AppError::Invalid(fields) => return invalid(fields),
        AppError::MayNotAddDomain(_) | AppError::TooManyDomains(_) => Field::Domain.name(),
        AppError::IdempotencyKeyReused => "Idempotency-Key",
        _ => ITEM,
    };
    match Kind::of(error) {
        Kind::SlugTaken => result(BatchWord::Taken),
        Kind::Exhausted => result(BatchWord::Exhausted),
        Kind::TooManyCalls | Kind::Unavailable | Kind::Internal => result(BatchWord::Unavailable),
        _ => wrong(field, error.to_string()),
    }
}

/// Returns the result of an item with wrong fields. If they are very long, it says only that.
fn invalid(fields: &[InvalidField]) -> BatchResult {
    let expected = fields.iter().map(|one| (one.field.clone(), one.expected.clone())).collect();
    let all = BatchResult { expected: Some(expected), ..result(BatchWord::Invalid) };
    if fields.len() <= FIELDS_TOLD && written(&all).len() <= INVALID_BYTES {
        return all;
    }
    wrong(ITEM, "expected fewer wrong fields, and shorter ones")
}

/// Returns the result of an item or a body that is wrong as a whole, or of an item with one wrong
/// field.
pub(super) fn wrong(field: &str, expected: impl Into<String>) -> BatchResult {
    let expected = BTreeMap::from_iter([(field.to_owned(), expected.into())]);
    BatchResult { expected: Some(expected), ..result(BatchWord::Invalid) }
}

pub(super) fn written(result: &BatchResult) -> Vec<u8> {
    // A struct of texts always serializes.
    serde_json::to_vec(result).unwrap_or_default()
}

fn result_of_plain(api: &Api, outcome: Result<Created, CreateError>) -> BatchResult {
    let word = match outcome {
        Ok(Created { code, .. }) => {
            let short_url = format!("{}/{code}", api.public_url);
            return created(ShortUrlName { short_url, short_code: code.to_string() });
        }
        Err(CreateError::Exhausted) => BatchWord::Exhausted,
        // No plain link picks its code or has an idempotency key.
        Err(CreateError::Taken | CreateError::KeyReused) => BatchWord::Taken,
        Err(CreateError::Unavailable | CreateError::NoStore | CreateError::PermitTimeout) => {
            BatchWord::Unavailable
        }
    };
    result(word)
}
