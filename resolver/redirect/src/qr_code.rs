//! `GET|HEAD /{code}/qr-code`: the QR code of a short link. [`qr`] defines its options.
//!
//! Drawing a QR code takes milliseconds of a core, more than a thousand redirects, and for a long
//! slug many times as long. So only a few are drawn at a time, away from the listeners' threads,
//! and each client has a budget of them.

use std::{sync::Arc, time::Duration};

use hyper::{
    Request, StatusCode,
    body::Incoming,
    header::{CACHE_CONTROL, CONTENT_DISPOSITION, HeaderName, HeaderValue},
};
use limits::{
    Account, Pool, Rate,
    budgets::{QR_CODES, QR_CODES_PER_MINUTE},
    network,
};
use links::location;
use qr::{Image, QrError, QrOptions, render};
use tokio::{sync::Semaphore, time::timeout};
use url::form_urlencoded;
use web::{Answer, TEXT, answer, charge, visitor_page::VisitorPage};

use crate::{
    Redirector, ThreadContext, Visitor,
    asked::Asked,
    fallback_page::{refused, too_much, unavailable},
    follow::{check_live, find},
    request::{host, path_before},
};

/// The maximum number of QR codes that are drawn at a time.
const AT_ONCE: usize = 2;
/// The header that says why many readers may fail to read the code.
const WARNING: HeaderName = HeaderName::from_static("qr-code-warning");
/// The suffix of the path, after the code or slug.
pub const SUFFIX: &str = "/qr-code";
/// The longest time that a QR code waits to be drawn.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The limits of QR codes: those under way, and the rate of each client.
pub struct QrCodeLimits {
    rate: Rate,
    under_way: Arc<Pool>,
    turns: Arc<Semaphore>,
}

impl Default for QrCodeLimits {
    fn default() -> Self {
        Self {
            rate: Rate::new(QR_CODES_PER_MINUTE),
            under_way: Pool::of_clients(QR_CODES),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }
}

/// Answers with the QR code of a link. It encodes the short URL of the link's own domain and name.
pub async fn draw(thread: &ThreadContext, visitor: Visitor, request: &Request<Incoming>) -> Answer {
    let redirector = &thread.redirector;
    let qr_codes = &redirector.qr_codes;
    if let Err(wait) = qr_codes.rate.spend(network(visitor.client)) {
        return refused(VisitorPage::TooMuch, wait);
    }
    let _place = match qr_codes.under_way.take(Account::client(visitor.client), 1) {
        Ok(place) => place,
        Err(spent) => return too_much(redirector, spent),
    };
    let path = path_before(request.uri().path(), SUFFIX).unwrap_or_default();
    let asked = Asked::name(visitor.client, path, host(request));
    let found = match find(redirector, &asked).await {
        Ok(found) => found,
        // A request for a QR code is no visit.
        Err(refusal) => return *refusal.answer,
    };
    // A link that does not redirect yet gets a QR code: a campaign is printed before it begins.
    let now = redirector.domain_cache.now();
    if found.link.state(now).is_over()
        && let Err(refusal) = check_live(redirector, &found, now, &asked)
    {
        return *refusal.answer;
    }
    let Some(name) = redirector.lookup.name_of(&found.link) else { return unavailable(redirector) };
    let pairs = form_urlencoded::parse(request.uri().query().unwrap_or("").as_bytes());
    let is_download = pairs.clone().any(|(name, _)| name == "download");
    let options = match QrOptions::read(pairs) {
        Ok(options) => options,
        Err(error) => return wrong(error),
    };
    // QR code readers guess the encoding of non-ASCII letters. In a URL all of them can be
    // percent-encoded.
    let short_url = location(&format!("{}/{name}", redirector.domain_cache.base(found.link.domain())));
    let warning = options.warning();
    match paint(redirector, short_url, options).await {
        Some(Ok(Image { bytes, content_type })) => {
            let mut picture = answer(StatusCode::OK, content_type, bytes);
            let headers = picture.headers_mut();
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("public,max-age=3600"));
            if let Some(warning) = warning {
                headers.insert(WARNING, HeaderValue::from_static(warning));
            }
            if is_download && let Ok(file) = HeaderValue::try_from(file_of(&name, content_type)) {
                headers.insert(CONTENT_DISPOSITION, file);
            }
            match charge(&redirector.budgets, Account::client(visitor.client), &mut picture) {
                Ok(()) => picture,
                Err(spent) => too_much(redirector, spent),
            }
        }
        Some(Err(error)) => wrong(error),
        None => unavailable(redirector),
    }
}

/// Returns the value of `Content-Disposition` for the QR code of a link: a file with its name, as
/// far as every file system takes that.
fn file_of(name: &str, content_type: &str) -> String {
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let plain: String = name.chars().map(|letter| if is_plain(&letter) { letter } else { '-' }).collect();
    let ending = if content_type.contains("svg") { "svg" } else { "png" };
    format!("attachment; filename=\"qr-code-{plain}.{ending}\"")
}

/// Renders a QR code on a blocking thread. Returns `None` if its turn does not come within
/// [`WAIT_MAX`], or if the rendering fails to run to its end.
async fn paint(
    redirector: &Arc<Redirector>,
    text: String,
    options: QrOptions,
) -> Option<Result<Image, QrError>> {
    let turn = timeout(WAIT_MAX, Arc::clone(&redirector.qr_codes.turns).acquire_owned()).await.ok()?.ok()?;
    let logo = redirector.logo.clone();
    let painted = redirector.runtime.spawn_blocking(move || {
        let _turn = turn;
        render(&text, &options, logo.as_deref())
    });
    painted.await.ok()
}

fn wrong(error: QrError) -> Answer {
    answer(StatusCode::BAD_REQUEST, TEXT, format!("{error}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_name_of_its_link() {
        let file = |name: &str| file_of(name, "image/svg+xml");
        assert_eq!(file("aB3x9Q"), "attachment; filename=\"qr-code-aB3x9Q.svg\"");
        assert_eq!(file("a/b \"c\"\n"), "attachment; filename=\"qr-code-a-b--c--.svg\"");
        assert!(file_of("a", "image/png").ends_with(".png\""));
    }
}
