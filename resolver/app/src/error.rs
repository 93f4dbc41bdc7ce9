//! Errors of the use cases, the same for all protocols.
//!
//! The messages are complete sentences for the caller. `api/src/kind.rs` adds a status, a type of
//! RFC 9457 and a gRPC code.

use links::{audit::NotUndone, scope::Scope};
use store::StoreError;
use supply::Refused;
use visit_store::VisitStoreError;

use crate::find_link::LinkName;
use limits::{ExceededShare, PermitTimeout};

/// Maximum number of wrong fields that one answer names. One more entry stands for the rest.
pub const FIELDS_TOLD: usize = 16;

/// A field with a wrong value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidField {
    /// The field's path in the request, such as `redirectRules.0.longUrl`.
    pub field: String,
    /// A phrase that says what the field takes, or why it has no such value here.
    pub expected: String,
}

/// The error of a use case: it did nothing, or its outcome is unknown.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// Fields have wrong values.
    #[error("{}", joined(.0))]
    Invalid(Vec<InvalidField>),
    /// The API key lacks a scope.
    #[error("This API key lacks the scope \"{0}\".")]
    Forbidden(Scope),
    /// The API key is limited to a domain or to its own links, and the call needs an unlimited one.
    #[error("This API key is limited to one domain or to its own links. Use one without such limits.")]
    LimitedKey,
    /// The API key sees only its own links, and has too many of them for a call that goes through
    /// all of them.
    #[error("This API key sees only its own links, and has more than {0}. Use one that sees all links.")]
    TooManyOwnLinks(u64),
    /// The call is for the default domain, and the API key is limited to another one.
    #[error("Reserved codes are on the default domain, and this API key is limited to another one.")]
    OneDomainOnly,
    /// No link has this name, or the API key does not see it.
    #[error("No URL found with short code \"{}\"{}", .0.code, on_domain(.0))]
    NoLink(LinkName),
    /// Another link has the slug.
    #[error("Provided slug \"{}\" is already in use{}.", .0.code, on_domain(.0))]
    SlugTaken(LinkName),
    /// The idempotency key was used before with a different request.
    #[error("This Idempotency-Key was used with another request. Use a new key, or repeat that request.")]
    IdempotencyKeyReused,
    /// The link is no longer at the version that the caller knows.
    #[error("The link was edited meanwhile. Read it again, and send its current version.")]
    Superseded,
    /// The link was taken down by an operator.
    #[error(
        "The link was taken down. Only an operator can unblock it; until then it cannot be deleted or moved."
    )]
    Blocked,
    /// The edit cannot be undone.
    #[error(transparent)]
    NotUndone(#[from] NotUndone),
    /// No domain has this name.
    #[error("Domain with authority \"{0}\" could not be found")]
    NoDomain(String),
    /// Another domain has this name.
    #[error("Another domain is called \"{0}\".")]
    DomainTaken(String),
    /// The API key may not add a domain.
    #[error("No domain is called \"{0}\", and this API key lacks the scope \"domains\" to add one.")]
    MayNotAddDomain(String),
    /// There are as many domains as the operator allows.
    #[error("Domain limit reached ({0}). Use a domain that exists, remove one, or raise --limit domains.")]
    TooManyDomains(u32),
    /// The domain cannot be removed.
    #[error("The domain \"{name}\" cannot be removed: {reason}")]
    DomainInUse {
        /// The domain's name.
        name: String,
        /// The reason, and what to do.
        reason: &'static str,
    },
    /// No rule for targets has this pattern.
    #[error("No rule found for \"{0}\"")]
    NoTarget(String),
    /// No visible link has this tag.
    #[error("Tag with name \"{0}\" could not be found")]
    NoTag(String),
    /// Another tag has this name.
    #[error("You cannot rename tag {old} to {new}, because it already exists")]
    TagConflict {
        /// The present name.
        old: String,
        /// The name that is taken.
        new: String,
    },
    /// The API key is limited, but tags belong to all links.
    #[error("You are not allowed to {0} tags")]
    ForbiddenTags(&'static str),
    /// No reservation has this id, or the API key does not see it.
    #[error("No reservation found with id \"{0}\"")]
    NoReservation(String),
    /// The reservation was given up.
    #[error("The reservation \"{0}\" was given up.")]
    ReservationClosed(String),
    /// The API key would hold too many reserved codes.
    #[error(
        "Reservation limit reached: {held} of {most} codes are in open reservations of this key. Ask for fewer, or give some up."
    )]
    TooManyReserved {
        /// Number of codes in open reservations of the key.
        held: u64,
        /// The limit.
        most: u64,
    },
    /// The API key has as many open reservations as it may have.
    #[error(
        "Reservation limit reached: this key has {held} of {most} open reservations. Give up filled ones first."
    )]
    TooManyReservations {
        /// Number of open reservations of the key.
        held: u64,
        /// The limit.
        most: u64,
    },
    /// No scheduled edit has this id, or the API key does not see its link.
    #[error("No scheduled edit found with id \"{0}\"")]
    NoScheduledEdit(String),
    /// The link or the API key has as many scheduled edits as it may have.
    #[error("Limit of scheduled edits reached ({0}). Cancel one first.")]
    TooManyScheduledEdits(u32),
    /// No webhook has this id.
    #[error("No webhook found with id \"{0}\"")]
    NoWebhook(String),
    /// The webhook has no delivery with this id, or it was removed after a week.
    #[error("No delivery found with id \"{0}\"")]
    NoDelivery(String),
    /// There are as many webhooks as there may be.
    #[error("Webhook limit reached ({0}). Remove one first.")]
    TooManyWebhooks(u32),
    /// The webhook is disabled, so that it is not called.
    #[error("The webhook \"{0}\" is disabled. Enable it before you test it.")]
    WebhookDisabled(String),
    /// No addresses of visitors are kept, so that no visit can be found by one.
    #[error(
        "Addresses of visitors are not kept (--visits-privacy addresses=none), so no visit can be found by one."
    )]
    AddressesNotKept,
    /// There are as many erasures as are kept for visits that are not stored yet.
    #[error(
        "Erasure limit reached ({0}). Each is kept for as long as single visits are: try again when one has ended."
    )]
    TooManyErasures(usize),
    /// A share of the process's capacity is used up: the caller's own, or the one for all callers.
    #[error("{}", share(.0))]
    TooMuchAtOnce(ExceededShare),
    /// The keyspace has no codes left.
    #[error("Every code of this keyspace is taken. An operator has to add a keyspace.")]
    Exhausted,
    /// The change would lose what a later release has stored of the link.
    #[error("A later release has stored what this change would lose. Make the change there.")]
    LaterRelease,
    /// The database did not answer in time about links that meet some conditions.
    #[error(
        "Too many links have to be read for this list. Narrow it by dates, a tag or a longer text, or try again in a moment."
    )]
    SlowList,
    /// No number could be claimed, or the database did not answer in time.
    #[error("No number is available, or the database does not answer. Try again in a moment.")]
    Unavailable,
    /// A defect of this program.
    #[error("An unknown error occurred.")]
    Internal,
}

