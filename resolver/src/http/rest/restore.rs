//! `POST /rest/v3/short-urls/{code}/restore`, an addition of ours: brings the link back that was deleted last under a code or a slug.
//!
//! The key needs the scope `delete`: who may take a link away may take that back.

use codes::LinkId;
use links::{Link, Meant, Slug, api_key::Grant};
use store::Restored;

use super::{domains, fields, problem::Problem, query::Query, short_url};
use crate::http::{Answer, App};

/// Brings a link back, with its tags and limits, in a new version.
pub(super) async fn restore(app: &App, name: &str, query: &Query, by: &Grant) -> Result<Answer, Problem> {
    let missing = || Problem::no_short_url(app, name, query);
    let link = find_deleted(app, name, query, by).await?;
    let domain = link.domain();
    let decoded = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
    let taken = || Problem::SlugTaken { slug: decoded.to_string(), domain: domains::shown_name(app, domain) };
    // The rules may have changed since it was made.
    let targets = link.rules().iter().map(|rule| &rule.long_url).chain([&link.long_url]);
    fields::check_targets(app, "longUrl", targets)?;
    if is_minted_by_now(&link, app.lookup.id_of(&decoded)) {
        return Err(taken());
    }
    let _turn = app.budgets.brief_turn(by.id).await?;
    let restored = app.store.restore(link.id, &Meant::of(&link), app.creator.keyspaces(), by.id).await?;
    app.lookup.changed(link.id);
    match restored {
        Restored::Done(record) => {
            if let Some(slug) = record.link.slug() {
                app.lookup.taken(domain, slug);
            }
            app.creator.wait_until_shown(&record.link).await;
            short_url::answer(app, &record).await
        }
        Restored::Absent => Err(missing()),
        Restored::Taken => Err(taken()),
    }
}

/// The link that was deleted last under a name, if the key may see it.
pub(super) async fn find_deleted(app: &App, name: &str, query: &Query, by: &Grant) -> Result<Link, Problem> {
    let missing = || Problem::no_short_url(app, name, query);
    let Some(domain) = domains::of_query(app, query).await? else { return Err(missing()) };
    let decoded = percent_encoding::percent_decode_str(name).decode_utf8().map_err(|_| missing())?;
    if !Slug::parse(&decoded).is_ok_and(|slug| slug.as_str() == decoded) {
        return Err(missing());
    }
    let _turn = app.budgets.turn(by.id).await?;
    let found = app.store.find_deleted(domain, &decoded, app.lookup.id_of(&decoded)).await?;
    found.filter(|link| by.sees(link)).ok_or_else(missing)
}

/// Whether the slug of a link has become the code of a number since the link was deleted, and is that number's now.
fn is_minted_by_now(link: &Link, code: Option<LinkId>) -> bool {
    link.domain().is_default() && code.is_some_and(|id| id != link.id)
}
