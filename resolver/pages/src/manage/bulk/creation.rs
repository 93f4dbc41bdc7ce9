//! Checks and creates the links of rows.
//!
//! Rows are created one by one, many at a time, because only single creates have idempotency keys:
//! the mark of the form and the line. So a form that is sent twice makes its links once.

use app::{
    AppError, Field, FieldErrors,
    authorize::require,
    create_link::{CreateLink, IdempotencyKey},
};
use futures_util::{StreamExt as _, stream};
use limits::Account;
use links::{Slug, Tag, scope::Scope};
use transfer::split_tags;

use super::rows::{Fault, Row};
use crate::{context::Context, link_input::read_create, locale::Locale, messages::message};

/// Rows that are created one by one, at a time. A new slug waits until every process knows of it,
/// and holds no connection of the database meanwhile.
const AT_ONCE: usize = 64;

/// Why a row did not become a link.
#[derive(Debug)]
pub(super) enum RowRefusal {
    /// The row cannot be read.
    Fault(Fault),
    /// The use case refused the row, or failed.
    App(AppError),
}

impl RowRefusal {
    /// Returns the text for people.
    pub(super) fn text(&self, t: &Locale) -> String {
        match self {
            Self::Fault(Fault::Cells) => t.text("bulk-wrong-cells"),
            Self::Fault(Fault::Break) => t.text("bulk-wrong-break"),
            Self::Fault(Fault::OpenQuote) => t.text("bulk-wrong-quote"),
            Self::App(error) => message(error, t),
        }
    }
}

impl From<AppError> for RowRefusal {
    fn from(error: AppError) -> Self {
        Self::App(error)
    }
}

/// Checks a row as far as that needs no database. The creation finds out whether a slug is free,
/// and whether the key may add a domain.
pub(super) fn check(context: &Context<'_>, row: &Row) -> Result<(), RowRefusal> {
    if let Some(fault) = row.fault {
        return Err(RowRefusal::Fault(fault));
    }
    let links = context.links();
    let mut wrong = FieldErrors::default();
    let mut command = read_row(context, row, &mut wrong);
    // The check for many links refuses these three, so they are checked here.
    if let Some(slug) = command.custom_slug.take() {
        wrong.check(Field::CustomSlug, Slug::pick(&slug).map_err(|error| error.to_string()));
    }
    if let Some(tags) = command.fields.tags.take().flatten() {
        let mut checked = tags.iter().map(|tag| Tag::parse(tag).map_err(|error| error.to_string()));
        wrong.check(Field::Tags, checked.try_for_each(|tag| tag.map(drop)));
    }
    if let Some(domain) = command.domain.take() {
        wrong.check(Field::Domain, links.check_domain(&domain));
    }
    links.check_plain_create(command, wrong, context.by().id)?;
    Ok(())
}

/// Creates the links of rows, and returns their short URLs in the order of the rows.
///
/// # Errors
/// Returns [`AppError`] if the key may not create links, or has too many such calls under way.
pub(super) async fn create_all(
    context: &Context<'_>,
    mark: Option<&str>,
    rows: &[Row],
) -> Result<Vec<Result<String, RowRefusal>>, AppError> {
    require(context.by(), Scope::Create)?;
    let _call = context.pages.api.budgets.bulk_calls.take(Account::Key(context.by().id.0), 1)?;
    let creates: Vec<_> = rows.iter().map(|row| create(context, mark, row)).collect();
    Ok(stream::iter(creates).buffered(AT_ONCE).collect().await)
}

/// Creates the link of a row, and returns its short URL.
async fn create(context: &Context<'_>, mark: Option<&str>, row: &Row) -> Result<String, RowRefusal> {
    if let Some(fault) = row.fault {
        return Err(RowRefusal::Fault(fault));
    }
    // The key may have been revoked since the form was sent.
    let is_granted = api::is_still_granted(&context.pages.api, context.by()).await;
    if !is_granted.map_err(AppError::from)? {
        return Err(AppError::Forbidden(Scope::Create).into());
    }
    let mut wrong = FieldErrors::default();
    let command = read_row(context, row, &mut wrong);
    let key = idempotency(mark, row)?;
    let record = context.links().create_link(command, key, wrong, context.by()).await?;
    Ok(context.pages.short_url(&record.link))
}

/// Returns the idempotency key of a row; `None` if the form has no mark.
fn idempotency(mark: Option<&str>, row: &Row) -> Result<Option<IdempotencyKey>, AppError> {
    let Some(mark) = mark else { return Ok(None) };
    let key = format!("page-{mark}-{}", row.line);
    IdempotencyKey::new(key.as_bytes(), row.canonical()).map(Some)
}

fn read_row(context: &Context<'_>, row: &Row, wrong: &mut FieldErrors) -> CreateLink {
    read_create(&context.pages.api, |field| row.get(field), split_tags, wrong)
}
