//! The client of a running server's API, for `resolver link`, `domain`, `target`, `visits`,
//! `webhook` and `audit`. It makes one call at a time, limited in time and size, and retries only
//! calls that are safe to repeat.

mod problem;

use std::{io, time::Duration};

use daemon::Exit;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep};
use ureq::{
    Agent, AsSendBody, Body, Timeout,
    http::{Method, Request, Response, header, request},
};
use url::{Host, Url, form_urlencoded};

use self::problem::TEXT_CELLS;
use crate::{
    Error,
    args::{ServerArgs, ShowArgs, TableArgs},
    json_text,
    table::{List, cut, printable},
    wrong_value,
};

pub use self::problem::ClientError;
pub(crate) use self::problem::Reply;

const CONNECT_TIME: Duration = Duration::from_secs(5);
/// The time limit for a call including its retries.
const CALL_TIME: Duration = Duration::from_secs(30);
/// The time limit for the whole answer to a streamed call.
const STREAM_TIME: Duration = Duration::from_secs(12 * 60 * 60);
const ANSWER_BYTES: u64 = 16 * 1024 * 1024;
/// The pauses before each retry, unless the server asks for a longer one.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(1)];
/// The maximum length of a name in a path, in bytes before it is percent-encoded. The server knows
/// no longer one.
pub(super) const NAME_BYTES: usize = 1_024;
/// The maximum width of an argument in an error, in cells.
const ARGUMENT_CELLS: usize = 100;
/// The error text for a change without any flag.
pub(super) const NOTHING_TO_CHANGE: &str = "nothing to change: give at least one flag that says what";
/// The characters to percent-encode: all but the unreserved ones of RFC 3986.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The pairs of a query, not percent-encoded.
pub(super) type Query = Vec<(&'static str, String)>;

#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    /// The path after `/rest/v3/`, percent-encoded.
    pub(super) path: String,
    pub(super) query: Query,
    pub(super) body: Option<Value>,
    /// A header in addition to those of all calls.
    pub(super) header: Option<(&'static str, String)>,
    /// Whether the call is safe to repeat.
    pub(super) is_repeatable: bool,
}

impl Call {
    pub(super) fn read(path: String, query: Query) -> Self {
        Self { is_repeatable: true, ..Self::write(Method::GET, path, query) }
    }

    pub(super) fn write(method: Method, path: String, query: Query) -> Self {
        Self { method, path, query, body: None, header: None, is_repeatable: false }
    }

    /// Creates a call that changes something, with a body and without a query.
    pub(super) fn send(method: Method, path: String, body: Value) -> Self {
        Self { body: Some(body), ..Self::write(method, path, Vec::new()) }
    }
}

pub(super) fn maybe(name: &'static str, value: Option<impl ToString>) -> Query {
    value.map(|value| (name, value.to_string())).into_iter().collect()
}

pub(super) fn given<const COUNT: usize>(fields: [(&str, Option<Value>); COUNT]) -> Map<String, Value> {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Percent-encodes a text as one path segment. Returns `None` for a text that would change the
/// path: an empty or too long one, and `.` and `..`, which are removed on the way.
pub(super) fn segment(text: &str) -> Option<String> {
    let is_one = text.len() <= NAME_BYTES && !matches!(text, "" | "." | "..");
    is_one.then(|| utf8_percent_encode(text, ESCAPED).to_string())
}

/// Returns the error for an invalid argument: its name, its value cut to one line, and the expected
/// form.
pub(super) fn wrong(flag: &'static str, value: &str, expected: &str) -> Error {
    wrong_value(flag, cut(&printable(value), ARGUMENT_CELLS), expected)
}

/// Reads the address of a server.
pub(super) fn address(flag: &'static str, text: &str) -> Result<Url, Error> {
    let expected = "expected an address such as https://sho.rt, without a query or a password";
    let is_plain = |url: &Url| {
        let is_bare = url.query().is_none() && url.fragment().is_none();
        is_bare && url.username().is_empty() && url.password().is_none()
    };
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && is_plain(url));
    url.ok_or_else(|| wrong(flag, if text.contains('@') { "(hidden)" } else { text }, expected))
}

/// Returns an API key that a header can have.
pub(super) fn api_key(flag: &'static str, text: &str) -> Result<String, Error> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(wrong(flag, "(hidden)", "expected visible ASCII characters"));
    }
    Ok(text.to_owned())
}

