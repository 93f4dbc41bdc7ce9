//! Interpretation of a visitor's request, and whether an absence may be reported.

use std::sync::Arc;

use codes::Code;
use links::{Domain, DomainId, Link, OtherName, OtherWay, other_names};

use super::DomainCache;
use supply::safety_rule::SafetyRule;

use crate::lookup::{LookupError, LookupKey};

/// A visitor's host and path, as the copy of the settings interprets them.
#[derive(Clone, Debug)]
pub struct Question {
    /// The domain of the host.
    pub domain: Arc<Domain>,
    /// Whether the domain is certain: the copy was fresh, or the host is the default domain's.
    pub is_sure: bool,
    /// The key that the path asks for; `None` if no link can have it.
    pub wanted: Option<LookupKey>,
    /// Whether the copy was fresh before the interpretation.
    was_fresh: bool,
}

/// Returns whether a key cannot be a code of a keyspace that this process does not know.
fn is_explained(key: &LookupKey) -> bool {
    match key {
        LookupKey::Slug(slug) => Code::parse(slug.as_str()).is_err(),
        LookupKey::Code(_) => true,
    }
}

impl DomainCache {
    /// Interprets a visitor's host and path.
    pub fn question(&self, host: Option<&str>, path: &str) -> Question {
        // Before the interpretation: it does not reflect settings that arrive between the two.
        let was_fresh = self.is_fresh();
        let (domain, is_default) = self.place(host);
        let (is_sure, wanted) = (is_default || was_fresh, self.config.lookup.key_of_path(path));
        Question { domain, is_sure, wanted, was_fresh }
    }

    /// Returns the other names that a path may be meant as on the domain of a question.
    pub fn other_names<'a>(&self, question: &Question, path: &'a str) -> Vec<(OtherName<'a>, LookupKey)> {
        self.names_on(&question.domain, path)
    }

    fn names_on<'a>(&self, domain: &Domain, path: &'a str) -> Vec<(OtherName<'a>, LookupKey)> {
        let names = other_names(path, &domain.settings).into_iter();
        names
            .filter_map(|name| {
                let key = self.config.lookup.key_of_path(&name.path)?;
                Some((name, key))
            })
            .collect()
    }

    /// Returns the link that a path leads to on a domain without being its name, if no link has
    /// the path itself. It is not the link that catches all paths, which is for what is left.
    pub async fn find_other<'a>(
        &self,
        domain: DomainId,
        path: &'a str,
    ) -> Result<Option<Arc<Link>>, LookupError> {
        let entries = self.entries();
        let of_default = domain.is_default().then_some(&entries.default);
        let Some(domain) = of_default.or_else(|| entries.domain(domain)) else { return Ok(None) };
        let (others, of_domain) = (self.names_on(domain, path), domain.settings.extra_path);
        if others.is_empty() {
            return Ok(None);
        }
        let means = |other: &OtherName<'a>, link: &Link| {
            other.way != OtherWay::CatchAll && other.means(link, of_domain)
        };
        let found = self.config.lookup.find_other(domain.id, &others, means).await?;
        Ok(found.map(|(_, link)| link))
    }

    /// Returns whether an absence that the store has reported may be passed on to the visitor: that
    /// of the name, and of the other names that were tried. If it may not, no link that one of
    /// these has may be shown either, because a name before it may have a link.
    ///
    /// The copy may lack the domain of the host, or the keyspace of a text that looks like a code.
    /// So it must have been fresh before the interpretation; having become fresh since does not
    /// help.
    pub fn may_deny(&self, question: &Question, others: &[(OtherName<'_>, LookupKey)]) -> bool {
        let was_fresh = if self.config.lookup.has_rule(SafetyRule::FreshBefore) {
            question.was_fresh
        } else {
            self.is_fresh()
        };
        let mut tried = question.wanted.iter().chain(others.iter().map(|(_, key)| key));
        was_fresh || question.is_sure && tried.all(is_explained)
    }

    /// Returns the link with this name, a code or a slug, on exactly this domain.
    ///
    /// The name may be a code of a keyspace that this copy lacks, so the settings are read again
    /// before an absence is reported.
    pub async fn find_named(&self, domain: DomainId, name: &str) -> Result<Option<Arc<Link>>, LookupError> {
        let was_fresh = self.is_fresh();
        let is_explained =
            !domain.is_default() || Code::parse(name).is_err() || self.config.lookup.id_of(name).is_some();
        let found = self.config.lookup.find_named(domain, name).await?;
        if found.is_some() || is_explained || was_fresh {
            return Ok(found);
        }
        self.refresh().await.map_err(|_| LookupError::NoStore)?;
        self.config.lookup.find_named(domain, name).await
    }
}
