//! A client of a resolver's public API: creates links and follows them.

use anyhow::Context;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use crate::http::{Answer, text_field};

/// A client of one resolver's public listener, with an API key. Cheap to clone, so that every
/// client of a load has its own.
#[derive(Clone, Debug)]
pub struct Api {
    http: Client,
    url: String,
    key: String,
}

/// A created link, as the response describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// The short code.
    pub code: String,
    /// The short URL.
    pub short_url: String,
    /// The whole response body.
    pub json: Value,
}

impl Api {
    /// Creates a client of the listener at `url`, which has no trailing slash.
    pub fn new(http: &Client, url: String, key: String) -> Self {
        Self { http: http.clone(), url, key }
    }

    /// Returns a client of the same resolver with another API key.
    #[must_use]
    pub fn with_key(&self, key: &str) -> Self {
        Self { key: key.to_owned(), ..self.clone() }
    }

    /// Returns the root URL of the public listener, without a trailing slash.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the API key that creates are sent with.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the HTTP client, for requests that this type has no method for.
    pub fn http(&self) -> &Client {
        &self.http
    }

    /// Creates a link.
    ///
    /// # Errors
    /// Returns an error if there is no complete response, its status is not 2xx, or it lacks a
    /// field.
    pub async fn create(&self, long_url: &str) -> anyhow::Result<Created> {
        self.create_with(&json!({ "longUrl": long_url })).await
    }

    /// Creates a link from a request body with any fields of the API.
    ///
    /// # Errors
    /// Returns an error if there is no complete response, its status is not 2xx, or it lacks a
    /// field.
    pub async fn create_with(&self, request: &Value) -> anyhow::Result<Created> {
        let answer = self.try_create_with(request).await?.success();
        Created::read(&answer.with_context(|| format!("create {request}"))?)
    }

    /// Sends a create request and returns the response, whatever its status.
    ///
    /// # Errors
    /// Returns an error if there is no complete response. Then the link may or may not exist.
    pub async fn try_create(&self, long_url: &str) -> anyhow::Result<Answer> {
        self.try_create_with(&json!({ "longUrl": long_url })).await
    }

    /// Sends a create request with any fields of the API, like [`Self::try_create`].
    ///
    /// # Errors
    /// Returns an error if there is no complete response. Then the link may or may not exist.
    pub async fn try_create_with(&self, request: &Value) -> anyhow::Result<Answer> {
        Answer::to(self.post().header("X-Api-Key", &self.key).json(request)).await
    }

    /// Returns a create request without API key and body.
    pub fn post(&self) -> RequestBuilder {
        self.http.post(format!("{}/rest/v3/short-urls", self.url))
    }

    /// Requests a code and returns the status and the `Location` header, without following the
    /// redirect.
    ///
    /// # Errors
    /// Returns an error if there is no complete response.
    pub async fn follow(&self, code: &str) -> anyhow::Result<(u16, Option<String>)> {
        let answer = self.get(code).await?;
        Ok((answer.status, answer.header("location").map(str::to_owned)))
    }

    /// Sends a GET request for a path of the public listener, without an API key. The path has no
    /// leading slash.
    ///
    /// # Errors
    /// Returns an error if there is no complete response.
    pub async fn get(&self, path: &str) -> anyhow::Result<Answer> {
        Answer::to(self.http.get(format!("{}/{path}", self.url))).await
    }
}

impl Created {
    /// Parses the response to a create.
    ///
    /// # Errors
    /// Returns an error if the body is not JSON or lacks a field.
    pub fn read(answer: &Answer) -> anyhow::Result<Self> {
        let json = answer.json()?;
        Ok(Self { code: text_field(&json, "shortCode")?, short_url: text_field(&json, "shortUrl")?, json })
    }
}
