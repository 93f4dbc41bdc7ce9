//! `GET|HEAD /{code}/track`: the tracking pixel of a link, an invisible image for pages and mail
//! that should count as visits of the link.
//!
//! 1. Every request gets the same answer, so it tells neither whether the link exists nor whether
//!    it has a password.
//! 2. A request for the pixel of a live link is a visit of the link without a redirect
//!    ([`Outcome::Tracked`]). Other requests are orphan visits, as those for a redirect are. Shlink
//!    records none of these; here they show that a mail names a code that does not exist.
//! 3. It uses up no visit of a link with a visit limit: the limit is on redirects, and a mail that
//!    is opened must not take the link from its reader. In Shlink it does, because Shlink compares
//!    the limit with the number of visits. Once the visits of a
//!    link are used up, its pixel counts as an orphan visit.
//! 4. A request whose link is not looked up, because the database does not answer or the client has
//!    requested too many unknown codes, is no visit.

use hyper::{
    Request, StatusCode,
    header::{CACHE_CONTROL, HeaderValue},
};
use visits::Outcome;
use web::{Answer, answer};

use crate::{
    ThreadContext, Visitor,
    asked::Asked,
    follow::{find, outcome_of},
    request::{host, path_before, request_head},
    visit::{Visit, note},
};

/// The suffix of the path, after the code or slug. No slug ends with it.
pub const SUFFIX: &str = "/track";
const GIF: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff\x21\xf9\x04\x01\0\0\0\0\
    \x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0\x3b";

/// Answers with the pixel, and records the visit.
pub async fn show<B>(thread: &ThreadContext, visitor: Visitor, request: &Request<B>) -> Answer {
    if let Some(visit) = count_as(thread, visitor, request).await {
        let now = thread.redirector.domain_cache.now();
        note(thread, visitor, &request_head(request), now, visit);
    }
    let mut pixel = answer(StatusCode::OK, "image/gif", GIF);
    // A cached pixel would hide the next visit.
    pixel.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    pixel
}

/// Returns what a request for a pixel counts as; `None` if that is unknown now.
async fn count_as<B>(
    thread: &ThreadContext,
    visitor: Visitor,
    request: &Request<B>,
) -> Option<Visit<'static>> {
    let redirector = &thread.redirector;
    let path = path_before(request.uri().path(), SUFFIX)?;
    let link = match find(redirector, &Asked::name(visitor.client, path, host(request))).await {
        Ok(found) => found.link,
        Err(refusal) => return refusal.visit,
    };
    let now = redirector.domain_cache.now();
    if let Some(outcome) = outcome_of(link.state(now)) {
        return Some(Visit::of(&link, outcome));
    }
    let is_spent = link.is_limited() && redirector.visit_limiter.is_spent(link.id).await.ok()?;
    let outcome = if is_spent { Outcome::LimitReached } else { Outcome::Tracked };
    Some(Visit::of(&link, outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_pixels_end_after_the_name_of_a_link() {
        for (path, link) in [
            ("/abc/track", Some("/abc")),
            ("/a/b/track", Some("/a/b")),
            ("/track/track", Some("/track")),
            ("/track", None),
            ("//track", None),
            ("/abc/track/", None),
            ("/abc/tracks", None),
            ("/abc/TRACK", None),
        ] {
            assert_eq!(path_before(path, SUFFIX), link, "{path}");
        }
    }

    #[test]
    fn the_picture_is_the_shortest_transparent_one_that_all_programs_read() {
        assert_eq!(GIF.len(), 43);
        assert_eq!((&GIF[..6], &GIF[6..10], GIF[42]), (&b"GIF89a"[..], &[1, 0, 1, 0][..], 0x3b));
        let (control, transparent) = (&GIF[19..22], GIF[25]);
        assert_eq!((control, GIF[22] & 1, transparent), (&[0x21, 0xf9, 4][..], 1, 0));
    }
}
