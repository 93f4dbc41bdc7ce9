//! `/rest/v3/tags`

use links::Tag;
use store::TagCount;

use super::{
    pagination::{Paging, pagination},
    prelude::*,
    visit_json::summary,
};

const TAGS: &str = "/rest/v3/tags";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, TAGS, keyed!(Scope::Read, list))
            .document("listTags", Topic::Tags, "List tags")
            .query::<dto::TagsQuery>()
            // Of Shlink before version 3, and without a meaning here.
            .accepts(&["withStats"])
            .answers::<dto::TagPage>("Names of tags."),
        Route::new(Method::GET, "/rest/v3/tags/stats", keyed!(Scope::Read, stats))
            .document("tagsStats", Topic::Tags, "List tags with their counts")
            .query::<dto::TagsQuery>()
            .answers::<dto::TagStatsPage>("Tags with the numbers of their links and visits."),
        Route::new(Method::PUT, TAGS, keyed!(Scope::Edit, rename))
            .document("renameTag", Topic::Tags, "Rename a tag")
            .text("The tag has its new name on all links.")
            .body::<dto::TagRenaming>()
            .done("The tag has the new name.")
            .fails(&[Kind::ForbiddenTags, Kind::NoTag, Kind::TagConflict]),
        Route::new(Method::DELETE, TAGS, keyed!(Scope::Delete, delete))
            .document("deleteTags", Topic::Tags, "Delete tags")
            .text("The tags are removed from all links. Tags that do not exist are no error.")
            .query::<dto::TagsDeletionQuery>()
            .done("None of the tags exists any more.")
            .fails(&[Kind::ForbiddenTags]),
    ]
}

impl Fields for dto::TagsQuery {}
impl Fields for dto::TagsDeletionQuery {}
impl Fields for dto::TagRenaming {}

async fn page(call: &Call, by: &Grant) -> Result<(Vec<TagCount>, dto::Pagination), Problem> {
    let (query, mut wrong): (dto::TagsQuery, FieldErrors) = call.query();
    let paging = Paging::read(query.page.as_deref(), query.items_per_page.as_deref(), &mut wrong);
    wrong.finish()?;
    let (search, order_by) = (query.search_term.as_deref(), query.order_by.as_deref());
    let tags = call.api.links.tags(search, order_by, by).await?;
    let total = tags.len() as u64;
    let tags = paging.of(tags);
    let pagination = pagination(paging, tags.len(), total);
    Ok((tags, pagination))
}

async fn list(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (tags, pagination) = page(call, by).await?;
    let data = tags.iter().map(|tag| tag.tag.as_str()).collect();
    Ok(json(&dto::TagPage { tags: dto::Page { data, pagination } }))
}

async fn stats(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (tags, pagination) = page(call, by).await?;
    let names: Vec<Tag> = tags.iter().map(|tag| tag.tag.clone()).collect();
    let visits = call.api.links.tag_visit_totals(&names, by).await?;
    let stats = tags.iter().map(|tag| dto::TagStats {
        tag: tag.tag.as_str(),
        short_urls_count: tag.links,
        visits_summary: summary(visits.get(&tag.tag).copied().unwrap_or_default()),
    });
    let data = stats.collect();
    Ok(json(&dto::TagStatsPage { tags: dto::Page { data, pagination } }))
}

async fn rename(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (dto::TagRenaming { old_name, new_name }, wrong) = call.fields()?;
    call.api.links.rename_tag(old_name.as_deref(), new_name.as_deref(), wrong, by).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

async fn delete(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (dto::TagsDeletionQuery { tags }, _) = call.query();
    call.api.links.delete_tags(tags.iter().map(String::as_str), by).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}
