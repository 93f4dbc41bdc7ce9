//! The links that were chosen on a page of the list, and what became of the change of them.

use app::find_link::LinkName;
use links::Slug;

use crate::form::Form;

/// The field of a query with the number of links that were changed.
pub(super) const DONE: &str = "done";

/// Returns the value of a field that chooses a link. Domain and name are separated by a space,
/// which neither has; the default domain has no name here.
pub(super) fn written(name: &LinkName) -> String {
    format!("{} {}", name.domain.as_deref().unwrap_or(""), name.code)
}

pub(super) fn read(value: &str) -> Option<LinkName> {
    let (domain, code) = value.split_once(' ')?;
    let domain = Some(domain).filter(|domain| !domain.is_empty()).map(str::to_owned);
    // A code that cannot be the name of a link must not be part of an address either.
    let is_name = Slug::parse(code).is_ok_and(|slug| slug.as_str() == code);
    is_name.then(|| LinkName { code: code.to_owned(), domain })
}

/// The result of the last change of chosen links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    /// The number of links that were changed; `None` without a change.
    pub(super) count: Option<u64>,
    pub(super) refused: Option<String>,
    pub(super) failed: Vec<(LinkName, String)>,
    /// The domain and the tag that were typed.
    pub(super) to: String,
    pub(super) tag: String,
}

impl Done {
    /// Reads what the query of a list says of the change before.
    pub(super) fn of(query: &Form) -> Self {
        Self { count: query.get(DONE).and_then(|count| count.parse().ok()), ..Self::default() }
    }

    pub(super) fn has(&self, name: &LinkName) -> bool {
        self.failed.iter().any(|(failed, _)| failed == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_read_as_it_was_written() {
        let name = |code: &str, domain: Option<&str>| LinkName {
            code: code.to_owned(),
            domain: domain.map(str::to_owned),
        };
        for name in [name("aB3", None), name("a/b", Some("go.example:81"))] {
            assert_eq!(read(&written(&name)), Some(name));
        }
        assert_eq!(read(" aB3"), Some(name("aB3", None)));
        let wrong = ["", "aB3", "go.example ", " ../sign-out", " a b"];
        assert_eq!(wrong.map(read), [const { None }; 5]);
    }
}
