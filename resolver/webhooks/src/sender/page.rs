//! The title of a page that a long URL leads to, and the icon of its host.
//!
//! 1. A page is read over the connections of deliveries: each address is checked before it is
//!    connected to, and so is that of each redirect. Webhooks are for operators, and titles and
//!    icons for every key, so there is a reader of public pages only
//!    ([`PageReader::public_only`]).
//! 2. A page is bounded in time and bytes. What has not come by then is not waited for.
//! 3. Lookups of hosts have slots of their own, so that long URLs with slow names keep no webhook
//!    from its receiver.

use std::{sync::Arc, time::Duration};

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    HeaderMap, Request, Response, StatusCode, Uri,
    body::{Bytes, Incoming},
    header,
};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::{Connection, Sender};
use crate::{
    connect::Lookups,
    icon::Icon,
    policy::Policy,
    title::{END, find, title_of},
    webhook_url::WebhookUrl,
};

/// How long a page and its redirects may take.
const WITHIN: Duration = Duration::from_secs(3);
/// The number of redirects that are followed.
const REDIRECTS_MAX: usize = 3;
/// The number of bytes of a page that are read.
const PAGE_BYTES: usize = 512 * 1024;
/// The largest icon in bytes.
const ICON_BYTES: usize = 16 * 1024;
/// The ports of public pages. On a public address of this machine, a firewall may hide all others.
const WEB_PORTS: [u16; 2] = [80, 443];
/// The number of lookups that may be under way at once. A slow one outlives its page.
const LOOKUPS_MAX: usize = 32;
const USER_AGENT: &str = concat!("ShortmintBot/", env!("CARGO_PKG_VERSION"), " (titles and icons of links)");

/// Reads the titles of pages, and icons.
#[derive(Debug)]
pub struct PageReader {
    sender: Sender,
    /// Whether it reads pages at the ports of the web only.
    web_ports_only: bool,
}

impl Sender {
    /// Returns a reader of pages, which reaches what webhooks may reach, with http too.
    pub fn page_reader(&self) -> PageReader {
        let sender = Self {
            policy: Policy { allow_http: true, ..self.policy.clone() },
            connect_within: WITHIN,
            total: WITHIN,
            tls: Arc::clone(&self.tls),
            lookups: Lookups::new(LOOKUPS_MAX),
        };
        PageReader { sender, web_ports_only: false }
    }
}

impl PageReader {
    /// Returns a reader of public pages at the ports of the web, for callers who may not set
    /// webhooks. It shares the slots of lookups.
    #[must_use]
    pub fn public_only(&self) -> Self {
        let Sender { policy, connect_within, total, tls, lookups } = &self.sender;
        let sender = Sender {
            policy: Policy { allowed_networks: Vec::new(), allow_http: policy.allow_http },
            connect_within: *connect_within,
            total: *total,
            tls: Arc::clone(tls),
            lookups: lookups.clone(),
        };
        Self { sender, web_ports_only: true }
    }

    /// Returns the title of a page in one line, within 3 s; `None` if there is none, or it cannot
    /// be read. `allows` judges the URL and those of redirects.
    pub async fn title(&self, url: &str, allows: impl Fn(&str) -> bool) -> Option<String> {
        let deadline = Instant::now() + self.sender.total;
        let html = "text/html,application/xhtml+xml";
        let (response, _connection) = self.follow(url, html, allows, deadline).await?;
        read_title(response, deadline).await
    }

    /// Returns the icon at a URL, within 3 s; `None` if there is none, it is larger than 16 KiB, or
    /// it cannot be read. `allows` judges the URL and those of redirects.
    pub async fn icon(&self, url: &str, allows: impl Fn(&str) -> bool) -> Option<Icon> {
        let deadline = Instant::now() + self.sender.total;
        let (response, _connection) = self.follow(url, "image/*", allows, deadline).await?;
        read_icon(response, deadline).await
    }

    /// Requests a URL, follows redirects, and returns the first other answer with its connection.
    async fn follow(
        &self,
        url: &str,
        accept: &str,
        allows: impl Fn(&str) -> bool,
        deadline: Instant,
    ) -> Option<(Response<Incoming>, Connection)> {
        let mut url = Url::parse(url).ok()?;
        for _ in 0..=REDIRECTS_MAX {
            url.set_fragment(None);
            if !allows(url.as_str()) {
                return None;
            }
            let (response, connection) = self.get(&url, accept, deadline).await?;
            if !response.status().is_redirection() {
                return Some((response, connection));
            }
            let to = response.headers().get(header::LOCATION)?.to_str().ok()?;
            url = url.join(to).ok()?;
        }
        None
    }

