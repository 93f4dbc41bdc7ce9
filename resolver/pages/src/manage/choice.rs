//! The links that were chosen on a page of the list, what became of the change of them, and what
//! takes it back.

use app::find_link::LinkName;
use links::Slug;

use super::offer::{offered, offering};
use crate::{addresses::LINKS, context::Context, form::Form, locale::Locale};

/// Maximum number of links in one change: those of a page.
const CHOSEN_MAX: usize = 100;
/// The fields of a query with the numbers of links that were changed, and that needed no change.
const CHANGED: &str = "done";
const UNCHANGED: &str = "unchanged";
/// The field of a query that says that the change was an undo.
const UNDONE: &str = "undone";
/// The field of a query and of a form with a change that can be undone, one for each link; also the
/// button of that form.
pub(super) const UNDO: &str = "undo";
/// The field of a query with a link that its page has deleted.
pub(super) const GONE: &str = "gone";

/// Returns the value of a field that chooses a link. Domain and name are separated by a space,
/// which neither has; the default domain has no name here.
pub(super) fn link_field(name: &LinkName) -> String {
    format!("{} {}", name.domain.as_deref().unwrap_or(""), name.code)
}

pub(super) fn parse_link_field(value: &str) -> Option<LinkName> {
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
    read_all(form, "link", parse_link_field)
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
    pub(super) kind: UndoKind,
}

/// How a change is undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UndoKind {
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
        let written = format!("{} {}", self.version, link_field(&self.name));
        match &self.kind {
            UndoKind::Edit => format!("{written} edit"),
            UndoKind::Move(from) => format!("{written} move {}", from.as_deref().unwrap_or("")),
            UndoKind::Restore => format!("{written} restore"),
        }
    }

    fn read(value: &str) -> Option<Self> {
        let (version, rest) = value.split_once(' ')?;
        let (domain, rest) = rest.split_once(' ')?;
        let (code, kind) = rest.split_once(' ')?;
        let kind = match kind.split_once(' ') {
            None if kind == "edit" => UndoKind::Edit,
            None if kind == "restore" => UndoKind::Restore,
            Some(("move", from)) => {
                UndoKind::Move(Some(from).filter(|from| !from.is_empty()).map(str::to_owned))
            }
            _ => return None,
        };
        let name = parse_link_field(&format!("{domain} {code}"))?;
        Some(Self { name, version: version.parse().ok()?, kind })
    }
}

/// The result of the last change of chosen links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    /// The number of links that were changed.
    pub(super) changed: u64,
    /// The number of links that needed no change.
    pub(super) unchanged: u64,
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
        let fields = offered(context, LINKS, &[CHANGED, UNCHANGED, UNDONE, UNDO]);
        Self::read(&fields.unwrap_or_default())
    }

    /// Returns the address of a list, with what [`Done::of`] reads.
    pub(super) fn address(&self, context: &Context<'_>, list: &str) -> String {
        offering(context, list, LINKS, self.written())
    }

    fn read(fields: &Form) -> Self {
        let count =
            |name: &str| -> u64 { fields.get(name).and_then(|count| count.parse().ok()).unwrap_or_default() };
        let (changed, unchanged) = (count(CHANGED), count(UNCHANGED));
        Self { changed, unchanged, undo: undone(fields), is_undo: fields.is_on(UNDONE), ..Self::default() }
    }

    fn written(&self) -> Form {
        let mut fields = vec![
            (CHANGED.to_owned(), self.changed.to_string()),
            (UNCHANGED.to_owned(), self.unchanged.to_string()),
        ];
        fields.extend(self.is_undo.then(|| (UNDONE.to_owned(), "on".to_owned())));
        fields.extend(self.undo.iter().map(|undo| (UNDO.to_owned(), undo.written())));
        Form(fields)
    }

    /// Says how many links were changed; `None` if there was none, or all of them failed.
    pub(super) fn text(&self, t: &Locale) -> Option<String> {
        let changed = if self.is_undo { "chosen-undone" } else { "chosen-done" };
        let texts = [(self.changed, changed), (self.unchanged, "chosen-unchanged")];
        let texts = texts.iter().filter(|(count, _)| *count > 0).map(|(count, id)| t.count(id, count));
        Some(texts.collect::<Vec<_>>().join(" ")).filter(|text| !text.is_empty())
    }

    /// Returns whether a link stays chosen, because it was not changed.
    pub(super) fn stays_chosen(&self, name: &LinkName) -> bool {
        !self.is_undo && self.failed.iter().any(|(failed, _)| failed == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locale::english;

    fn name(code: &str, domain: Option<&str>) -> LinkName {
        LinkName { code: code.to_owned(), domain: domain.map(str::to_owned) }
    }

    #[test]
    fn a_choice_is_read_as_it_was_written() {
        for name in [name("aB3", None), name("a/b", Some("go.example:81"))] {
            assert_eq!(parse_link_field(&link_field(&name)), Some(name));
        }
        assert_eq!(parse_link_field(" aB3"), Some(name("aB3", None)));
        let wrong = ["", "aB3", "go.example ", " ../sign-out", " a b"];
        assert_eq!(wrong.map(parse_link_field), [const { None }; 5]);
    }

    #[test]
    fn a_result_is_read_as_it_was_written() {
        let undo = |name, version, kind| Undo { name, version, kind };
        let undo = vec![
            undo(name("aB3", None), 7, UndoKind::Edit),
            undo(name("a/b", Some("go.example:81")), u64::MAX, UndoKind::Restore),
            undo(name("aB3", Some("go.example")), 1, UndoKind::Move(None)),
            undo(name("aB3", None), 2, UndoKind::Move(Some("go.example".to_owned()))),
        ];
        for done in [
            Done { changed: 4, unchanged: 2, undo, ..Done::default() },
            Done { changed: 1, is_undo: true, ..Done::default() },
        ] {
            assert_eq!(Done::read(&Form::parse(done.written().query().as_bytes())), done);
        }
        let wrong =
            ["", "7  aB3", "7 aB3 edit", "-1  aB3 edit", "7  aB3 burn", "7  aB3 move", "7  aB3 edit x"];
        assert_eq!(wrong.map(Undo::read), [const { None }; 7]);
    }

    #[test]
    fn a_result_says_what_needed_no_change_and_what_an_undo_was() {
        for (changed, unchanged, is_undo, expected) in [
            (2, 0, false, Some("Changed 2 links.")),
            (1, 1, false, Some("Changed 1 link. 1 link needed no change.")),
            (0, 2, false, Some("2 links needed no change.")),
            (3, 0, true, Some("Undid the change of 3 links.")),
            (0, 0, true, None),
        ] {
            let done = Done { changed, unchanged, is_undo, ..Done::default() };
            assert_eq!(done.text(english()).as_deref(), expected);
        }
    }

    #[test]
    fn a_form_chooses_each_link_once_and_as_many_as_a_page_has() {
        let fields: String = (0..=CHOSEN_MAX).map(|link| format!("&link=+l{link}")).collect();
        let chosen = chosen(&Form::parse(format!("link=+l0{fields}").as_bytes()));
        assert_eq!(chosen.len(), CHOSEN_MAX);
        assert_eq!(chosen[1], name("l1", None));
    }
}
