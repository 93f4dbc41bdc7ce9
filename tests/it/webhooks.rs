//! Webhooks: a real resolver delivers to a real receiver, whose requests the Python library of the
//! Standard Webhooks specification verifies. `tests/run` installs it.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use harness::{Api, Launch, ROOT, Resolver, Scratch, wait};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::{
    cli::{Person, row},
    k8s::in_venv,
    rest_calls::{call, done, get},
};

/// Longer than an attempt that hangs and the wait for the next one.
const SOON: Duration = Duration::from_secs(60);
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0";
const URL: &str = "https://example.com/page";

/// A receiver's reply to a request.
#[derive(Clone, Debug)]
enum Reply {
    Status(u16),
    Redirect(String),
    Hang,
}

/// A request as it was received.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) method: String,
    pub(crate) target: String,
    headers: Value,
    pub(crate) body: String,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].as_str().unwrap_or_default()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A receiver on the loopback interface. It answers 204 once its replies are used up.
struct Receiver {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Receiver {
    async fn start(replies: &[Reply]) -> Self {
        Self::listening("127.0.0.1:0", replies).await
    }

    async fn listening(address: &str, replies: &[Reply]) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let replies = Arc::new(Mutex::new(replies.iter().cloned().collect::<VecDeque<_>>()));
        let all = Arc::clone(&received);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (all, replies) = (Arc::clone(&all), Arc::clone(&replies));
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    let Some(request) = read(&mut stream).await else { return };
                    all.lock().unwrap().push(request);
                    let reply = replies.lock().unwrap().pop_front().unwrap_or(Reply::Status(204));
                    answer(stream.into_inner(), reply).await;
                });
            }
        });
        Self { address, received }
    }

    fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Waits until so many requests came.
    async fn requests(&self, count: usize) -> Vec<Received> {
        wait::until(SOON, "requests", async || self.received().len() >= count).await.unwrap();
        self.received()
    }
}

/// Reads a request; `None` if the connection ends before.
pub(crate) async fn read(stream: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
    let (method, rest) = line.split_once(' ')?;
    let (method, target) = (method.to_owned(), rest.split(' ').next()?.to_owned());
    let mut headers = json!({});
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
        if line == "\r\n" {
            break;
        }
        if let Some((name, value)) = line.trim_end().split_once(": ") {
            headers[name.to_lowercase()] = json!(value);
        }
    }
    let length: usize = headers["content-length"].as_str().unwrap_or("0").parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Received { method, target, headers, body: String::from_utf8(body).ok()? })
}

async fn answer(mut stream: TcpStream, reply: Reply) {
    let head = match reply {
        Reply::Status(status) => format!("HTTP/1.1 {status} X\r\ncontent-length: 4\r\n\r\nbody"),
        Reply::Redirect(to) => format!("HTTP/1.1 302 X\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n"),
        Reply::Hang => {
            let _ = stream.read(&mut [0; 16]).await;
            return;
        }
    };
    let head = if head.contains(" 204 ") { "HTTP/1.1 204 X\r\n\r\n".to_owned() } else { head };
    let _ = stream.write_all(head.as_bytes()).await;
}

/// Starts a resolver whose webhooks may reach this machine without TLS.
async fn start() -> Resolver {
    let builder = Resolver::embedded().unwrap();
    let flags = ["--webhooks", "network=127.0.0.0/8,network=::1/128,http"];
    builder.args(flags).start().await.unwrap()
}

async fn create(api: &Api, url: &str, events: &[&str]) -> Value {
    done(api, Method::POST, "webhooks", Some(json!({ "url": url, "events": events }))).await
}

async fn deliveries(api: &Api, webhook: &Value) -> Vec<Value> {
    let page = get(api, &format!("webhooks/{}/deliveries", webhook["id"])).await;
    page["deliveries"]["data"].as_array().unwrap().clone()
}

/// Waits until the latest delivery of a webhook has a value.
async fn latest(api: &Api, webhook: &Value, field: &str, value: Value) -> Value {
    let look = async || {
        let latest = deliveries(api, webhook).await.into_iter().next()?;
        (latest[field] == value).then_some(latest)
    };
    wait::until_some(SOON, &format!("{field}: {value}"), look).await.unwrap()
}

