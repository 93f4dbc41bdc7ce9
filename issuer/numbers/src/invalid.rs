//! Refusals of values, on which nothing branches.

use std::borrow::Cow;

/// Why a value was refused: what was expected, for people.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(Cow<'static, str>);

impl Invalid {
    /// Makes a refusal of a text that is the same for every value.
    pub const fn because(reason: &'static str) -> Self {
        Self(Cow::Borrowed(reason))
    }
}

impl From<String> for Invalid {
    fn from(reason: String) -> Self {
        Self(reason.into())
    }
}
