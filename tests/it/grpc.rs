//! The gRPC links API: the same links as over REST, and the same refusals.

use std::{future::poll_fn, time::Duration};

use harness::{Cluster, Resolver, net::free_addr, wait};
use http_body_util::Full;
use prost::Message as _;
use proto::links::v1::{
    CreateLinkRequest, DeleteLinkRequest, EditLinkRequest, GetLinkRequest, ListLinksRequest, Tags,
    create_link_result::Result as Created, links_client::LinksClient,
};
use reqwest::Method;
use serde_json::json;
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tonic::{
    Code, Request, Status,
    body::Body,
    codegen::Service as _,
    transport::{Channel, Endpoint},
};

use crate::rest_calls::{Alone, done};

const URL: &str = "https://example.com/page";

async fn start() -> (Resolver, LinksClient<Channel>) {
    start_with(&[]).await
}

async fn start_with(args: &[&str]) -> (Resolver, LinksClient<Channel>) {
    let address = free_addr().unwrap();
    let builder = Resolver::embedded().unwrap().args(["--grpc-listen", &address.to_string()]);
    let resolver = builder.args(args.iter().copied()).start().await.unwrap();
    let client = LinksClient::connect(format!("http://{address}")).await.unwrap();
    (resolver, client)
}

fn with<T>(key: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("x-api-key", key.parse().unwrap());
    request.set_timeout(Duration::from_secs(20));
    request
}

fn create(long_url: &str) -> CreateLinkRequest {
    CreateLinkRequest { long_url: long_url.to_owned(), ..CreateLinkRequest::default() }
}

