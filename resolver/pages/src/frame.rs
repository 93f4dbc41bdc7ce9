//! What surrounds every page: head, navigation, footer.

use links::scope::Scope;

use crate::{Renderer, locale::Locale, preferences::Preferences, request::PageRequest, session::Session};

/// A part of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Home,
    Links,
    Statistics,
    Tags,
    Domains,
    Bulk,
    Reservations,
    Targets,
    Keys,
    Audit,
    Cluster,
    /// A page outside the navigation.
    Elsewhere,
}

/// The frame of one page.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    renderer: &'a Renderer,
    /// The texts.
    pub(crate) t: &'a Locale,
    preferences: Preferences<'a>,
    session: Option<&'a Session>,
    place: Place,
    /// The path and query that a choice of language or colours leads back to.
    back: &'a str,
}

impl<'a> Frame<'a> {
    /// Makes the frame of the answer to a request.
    pub(crate) fn new(request: &'a PageRequest<'_>, session: Option<&'a Session>, place: Place) -> Self {
        let preferences = request.preferences;
        let back = request.back();
        Self { renderer: request.renderer, t: preferences.locale, preferences, session, place, back }
    }

    /// Makes the frame of a visitor's page, which has no navigation.
    pub(crate) fn of_visitor(renderer: &'a Renderer, preferences: Preferences<'a>, back: &'a str) -> Self {
        Self { renderer, t: preferences.locale, preferences, session: None, place: Place::Elsewhere, back }
    }

    /// Returns the address of a file.
    pub(crate) fn asset(&self, name: &str) -> String {
        self.renderer.assets.url(name)
    }

    /// Returns the name of the service.
    pub(crate) fn name(&self) -> &str {
        self.renderer.theme.name()
    }

    pub(crate) fn logo(&self) -> Option<&str> {
        self.renderer.theme.logo()
    }

    /// Returns whether there is a logo that can be part of a PNG.
    pub(crate) fn logo_is_png(&self) -> bool {
        self.logo().is_some_and(|logo| logo.starts_with("data:image/png"))
    }

    pub(crate) fn footer(&self) -> Option<&str> {
        self.renderer.theme.footer()
    }

    pub(crate) fn colours(&self) -> &'static str {
        self.preferences.colours
    }

    /// Returns the other languages.
    pub(crate) fn languages(&self) -> Vec<&'a Locale> {
        self.renderer.locales.all().iter().filter(|locale| locale.tag() != self.t.tag()).collect()
    }

    /// Returns where a choice leads back to, percent-encoded for a query.
    pub(crate) fn back(&self) -> String {
        url::form_urlencoded::byte_serialize(self.back.as_bytes()).collect()
    }

    /// Returns the name of the API key that is signed in.
    pub(crate) fn signed_in(&self) -> Option<&str> {
        self.session.map(|session| &*session.grant.name)
    }

    /// Returns whether the key of the session may see what concerns all links.
    pub(crate) fn is_operator(&self) -> bool {
        self.session
            .is_some_and(|session| session.grant.scopes.allow(Scope::Admin) && !session.grant.limits.hide())
    }

    /// Returns whether the key of the session may reserve codes.
    pub(crate) fn may_reserve(&self) -> bool {
        self.session.is_some_and(|session| session.grant.scopes.allow(Scope::Reserve))
    }

    /// Returns the form token of the session; empty without one.
    pub(crate) fn form_token(&self) -> &str {
        self.session.map_or("", |session| &session.form_token)
    }

    /// Returns the value of the attribute `aria-current` of a part of the navigation.
    pub(crate) fn current(&self, place: Place) -> &'static str {
        if self.place == place { "page" } else { "false" }
    }
}
