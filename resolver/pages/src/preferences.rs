//! A person's choices for all pages: language and colours. Without a choice the browser's own
//! decides.

use hyper::{
    HeaderMap, StatusCode,
    header::{ACCEPT_LANGUAGE, HeaderValue},
};
use web::Answer;

use crate::{
    Renderer,
    addresses::is_same_site,
    answer::redirect,
    cookies::{self, cookie},
    form::Form,
    locale::Locale,
};

/// The address that stores a choice and leads back.
pub(crate) const PATH: &str = "/_pages/preferences";
const LANGUAGE: &str = "language";
const COLOURS: &str = "colours";
const YEAR: u64 = 365 * 24 * 3600;

/// The values of the attribute `data-colours`. The first are those of the system.
const COLOUR_NAMES: [&str; 3] = ["system", "light", "dark"];

fn colours_of(name: &str) -> Option<&'static str> {
    COLOUR_NAMES.into_iter().find(|colours| *colours == name)
}

#[derive(Clone, Copy)]
pub(crate) struct Preferences<'a> {
    pub(crate) locale: &'a Locale,
    pub(crate) colours: &'static str,
}

impl<'a> Preferences<'a> {
    /// Reads the choices from the cookies, and else the language from `Accept-Language`.
    pub(crate) fn of(renderer: &'a Renderer, headers: &HeaderMap) -> Self {
        let chosen = cookie(headers, LANGUAGE).and_then(|tag| renderer.locales.find(tag));
        let accepted = || {
            let accepted = headers.get(ACCEPT_LANGUAGE).map_or(&b""[..], HeaderValue::as_bytes);
            renderer.locales.negotiate(&String::from_utf8_lossy(accepted))
        };
        let colours = cookie(headers, COLOURS).and_then(colours_of).unwrap_or(COLOUR_NAMES[0]);
        Self { locale: chosen.unwrap_or_else(accepted), colours }
    }
}

/// Stores a choice in cookies, and leads back to the page that it was made on. A GET may do this:
/// the choice is no secret, and changes nothing that others see.
pub(crate) fn choose(renderer: &Renderer, query: &Form, is_https: bool) -> Answer {
    let to = query.get("to").filter(|to| is_same_site(to)).unwrap_or("/");
    let mut answer = redirect(StatusCode::SEE_OTHER, to);
    if let Some(tag) = query.get(LANGUAGE).filter(|tag| renderer.locales.find(tag).is_some()) {
        cookies::set(&mut answer, cookies::Kind::Preference, LANGUAGE, tag, YEAR, is_https);
    }
    if let Some(colours) = query.get(COLOURS).and_then(colours_of) {
        cookies::set(&mut answer, cookies::Kind::Preference, COLOURS, colours, YEAR, is_https);
    }
    answer
}