fn problem(status: &Status) -> Option<&str> {
    status.metadata().get("problem-type").and_then(|kind| kind.to_str().ok())
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_behind_a_trusted_proxy_have_budgets_of_their_own() {
    let (resolver, mut client) =
        start_with(&["--limit", "calls-per-client=2", "--trusted-proxies", "127.0.0.0/8"]).await;
    let mut list_for = async |forwarded: &'static str| {
        let mut request = with(resolver.api.key(), ListLinksRequest::default());
        request.metadata_mut().insert("x-forwarded-for", forwarded.parse().unwrap());
        client.list_links(request).await.map(drop).map_err(|status| status.code())
    };
    for network in ["192.0.2.1", "198.51.100.7, 192.0.2.2"] {
        let mut answers = Vec::new();
        for _ in 0..3 {
            answers.push(list_for(network).await);
        }
        assert_eq!(answers, [Ok(()), Ok(()), Err(Code::ResourceExhausted)], "{network}");
    }
    assert_eq!(
        list_for("203.0.113.1, 192.0.2.1").await,
        Err(Code::ResourceExhausted),
        "it wrote that itself"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_created_shown_changed_listed_and_deleted_as_over_rest() {
    let (resolver, mut client) = start().await;
    let key = resolver.api.key().to_owned();
    let request = CreateLinkRequest {
        custom_slug: Some("über/uns".to_owned()),
        title: Some("Über uns".to_owned()),
        tags: vec!["a".to_owned(), "b".to_owned()],
        valid_until_ms: Some(4_000_000_000_123),
        max_visits: Some(3),
        redirect_status: Some(307),
        extra_path: Some("append".to_owned()),
        expired_url: Some("https://example.org/over".to_owned()),
        ..create(URL)
    };
    let made = client.create_link(with(&key, request)).await.unwrap().into_inner();
    assert_eq!((made.short_code.as_str(), made.long_url.as_str(), made.version), ("über/uns", URL, 0));
    assert_eq!(made.short_url, format!("{}/über/uns", resolver.api.url()));
    assert_eq!(made.extra_path.as_deref(), Some("append"));
    assert_eq!(made.expired_url.as_deref(), Some("https://example.org/over"));
    assert_eq!(
        (made.valid_until_ms, made.max_visits, made.enabled),
        (Some(4_000_000_000_123), Some(3), true)
    );
    assert_eq!(resolver.api.follow("%C3%BCber/uns").await.unwrap(), (307, Some(URL.to_owned())));

    let get = GetLinkRequest { short_code: "über/uns".to_owned(), domain: None };
    assert_eq!(client.get_link(with(&key, get.clone())).await.unwrap().into_inner(), made);
    let edit = EditLinkRequest {
        short_code: "über/uns".to_owned(),
        version: Some(0),
        title: Some(String::new()),
        tags: Some(Tags { tags: vec!["c".to_owned()] }),
        valid_until_ms: Some(0),
        extra_path: Some(String::new()),
        expired_url: Some(String::new()),
        long_url: Some("https://example.org/".to_owned()),
        ..EditLinkRequest::default()
    };
    let edited = client.edit_link(with(&key, edit.clone())).await.unwrap().into_inner();
    assert_eq!((edited.title, edited.tags, edited.valid_until_ms), (None, vec!["c".to_owned()], None));
    assert_eq!((edited.extra_path, edited.expired_url), (None, None));
    assert_eq!((edited.max_visits, edited.version), (Some(3), 1), "what is not named stays");
    let who = (edited.created_by.as_deref(), edited.edited_by.as_deref(), edited.edited_at_ms.is_some());
    assert_eq!(who, (Some("initial"), Some("initial"), true));
    let late = client.edit_link(with(&key, edit)).await.unwrap_err();
    assert_eq!(late.code(), Code::Aborted, "another version was meant: {late}");
    assert!(late.message().starts_with("version: ") && !late.message().contains("ETag"), "{late}");

    client.create_link(with(&key, create("https://example.com/second"))).await.unwrap();
    let list = ListLinksRequest { tags: vec!["c".to_owned()], ..ListLinksRequest::default() };
    let listed = client.list_links(with(&key, list)).await.unwrap().into_inner();
    assert_eq!((listed.total, listed.links.len()), (1, 1));
    assert_eq!(listed.links[0].short_code, "über/uns");

    let delete = DeleteLinkRequest { short_code: "über/uns".to_owned(), ..DeleteLinkRequest::default() };
    client.delete_link(with(&key, delete)).await.unwrap();
    let gone = client.get_link(with(&key, get)).await.unwrap_err();
    assert_eq!((gone.code(), problem(&gone)), (Code::NotFound, Some("short-url-not-found")));
    let page = resolver.metrics().await.unwrap();
    for labels in ["method=\"CreateLink\",code=\"Ok\"", "method=\"DeleteLink\",code=\"Ok\""] {
        let counted = format!("resolver_grpc_request_duration_seconds_count{{{labels}}}");
        assert!(page.contains(&counted), "no {counted} in\n{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_name_what_was_expected() {
    let (resolver, mut client) = start().await;
    let key = resolver.api.key().to_owned();
    let picked = CreateLinkRequest { custom_slug: Some("taken".to_owned()), ..create(URL) };
    client.create_link(with(&key, picked.clone())).await.unwrap();
    for (request, code, kind, part) in [
        (picked, Code::AlreadyExists, Some("non-unique-slug"), "taken"),
        (create("javascript:1"), Code::InvalidArgument, Some("invalid-data"), "longUrl: expected"),
        (
            CreateLinkRequest { short_code_length: Some(256), ..create(URL) },
            Code::InvalidArgument,
            Some("invalid-data"),
            "shortCodeLength: expected",
        ),
    ] {
        let refused = client.create_link(with(&key, request)).await.unwrap_err();
        assert_eq!((refused.code(), problem(&refused)), (code, kind), "{refused}");
        assert!(refused.message().contains(part), "{refused}");
    }
    let reason = Some(json!({ "reason": "phishing" }));
    done(&resolver.api, Method::POST, "short-urls/taken/block", reason).await;
    let get = GetLinkRequest { short_code: "taken".to_owned(), domain: None };
    let blocked = client.get_link(with(&key, get)).await.unwrap().into_inner().blocked.unwrap();
    assert!(blocked.reason == "phishing" && blocked.date_ms > 0, "{blocked:?}");
    let delete = DeleteLinkRequest { short_code: "taken".to_owned(), ..DeleteLinkRequest::default() };
    let refused = client.delete_link(with(&key, delete)).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "an operator lifts the block first: {refused}");
    let wrong = client.create_link(with("0123456789abcdef", create(URL))).await.unwrap_err();
    assert_eq!((wrong.code(), problem(&wrong)), (Code::Unauthenticated, Some("invalid-api-key")));
    let none = client.create_link(Request::new(create(URL))).await.unwrap_err();
    assert_eq!((none.code(), problem(&none)), (Code::Unauthenticated, Some("missing-authentication")));
    let long = create(&format!("{URL}?{}", "x".repeat(70_000)));
    let long = client.create_link(with(&key, long)).await.unwrap_err();
    assert_eq!(long.code(), Code::OutOfRange, "a message that is too long: {long}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_answered_in_its_order_and_one_refusal_fails_no_other() {
    let (resolver, mut client) = start().await;
    let key = resolver.api.key().to_owned();
    let requests = (0..500).map(|number| match number % 10 {
        7 => create("ftp://example.com"),
        _ => CreateLinkRequest {
            idempotency_key: Some(format!("k{number}")),
            ..create(&format!("{URL}/{number}"))
        },
    });
    let ask = async |client: &mut LinksClient<Channel>| {
        let requests: Vec<_> = requests.clone().collect();
        let results =
            client.create_links(with(&key, tokio_stream::iter(requests))).await.unwrap().into_inner();
        results.map(|result| result.unwrap().result.unwrap()).collect::<Vec<_>>().await
    };
    let first = ask(&mut client).await;
    assert_eq!(first.len(), 500);
    for (number, result) in first.iter().enumerate() {
        match result {
            Created::Link(link) => assert_eq!(link.long_url, format!("{URL}/{number}")),
            Created::Refusal(refusal) => {
                assert_eq!((number % 10, refusal.code), (7, Code::InvalidArgument.into()), "{refusal:?}");
            }
        }
    }
    assert_eq!(ask(&mut client).await, first, "sent again it makes no other links");
    let Created::Link(link) = &first[0] else { panic!("the first is a link") };
    assert_eq!(resolver.api.follow(&link.short_code).await.unwrap(), (302, Some(format!("{URL}/0"))));
}

/// A write whose caller has gone is either complete or absent, never half done.
#[tokio::test(flavor = "multi_thread")]
async fn a_create_runs_to_its_end_though_its_client_goes_away() {
    let cluster = Cluster::builder().start().await.unwrap();
    let address = free_addr().unwrap();
    let builder = cluster.resolver("grpc").unwrap().args(["--grpc-listen", &address.to_string()]);
    let resolver = builder.start().await.unwrap();
    let mut client = LinksClient::connect(format!("http://{address}")).await.unwrap();
    let mut sql = cluster.postgres.client().await.unwrap();
    let lock = sql.transaction().await.unwrap();
    lock.execute("LOCK TABLE tag IN ACCESS EXCLUSIVE MODE", &[]).await.unwrap();
    let request = CreateLinkRequest {
        custom_slug: Some("summer/2026".to_owned()),
        tags: vec!["t".to_owned()],
        ..create(URL)
    };
    let call = client.create_link(with(resolver.api.key(), request));
    // By then its link is stored, and it waits for the lock on its tag.
    let given_up = tokio::time::timeout(Duration::from_secs(1), call).await;
    assert!(given_up.is_err(), "it waits: {given_up:?}");
    drop(client);
    tokio::time::sleep(Duration::from_millis(500)).await;
    lock.rollback().await.unwrap();
    let leads = async || resolver.api.follow("summer/2026").await.unwrap().0 == 302;
    wait::until(Duration::from_secs(20), "the link is there", leads).await.unwrap();
    let shown = crate::rest_calls::get(&resolver.api, "short-urls/summer/2026").await;
    assert_eq!(shown["tags"], serde_json::json!(["t"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_asked_for_by_few_tags() {
    let (resolver, mut client) = start().await;
    for (count, expected) in
        [(100, Ok(())), (101, Err(Code::InvalidArgument)), (4_000, Err(Code::InvalidArgument))]
    {
        let tags = (0..count).map(|number| format!("t{number}")).collect();
        let asked = ListLinksRequest { tags, all_tags: true, ..ListLinksRequest::default() };
        let listed = client.list_links(with(resolver.api.key(), asked)).await;
        assert_eq!(listed.map(drop).map_err(|status| status.code()), expected, "{count}");
    }
}

/// Requests a list and returns once the head of the response has arrived.
async fn head_of_answer(
    channel: &mut Channel,
    key: &str,
    asked: &ListLinksRequest,
) -> tonic::codegen::http::Response<Body> {
    let mut message = vec![0];
    message.extend(u32::try_from(asked.encoded_len()).unwrap().to_be_bytes());
    message.extend(asked.encode_to_vec());
    let request = tonic::codegen::http::Request::post("http://x/shortmint.links.v1.Links/ListLinks")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("x-api-key", key)
        .body(Body::new(Full::from(message)))
        .unwrap();
    poll_fn(|cx| channel.poll_ready(cx)).await.unwrap();
    timeout(Duration::from_secs(20), channel.call(request)).await.expect("the head arrives in time").unwrap()
}

/// Unread lists count towards the budget of their key, and another key's lists still arrive.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_nobody_reads_are_bounded_for_a_key() {
    let address = free_addr().unwrap();
    let alone = Alone::start(&["--grpc-listen", &address.to_string()]).await;
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let mut client = LinksClient::connect(endpoint.clone()).await.unwrap();
    let long = |number: u32| create(&format!("{URL}/{number}/{}", "x".repeat(7_000)));
    for number in 0..300 {
        client.create_link(with(alone.api().key(), long(number))).await.unwrap();
    }
    // A flow-control window of one byte: the server can send only one byte of a response.
    let mut deaf = endpoint.initial_stream_window_size(1).connect().await.unwrap();
    let all = ListLinksRequest { items_per_page: 300, ..ListLinksRequest::default() };
    let greedy = alone.with_new_key("greedy", &["--scopes", "read"]).await;
    let (mut unread, mut refused) = (Vec::new(), false);
    for _ in 0..60 {
        let answer = head_of_answer(&mut deaf, greedy.key(), &all).await;
        refused = answer.headers().get("grpc-status").is_some_and(|status| *status == "8");
        unread.push(answer);
        if refused {
            break;
        }
    }
    assert!(refused, "{} answers of two megabytes each were kept for one key", unread.len());
    let listed = client.list_links(with(alone.api().key(), all.clone())).await.unwrap();
    assert_eq!(listed.into_inner().links.len(), 300, "another key's");
    drop(unread);
    let given_back = async || client.clone().list_links(with(greedy.key(), all.clone())).await.is_ok();
    wait::until(Duration::from_secs(10), "what was held is given back", given_back).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tags_of_a_list_count_towards_its_message() {
    let (resolver, mut client) = start().await;
    let key = resolver.api.key().to_owned();
    let tags: Vec<String> = (0..100).map(|number| format!("{number:03}{}", "t".repeat(247))).collect();
    for number in 0..140 {
        let tagged =
            CreateLinkRequest { tags: tags.clone(), ..create(&format!("https://example.com/{number}")) };
        client.create_link(with(&key, tagged)).await.unwrap();
    }
    for (items_per_page, expected) in [(90, Ok(90)), (140, Err(Code::InvalidArgument))] {
        let asked = ListLinksRequest { items_per_page, ..ListLinksRequest::default() };
        let listed = client.list_links(with(&key, asked)).await;
        let listed = listed.map(|answer| answer.into_inner().links.len()).map_err(|status| status.code());
        assert_eq!(listed, expected, "{items_per_page}");
    }
}
