//! The links that were chosen on a page of the list, what became of the change of them, and what
//! takes it back.

use app::find_link::LinkName;
use links::Slug;

use super::offer::{offered, offering};
use crate::{addresses::LINKS, context::Context, form::Form};

/// Maximum number of links in one change: those of a page.
const CHOSEN_MAX: usize = 100;
/// The field of a query with the number of links that were changed.
const DONE: &str = "done";
/// The field of a query and of a form with a change that can be undone, one for each link; also the
/// button of that form.
pub(super) const UNDO: &str = "undo";
/// The field of a query with a link that its page has deleted.
pub(super) const GONE: &str = "gone";

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

/// Reads the values of a field, each once.
fn read_all<T: PartialEq>(form: &Form, field: &str, read: impl Fn(&str) -> Option<T>) -> Vec<T> {
    let mut all = Vec::new();
    for value in form.all(field).filter_map(read) {
        if all.len() < CHOSEN_MAX && !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

/// Returns the links that a form chooses.
pub(super) fn chosen(form: &Form) -> Vec<LinkName> {
    read_all(form, "link", read)
}

/// Returns the changes that a form undoes, or that a query offers to undo.
pub(super) fn undone(form: &Form) -> Vec<Undo> {
    read_all(form, UNDO, Undo::read)
}

/// What undoes the change of a chosen link.
///
/// The next link of a name continues the versions of the one before, so name and version are those
/// of one link, as the change has left it. Nobody's later change is undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Undo {
    /// The name of the link after the change.
    pub(super) name: LinkName,
    /// The version that the change has made.
    pub(super) version: u64,
    pub(super) way: Way,
}

/// How a change is undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By the entry of the edit in the log.
    Edit,
    /// By a move to the domain where the link was; `None` is the default one.
    Move(Option<String>),
    /// By restoring the link.
    Restore,
}

impl Undo {
    /// Returns the value of a field. Its parts are separated by spaces, which none of them has.
    pub(super) fn written(&self) -> String {
        let written = format!("{} {}", self.version, written(&self.name));
        match &self.way {
            Way::Edit => format!("{written} edit"),
            Way::Move(from) => format!("{written} move {}", from.as_deref().unwrap_or("")),
            Way::Restore => format!("{written} restore"),
        }
    }

    fn read(value: &str) -> Option<Self> {
        let (version, rest) = value.split_once(' ')?;
        let (domain, rest) = rest.split_once(' ')?;
        let (code, way) = rest.split_once(' ')?;
        let way = match way.split_once(' ') {
            None if way == "edit" => Way::Edit,
            None if way == "restore" => Way::Restore,
            Some(("move", from)) => Way::Move(Some(from).filter(|from| !from.is_empty()).map(str::to_owned)),
            _ => return None,
        };
        Some(Self { name: read(&format!("{domain} {code}"))?, version: version.parse().ok()?, way })
    }
}

/// The result of the last change of chosen links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    /// The number of links that were changed; `None` without a change.
    pub(super) count: Option<u64>,
    /// What undoes the change.
    pub(super) undo: Vec<Undo>,
    /// Whether the change was itself an undo.
    pub(super) is_undo: bool,
    pub(super) refused: Option<String>,
    pub(super) failed: Vec<(LinkName, String)>,
    /// The domain and the tag that were typed.
    pub(super) to: String,
    pub(super) tag: String,
}

impl Done {
    /// Reads what the query of a list says of the change before.
    pub(super) fn of(context: &Context<'_>) -> Self {
        Self::read(&offered(context, LINKS, &[DONE, UNDO]).unwrap_or_default())
    }

    /// Returns the address of a list, with what [`Done::of`] reads.
    pub(super) fn address(&self, context: &Context<'_>, list: &str) -> String {
        offering(context, list, LINKS, self.written())
    }

    fn read(fields: &Form) -> Self {
        let count = fields.get(DONE).and_then(|count| count.parse().ok());
        Self { count, undo: undone(fields), ..Self::default() }
    }

    fn written(&self) -> Form {
        let count = self.count.map(|count| (DONE.to_owned(), count.to_string()));
        let undo = self.undo.iter().map(|undo| (UNDO.to_owned(), undo.written()));
        Form(count.into_iter().chain(undo).collect())
    }

    /// Returns whether a link stays chosen, because it was not changed.
    pub(super) fn has(&self, name: &LinkName) -> bool {
        !self.is_undo && self.failed.iter().any(|(failed, _)| failed == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(code: &str, domain: Option<&str>) -> LinkName {
        LinkName { code: code.to_owned(), domain: domain.map(str::to_owned) }
    }

    #[test]
    fn a_choice_is_read_as_it_was_written() {
        for name in [name("aB3", None), name("a/b", Some("go.example:81"))] {
            assert_eq!(read(&written(&name)), Some(name));
        }
        assert_eq!(read(" aB3"), Some(name("aB3", None)));
        let wrong = ["", "aB3", "go.example ", " ../sign-out", " a b"];
        assert_eq!(wrong.map(read), [const { None }; 5]);
    }

    #[test]
    fn a_result_is_read_as_it_was_written() {
        let undo = |name, version, way| Undo { name, version, way };
        let undo = vec![
            undo(name("aB3", None), 7, Way::Edit),
            undo(name("a/b", Some("go.example:81")), u64::MAX, Way::Restore),
            undo(name("aB3", Some("go.example")), 1, Way::Move(None)),
            undo(name("aB3", None), 2, Way::Move(Some("go.example".to_owned()))),
        ];
        let done = Done { count: Some(4), undo, ..Done::default() };
        assert_eq!(Done::read(&Form::parse(done.written().query().as_bytes())), done);
        let wrong =
            ["", "7  aB3", "7 aB3 edit", "-1  aB3 edit", "7  aB3 burn", "7  aB3 move", "7  aB3 edit x"];
        assert_eq!(wrong.map(Undo::read), [const { None }; 7]);
    }

    #[test]
    fn a_form_chooses_each_link_once_and_as_many_as_a_page_has() {
        let fields: String = (0..=CHOSEN_MAX).map(|link| format!("&link=+l{link}")).collect();
        let chosen = chosen(&Form::parse(format!("link=+l0{fields}").as_bytes()));
        assert_eq!(chosen.len(), CHOSEN_MAX);
        assert_eq!(chosen[1], name("l1", None));
    }
}
