//! Packs of QR codes for print, for REST and the pages: the links of [`app::qr_pack`], drawn by the
//! crate `qr`.
//!
//! A pack is made in memory, because archives and PDFs end with an index of their contents. So only
//! a few packs are made at a time. A pack shows nothing about a link that a list does not show.

use std::{borrow::Cow, sync::Arc, time::Duration};

use app::{
    AppError,
    authorize::require,
    qr_pack::{PackLink, PackLinks, Page, Selection},
};
use hyper::{
    StatusCode,
    header::{CONTENT_DISPOSITION, HeaderName, HeaderValue},
};
use limits::Account;
use links::{LongUrl, api_key::Grant, location, scope::Scope};
use qr::{Label, PackOptions, QrError};
use tokio::time::timeout;
use transfer::{harmless, write_record};
use web::{Answer, answer};

use crate::Api;

/// Maximum number of packs that are made at a time. Each takes megabytes of memory, and a core for
/// a second.
pub const AT_ONCE: usize = 2;
/// Maximum time that a request waits for its turn.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// The header with the number of codes in a pack.
const COUNT: HeaderName = HeaderName::from_static("x-total-count");
/// The columns of `links.csv` in an archive.
const COLUMNS: [&str; 4] = ["file", "shortUrl", "longUrl", "title"];

/// Reads the format of a pack from the decoded pairs of a query.
pub fn read_options<'a>(
    pairs: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
) -> Result<PackOptions, AppError> {
    PackOptions::read(pairs).map_err(invalid)
}

fn invalid(QrError { parameter, expected }: QrError) -> AppError {
    AppError::invalid(&parameter, format!("expected {expected}"))
}

/// Answers with a pack as a file to download, and with the number of its codes in a header.
pub async fn download(
    api: &Arc<Api>,
    selection: Selection,
    page: Option<Page>,
    options: PackOptions,
    by: &Grant,
) -> Result<Answer, AppError> {
    require(by, Scope::Read)?;
    let _place = api.budgets.lists.take(Account::Key(by.id.0), 1)?;
    let turn = timeout(WAIT_MAX, api.packs.acquire()).await.ok().and_then(Result::ok);
    let _turn = turn.ok_or(AppError::Unavailable)?;
    let found = api.links.pack_links(selection, page, by).await?;
    // Readers guess the encoding of characters outside ASCII.
    let short_url = |link: &PackLink| location(&format!("{}/{}", api.base(link.domain), link.name));
    let short_urls: Vec<String> = found.links.iter().map(short_url).collect();
    let labels = labels(api, &found, &short_urls);
    let table = table(&labels, &found, &short_urls, &options).map_err(|error| {
        tracing::error!(error = &error as &dyn std::error::Error, "write a table");
        AppError::Internal
    })?;
    let (content_type, ending) = (options.content_type(), options.ending());
    let drawn = api.runtime.spawn_blocking(move || qr::pack(&labels, &options, &table)).await;
    let bytes = drawn.map_err(|_| AppError::Internal)?.map_err(invalid)?;
    let mut answer = answer(StatusCode::OK, content_type, bytes);
    answer.headers_mut().insert(COUNT, HeaderValue::from(found.links.len()));
    if let Ok(name) = HeaderValue::try_from(format!("attachment; filename=\"qr-codes.{ending}\"")) {
        answer.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    Ok(answer)
}

fn labels(api: &Api, PackLinks { first, links }: &PackLinks, short_urls: &[String]) -> Vec<Label> {
    let label = |(number, (link, short_url)): (u64, (&PackLink, &String))| {
        let domain = api.domain_cache.shown_name(link.domain);
        let domain = domain.as_deref().unwrap_or(api.domain_cache.default_name());
        Label::new(number, (domain, &link.name), short_url.clone(), link.title.clone())
    };
    (*first..).zip(links.iter().zip(short_urls)).map(label).collect()
}

/// Writes `links.csv`.
fn table(
    labels: &[Label],
    found: &PackLinks,
    short_urls: &[String],
    options: &PackOptions,
) -> std::io::Result<Vec<u8>> {
    let mut table = Vec::new();
    write_record(COLUMNS.into_iter(), &mut table)?;
    for ((label, link), short_url) in labels.iter().zip(&found.links).zip(short_urls) {
        let (Some(file), title) = (label.file(options), link.title.as_deref().unwrap_or_default()) else {
            break;
        };
        let long_url = link.long_url.as_ref().map_or("", LongUrl::as_str);
        let cells = [&*file, short_url, long_url, title].map(harmless);
        write_record(cells.iter().map(|cell| &**cell), &mut table)?;
    }
    Ok(table)
}
