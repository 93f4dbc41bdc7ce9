use std::net::TcpListener;

use jiff::Timestamp;

use super::{
    receiver::{Receiver, drips, floods, hangs, rebinds, sends, sips},
    *,
};
use crate::{StatusCode, signature::sign};

const AUTHORITY: &[u8] = include_bytes!("../../testdata/authority.pem");
/// The beginning of an answer whose body ends with the connection.
const OPEN_ENDED: &str = "HTTP/1.1 200 OK\r\n\r\n";
/// A limit that no test is meant to reach.
const AMPLE: Duration = Duration::from_secs(50);
/// A limit that a test is meant to reach, long enough for a busy machine to get there.
const SHORT: Duration = Duration::from_secs(1);

fn local() -> Policy {
    let networks = ["127.0.0.0/8", "::1/128"];
    Policy { allowed_networks: networks.map(|network| network.parse().unwrap()).into(), allow_http: true }
}

fn local_sender() -> Sender {
    Sender::new(local(), Roots::mozilla())
}

fn headers(body: &[u8]) -> SignedHeaders {
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    sign(&[secret], "msg_1", Timestamp::from_second(1_614_265_330).unwrap(), body).unwrap()
}

fn deliver_with(sender: Sender, url: &str, body: &[u8], limit: Duration) -> Attempt {
    let sender = Sender { connect_within: limit, total: limit, ..sender };
    let url = WebhookUrl::parse(url, &local()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(sender.deliver(&url, &headers(body), body))
}

fn deliver(receiver: &Receiver, limit: Duration) -> Attempt {
    deliver_with(local_sender(), &format!("http://{}/hook", receiver.address), b"{}", limit)
}

fn deliver_tls(receiver: &Receiver, roots: Roots, limit: Duration) -> Attempt {
    let url = format!("https://localhost:{}/hook", receiver.address.port());
    deliver_with(Sender::new(local(), roots), &url, b"{}", limit)
}

fn authority() -> Roots {
    Roots::from_pem(AUTHORITY).unwrap()
}

/// Returns the failure of an attempt without an answer, which the schedule is to repeat.
fn again(reason: &str) -> Outcome {
    Outcome::Failed(Failure::again(reason))
}

/// Checks that an attempt without an answer failed for such a reason, and is to be repeated or not.
fn check_failed(outcome: &Outcome, reason: &str, is_repeated: bool) {
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert!(failure.error.contains(reason), "{failure:?}");
    assert_eq!((failure.status, failure.retry), (None, is_repeated.then_some(Duration::ZERO)));
}

/// Tells whether a connection waits to be accepted.
fn was_reached(listener: &TcpListener) -> bool {
    listener.set_nonblocking(true).unwrap();
    listener.accept().is_ok()
}

#[test]
fn a_status_of_2xx_is_a_delivery_and_its_body_is_kept_without_control_characters() {
    let receiver = Receiver::new(sends("HTTP/1.1 202 Accepted\r\ncontent-length: 6\r\n\r\nok\0\x1b\n!"));
    let attempt = deliver(&receiver, AMPLE);
    assert_eq!(attempt.outcome, Outcome::Delivered(StatusCode::ACCEPTED));
    assert_eq!(attempt.excerpt, "ok   !");
}

#[test]
fn the_request_is_a_signed_post_of_the_body() {
    let receiver = Receiver::new(sends("HTTP/1.1 204 No Content\r\n\r\n"));
    let body = vec![b' '; MAX_BODY];
    let url = format!("http://{}/hook/%C3%A4?a=b", receiver.address);
    let attempt = deliver_with(local_sender(), &url, &body, AMPLE);
    assert_eq!(attempt.outcome, Outcome::Delivered(StatusCode::NO_CONTENT));
    let request = receiver.request();
    assert!(request.head.starts_with("POST /hook/%C3%A4?a=b HTTP/1.1\r\n"), "{}", request.head);
    assert_eq!(request.body, body);
    for (name, value) in headers(&body) {
        assert_eq!(request.header(name), Some(&*value));
    }
    assert_eq!(request.header("host"), Some(receiver.address.to_string().as_str()));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("user-agent"), Some(USER_AGENT));
    assert_eq!(request.header("accept-encoding"), None);
}

