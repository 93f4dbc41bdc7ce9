//! What everybody asks of a resolver: create a link and follow it.

use anyhow::Context;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use crate::http::{Answer, text_field};

/// The public listener of one resolver and a key for it. Cheap to clone, so that every client of a load has its own.
#[derive(Clone, Debug)]
pub struct Api {
    http: Client,
    url: String,
    key: String,
}

/// A link as its creator learns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// The code.
    pub code: String,
    /// The whole short link.
    pub short_url: String,
    /// The answer with all its fields.
    pub json: Value,
}

impl Api {
    /// `url` has no slash at its end.
    pub fn new(http: &Client, url: String, key: String) -> Self {
        Self { http: http.clone(), url, key }
    }

    /// The same resolver, asked with another key.
    #[must_use]
    pub fn with_key(&self, key: &str) -> Self {
        Self { key: key.to_owned(), ..self.clone() }
    }

    /// The root of the public listener, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The key that creates are sent with.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The HTTP client, for requests of the test's own.
    pub fn http(&self) -> &Client {
        &self.http
    }

    /// Creates a link.
    ///
    /// # Errors
    /// The answer is not a success, or lacks a field.
    pub async fn create(&self, long_url: &str) -> anyhow::Result<Created> {
        self.create_with(&json!({ "longUrl": long_url })).await
    }

    /// Creates a link from a request with any fields of the API.
    ///
    /// # Errors
    /// The answer is not a success, or lacks a field.
    pub async fn create_with(&self, request: &Value) -> anyhow::Result<Created> {
        let answer = self.try_create_with(request).await?.success();
        Created::read(&answer.with_context(|| format!("create {request}"))?)
    }

    /// Asks for a link and returns whatever is answered.
    ///
    /// # Errors
    /// There was no complete answer, so the link may exist or not.
    pub async fn try_create(&self, long_url: &str) -> anyhow::Result<Answer> {
        self.try_create_with(&json!({ "longUrl": long_url })).await
    }

    /// [`Self::try_create`] with any fields of the API.
    ///
    /// # Errors
    /// There was no complete answer, so the link may exist or not.
    pub async fn try_create_with(&self, request: &Value) -> anyhow::Result<Answer> {
        Answer::to(self.post().header("X-Api-Key", &self.key).json(request)).await
    }

    /// A request for a link that lacks key and body.
    pub fn post(&self) -> RequestBuilder {
        self.http.post(format!("{}/rest/v3/short-urls", self.url))
    }

    /// Asks for a code and returns the status and where it leads, without going there.
    ///
    /// # Errors
    /// There was no complete answer.
    pub async fn follow(&self, code: &str) -> anyhow::Result<(u16, Option<String>)> {
        let answer = self.get(code).await?;
        Ok((answer.status, answer.header("location").map(str::to_owned)))
    }

    /// Gets a path of the public listener, given without a slash at the front, and without a key.
    ///
    /// # Errors
    /// There was no complete answer.
    pub async fn get(&self, path: &str) -> anyhow::Result<Answer> {
        Answer::to(self.http.get(format!("{}/{path}", self.url))).await
    }
}

impl Created {
    /// Reads the answer to a create.
    ///
    /// # Errors
    /// The answer lacks a field.
    pub fn read(answer: &Answer) -> anyhow::Result<Self> {
        let json = answer.json()?;
        Ok(Self { code: text_field(&json, "shortCode")?, short_url: text_field(&json, "shortUrl")?, json })
    }
}
