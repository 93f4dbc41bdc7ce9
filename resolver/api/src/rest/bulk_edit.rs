//! `POST /rest/v3/short-urls/bulk-edit`: edits or deletes many links, one page per call.
//! An addition to Shlink's API.

use app::{AppError, Field, change_many::ChangeMany, find_link::LinkName};
use dto::{BulkEdited, BulkFailure, Flag, LinkNamed, Number};
use limits::{Account, budgets::BULK_CALLS};
use links::{BULK_NAMES_MAX, BULK_PAGE_MAX};

use super::{
    link_fields::{link_name, read_edit_fields},
    list,
    prelude::*,
    read::{UNKNOWN, read_object},
};
use crate::Api;

/// Maximum length of a body: the maximum number of names, each of ordinary length.
const BODY_BYTES: usize = 512 * 1024;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(Method::POST, "/rest/v3/short-urls/bulk-edit", keyed!(Scope::Edit, edit_many))
            .document("changeShortUrls", Topic::Links, "Edit or delete many links")
            .addition()
            .body_bytes(BODY_BYTES)
            .text(format!(
                "Selects the links that match a filter, or up to {BULK_NAMES_MAX} links by name. Filters and dry runs also require \
                 the scope `read`. With a key that sees only some links, a filter by the name of another key matches none. A call \
                 changes one page of at most {BULK_PAGE_MAX} links, in the order of their creation within a keyspace. Call again with \
                 `after` set to `next` until that is null; a page may be shorter than `limit`, or empty. Each link is checked \
                 and changed as by a separate call: it gets a new version, and a history entry that can be undone. A link that already \
                 has the requested values is not changed, so a call can be repeated. A page is changed in several transactions, so \
                 some links may have been changed if the call fails. At most {} of these calls and bulk creates per key run at a time.",
                BULK_CALLS.1
            ))
            .body::<dto::BulkEdit>()
            .answers::<BulkEdited>("The outcome for the links of the page."),
    ]
}

impl Fields for dto::LinkFilter {
    fn expected(field: &str) -> String {
        match field {
            "tags" | "excludeTags" => "expected an array of strings",
            "tagsMode" | "excludeTagsMode" => "expected any or all",
            "startDate" | "endDate" => "expected a time such as 2026-11-22T10:00:00+00:00, or a date",
            "excludePastValidUntil" | "excludeMaxVisitsReached" => "expected true or false",
            _ => "expected a string",
        }
        .to_owned()
    }

    fn refused(_field: &str) -> String {
        format!("{UNKNOWN}: there are {}", Self::names().join(", "))
    }
}

impl Fields for dto::BulkEdit {
    fn expected(field: &str) -> String {
        match field {
            "filter" => {
                let criteria = dto::LinkFilter::names().join(", ");
                return format!("expected an object with some of {criteria}");
            }
            "shortUrls" => "expected an array of objects with shortCode and domain",
            "changes" => "expected an object with the fields of an edit",
            "addTags" | "removeTags" => "expected an array of strings",
            "after" => "expected the cursor `next` of an earlier page",
            "limit" => "expected a whole number",
            _ => "expected true or false",
        }
        .to_owned()
    }
}

async fn edit_many(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let api = &call.api;
    let _place = api.budgets.bulk_calls.take(Account::Key(by.id.0), 1)?;
    let (body, mut wrong) = call.fields()?;
    let request = request(api, body, &mut wrong);
    let done = api.links.change_many(request, wrong, by).await?;
    let failed = done.failed.into_iter().map(failure).collect();
    let sample = done.sample.iter().filter_map(|record| link_name(api, record)).collect();
    let (matched, changed, unchanged, next) = (done.matched, done.changed, done.unchanged, done.next);
    Ok(json(&BulkEdited { matched, changed, unchanged, failed, sample, next }))
}

fn failure((LinkName { code, domain }, error): (LinkName, AppError)) -> BulkFailure {
    BulkFailure { short_code: code, domain, problem: error.to_string() }
}

fn request(api: &Api, body: dto::BulkEdit, wrong: &mut FieldErrors) -> ChangeMany {
    let filter = body.filter.map(|filter| {
        let (filter, mut of_filter) = read_object::<dto::LinkFilter>(filter);
        let list = list::request(api, filter.into(), &mut of_filter);
        wrong.note_below("filter", of_filter);
        list
    });
    let changes = body.changes.unwrap_or_default();
    // An edit of a single link ignores the field, as Shlink does.
    let is_move = changes.contains_key(Field::Domain.name());
    let (fields, slug, mut of_fields) = read_edit_fields(api, changes);
    if is_move {
        of_fields.add(Field::Domain.name(), "expected none: `POST …/move` moves a link to another domain");
    }
    if slug.is_some() {
        of_fields.add("customSlug", "expected none: each link needs a slug of its own");
    }
    wrong.note_below("changes", of_fields);
    let name = |LinkNamed { short_code, domain }: LinkNamed| LinkName { code: short_code, domain };
    let (Flag(all), Flag(delete), Flag(dry_run)) = (body.all, body.delete, body.dry_run);
    ChangeMany {
        filter,
        all,
        names: body.short_urls.into_iter().map(name).collect(),
        fields,
        add_tags: body.add_tags,
        remove_tags: body.remove_tags,
        delete,
        dry_run,
        after: body.after,
        limit: body.limit.map(|Number(limit)| limit),
    }
}
