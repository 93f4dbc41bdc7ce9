//! What a visitor asks for, and whether an absence may be told.

use std::sync::Arc;

use codes::Code;
use links::{DomainId, Link};

use super::{Directory, Place};
use supply::guard::{self, Guard};

use crate::lookup::{LookupError, Wanted};

/// A visitor's host and path, as the copy of the settings explains them.
#[derive(Clone, Debug)]
pub struct Question {
    /// The domain of the host.
    pub place: Place,
    /// What the path asks for; none when no link can have it.
    pub wanted: Option<Wanted>,
    /// Whether the copy was fresh before it was asked.
    was_fresh: bool,
}

impl Directory {
    /// Explains a visitor's host and path.
    #[must_use]
    pub fn question(&self, host: Option<&str>, path: &str) -> Question {
        // Before the copy is asked: settings that come between the two are not in what it says.
        let was_fresh = self.is_fresh();
        let place = self.place(host);
        Question { place, wanted: Wanted::of_path(&self.lookup, path), was_fresh }
    }

    /// Whether the visitor may be told that there is no link, now that the store has said so. The
    /// copy may lack the domain of the host, or the keyspace of a text that looks like a code. So
    /// it must have been fresh before it was asked; if it has become fresh since, that does not
    /// help.
    #[must_use]
    pub fn may_deny(&self, question: &Question) -> bool {
        let was_fresh = if guard::is_on(Guard::FreshBefore) { question.was_fresh } else { self.is_fresh() };
        let is_placed = question.place.is_sure || was_fresh;
        let is_explained = match &question.wanted {
            Some(Wanted::Slug(slug)) => Code::parse(slug.as_str()).is_err(),
            Some(Wanted::Code(_)) | None => true,
        };
        is_placed && (is_explained || was_fresh)
    }

    /// The link that has this name, a code or a slug, on exactly this domain. The name may be a
    /// code of a keyspace that this copy lacks, so the settings are read again before an absence is
    /// reported.
    ///
    /// # Errors
    /// When the store does not say.
    pub async fn find_named(&self, domain: DomainId, name: &str) -> Result<Option<Arc<Link>>, LookupError> {
        let was_fresh = self.is_fresh();
        let is_explained =
            !domain.is_default() || Code::parse(name).is_err() || self.lookup.id_of(name).is_some();
        let found = self.lookup.find_named(domain, name).await?;
        if found.is_some() || is_explained || was_fresh {
            return Ok(found);
        }
        self.refresh().await.map_err(|_| LookupError::NoStore)?;
        self.lookup.find_named(domain, name).await
    }
}
