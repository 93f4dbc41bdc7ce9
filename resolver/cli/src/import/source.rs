//! Requests to a running Shlink, Kutt, YOURLS or Dub, and for short links there and here.

use std::{fmt, io, thread, time::Duration};

use clap::Args;
use daemon::Exit;
use serde_json::Value;
use tokio::task::spawn_blocking;
use transfer::{LinkPage, LiveSource, Source};
use ureq::{
    Agent, AsSendBody,
    http::{Request, header},
};
use url::{Url, form_urlencoded};

use crate::{
    Error,
    client::{self, Reply, address, agent, api_key},
    table::{cut, printable},
    wrong_value,
};

/// The time limit for one request.
const CALL_TIME: Duration = Duration::from_secs(60);
/// The pauses before the further tries, unless the server asks for longer ones.
const PAUSES: [Duration; 6] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(16),
];
/// The number of further tries for the first page, so that a mistyped address is reported soon, and
/// for a short link.
pub(super) const FEW_TRIES: usize = 2;
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
const ANSWER_BYTES: u64 = 64 * 1024 * 1024;
/// The maximum width of a reason, in cells.
const REASON_CELLS: usize = 300;

/// The running system to import from instead of a file.
#[derive(Clone, Args)]
pub struct SourceArgs {
    /// Address of a running server of the system to import from, such as https://s.example, instead
    /// of a file. Run it again after it was stopped or failed: what is here already is skipped, and
    /// nothing is imported twice.
    #[arg(long, value_name = "URL", conflicts_with = "file", requires = "source_key")]
    pub url: Option<String>,
    /// API key for --url: that of Shlink, Kutt or Dub, or the signature token of YOURLS. Pass it in
    /// the environment to hide it from other users of this machine.
    #[arg(long, env = "RESOLVER_SOURCE_KEY", hide_env_values = true, value_name = "KEY")]
    pub source_key: Option<String>,
    /// Domains of the other system that become the default domain here. Defaults to the host of
    /// --url.
    #[arg(long, value_name = "HOST[,HOST…]", value_delimiter = ',')]
    pub default_domain: Vec<String>,
}

impl SourceArgs {
    /// Returns the domains of the source that are the default domain here.
    pub(super) fn default_domains(&self, server: Option<&SourceServer>) -> Vec<String> {
        match server {
            Some(server) if self.default_domain.is_empty() => vec![host(&server.url)],
            _ => self.default_domain.clone(),
        }
    }
}

impl fmt::Debug for SourceArgs {
    /// Formats the arguments without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceArgs").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A failed request to the source.
#[derive(Debug, thiserror::Error)]
#[error("{asked} of {url}: {reason}")]
pub(super) struct SourceError {
    asked: String,
    url: String,
    reason: String,
    exit: Exit,
}

impl From<SourceError> for Error {
    fn from(error: SourceError) -> Self {
        Self::Failed("--url".to_owned(), error.exit, error.into())
    }
}

impl From<SourceError> for io::Error {
    fn from(error: SourceError) -> Self {
        Self::other(error)
    }
}

/// The server of the source.
#[derive(Clone)]
pub(super) struct SourceServer {
    agent: Agent,
    pub(super) url: Url,
    pub(super) source: LiveSource,
    key: String,
}

impl SourceServer {
    /// Returns the server that the arguments name; `None` if they name a file.
    pub(super) fn new(args: &SourceArgs, from: Source) -> Result<Option<Self>, Error> {
        let Some(url) = &args.url else { return Ok(None) };
        let url = address("--url", url)?;
        let source = LiveSource::new(from)
            .ok_or_else(|| wrong_value("--from", from, "expected shlink, kutt, yourls or dub with --url"))?;
        let key = api_key("--source-key", args.source_key.as_deref().unwrap_or_default())?;
        Ok(Some(Self { agent: agent(&url), url, source, key }))
    }

