//! Tests of what is recorded of requests, whichever way their answers take.

use http_body_util::Full;
use hyper::{Method, StatusCode, body::Bytes};
use links::{
    Block, Condition, Details, ExtraPath, LongUrl, PasswordHash, Rule, Slug, api_key::ApiKeyId, targets,
};
use recorder::CaptureRules;
use visits::read_block;

use super::*;
use crate::{
    fallback_page::home,
    follow::{answer_cached, follow, follow_cached},
    pixel,
    site::{OTHER_HOST, REGULAR_404, Site, visitor},
    unlock::unlock,
};

const CLIENT: &str = "192.0.2.1";
const HOST: &str = "sho.rt";

fn request<B>(method: Method, host: &str, target: &str, body: B) -> Request<B> {
    Request::builder().method(method).uri(target).header("host", host).body(body).unwrap()
}

fn get(target: &str) -> Request<()> {
    request(Method::GET, HOST, target, ())
}

/// The part of a recorded visit that depends on the outcome.
#[derive(Debug, PartialEq, Eq)]
struct Recorded {
    outcome: Outcome,
    link: Option<LinkId>,
    domain: DomainId,
    rule: u8,
    request: String,
    target: String,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

impl Site {
    fn recorded(&self) -> Vec<Recorded> {
        let blocks = self.take_blocks();
        let events = blocks.iter().flat_map(|block| read_block(block).unwrap().1.map(Result::unwrap));
        let recorded = events.map(|event| {
            let Event { outcome, link, domain, rule, .. } = event;
            let (request, target) = (text(event.request), text(event.target));
            Recorded { outcome, link, domain, rule, request, target }
        });
        recorded.collect()
    }

    async fn status_of(&self, request: &Request<()>) -> StatusCode {
        follow(&self.thread, visitor(CLIENT), request).await.status()
    }

    /// Follows a request, and checks that its one visit is recorded with this outcome and these
    /// texts.
    async fn expect(
        &self,
        request: &Request<()>,
        link: impl Into<Option<LinkId>>,
        outcome: Outcome,
        [path, target]: [&str; 2],
    ) {
        self.status_of(request).await;
        self.expect_recorded(link, outcome, [path, target]);
    }

