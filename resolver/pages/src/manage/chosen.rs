//! Changes of the links that were chosen on a page of the list.
//!
//! 1. Each link is changed by the use case of its own page, so that rights, conflicts and the audit
//!    log are the same. A page has at most a hundred links.
//! 2. A link that cannot be changed does not stop the others. The list then names the links that
//!    were not changed, with the reason, and they stay chosen. If the database does not answer, or
//!    it takes too long, the links that are left are among them.
//! 3. A link is changed at the version that it has at this moment. If others change it meanwhile,
//!    it is read again. So the version that the change makes is known, and an undo is for it alone.
//! 4. The list that the form leads back to offers the undo. Its address has what that needs
//!    (`offer.rs`), so that the list can be loaded again. If there is too much for an address, the
//!    list is the answer to the form.

use std::time::Duration;

use app::{AppError, FieldErrors, LinkFields, edit_link::Target, find_link::LinkName};
use hyper::StatusCode;
use links::{Record, Tag};
use tokio::time::Instant;
use web::Answer;

use super::{
    choice::{Done, UNDO, Undo, UndoKind, chosen, undone},
    list,
    paged::address,
};
use crate::{
    addresses::LINKS, answer::redirect, context::Context, error::PageError, form::Form, messages::message,
};

/// How long one change may take. The links that are left then are listed.
const WITHIN: Duration = Duration::from_secs(20);
/// How often a link is read if others change it meanwhile.
const ATTEMPTS: usize = 3;
/// Maximum length of the list's address, in bytes. Proxies take 8 KiB or more.
const ADDRESS_MAX: usize = 4_000;

