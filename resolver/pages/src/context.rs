//! What the handler of a page for sessions works with: the request, its session, and the use cases.

use std::{pin::Pin, sync::Arc};

use app::{LinkService, find_link::LinkName};
use askama::Template;
use hyper::StatusCode;
use jiff::Timestamp;
use links::{Link, api_key::Grant, scope::Scope};
use web::Answer;

use crate::{
    Pages, answer,
    error::PageError,
    form::Form,
    frame::{Frame, Place},
    locale::Locale,
    request::PageRequest,
    session::Session,
};

/// The answer of a handler. It is boxed, so that the task of a request is not as large as its
/// largest handler.
pub(crate) type Answering<'a> = Pin<Box<dyn Future<Output = Result<Answer, PageError>> + Send + 'a>>;

/// A request of a session.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) pages: &'a Arc<Pages>,
    pub(crate) request: &'a PageRequest<'a>,
    pub(crate) session: &'a Session,
}

impl<'a> Context<'a> {
    /// Returns the key of the session.
    pub(crate) fn by(&self) -> &'a Grant {
        &self.session.grant
    }

    /// Returns whether the key of the session has a scope.
    pub(crate) fn allows(&self, scope: Scope) -> bool {
        self.session.grant.scopes.allow(scope)
    }

    /// Returns the use cases.
    pub(crate) fn links(&self) -> &'a LinkService {
        &self.pages.api.links
    }

    /// Returns the texts.
    pub(crate) fn t(&self) -> &'a Locale {
        self.request.preferences.locale
    }

    /// Returns the fields of the query.
    pub(crate) fn query(&self) -> &'a Form {
        &self.request.query
    }

    /// Returns the fields of the form.
    pub(crate) fn form(&self) -> &'a Form {
        &self.request.form
    }

    /// Returns the link of this name, on the domain that the query names.
    pub(crate) fn link_name(&self, name: &str) -> LinkName {
        LinkName { code: name.to_owned(), domain: self.query().owned("domain") }
    }

    /// Returns the address of the page of a link.
    pub(crate) fn link_page(&self, link: &Link) -> String {
        self.pages.link_page(link)
    }

    /// Formats a time in the zone of the service.
    pub(crate) fn time(&self, time: Timestamp) -> String {
        self.pages.shown_time(time)
    }

    /// Makes the frame of the answer.
    pub(crate) fn frame(&self, place: Place) -> Frame<'a> {
        Frame::new(self.request, Some(self.session), place)
    }

    /// Answers with a page.
    pub(crate) fn page(&self, status: StatusCode, page: &impl Template) -> Answer {
        answer::page(self.request.renderer, status, answer::Forms::Stay, page)
    }
}
