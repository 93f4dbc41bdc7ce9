//! What of a request decides about its answer, and who learns of the steps of the decision.

use std::{net::IpAddr, sync::Arc};

use agents::is_crawler;
use hyper::{
    Method, Request,
    header::{ACCEPT_LANGUAGE, USER_AGENT},
};
use jiff::Timestamp;
use links::{Finding, Link};

use crate::{
    Redirector, Visitor,
    request::{bytes, host},
};

/// The parts of a request, or of an example of one, that decide about its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) client: IpAddr,
    pub(crate) host: Option<&'a str>,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) user_agent: &'a [u8],
    pub(crate) languages: &'a [u8],
    /// The country that a proxy names.
    pub(crate) country: Option<&'a str>,
    pub(crate) is_head: bool,
    /// Whether the method is neither GET nor HEAD, with which programs open links ahead.
    pub(crate) is_deliberate: bool,
    /// The moment of an example; `None` for now.
    pub(crate) at: Option<Timestamp>,
}

impl<'a> Asked<'a> {
    pub(crate) fn of<B>(redirector: &Redirector, visitor: Visitor, request: &'a Request<B>) -> Self {
        let (uri, headers) = (request.uri(), request.headers());
        Self {
            query: uri.query().unwrap_or(""),
            user_agent: bytes(headers, &USER_AGENT).unwrap_or_default(),
            languages: bytes(headers, &ACCEPT_LANGUAGE).unwrap_or_default(),
            country: redirector.clients.country(visitor.peer, headers),
            is_head: *request.method() == Method::HEAD,
            is_deliberate: !matches!(*request.method(), Method::GET | Method::HEAD),
            ..Self::name(visitor.client, uri.path(), host(request))
        }
    }

    /// Asks for the link of a path, whoever the visitor is.
    pub(crate) fn name(client: IpAddr, path: &'a str, host: Option<&'a str>) -> Self {
        Self {
            client,
            host,
            path,
            query: "",
            user_agent: b"",
            languages: b"",
            country: None,
            is_head: false,
            is_deliberate: false,
            at: None,
        }
    }

    pub(crate) fn now(&self, redirector: &Redirector) -> Timestamp {
        self.at.unwrap_or_else(|| redirector.domain_cache.now())
    }

    /// Returns whether a request is a look at the link, by a crawler or for the preview of a chat,
    /// and not a visit. A look at a link with a visit limit does not get the link's target: it uses
    /// up no visit, and any client can claim to be a preview.
    pub(crate) fn is_look(&self) -> bool {
        self.is_head || is_crawler(self.user_agent)
    }
}

/// Learns of the steps of a decision.
pub(crate) trait Trace {
    /// Notes a step: its outcome, and what it is about.
    fn step(&mut self, step: impl FnOnce() -> (Finding, String));
    /// Notes the link that was found.
    fn found(&mut self, link: &Arc<Link>);
}

/// Redirects note nothing, and the steps are not even made.
impl Trace for () {
    #[inline]
    fn step(&mut self, _: impl FnOnce() -> (Finding, String)) {}

    #[inline]
    fn found(&mut self, _: &Arc<Link>) {}
}
