//! Checks and creates the links of rows.
//!
//! Rows are created one by one, many at a time, each with an idempotency key: the mark of the form
//! and the line. So a form that is sent twice makes its links once.

use std::collections::HashSet;

use app::{
    AppError, Field, FieldErrors,
    authorize::require,
    create_link::{CreateLink, IdempotencyKey},
};
use futures_util::{StreamExt as _, stream};
use limits::Account;
use links::scope::Scope;
use transfer::split_tags;

use super::rows::Row;
use crate::{context::Context, link_input::read_create, messages::message};

/// Rows that are checked or created one by one, at a time. A new slug waits until every process
/// knows of it, and holds no connection of the database meanwhile.
const AT_ONCE: usize = 64;

/// Checks rows, and returns the results in their order. Whether the key may add a domain is only
/// checked by the create, and slugs may be taken in the meantime.
pub(super) async fn check_all(
    context: &Context<'_>,
    rows: &[Row],
) -> Result<Vec<Result<(), String>>, AppError> {
    let _call = context.pages.api.budgets.bulk_calls.take(Account::Key(context.by.id.0), 1)?;
    let checks: Vec<_> = rows.iter().map(|row| check(context, row)).collect();
    let mut checked: Vec<_> = stream::iter(checks).buffered(AT_ONCE).collect().await;
    // Of rows with the same slug, the first one gets it.
    let mut given = HashSet::new();
    for (row, checked) in rows.iter().zip(&mut checked).filter(|(_, checked)| checked.is_ok()) {
        let Some(slug) = row.get(Field::CustomSlug) else { continue };
        if !given.insert((row.get(Field::Domain), slug)) {
            *checked = Err(context.t.with("bulk-slug-twice", slug));
        }
    }
    Ok(checked)
}

async fn check(context: &Context<'_>, row: &Row) -> Result<(), String> {
    if let Some(fault) = row.fault {
        return Err(context.t.text(fault));
    }
    check_link(context, row).await.map_err(|error| message(&error, context.t))
}

async fn check_link(context: &Context<'_>, row: &Row) -> Result<(), AppError> {
    let mut wrong = FieldErrors::default();
    let command = read_row(context, row, &mut wrong);
    context.links.check_link(command, None, wrong, context.by)?;
    match row.get(Field::CustomSlug) {
        Some(slug) => context.links.check_free(slug, row.get(Field::Domain), context.by).await,
        None => Ok(()),
    }
}

/// Creates the links of rows, and returns their short URLs in the order of the rows.
pub(super) async fn create_all(
    context: &Context<'_>,
    mark: Option<&str>,
    rows: &[Row],
) -> Result<Vec<Result<String, String>>, AppError> {
    require(context.by, Scope::Create)?;
    let _call = context.pages.api.budgets.bulk_calls.take(Account::Key(context.by.id.0), 1)?;
    let creates: Vec<_> = rows.iter().map(|row| create(context, mark, row)).collect();
    Ok(stream::iter(creates).buffered(AT_ONCE).collect().await)
}

async fn create(context: &Context<'_>, mark: Option<&str>, row: &Row) -> Result<String, String> {
    if let Some(fault) = row.fault {
        return Err(context.t.text(fault));
    }
    create_link(context, mark, row).await.map_err(|error| message(&error, context.t))
}

async fn create_link(context: &Context<'_>, mark: Option<&str>, row: &Row) -> Result<String, AppError> {
    // The key may have been revoked since the form was sent.
    if !api::is_still_granted(&context.pages.api, context.by).await? {
        return Err(AppError::Forbidden(Scope::Create));
    }
    let mut wrong = FieldErrors::default();
    let command = read_row(context, row, &mut wrong);
    let key = mark.map(|mark| {
        let key = format!("page-{mark}-{}", row.line);
        IdempotencyKey::new(key.as_bytes(), row.canonical())
    });
    let record = context.links.create_link(command, key.transpose()?, wrong, context.by).await?;
    Ok(context.pages.short_url(&record.link))
}

fn read_row(context: &Context<'_>, row: &Row, wrong: &mut FieldErrors) -> CreateLink {
    read_create(&context.pages.api, |field| row.get(field), split_tags, wrong)
}
