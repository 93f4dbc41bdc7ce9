//! Checks and creates the links of rows.
//!
//! Rows are created one by one, many at a time, because only single creates have idempotency keys:
//! the mark of the form and the line. So a form that is sent twice makes its links once.

use std::sync::Arc;

use app::{
    AppError, Field, FieldErrors, LinkFields,
    authorize::require,
    create_link::{CreateLink, IdempotencyKey},
    time::read_time,
};
use limits::Account;
use links::{Slug, Tag, api_key::Grant, scope::Scope};
use tokio::task::{JoinError, JoinSet};
use transfer::split_tags;

use super::rows::{Fault, Row};
use crate::{Pages, error, home::with_scheme, locale::Locale};

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

/// What became of the row at a place.
type Created = (usize, Result<String, AppError>);

impl Refusal {
    /// Returns the text for people.
    pub(super) fn text(&self, t: &Locale) -> String {
        match self {
            Self::Fault(Fault::Cells) => t.text("bulk-wrong-cells"),
            Self::Fault(Fault::Break) => t.text("bulk-wrong-break"),
            Self::Fault(Fault::OpenQuote) => t.text("bulk-wrong-quote"),
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
pub(super) async fn create(
    pages: &Arc<Pages>,
    (mark, rows): (Option<&str>, &[Row]),
    by: &Grant,
) -> Result<Vec<Outcome>, AppError> {
    require(by, Scope::Create)?;
    let _call = pages.api.budgets.bulk_calls.take(Account::Key(by.id.0), 1)?;
    let mut outcomes: Vec<Option<Outcome>> = rows.iter().map(|_| None).collect();
    let mut tasks = JoinSet::new();
    for (place, row) in rows.iter().enumerate() {
        if let Some(fault) = row.fault {
            outcomes[place] = Some(Err(Refusal::Fault(fault)));
            continue;
        }
        if tasks.len() == AT_ONCE {
            keep(tasks.join_next().await, &mut outcomes);
        }
        // The key may have been revoked since the form was sent.
        match api::is_still_granted(&pages.api, by).await {
            Ok(true) => {}
            Ok(false) => {
                outcomes[place] = Some(Err(Refusal::App(AppError::Forbidden { scope: Scope::Create })));
                continue;
            }
            Err(error) => {
                outcomes[place] = Some(Err(Refusal::App(error.into())));
                continue;
            }
        }
        let mut wrong = FieldErrors::default();
        let command = command(pages, row, &mut wrong);
        let key = idempotency(mark, row);
        let (pages, by) = (Arc::clone(pages), by.clone());
        tasks.spawn(async move {
            let created = match key {
                Ok(key) => pages.api.links.create_link(command, key, wrong, &by).await,
                Err(error) => Err(error),
            };
            (place, created.map(|record| pages.short_url(&record.link)))
        });
    }
    while !tasks.is_empty() {
        keep(tasks.join_next().await, &mut outcomes);
    }
    let end = |outcome: Option<Outcome>| outcome.unwrap_or(Err(Refusal::App(AppError::Internal)));
    Ok(outcomes.into_iter().map(end).collect())
}

/// Keeps the outcome of a row. A task that panicked leaves its row without one, which is an
/// internal error.
fn keep(joined: Option<Result<Created, JoinError>>, outcomes: &mut [Option<Outcome>]) {
    if let Some(Ok((place, created))) = joined {
        outcomes[place] = Some(created.map_err(Refusal::App));
    }
}

/// Returns the idempotency key of a row; `None` if the form has no mark.
fn idempotency(mark: Option<&str>, row: &Row) -> Result<Option<IdempotencyKey>, AppError> {
    let Some(mark) = mark else { return Ok(None) };
    let key = format!("page-{mark}-{}", row.line);
    IdempotencyKey::new(key.as_bytes(), row.canonical()).map(Some)
}

/// Converts a row to a command. A long URL without a scheme is one of the web, as on the home page.
fn command(pages: &Pages, row: &Row, wrong: &mut FieldErrors) -> CreateLink {
    let owned = |field| row.get(field).map(str::to_owned);
    let valid_until = row
        .get(Field::ValidUntil)
        .and_then(|text| wrong.check(Field::ValidUntil, read_time(text, &pages.api.time_zone)));
    let max_visits = row.get(Field::MaxVisits).and_then(|text| {
        wrong.check(Field::MaxVisits, text.parse().map_err(|_| Field::MaxVisits.expected()))
    });
    CreateLink {
        fields: LinkFields {
            long_url: row.get(Field::LongUrl).map(|url| Some(with_scheme(pages, url))),
            title: owned(Field::Title).map(Some),
            tags: row.get(Field::Tags).map(|text| Some(split_tags(text))),
            valid_until: valid_until.map(Some),
            max_visits: max_visits.map(Some),
            ..LinkFields::default()
        },
        custom_slug: owned(Field::CustomSlug),
        domain: owned(Field::Domain),
        ..CreateLink::default()
    }
}
