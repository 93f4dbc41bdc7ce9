//! Frame of every page: head, navigation, footer.

use links::scope::Scope;

use crate::{
    Renderer, Theme,
    addresses::{CREATE, LINKS, STATISTICS, TAGS},
    locale::Locale,
    preferences::Preferences,
    request::PageRequest,
    session::Session,
};

/// The parts of the navigation that are in sight. Its menu has the others.
const IN_SIGHT: [&str; 4] = [CREATE, LINKS, STATISTICS, TAGS];

#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    renderer: &'a Renderer,
    pub(crate) theme: &'a Theme,
    pub(crate) t: &'a Locale,
    pub(crate) preferences: Preferences<'a>,
    session: Option<&'a Session>,
    /// The address of the part of the navigation that the page belongs to; empty for none.
    part: &'static str,
    /// The path and query that a choice of language or colours leads back to.
    back: &'a str,
}

impl<'a> Frame<'a> {
    pub(crate) fn new(request: &'a PageRequest<'_>, part: &'static str) -> Self {
        let frame = Self::of_visitor(&request.pages.renderer, request.preferences, request.back());
        Self { session: request.session.as_ref(), part, ..frame }
    }

    /// Makes the frame of a visitor's page, which has no navigation.
    pub(crate) fn of_visitor(renderer: &'a Renderer, preferences: Preferences<'a>, back: &'a str) -> Self {
        let (theme, t) = (&renderer.theme, preferences.locale);
        Self { renderer, theme, t, preferences, session: None, part: "", back }
    }

    pub(crate) fn asset(&self, name: &str) -> String {
        self.renderer.assets.url(name)
    }

    /// Returns whether there is a logo that can be part of a PNG.
    pub(crate) fn logo_is_png(&self) -> bool {
        self.theme.logo.as_ref().is_some_and(|logo| logo.starts_with("data:image/png"))
    }

    pub(crate) fn languages(&self) -> impl Iterator<Item = &'a Locale> {
        self.renderer.locales.0.iter().filter(move |locale| locale.tag != self.t.tag)
    }

    /// Returns where a choice leads back to, percent-encoded for a query.
    pub(crate) fn back(&self) -> String {
        url::form_urlencoded::byte_serialize(self.back.as_bytes()).collect()
    }

    pub(crate) fn signed_in(&self) -> Option<&str> {
        self.session.map(|session| &*session.grant.name)
    }

    fn allows(&self, scope: Scope) -> bool {
        self.session.is_some_and(|session| session.grant.scopes.allow(scope))
    }

    /// Returns whether the key of the session may see what concerns all links.
    pub(crate) fn is_operator(&self) -> bool {
        self.allows(Scope::Admin) && self.session.is_some_and(|session| !session.grant.limits.hide())
    }

    pub(crate) fn may_create(&self) -> bool {
        self.allows(Scope::Create)
    }

    pub(crate) fn may_read(&self) -> bool {
        self.allows(Scope::Read)
    }

    /// Returns whether the key may open the statistics, which offer tags and domains too.
    pub(crate) fn may_count(&self) -> bool {
        self.allows(Scope::Visits) && self.may_read()
    }

    pub(crate) fn may_reserve(&self) -> bool {
        self.allows(Scope::Reserve)
    }

    /// Returns whether the menu has any entry for the key.
    pub(crate) fn has_menu(&self) -> bool {
        self.may_create() || self.may_read() || self.may_reserve()
    }

    /// Returns the form token of the session; empty without one.
    pub(crate) fn form_token(&self) -> &str {
        self.session.map_or("", |session| &session.form_token)
    }

    /// Returns the value of the attribute `aria-current` of a part of the navigation.
    pub(crate) fn current(&self, part: &str) -> &'static str {
        if self.part == part { "page" } else { "false" }
    }

    /// Returns whether the page belongs to a part of the menu.
    pub(crate) fn is_in_admin(&self) -> bool {
        !self.part.is_empty() && !IN_SIGHT.contains(&self.part)
    }
}
