//! Live visits: server-sent events and the hub that Shlink's web client subscribes to, across
//! resolvers.

use std::{collections::VecDeque, time::Duration};

use harness::{Api, Cluster, wait};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::rest_calls::{Alone, SOON, call, done, get};

const URL: &str = "https://example.com/page";
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0";
/// Within this time a stream of a revoked key ends.
const ENDS_WITHIN: Duration = Duration::from_secs(15);

/// An event of a stream.
#[derive(Clone, Debug, Default)]
struct Event {
    kind: String,
    id: String,
    data: String,
}

impl Event {
    fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

/// An open stream of events.
struct Stream {
    answer: Response,
    text: String,
    events: VecDeque<Event>,
}

impl Stream {
    async fn open(call: RequestBuilder) -> Self {
        let answer = call.send().await.unwrap();
        assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Self { answer, text: String::new(), events: VecDeque::new() }
    }

    /// Returns the next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let piece = self.answer.chunk().await.ok().flatten()?;
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let event = read(event);
                self.text = rest.to_owned();
                self.events.extend(Some(event).filter(|event| !event.data.is_empty()));
            }
        }
    }

    async fn visit(&mut self) -> Event {
        timeout(SOON, self.next()).await.expect("an event in time").expect("the stream goes on")
    }
}

fn read(text: &str) -> Event {
    let mut event = Event::default();
    for line in text.lines() {
        match line.split_once(": ") {
            Some(("event", kind)) => event.kind = kind.to_owned(),
            Some(("id", id)) => event.id = id.to_owned(),
            Some(("data", data)) => event.data.push_str(data),
            // Comments, and the pause before a client connects again.
            _ => {}
        }
    }
    event
}

/// Subscribes with an API key.
fn watching(api: &Api, query: &str) -> RequestBuilder {
    let url = format!("{}/rest/v3/live/visits{query}", api.url());
    api.http().get(url).header("X-Api-Key", api.key())
}

/// Subscribes to topics of the hub.
async fn hub(api: &Api, topics: &[&str]) -> RequestBuilder {
    let info = get(api, "mercure-info").await;
    let url = info["mercureHubUrl"].as_str().unwrap();
    let topics: Vec<String> = topics.iter().map(|topic| format!("topic={topic}")).collect();
    api.http().get(format!("{url}?{}", topics.join("&"))).bearer_auth(info["token"].as_str().unwrap())
}

