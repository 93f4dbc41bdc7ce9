//! Packs of QR codes for print, for REST and the pages: finds their links, and draws them with the
//! crate `qr`.
//!
//! A pack is made in memory, because an archive and a PDF have their tables at the end. So a pack
//! has at most [`LINKS_MAX`] links, and few are made at a time. It says nothing of the links but
//! what a list does.

use std::{borrow::Cow, sync::Arc, time::Duration};

use app::{AppError, FieldErrors, Reserved, authorize::require, find_link::LinkName, list_links::ListLinks};
use hyper::{
    StatusCode,
    header::{CONTENT_DISPOSITION, HeaderValue},
};
use limits::Account;
use links::{Link, api_key::Grant, location, scope::Scope};
use qr::{Label, PackOptions, QrError};
use tokio::time::timeout;
use transfer::{harmless, write_record};
use web::{Answer, answer};

use crate::Api;

/// Maximum number of links of a pack.
pub const LINKS_MAX: u64 = 1_000;
/// Maximum number of packs that are made at a time. Each holds megabytes, and a core for a second.
pub const AT_ONCE: usize = 2;
/// The longest time that a pack waits to be made.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// The columns of the table in an archive.
const COLUMNS: [&str; 4] = ["file", "shortUrl", "longUrl", "title"];

/// The links of a pack.
pub enum Selection {
    /// Those of a list, and what is wrong in its query.
    Listed(Box<ListLinks>, FieldErrors),
    /// Links by name.
    Named(Vec<LinkName>),
    /// The codes of a reservation, by its id.
    Reserved(String),
}

/// A page of links.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its number, from 1.
    pub page: u64,
    /// The number of links on a page, at most [`LINKS_MAX`].
    pub per_page: u64,
}

/// The links of a pack, with the number of the first one in their list.
struct Found {
    first: u64,
    links: Vec<FoundLink>,
}

struct FoundLink {
    domain: Option<String>,
    name: String,
    short_url: String,
    long_url: String,
    title: Option<String>,
}

/// Reads the form of a pack from the decoded pairs of a query.
pub fn read_options<'a>(
    pairs: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
) -> Result<PackOptions, AppError> {
    PackOptions::read(pairs).map_err(invalid)
}

fn invalid(QrError { parameter, expected }: QrError) -> AppError {
    AppError::invalid(&parameter, format!("expected {expected}"))
}

