//! The links that were chosen on a page of the list, and what became of the change of them.

use std::fmt;

use app::find_link::LinkName;
use links::Slug;

use crate::{addresses, form::Form};

/// The field of a query with the number of links that were changed.
pub(super) const DONE: &str = "done";

/// A link among the chosen ones: the value of a field. Domain and name are separated by a space,
/// which neither has; the default domain has no name here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice(pub(super) LinkName);

impl Choice {
    pub(super) fn parse(value: &str) -> Option<Self> {
        let (domain, code) = value.split_once(' ')?;
        let domain = Some(domain).filter(|domain| !domain.is_empty()).map(str::to_owned);
        // What cannot be the name of a link must not be part of an address either.
        let is_name = Slug::parse(code).is_ok_and(|slug| slug.as_str() == code);
        is_name.then(|| Self(LinkName { code: code.to_owned(), domain }))
    }

    pub(super) fn address(&self) -> String {
        addresses::link_page(&self.0.code, self.0.domain.as_deref())
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0.domain.as_deref().unwrap_or(""), self.0.code)
    }
}

/// What became of the last change of chosen links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    /// The number of links that were changed; `None` without a change.
    pub(super) count: Option<u64>,
    pub(super) refused: Option<String>,
    /// The links that were not changed, with the reason.
    pub(super) failed: Vec<(Choice, String)>,
    /// The domain and the tag that were typed.
    pub(super) to: String,
    pub(super) tag: String,
}

impl Done {
    /// Reads what the query of a list says of the change before.
    pub(super) fn of(query: &Form) -> Self {
        Self { count: query.get(DONE).and_then(|count| count.parse().ok()), ..Self::default() }
    }

    pub(super) fn has(&self, choice: &Choice) -> bool {
        self.failed.iter().any(|(failed, _)| failed == choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_read_as_it_was_written() {
        let choice = |code: &str, domain: Option<&str>| {
            Choice(LinkName { code: code.to_owned(), domain: domain.map(str::to_owned) })
        };
        for choice in [choice("aB3", None), choice("a/b", Some("go.example:81"))] {
            assert_eq!(Choice::parse(&choice.to_string()), Some(choice));
        }
        assert_eq!(Choice::parse(" aB3"), Some(choice("aB3", None)));
        let wrong = ["", "aB3", "go.example ", " ../sign-out", " a b"];
        assert_eq!(wrong.map(Choice::parse), [const { None }; 5]);
    }
}
