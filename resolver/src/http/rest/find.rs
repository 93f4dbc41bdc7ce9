//! The link that there is already for a long URL (`findIfExists`), however it was made.
//!
//! The rules are Shlink's: of the fields of the wish those count that are given, the tags all of them or none. Of several links it is the one with
//! the lowest id, which is the oldest of its keyspace. Beyond Shlink's fields, a link with a password is nobody's to be found this way, nor is one with rules, which may lead elsewhere; and one
//! that is disabled or has a status of its own is found by those who ask for that. A key that is limited, or may not read, finds links of its own
//! limits only.

use links::{Details, Draft, Record, api_key::Grant, scope::Scope};

use super::{problem::Problem, tags::visible};
use crate::{
    create::{CodeWish, Wishes},
    http::App,
};

/// Links of one URL that are compared with a wish: each may have hundreds of kilobytes of rules.
const COMPARED_MAX: usize = 32;

/// The link that is wished for, if there is one.
pub(super) async fn find(
    app: &App,
    draft: &Draft,
    wishes: &Wishes,
    by: &Grant,
) -> Result<Option<Record>, Problem> {
    let mut of = visible(by);
    if !by.scopes.allow(Scope::Read) {
        of.created_by = Some(by.id);
    }
    let _turn = app.budgets.turn(by.id).await?;
    let found = app.store.links_of_url(&draft.long_url, &of, COMPARED_MAX).await?;
    let is_wished = |record: &Record| {
        by.may_be_given(&record.link)
            && !record.link.is_blocked()
            && agrees(draft, &wishes.tags, record)
            && has_code(app, &wishes.code, record)
    };
    Ok(found.into_iter().find(is_wished))
}

fn agrees(draft: &Draft, tags: &[links::Tag], Record { link, tags: has }: &Record) -> bool {
    let none = Details::default();
    let (wanted, details) =
        (draft.details.as_deref().unwrap_or(&none), link.details.as_deref().unwrap_or(&none));
    let same_limits = wanted.valid_since.is_none_or(|time| details.valid_since == Some(time))
        && wanted.valid_until.is_none_or(|time| details.valid_until == Some(time))
        && wanted.max_visits.is_none_or(|most| details.max_visits == Some(most));
    let same_place = wanted.domain.is_none_or(|domain| details.domain == Some(domain));
    let same_state =
        wanted.disabled == details.disabled && wanted.status.is_none_or(|_| details.status == wanted.status);
    let same_tags = tags.is_empty() || tags.len() == has.len() && tags.iter().all(|tag| has.contains(tag));
    same_limits
        && same_place
        && same_state
        && same_tags
        && details.password.is_none()
        && details.rules.is_empty()
}

/// Shlink does not ask how long the code is. A keyspace and a prefix are asked for by name.
fn has_code(app: &App, code: &CodeWish, Record { link, .. }: &Record) -> bool {
    match code {
        CodeWish::In(index) => link.id.unpack().is_some_and(|(keyspace, _)| keyspace == *index),
        CodeWish::Digest { prefix, .. } if !prefix.is_empty() => {
            app.lookup.name_of(link).is_some_and(|name| name.starts_with(prefix.as_str()))
        }
        _ => true,
    }
}