#[test]
fn other_statuses_are_failures_each_of_its_kind() {
    for (answer, status, seconds) in [
        ("HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n", 500, 0),
        ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", 404, 0),
        ("HTTP/1.1 503 Busy\r\nretry-after: 120\r\ncontent-length: 0\r\n\r\n", 503, 120),
    ] {
        let outcome = deliver(&Receiver::new(sends(answer)), AMPLE).outcome;
        let Outcome::Failed(failure) = outcome else { panic!("{answer}: {outcome:?}") };
        assert_eq!(failure.status.map(|status| status.as_u16()), Some(status), "{answer}");
        assert_eq!(failure.retry, Some(Duration::from_secs(seconds)), "{answer}");
    }
    for answer in [
        "HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 410 Gone\r\n\r\n",
    ] {
        assert_eq!(deliver(&Receiver::new(sends(answer)), AMPLE).outcome, Outcome::Gone, "{answer}");
    }
}

#[test]
fn a_redirect_is_a_failure_and_is_not_followed() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    let location = elsewhere.local_addr().unwrap();
    let receiver = Receiver::new(move |stream| {
        write!(stream, "HTTP/1.1 302 Found\r\nlocation: http://{location}/\r\ncontent-length: 0\r\n\r\n")
            .ok();
    });
    let outcome = deliver(&receiver, AMPLE).outcome;
    assert!(matches!(&outcome, Outcome::Failed(failure) if failure.status == Some(StatusCode::FOUND)));
    assert!(!was_reached(&elsewhere));
}

#[test]
fn neither_silence_nor_a_head_that_drips_extends_the_time_limit() {
    for receiver in [Receiver::new(hangs), Receiver::new(drips("HTTP/1.1 200 OK\r\nx-slow: "))] {
        assert_eq!(deliver(&receiver, SHORT).outcome, again(LATE));
    }
}

#[test]
fn a_receiver_that_reads_little_or_nothing_does_not_extend_the_time_limit() {
    let nothing = Receiver::raw(|stream| {
        std::thread::sleep(Duration::from_secs(5));
        drop(stream);
    });
    for receiver in [nothing, Receiver::raw(|mut stream| sips(&mut stream))] {
        let url = format!("http://{}/hook", receiver.address);
        let attempt = deliver_with(local_sender(), &url, &[b' '; MAX_BODY], SHORT);
        assert_eq!(attempt.outcome, again(LATE));
    }
}

#[test]
fn a_body_that_drips_does_not_extend_the_time_limit_nor_change_the_outcome() {
    let receiver = Receiver::new(drips(OPEN_ENDED));
    let attempt = deliver(&receiver, SHORT);
    assert_eq!(attempt.outcome, Outcome::Delivered(StatusCode::OK));
    assert!(attempt.excerpt.starts_with('a'), "{attempt:?}");
}

#[test]
fn a_receiver_that_closes_after_the_request_is_uncertain() {
    let receiver = Receiver::new(|_| ());
    check_failed(&deliver(&receiver, AMPLE).outcome, "may have the event: unexpected end of file", true);
}

#[test]
fn an_endless_body_is_cut() {
    let attempt = deliver(&Receiver::new(floods(OPEN_ENDED)), AMPLE);
    assert_eq!(attempt.outcome, Outcome::Delivered(StatusCode::OK));
    assert_eq!(attempt.excerpt, "a".repeat(4_096));
}

#[test]
fn a_huge_head_or_another_protocol_is_a_bad_answer() {
    for answering in [floods("HTTP/1.1 200 OK\r\nx-huge: "), floods("SSH-2.0-OpenSSH_9.9\r\n")] {
        let outcome = deliver(&Receiver::new(answering), AMPLE).outcome;
        check_failed(&outcome, "the answer is not HTTP", true);
    }
}