#[derive(Clone)]
pub(super) struct Server {
    agent: Agent,
    /// The base URL, without a trailing slash.
    url: String,
    key: String,
}

impl Server {
    pub(super) fn new(args: &ServerArgs) -> Result<Self, Error> {
        let url = address("--server", &args.server)?;
        let key = api_key("--api-key", &args.api_key)?;
        Ok(Self { agent: agent(&url), url: url.as_str().trim_end_matches('/').to_owned(), key })
    }

    /// Makes a call as [`Self::reply`] does, and returns the body of the answer.
    pub(super) async fn call(&self, call: Call) -> Result<Vec<u8>, Error> {
        Ok(self.reply(call).await?.body)
    }

    /// Makes a call, with retries if it is repeatable and the error is temporary. Returns an answer
    /// with success.
    pub(super) async fn reply(&self, call: Call) -> Result<Reply, Error> {
        let until = Instant::now() + CALL_TIME;
        let mut pauses = PAUSES.iter().filter(|_| call.is_repeatable);
        loop {
            let within = until.saturating_duration_since(Instant::now());
            let (server, sent) = (self.clone(), call.clone());
            let exchanged = tokio::task::spawn_blocking(move || server.exchange(&sent, within)).await;
            let (error, wait) = match exchanged.map_err(|_| Error::TaskFailed("call"))? {
                Ok(answer) if (200..300).contains(&answer.status) => return Ok(answer),
                Ok(answer) => (answer.refusal(), answer.wait),
                Err(error) => (self.failure(error, &call), None),
            };
            let pause = pauses.next().map(|pause| wait.map_or(*pause, |wait| wait.max(*pause)));
            let left = until.saturating_duration_since(Instant::now());
            match pause.filter(|pause| error.exit() == Exit::Unavailable && *pause < left) {
                Some(pause) => sleep(pause).await,
                None => return Err(error.into()),
            }
        }
    }

    /// Makes a call, and parses the answer as JSON.
    pub(super) async fn ask(&self, call: Call) -> Result<Value, Error> {
        let body = self.call(call).await?;
        Ok(serde_json::from_slice(&body).map_err(|_| self.foreign())?)
    }

    /// Makes a call whose answer has the field at a JSON pointer, and formats the answer: as JSON
    /// if the arguments ask for it.
    pub(super) async fn show(
        args: &ShowArgs,
        call: Call,
        pointer: &str,
        format: impl FnOnce(&Value) -> String,
    ) -> Result<String, Error> {
        let server = Self::new(&args.server)?;
        let answer = server.ask(call).await?;
        if answer.pointer(pointer).is_none() {
            return Err(server.foreign().into());
        }
        Ok(if args.json { json_text::pretty(&answer) } else { format(&answer) })
    }

    /// Makes a call whose answer has a list, and formats it: as JSON if the arguments ask for it.
    pub(super) async fn list(args: &TableArgs, call: Call, list: &List) -> Result<String, Error> {
        Self::show(&args.show, call, list.at, |answer| list.format(answer, args.width)).await
    }

    /// Makes a call that only reads, without retries, and returns its answer as it arrives. Blocks
    /// the thread, as does the reader.
    pub(super) fn stream(&self, call: &Call) -> Result<impl io::Read + use<>, ClientError> {
        let failed = |error| self.failure(error, call);
        let request = self.request(call).body(()).map_err(|error| failed(error.into()))?;
        let config = self.agent.configure_request(request);
        let config = config.timeout_recv_response(Some(CALL_TIME)).timeout_recv_body(Some(STREAM_TIME));
        let response = self.agent.run(config.build()).map_err(failed)?;
        if response.status().is_success() {
            return Ok(response.into_body().into_reader());
        }
        Err(reply(response, ANSWER_BYTES).map_err(failed)?.refusal())
    }

    /// Returns the error for an answer that ended before it was complete.
    pub(super) fn broken_off(&self, error: &dyn std::error::Error) -> ClientError {
        ClientError::Unreachable(self.url.clone(), cut(&printable(&error.to_string()), TEXT_CELLS))
    }

