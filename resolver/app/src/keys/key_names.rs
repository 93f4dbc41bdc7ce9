//! Names of API keys by id, for answers that say who created or edited a link.
//!
//! 1. A key is never renamed and its row never removed, so a name that the store has returned stays
//!    valid. It is cached until there is no more room for it.
//! 2. A page of links sends one query for all names that are not cached yet.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use links::{
    Link,
    api_key::{ApiKeyId, OPERATOR},
};
use moka::sync::Cache;
use store::{Keys, StoreError};

/// Maximum number of cached names. Each takes some two hundred bytes.
const KEPT: u64 = 20_000;

/// A cache of the names of API keys.
pub struct KeyNames(Cache<ApiKeyId, Arc<str>>);

/// The names that one answer needs. Usually there is one.
#[derive(Clone, Debug, Default)]
pub struct Names(HashMap<ApiKeyId, Arc<str>>);

impl Default for KeyNames {
    fn default() -> Self {
        Self(Cache::new(KEPT))
    }
}

impl KeyNames {
    /// Returns the names of the keys that created and edited these links.
    pub async fn of_links(
        &self,
        keys: &dyn Keys,
        links: impl IntoIterator<Item = &Link>,
    ) -> Result<Names, StoreError> {
        let editor = |link: &Link| link.details.as_ref().and_then(|details| details.edited_by);
        let both = |link: &Link| [Some(link.created_by), editor(link)];
        let wanted = links.into_iter().flat_map(both).flatten().filter(|id| *id != OPERATOR);
        let (mut names, mut missing) = (HashMap::new(), Vec::new());
        for id in wanted.collect::<BTreeSet<ApiKeyId>>() {
            match self.0.get(&id) {
                Some(name) => _ = names.insert(id, name),
                None => missing.push(id),
            }
        }
        if !missing.is_empty() {
            for (id, name) in keys.key_names(&missing).await? {
                let name: Arc<str> = name.into();
                self.0.insert(id, Arc::clone(&name));
                names.insert(id, name);
            }
        }
        Ok(Names(names))
    }
}

impl Names {
    /// Creates a set with one name.
    pub fn only(id: ApiKeyId, name: &Arc<str>) -> Self {
        Self(HashMap::from([(id, Arc::clone(name))]))
    }

    fn get(&self, id: ApiKeyId) -> Option<&str> {
        self.0.get(&id).map(|name| &**name)
    }

    /// Returns the name of the key that created a link. Returns `None` for a link that the operator
    /// created on the command line.
    pub fn creator<'a>(&'a self, link: &'a Link) -> Option<&'a str> {
        let origin = link.details.as_ref().and_then(|details| details.origin.as_ref());
        let foreign = origin.and_then(|origin| origin.created_by.as_deref());
        foreign.or_else(|| self.get(link.created_by))
    }

    /// Returns the name of the key that edited a link last. Returns `None` if the operator edited
    /// it on the command line, or if it was never edited.
    pub fn editor<'a>(&'a self, link: &'a Link) -> Option<&'a str> {
        let details = link.details.as_ref()?;
        let foreign = details.origin.as_ref().and_then(|origin| origin.edited_by.as_deref());
        foreign.or_else(|| self.get(details.edited_by?))
    }
}