/// The change to each chosen link, or to all links of the list (`change_all.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action<'a> {
    Move(&'a str),
    /// Whether the links get the tag or lose it.
    Tag(&'a str, bool),
    Enable(bool),
    Delete,
    Restore,
    /// The undo of one of the others.
    Undo(&'a Undo),
}

/// What an action has done to a link.
enum Outcome {
    /// The link is as it was, because it needed no change.
    Unchanged,
    /// It was changed; with what undoes that, if anything does here.
    Changed(Option<Undo>),
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

    async fn apply(self, context: &Context<'_>, name: &LinkName) -> Result<Outcome, AppError> {
        for _ in 0..ATTEMPTS {
            match self.try_once(context, name).await {
                Err(AppError::Superseded) if !matches!(self, Self::Undo(_)) => {}
                applied => return applied,
            }
        }
        Err(AppError::Superseded)
    }

    async fn try_once(self, context: &Context<'_>, name: &LinkName) -> Result<Outcome, AppError> {
        let (links, by) = (context.links, context.by);
        match self {
            Self::Move(domain) => {
                let target = at(name, None);
                let record = links.move_link(&target, Some(domain), FieldErrors::default(), by).await?;
                let (name_now, version) = (context.pages.name_of(&record.link), record.link.version());
                if name_now == *name {
                    return Ok(Outcome::Unchanged);
                }
                let kind = UndoKind::Move(name.domain.clone());
                Ok(Outcome::Changed(Some(Undo { name: name_now, version, kind })))
            }
            Self::Tag(tag, has_it) => {
                let record = links.get_link(name, by).await?;
                let Some(tags) = with_tag(&record, tag, has_it) else { return Ok(Outcome::Unchanged) };
                let fields = LinkFields { tags: Some(Some(tags)), ..LinkFields::default() };
                edit(context, name, Some(record.link.version()), fields).await
            }
            Self::Enable(enabled) => {
                let fields = LinkFields { enabled: Some(Some(enabled)), ..LinkFields::default() };
                edit(context, name, version(context, name).await, fields).await
            }
            Self::Delete => {
                let version = version(context, name).await;
                links.delete_link(&at(name, version), by).await?;
                // A deletion is a version of its own.
                let (name, kind) = (name.clone(), UndoKind::Restore);
                Ok(Outcome::Changed(version.map(|version| Undo { name, version: version + 1, kind })))
            }
            Self::Restore => links.restore_link(&at(name, None), by).await.map(|_| Outcome::Changed(None)),
            Self::Undo(Undo { name, version, kind }) => {
                undo(context, &at(name, Some(*version)), kind).await.map(|()| Outcome::Changed(None))
            }
        }
    }
}

fn at(name: &LinkName, version: Option<u64>) -> Target {
    Target { name: name.clone(), versions: version.map(|version| vec![version]) }
}

/// Returns the present version of a link. If it is not found, the use case says why.
async fn version(context: &Context<'_>, name: &LinkName) -> Option<u64> {
    context.links.find_link(name, context.by).await.ok().map(|link| link.version())
}

/// Edits a link that is at this version.
async fn edit(
    context: &Context<'_>,
    name: &LinkName,
    before: Option<u64>,
    fields: LinkFields,
) -> Result<Outcome, AppError> {
    let target = at(name, before);
    let edited = context.links.edit_link(&target, fields, FieldErrors::default(), context.by).await?;
    let version = edited.link.version();
    // An edit that changes nothing makes no version.
    if before == Some(version) {
        return Ok(Outcome::Unchanged);
    }
    let undo = before.map(|_| Undo { name: name.clone(), version, kind: UndoKind::Edit });
    Ok(Outcome::Changed(undo))
}

/// Undoes the change that has made the target's version.
async fn undo(context: &Context<'_>, target: &Target, kind: &UndoKind) -> Result<(), AppError> {
    let (links, by, none) = (context.links, context.by, FieldErrors::default());
    match kind {
        // At this version, the last edit is the one that made it.
        UndoKind::Edit => links.undo_edit(target, None, none, by).await.map(drop),
        UndoKind::Move(from) => {
            let default = context.pages.api.domain_cache.default_name();
            let from = from.as_deref().unwrap_or(default);
            links.move_link(target, Some(from), none, by).await.map(drop)
        }
        UndoKind::Restore => links.restore_link(target, by).await.map(drop),
    }
}

/// Returns the tags of a link with another one, or without it; `None` if they are so already.
fn with_tag(record: &Record, tag: &str, has_it: bool) -> Option<Vec<String>> {
    let mut tags: Vec<String> = record.tags.iter().map(ToString::to_string).collect();
    let before = tags.len();
    // Tags are stored in lower case with dashes; older ones may be as they were written.
    tags.retain(|has| has != tag && !Tag::parse(tag).is_ok_and(|tag| tag.as_str() == has));
    let had_it = tags.len() < before;
    tags.extend(has_it.then(|| tag.to_owned()));
    (had_it != has_it).then_some(tags)
}

pub(super) async fn change(context: &Context<'_>) -> Result<Answer, PageError> {
    let form = context.form;
    let (is_undo, undone) = (form.get("do") == Some(UNDO), undone(form));
    let changes: Result<Vec<(LinkName, Action<'_>)>, &str> = if is_undo {
        Ok(undone.iter().map(|undo| (undo.name.clone(), Action::Undo(undo))).collect())
    } else {
        Action::read(form).map(|action| chosen(form).into_iter().map(|name| (name, action)).collect())
    };
    let changes = changes.and_then(|all| if all.is_empty() { Err("chosen-expected-links") } else { Ok(all) });
    let (status, done) = match changes {
        Err(expected) => {
            (StatusCode::BAD_REQUEST, Done { refused: Some(context.t.text(expected)), ..Done::default() })
        }
        Ok(changes) => (StatusCode::CONFLICT, Done { is_undo, ..change_each(context, changes).await }),
    };
    if done.refused.is_none() && done.failed.is_empty() {
        let list = done.address(context, &address(LINKS, context.query));
        if list.len() <= ADDRESS_MAX {
            return Ok(redirect(StatusCode::SEE_OTHER, &list));
        }
        // The page of the list may be gone with its links. There is always a first one.
        let query = context.query.without(&["page"]);
        return list::answer(&Context { query: &query, ..*context }, StatusCode::OK, done, None).await;
    }
    let typed = |name: &str| form.value(name).to_owned();
    list::answer(context, status, Done { to: typed("to"), tag: typed("newTag"), ..done }, None).await
}

/// Changes one link after the other, until what stopped one would stop the others too.
async fn change_each(context: &Context<'_>, changes: Vec<(LinkName, Action<'_>)>) -> Done {
    let mut done = Done::default();
    let until = Instant::now() + WITHIN;
    let mut stopped: Option<String> = None;
    for (name, action) in changes {
        if let Some(why) = &stopped {
            done.failed.push((name, why.clone()));
            continue;
        }
        match action.apply(context, &name).await {
            Ok(Outcome::Unchanged) => done.unchanged += 1,
            Ok(Outcome::Changed(undone_by)) => {
                done.changed += 1;
                done.undo.extend(undone_by);
            }
            Err(error) => {
                let why = message(&error, context.t);
                let stops = matches!(error, AppError::Unavailable | AppError::TooMuchAtOnce(_));
                stopped = stops.then(|| why.clone());
                done.failed.push((name, why));
            }
        }
        if stopped.is_none() && Instant::now() > until {
            stopped = Some(context.t.text("too-much-text"));
        }
    }
    done
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
