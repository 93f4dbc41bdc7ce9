//! Checks and creates the links of rows.
//!
//! Rows without a slug, tags and a domain are created in one batch by the use case for many links.
//! It takes nothing else, so the other rows are created one by one, many at a time.

use std::sync::Arc;

use app::{
    AppError, Field, FieldErrors, LinkFields, authorize::require, create_link::CreateLink,
    local_time::local_time,
};
use links::{Link, Slug, Tag, api_key::Grant, scope::Scope};
use tokio::task::{JoinError, JoinSet};
use web::budgets::BudgetAccount;

use super::rows::{Fault, Row};
use crate::{Pages, error, locale::Locale};

/// Rows that are created one by one, at a time. A new slug waits until every process knows of it,
/// and holds no connection of the database meanwhile.
const AT_ONCE: usize = 64;

/// Why a row did not become a link.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The row cannot be read.
    Fault(Fault),
    /// The use case refused the row, or failed.
    App(AppError),
}

/// The short URL of a row, or why it has none.
pub(super) type Outcome = Result<String, Refusal>;

/// A row that is created by itself: its place among all rows, and its command.
type Single = (usize, CreateLink, FieldErrors);

impl Refusal {
    /// Returns the text for people.
    pub(super) fn text(&self, t: &Locale) -> String {
        match self {
            Self::Fault(Fault::Cells) => t.text("bulk-wrong-cells"),
            Self::Fault(Fault::Break) => t.text("bulk-wrong-break"),
            Self::App(AppError::NoDomain { name } | AppError::MayNotAddDomain { name }) => {
                t.with("bulk-wrong-domain", name)
            }
            Self::App(error) => error::message(error, t),
        }
    }
}

/// Checks a row as far as that needs no database. The creation finds out whether a slug is free,
/// and whether the key may add a domain.
pub(super) fn check(pages: &Pages, row: &Row, by: &Grant) -> Result<(), Refusal> {
    if let Some(fault) = row.fault {
        return Err(Refusal::Fault(fault));
    }
    let service = &pages.api.links;
    let mut wrong = FieldErrors::default();
    let mut command = command(pages, row, &mut wrong);
    // The check for many links refuses these three, so they are checked here.
    if let Some(slug) = command.custom_slug.take() {
        wrong.check(Field::CustomSlug, Slug::pick(&slug).map_err(|error| error.to_string()));
    }
    if let Some(tags) = command.fields.tags.take().flatten() {
        let mut checked = tags.iter().map(|tag| Tag::parse(tag).map_err(|error| error.to_string()));
        wrong.check(Field::Tags, checked.try_for_each(|tag| tag.map(drop)));
    }
    if let Some(domain) = command.domain.take() {
        wrong.check(Field::Domain, service.check_domain(&domain));
    }
    service.check_plain_create(command, wrong, by.id).map(drop).map_err(Refusal::App)
}

/// Creates the links of rows. The outcomes are in the order of the rows.
///
/// # Errors
/// Returns [`AppError`] if the key may not create links, or has too many such calls under way.
pub(super) async fn create(pages: &Arc<Pages>, rows: &[Row], by: &Grant) -> Result<Vec<Outcome>, AppError> {
    require(by, Scope::Create)?;
    let _call = pages.api.budgets.bulk_calls.take(BudgetAccount::Key(by.id), 1)?;
    let service = &pages.api.links;
    // A key of another domain creates its links one by one.
    let may_batch = service.may_create_many(by).is_ok();
    let mut outcomes: Vec<Option<Outcome>> = rows.iter().map(|_| None).collect();
    let (mut places, mut drafts, mut singles) = (Vec::new(), Vec::new(), Vec::new());
    for (place, row) in rows.iter().enumerate() {
        if let Some(fault) = row.fault {
            outcomes[place] = Some(Err(Refusal::Fault(fault)));
            continue;
        }
        let mut wrong = FieldErrors::default();
        let command = command(pages, row, &mut wrong);
        if !(may_batch && is_plain(pages, &command)) {
            singles.push((place, command, wrong));
            continue;
        }
        match service.check_plain_create(command, wrong, by.id) {
            Ok(draft) => {
                places.push(place);
                drafts.push(draft);
            }
            Err(error) => outcomes[place] = Some(Err(Refusal::App(error))),
        }
    }
    if !drafts.is_empty() {
        for (place, created) in places.into_iter().zip(service.create_many(drafts).await) {
            let created = created.map(|created| short_url(pages, &created.link));
            outcomes[place] = Some(created.map_err(|error| Refusal::App(error.into())));
        }
    }
    for (place, created) in create_singly(pages, singles, by).await {
        outcomes[place] = Some(created.map_err(Refusal::App));
    }
    let end = |outcome: Option<Outcome>| outcome.unwrap_or(Err(Refusal::App(AppError::Internal)));
    Ok(outcomes.into_iter().map(end).collect())
}

