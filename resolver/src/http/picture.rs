//! QR codes of short links: `GET|HEAD /{code}/qr-code`. [`qr`] defines the options and draws them.
//!
//! Drawing takes milliseconds of a core, more than a thousand redirects do, and many times as long
//! for a long slug. So few are drawn at a time, off the listeners' threads, and each client has a
//! budget of them.

use std::{sync::Arc, time::Duration};

use daemon::network;
use hyper::{
    Request, StatusCode,
    body::Incoming,
    header::{CACHE_CONTROL, HeaderValue},
};
use links::location;
use qr::{Image, QrError, QrOptions, render};
use tokio::time::timeout;
use url::form_urlencoded;

use super::{
    Answer, App, Desk, Visitor, answer,
    budgets::Holder,
    pages,
    redirect::{find, host},
    stray::{busy, gone, too_much, unavailable},
};

/// The suffix of the path, after the code.
const BEHIND: &str = "/qr-code";
/// The longest wait for a permit to draw.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns the path of the link from the path of its QR code; `None` for any other path.
pub(super) fn link_of(path: &str) -> Option<&str> {
    path.strip_suffix(BEHIND).filter(|link| link.len() > 1)
}

/// Draws the QR code of the short URL that the path leads to.
pub(super) async fn draw(desk: &Desk, visitor: Visitor, request: &Request<Incoming>) -> Answer {
    let app = &desk.app;
    if let Err(wait) = app.budgets.picture_rate.spend(network(visitor.client), app.started.elapsed()) {
        return busy(wait);
    }
    let _place = match app.budgets.pictures.take(Holder::client(visitor.client), 1) {
        Ok(place) => place,
        Err(spent) => return too_much(app, spent),
    };
    let path = link_of(request.uri().path()).unwrap_or_default();
    let found = match find(app, visitor.client, path, host(request)).await {
        Ok(found) => found,
        Err(answer) => return answer,
    };
    // A link that is not live yet has a QR code, because a campaign is printed before it begins.
    if found.link.is_over(app.directory.now()) {
        return gone(app, &found.place, &found.wanted, path);
    }
    let Some(name) = app.lookup.name_of(&found.link) else { return unavailable(app) };
    let pairs = form_urlencoded::parse(request.uri().query().unwrap_or("").as_bytes());
    let options = match QrOptions::read(pairs) {
        Ok(options) => options,
        Err(error) => return wrong(error),
    };
    // QR readers guess the encoding of non-ASCII characters, so these are percent-encoded.
    let short_url = location(&format!("{}/{name}", app.directory.base(found.link.domain()))).into_owned();
    match paint(app, short_url, options).await {
        Some(Ok(Image { bytes, content_type })) => {
            let mut picture = answer(StatusCode::OK, content_type, bytes);
            picture.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public,max-age=3600"));
            match app.budgets.keep(Holder::client(visitor.client), &mut picture) {
                Ok(()) => picture,
                Err(spent) => too_much(app, spent),
            }
        }
        Some(Err(error)) => wrong(error),
        None => unavailable(app),
    }
}

/// Draws a QR code off the listener's thread. Returns `None` if no permit to draw became free in
/// time.
async fn paint(app: &Arc<App>, text: String, options: QrOptions) -> Option<Result<Image, QrError>> {
    let turn = timeout(PATIENCE, Arc::clone(&app.pictures).acquire_owned()).await.ok()?.ok()?;
    let painted = app.runtime.spawn_blocking(move || {
        let _turn = turn;
        render(&text, &options)
    });
    painted.await.ok()
}

fn wrong(error: QrError) -> Answer {
    answer(StatusCode::BAD_REQUEST, pages::TEXT, format!("{error}\n"))
}
