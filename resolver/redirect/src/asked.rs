//! What of a request decides about its answer, and the steps of the decision.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard},
};

use agents::{is_crawler, is_unfurler};
use hyper::{
    Method, Request,
    header::{ACCEPT_LANGUAGE, USER_AGENT},
};
use jiff::Timestamp;
use links::{Finding, Link, Protocol, Step};

use crate::{
    Redirector, Visitor,
    request::{bytes, host},
};

/// The parts of a request, or of an example of one, that decide about its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// The scheme of the visitor's connection.
    pub(crate) scheme: Protocol,
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
    /// Where the steps of the decision about an example are noted. Those of a request are not even
    /// made.
    pub(crate) log: Option<&'a StepLog>,
}

impl<'a> Asked<'a> {
    pub(crate) fn of<B>(redirector: &Redirector, visitor: Visitor, request: &'a Request<B>) -> Self {
        let (uri, headers) = (request.uri(), request.headers());
        Self {
            scheme: visitor.scheme,
            query: uri.query().unwrap_or(""),
            user_agent: bytes(headers, &USER_AGENT).unwrap_or_default(),
            languages: bytes(headers, &ACCEPT_LANGUAGE).unwrap_or_default(),
            country: redirector.clients.country(visitor.peer, headers),
            is_head: *request.method() == Method::HEAD,
            is_deliberate: !matches!(*request.method(), Method::GET | Method::HEAD),
            ..Self::name(visitor.client, uri.path(), host(request))
        }
    }

    /// Asks for the link of a path, for any visitor.
    pub(crate) fn name(client: IpAddr, path: &'a str, host: Option<&'a str>) -> Self {
        Self {
            scheme: Protocol::Https,
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
            log: None,
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

    /// Returns whether the request gets the link's own preview in place of a redirect.
    pub(crate) fn unfurls(&self, link: &Link) -> bool {
        !self.is_deliberate && link.details().preview.is_some() && is_unfurler(self.user_agent)
    }

    /// Notes a step of the decision: its outcome, and what it is about.
    #[inline]
    pub(crate) fn step(&self, step: impl FnOnce() -> (Finding, String)) {
        if let Some(log) = self.log {
            let (finding, detail) = step();
            log.noted().steps.push(Step { finding, detail });
        }
    }

    /// Notes the link that was found.
    pub(crate) fn found(&self, link: &Arc<Link>) {
        if let Some(log) = self.log {
            log.noted().link = Some(Arc::clone(link));
        }
    }
}

/// Takes the steps of a decision while it is made.
#[derive(Debug, Default)]
pub(crate) struct StepLog(Mutex<Noted>);

/// The steps of a decision, and the link that was found.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    pub(crate) steps: Vec<Step>,
    pub(crate) link: Option<Arc<Link>>,
}

impl StepLog {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().expect("no code panics while it holds this lock")
    }

    pub(crate) fn into_noted(self) -> Noted {
        self.0.into_inner().expect("no code panics while it holds this lock")
    }
}