    async fn get(
        &self,
        url: &Url,
        accept: &str,
        deadline: Instant,
    ) -> Option<(Response<Incoming>, Connection)> {
        let url = WebhookUrl::parse(url.as_str(), &self.sender.policy).ok()?;
        if self.web_ports_only && !WEB_PORTS.contains(&url.port) {
            return None;
        }
        let uri = Uri::try_from(url.as_str()).ok()?;
        let request = Request::get(uri.path_and_query().map_or("/", |target| target.as_str()))
            .header(header::HOST, uri.authority()?.as_str())
            .header(header::ACCEPT, accept)
            .header(header::USER_AGENT, USER_AGENT)
            .header(header::CONNECTION, "close");
        let request = request.body(Full::<Bytes>::default()).ok()?;
        self.sender.exchange(&url, request, deadline).await.ok()
    }
}

async fn read_title(response: Response<Incoming>, deadline: Instant) -> Option<String> {
    let (head, mut body) = response.into_parts();
    if head.status != StatusCode::OK || !is_plain_html(&head.headers) {
        return None;
    }
    let (mut page, mut is_tried) = (Vec::new(), false);
    while page.len() < PAGE_BYTES {
        // A page that breaks off may have had its title before.
        let Ok(Some(Ok(frame))) = timeout_at(deadline, body.frame()).await else { break };
        let Some(data) = frame.data_ref() else { continue };
        let searched = page.len().saturating_sub(END.len());
        page.extend_from_slice(data);
        page.truncate(PAGE_BYTES);
        // It may be the end of one in a comment or a picture. Only the first is tried, so that no
        // page is parsed for each of its pieces.
        if !is_tried && find(&page, END, searched).is_some() {
            is_tried = true;
            if let Some(title) = title_of(&page, content_type(&head.headers)) {
                return Some(title);
            }
        }
    }
    title_of(&page, content_type(&head.headers))
}

async fn read_icon(response: Response<Incoming>, deadline: Instant) -> Option<Icon> {
    if response.status() != StatusCode::OK {
        return None;
    }
    // A picture that is cut would not be shown either.
    let file = Limited::new(response.into_body(), ICON_BYTES).collect();
    let file = timeout_at(deadline, file).await.ok()?.ok()?;
    Icon::read(&file.to_bytes())
}

/// Returns whether an answer is HTML that is not compressed, as no request asks for.
fn is_plain_html(headers: &HeaderMap) -> bool {
    let kind = content_type(headers).split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let is = |html: &[u8]| kind.eq_ignore_ascii_case(html);
    (is(b"text/html") || is(b"application/xhtml+xml")) && !headers.contains_key(header::CONTENT_ENCODING)
}