/// Verifies requests in Python: each with its secret, and whether its signature is valid.
async fn verify(cases: &[(&Value, &Received, bool)]) {
    let scratch = Scratch::new().unwrap();
    let line = |(secret, request, valid): &(&Value, &Received, bool)| {
        json!({ "secret": secret, "headers": request.headers, "body": request.body, "valid": valid })
            .to_string()
    };
    let lines: Vec<String> = cases.iter().map(line).collect();
    let file = scratch.file("requests", &(lines.join("\n") + "\n")).unwrap();
    let python = Launch::new(&scratch, "python", in_venv("python"));
    let python = python.arg(Path::new(ROOT).join("tests/sdk/python/verify_webhooks.py")).stdin(file);
    let finished = python.run(SOON).await.unwrap();
    assert!(finished.status.success(), "{}\n{}", finished.stdout, finished.stderr);
    assert_eq!(finished.stdout, format!("{} signatures as expected\n", cases.len()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_sent_again_until_it_is_accepted_also_after_a_restart() {
    let mut resolver = start().await;
    let receiver = Receiver::start(&[Reply::Status(500)]).await;
    let webhook = create(&resolver.api, &receiver.url(), &["link.created", "link.updated"]).await;
    let link = resolver.api.create(URL).await.unwrap();
    receiver.requests(1).await;
    latest(&resolver.api, &webhook, "lastStatus", json!(500)).await;
    let listed = get(&resolver.api, &format!("webhooks/{}", webhook["id"])).await;
    assert!(listed["failingSince"].is_string() && listed.get("secret").is_none(), "{listed}");

    resolver.restart().await.unwrap();
    let requests = receiver.requests(2).await;
    let delivery = latest(&resolver.api, &webhook, "state", json!("delivered")).await;
    assert_eq!((&delivery["attempts"], &delivery["lastError"]), (&json!(2), &Value::Null));
    for request in &requests {
        assert_eq!(request.header("webhook-id"), delivery["messageId"], "the same in both attempts");
        assert_eq!(request.json()["type"], "link.created");
        let data = &request.json()["data"];
        assert_eq!((&data["shortCode"], &data["longUrl"]), (&json!(link.code), &json!(URL)));
        assert_eq!(data["shortUrl"], link.short_url);
    }
    let path = format!("short-urls/{}", link.code);
    done(&resolver.api, Method::PATCH, &path, Some(json!({ "title": "T", "tags": ["a"] }))).await;
    let updated = receiver.requests(3).await.remove(2);
    let data = &updated.json()["data"];
    assert_eq!((&data["title"], &data["tags"]), (&json!("T"), &json!(["a"])));
    assert_eq!(data["changed"]["title"], json!({ "from": null, "to": "T" }));
    let tampered = Received { body: updated.body.replace("\"T\"", "\"U\""), ..updated.clone() };
    let secret = &webhook["secret"];
    verify(&[
        (secret, &requests[0], true),
        (secret, &requests[1], true),
        (secret, &updated, true),
        (secret, &tampered, false),
    ])
    .await;
    let listed = get(&resolver.api, &format!("webhooks/{}", webhook["id"])).await;
    assert_eq!(listed["failingSince"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn visits_are_told_with_samples_by_link_and_by_domain() {
    let resolver = start().await;
    let receiver = Receiver::start(&[]).await;
    let link = resolver.api.create_with(&json!({ "longUrl": URL, "tags": ["a"] })).await.unwrap();
    let other = resolver.api.create(URL).await.unwrap();
    let body = json!({ "url": receiver.url(), "events": ["visits.recorded"], "tag": "a" });
    done(&resolver.api, Method::POST, "webhooks", Some(body)).await;
    create(&resolver.api, &receiver.url(), &["orphan-visits.recorded"]).await;
    // Settings are read again every second.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    for path in [&link.code, &other.code, &link.code, "no-such-code"] {
        let url = format!("{}/{path}", resolver.api.url());
        let visit = resolver.api.http().get(&url).header("user-agent", FIREFOX);
        visit.send().await.unwrap();
    }
    let told = async || {
        let bodies: Vec<Value> = receiver.received().iter().map(Received::json).collect();
        let sum = |kind: &str| -> u64 {
            let of_kind = bodies.iter().filter(|body| body["type"] == kind);
            of_kind.map(|body| body["data"]["visits"].as_u64().unwrap()).sum()
        };
        ((sum("visits.recorded"), sum("orphan-visits.recorded")) == (2, 1)).then_some(bodies)
    };
    let bodies = wait::until_some(SOON, "events of three visits", told).await.unwrap();
    for body in bodies {
        let (data, sample) = (&body["data"], &body["data"]["sample"][0]);
        assert_eq!(sample["userAgent"], FIREFOX, "{body}");
        if body["type"] == "visits.recorded" {
            assert_eq!((&data["shortCode"], &data["bots"]), (&json!(link.code), &json!(0)), "{body}");
        } else {
            assert!(sample["visitedUrl"].as_str().unwrap().ends_with("/no-such-code"), "{body}");
            assert_eq!(sample["type"], "invalid_short_url", "{body}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_hangs_delays_no_other_and_is_called_again() {
    let resolver = start().await;
    let (slow, quick) = (Receiver::start(&[Reply::Hang]).await, Receiver::start(&[]).await);
    let webhook = create(&resolver.api, &slow.url(), &["link.created"]).await;
    create(&resolver.api, &quick.url(), &["link.created"]).await;
    resolver.api.create(URL).await.unwrap();
    quick.requests(1).await;
    let requests = slow.requests(2).await;
    assert_eq!(requests[0].header("webhook-id"), requests[1].header("webhook-id"));
    assert_ne!(requests[0].header("webhook-id"), quick.received()[0].header("webhook-id"));
    latest(&resolver.api, &webhook, "state", json!("delivered")).await;
    assert_eq!(quick.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed_and_410_disables() {
    let resolver = start().await;
    let other = Receiver::start(&[]).await;
    let moved = Receiver::start(&[Reply::Redirect(other.url())]).await;
    let gone = Receiver::start(&[Reply::Status(410)]).await;
    let of_moved = create(&resolver.api, &moved.url(), &["link.created"]).await;
    let of_gone = create(&resolver.api, &gone.url(), &["link.created"]).await;
    resolver.api.create(URL).await.unwrap();
    let delivery = latest(&resolver.api, &of_moved, "lastStatus", json!(302)).await;
    assert!(delivery["lastError"].as_str().unwrap().contains("redirect"), "{delivery}");
    latest(&resolver.api, &of_gone, "state", json!("dead")).await;
    assert!(other.received().is_empty());

    let path = format!("webhooks/{}", of_gone["id"]);
    let disabled = get(&resolver.api, &path).await;
    assert_eq!(disabled["enabled"], false);
    assert!(disabled["disabledReason"].as_str().unwrap().contains("410"), "{disabled}");
    let audit = get(&resolver.api, "audit").await;
    assert_eq!(audit["audit"]["data"][0]["action"], "disable-webhook");
    let refused = call(&resolver.api, Method::POST, &format!("{path}/test"), None).await;
    assert_eq!(refused.status, 409);
    moved.requests(2).await;
    assert_eq!(gone.received().len(), 1);
    assert_eq!(resolver.metric("resolver_webhooks_disabled_total").await, Some(1.0));

    done(&resolver.api, Method::PATCH, &path, Some(json!({ "enabled": true }))).await;
    let last = deliveries(&resolver.api, &of_gone).await.remove(0);
    done(&resolver.api, Method::POST, &format!("{path}/deliveries/{}/redeliver", last["id"]), None).await;
    let requests = gone.requests(2).await;
    assert_eq!(requests[0].header("webhook-id"), requests[1].header("webhook-id"));
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_that_are_not_public_are_refused_unless_they_are_allowed() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    for url in
        ["https://127.0.0.1/", "https://[::ffff:10.0.0.1]/", "https://169.254.169.254/", "http://a.test/"]
    {
        let body = json!({ "url": url, "events": ["link.created"] });
        let refused = call(&resolver.api, Method::POST, "webhooks", Some(body)).await;
        assert_eq!(
            (refused.status, &refused.json().unwrap()["invalidElements"]),
            (400, &json!(["url"])),
            "{url}"
        );
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let webhook = create(&resolver.api, &format!("https://localhost:{port}/"), &["link.created"]).await;
    resolver.api.create(URL).await.unwrap();
    let look = async || {
        deliveries(&resolver.api, &webhook).await.first().is_some_and(|one| one["lastError"].is_string())
    };
    wait::until(SOON, "an attempt", look).await.unwrap();
    let error = deliveries(&resolver.api, &webhook).await[0]["lastError"].as_str().unwrap().to_owned();
    assert!(error.contains("loopback"), "{error}");
    let reached = tokio::time::timeout(Duration::from_millis(100), listener.accept()).await;
    assert!(reached.is_err(), "the receiver was reached");
}

/// A name first has an address that is allowed, then one that is not, and then both.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_rebound_reaches_nothing_that_is_not_allowed() {
    let (scratch, receiver) = (Scratch::new().unwrap(), Receiver::listening("127.0.0.2:0", &[]).await);
    let port = receiver.address.port();
    let inside = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let hosts = scratch.file("hosts", "127.0.0.2 hook.example\n").unwrap();
    let flags = ["--webhooks", "network=127.0.0.2/32,http"];
    let builder = Resolver::embedded().unwrap().args(flags);
    let builder =
        builder.env("LD_PRELOAD", "libnss_wrapper.so").env("NSS_WRAPPER_HOSTS", hosts.to_str().unwrap());
    let resolver = builder.start().await.unwrap();
    let url = format!("http://hook.example:{port}/");
    let webhook = create(&resolver.api, &url, &["link.created"]).await;
    resolver.api.create(URL).await.unwrap();
    latest(&resolver.api, &webhook, "state", json!("delivered")).await;

    for (round, addresses) in [(1, &["127.0.0.1"][..]), (2, &["127.0.0.2", "127.0.0.1"])] {
        // The wrapper notices a change by its time in seconds.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        let lines: String = addresses.iter().map(|address| format!("{address} hook.example\n")).collect();
        std::fs::write(&hosts, lines).unwrap();
        resolver.api.create(URL).await.unwrap();
        let failed = async || {
            let all = deliveries(&resolver.api, &webhook).await;
            (all.len() == 1 + round).then(|| all[0]["lastError"].as_str().map(str::to_owned)).flatten()
        };
        let error = wait::until_some(SOON, "a failed attempt", failed).await.unwrap();
        assert!(error.contains("loopback"), "{addresses:?}: {error}");
    }
    let reached = tokio::time::timeout(Duration::from_millis(100), inside.accept()).await;
    assert!(reached.is_err(), "the other address was reached");
    assert_eq!(receiver.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_webhook_is_signed_twice_and_is_managed_from_the_command_line() {
    let resolver = start().await;
    let (person, receiver) = (Person::at(&resolver), Receiver::start(&[]).await);
    let shown =
        person.read(&["webhook", "create", &receiver.url(), "--event", "link.deleted", "--tag", "a"]).await;
    let (id, former) = (row(&shown, "id").unwrap().to_owned(), json!(row(&shown, "secret").unwrap()));
    let rotated = person.read(&["webhook", "rotate", &id]).await;
    let current = json!(row(&rotated, "secret").unwrap());
    assert_ne!(current, former);
    assert!(person.read(&["webhook", "test", &id]).await.ends_with(": queued\n"));
    let ping = receiver.requests(1).await.remove(0);
    assert_eq!(ping.json()["type"], "ping");
    assert_eq!(ping.header("webhook-signature").split(' ').count(), 2);
    let another = json!("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX");
    verify(&[(&current, &ping, true), (&former, &ping, true), (&another, &ping, false)]).await;

    for tags in [json!(["a", "b"]), json!(["b"])] {
        let link = resolver.api.create_with(&json!({ "longUrl": URL, "tags": tags })).await.unwrap();
        let path = format!("short-urls/{}", link.code);
        assert_eq!(call(&resolver.api, Method::DELETE, &path, None).await.status, 204);
    }
    let deleted = receiver.requests(2).await.remove(1).json();
    assert_eq!((&deleted["type"], &deleted["data"]["tags"]), (&json!("link.deleted"), &json!(["a", "b"])));
    let look = async || person.read(&["webhook", "deliveries", &id]).await.matches("delivered").count() == 2;
    wait::until(SOON, "two deliveries", look).await.unwrap();
    assert_eq!(receiver.received().len(), 2, "a link without the tag is none of its events");

    assert_eq!(row(&person.read(&["webhook", "disable", &id]).await, "enabled"), Some("no"));
    assert!(person.read(&["webhook", "list"]).await.contains("disabled"));
    assert_eq!(row(&person.read(&["webhook", "enable", &id]).await, "enabled"), Some("yes"));
    assert_eq!(row(&person.read(&["webhook", "show", &id]).await, "tag"), Some("a"));
    assert_eq!(person.read(&["webhook", "delete", &id]).await, format!("{id}: deleted\n"));
    assert!(person.fail(&["webhook", "show", &id], 66).await.contains("404"));
    let limited = person.fail(&["webhook", "redeliver", &id, "1"], 66).await;
    assert!(limited.contains("No webhook found"), "{limited}");
}
