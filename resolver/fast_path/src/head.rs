//! Parses the heads of requests that the fast path can answer.

use std::mem::MaybeUninit;

use httparse::{Header, Status};

/// Headers that give a request a body or affect its connection. A request with one of them goes to
/// hyper.
const DECIDES: [&str; 5] = ["connection", "content-length", "transfer-encoding", "upgrade", "expect"];
/// The maximum number of headers; a request with more goes to hyper.
const HEADERS_MAX: usize = 32;

/// The parts of a request's head that a redirect depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// Whether the method is HEAD. Such a request comes from a link checker or a preview, and is
    /// not a visit.
    pub is_head: bool,
    /// The path, not percent-decoded, with its leading slash.
    pub path: &'a str,
    /// The query, not percent-decoded, without its question mark.
    pub query: Option<&'a str>,
    /// The host of the request; `None` if the request has none.
    pub host: Option<&'a str>,
    /// The `User-Agent` header; empty if absent.
    pub user_agent: &'a [u8],
    /// The `Referer` header; empty if absent.
    pub referer: &'a [u8],
}

/// A request without a body, without headers that affect its connection, and without a repeated
/// header among those read here.
#[derive(Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The parts that a redirect depends on.
    pub head: RequestHead<'a>,
    /// The `X-Forwarded-For` header, in which a proxy names its clients.
    pub forwarded_for: Option<&'a [u8]>,
}

/// Parses the first request of `bytes`, and returns it with the bytes after it. Returns `None` if
/// the request is incomplete, or hyper has to answer it.
pub(super) fn parse(bytes: &[u8]) -> Option<(Request<'_>, &[u8])> {
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut []);
    let Ok(Status::Complete(len)) = request.parse_with_uninit_headers(bytes, &mut headers) else {
        return None;
    };
    let is_head = match request.method? {
        "GET" => false,
        "HEAD" => true,
        _ => return None,
    };
    let target = request.path.filter(|target| request.version == Some(1) && target.starts_with('/'))?;
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    if query.is_some_and(|query| query.bytes().any(|byte| matches!(byte, b'"' | b'<' | b'>' | b'#'))) {
        // hyper rejects a query with one of these characters, or ends the query at it.
        return None;
    }
    let (mut host, mut user_agent, mut referer, mut forwarded_for) = (None, None, None, None);
    for Header { name, value } in &*request.headers {
        let is = |other| name.eq_ignore_ascii_case(other);
        let place = match name.len() {
            4 if is("host") => &mut host,
            7 if is("referer") => &mut referer,
            10 if is("user-agent") => &mut user_agent,
            15 if is("x-forwarded-for") => &mut forwarded_for,
            10 if is("connection") && value.eq_ignore_ascii_case(b"keep-alive") => continue,
            _ if DECIDES.iter().any(|other| is(other)) => return None,
            _ => continue,
        };
        if place.replace(*value).is_some() {
            return None;
        }
    }
    let host = Some(std::str::from_utf8(host?).ok()?);
    let (user_agent, referer) = (user_agent.unwrap_or_default(), referer.unwrap_or_default());
    let head = RequestHead { is_head, path, query, host, user_agent, referer };
    Some((Request { head, forwarded_for }, &bytes[len..]))
}

#[cfg(test)]
mod tests {
    use http::Uri;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_read_here_hyper_reads_alike(query in "[\\x21-\\x7e\\u{e4}\\u{20ac}]{0,12}", cut in prop::bool::ANY) {
            let target = format!("/abc{}{query}", if cut { "" } else { "?" });
            let head = format!("GET {target} HTTP/1.1\r\nHost: a.example\r\n\r\n");
            if let Some((Request { head: parsed, .. }, _)) = parse(head.as_bytes())
                && parsed.path == "/abc"
            {
                let uri = Uri::try_from(&target).unwrap();
                prop_assert_eq!((uri.path(), uri.query()), (parsed.path, parsed.query));
            }
        }
    }

    #[test]
    fn a_plain_get_or_head_is_read_and_what_stands_behind_it_is_left() {
        let parsed = |is_head, query, user_agent: &'static [u8]| RequestHead {
            is_head,
            path: "/abc",
            query,
            host: Some("a.example"),
            user_agent,
            referer: b"",
        };
        let head = "HEAD /abc?x=1&y HTTP/1.1\r\nHOST: a.example\r\nconnection: Keep-Alive\r\n\r\nGET";
        let request = Request { head: parsed(true, Some("x=1&y"), b""), forwarded_for: None };
        assert_eq!(parse(head.as_bytes()), Some((request, &b"GET"[..])));
        let head = "GET /abc HTTP/1.1\r\nHost: a.example\r\nUser-Agent: curl/8\r\nX-Forwarded-For: 192.0.2.1\r\nAccept: */*\r\n\r\n";
        let request = Request { head: parsed(false, None, b"curl/8"), forwarded_for: Some(b"192.0.2.1") };
        assert_eq!(parse(head.as_bytes()), Some((request, &b""[..])));
    }

    #[test]
    fn whatever_else_a_request_says_is_handed_over() {
        let with = |line: &str| format!("GET /abc HTTP/1.1\r\nHost: a.example\r\n{line}\r\n\r\n");
        assert!(parse(with("Accept: */*").as_bytes()).is_some());
        for line in [
            "Connection: close",
            "Connection: keep-alive, upgrade",
            "Content-Length: 0",
            "Content-Length: 5",
            "Transfer-Encoding: chunked",
            "transfer-encoding : chunked",
            "Upgrade: h2c",
            "Expect: 100-continue",
            "Host: b.example",
            "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2",
            "no header",
            &"X: y\r\n".repeat(HEADERS_MAX),
        ] {
            assert_eq!(parse(with(line).as_bytes()), None, "{line}");
        }
        for head in [
            "",
            "GET /abc HTTP/1.1\r\n\r\n",
            "GET /abc HTTP/1.1\r\nHost: a.example\r\n",
            "GET /abc HTTP/1.0\r\nHost: a.example\r\n\r\n",
            "GET http://a.example/abc HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET * HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET /abc HTTP/1.1\r\nHost: a\u{0}.example\r\n\r\n",
            "GET /abc?x=<y> HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "POST /abc HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "get /abc HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ] {
            assert_eq!(parse(head.as_bytes()), None, "{head}");
        }
    }
}