fn content_type(headers: &HeaderMap) -> &[u8] {
    headers.get(header::CONTENT_TYPE).map_or(&b""[..], header::HeaderValue::as_bytes)
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, sync::Mutex};

    use super::*;
    use crate::{
        Roots,
        sender::receiver::{Receiver, drips, floods, rebinds, sends},
    };

    fn reader(networks: &[&str]) -> PageReader {
        let allowed_networks = networks.iter().map(|network| network.parse().unwrap()).collect();
        Sender::new(Policy { allowed_networks, allow_http: false }, Roots::mozilla()).page_reader()
    }

    fn local() -> PageReader {
        reader(&["127.0.0.1/32"])
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    fn title_with(reader: &PageReader, url: &str, allows: impl Fn(&str) -> bool) -> Option<String> {
        block_on(reader.title(url, allows))
    }

    fn title(reader: &PageReader, url: &str) -> Option<String> {
        title_with(reader, url, |_| true)
    }

    fn icon(reader: &PageReader, receiver: &Receiver) -> Option<Icon> {
        block_on(reader.icon(&format!("http://{}/favicon.ico", receiver.address), |_| true))
    }

    /// Starts a receiver that answers with a PNG of this length, whatever it calls it.
    fn sends_png(status: &'static str, len: usize) -> Receiver {
        Receiver::new(move |stream| {
            write!(stream, "HTTP/1.1 {status}\r\ncontent-type: text/html\r\n").ok();
            write!(stream, "content-length: {len}\r\n\r\n").ok();
            let mut file = PNG.to_vec();
            file.resize(len, 0);
            stream.write_all(&file).ok();
        })
    }

    fn page(answer: &'static str) -> Option<String> {
        let receiver = Receiver::new(sends(answer));
        title(&local(), &format!("http://{}/", receiver.address))
    }

    /// Starts a receiver that redirects to a URL.
    fn redirecting(to: String) -> Receiver {
        Receiver::new(move |stream| {
            write!(stream, "HTTP/1.1 301 Moved\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n").ok();
        })
    }

    /// The first bytes of a PNG of 16 × 16 pixels.
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10";
    const TITLED: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<title>A &amp; B</title>";

    #[test]
    fn the_title_of_a_page_is_read_also_behind_redirects() {
        assert_eq!(page(TITLED).as_deref(), Some("A & B"));
        let target = Receiver::new(sends(TITLED));
        let second = redirecting(format!("//{}/page#part", target.address));
        let first = redirecting(format!("http://{}/next", second.address));
        let url = format!("http://{}/?q=1#top", first.address);
        let judged = Mutex::new(Vec::new());
        let read = title_with(&local(), &url, |url| {
            judged.lock().unwrap().push(url.to_owned());
            true
        });
        assert_eq!(read.as_deref(), Some("A & B"));
        let request = first.request();
        assert!(request.head.starts_with("GET /?q=1 HTTP/1.1\r\n"), "{}", request.head);
        assert_eq!(request.header("user-agent"), Some(USER_AGENT));
        assert!(target.request().head.starts_with("GET /page HTTP/1.1\r\n"));
        let addresses = [&first, &second, &target].map(|receiver| receiver.address);
        let [first, second, target] = addresses;
        let expected = [
            format!("http://{first}/?q=1"),
            format!("http://{second}/next"),
            format!("http://{target}/page"),
        ];
        assert_eq!(*judged.lock().unwrap(), expected, "each of them is judged");
    }

    #[test]
    fn a_title_in_a_comment_ends_no_page() {
        let pieces = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ntransfer-encoding: chunked\r\n\r\n\
                      1b\r\n<!-- <title>Old</title> -->\r\n12\r\n<title>New</title>\r\n0\r\n\r\n";
        assert_eq!(page(pieces).as_deref(), Some("New"));
    }

    #[test]
    fn more_redirects_than_three_are_not_followed() {
        let target = Receiver::new(sends(TITLED));
        let mut chain = vec![redirecting(format!("http://{}/", target.address))];
        for _ in 0..3 {
            chain.push(redirecting(format!("http://{}/", chain.last().unwrap().address)));
        }
        let at = |redirects: usize| format!("http://{}/", chain[redirects - 1].address);
        assert_eq!(title(&local(), &at(4)), None);
    }

    #[test]
    fn private_addresses_are_refused_in_all_their_forms_and_not_connected_to() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let hosts = "127.0.0.1 2130706433 0177.0.0.1 0x7f.1 127.1 0.0.0.0 [::1] [::ffff:127.0.0.1] \
                     [64:ff9b::127.0.0.1] [2002:7f00:1::] localhost localhost.";
        for host in hosts.split(' ') {
            assert_eq!(title(&reader(&[]), &format!("http://{host}:{port}/")), None, "{host}");
        }
        // A page that may be reached leads to one that may not.
        let only = reader(&["127.0.0.1/32"]);
        let elsewhere = TcpListener::bind("127.0.0.2:0").unwrap();
        let leads = || redirecting(format!("http://{}/", elsewhere.local_addr().unwrap()));
        let (page, picture) = (leads(), leads());
        assert_eq!(title(&only, &format!("http://{}/", page.address)), None);
        assert_eq!(icon(&only, &picture), None);
        page.request();
        picture.request();
        for listener in [listener, elsewhere] {
            listener.set_nonblocking(true).unwrap();
            assert!(listener.accept().is_err(), "it was connected to");
        }
    }

    #[test]
    fn a_reader_of_public_pages_reaches_no_allowed_network_and_no_other_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let at_web_ports = PageReader { web_ports_only: true, ..local() };
        let public = PageReader { web_ports_only: false, ..local().public_only() };
        for reader in [at_web_ports, public, local().public_only()] {
            assert_eq!(title(&reader, &url), None);
        }
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "it was connected to");
    }

    #[test]
    fn a_name_that_changes_its_address_after_the_check_leads_nowhere_else() {
        let sender = Sender { lookups: Lookups::with(rebinds), ..local().sender };
        let reader = PageReader { sender, web_ports_only: false };
        let other = |receiver: &Receiver| TcpListener::bind(("127.0.0.2", receiver.address.port())).unwrap();
        let url =
            |name: &str, receiver: &Receiver| format!("http://{name}.test:{}/", receiver.address.port());
        let (page, picture) = (Receiver::new(sends(TITLED)), sends_png("200 OK", 100));
        // The next lookup of the name is for a redirect to itself, whose address is checked too.
        let redirect = redirecting("/again".to_owned());
        let others = [&page, &picture, &redirect].map(other);
        assert_eq!(title(&reader, &url("page", &page)).as_deref(), Some("A & B"));
        assert!(block_on(reader.icon(&url("picture", &picture), |_| true)).is_some());
        assert_eq!(title(&reader, &url("redirect", &redirect)), None);
        redirect.request();
        for listener in others {
            listener.set_nonblocking(true).unwrap();
            assert!(listener.accept().is_err(), "it was connected to");
        }
    }

    #[test]
    fn what_the_caller_denies_is_not_asked_for() {
        let target = TcpListener::bind("127.0.0.1:0").unwrap();
        let denied = format!("http://{}/", target.local_addr().unwrap());
        let first = redirecting(denied.clone());
        let url = format!("http://{}/", first.address);
        assert_eq!(title_with(&local(), &url, |url| url != denied), None);
        first.request();
        target.set_nonblocking(true).unwrap();
        assert!(target.accept().is_err());
    }

    #[test]
    fn other_answers_have_no_title() {
        for answer in [
            "HTTP/1.1 404 Not Found\r\ncontent-type: text/html\r\n\r\n<title>Not found</title>",
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n<title>no</title>",
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-encoding: gzip\r\n\r\n<title>no</title>",
            "HTTP/1.1 200 OK\r\n\r\n<title>no</title>",
            "HTTP/1.1 302 Found\r\n\r\n",
            "HTTP/1.1 302 Found\r\nlocation: ftp://e.test/\r\n\r\n",
            "SSH-2.0-OpenSSH_9.9\r\n",
        ] {
            assert_eq!(page(answer), None, "{answer}");
        }
        for url in ["mailto:a@e.test", "https://user:secret@e.test/", "no URL"] {
            assert_eq!(title(&local(), url), None, "{url}");
        }
    }

    #[test]
    fn an_icon_is_read_also_behind_redirects_and_up_to_a_length() {
        let target = sends_png("200 OK", ICON_BYTES);
        let first = redirecting(format!("http://{}/icon", target.address));
        let read = icon(&local(), &first).unwrap();
        assert_eq!((read.media_type, read.bytes.len()), ("image/png", ICON_BYTES));
        let request = first.request();
        assert!(request.head.starts_with("GET /favicon.ico HTTP/1.1\r\n"), "{}", request.head);
        assert_eq!(request.header("accept"), Some("image/*"));
        for other in [
            sends_png("200 OK", ICON_BYTES + 1),
            sends_png("404 Not Found", 100),
            Receiver::new(sends("HTTP/1.1 200 OK\r\ncontent-type: image/svg+xml\r\n\r\n<svg/>")),
            Receiver::new(floods("HTTP/1.1 200 OK\r\n\r\nGIF89a")),
            Receiver::new(drips("HTTP/1.1 200 OK\r\n\r\nGIF89a")),
        ] {
            assert_eq!(icon(&local(), &other), None);
        }
    }

    #[test]
    fn an_endless_page_is_cut_and_a_slow_one_is_left() {
        const BEGUN: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<p>";
        for endless in [Receiver::new(floods(BEGUN)), Receiver::new(drips(BEGUN))] {
            assert_eq!(title(&local(), &format!("http://{}/", endless.address)), None);
        }
    }
}
