//! The server of a running Shlink, Kutt or YOURLS: requests of its API, and of short links there
//! and here.

use std::{fmt, io, thread, time::Duration};

use clap::Args;
use daemon::Exit;
use serde_json::Value;
use transfer::{LinkPage, LiveSource, Source};
use ureq::{
    Agent, AsSendBody,
    http::{Request, header},
};
use url::{Url, form_urlencoded};

use crate::{
    Error,
    client::agent,
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

/// The running system that links are imported from in place of a file.
#[derive(Clone, Args)]
pub struct SourceArgs {
    /// Address of a running Shlink, Kutt or YOURLS, whose links are imported instead of a file.
    #[arg(long, value_name = "URL", conflicts_with_all = ["file", "name"])]
    pub url: Option<String>,
    /// API key for --url: that of Shlink or Kutt, or the signature token of YOURLS. Pass it in the
    /// environment to hide it from other users of this machine.
    #[arg(long, env = "RESOLVER_SOURCE_KEY", hide_env_values = true, value_name = "KEY")]
    pub source_key: Option<String>,
    /// Address of a running Shortmint on this database. When the import is done, each short link is
    /// requested from it and from --url, and links that lead elsewhere or nowhere are listed.
    #[arg(long, value_name = "URL", requires = "url")]
    pub verify: Option<String>,
}

impl fmt::Debug for SourceArgs {
    /// Formats the arguments without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, verify, source_key: _ } = self;
        f.debug_struct("SourceArgs").field("url", url).field("verify", verify).finish_non_exhaustive()
    }
}

/// Why an answer of the source did not come.
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

