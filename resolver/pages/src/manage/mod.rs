//! The management pages, for a session of an API key.

mod audit;
mod bulk;
mod change_all;
mod choice;
mod chosen;
mod domains;
mod explanation;
mod history;
mod icon;
mod keys;
mod link;
mod link_form;
mod list;
mod list_table;
mod new_link;
mod notices;
mod offer;
mod paged;
mod period;
mod preview_form;
mod qr_sheet;
mod reservations;
mod rules;
mod schedule;
mod shown;
mod statistics;
mod tags;
mod targets;
mod tour;
mod webhooks;

use hyper::{Method, StatusCode};
use percent_encoding::percent_decode_str;
use web::Answer;

use crate::{
    addresses::{EXPLAIN, LINK, LINKS, QR_PACK, QR_SHEET, STATISTICS},
    context::{Answering, Context},
    error::PageError,
};
use choice::Done;
use notices::{Refusal, stored};

pub(crate) async fn answer(context: &Context<'_>) -> Result<Answer, PageError> {
    let (path, is_form) = (context.request.path(), context.request.head.method == Method::POST);
    for prefix in [LINK, rules::PATH] {
        let Some(name) = path.strip_prefix(prefix) else { continue };
        let name = percent_decode_str(name).decode_utf8().map_err(|_| PageError::NoPage)?;
        let answering: Answering<'_> = match (prefix, is_form) {
            (LINK, false) => Box::pin(link::show(context, &name)),
            (LINK, true) => Box::pin(link::change(context, &name)),
            (_, false) => Box::pin(rules::show(context, &name)),
            (_, true) => Box::pin(rules::change(context, &name)),
        };
        return answering.await;
    }
    if let Some(id) = path.strip_prefix(webhooks::ONE) {
        return if is_form {
            Box::pin(webhooks::change(context, id)).await
        } else {
            Box::pin(webhooks::show(context, id)).await
        };
    }
    // The forms of these lists lead back to them, or show them with what is wrong.
    let changed = match (path, is_form) {
        (tags::PATH, true) => Box::pin(tags::change(context)).await,
        (domains::PATH, true) => Box::pin(domains::change(context)).await,
        (targets::PATH, true) => Box::pin(targets::change(context)).await,
        _ => Ok(()),
    };
    let refusal = changed.err().map(|error| Refusal::new(error, context.t)).transpose()?;
    let answering: Answering<'_> = match (path, is_form) {
        (targets::PATH, true) if refusal.is_none() => return Ok(targets::stored(context)),
        (tags::PATH | domains::PATH, true) if refusal.is_none() => return Ok(stored(context, path)),
        (tags::PATH, _) => Box::pin(tags::answer(context, refusal)),
        (domains::PATH, _) => Box::pin(domains::answer(context, refusal)),
        (targets::PATH, _) => Box::pin(targets::answer(context, refusal)),
        (LINKS, false) => Box::pin(list::answer(context, StatusCode::OK, Done::of(context), None)),
        (LINKS, true) if context.form.get("do") == Some(new_link::CREATE) => {
            Box::pin(new_link::create(context))
        }
        (LINKS, true) if context.form.is_on(change_all::EVERY) => Box::pin(change_all::answer(context)),
        (LINKS, true) => Box::pin(chosen::change(context)),
        (list_table::PATH, false) => Box::pin(list_table::download(context)),
        (icon::PATH, false) => Box::pin(icon::show(context)),
        (STATISTICS, false) => Box::pin(statistics::show(context)),
        (statistics::TABLE, false) => Box::pin(statistics::download(context)),
        (statistics::COUNT, false) => Box::pin(statistics::count(context)),
        (bulk::PATH, false) => return Ok(bulk::form(context, None, None)),
        (bulk::PATH, true) => Box::pin(bulk::submit(context)),
        (bulk::TEMPLATE, false) => return bulk::template(),
        (keys::PATH, false) => Box::pin(keys::answer(context, None, None)),
        (keys::PATH, true) => Box::pin(keys::change(context)),
        (webhooks::PATH, false) => Box::pin(webhooks::answer(context, None, None)),
        (webhooks::PATH, true) => Box::pin(webhooks::create(context)),
        (reservations::PATH, false) => Box::pin(reservations::show(context)),
        (reservations::PATH, true) => Box::pin(reservations::change(context)),
        (reservations::TABLE, false) => Box::pin(reservations::download(context)),
        (EXPLAIN, false) => Box::pin(explanation::show(context)),
        (QR_SHEET, false) => Box::pin(qr_sheet::show(context)),
        (QR_PACK, false) => Box::pin(qr_sheet::download(context)),
        (audit::PATH, false) => Box::pin(audit::show(context)),
        _ => return Err(PageError::NoPage),
    };
    answering.await
}