    /// Requests the next page, after this number of pages and of links on them.
    pub(super) fn page(&self, (pages, links): (u64, u64)) -> Result<LinkPage, SourceError> {
        let asked = format!("page {} (after {links} links)", pages + 1);
        let tries = if pages == 0 { FEW_TRIES } else { PAUSES.len() };
        let path = self.source.page_path(pages, links);
        self.read(asked, &path, tries, |page| self.source.read_page(page))
    }

    /// Requests the number of links of a source whose pages do not have it.
    pub(super) fn count(&self) -> Result<u64, SourceError> {
        let path = self.source.count_path().unwrap_or_default();
        self.read("the number of links".to_owned(), &path, FEW_TRIES, |count| count.as_u64())
    }

    /// Requests a path, and returns what `read` finds in the response.
    pub(super) async fn get<T: Send + 'static>(
        &self,
        asked: String,
        path: String,
        read: impl FnOnce(Value) -> Option<T> + Send + 'static,
    ) -> Result<T, Error> {
        let server = self.clone();
        apart(move || server.read(asked, &path, PAUSES.len(), read)).await
    }

    fn read<T>(
        &self,
        asked: String,
        path: &str,
        tries: usize,
        read: impl FnOnce(Value) -> Option<T>,
    ) -> Result<T, SourceError> {
        let answer = self.ask(&asked, path, tries)?;
        let found = if answer.status == 200 { answer.json().and_then(read) } else { None };
        found.ok_or_else(|| self.refused(asked, &answer))
    }

    /// Adds the redirect rules to a link that has some.
    pub(super) fn add_rules(&self, item: &mut Value) -> Result<(), SourceError> {
        let Some(path) = self.source.rules_path(item) else { return Ok(()) };
        let code = cut(&printable(&item["shortCode"].to_string()), REASON_CELLS);
        let asked = format!("the redirect rules of {code}");
        let answer = self.ask(&asked, &path, PAUSES.len())?;
        let is_added = match answer.status {
            // The link was deleted meanwhile. It is stored without its rules, and reported.
            404 => true,
            200 => answer.json().is_some_and(|rules| LiveSource::add_rules(item, rules)),
            _ => false,
        };
        if is_added { Ok(()) } else { Err(self.refused(asked, &answer)) }
    }

    fn ask(&self, asked: &str, path: &str, tries: usize) -> Result<Reply, SourceError> {
        let url = format!("{}{path}", self.url.as_str().trim_end_matches('/'));
        let sent = patiently(tries, || match self.source {
            LiveSource::Yourls => {
                // In the body, because servers log URLs.
                let mut form = form_urlencoded::Serializer::new(String::new());
                let form = form.append_pair("signature", &self.key).finish();
                let request = Request::post(&url);
                let kind = "application/x-www-form-urlencoded";
                send(&self.agent, request.header(header::CONTENT_TYPE, kind).body(form)?)
            }
            LiveSource::Dub => {
                let key = format!("Bearer {}", self.key);
                send(&self.agent, Request::get(&url).header(header::AUTHORIZATION, key).body(())?)
            }
            LiveSource::Shlink | LiveSource::Kutt => {
                send(&self.agent, Request::get(&url).header("X-Api-Key", &self.key).body(())?)
            }
        });
        sent.map_err(|error| {
            let reason = format!("no answer: {}", cut(&printable(&error.to_string()), REASON_CELLS));
            self.error(asked.to_owned(), reason, Exit::Unavailable)
        })
    }

    pub(super) fn error(&self, asked: String, reason: String, exit: Exit) -> SourceError {
        SourceError { asked, url: self.url.to_string(), reason, exit }
    }