async fn visit(api: &Api, path: &str) {
    let url = format!("{}/{path}", api.url());
    api.http().get(url).header("User-Agent", FIREFOX).send().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visit_at_one_resolver_is_told_by_another_with_the_count_of_its_link() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(2).start().await.unwrap();
    let [one, other] = [&cluster.resolvers[0].api, &cluster.resolvers[1].api];
    let link = one.create_with(&json!({ "longUrl": URL, "tags": ["a"] })).await.unwrap();
    let mut stream = Stream::open(watching(other, "?tag=a")).await;
    let mut updates = Stream::open(hub(other, &["https://shlink.io/new-visit"]).await).await;
    for count in 1..=3 {
        visit(one, &link.code).await;
        let event = stream.visit().await;
        let told = event.json();
        assert_eq!((event.kind.as_str(), &told["visit"]["userAgent"]), ("visit", &json!(FIREFOX)));
        assert_eq!(told["visit"]["redirectUrl"], URL);
        let short_url = &told["shortUrl"];
        assert_eq!((&short_url["shortCode"], &short_url["tags"]), (&json!(link.code), &json!(["a"])));
        assert_eq!(short_url["visitsSummary"], json!({ "total": count, "nonBots": count, "bots": 0 }));
        let update = updates.visit().await;
        assert_eq!((update.kind.as_str(), update.json()), ("", told), "Shlink's client reads the same");
    }
    visit(one, "no-such-code").await;
    visit(one, &link.code).await;
    assert!(stream.visit().await.json()["shortUrl"].is_object(), "orphan visits have no tag");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_on_where_it_broke_off_and_follows_its_topics() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let link = api.create(URL).await.unwrap();
    let mut stream = Stream::open(watching(api, "")).await;
    visit(api, &link.code).await;
    let last = stream.visit().await;
    drop(stream);
    visit(api, "no-such-code").await;
    visit(api, &link.code).await;
    let mut stream = Stream::open(watching(api, "").header("Last-Event-ID", &last.id)).await;
    let missed = [stream.visit().await.json(), stream.visit().await.json()];
    assert_eq!(missed[0]["visit"]["type"], "invalid_short_url");
    assert_eq!(missed[1]["shortUrl"]["shortCode"], link.code);

    let topic = format!("https://shlink.io/new-visit/{}", link.code);
    let mut of_link = Stream::open(hub(api, &[&topic]).await).await;
    let mut orphans = Stream::open(hub(api, &["https://shlink.io/new-orphan-visit"]).await).await;
    let other = api.create(URL).await.unwrap();
    for path in [&other.code, "no-such-code", &link.code] {
        visit(api, path).await;
    }
    assert_eq!(of_link.visit().await.json()["shortUrl"]["shortCode"], link.code);
    assert_eq!(orphans.visit().await.json()["visit"]["type"], "invalid_short_url");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_sees_its_own_visits_only_and_its_stream_ends_with_it() {
    let alone = Alone::start(&[]).await;
    let admin = alone.api();
    let own = alone.with_new_key("own", &["--scopes", "create,read,visits", "--own-links-only"]).await;
    let blind = alone.with_new_key("blind", &["--scopes", "create,read"]).await;
    assert_eq!(call(&blind, Method::GET, "live/visits", None).await.status, 403);
    assert_eq!(call(&blind, Method::GET, "mercure-info", None).await.status, 403);
    let (foreign, mine) = (admin.create(URL).await.unwrap(), own.create(URL).await.unwrap());
    let mut streams = [Stream::open(watching(&own, "")).await, Stream::open(hub(&own, &["*"]).await).await];
    for path in ["no-such-code", &foreign.code, &mine.code] {
        visit(admin, path).await;
    }
    for stream in &mut streams {
        assert_eq!(stream.visit().await.json()["shortUrl"]["shortCode"], mine.code);
    }
    must_end(&mut streams, async || alone.api_key(&["revoke", "--name", "own"]).await).await;
}

/// Checks that something ends streams.
async fn must_end(streams: &mut [Stream], end: impl AsyncFnOnce() -> String) {
    end().await;
    for stream in streams {
        let ended = timeout(ENDS_WITHIN, stream.next()).await.expect("the stream ends");
        assert!(ended.is_none(), "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_and_tokens_end_with_the_secret_that_they_were_given_for() {
    let alone = Alone::start(&[]).await;
    let old = alone.with_new_key("web", &[]).await;
    let info = get(&old, "mercure-info").await;
    let token = info["token"].as_str().unwrap();
    let with_token = async || {
        let hub = format!("{}/.well-known/mercure?topic=*", old.url());
        old.http().get(hub).bearer_auth(token).send().await.unwrap()
    };
    let mut kept = [Stream::open(watching(&old, "")).await, Stream::open(hub(&old, &["*"]).await).await];
    let rotate = async |old_for| alone.api_key(&["rotate", "--name", "web", "--keep-old-for", old_for]).await;
    let new = alone.api().with_key(&rotate("600s").await);
    visit(alone.api(), "no-such-code").await;
    for stream in &mut kept {
        stream.visit().await;
    }
    assert_eq!(with_token().await.status(), 200);
    let mut of_new = [Stream::open(watching(&new, "")).await];
    // The first secret ends now, the second one stays for a while.
    must_end(&mut kept, async || rotate("600s").await).await;
    assert_eq!(with_token().await.status(), 401);
    visit(alone.api(), "no-such-code").await;
    of_new[0].visit().await;
    must_end(&mut of_new, async || rotate("0s").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscriptions_are_bounded_and_end_when_the_resolver_stops() {
    let mut cluster = Cluster::builder().etcd(1).issuers(1).resolvers(1).start().await.unwrap();
    let api = cluster.resolvers[0].api.clone();
    let mut streams = Vec::new();
    for _ in 0..10 {
        streams.push(Stream::open(watching(&api, "")).await);
    }
    let refused = watching(&api, "").send().await.unwrap();
    assert_eq!(refused.status(), 429);
    streams.truncate(9);
    wait::until(SOON, "another client takes the place", async || {
        watching(&api, "").send().await.unwrap().status() == 200
    })
    .await
    .unwrap();
    let begun = Instant::now();
    let ending = tokio::spawn(async move {
        for stream in &mut streams {
            while stream.next().await.is_some() {}
        }
    });
    sleep(Duration::from_millis(100)).await;
    cluster.resolvers[0].stop(SOON).await.unwrap();
    ending.await.unwrap();
    assert!(begun.elapsed() < SOON);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_begins_with_the_time_to_retry_and_has_comments_while_it_is_quiet() {
    let alone = Alone::start(&[]).await;
    let mut stream = Stream::open(watching(alone.api(), "").timeout(SOON)).await;
    for expected in ["retry: 2000\n\n", ":\n\n"] {
        let piece = timeout(SOON, stream.answer.chunk()).await.expect("a piece in time").unwrap();
        assert_eq!(piece.as_deref(), Some(expected.as_bytes()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_visits_there_is_no_hub() {
    let alone = Alone::start(&["--visits-skip", "all"]).await;
    let answer = alone.api().get(".well-known/mercure?topic=*").await.unwrap();
    assert_eq!((answer.status, &*answer.body), (404, "visits are not stored: there are no updates\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hub_takes_only_its_own_tokens() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let url = format!("{}/.well-known/mercure?topic=*", api.url());
    assert_eq!(api.http().get(&url).send().await.unwrap().status(), 401);
    let forged = "eyJhbGciOiJub25lIn0.eyJtZXJjdXJlIjp7InN1YnNjcmliZSI6WyIqIl19fQ.";
    assert_eq!(api.http().get(&url).bearer_auth(forged).send().await.unwrap().status(), 401);
    let token = get(api, "mercure-info").await["token"].as_str().unwrap().to_owned();
    let (head, signature) = token.rsplit_once('.').unwrap();
    let tampered =
        format!("{head}.{}{}", if signature.starts_with('A') { 'B' } else { 'A' }, &signature[1..]);
    assert_eq!(api.http().get(&url).bearer_auth(tampered).send().await.unwrap().status(), 401);
    assert_eq!(api.http().post(&url).bearer_auth(&token).send().await.unwrap().status(), 405);
    for topics in [String::new(), "topic=*&".repeat(101)] {
        let call = api.http().get(url.replace("topic=*", &topics)).bearer_auth(&token);
        assert_eq!(call.send().await.unwrap().status(), 400, "{topics}");
    }
    done(api, Method::GET, "mercure-info", None).await;
    Stream::open(api.http().get(format!("{url}&authorization={token}"))).await;
}
