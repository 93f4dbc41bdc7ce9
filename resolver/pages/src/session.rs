//! Sessions: browsers that are signed in with an API key.
//!
//! 1. The cookie has a random token of 256 bits. The database has its hash, the key and the number
//!    of the key's secret. So a copy of the database opens no session.
//! 2. Every request asks for the session anew, with answers of at most a second ago
//!    (`app::key_ring`). So it ends with its key on every process.
//! 3. The form token is derived from the token. Pages show it, and it opens nothing.
//! 4. It is also the key of MACs in addresses. So a session tells what its own forms have written
//!    there from what another person has.

use std::time::Duration;

use codes::hex;
use hmac::{Hmac, KeyInit as _, Mac as _};
use links::{
    SessionHash,
    api_key::{Grant, random_hex},
};
use sha2::{Digest as _, Sha256};
use web::Answer;

use crate::{
    Pages,
    cookies::{self, cookie},
    error::PageError,
    request::PageRequest,
};

/// The cookie, without and with HTTPS. With the prefix, no other host can set it (RFC 6265bis).
const COOKIE: &str = "shortmint_session";
const SECURE_COOKIE: &str = "__Host-shortmint_session";
/// The cookie with HTTPS below a path. The other services of the host do not get it; with the
/// prefix above, it would be sent to all of them.
const SECURE_COOKIE_BELOW: &str = "__Secure-shortmint_session";
const LASTS: Duration = Duration::from_secs(12 * 3600);
/// Length of a token, in bytes before and after it is written as text.
const TOKEN_BYTES: usize = 32;

#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) grant: Grant,
    pub(crate) form_token: String,
    hash: SessionHash,
}

impl Session {
    /// Finds the session of a request; an error if the database does not answer.
    pub(crate) async fn find(request: &PageRequest<'_>) -> Result<Option<Self>, PageError> {
        let pages = request.pages;
        let Some(token) = cookie(&request.head.headers, cookie_name(pages)).filter(|token| is_token(token))
        else {
            return Ok(None);
        };
        let hash = SessionHash::of(token.as_bytes());
        let found = api::find_session(&pages.api, request.client, hash.clone()).await?;
        Ok(found.map(|grant| Self { grant, form_token: form_token(token), hash }))
    }

    pub(crate) async fn open(pages: &Pages, grant: &Grant, answer: &mut Answer) -> Result<(), PageError> {
        let token = random_hex::<TOKEN_BYTES>().map_err(|_| app::AppError::Internal)?;
        let hash = SessionHash::of(token.as_bytes());
        let opened = pages.api.store.open_session(&hash, (grant.id, grant.secret), LASTS).await;
        opened.map_err(app::AppError::from)?;
        // A lookup of this token before could only have been a guess; it must not be believed now.
        pages.api.keys.sessions.forget(&hash);
        let (name, lasts) = (cookie_name(pages), LASTS.as_secs());
        cookies::set(answer, cookies::Kind::Secret, name, &token, lasts, pages.is_https());
        Ok(())
    }

    /// Returns the MAC of a text, in hexadecimal digits.
    pub(crate) fn mac(&self, text: &str) -> String {
        let key = self.form_token.as_bytes();
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
        mac.update(text.as_bytes());
        hex(&mac.finalize().into_bytes()[..16])
    }

    /// Ends the session, and removes its cookie. After an error the session may go on.
    pub(crate) async fn end(&self, pages: &Pages, answer: &mut Answer) -> Result<(), PageError> {
        pages.api.store.end_session(&self.hash).await.map_err(app::AppError::from)?;
        pages.api.keys.sessions.forget(&self.hash);
        cookies::set(answer, cookies::Kind::Secret, cookie_name(pages), "", 0, pages.is_https());
        Ok(())
    }
}

fn cookie_name(pages: &Pages) -> &'static str {
    let is_at_root = pages.api.domain_cache.config.public_url.path.is_empty();
    match (pages.is_https(), is_at_root) {
        (false, _) => COOKIE,
        (true, true) => SECURE_COOKIE,
        (true, false) => SECURE_COOKIE_BELOW,
    }
}

fn is_token(text: &str) -> bool {
    text.len() == 2 * TOKEN_BYTES && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn form_token(token: &str) -> String {
    let digest = Sha256::new_with_prefix(b"form token").chain_update(token).finalize();
    hex(&digest[..16])
}