#[test]
fn a_port_on_which_nothing_listens_is_a_failed_connection() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let outcome = deliver_with(local_sender(), &format!("http://{address}/"), b"{}", AMPLE).outcome;
    assert_eq!(outcome, again("no connection: connection refused"));
}

#[test]
fn a_name_or_an_address_that_is_private_is_refused_without_a_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    for url in [format!("http://localhost:{}/", address.port()), format!("http://{address}/")] {
        let sender = Sender::new(Policy { allow_http: true, ..Policy::default() }, Roots::mozilla());
        let outcome = deliver_with(sender, &url, b"{}", AMPLE).outcome;
        check_failed(&outcome, "is not a public address (loopback): the operator can allow", true);
    }
    assert!(!was_reached(&listener));
}

#[test]
fn a_name_that_changes_its_address_after_the_check_leads_nowhere_else() {
    let receiver = Receiver::new(sends("HTTP/1.1 204 No Content\r\n\r\n"));
    let port = receiver.address.port();
    let elsewhere = TcpListener::bind(("127.0.0.2", port)).unwrap();
    let deliver = || {
        let policy = Policy { allowed_networks: vec!["127.0.0.1/32".parse().unwrap()], allow_http: true };
        let sender = Sender { lookups: Lookups::with(rebinds), ..Sender::new(policy, Roots::mozilla()) };
        deliver_with(sender, &format!("http://webhook.test:{port}/"), b"{}", AMPLE).outcome
    };
    assert_eq!(deliver(), Outcome::Delivered(StatusCode::NO_CONTENT));
    // The next attempt looks the name up and checks its address again.
    check_failed(&deliver(), "127.0.0.2 is not a public address (loopback)", true);
    assert!(!was_reached(&elsewhere));
}

#[test]
fn what_cannot_be_sent_at_all_is_refused_without_a_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let plain = deliver_with(Sender::new(Policy::default(), Roots::mozilla()), &url, b"{}", AMPLE);
    check_failed(&plain.outcome, PLAIN_TEXT, false);
    let large = deliver_with(local_sender(), &url, &[0; MAX_BODY + 1], AMPLE);
    check_failed(&large.outcome, "the event has 262145 bytes", false);
    assert!(!was_reached(&listener));
}

#[test]
fn a_receiver_with_a_certificate_of_a_given_authority_is_reached_over_tls() {
    let receiver = Receiver::with_tls(sends("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"));
    let attempt = deliver_tls(&receiver, authority(), AMPLE);
    assert_eq!(attempt, Attempt { outcome: Outcome::Delivered(StatusCode::OK), excerpt: "ok".to_owned() });
    assert_eq!(receiver.request().body, b"{}");
}

#[test]
fn an_unknown_authority_or_a_receiver_without_tls_is_a_failure_of_tls() {
    let untrusted = Receiver::with_tls(sends("HTTP/1.1 200 OK\r\n\r\n"));
    let plain = Receiver::raw(|mut stream| sends("HTTP/1.1 400 Bad Request\r\n\r\n")(&mut stream));
    for receiver in [untrusted, plain] {
        let outcome = deliver_tls(&receiver, Roots::mozilla(), AMPLE).outcome;
        check_failed(&outcome, "the TLS handshake failed", true);
    }
}

#[test]
fn time_limits_hold_over_tls() {
    let silent = Receiver::raw(|mut stream| hangs(&mut stream));
    let outcome = deliver_tls(&silent, authority(), SHORT).outcome;
    assert_eq!(outcome, again("the time was over while negotiating TLS"));
    let dripping = Receiver::with_tls(drips("HTTP/1.1 200 OK\r\nx-slow: "));
    assert_eq!(deliver_tls(&dripping, authority(), SHORT).outcome, again(LATE));
}

#[test]
fn a_bundle_has_at_least_one_certificate() {
    for (pem, reason) in
        [(&b""[..], "found none"), (b"-----BEGIN CERTIFICATE-----\n!", "expected certificates in PEM: ")]
    {
        let refused = Roots::from_pem(pem).unwrap_err().to_string();
        assert!(refused.contains(reason), "{refused}");
    }
}
