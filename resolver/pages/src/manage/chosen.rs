//! Changes of the links that were chosen on a page of the list.
//!
//! 1. Each link is changed by the use case of its own page, so that rights, conflicts and the audit
//!    log are the same. A page has at most a hundred links.
//! 2. A link that cannot be changed does not stop the others. The list then names the links that
//!    were not changed, with the reason, and they stay chosen. If the database does not answer, or
//!    it takes too long, the links that are left are among them.
//! 3. A tag is added to the tags that a link has at this moment: if they change meanwhile, they are
//!    read again.

use std::{fmt, sync::Arc, time::Duration};

use app::{AppError, FieldErrors, LinkFields, edit_link::Target, find_link::LinkName};
use hyper::StatusCode;
use links::{Slug, Tag, api_key::Grant};
use tokio::time::Instant;
use web::Answer;

use super::{
    PATH,
    list::{self, Read},
    paged::address,
};
use crate::{
    Pages,
    answer::{Forms, page, redirect},
    error::{self, PageError},
    form::Form,
    request::PageRequest,
    session::Session,
};

/// The field of a query with the number of links that were changed.
const DONE: &str = "done";
/// Maximum number of links in one change: those of a page.
const CHOSEN_MAX: usize = 100;
/// How long one change may take. The links that are left then are listed.
const WITHIN: Duration = Duration::from_secs(20);
/// How often the tags of a link are read if others change them meanwhile.
const ATTEMPTS: usize = 3;

/// A link among the chosen ones: the value of a field. Domain and name are separated by a space,
/// which neither has; the default domain has no name here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice(pub(super) LinkName);

impl Choice {
    /// Reads the value of a field.
    pub(super) fn parse(value: &str) -> Option<Self> {
        let (domain, code) = value.split_once(' ')?;
        let domain = Some(domain).filter(|domain| !domain.is_empty()).map(str::to_owned);
        // What cannot be the name of a link must not be part of an address either.
        let is_name = Slug::parse(code).is_ok_and(|slug| slug.as_str() == code);
        is_name.then(|| Self(LinkName { code: code.to_owned(), domain }))
    }

    /// Returns the address of the page of the link.
    pub(super) fn address(&self) -> String {
        super::address_of(&self.0.code, self.0.domain.as_deref())
    }

