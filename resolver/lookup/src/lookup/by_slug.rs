//! Lookups by domain and slug: the domain's own link, or the default domain's.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
};

use codes::Code;
use links::{DomainId, Link, OtherName, Slug};
use store::NamedIds;
use supply::safety_rule::SafetyRule;

use super::{Found, Lookup, LookupError, STALE_DEADLINE, cache::Name, slugs::SlugOnDomain};

/// The key of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupKey {
    /// A mintable code as it is written, whether it was minted or taken as a custom slug.
    Code(Code),
    /// Any other valid slug.
    Slug(Slug),
}

impl LookupKey {
    /// Returns the key as a slug, which it is on every domain but the default one.
    pub(super) fn slug(&self) -> Option<Slug> {
        match self {
            Self::Code(code) => Slug::parse(code.as_str()).ok(),
            Self::Slug(slug) => Some(slug.clone()),
        }
    }
}

impl Lookup {
    /// Parses the path of a visitor's request; `None` if no link can have it.
    pub fn key_of_path(&self, path: &str) -> Option<LookupKey> {
        let decoded = || {
            let slug = Slug::of_path(path)?;
            Some(self.key_of_code(slug.as_str()).unwrap_or(LookupKey::Slug(slug)))
        };
        self.key_of_code(path.get(1..)?).or_else(decoded)
    }

    /// Parses the name of a link in a call of the API: a code or a slug.
    fn key_of_name(&self, name: &str) -> Option<LookupKey> {
        let slug = || Slug::parse(name).ok().filter(|slug| slug.as_str() == name);
        self.key_of_code(name).or_else(|| slug().map(LookupKey::Slug))
    }

    fn key_of_code(&self, text: &str) -> Option<LookupKey> {
        Code::parse(text).ok().filter(|code| self.mint.belongs(code)).map(LookupKey::Code)
    }

    /// Returns the link that a path leads to on a domain: the domain's own link, or the default
    /// domain's.
    pub async fn find_on(&self, domain: DomainId, wanted: &LookupKey) -> Found {
        if domain.is_default() {
            return self.find_default(wanted).await;
        }
        if let Some(own) = self.find_own(domain, wanted).await? {
            return Ok(Some(own));
        }
        let shared = self.find_default(wanted).await?;
        if shared.as_ref().is_some_and(|link| !link.is_deleted()) {
            return Ok(shared);
        }
        // An absence is reported only after the store has denied both links (I8), the own one last:
        // the link may have moved here from the default domain since it was asked for.
        Ok(self.find_own(domain, wanted).await?.or(shared))
    }

    /// Returns the link that a domain other than the default one has itself under a key.
    async fn find_own(&self, domain: DomainId, wanted: &LookupKey) -> Found {
        for slug in self.spellings(wanted) {
            if let Some(own) = self.find_slug(&(domain, slug)).await? {
                return Ok(Some(own));
            }
        }
        Ok(None)
    }

    /// Returns the slugs under which a domain other than the default one may have a key: as it is
    /// written, and then in the spelling that is minted.
    pub(super) fn spellings(&self, wanted: &LookupKey) -> impl Iterator<Item = Slug> {
        let minted = match wanted {
            LookupKey::Code(code) => Some(self.mint.as_minted(code)).filter(|minted| minted != code),
            LookupKey::Slug(_) => None,
        };
        let minted = minted.and_then(|code| LookupKey::Code(code).slug());
        wanted.slug().into_iter().chain(minted)
    }

