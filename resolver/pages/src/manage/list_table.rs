//! The links of a list as a table to download, which `resolver import` reads too. Its query is that
//! of the list, and it has the links of all pages, up to [`PER_PAGE_MAX`] of them.

use std::sync::Arc;

use api::{Api, streamed::Sender};
use app::{AppError, FieldErrors, list_links::ListedLinks};
use codes::LinkId;
use links::{PER_PAGE_MAX, Record};
use transfer::{Row, write_csv, write_csv_head};
use web::{Answer, BrokenOff};

use super::list::read_query;
use crate::{context::Context, error::PageError, table};

pub(super) const PATH: &str = "/manage/links.csv";

pub(super) async fn download(context: &Context<'_>) -> Result<Answer, PageError> {
    // The table does not say that a link is deleted, so it has none of the trash.
    let query = context.query.without(&["deleted", "page"]);
    let mut wrong = FieldErrors::default();
    let mut list = read_query(context, &query, &mut wrong);
    (list.filter.per_page, list.filter.count_max) = (Some(PER_PAGE_MAX), Some(PER_PAGE_MAX + 1));
    let listed = context.links.list_links(list, wrong, context.by).await?;
    let api = &context.pages.api;
    let answer = api::streamed::stream(api, context.by, table::CSV, |to| write(listed, to));
    Ok(table::to_download("links", answer.map_err(AppError::from)?))
}

/// Writes the table a few links at a time, while the client reads it.
async fn write(listed: ListedLinks, to: Sender) -> Result<(), BrokenOff> {
    let (api, by) = (Arc::clone(&to.api), to.by.clone());
    let mut text = Vec::new();
    write_csv_head(&mut text).map_err(|_| BrokenOff)?;
    for piece in links::pieces(&listed.entries) {
        let piece = api.links.weigh(piece, &by).await.map_err(|_| BrokenOff)?;
        for part in links::pieces(&piece) {
            let records = api.links.read_piece(&listed, part, &by).await.map_err(|_| BrokenOff)?;
            let ids: Vec<LinkId> = records.iter().map(|record| record.link.id).collect();
            let visits = api.links.visit_totals(&ids, &by).await.map_err(|_| BrokenOff)?;
            for record in records {
                let count = visits.get(&record.link.id).map_or(0, |visits| visits.total);
                write_csv(&row(&api, record, count), &mut text).map_err(|_| BrokenOff)?;
            }
            to.send(std::mem::take(&mut text)).await?;
        }
    }
    // Without links the table has its head alone.
    if text.is_empty() { Ok(()) } else { to.send(text).await }
}

fn row(api: &Api, Record { link, tags }: Record, visits: u64) -> Row {
    let (code, domain) = (api.lookup.name_of(&link), api.domain_cache.shown_name(link.domain()));
    let details = link.details.map(|details| *details).unwrap_or_default();
    Row {
        code,
        domain,
        long_url: link.long_url.as_str().to_owned(),
        title: link.title,
        tags: tags.iter().map(ToString::to_string).collect(),
        created_at: Some(link.created_at),
        crawlable: Some(link.crawlable),
        forward_query: Some(link.forward_query),
        visits: Some(visits),
        enabled: Some(!details.disabled),
        ..Row::of_details(details)
    }
}