    /// Returns the error for an answer in a form that a resolver would not send.
    pub(super) fn foreign(&self) -> ClientError {
        let problem = "its answer is not that of a Shortmint server: check the address";
        ClientError::Foreign(self.url.clone(), problem)
    }

    fn request(&self, call: &Call) -> request::Builder {
        let mut url = format!("{}/rest/v3/{}", self.url, call.path);
        if !call.query.is_empty() {
            url.push('?');
            url.push_str(&form_urlencoded::Serializer::new(String::new()).extend_pairs(&call.query).finish());
        }
        let mut request = Request::builder().method(&call.method).uri(url).header("X-Api-Key", &self.key);
        if let Some((name, value)) = &call.header {
            request = request.header(*name, value);
        }
        request
    }

    fn exchange(&self, call: &Call, within: Duration) -> Result<Reply, ureq::Error> {
        let request = self.request(call);
        match &call.body {
            Some(body) => {
                let request = request.header(header::CONTENT_TYPE, "application/json");
                send(&self.agent, request.body(body.to_string())?, within, ANSWER_BYTES)
            }
            None => send(&self.agent, request.body(())?, within, ANSWER_BYTES),
        }
    }

    fn failure(&self, error: ureq::Error, call: &Call) -> ClientError {
        let is_late = matches!(error, ureq::Error::Timeout(_));
        let never_came = match &error {
            ureq::Error::Http(_) | ureq::Error::BadUri(_) => {
                return ClientError::Unsendable(error.to_string());
            }
            ureq::Error::BodyExceedsLimit(_) => {
                let problem = "its answer has more than 16 MiB: ask for smaller pages";
                return ClientError::Foreign(self.url.clone(), problem);
            }
            ureq::Error::Io(error) => found_nobody(error),
            ureq::Error::Timeout(phase) => matches!(phase, Timeout::Resolve | Timeout::Connect),
            ureq::Error::HostNotFound | ureq::Error::ConnectionFailed | ureq::Error::Rustls(_) => true,
            _ => false,
        };
        let reason = match error {
            ureq::Error::Io(error) => printable(&error.to_string()),
            _ if is_late && never_came => format!("no connection within {} s", CONNECT_TIME.as_secs()),
            _ if is_late => format!("no answer within {} s", CALL_TIME.as_secs()),
            error => printable(&error.to_string()),
        };
        let mut reason = cut(&reason, TEXT_CELLS);
        if call.method != Method::GET && !never_came {
            reason.push_str("; whether the call was carried out is not known");
        }
        ClientError::Unreachable(self.url.clone(), reason)
    }
}

/// Sends a request once, and reads an answer with at most so many bytes.
pub(super) fn send(
    agent: &Agent,
    request: Request<impl AsSendBody>,
    within: Duration,
    most: u64,
) -> Result<Reply, ureq::Error> {
    let request = agent.configure_request(request).timeout_global(Some(within)).build();
    reply(agent.run(request)?, most)
}

