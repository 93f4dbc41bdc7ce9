//! Calls for one link: show, edit, undo, move, delete, restore, block and unblock.

use app::edit_link::Target;
use links::Block;

use super::{
    link_fields::{answer_changed, answer_with, read_edit},
    prelude::*,
    read::in_order,
};

const LINK: &str = "/rest/v3/short-urls/{shortCode}";
const MOVE: &str = "/rest/v3/short-urls/{shortCode}/move";
const UNDO: &str = "/rest/v3/short-urls/{shortCode}/undo";
const RESTORE: &str = "/rest/v3/short-urls/{shortCode}/restore";
const BLOCK: &str = "/rest/v3/short-urls/{shortCode}/block";
const UNBLOCK: &str = "/rest/v3/short-urls/{shortCode}/unblock";

pub(super) fn routes() -> Vec<Route> {
    let of = |method, path, handler, id, summary| {
        Route::new(method, path, handler).document(id, Topic::Links, summary).query::<dto::DomainQuery>()
    };
    vec![
        of(Method::GET, LINK, keyed!(Scope::Read, get), "getShortUrl", "Show a link")
            .text("Also one that does not redirect at the moment.")
            .answers_with_etag::<dto::ShortUrl>("The link."),
        of(Method::PATCH, LINK, keyed!(Scope::Edit, edit), "editShortUrl", "Edit a link")
            .text("Absent fields stay as they are. Null clears a time, a limit, a title, a description, a status or a password, and leaves any other field as it is. `customSlug` (an extension) gives the link another name: the former one is not found any more, and a code is not given to another link. It fails if another link has that name. `move` changes the domain. An edit that changes nothing leaves the version as it is. A key without the scope `read` gets the link's code and short URL.")
            .header(Header::IfMatch)
            .optional_body::<dto::ShortUrlEdit>()
            .answers_with_etag::<dto::ChangedShortUrl>("The link after the edit.")
            .fails(&[Kind::SlugTaken, Kind::Blocked, Kind::LaterRelease]),
        of(Method::POST, UNDO, keyed!(Scope::Edit, undo), "undoShortUrlEdit", "Undo an edit of a link")
            .addition()
            .text("Every field that the edit changed gets the value that it had before: an edit of its own, which can be undone as well. It fails, and names the fields, if one of them was changed again since. A password comes back, too. A move is undone by a move, a deletion by `restore`; a takedown stays.")
            .header(Header::IfMatch)
            .optional_body::<dto::UndoneEdit>()
            .answers_with_etag::<dto::ChangedShortUrl>("The link after the call.")
            .fails(&[Kind::NotUndone, Kind::LaterRelease]),
        of(Method::DELETE, LINK, keyed!(Scope::Delete, delete), "deleteShortUrl", "Delete a link")
            .text("A minted code is never given to another link. A custom slug can be picked again.")
            .header(Header::IfMatch)
            .done("The link is deleted.")
            .fails(&[Kind::Blocked, Kind::LaterRelease]),
        of(Method::POST, RESTORE, keyed!(Scope::Delete, restore), "restoreShortUrl", "Restore a deleted link")
            .addition()
            .text("Restores the link that was deleted last under this code or slug, with its tags and limits, in a new version. It fails if another link has taken the slug since.")
            .answers_with_etag::<dto::ChangedShortUrl>("The link after its restoration.")
            .fails(&[Kind::SlugTaken, Kind::LaterRelease]),
        of(Method::POST, MOVE, keyed!(Scope::Edit, relocate), "moveShortUrl", "Move a link to another domain")
            .addition()
            .text("The link keeps its code or slug, and what it has. Under its former address it is not found any more, unless it moves to the default domain, whose links redirect on every domain. It fails if another link has the name on the other domain. An unknown domain is added as for a new link. Visits that were counted before stay with the former domain.")
            .header(Header::IfMatch)
            .body::<dto::MoveShortUrl>()
            .answers_with_etag::<dto::ChangedShortUrl>("The link after the call.")
            .fails(&[Kind::SlugTaken, Kind::Blocked, Kind::LaterRelease, Kind::TooManyDomains]),
        of(Method::POST, BLOCK, keyed!(Scope::Admin, block), "blockShortUrl", "Take a link down")
            .addition()
            .text("Visitors are told that the link was taken down (410), on every resolver within a second. Only `unblock` lifts the block, whatever the owner edits or restores, and until then the link cannot be deleted. The link that was deleted last under this name can be blocked too. The key must have no limits.")
            .body::<dto::NewTakedown>()
            .answers_with_etag::<dto::ChangedShortUrl>("The link after the call.")
            .fails(&[Kind::LaterRelease]),
        of(Method::POST, UNBLOCK, keyed!(Scope::Admin, unblock), "unblockShortUrl", "Lift the block of a link")
            .addition()
            .text("The other fields of the link stay as they are. The key must have no limits.")
            .answers_with_etag::<dto::ChangedShortUrl>("The link after the call.")
            .fails(&[Kind::LaterRelease]),
    ]
}

impl Fields for dto::NewTakedown {
    fn expected(_: &str) -> String {
        Block::expected_reason()
    }
}

impl Fields for dto::MoveShortUrl {}

impl Fields for dto::UndoneEdit {}

async fn get(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let links = &call.api.links;
    let record = links.get_link(&call.link()?, by).await?;
    let visits = links.visit_totals(&[record.link.id], by).await?;
    let visits = visits.get(&record.link.id).copied().unwrap_or_default();
    answer_with(&call.api, &record, &links.names(std::slice::from_ref(&record)).await, visits)
}

async fn edit(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (edit, slug, wrong) = read_edit(&call.api, &call.body)?;
    let (links, target) = (&call.api.links, call.target()?);
    let edited = match &slug {
        Some(slug) => links.rename_link(&target, slug, edit, wrong, by).await,
        None => links.edit_link(&target, edit, wrong, by).await,
    };
    answer_changed(&call.api, &edited.map_err(|error| in_order(error, &call.body))?, by).await
}

async fn undo(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (dto::UndoneEdit { entry }, wrong) = call.fields()?;
    answer_changed(&call.api, &call.api.links.undo_edit(&call.target()?, entry, wrong, by).await?, by).await
}

async fn delete(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    call.api.links.delete_link(&call.target()?, by).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

async fn restore(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let target = Target { name: call.link()?, versions: None };
    answer_changed(&call.api, &call.api.links.restore_link(&target, by).await?, by).await
}

async fn relocate(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (dto::MoveShortUrl { domain }, wrong) = call.fields()?;
    let moved = call.api.links.move_link(&call.target()?, domain.as_deref(), wrong, by).await?;
    answer_changed(&call.api, &moved, by).await
}

async fn block(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (dto::NewTakedown { reason }, wrong) = call.fields()?;
    let blocked = call.api.links.block_link(&call.link()?, reason.as_deref(), wrong, by).await?;
    answer_changed(&call.api, &blocked, by).await
}

async fn unblock(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    answer_changed(&call.api, &call.api.links.unblock_link(&call.link()?, by).await?, by).await
}
