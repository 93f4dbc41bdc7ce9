//! The input of a handler of a page for sessions: the request, its session, and the use cases.

use std::pin::Pin;

use app::{LinkService, find_link::LinkName};
use askama::Template;
use hyper::StatusCode;
use links::{api_key::Grant, scope::Scope};
use web::Answer;

use crate::{
    Pages, answer, error::PageError, form::Form, frame::Frame, locale::Locale, request::PageRequest,
    session::Session,
};

/// The answer of a handler. It is boxed, so that the task of a request is not as large as its
/// largest handler.
pub(crate) type Answering<'a> = Pin<Box<dyn Future<Output = Result<Answer, PageError>> + Send + 'a>>;

#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) pages: &'a Pages,
    pub(crate) request: &'a PageRequest<'a>,
    pub(crate) session: &'a Session,
    pub(crate) by: &'a Grant,
    pub(crate) links: &'a LinkService,
    pub(crate) t: &'a Locale,
    pub(crate) query: &'a Form,
    pub(crate) form: &'a Form,
}

impl<'a> Context<'a> {
    pub(crate) fn new(request: &'a PageRequest<'a>) -> Result<Self, PageError> {
        let session = request.session.as_ref().ok_or(PageError::NoSession)?;
        Ok(Self {
            pages: request.pages,
            request,
            session,
            by: &session.grant,
            links: &request.pages.api.links,
            t: request.preferences.locale,
            query: &request.query,
            form: &request.form,
        })
    }

    pub(crate) fn allows(&self, scope: Scope) -> bool {
        self.by.scopes.allow(scope)
    }

    pub(crate) fn link_name(&self, name: &str) -> LinkName {
        LinkName { code: name.to_owned(), domain: self.query.owned("domain") }
    }

    /// Makes the frame of an answer; `part` is the address of its part of the navigation.
    pub(crate) fn frame(&self, part: &'static str) -> Frame<'a> {
        Frame::new(self.request, part)
    }

    pub(crate) fn page(&self, status: StatusCode, page: &impl Template) -> Answer {
        answer::page(&self.pages.renderer, status, page)
    }
}