fn reply(mut response: Response<Body>, most: u64) -> Result<Reply, ureq::Error> {
    // Shlink sends the letters of a location as they are, and not escaped.
    let text = |name: &str| {
        response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let wait = text(header::RETRY_AFTER.as_str()).and_then(|wait| wait.parse().ok()).map(Duration::from_secs);
    let location = text(header::LOCATION.as_str());
    let count = text("x-total-count").and_then(|count| count.parse().ok());
    let body = response.body_mut().with_config().limit(most).read_to_vec()?;
    Ok(Reply { status: response.status().as_u16(), location, wait, count, body })
}

/// Returns whether an error shows that there was no connection at all. If that is uncertain,
/// returns false.
fn found_nobody(error: &io::Error) -> bool {
    // An unknown host name has no error kind of its own in the standard library.
    let is_unknown_name =
        error.raw_os_error().is_none() && error.to_string().starts_with("failed to lookup address");
    is_unknown_name
        || matches!(
            error.kind(),
            io::ErrorKind::ConnectionRefused
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::AddrNotAvailable
        )
}

pub(super) fn agent(url: &Url) -> Agent {
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let config = Agent::config_builder()
        .http_status_as_error(false)
        // The API key is sent to the configured server and to no other.
        .max_redirects(0)
        .timeout_resolve(Some(CONNECT_TIME))
        .timeout_connect(Some(CONNECT_TIME))
        .user_agent(concat!("resolver/", env!("CARGO_PKG_VERSION")));
    // For the machine's proxy, a loopback address would be the proxy itself.
    let config = if is_here { config.proxy(None) } else { config };
    config.build().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str, key: &str) -> Result<Server, String> {
        let args = ServerArgs { server: url.to_owned(), api_key: key.to_owned() };
        Server::new(&args).map_err(|error| error.to_string())
    }

    #[test]
    fn a_text_is_one_segment_whatever_is_in_it() {
        for (text, escaped) in [
            ("example.com", "example.com"),
            ("sho.rt:8080", "sho.rt%3A8080"),
            ("*", "%2A"),
            ("*.Example.com", "%2A.Example.com"),
            ("*.Münch.de", "%2A.M%C3%BCnch.de"),
            ("[::1]", "%5B%3A%3A1%5D"),
            ("über 短い", "%C3%BCber%20%E7%9F%AD%E3%81%84"),
            ("a/b?c", "a%2Fb%3Fc"),
            ("a/b?c#d%2F\n", "a%2Fb%3Fc%23d%252F%0A"),
            ("-._~", "-._~"),
            ("...", "..."),
        ] {
            assert_eq!(segment(text).as_deref(), Some(escaped), "{text}");
        }
        for text in ["", ".", "..", &"a".repeat(1_025)] {
            assert_eq!(segment(text), None, "{text}");
        }
        assert!(segment(&"ü".repeat(512)).is_some());
    }

    #[test]
    fn an_argument_that_cannot_be_is_shown_on_one_line() {
        let text =
            wrong("NAME", &format!("two\nlines\u{1b}{}", "短".repeat(1_000)), "expected less").to_string();
        assert!(text.starts_with("NAME two lines\u{FFFD}短") && text.ends_with("…: expected less"), "{text}");
        assert!(text.chars().count() < 150 && !text.contains('\n'), "{text}");
    }

    #[test]
    fn an_address_or_a_key_that_cannot_be_is_refused_and_no_secret_is_shown() {
        for (url, key, part) in [
            ("sho.rt", "k", "--server sho.rt: expected"),
            ("ftp://sho.rt", "k", "--server"),
            ("http://", "k", "--server"),
            ("http://sho.rt/?a", "k", "--server"),
            ("http://me:s3cret@sho.rt/", "k", "--server (hidden)"),
            ("http://s3cret@sho.rt/", "k", "--server (hidden)"),
            ("http://sho.rt", "", "--api-key (hidden)"),
            ("http://sho.rt", "s3cret\n", "--api-key (hidden)"),
            ("http://sho.rt", "s3crét", "--api-key (hidden)"),
        ] {
            let error = server(url, key).err().unwrap();
            assert!(error.contains(part) && !error.contains("s3c"), "{error}");
        }
        for (url, kept) in [
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
            ("HTTPS://Sho.rt/links//", "https://sho.rt/links"),
            ("http://[::1]:80", "http://[::1]"),
        ] {
            assert_eq!(server(url, "k").unwrap().url, kept);
        }
    }

    #[test]
    fn a_change_that_may_have_arrived_is_in_doubt_and_one_that_did_not_is_not() {
        let server = server("http://sho.rt", "k").unwrap();
        let unknown_name = std::net::ToSocketAddrs::to_socket_addrs("name.invalid:80").unwrap_err();
        let broken = |kind: io::ErrorKind| ureq::Error::Io(kind.into());
        for (method, error, in_doubt) in [
            (Method::POST, broken(io::ErrorKind::ConnectionReset), true),
            (Method::POST, ureq::Error::Timeout(Timeout::Global), true),
            (Method::PATCH, ureq::Error::Timeout(Timeout::Connect), false),
            (Method::DELETE, broken(io::ErrorKind::ConnectionRefused), false),
            (Method::POST, ureq::Error::HostNotFound, false),
            (Method::POST, ureq::Error::Io(unknown_name), false),
            (Method::POST, ureq::Error::Tls("x"), true),
            (Method::GET, broken(io::ErrorKind::ConnectionReset), false),
        ] {
            let call = Call::write(method, String::new(), Vec::new());
            let failure = server.failure(error, &call);
            assert_eq!(failure.to_string().contains("whether"), in_doubt, "{failure}");
            assert_eq!(failure.exit(), Exit::Unavailable);
        }
    }
}
