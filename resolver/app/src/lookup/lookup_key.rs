//! What is looked up: a code that could have been minted here, or any other slug.

use codes::Code;
use links::Slug;

use super::Lookup;

/// What a path asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A code that could have been minted here, whether by us or by a person.
    Code(Code),
    /// Anything else that a person could have picked.
    Slug(Slug),
}

impl Wanted {
    /// What a visitor's path asks for.
    #[must_use]
    pub fn of_path(lookup: &Lookup, path: &str) -> Option<Self> {
        let decoded = || {
            let slug = Slug::of_path(path)?;
            Some(Self::code(lookup, slug.as_str()).unwrap_or(Self::Slug(slug)))
        };
        Self::code(lookup, path.get(1..)?).or_else(decoded)
    }

    /// What a person calls a link.
    pub(super) fn named(lookup: &Lookup, name: &str) -> Option<Self> {
        let slug = || Slug::parse(name).ok().filter(|slug| slug.as_str() == name);
        Self::code(lookup, name).or_else(|| slug().map(Self::Slug))
    }

    fn code(lookup: &Lookup, text: &str) -> Option<Self> {
        Code::parse(text).ok().filter(|code| lookup.is_mintable(code)).map(Self::Code)
    }

    /// The same as a slug, which it is on other domains than the default one.
    pub(super) fn slug(&self) -> Option<Slug> {
        match self {
            Self::Code(code) => Slug::parse(code.as_str()).ok(),
            Self::Slug(slug) => Some(slug.clone()),
        }
    }
}
