//! Changes of the links that were chosen on a page of the list.
//!
//! 1. Each link is changed by the use case of its own page, so that rights, conflicts and the audit
//!    log are the same. A page has at most a hundred links.
//! 2. A link that cannot be changed does not stop the others. The list then names the links that
//!    were not changed, with the reason, and they stay chosen. If the database does not answer, or
//!    it takes too long, the links that are left are among them.
//! 3. A tag is added to the tags that a link has at this moment: if they change meanwhile, they are
//!    read again.

use std::time::Duration;

use app::{AppError, FieldErrors, LinkFields, LinkService, edit_link::Target, find_link::LinkName};
use hyper::StatusCode;
use links::{Tag, api_key::Grant};
use tokio::time::Instant;
use web::Answer;

use super::{
    choice::{self, DONE, Done},
    list,
    paged::address,
};
use crate::{
    addresses::{LINKS, with_parameter},
    answer::redirect,
    context::Context,
    error::PageError,
    form::Form,
    messages::message,
};

/// Maximum number of links in one change: those of a page.
const CHOSEN_MAX: usize = 100;
/// How long one change may take. The links that are left then are listed.
const WITHIN: Duration = Duration::from_secs(20);
/// How often the tags of a link are read if others change them meanwhile.
const ATTEMPTS: usize = 3;

/// The change to each chosen link, or to all links of the list (`change_all.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action<'a> {
    Move(&'a str),
    /// Whether the links get the tag or lose it.
    Tag(&'a str, bool),
    Enable(bool),
    Delete,
    Restore,
}

impl<'a> Action<'a> {
    /// Reads the pressed button and its field; the name of the text that asks for a missing value.
    pub(super) fn read(form: &'a Form) -> Result<Self, &'static str> {
        let to = || form.filled("to").ok_or("chosen-expected-domain");
        let tag = || form.filled("newTag").ok_or("chosen-expected-tag");
        match form.get("do") {
            Some("move") => Ok(Self::Move(to()?)),
            Some("add-tag") => Ok(Self::Tag(tag()?, true)),
            Some("remove-tag") => Ok(Self::Tag(tag()?, false)),
            Some("enable") => Ok(Self::Enable(true)),
            Some("disable") => Ok(Self::Enable(false)),
            Some("delete") => Ok(Self::Delete),
            Some("restore") => Ok(Self::Restore),
            _ => Err("chosen-expected-action"),
        }
    }

    async fn apply(self, links: &LinkService, name: &LinkName, by: &Grant) -> Result<(), AppError> {
        let target = Target { name: name.clone(), versions: None };
        let none = FieldErrors::default;
        match self {
            Self::Move(domain) => links.move_link(&target, Some(domain), none(), by).await.map(drop),
            Self::Tag(tag, has_it) => set_tag(links, name, tag, has_it, by).await,
            Self::Enable(enabled) => {
                let fields = LinkFields { enabled: Some(Some(enabled)), ..LinkFields::default() };
                links.edit_link(&target, fields, none(), by).await.map(drop)
            }
            Self::Delete => links.delete_link(&target, by).await,
            Self::Restore => links.restore_link(name, by).await.map(drop),
        }
    }
}

/// Adds a tag to a link, or removes it. A link that already has the requested tags is not changed.
async fn set_tag(
    links: &LinkService,
    name: &LinkName,
    tag: &str,
    has_it: bool,
    by: &Grant,
) -> Result<(), AppError> {
    for _ in 0..ATTEMPTS {
        let record = links.get_link(name, by).await?;
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
        match links.edit_link(&target, fields, FieldErrors::default(), by).await {
            Err(AppError::Superseded) => {}
            edited => return edited.map(drop),
        }
    }
    Err(AppError::Superseded)
}

pub(super) async fn change(context: &Context<'_>) -> Result<Answer, PageError> {
    let form = context.form;
    let mut chosen: Vec<LinkName> = Vec::new();
    for name in form.all("link").filter_map(choice::read) {
        if chosen.len() < CHOSEN_MAX && !chosen.contains(&name) {
            chosen.push(name);
        }
    }
    let action = Action::read(form)
        .and_then(|action| if chosen.is_empty() { Err("chosen-expected-links") } else { Ok(action) });
    let typed = |name: &str| form.value(name).to_owned();
    let (status, done) = match action {
        Err(expected) => {
            (StatusCode::BAD_REQUEST, Done { refused: Some(context.t.text(expected)), ..Done::default() })
        }
        Ok(action) => (StatusCode::CONFLICT, change_each(context, action, chosen).await),
    };
    if let Some(count) = done.count.filter(|_| done.failed.is_empty()) {
        let list = with_parameter(&address(LINKS, context.query), &format!("{DONE}={count}"));
        return Ok(redirect(StatusCode::SEE_OTHER, &list));
    }
    list::answer(context, status, Done { to: typed("to"), tag: typed("newTag"), ..done }, None).await
}

/// Changes one link after the other, until what stopped one would stop the others too.
async fn change_each(context: &Context<'_>, action: Action<'_>, chosen: Vec<LinkName>) -> Done {
    let (mut count, mut failed) = (0, Vec::new());
    let until = Instant::now() + WITHIN;
    let mut stopped: Option<String> = None;
    for name in chosen {
        if let Some(why) = &stopped {
            failed.push((name, why.clone()));
            continue;
        }
        match action.apply(context.links, &name, context.by).await {
            Ok(()) => count += 1,
            Err(error) => {
                let why = message(&error, context.t);
                let stops = matches!(error, AppError::Unavailable | AppError::TooMuchAtOnce(_));
                stopped = stops.then(|| why.clone());
                failed.push((name, why));
            }
        }
        if stopped.is_none() && Instant::now() > until {
            stopped = Some(context.t.text("too-much-text"));
        }
    }
    Done { count: Some(count), failed, ..Done::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_needs_its_field() {
        let read = |text: &str| {
            let form = Form::parse(text.as_bytes());
            Action::read(&form).map(|action| format!("{action:?}"))
        };
        assert_eq!(read("do=move&to=a.example").unwrap(), r#"Move("a.example")"#);
        assert_eq!(read("do=move&to=+&newTag=x"), Err("chosen-expected-domain"));
        assert_eq!(read("do=add-tag&newTag=+x+").unwrap(), r#"Tag("x", true)"#);
        assert_eq!(read("do=remove-tag"), Err("chosen-expected-tag"));
        assert_eq!(read("do=disable").unwrap(), "Enable(false)");
        assert_eq!(read("do=burn"), Err("chosen-expected-action"));
        assert_eq!(read(""), Err("chosen-expected-action"));
    }
}
