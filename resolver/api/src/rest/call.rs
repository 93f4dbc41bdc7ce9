//! One request of the API: its key, its body, and the values that its handler works with. It knows
//! no route and no handler; `dispatch.rs` brings them together. The APIs of other shorteners (the
//! crate `compat`) admit their calls with it too.

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
};

use app::{FieldErrors, authorize::require, edit_link::Target, find_link::LinkName};
use hyper::{
    HeaderMap, Method, Uri,
    body::{Bytes, Incoming},
    header::{EXPECT, HeaderValue, IF_MATCH},
};
use links::{api_key::Grant, scope::Scope};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{
    body, form,
    problem::Problem,
    query::Query,
    read::{Fields, object, read_fields, read_query},
};
use crate::{
    Api,
    authenticate::{authenticate, check_again},
    calls::Share,
};
use limits::{Account, Held};
use web::{Answer, charge};

/// One request, its body read.
pub struct Call {
    /// The state of the API.
    pub api: Arc<Api>,
    /// The method.
    pub method: Method,
    /// Path and query.
    pub uri: Uri,
    /// The headers.
    pub headers: HeaderMap,
    /// The address of the client.
    pub client: IpAddr,
    /// The body; that of a form as JSON.
    pub body: Bytes,
    /// The first and the last parameter of the path, still percent-encoded: the same if there is
    /// one only, and empty if there is none.
    pub(super) parameters: [String; 2],
    held: Option<Held>,
    /// The key, once it is known. The call keeps its place among those under way when its client
    /// has gone.
    key: OnceLock<(Grant, Held)>,
    /// The rest of the caller's rate, for the answer's headers.
    share: OnceLock<Share>,
}

impl Fields for dto::LinkQuery {}

impl Call {
    /// Makes a call of a request's head.
    pub fn new(api: &Arc<Api>, client: IpAddr, head: hyper::http::request::Parts) -> Self {
        Self {
            api: Arc::clone(api),
            method: head.method,
            uri: head.uri,
            headers: head.headers,
            client,
            body: Bytes::new(),
            parameters: Default::default(),
            held: None,
            key: OnceLock::new(),
            share: OnceLock::new(),
        }
    }

    /// Reads the body, at most `limit` bytes of it, onto the memory account of the key, and checks
    /// the key again if that took its time. Before the key is known, the account is the client's.
    pub async fn read_body(&mut self, body: Incoming, limit: usize) -> Result<(), Problem> {
        let by = self.key.get().map(|(grant, _)| grant);
        let account = by.map_or_else(|| Account::client(self.client), |by| Account::Key(by.id.0));
        let mut held = self.api.budgets.bodies.take(account, 0)?;
        // Not before: of a slow database each call would ask once more.
        let begun = Instant::now();
        self.body = body::read(body, limit, &mut held).await?;
        if form::is_one(&self.headers, &self.body) {
            self.body = form::read(&self.body)?;
        }
        body::hold_values(&self.body, &mut held)?;
        self.held = Some(held);
        match self.key.get() {
            Some((by, _)) => Ok(check_again(&self.api, by, begun).await?),
            None => Ok(()),
        }
    }

    /// Takes the body off the client's account, once a key that came in the body was checked. The
    /// calls of keys are bounded by their number.
    pub fn release_body(&mut self) {
        self.held = None;
    }

    /// Leaves a body to the connection's end. A client that expects a go-ahead has not sent it.
    pub async fn leave_unread(&self, body: &mut Incoming) {
        if !self.headers.contains_key(EXPECT) {
            body::discard(body).await;
        }
    }

    /// Counts a long answer until it was sent. That of a write is sent in any case, so it takes the
    /// place of the body.
    pub fn keep(&mut self, answer: &mut Answer) -> Result<(), Problem> {
        let of_body = self.held.take();
        if matches!(self.method, Method::GET | Method::HEAD) {
            // Answers without a key are the same bytes for all.
            let Some((grant, _)) = self.key.get() else { return Ok(()) };
            return Ok(charge(&self.api.budgets, Account::Key(grant.id.0), answer)?);
        }
        if let Some(mut held) = of_body {
            let _ = held.grow_to(answer.body().len() as u64);
            answer.body_mut().held = Some(held);
        }
        Ok(())
    }

    /// Adds the caller's rate to the answer.
    pub fn finish(&self, mut answer: Answer) -> Answer {
        if let Some(share) = self.share.get() {
            share.tell(&mut answer);
        }
        answer
    }

    /// Returns the key of the header `X-Api-Key` if it has this scope. An empty header counts as
    /// none.
    pub(super) async fn authorize(&self, scope: Scope) -> Result<&Grant, Problem> {
        let key = self.headers.get("x-api-key").map(HeaderValue::as_bytes);
        self.authorize_key(key, scope).await
    }

