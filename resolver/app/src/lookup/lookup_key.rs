//! The key of a lookup: a code that is mintable here, or any other slug.

use codes::Code;
use links::Slug;

use super::Lookup;

/// The key of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupKey {
    /// A mintable code, whether it was minted or taken as a custom slug.
    Code(Code),
    /// Any other valid slug.
    Slug(Slug),
}

impl LookupKey {
    /// Parses the path of a visitor's request; `None` if no link can have it.
    #[must_use]
    pub fn of_path(lookup: &Lookup, path: &str) -> Option<Self> {
        let decoded = || {
            let slug = Slug::of_path(path)?;
            Some(Self::code(lookup, slug.as_str()).unwrap_or(Self::Slug(slug)))
        };
        Self::code(lookup, path.get(1..)?).or_else(decoded)
    }

    /// Parses the name of a link in a call of the API: a code or a slug, exactly as stored.
    pub(super) fn named(lookup: &Lookup, name: &str) -> Option<Self> {
        let slug = || Slug::parse(name).ok().filter(|slug| slug.as_str() == name);
        Self::code(lookup, name).or_else(|| slug().map(Self::Slug))
    }

    fn code(lookup: &Lookup, text: &str) -> Option<Self> {
        Code::parse(text).ok().filter(|code| lookup.is_mintable(code)).map(Self::Code)
    }

    /// Returns the key as a slug, which it is on every domain but the default one.
    pub(super) fn slug(&self) -> Option<Slug> {
        match self {
            Self::Code(code) => Slug::parse(code.as_str()).ok(),
            Self::Slug(slug) => Some(slug.clone()),
        }
    }
}
