//! What a person has chosen for all pages: language and colours. Without a choice the browser's
//! own decides.

use hyper::{
    HeaderMap, StatusCode,
    header::{ACCEPT_LANGUAGE, HeaderValue},
};
use web::Answer;

use crate::{
    Renderer,
    answer::{redirect, same_site_path},
    cookies::{self, cookie},
    form::Form,
    locale::Locale,
};

/// The address that stores a choice and leads back.
pub(crate) const PATH: &str = "/_pages/preferences";
const LANGUAGE: &str = "language";
const COLOURS: &str = "colours";
const YEAR: u64 = 365 * 24 * 3600;

/// Light or dark colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Colours {
    /// As the system has them.
    #[default]
    System,
    Light,
    Dark,
}

impl Colours {
    /// Returns the value of the attribute `data-colours`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        [Self::System, Self::Light, Self::Dark].into_iter().find(|colours| colours.name() == name)
    }
}

/// The choices of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preferences<'a> {
    pub(crate) locale: &'a Locale,
    pub(crate) colours: Colours,
}

impl<'a> Preferences<'a> {
    /// Reads the choices from the cookies, and else the language from `Accept-Language`.
    pub(crate) fn of(renderer: &'a Renderer, headers: &HeaderMap) -> Self {
        let chosen = cookie(headers, LANGUAGE).and_then(|tag| renderer.locales.find(tag));
        let accepted = || {
            let accepted = headers.get(ACCEPT_LANGUAGE).map_or(&b""[..], HeaderValue::as_bytes);
            renderer.locales.negotiate(&String::from_utf8_lossy(accepted))
        };
        let colours = cookie(headers, COLOURS).and_then(Colours::parse).unwrap_or_default();
        Self { locale: chosen.unwrap_or_else(accepted), colours }
    }
}

/// Stores a choice in cookies, and leads back to the page that it was made on. A GET may do this:
/// the choice is no secret, and changes nothing that others see.
pub(crate) fn choose(renderer: &Renderer, query: &Form, is_https: bool) -> Answer {
    let to = query.get("to").filter(|to| same_site_path(to)).unwrap_or("/");
    let mut answer = redirect(StatusCode::SEE_OTHER, to);
    if let Some(tag) = query.get(LANGUAGE).filter(|tag| renderer.locales.find(tag).is_some()) {
        cookies::set(&mut answer, cookies::Kind::Preference, (LANGUAGE, tag), YEAR, is_https);
    }
    if let Some(colours) = query.get(COLOURS).and_then(Colours::parse) {
        cookies::set(&mut answer, cookies::Kind::Preference, (COLOURS, colours.name()), YEAR, is_https);
    }
    answer
}
