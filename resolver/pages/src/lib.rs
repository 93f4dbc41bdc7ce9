//! Web pages: the home page, the management pages, and what visitors see in place of a redirect.
//!
//! 1. Every page is written on the server and works without scripts. Scripts only add to it
//!    (copying, live counts). Nothing is loaded from another host, and nothing is inline
//!    (`answer.rs` has the policy).
//! 2. The pages are an adapter, as REST is: they read forms, call the use cases of the crate `app`
//!    with the grant of an API key, and show the result. Rules and permissions are not here.
//! 3. A signed-in browser has a session (`session.rs`), which ends on every process within a second
//!    of its key, its secret or its sign-out.
//! 4. A form changes something only if its page was served from here (`request.rs`).
//! 5. Texts are in `locales/`, one file for each language; colours, spacing and type at the top of
//!    `assets/style.css`. A template escapes every value, and only [`markup::Markup`] is not
//!    escaped, which no text of a user becomes.
//! 6. Visitors' pages ([`visitors`]) need neither the API nor a database, so that a process for
//!    redirects alone shows them too.
//!
//! Rejected: a client-side application. It would need a build step, show nothing without scripts,
//! and repeat the rules of the use cases.

mod addresses;
mod answer;
mod assets;
mod below;
mod chart;
mod cluster;
mod context;
mod cookies;
mod error;
mod form;
mod frame;
mod home;
mod link_input;
mod locale;
mod manage;
mod map;
mod markup;
mod messages;
mod preferences;
mod request;
mod router;
mod session;
mod sign_in;
mod table;
mod theme;
pub mod visitors;

use std::sync::Arc;

use api::Api;
use app::find_link::LinkName;
use jiff::Timestamp;
use limits::{Rate, budgets::CREATES_PER_MINUTE};
use links::Link;

pub use addresses::is_page;
pub use below::below;
pub use theme::Theme;

use assets::Assets;
use locale::Locales;

/// Renders every page, with its texts, its files and the operator's theme.
pub struct Renderer {
    locales: Locales,
    assets: Assets,
    theme: Theme,
    hsts: bool,
}

impl Renderer {
    /// Reads the texts and files that are part of the program.
    pub fn new(theme: Theme, hsts: bool) -> Self {
        let assets = Assets::new(&theme);
        Self { locales: Locales::embedded(), assets, theme, hsts }
    }
}

/// The pages that need the API.
pub struct Pages {
    renderer: Arc<Renderer>,
    api: Arc<Api>,
    public_create: bool,
    /// Creates without a key, by network.
    creates: Rate,
}

impl Pages {
    /// Creates the pages of an API. With `public_create`, the home page needs no key.
    pub fn new(renderer: Arc<Renderer>, api: Arc<Api>, public_create: bool) -> Self {
        Self { renderer, api, public_create, creates: Rate::new(CREATES_PER_MINUTE) }
    }

    fn short_url(&self, link: &Link) -> String {
        let name = self.api.lookup.name_of(link).unwrap_or_default();
        format!("{}/{name}", self.api.base(link.domain()))
    }

    fn name_of(&self, link: &Link) -> LinkName {
        let code = self.api.lookup.name_of(link).unwrap_or_default();
        LinkName { code, domain: self.api.domain_cache.shown_name(link.domain()) }
    }

    fn shown_time(&self, time: &Timestamp) -> String {
        time.to_zoned(self.api.time_zone.clone()).strftime("%Y-%m-%d %H:%M %Z").to_string()
    }

    /// Returns whether the public address of this service is HTTPS, so that cookies need it too.
    fn is_https(&self) -> bool {
        self.api.public_url.starts_with("https:")
    }
}