impl AppError {
    /// Returns the error for a single wrong field.
    pub fn invalid(field: &str, expected: impl Into<String>) -> Self {
        Self::Invalid(vec![InvalidField { field: field.to_owned(), expected: expected.into() }])
    }
}

impl From<StoreError> for AppError {
    fn from(error: StoreError) -> Self {
        if matches!(error, StoreError::LaterRelease) {
            return Self::LaterRelease;
        }
        tracing::warn!(error = &error as &dyn std::error::Error, "answer a call of the API");
        Self::Unavailable
    }
}

impl From<VisitStoreError> for AppError {
    fn from(error: VisitStoreError) -> Self {
        tracing::warn!(error = &error as &dyn std::error::Error, "answer a call about visits");
        Self::Unavailable
    }
}

impl From<ExceededShare> for AppError {
    fn from(spent: ExceededShare) -> Self {
        Self::TooMuchAtOnce(spent)
    }
}

impl From<PermitTimeout> for AppError {
    fn from(PermitTimeout: PermitTimeout) -> Self {
        Self::TooMuchAtOnce(ExceededShare::Own)
    }
}

impl From<Refused> for AppError {
    fn from(refused: Refused) -> Self {
        if matches!(refused, Refused::Exhausted) {
            return Self::Exhausted;
        }
        tracing::warn!(error = &refused as &dyn std::error::Error, "ask the issuer for numbers");
        Self::Unavailable
    }
}

