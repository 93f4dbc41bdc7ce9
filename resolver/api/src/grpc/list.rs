//! Lists of links in one message.

use app::{AppError, FieldErrors, list_links::ListLinks};
use limits::{Account, Held};
use links::api_key::Grant;
use proto::links::v1::ListLinksResponse;

use super::messages;
use crate::Api;

/// The maximum size of a list in bytes. Clients accept messages of 4 MiB by default.
const MESSAGE_BYTES: u64 = 3 * 1024 * 1024;

pub(super) async fn list(
    api: &Api,
    request: ListLinks,
    by: &Grant,
) -> Result<(ListLinksResponse, Option<Held>), AppError> {
    let listed = api.links.list_links(request, FieldErrors::default(), by).await?;
    let outlined = fits_message(listed.entries.iter().map(links::Outlined::size).sum())?;
    let (holder, mut held) = (Account::Key(by.id.0), None);
    api.budgets.widen(&mut held, holder, outlined)?;
    let (mut records, mut bytes) = (Vec::with_capacity(listed.entries.len()), 0);
    for piece in links::pieces(&listed.entries) {
        let piece = api.links.weigh(piece, by).await?;
        bytes = fits_message(bytes + piece.iter().map(links::Outlined::size).sum::<u64>())?;
        api.budgets.widen(&mut held, holder, bytes)?;
        records.extend(api.links.read_piece(&listed, &piece, by).await?);
    }
    let names = api.links.names(&records).await;
    let links = records.iter().filter_map(|record| messages::link(api, record, &names)).collect();
    Ok((ListLinksResponse { links, total: listed.total }, held))
}

fn fits_message(bytes: u64) -> Result<u64, AppError> {
    if bytes <= MESSAGE_BYTES {
        return Ok(bytes);
    }
    let expected = format!("expected fewer: these links are longer than {MESSAGE_BYTES} bytes together");
    Err(AppError::invalid("itemsPerPage", expected))
}