    /// Returns the error for a response that is not the requested data.
    fn refused(&self, asked: String, answer: &Reply) -> SourceError {
        let told = answer.json().unwrap_or_default();
        let places = ["/detail", "/error", "/message", "/title", "/error/message"];
        let told = places.into_iter().find_map(|place| told.pointer(place)?.as_str());
        let (text, exit) = match answer.status {
            200 => ("not a response of the system in --from: check --from and --url", Exit::Config),
            300..=399 => (answer.location.as_deref().unwrap_or_default(), Exit::Config),
            429 | 500.. => (told.unwrap_or_default(), Exit::Unavailable),
            _ => (told.unwrap_or("check --url and --source-key"), Exit::Config),
        };
        let reason = format!("{} {}", answer.status, cut(&printable(text), REASON_CELLS));
        self.error(asked, reason.trim_end().to_owned(), exit)
    }
}

/// Runs a blocking request on a thread outside the runtime.
pub(super) async fn apart<T: Send + 'static>(
    wait: impl FnOnce() -> Result<T, SourceError> + Send + 'static,
) -> Result<T, Error> {
    let waited = spawn_blocking(wait).await;
    Ok(waited.map_err(|_| Error::TaskFailed("source of the import"))??)
}

/// Returns the host of an address, with its port if it has one.
pub(super) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Sends a request, and retries it this many times while a retry may help.
pub(super) fn patiently(
    tries: usize,
    mut send: impl FnMut() -> Result<Reply, ureq::Error>,
) -> Result<Reply, ureq::Error> {
    let mut pauses = PAUSES.iter().take(tries);
    loop {
        let sent = send();
        let Some(pause) = pauses.next().filter(|_| may_change(&sent)) else { return sent };
        let wait = sent.ok().and_then(|answer| answer.wait).unwrap_or_default();
        thread::sleep(wait.clamp(*pause, LONGEST_PAUSE));
    }
}

/// Returns whether a retry may have another outcome.
fn may_change(sent: &Result<Reply, ureq::Error>) -> bool {
    match sent {
        Ok(answer) => answer.status == 429 || answer.status >= 500,
        Err(error) => {
            !matches!(error, ureq::Error::Http(_) | ureq::Error::BadUri(_) | ureq::Error::BodyExceedsLimit(_))
        }
    }
}

/// Sends a request once.
pub(super) fn send(agent: &Agent, request: Request<impl AsSendBody>) -> Result<Reply, ureq::Error> {
    client::send(agent, request, CALL_TIME, ANSWER_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_tried_again_if_the_server_may_answer_otherwise() {
        for (status, again) in [(200, false), (302, false), (401, false), (429, true), (500, true)] {
            let answer = Reply { status, location: None, wait: None, count: None, body: Vec::new() };
            assert_eq!(may_change(&Ok(answer)), again, "{status}");
        }
        assert!(may_change(&Err(ureq::Error::ConnectionFailed)));
        assert!(!may_change(&Err(ureq::Error::BodyExceedsLimit(1))));
    }

    #[test]
    fn arguments_that_cannot_be_are_refused_and_no_secret_is_shown() {
        let args = |url: &str, key: &str| SourceArgs {
            url: Some(url.to_owned()),
            source_key: Some(key.to_owned()),
            default_domain: Vec::new(),
        };
        for (url, key, from, part) in [
            ("old.example", "k", Source::Shlink, "--url old.example: expected"),
            ("https://me:s3cret@old.example", "k", Source::Shlink, "--url (hidden)"),
            ("https://old.example", "k", Source::Bitly, "--from bitly: expected shlink, kutt, yourls or dub"),
            ("https://old.example", "s3cret ü", Source::Kutt, "--source-key (hidden)"),
            ("https://old.example", "", Source::Yourls, "--source-key (hidden)"),
        ] {
            let error = SourceServer::new(&args(url, key), from).err().unwrap().to_string();
            assert!(error.contains(part) && !error.contains("s3c"), "{error}");
        }
        let shown = format!("{:?}", args("https://old.example", "s3cret"));
        assert!(shown.contains("old.example") && !shown.contains("s3c"), "{shown}");
    }
}
