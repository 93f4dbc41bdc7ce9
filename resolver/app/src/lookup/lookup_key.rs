//! The key of a lookup: a code that is mintable here, or any other slug.

use codes::Code;
use links::Slug;

/// The key of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupKey {
    /// A mintable code, whether it was minted or taken as a custom slug.
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