/// Collects wrong fields, so that one answer names them all.
///
/// The adapter records the fields that it cannot read, and passes them to the use case, which adds
/// those with wrong values.
#[derive(Debug, Default)]
pub struct FieldErrors(Vec<InvalidField>);

impl FieldErrors {
    /// Returns the value, or records what is wrong with the field. Only the first error of a
    /// field is recorded.
    pub fn note<T>(&mut self, field: &str, read: Result<T, String>) -> Option<T> {
        read.map_err(|expected| self.add(field, expected)).ok()
    }

    /// Adds the wrong fields of a part of the request under the part's path.
    pub fn note_below(&mut self, path: &str, part: Self) {
        for InvalidField { field, expected } in part.0 {
            self.add(&format!("{path}.{field}"), expected);
        }
    }

    /// Returns whether no wrong field is recorded.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether so many fields are wrong that no more are recorded.
    pub fn is_full(&self) -> bool {
        self.0.len() > FIELDS_TOLD
    }

    /// Adds an error. A request may have thousands of wrong fields, so the last entry stands for
    /// the rest.
    pub fn add(&mut self, field: &str, expected: impl Into<String>) {
        if self.0.iter().any(|known| known.field == field) {
            return;
        }
        let (field, expected) = match FIELDS_TOLD.checked_sub(self.0.len()) {
            None => return,
            Some(0) => ("(the others)", "more fields are wrong".to_owned()),
            Some(_) => (field, expected.into()),
        };
        self.0.push(InvalidField { field: field.to_owned(), expected });
    }

    /// Returns the collected errors.
    pub fn finish(self) -> Result<(), AppError> {
        if self.0.is_empty() { Ok(()) } else { Err(AppError::Invalid(self.0)) }
    }

    /// Like [`FieldErrors::finish`], with the errors in the order of the fields' names.
    pub fn finish_by_name(mut self) -> Result<(), AppError> {
        self.0.sort_by(|one, other| one.field.cmp(&other.field));
        self.finish()
    }
}

fn joined(invalid: &[InvalidField]) -> String {
    let lines: Vec<String> = invalid.iter().map(|one| format!("{}: {}", one.field, one.expected)).collect();
    lines.join("; ")
}

/// Returns the domain of a name as it follows the code; nothing for the default domain.
fn on_domain(name: &LinkName) -> String {
    name.domain.as_ref().map_or_else(String::new, |domain| format!(" for domain \"{domain}\""))
}

fn share(share: &ExceededShare) -> &'static str {
    match share {
        ExceededShare::Own => {
            "Too many calls are under way with this API key. Make fewer or smaller ones at a time."
        }
        ExceededShare::All => "The server is at its limit. Nothing was stored: try again.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_fields_of_parts_share_the_limit() {
        let mut part = FieldErrors::default();
        (0..2 * FIELDS_TOLD).for_each(|place| part.add(&place.to_string(), "expected nothing"));
        let mut all = FieldErrors::default();
        all.add("first", "expected nothing");
        all.note_below("part", part);
        all.add("last", "expected nothing");
        let Err(AppError::Invalid(fields)) = all.finish() else { panic!("expected wrong fields") };
        let names: Vec<&str> = fields.iter().map(|one| one.field.as_str()).collect();
        assert_eq!((names.len(), names[0], names[1]), (FIELDS_TOLD + 1, "first", "part.0"));
        assert_eq!(names[FIELDS_TOLD], "(the others)");
    }
}