/// An answer to a request, whatever its status.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) location: Option<String>,
    /// The pause that the server asks for.
    wait: Option<Duration>,
    body: Vec<u8>,
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
            .ok_or_else(|| wrong_value("--from", from, "expected shlink, kutt or yourls with --url"))?;
        let key = args.source_key.clone().unwrap_or_default();
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            let expected = "expected the source's API key, such as in RESOLVER_SOURCE_KEY";
            return Err(wrong_value("--source-key", "(hidden)", expected));
        }
        Ok(Some(Self { agent: agent(&url), url, source, key }))
    }

    /// Requests the page that follows so many pages with so many links together.
    pub(super) fn page(&self, (pages, links): (u64, u64)) -> Result<LinkPage, SourceError> {
        let asked = format!("page {} (after {links} links)", pages + 1);
        let tries = if pages == 0 { FEW_TRIES } else { PAUSES.len() };
        let answer = self.ask(&asked, &self.source.page_path(pages, links), tries)?;
        let page = if answer.status == 200 { json(&answer) } else { None };
        match page.and_then(|page| self.source.read_page(page)) {
            Some(page) => Ok(page),
            None => Err(self.refused(asked, &answer)),
        }
    }

    /// Adds the redirect rules to a link that has some.
    pub(super) fn add_rules(&self, item: &mut Value) -> Result<(), SourceError> {
        let Some(path) = self.source.rules_path(item) else { return Ok(()) };
        let code = cut(&printable(&item["shortCode"].to_string()), REASON_CELLS);
        let asked = format!("the redirect rules of {code}");
        let answer = self.ask(&asked, &path, PAUSES.len())?;
        let is_added = match answer.status {
            // The link was deleted meanwhile. It is stored without its rules, which is reported.
            404 => true,
            200 => json(&answer).is_some_and(|rules| LiveSource::add_rules(item, rules)),
            _ => false,
        };
        if is_added { Ok(()) } else { Err(self.refused(asked, &answer)) }
    }

    fn ask(&self, asked: &str, path: &str, tries: usize) -> Result<Answer, SourceError> {
        let url = format!("{}{path}", self.url.as_str().trim_end_matches('/'));
        let sent = patiently(tries, || match self.source {
            LiveSource::Yourls => {
                // In the body, because servers write addresses into their logs.
                let mut form = form_urlencoded::Serializer::new(String::new());
                let form = form.append_pair("signature", &self.key).finish();
                let request = Request::post(&url);
                let kind = "application/x-www-form-urlencoded";
                send(&self.agent, request.header(header::CONTENT_TYPE, kind).body(form)?)
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

    fn error(&self, asked: String, reason: String, exit: Exit) -> SourceError {
        SourceError { asked, url: self.url.to_string(), reason, exit }
    }

    /// Returns the error for an answer without what was asked for.
    fn refused(&self, asked: String, answer: &Answer) -> SourceError {
        let told = json(answer).unwrap_or_default();
        let told = ["detail", "error", "message", "title"].into_iter().find_map(|name| told[name].as_str());
        let (text, exit) = match answer.status {
            200 => ("not what --from has: check --from and --url", Exit::Config),
            300..=399 => (answer.location.as_deref().unwrap_or_default(), Exit::Config),
            429 | 500.. => (told.unwrap_or_default(), Exit::Unavailable),
            _ => (told.unwrap_or("check --url and --source-key"), Exit::Config),
        };
        let reason = format!("{} {}", answer.status, cut(&printable(text), REASON_CELLS));
        self.error(asked, reason.trim_end().to_owned(), exit)
    }
}

/// Reads the address of a server.
pub(super) fn address(flag: &'static str, text: &str) -> Result<Url, Error> {
    let expected = "expected an address such as https://sho.rt, without a query or a password";
    let is_plain = |url: &Url| {
        let is_bare = url.query().is_none() && url.fragment().is_none();
        is_bare && url.username().is_empty() && url.password().is_none()
    };
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && is_plain(url));
    url.ok_or_else(|| wrong_value(flag, if text.contains('@') { "(hidden)" } else { text }, expected))
}

/// Returns the host of an address, with its port if it has one.
pub(super) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Sends a request until there is an answer that a later try would not change, at most so many
/// times more.
pub(super) fn patiently(
    tries: usize,
    mut send: impl FnMut() -> Result<Answer, ureq::Error>,
) -> Result<Answer, ureq::Error> {
    let mut pauses = PAUSES.iter().take(tries);
    loop {
        let sent = send();
        let Some(pause) = pauses.next().filter(|_| may_change(&sent)) else { return sent };
        let wait = sent.ok().and_then(|answer| answer.wait).unwrap_or_default();
        thread::sleep(wait.clamp(*pause, LONGEST_PAUSE));
    }
}

/// Returns whether another try may have another outcome.
fn may_change(sent: &Result<Answer, ureq::Error>) -> bool {
    match sent {
        Ok(answer) => answer.status == 429 || answer.status >= 500,
        Err(error) => {
            !matches!(error, ureq::Error::Http(_) | ureq::Error::BadUri(_) | ureq::Error::BodyExceedsLimit(_))
        }
    }
}

/// Sends a request once.
pub(super) fn send(agent: &Agent, request: Request<impl AsSendBody>) -> Result<Answer, ureq::Error> {
    let request = agent.configure_request(request).timeout_global(Some(CALL_TIME)).build();
    let mut response = agent.run(request)?;
    // Shlink sends the letters of a location as they are, and not escaped.
    let text = |name: header::HeaderName| {
        response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let wait = text(header::RETRY_AFTER).and_then(|wait| wait.parse().ok()).map(Duration::from_secs);
    let location = text(header::LOCATION);
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(ANSWER_BYTES).read_to_vec()?;
    Ok(Answer { status, location, wait, body })
}

fn json(answer: &Answer) -> Option<Value> {
    serde_json::from_slice(&answer.body).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_tried_again_if_the_server_may_answer_otherwise() {
        for (status, again) in [(200, false), (302, false), (401, false), (429, true), (500, true)] {
            let answer = Answer { status, location: None, wait: None, body: Vec::new() };
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
            verify: None,
        };
        for (url, key, from, part) in [
            ("old.example", "k", Source::Shlink, "--url old.example: expected"),
            ("https://me:s3cret@old.example", "k", Source::Shlink, "--url (hidden)"),
            ("https://old.example", "k", Source::Dub, "--from dub: expected shlink, kutt or yourls"),
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