    pub(super) async fn authorize_key(&self, key: Option<&[u8]>, scope: Scope) -> Result<&Grant, Problem> {
        let grant = self.authenticate(key).await?;
        require(grant, scope)?;
        Ok(grant)
    }

    /// Checks the key of the call once, within the limits on calls, and takes the call's place
    /// among those under way with it.
    pub async fn authenticate(&self, key: Option<&[u8]>) -> Result<&Grant, Problem> {
        if self.key.get().is_none() {
            let (grant, share) = authenticate(&self.api, self.client, key).await?;
            if let Some(share) = share {
                let _ = self.share.set(share);
            }
            let place = self.api.budgets.calls.take(Account::Key(grant.id.0), 1)?;
            let _ = self.key.set((grant, place));
        }
        self.by()
    }

    /// Returns the key that was checked.
    pub fn by(&self) -> Result<&Grant, Problem> {
        self.key.get().map(|(grant, _)| grant).ok_or(Problem::INTERNAL)
    }

    pub(super) fn parameter(&self) -> String {
        percent_decode_str(&self.parameters[0]).decode_utf8_lossy().into_owned()
    }

    pub(super) fn last_parameter(&self) -> String {
        percent_decode_str(&self.parameters[1]).decode_utf8_lossy().into_owned()
    }

    /// Reads the fields of the body. Wrong ones are in the second value.
    pub(super) fn fields<T: Fields>(&self) -> Result<(T, FieldErrors), Problem> {
        read_fields(&self.body)
    }

    /// Returns the fields of a body that is a JSON object, or a form; none of an empty body.
    pub fn body_fields(&self) -> Result<Map<String, Value>, Problem> {
        object(&self.body)
    }

    /// Returns the parameters of the query that are not blank.
    pub fn query_fields(&self) -> Map<String, Value> {
        Query::of(&self.uri).fields()
    }

    /// Reads the query. Wrong parameters are in the second value.
    pub(super) fn query<T: Fields>(&self) -> (T, FieldErrors) {
        read_query(&Query::of(&self.uri))
    }

    /// Returns the number that the last page of a list ended with, which is read backwards.
    pub(super) fn before(&self) -> Result<Option<i64>, Problem> {
        let query = Query::of(&self.uri);
        let number = query.text("before").map(str::parse).transpose();
        number.map_err(|_| Problem::invalid("before", "expected the number that the last page ended with"))
    }

    /// Returns the name of the link that the query addresses.
    pub(super) fn queried_link(&self) -> Result<LinkName, Problem> {
        let (dto::LinkQuery { short_code, domain }, mut wrong) = self.query();
        let expected = "expected the code or slug of a link in the query (?shortCode=…)";
        let code = short_code.ok_or_else(|| expected.to_owned());
        let code = wrong.note("shortCode", code).unwrap_or_default();
        wrong.finish()?;
        Ok(LinkName { code, domain })
    }

    /// Returns the name of the link that the path and the query address. A path that is not UTF-8
    /// addresses none.
    pub(super) fn link(&self) -> Result<LinkName, Problem> {
        let decoded = percent_decode_str(&self.parameters[0]);
        let is_text = decoded.clone().decode_utf8().is_ok();
        let domain = Query::of(&self.uri).text("domain").map(str::to_owned);
        let name = LinkName { code: decoded.decode_utf8_lossy().into_owned(), domain };
        if is_text { Ok(name) } else { Err(self.api.links.no_link(&name).into()) }
    }

    /// Returns the link that the call changes, with the versions of `If-Match` (RFC 9110): any
    /// without it, or for `*`. An entity tag of another form matches no version.
    pub(super) fn target(&self) -> Result<Target, Problem> {
        let lines: Vec<&[u8]> = self.headers.get_all(IF_MATCH).iter().map(HeaderValue::as_bytes).collect();
        let tags = lines.iter().flat_map(|line| line.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
        let is_any = lines.is_empty() || tags.clone().any(|tag| tag == b"*");
        let versions = (!is_any).then(|| tags.filter_map(version).collect());
        Ok(Target { name: self.link()?, versions })
    }

    /// Returns the problem of a call that there is not.
    pub fn no_route(&self) -> Problem {
        Problem::NoRoute { method: self.method.clone(), url: format!("{}{}", self.api.public_url, self.uri) }
    }
}

/// Returns the version that an entity tag of a link stands for.
fn version(tag: &[u8]) -> Option<u64> {
    std::str::from_utf8(tag).ok()?.strip_prefix('"')?.strip_suffix('"')?.parse().ok()
}
