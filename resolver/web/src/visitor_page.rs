//! Pages for visitors, in place of a redirect: what they say, not how.
//!
//! The crate `redirect` decides that a visitor gets a page, and marks the answer with it. The
//! listener has the page written in the visitor's language when the answer leaves, so that the
//! decision needs neither texts nor templates.

use hyper::{
    StatusCode,
    header::{CACHE_CONTROL, HeaderValue},
};

use crate::{Answer, empty};

/// Content of a page for visitors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VisitorPage {
    /// This is a short-link service.
    Home,
    /// There is no such link.
    NotFound,
    /// The link has expired.
    Expired,
    /// The link has led on as often as it may.
    Spent,
    /// The link was disabled or deleted.
    Gone,
    /// An operator has taken the link down.
    TakenDown,
    /// The link has a password.
    Password {
        /// Whether a wrong one was entered.
        is_wrong: bool,
    },
    /// Too many passwords were tried.
    TooManyTries,
    /// The link leads on only a limited number of times, and this request is no visit.
    Limited,
    /// The link leads on only a limited number of times, and the visitor has to confirm.
    Confirm,
    /// The link cannot be looked up right now.
    Unavailable,
    /// Too many requests came from here.
    TooMuch,
    /// Too many links that do not exist were asked for from here.
    SlowDown,
    /// Where a link leads, without following it.
    Preview(Box<LinkPreview>),
    /// What the crawler of a chat or a social network is to show of a link.
    SocialPreview(Box<SocialPreview>),
}

/// Content of the page for crawlers of chats and social networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocialPreview {
    /// The short URL.
    pub short_url: String,
    /// The title.
    pub title: String,
    /// The description.
    pub description: Option<String>,
    /// The URL of the picture.
    pub image: Option<String>,
}

/// Content of a link's preview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkPreview {
    /// The short URL.
    pub short_url: String,
    /// The target; `None` if only a password opens it, or if it depends on the visitor.
    pub target: Option<String>,
    /// Whether the target is not shown because of a password.
    pub has_password: bool,
    /// The title that the link's owner has given it.
    pub title: Option<String>,
    /// The day on which the link was created, as `2026-11-26`.
    pub created: String,
    /// The path that follows the link.
    pub path: String,
}

impl VisitorPage {
    /// Returns the name of the page in the API.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Home => "home",
            Self::NotFound => "not-found",
            Self::Expired => "expired",
            Self::Spent => "spent",
            Self::Gone => "gone",
            Self::TakenDown => "taken-down",
            Self::Password { .. } => "password",
            Self::TooManyTries => "too-many-tries",
            Self::Limited => "limited",
            Self::Confirm => "confirm",
            Self::Unavailable => "unavailable",
            Self::TooMuch => "too-much",
            Self::SlowDown => "slow-down",
            Self::Preview(_) => "preview",
            Self::SocialPreview(_) => "social-preview",
        }
    }

    /// Marks an answer of this status with the page. It is not stored: a link may redirect at any
    /// moment.
    pub fn answer(self, status: StatusCode) -> Answer {
        let mut answer = empty(status);
        answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        answer.extensions_mut().insert(self);
        answer
    }
}