    /// Returns the first of other names of a path that `means` a link on a domain, and that link.
    /// All slugs among them are read at once, perhaps with those of other callers.
    ///
    /// A code of a link that was deleted or renamed, or of a reservation, is not taken for a slug
    /// in other letters: those who saw the code could pick that slug to get its visitors.
    pub async fn find_other<'a, 'b>(
        &self,
        domain: DomainId,
        others: &'a [(OtherName<'b>, LookupKey)],
        means: impl Fn(&OtherName<'b>, &Link) -> bool,
    ) -> Result<Option<(&'a OtherName<'b>, Arc<Link>)>, LookupError> {
        let is_minted = |key: &LookupKey| matches!(key, LookupKey::Code(_)) && domain.is_default();
        let slugs = others.iter().filter(|(_, key)| !is_minted(key)).filter_map(|(_, key)| key.slug());
        let mut domains = vec![domain, DomainId::DEFAULT];
        domains.dedup();
        let places: Vec<SlugOnDomain> =
            slugs.flat_map(|slug| domains.iter().map(move |on| (*on, slug.clone()))).collect();
        let named = match places.is_empty() {
            true => Arc::new(NamedIds { ids: HashMap::new(), complete: true }),
            false => self.slugs.ask_all(places).await?,
        };
        // Several may be one name with other paths behind it. Each is looked up once.
        let mut asked: Vec<(&LookupKey, Option<Arc<Link>>)> = Vec::new();
        for (name, key) in others {
            let has = |slug: &Slug| domains.iter().any(|on| named.ids.contains_key(&(*on, slug.clone())));
            if matches!(key, LookupKey::Slug(slug) if !has(slug)) {
                if named.complete {
                    continue;
                }
                return Err(LookupError::NoStore);
            }
            let known = asked.iter().find(|(of, _)| *of == key).map(|(_, found)| found.clone());
            let found = match known {
                Some(found) => found,
                None => {
                    let found = self.find_on(domain, key).await?;
                    asked.push((key, found.clone()));
                    found
                }
            };
            let Some(link) = found.filter(|link| means(name, link)) else { continue };
            if !self.is_known_code_of_another(name, &link).await? {
                return Ok(Some((name, link)));
            }
        }
        Ok(None)
    }

    /// Returns whether a name, in the letters of the request, is a code that people may know, and
    /// not one of this link. The code of a link that leaves it to the next one is free.
    async fn is_known_code_of_another(&self, name: &OtherName<'_>, link: &Link) -> Result<bool, LookupError> {
        let Some(text) = &name.lowered_from else { return Ok(false) };
        let Some(number) = self.id_of(text).filter(|number| *number != link.id) else { return Ok(false) };
        match self.read_fresh(number).await? {
            Some(other) => Ok(!other.slug().is_some_and(|slug| other.leaves_code(slug))),
            None => self.slugs.is_reserved(number).await,
        }
    }

    async fn find_default(&self, wanted: &LookupKey) -> Found {
        let found = match wanted {
            LookupKey::Code(code) => self.find_code_on_default(self.mint.as_minted(code)).await?,
            LookupKey::Slug(slug) => self.find_slug(&(DomainId::DEFAULT, slug.clone())).await?,
        };
        Ok(found.filter(|link| link.domain().is_default()))
    }

    /// Returns the link of a code, on any domain. The code is spelled as it is minted. A link that
    /// is elsewhere or has another name is read again from the primary: since it was cached, or
    /// read for another request or from a replica, it may have come back to its code. In place of a
    /// deleted link that was picked, the next link that was picked under its code is returned, if
    /// there is one. A deleted link is not cached; its successor is.
    async fn find_code_on_default(&self, code: Code) -> Found {
        if let Some(place) = self.place_of_next(code)
            && let Some(next) = self.find_slug(&place).await?
        {
            return Ok(Some(next));
        }
        let found = match self.find(code).await? {
            Some(link) if !link.is_named_by_id() && self.has_rule(SafetyRule::Moved) => {
                self.ask(link.id, None, STALE_DEADLINE).await?
            }
            found => found,
        };
        let found = found.filter(|link| !link.is_renamed());
        let left = found.as_ref().filter(|link| link.is_deleted() && link.is_named_by_id());
        let Some(slug) = left.and_then(|link| link.slug()) else { return Ok(found) };
        self.slugs.has_asked_code.store(true, Ordering::Relaxed);
        Ok(self.find_slug(&(DomainId::DEFAULT, slug.clone())).await?.or(found))
    }

    /// Returns the slug of the next link under a code, if that link is cached in place of the
    /// code's own.
    pub(super) fn place_of_next(&self, code: Code) -> Option<SlugOnDomain> {
        if !self.slugs.has_asked_code.load(Ordering::Relaxed) || self.cache.contains_key(&Name::Code(code)) {
            return None;
        }
        let place = (DomainId::DEFAULT, LookupKey::Code(code).slug()?);
        self.slugs.ids.contains_key(&place).then_some(place)
    }

    async fn find_slug(&self, place: &SlugOnDomain) -> Found {
        if let Some(id) = self.slugs.ids.get(place).await {
            let name = Name::of(&self.mint, id);
            let known = self.cache.get(&name);
            let found = match self.believed(known.as_ref()) {
                Some(link) => Some(link),
                None => self.read(id, name, known).await?,
            };
            if self.has(place, found.as_deref()).await? {
                return Ok(found);
            }
            self.slugs.ids.invalidate(place).await;
        }
        let Some(id) = self.slugs.find(place).await? else { return Ok(None) };
        let name = Name::of(&self.mint, id);
        let found = self.read(id, name, self.cache.get(&name)).await?;
        if self.has(place, found.as_deref()).await? {
            return Ok(found);
        }
        // The cached id may be older than the link. The cache may also hold, under that id, a link
        // of a lost history of the database. A link that has moved is neither, and stays cached.
        self.slugs.ids.invalidate(place).await;
        let fresh = match self.slugs.ask_anew(place).await? {
            Some(id) => self.read_fresh(id).await?,
            None => None,
        };
        if fresh != found {
            self.cache.invalidate(&name);
        }
        if self.has(place, fresh.as_deref()).await? { Ok(fresh) } else { Ok(None) }
    }

    /// Returns whether the link found by a slug still has it: the link is not deleted, or it is
    /// blocked and still holds its slug.
    async fn has(&self, place: &SlugOnDomain, link: Option<&Link>) -> Result<bool, LookupError> {
        let (domain, slug) = place;
        let is_its = |link: &&Link| {
            link.domain() == *domain && self.name_of(link).is_some_and(|name| slug.is_same(&name))
        };
        let Some(link) = link.filter(is_its) else { return Ok(false) };
        if !link.is_deleted() {
            return Ok(true);
        }
        let version = link.details.as_ref().map_or(0, |details| details.version);
        Ok(link.is_blocked() && self.slugs.is_held(place, link.id, version).await?)
    }

    /// Returns the link with this name, a code or a slug, on exactly this domain.
    pub async fn find_named(&self, domain: DomainId, name: &str) -> Found {
        match self.key_of_name(name) {
            None => Ok(None),
            Some(wanted) if domain.is_default() => self.find_default(&wanted).await,
            Some(wanted) => self.find_own(domain, &wanted).await,
        }
    }
}