/// Creates links one by one, at most [`AT_ONCE`] at a time.
async fn create_singly(
    pages: &Arc<Pages>,
    singles: Vec<Single>,
    by: &Grant,
) -> Vec<(usize, Result<String, AppError>)> {
    let mut tasks = JoinSet::new();
    let mut created = Vec::with_capacity(singles.len());
    // A task that panics leaves its row without an outcome, which is an internal error.
    let mut keep = |joined: Option<Result<_, JoinError>>| created.extend(joined.and_then(Result::ok));
    for (place, command, wrong) in singles {
        if tasks.len() == AT_ONCE {
            keep(tasks.join_next().await);
        }
        let (pages, by) = (Arc::clone(pages), by.clone());
        tasks.spawn(async move {
            let record = pages.api.links.create_link(command, None, wrong, &by).await;
            (place, record.map(|record| short_url(&pages, &record.link)))
        });
    }
    while !tasks.is_empty() {
        keep(tasks.join_next().await);
    }
    created
}

/// Returns whether the use case for many links takes a row.
fn is_plain(pages: &Pages, command: &CreateLink) -> bool {
    let is_default = |name: &str| matches!(pages.api.links.check_domain(name), Ok(None));
    command.custom_slug.is_none()
        && command.fields.tags.is_none()
        && command.domain.as_deref().is_none_or(is_default)
}

/// Converts a row to a command. A long URL without a scheme is one of the web, as on the home page.
fn command(pages: &Pages, row: &Row, wrong: &mut FieldErrors) -> CreateLink {
    let owned = |field| row.get(field).map(str::to_owned);
    let with_scheme = |url: &str| if url.contains(':') { url.to_owned() } else { format!("https://{url}") };
    let valid_until = row.get(Field::ValidUntil).and_then(|text| {
        let time = text.parse().ok().or_else(|| local_time(text, &pages.api.time_zone));
        wrong.check(Field::ValidUntil, time.ok_or_else(|| Field::ValidUntil.expected()))
    });
    let max_visits = row.get(Field::MaxVisits).and_then(|text| {
        wrong.check(Field::MaxVisits, text.parse().map_err(|_| Field::MaxVisits.expected()))
    });
    CreateLink {
        fields: LinkFields {
            long_url: row.get(Field::LongUrl).map(|url| Some(with_scheme(url))),
            title: owned(Field::Title).map(Some),
            tags: row.get(Field::Tags).map(|text| Some(tags(text))),
            valid_until: valid_until.map(Some),
            max_visits: max_visits.map(Some),
            ..LinkFields::default()
        },
        custom_slug: owned(Field::CustomSlug),
        domain: owned(Field::Domain),
        ..CreateLink::default()
    }
}

/// Splits the tags of a cell at bars and commas.
fn tags(text: &str) -> Vec<String> {
    let tags = text.split(['|', ',', '，']).map(str::trim);
    tags.filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
}

/// Returns the short URL of a created link.
fn short_url(pages: &Pages, link: &Link) -> String {
    let name = pages.api.lookup.name_of(link).unwrap_or_default();
    format!("{}/{name}", pages.api.base(link.domain()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_split_at_bars_and_commas() {
        assert_eq!(tags("a|b, c d，e||"), ["a", "b", "c d", "e"]);
    }
}