    /// Returns the name of the link.
    pub(super) fn name(&self) -> &str {
        &self.0.code
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
    /// Why nothing was tried.
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

    /// Returns whether a link stays chosen.
    pub(super) fn has(&self, choice: &Choice) -> bool {
        self.failed.iter().any(|(failed, _)| failed == choice)
    }
}

/// What is done with each chosen link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action<'a> {
    Move(&'a str),
    AddTag(&'a str),
    RemoveTag(&'a str),
    Enable(bool),
    Delete,
    Restore,
}

impl<'a> Action<'a> {
    /// Reads the pressed button and its field; the name of the text that asks for a missing value.
    fn read(form: &'a Form) -> Result<Self, &'static str> {
        let to = || form.filled("to").ok_or("chosen-expected-domain");
        let tag = || form.filled("newTag").ok_or("chosen-expected-tag");
        match form.get("do") {
            Some("move") => Ok(Self::Move(to()?)),
            Some("add-tag") => Ok(Self::AddTag(tag()?)),
            Some("remove-tag") => Ok(Self::RemoveTag(tag()?)),
            Some("enable") => Ok(Self::Enable(true)),
            Some("disable") => Ok(Self::Enable(false)),
            Some("delete") => Ok(Self::Delete),
            Some("restore") => Ok(Self::Restore),
            _ => Err("chosen-expected-action"),
        }
    }

    async fn apply(self, pages: &Pages, name: &LinkName, by: &Grant) -> Result<(), AppError> {
        let service = &pages.api.links;
        let target = Target { name: name.clone(), versions: None };
        let none = FieldErrors::default;
        match self {
            Self::Move(domain) => service.move_link(&target, Some(domain), none(), by).await.map(drop),
            Self::AddTag(tag) => set_tag(pages, name, (tag, true), by).await,
            Self::RemoveTag(tag) => set_tag(pages, name, (tag, false), by).await,
            Self::Enable(enabled) => {
                let fields = LinkFields { enabled: Some(Some(enabled)), ..LinkFields::default() };
                service.edit_link(&target, fields, none(), by).await.map(drop)
            }
            Self::Delete => service.delete_link(&target, by).await,
            Self::Restore => service.restore_link(name, by).await.map(drop),
        }
    }
}

/// Adds a tag to a link, or removes it. A link that is as wished already is not changed.
async fn set_tag(
    pages: &Pages,
    name: &LinkName,
    (tag, has_it): (&str, bool),
    by: &Grant,
) -> Result<(), AppError> {
    let service = &pages.api.links;
    for _ in 0..ATTEMPTS {
        let record = service.get_link(name, by).await?;
        let mut tags: Vec<String> = record.tags.iter().map(ToString::to_string).collect();
        let before = tags.len();
        // Tags are stored in lower case with dashes; older ones may be as they were written.
        tags.retain(|has| has != tag && !Tag::parse(tag).is_ok_and(|tag| tag.as_str() == has));
        let had_it = tags.len() < before;
        if had_it == has_it {
            return Ok(());
        }
        tags.extend(has_it.then(|| tag.to_owned()));
        let target = Target { name: name.clone(), versions: Some(vec![record.link.version()]) };
        let fields = LinkFields { tags: Some(Some(tags)), ..LinkFields::default() };
        match service.edit_link(&target, fields, FieldErrors::default(), by).await {
            Err(AppError::Superseded) => {}
            edited => return edited.map(drop),
        }
    }
    Err(AppError::Superseded)
}

/// Changes the chosen links, as the pressed button says.
pub(super) async fn change(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
) -> Result<Answer, PageError> {
    let (form, t) = (&request.form, request.preferences.locale);
    let mut chosen: Vec<Choice> = Vec::new();
    for choice in form.all("link").filter_map(Choice::parse) {
        if chosen.len() < CHOSEN_MAX && !chosen.contains(&choice) {
            chosen.push(choice);
        }
    }
    let action = Action::read(form)
        .and_then(|action| if chosen.is_empty() { Err("chosen-expected-links") } else { Ok(action) });
    let mut done = Done::default();
    let mut status = StatusCode::BAD_REQUEST;
    match action {
        Err(expected) => done.refused = Some(t.text(expected)),
        Ok(action) => {
            let mut count = 0;
            let until = Instant::now() + WITHIN;
            // What keeps one link from being changed may keep all others from it too.
            let mut stopped: Option<String> = None;
            for choice in chosen {
                if let Some(why) = &stopped {
                    done.failed.push((choice, why.clone()));
                    continue;
                }
                match action.apply(pages, &choice.0, &session.grant).await {
                    Ok(()) => count += 1,
                    Err(error) => {
                        let why = error::message(&error, t);
                        let goes_on = !matches!(error, AppError::Unavailable | AppError::TooMuchAtOnce(_));
                        stopped = Some(why.clone()).filter(|_| !goes_on);
                        done.failed.push((choice, why));
                    }
                }
                if stopped.is_none() && Instant::now() > until {
                    stopped = Some(t.text("too-much-text"));
                }
            }
            status = StatusCode::CONFLICT;
            if done.failed.is_empty() {
                let list = address(PATH, &request.query);
                let separator = if list.contains('?') { '&' } else { '?' };
                return Ok(redirect(StatusCode::SEE_OTHER, &format!("{list}{separator}{DONE}={count}")));
            }
            done.count = Some(count);
        }
    }
    (done.to, done.tag) = (typed(form, "to"), typed(form, "newTag"));
    let Read::Page(mut shown) = list::read(pages, request, session).await? else {
        return Ok(redirect(StatusCode::SEE_OTHER, PATH));
    };
    shown.done = done;
    Ok(page(request.renderer, status, Forms::Stay, &*shown))
}

fn typed(form: &Form, name: &str) -> String {
    form.get(name).unwrap_or("").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(code: &str, domain: Option<&str>) -> Choice {
        Choice(LinkName { code: code.to_owned(), domain: domain.map(str::to_owned) })
    }

    #[test]
    fn a_choice_is_read_as_it_was_written() {
        for choice in [choice("aB3", None), choice("a/b", Some("go.example:81"))] {
            assert_eq!(Choice::parse(&choice.to_string()), Some(choice));
        }
        assert_eq!(Choice::parse(" aB3"), Some(choice("aB3", None)));
        let wrong = ["", "aB3", "go.example ", " ../sign-out", " a b"];
        assert_eq!(wrong.map(Choice::parse), [const { None }; 5]);
    }

    #[test]
    fn an_action_needs_its_field() {
        let read = |text: &str| {
            let form = Form::parse(text.as_bytes());
            Action::read(&form).map(|action| format!("{action:?}"))
        };
        assert_eq!(read("do=move&to=a.example").unwrap(), r#"Move("a.example")"#);
        assert_eq!(read("do=move&to=+&newTag=x"), Err("chosen-expected-domain"));
        assert_eq!(read("do=add-tag&newTag=+x+").unwrap(), r#"AddTag("x")"#);
        assert_eq!(read("do=remove-tag"), Err("chosen-expected-tag"));
        assert_eq!(read("do=disable").unwrap(), "Enable(false)");
        assert_eq!(read("do=burn"), Err("chosen-expected-action"));
        assert_eq!(read(""), Err("chosen-expected-action"));
    }
}
