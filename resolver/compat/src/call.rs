//! One call: a call of the REST API, whose fields have other names.

use std::{net::IpAddr, sync::Arc};

use api::{
    Api,
    rest::{self, Problem},
};
use hyper::{Method, body::Incoming, header::CONTENT_TYPE, http::request::Parts};
use links::api_key::Grant;
use percent_encoding::percent_decode_str;

use crate::{
    failure::Failure,
    fields::{Fields, boundary},
};

/// Maximum length of a body in bytes. A client without a key may hold twice that, because the
/// fields are copies of it.
const BODY_BYTES: usize = 8 * 1024;

pub(crate) struct Call {
    pub(crate) http: rest::Call,
    pub(crate) query: Fields,
    pub(crate) body: Fields,
}

impl Call {
    pub(crate) fn new(api: &Arc<Api>, client: IpAddr, head: Parts) -> Self {
        let http = rest::Call::new(api, client, head);
        Self { query: Fields(http.query_fields()), body: Fields::default(), http }
    }

    pub(crate) fn api(&self) -> &Api {
        &self.http.api
    }

    /// Returns the text of a header; empty without it.
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.http.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().trim()
    }

    /// Returns what follows this beginning in the path, without a slash at its end.
    pub(crate) fn path_after(&self, beginning: &str) -> &str {
        let path = self.http.uri.path().trim_start_matches('/');
        let path = path.strip_prefix(beginning.trim_start_matches('/')).unwrap_or_default();
        path.strip_suffix('/').unwrap_or(path)
    }

    /// Returns the key of the call, once it was checked.
    pub(crate) fn by(&self) -> Result<&Grant, Failure> {
        Ok(self.http.by()?)
    }

    pub(crate) async fn authenticate(&self, key: &str) -> Result<(), Failure> {
        self.http.authenticate(Some(key.as_bytes())).await?;
        Ok(())
    }

    pub(crate) async fn read(&mut self, body: Incoming) -> Result<(), Failure> {
        self.http.read_body(body, BODY_BYTES).await?;
        // Some clients send a body with a GET, and mean nothing by it.
        if self.http.method == Method::GET {
            return Ok(());
        }
        self.body = match boundary(self.header(CONTENT_TYPE.as_str())) {
            Some(boundary) => Fields::of_parts(boundary, &self.http.body).ok_or(Problem::MalformedBody)?,
            None => Fields::of_json(self.http.body_fields()?),
        };
        Ok(())
    }

    /// Returns the failure of a call that there is not.
    pub(crate) fn no_route(&self) -> Failure {
        self.http.no_route().into()
    }
}

/// Decodes a part of a path.
pub(crate) fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