    fn expect_recorded(
        &self,
        link: impl Into<Option<LinkId>>,
        outcome: Outcome,
        [request, target]: [&str; 2],
    ) {
        let (link, domain) = (link.into(), DomainId::DEFAULT);
        let (request, target) = (request.to_owned(), target.to_owned());
        assert_eq!(self.recorded(), [Recorded { outcome, link, domain, rule: 0, request, target }]);
    }
}

#[tokio::test]
async fn each_outcome_is_recorded_with_the_link_that_was_found() {
    let site = Site::start(CaptureRules::default()).await;
    let plain = site.create("plain", Details::default()).await;
    let past = Timestamp::from_second(1_600_000_000).unwrap();
    let future = Timestamp::from_second(4_000_000_000).unwrap();
    let block = Block { reason: "x".to_owned(), by: ApiKeyId(1), at: past };
    let is_over = Details { valid_until: Some(past), ..Details::default() };
    let is_early = Details { valid_since: Some(future), ..Details::default() };
    let blocked = Details { blocked: Some(block), ..is_early.clone() };
    let disabled = Details { disabled: true, ..is_over.clone() };
    for (name, details, outcome) in [
        ("over", is_over, Outcome::Expired),
        ("early", is_early, Outcome::NotYetValid),
        ("disabled", disabled, Outcome::Disabled),
        ("blocked", blocked, Outcome::TakenDown),
    ] {
        let link = site.create(name, details).await;
        let path = format!("/{name}");
        site.expect(&get(&path), link, outcome, [&path, ""]).await;
    }
    site.expect(&get("/plain"), plain, Outcome::Redirected, ["", ""]).await;
    let gone = site.create("gone", Details::default()).await;
    site.delete(gone).await;
    site.expect(&get("/gone?x"), None, Outcome::UnknownCode, ["/gone?x", ""]).await;
    assert!(site.is_code("abcdef"));
    site.expect(&get("/abcdef"), None, Outcome::UnknownCode, ["/abcdef", ""]).await;
    site.expect(&get("/no/such-slug"), None, Outcome::UnknownCode, ["/no/such-slug", ""]).await;
    for path in ["/yourls-api.php", "/YOURLS-api.php/", "/admin/yourls-api.php"] {
        let asked = format!("{path}?signature=key");
        let outcome = if path.ends_with('/') { Outcome::InvalidPath } else { Outcome::UnknownCode };
        let target = if path.ends_with('/') { REGULAR_404 } else { "" };
        site.expect(&get(&asked), None, outcome, [path, target]).await;
    }
    site.expect(&get("/a//b?c"), None, Outcome::InvalidPath, ["/a//b?c", REGULAR_404]).await;
    home(&site.thread, visitor(CLIENT), &get("/?utm=1"));
    site.expect_recorded(None, Outcome::BaseUrl, ["/?utm=1", ""]);
}

#[tokio::test]
async fn a_denied_target_is_recorded_as_taken_down() {
    let site = Site::start(CaptureRules::default()).await;
    let link = site.create("plain", Details::default()).await;
    let rule = Rule::new(LongUrl::from_stored("https://example.com/r"), Vec::new());
    let ruled = site.create("ruled", Details { rules: vec![rule], ..Details::default() }).await;
    let denied = targets::TargetRule::parse("example.com", false).unwrap();
    site.thread.redirector.lookup.judge_by(targets::Targets::new(&[denied]));
    site.expect(&get("/plain"), link, Outcome::TakenDown, ["/plain", ""]).await;
    site.expect(&get("/ruled"), ruled, Outcome::TakenDown, ["/ruled", ""]).await;

    // No path fits behind the rule's long URL, so the link's own is judged.
    let full = format!("https://allowed.example/{}", "x".repeat(LongUrl::MAX_LEN - 25));
    let rules = vec![Rule::new(LongUrl::from_stored(full), Vec::new())];
    let extra_path = Some(ExtraPath::Append);
    let behind = site.create("below", Details { rules, extra_path, ..Details::default() }).await;
    site.expect(&get("/below/x"), behind, Outcome::TakenDown, ["/below/x", ""]).await;
}

#[tokio::test]
async fn the_rule_that_matched_is_recorded_with_its_number_and_its_target() {
    let site = Site::start(CaptureRules::default()).await;
    let rule = |number: usize| {
        let parameter = links::Text::parse(&format!("p{number}")).unwrap();
        let long_url = LongUrl::from_stored(format!("https://example.com/rule/{number}"));
        Rule::new(long_url, vec![Condition::AnyValueQueryParam(parameter)])
    };
    let rules: Vec<Rule> = (1..=300).map(rule).collect();
    let link = site.create("ruled", Details { rules, ..Details::default() }).await;
    for (number, recorded) in [(1, 1), (2, 2), (255, 255), (300, 255)] {
        let query = format!("p{number}");
        assert_eq!(site.status_of(&get(&format!("/ruled?{query}"))).await, StatusCode::FOUND);
        let expected = Recorded {
            outcome: Outcome::Redirected,
            link: Some(link),
            domain: DomainId::DEFAULT,
            rule: recorded,
            request: format!("/ruled?{query}"),
            target: format!("https://example.com/rule/{number}?{query}"),
        };
        assert_eq!(site.recorded(), [expected]);
    }
    site.expect(&get("/ruled"), link, Outcome::Redirected, ["", ""]).await;
}

#[tokio::test]
async fn visits_of_limited_links_are_told_from_previews_and_later_ones() {
    let site = Site::start(CaptureRules::default()).await;
    let link = site.create("once", Details { max_visits: Some(1), ..Details::default() }).await;
    let mut preview = get("/once");
    preview.headers_mut().insert("user-agent", HeaderValue::from_static("Slackbot-LinkExpanding 1.0"));
    assert_eq!(site.status_of(&preview).await, StatusCode::OK);
    assert_eq!(site.recorded(), []);
    site.expect(&get("/once"), link, Outcome::Redirected, ["", ""]).await;
    site.expect(&get("/once"), link, Outcome::LimitReached, ["/once", ""]).await;
    site.expect(&preview, link, Outcome::LimitReached, ["/once", ""]).await;
}

#[tokio::test]
async fn visits_of_links_that_have_ended_count_alike_wherever_they_are_led() {
    let site = Site::start(CaptureRules::default()).await;
    let (to, past) = ("https://over.example/", Timestamp::from_second(1_600_000_000).unwrap());
    let ends = Details { expired_url: Some(LongUrl::from_stored(to)), ..Details::default() };
    let link = site.create("over", Details { valid_until: Some(past), ..ends.clone() }).await;
    site.expect(&get("/over?x"), link, Outcome::Expired, ["/over?x", to]).await;
    let link = site.create("once", Details { max_visits: Some(1), ..ends }).await;
    site.expect(&get("/once"), link, Outcome::Redirected, ["", ""]).await;
    site.expect(&get("/once"), link, Outcome::LimitReached, ["/once", to]).await;
}

#[tokio::test]
async fn wrong_and_right_passwords_are_visits_and_shown_forms_are_none() {
    let site = Site::start(CaptureRules::default()).await;
    let password = Some(PasswordHash::of("right").unwrap());
    let link = site.create("secret", Details { password, ..Details::default() }).await;
    assert_eq!(site.status_of(&get("/secret")).await, StatusCode::OK);
    assert_eq!(site.recorded(), []);
    for (form, status, outcome) in [
        ("password=wrong", StatusCode::FORBIDDEN, Some(Outcome::WrongPassword)),
        ("password=right", StatusCode::SEE_OTHER, Some(Outcome::Redirected)),
        ("word=right", StatusCode::BAD_REQUEST, None),
    ] {
        let request = request(Method::POST, HOST, "/secret", Full::new(Bytes::from(form)));
        assert_eq!(unlock(&site.thread, visitor(CLIENT), request).await.status(), status, "{form}");
        match outcome {
            Some(Outcome::Redirected) => site.expect_recorded(link, Outcome::Redirected, ["", ""]),
            Some(outcome) => site.expect_recorded(link, outcome, ["/secret", ""]),
            None => assert_eq!(site.recorded(), []),
        }
    }
    let unknown = request(Method::POST, HOST, "/nosuch", Full::new(Bytes::from("password=right")));
    unlock(&site.thread, visitor(CLIENT), unknown).await;
    site.expect_recorded(None, Outcome::UnknownCode, ["/nosuch", ""]);
}

#[tokio::test]
async fn head_requests_and_refusals_are_no_visits() {
    let site = Site::start(CaptureRules::default()).await;
    site.create("plain", Details::default()).await;
    for target in ["/plain", "/nosuch", "/a//b"] {
        site.status_of(&request(Method::HEAD, HOST, target, ())).await;
    }
    home(&site.thread, visitor(CLIENT), &request(Method::HEAD, HOST, "/", ()));
    assert_eq!(site.recorded(), []);
    let mut statuses = Vec::new();
    while statuses.last() != Some(&StatusCode::TOO_MANY_REQUESTS) && statuses.len() < 50 {
        statuses.push(site.status_of(&get("/nosuch")).await);
    }
    assert_eq!(statuses.last(), Some(&StatusCode::TOO_MANY_REQUESTS));
    assert_eq!(site.recorded().len(), statuses.len() - 1);
    site.thread.flush();
    assert!(site.page.render().contains("resolver_redirects_total 1\n"), "HEAD is a redirect");
}

#[tokio::test]
async fn the_domain_is_the_links_or_else_that_of_the_host() {
    let site = Site::start(CaptureRules::default()).await;
    let shared = site.create("shared", Details::default()).await;
    let own = site.create("own", Details { domain: Some(site.other), ..Details::default() }).await;
    let mut domains = Vec::new();
    for target in ["/shared", "/own", "/nosuch", "/a//b"] {
        site.status_of(&request(Method::GET, OTHER_HOST, target, ())).await;
        domains.extend(site.recorded().into_iter().map(|visit| (visit.link, visit.domain)));
    }
    home(&site.thread, visitor(CLIENT), &request(Method::GET, OTHER_HOST, "/", ()));
    domains.extend(site.recorded().into_iter().map(|visit| (visit.link, visit.domain)));
    let (default, other) = (DomainId::DEFAULT, site.other);
    let expected = [(Some(shared), default), (Some(own), other), (None, other), (None, other), (None, other)];
    assert_eq!(domains, expected);
    home(&site.thread, visitor(CLIENT), &request(Method::GET, "unknown.example", "/", ()));
    site.expect_recorded(None, Outcome::BaseUrl, ["/", ""]);
}

#[tokio::test]
async fn requests_and_targets_are_recorded_only_if_the_link_does_not_imply_them() {
    let site = Site::start(CaptureRules::default()).await;
    let link = site.create("käse", Details::default()).await;
    let escaped = "/k%C3%A4se";
    site.expect(&get(escaped), link, Outcome::Redirected, [escaped, ""]).await;
    let target = "https://example.com/k%C3%A4se?a=b";
    let asked = format!("{escaped}?a=b");
    site.expect(&get(&asked), link, Outcome::Redirected, [&asked, target]).await;
    let plain = site.create("plain", Details::default()).await;
    site.expect(&get("/plain?"), plain, Outcome::Redirected, ["/plain?", ""]).await;
    let docs = Details { extra_path: Some(ExtraPath::Ignore), ..Details::default() };
    let docs = site.create("docs", docs).await;
    site.expect(&get("/docs/a"), docs, Outcome::Redirected, ["/docs/a", ""]).await;
    let absolute = get("http://sho.rt/plain?x");
    site.expect(&absolute, plain, Outcome::Redirected, ["/plain?x", "https://example.com/plain?x"]).await;
}

/// A request with every header that is recorded.
fn with_headers() -> Request<()> {
    let mut request = get("/abc123");
    for (name, value) in [
        ("user-agent", "curl/8"),
        ("referer", "https://from.example/"),
        ("accept-language", "de-CH"),
        ("sec-gpc", "1"),
    ] {
        request.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    request
}

#[tokio::test]
async fn every_way_to_a_redirect_records_the_same() {
    let rules = CaptureRules { opt_out: true, ..CaptureRules::default() };
    let site = Site::start(rules).await;
    let link = site.create("abc123", Details::default()).await;
    assert!(site.is_code("abc123"));
    let request = with_headers();
    let visitor = Visitor { country: Some(*b"CH"), ..visitor("2001:db8::1") };
    follow(&site.thread, visitor, &request).await;
    assert!(answer_cached(&site.thread, visitor, &request).is_some());
    let head = request_head(&request);
    assert!(follow_cached(&site.thread, visitor, &head, |_, _| Some(())).is_some());
    let expected = Event {
        at: 0,
        outcome: Outcome::Redirected,
        link: Some(link),
        domain: DomainId::DEFAULT,
        rule: 0,
        client: visitor.client,
        country: Some(*b"CH"),
        is_opted_out: true,
        user_agent: b"curl/8",
        referrer: b"https://from.example/",
        languages: b"de-CH",
        request: b"",
        target: b"",
    };
    let blocks = site.take_blocks();
    let events: Vec<Event<'_>> =
        blocks.iter().flat_map(|block| read_block(block).unwrap().1.map(Result::unwrap)).collect();
    let events: Vec<Event<'_>> = events.into_iter().map(|event| Event { at: 0, ..event }).collect();
    assert_eq!(events, [expected; 3]);
    assert!(follow_cached(&site.thread, visitor, &head, |_, _| None::<()>).is_none());
    let head = RequestHead { is_head: true, ..head };
    assert!(follow_cached(&site.thread, visitor, &head, |_, _| Some(())).is_some());
    assert_eq!(site.recorded(), []);
    site.thread.flush();
    assert!(site.page.render().contains("resolver_redirects_total 4\n"));
}

#[tokio::test]
async fn what_the_operator_does_not_record_is_left_out() {
    let rules = CaptureRules {
        skip_param: Some("nostat".into()),
        skip_from: vec!["198.51.100.0/24".parse().unwrap()],
        ..CaptureRules::least()
    };
    let site = Site::start(rules).await;
    site.create("abc123", Details { slug: Slug::parse("abc123").ok(), ..Details::default() }).await;
    follow(&site.thread, visitor(CLIENT), &with_headers()).await;
    let blocks = site.take_blocks();
    let event = read_block(&blocks[0]).unwrap().1.next().unwrap().unwrap();
    let texts = [event.user_agent, event.referrer];
    assert_eq!((texts, event.is_opted_out), ([&b""[..]; 2], false));
    follow(&site.thread, visitor(CLIENT), &get("/abc123?nostat")).await;
    follow(&site.thread, visitor("198.51.100.7"), &get("/abc123")).await;
    follow(&site.thread, visitor(CLIENT), &get("/nosuch")).await;
    assert_eq!(site.recorded(), []);
    site.thread.flush();
    assert!(site.page.render().contains("resolver_redirects_total 3\n"));
}

impl Site {
    /// Requests a pixel, and checks that the answer is the same as every other.
    async fn show(&self, target: &str) {
        let answer = pixel::show(&self.thread, visitor(CLIENT), &get(target)).await;
        let header = |name| answer.headers().get(name).map(HeaderValue::as_bytes);
        let told = (answer.status(), header("content-type"), header("cache-control"), answer.headers().len());
        assert_eq!(told, (StatusCode::OK, Some(&b"image/gif"[..]), Some(&b"no-store"[..]), 2));
        assert!(!web::is_held_back(&answer));
        assert_eq!(answer.body().len(), 43);
    }
}

#[tokio::test]
async fn a_pixel_is_a_visit_of_a_live_link_and_no_redirect() {
    let site = Site::start(CaptureRules::default()).await;
    let plain = site.create("plain", Details::default()).await;
    let password = Some(PasswordHash::of("right").unwrap());
    let secret = site.create("a/secret", Details { password, ..Details::default() }).await;
    for (target, link) in [("/plain/track", plain), ("/plain/track?m=1", plain), ("/a/secret/track", secret)]
    {
        site.show(target).await;
        site.expect_recorded(link, Outcome::Tracked, [target, ""]);
    }
    site.thread.flush();
    let page = site.page.render();
    let counts = ["resolver_redirects_total 0\n", "resolver_visits_total 3\n"];
    assert!(counts.iter().all(|count| page.contains(count)), "{page}");
}

#[tokio::test]
async fn a_pixel_follows_the_operators_rules_for_visits() {
    let skip_from = vec!["198.51.100.0/24".parse().unwrap()];
    let site = Site::start(CaptureRules { skip_from, opt_out: true, ..CaptureRules::default() }).await;
    site.create("plain", Details::default()).await;
    let mut request = get("/plain/track");
    request.headers_mut().insert("dnt", HeaderValue::from_static("1"));
    for client in ["198.51.100.7", CLIENT] {
        pixel::show(&site.thread, visitor(client), &request).await;
    }
    let blocks = site.take_blocks();
    let events = blocks.iter().flat_map(|block| read_block(block).unwrap().1.map(Result::unwrap));
    let told: Vec<_> = events.map(|event| (event.outcome, event.is_opted_out)).collect();
    assert_eq!(told, [(Outcome::Tracked, true)]);
}

#[tokio::test]
async fn a_pixel_without_a_live_link_is_an_orphan_visit() {
    let site = Site::start(CaptureRules::default()).await;
    let off = site.create("off", Details { disabled: true, ..Details::default() }).await;
    site.show("/off/track").await;
    site.expect_recorded(off, Outcome::Disabled, ["/off/track", ""]);
    site.show("/nosuch/track").await;
    site.expect_recorded(None, Outcome::UnknownCode, ["/nosuch/track", ""]);
    // The fallback target of such paths is not sent.
    site.show("/a//b/track").await;
    site.expect_recorded(None, Outcome::InvalidPath, ["/a//b/track", ""]);
    for _ in 0..50 {
        site.show("/nosuch/track").await;
    }
    assert!(site.recorded().len() < 50, "the client has used up its unknown codes, and is not told");
}
