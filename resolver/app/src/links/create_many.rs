//! Checks and creates the links of a call for many.
//!
//! 1. A plain link has the next code of the default keyspace and is on the default domain, without
//!    tags, password, a title to fetch and deduplication. Many of them are one insert ([`Creator::create_many`]).
//! 2. Any other link is created as by a call of its own, and the adapter has a bounded number of
//!    them under way. So all guarantees of a single create hold for it. Its commit point is that of
//!    its own transaction; a slug that is a mintable code, and no tags, is in a batch with others
//!    (`creator/batch.rs`). An insert in doubt is resolved by reading. A slug that is taken or
//!    reserved, or a domain that the key may not add, fails only its own item. The transaction
//!    records the events of webhooks and notifies other resolvers.
//! 3. Items with the same slug race as calls of their own do: one of them is created, not
//!    necessarily the first.
//! 4. A whole call may be repeated if it has an idempotency key. Each item has that key with its
//!    place in the call ([`IdempotencyKey::of_item`]), and is an entry of the table that single
//!    creates use. So no item is plain then. `findIfExists` works for each item as for a single
//!    create.
//!
//! Rejected: one transaction for many links with slugs and tags, as imports have it
//! (`store/src/sql/import.rs`). It makes several statements for each link as well, and saves only
//! the COMMITs. An import learns from its stored position what became of a batch in doubt, which a
//! call does not have; and it keeps its slugs locked until the COMMIT, so that two calls with the
//! same slugs in another order would deadlock. A faster path needs statements for whole batches
//! that are sorted by domain and slug, and the mark of each link (`creator/named.rs`) to find its
//! own rows after an unknown outcome.
//!
//! [`Creator::create_many`]: crate::creator::Creator::create_many

use links::{Draft, Record, api_key::Grant, scope::Scope};

use crate::{
    Answer, AppError, FieldErrors, LinkService,
    authorize::require,
    create_link::{CheckedCreate, CreateLink, IdempotencyKey},
    creator::CodeChoice,
};

/// A checked link of a call for many.
pub enum CheckedLink {
    /// A plain link, which is inserted with others.
    Plain(Draft),
    /// A link that is created by itself.
    Single(Box<CheckedCreate>),
}

impl LinkService {
    /// Checks a link of a call for many, as far as that needs no database.
    pub fn check_link(
        &self,
        request: CreateLink,
        idempotency: Option<IdempotencyKey>,
        wrong: FieldErrors,
        by: &Grant,
    ) -> Result<CheckedLink, AppError> {
        let checked = CheckedCreate { idempotency, ..self.check_create(request, wrong, by.id)? };
        if checked.is_plain(by) {
            Ok(CheckedLink::Plain(checked.draft))
        } else {
            Ok(CheckedLink::Single(Box::new(checked)))
        }
    }

    /// Creates a checked link by itself, and has its title fetched afterwards if that is wanted.
    pub fn create_checked<'a>(&'a self, checked: CheckedCreate, by: &'a Grant) -> Answer<'a, Record> {
        Box::pin(async move {
            require(by, Scope::Create)?;
            let (fetches_title, upsert) = (checked.fetches_title, checked.upsert.clone());
            if upsert.is_some() {
                require(by, Scope::Edit)?;
            }
            let (draft, options) = self.prepare(checked, by).await?;
            let mut record = self.create(draft, options, by).await?;
            if let Some(upsert) = upsert {
                record = self.bring_up_to_date(record, &upsert.edit, by).await?;
            }
            if fetches_title {
                self.titles.add(&record, by);
            }
            Ok(record)
        })
    }
}

impl CheckedCreate {
    /// Returns whether the link has a password, whose hash takes long.
    pub fn has_password(&self) -> bool {
        self.password.is_some()
    }

    fn is_plain(&self, by: &Grant) -> bool {
        // A key of another domain creates its links there, whatever was requested.
        let is_on_default = by.limits.domain.is_none_or(|own| own.is_default());
        let is_deduplicated = self.finds || self.idempotency.is_some() || self.upsert.is_some();
        is_on_default
            && !is_deduplicated
            && self.options.code == CodeChoice::Next
            && self.options.tags.is_empty()
            && self.domain.is_none()
            && self.password.is_none()
            && !self.fetches_title
    }
}
