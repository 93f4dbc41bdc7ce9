//! Checks and creates the links of a call for many.
//!
//! 1. A plain link has the next code of the default keyspace and is on the default domain, without
//!    tags, password, a title to fetch and deduplication. Many of them are one insert
//!    ([`Creator::create_many`]).
//! 2. A link with tags, a domain, a keyspace or a custom slug is stored in one transaction with
//!    others, as long as nothing is in its way (`creator/together.rs`). Whatever is not stored so
//!    is created as in point 3, so that one rule decides: a slug that is taken or reserved, or was
//!    another link's before, fails only its own item, or is created after all.
//! 3. Any other link is created as by a call of its own, and the adapter has a bounded number of
//!    them under way. So all guarantees of a single create hold for it. Its commit point is that of
//!    its own transaction, which records the events of webhooks and notifies other resolvers, like
//!    that of point 2. An insert in doubt is resolved by reading, link by link.
//! 4. Items with the same slug race as calls of their own do: one of them is created. Within a
//!    transaction of many it is the first.
//! 5. A whole call may be repeated if it has an idempotency key. Each item has that key with its
//!    place in the call ([`IdempotencyKey::of_item`]), and is an entry of the table that single
//!    creates use. So all its items are created as in point 3. `findIfExists` works for each item
//!    as for a single create.
//!
//! Rejected: the operation of imports (`store/src/sql/import.rs`) for point 2. It makes several
//! statements for each link, and saves only the COMMITs. An import learns from its stored position
//! what became of a batch in doubt, which a call does not have.
//!
//! [`Creator::create_many`]: crate::creator::Creator::create_many

use futures_util::future::{BoxFuture, join_all};
use links::{Draft, Record, api_key::Grant, scope::Scope};

use crate::{
    Answer, AppError, FieldErrors, LinkService,
    authorize::require,
    create_link::{CheckedCreate, CreateLink, IdempotencyKey},
    creator::{CodeChoice, CreateOptions, Together},
};

/// Maximum number of links whose domains and names are looked up at a time.
const AT_ONCE: usize = 64;

/// A checked link of a call for many.
pub enum CheckedLink {
    /// A plain link, which is inserted with others.
    Plain(Draft),
    /// A link that is stored in one transaction with others, if nothing is in its way.
    Together(Box<CheckedCreate>),
    /// A link that is created by itself.
    Single(Box<CheckedCreate>),
}

/// What became of a link that was to be created together with others.
pub type CreatedTogether = Together<Box<CheckedCreate>, AppError>;

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
        Ok(if checked.is_plain(by) {
            CheckedLink::Plain(checked.draft)
        } else if checked.fits_batch() {
            CheckedLink::Together(Box::new(checked))
        } else {
            CheckedLink::Single(Box::new(checked))
        })
    }

    /// Creates checked links in one transaction, at most [`store::BATCH_MAX`]. Returns what became
    /// of each in their order.
    pub fn create_together<'a>(
        &'a self,
        links: Vec<CheckedCreate>,
        by: &'a Grant,
    ) -> BoxFuture<'a, Vec<CreatedTogether>> {
        Box::pin(async move {
            let mut ends: Vec<Option<CreatedTogether>> = links.iter().map(|_| None).collect();
            let (mut domains, mut prepared) = (Vec::new(), Vec::new());
            let mut places = 0..links.len();
            let mut links = links.into_iter();
            loop {
                let some: Vec<_> = links.by_ref().take(AT_ONCE).collect();
                if some.is_empty() {
                    break;
                }
                let named: Vec<_> = some.iter().map(|link| link.domain.clone()).collect();
                let some = join_all(some.into_iter().map(|link| self.prepare_one(link, by))).await;
                for ((domain, ready), place) in named.into_iter().zip(some).zip(places.by_ref()) {
                    match ready {
                        Ok(ready) => {
                            domains.push((place, domain));
                            prepared.push(ready);
                        }
                        Err(error) => ends[place] = Some(Together::Ended(Err(error))),
                    }
                }
            }
            let created = self.creator.create_together(prepared).await;
            for ((place, domain), created) in domains.into_iter().zip(created) {
                ends[place] = Some(match created {
                    Together::Ended(created) => Together::Ended(created.map_err(AppError::from)),
                    Together::Left((draft, options)) => Together::Left(Box::new(CheckedCreate {
                        draft,
                        options,
                        domain,
                        password: None,
                        finds: false,
                        fetches_title: false,
                        idempotency: None,
                        upsert: None,
                    })),
                });
            }
            ends.into_iter().flatten().collect()
        })
    }

    async fn prepare_one(&self, link: CheckedCreate, by: &Grant) -> Result<(Draft, CreateOptions), AppError> {
        require(by, Scope::Create)?;
        self.prepare(link, by).await
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

    /// Returns whether the link can be stored in one transaction with others.
    fn fits_batch(&self) -> bool {
        let code = &self.options.code;
        let is_given = matches!(code, CodeChoice::Next | CodeChoice::In(_) | CodeChoice::CustomSlug(_));
        is_given && self.is_only_insert()
    }

    fn is_plain(&self, by: &Grant) -> bool {
        // A key of another domain creates its links there, whatever was requested.
        let is_on_default = by.limits.domain.is_none_or(|own| own.is_default());
        is_on_default
            && self.is_only_insert()
            && self.options.code == CodeChoice::Next
            && self.options.tags.is_empty()
            && self.domain.is_none()
    }

    /// Returns whether the create is an insert and nothing else: no link is searched for and no
    /// password is hashed before it, and no title is fetched after it.
    fn is_only_insert(&self) -> bool {
        let is_deduplicated = self.finds || self.idempotency.is_some() || self.upsert.is_some();
        !is_deduplicated && self.password.is_none() && !self.fetches_title
    }
}