/// Answers with a pack as a file to download. Without a part, all links have to fit: those that are
/// left out would not be missed.
pub async fn download(
    api: &Arc<Api>,
    selection: Selection,
    part: Option<Part>,
    options: PackOptions,
    by: &Grant,
) -> Result<Answer, AppError> {
    require(by, Scope::Read)?;
    let _place = api.budgets.lists.take(Account::Key(by.id.0), 1)?;
    let turn = timeout(WAIT_MAX, api.packs.acquire()).await.ok().and_then(Result::ok);
    let _turn = turn.ok_or(AppError::Unavailable)?;
    let found = match selection {
        Selection::Listed(list, wrong) => listed(api, *list, wrong, part, by).await?,
        Selection::Named(names) => named(api, &names, by).await?,
        Selection::Reserved(id) => reserved(api, &id, part, by).await?,
    };
    let labels = labels(api, &found);
    let table = table(&labels, &found, &options).map_err(|error| {
        tracing::error!(error = &error as &dyn std::error::Error, "write a table");
        AppError::Internal
    })?;
    let (content_type, ending) = (options.content_type(), options.ending());
    let drawn = api.runtime.spawn_blocking(move || qr::pack(&labels, &options, &table)).await;
    let bytes = drawn.map_err(|_| AppError::Internal)?.map_err(invalid)?;
    let mut answer = answer(StatusCode::OK, content_type, bytes);
    if let Ok(name) = HeaderValue::try_from(format!("attachment; filename=\"qr-codes.{ending}\"")) {
        answer.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    Ok(answer)
}

async fn listed(
    api: &Api,
    mut list: ListLinks,
    wrong: FieldErrors,
    part: Option<Part>,
    by: &Grant,
) -> Result<Found, AppError> {
    if list.filter.deleted {
        return Err(AppError::invalid("deleted", "expected false, because a deleted link leads nowhere"));
    }
    let Part { page, per_page } = part.unwrap_or(Part { page: 1, per_page: LINKS_MAX });
    (list.filter.page, list.filter.per_page) = (page, Some(per_page.min(LINKS_MAX)));
    let listed = api.links.list_links(list, wrong, by).await?;
    check_whole(part, listed.total)?;
    let mut links = Vec::with_capacity(listed.entries.len());
    for piece in links::pieces(&listed.entries) {
        let piece = api.links.weigh(piece, by).await?;
        for piece in links::pieces(&piece) {
            let records = api.links.read_piece(&listed, piece, by).await?;
            links.extend(records.iter().filter_map(|record| found(api, &record.link)));
        }
    }
    Ok(Found { first: first(listed.page, listed.per_page), links })
}

async fn named(api: &Api, names: &[LinkName], by: &Grant) -> Result<Found, AppError> {
    if names.len() as u64 > LINKS_MAX {
        return Err(AppError::invalid("shortCodes[]", format!("expected at most {LINKS_MAX} links")));
    }
    let mut links = Vec::with_capacity(names.len());
    for name in names {
        let link = api.links.find_link(name, by).await?;
        links.extend(found(api, &link));
    }
    Ok(Found { first: 1, links })
}

async fn reserved(api: &Api, id: &str, part: Option<Part>, by: &Grant) -> Result<Found, AppError> {
    let Reserved { codes, .. } = api.links.reservation(id, by).await?;
    check_whole(part, codes.len() as u64)?;
    let Part { page, per_page } = part.unwrap_or(Part { page: 1, per_page: LINKS_MAX });
    let first = first(page, per_page);
    let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let codes = codes.iter().skip(count(first - 1)).take(count(per_page.min(LINKS_MAX)));
    let links = codes.map(|code| FoundLink {
        domain: None,
        name: code.to_string(),
        short_url: location(&format!("{}/{code}", api.public_url)),
        long_url: String::new(),
        title: None,
    });
    Ok(Found { first, links: links.collect() })
}

/// Returns the number of the first link on a page.
fn first(page: u64, per_page: u64) -> u64 {
    (page - 1).saturating_mul(per_page).saturating_add(1)
}

fn check_whole(part: Option<Part>, total: u64) -> Result<(), AppError> {
    if part.is_some() || total <= LINKS_MAX {
        return Ok(());
    }
    let expected =
        format!("expected the number of a page: a pack has at most {LINKS_MAX} links, and there are {total}");
    Err(AppError::invalid("page", expected))
}

/// Returns what a pack has of a link; `None` if its number's keyspace is unknown.
fn found(api: &Api, link: &Link) -> Option<FoundLink> {
    let name = api.lookup.name_of(link)?;
    Some(FoundLink {
        domain: api.domain_cache.shown_name(link.domain()),
        // Readers guess the encoding of other letters than those of ASCII.
        short_url: location(&format!("{}/{name}", api.base(link.domain()))),
        long_url: link.long_url.as_str().to_owned(),
        title: link.title.clone(),
        name,
    })
}

fn labels(api: &Api, Found { first, links }: &Found) -> Vec<Label> {
    let label = |(number, link): (u64, &FoundLink)| {
        let domain = link.domain.as_deref().unwrap_or(api.domain_cache.default_name());
        Label::new(number, (domain, &link.name), link.short_url.clone(), link.title.clone())
    };
    (*first..).zip(links).map(label).collect()
}

/// Writes the table of an archive.
fn table(labels: &[Label], found: &Found, options: &PackOptions) -> std::io::Result<Vec<u8>> {
    let mut table = Vec::new();
    write_record(COLUMNS.into_iter(), &mut table)?;
    for (label, link) in labels.iter().zip(&found.links) {
        let (Some(file), title) = (label.file(options), link.title.as_deref().unwrap_or_default()) else {
            break;
        };
        let cells = [&*file, &link.short_url, &link.long_url, title].map(harmless);
        write_record(cells.iter().map(|cell| &**cell), &mut table)?;
    }
    Ok(table)
}
