//! Rows that a later release has written, during a rolling upgrade or before a rollback (fault 36).
//! They harm themselves only.

use std::time::Duration;

use harness::{Answer, Api, Cluster, wait};
use reqwest::Method;
use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::rest_calls::{call, done, expect_problem, get, leads_to, visit};

const SOON: Duration = Duration::from_secs(30);
const URL: &str = "https://example.com/";
const LINKS: usize = 1_000;
/// How many visitors follow links at the same time.
const VISITORS: usize = 8;
/// Rules with a condition that this release does not know, before one that it does.
const RULES: &str = r#"[{"longUrl":"https://moon.example/","conditions":[{"type":"moon-phase","matchValue":"full"}]},
    {"longUrl":"https://ios.example/","conditions":[{"type":"device","matchValue":"ios"}]}]"#;

/// Creates links with one bulk call, so that no cache has them.
async fn create(api: &Api) {
    let bulk =
        api.http().post(format!("{}/rest/v3/short-urls/bulk", api.url())).header("X-Api-Key", api.key());
    let lines = format!("{{\"longUrl\":\"{URL}\"}}\n").repeat(LINKS);
    assert_eq!(Answer::to(bulk.body(lines)).await.unwrap().status, 200);
}

/// Stores details of a link as a later release does, and a title by which a list shows it.
async fn store(sql: &Client, title: &str, details: &str) {
    let update = "UPDATE link SET details = $1::text::jsonb, title = $2
                  WHERE id = (SELECT id FROM link WHERE title IS NULL LIMIT 1) RETURNING id";
    sql.query_one(update, &[&details, &title]).await.unwrap();
}

/// Returns the titles and codes of all links from their list.
async fn list(api: &Api) -> Vec<(Option<String>, String)> {
    let mut all = Vec::new();
    for page in 1..=LINKS / 100 {
        let list = get(api, &format!("short-urls?itemsPerPage=100&page={page}")).await;
        let links = list["shortUrls"]["data"].as_array().unwrap().clone();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        all.extend(links.iter().map(|link| (text(&link["title"]), text(&link["shortCode"]).unwrap())));
    }
    all
}

/// Follows all links, with several visitors at once. Returns the answers in the order of the links.
async fn follow_all(api: &Api, codes: &[String]) -> Vec<(u16, Option<String>)> {
    let mut visitors = tokio::task::JoinSet::new();
    for visitor in 0..VISITORS {
        let (api, codes) = (api.clone(), codes.to_vec());
        visitors.spawn(async move {
            let mut answers = Vec::new();
            for (place, code) in codes.iter().enumerate().skip(visitor).step_by(VISITORS) {
                answers.push((place, api.follow(code).await.unwrap()));
            }
            answers
        });
    }
    let mut answers = visitors.join_all().await.concat();
    answers.sort_by_key(|(place, _)| *place);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn links_of_a_later_release_harm_themselves_only() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(1).alone().start().await.unwrap();
    let (api, sql) = (&cluster.resolvers[0].api, cluster.postgres.client().await.unwrap());
    create(api).await;
    let refused = [
        r#"{"fence":["DE"]}"#,
        r#"{"password":{"passkey":"x"}}"#,
        r#"{"rules":[{"targets":["https://x.y/"],"conditions":[]}]}"#,
        r#"{"maxVisits":"a few"}"#,
        r#"{"version":"9-beta"}"#,
        "[]",
    ];
    for details in refused {
        store(&sql, "refused", details).await;
    }
    store(&sql, "ruled", &format!(r#"{{"rules":{RULES}}}"#)).await;
    store(&sql, "coloured", r#"{"_color":"red"}"#).await;
    let links = list(api).await;
    assert_eq!(links.len(), LINKS, "the list has all of them");
    let codes: Vec<String> = links.iter().map(|(_, code)| code.clone()).collect();
    for ((title, code), answer) in links.iter().zip(follow_all(api, &codes).await) {
        match title.as_deref() {
            Some("refused") => assert_eq!(answer.0, 503, "{code}"),
            _ => assert_eq!(answer, leads_to(URL), "{code}: {title:?}"),
        }
    }

    let of = |wanted: &str| {
        let link = links.iter().find(|(title, _)| title.as_deref() == Some(wanted));
        link.map(|(_, code)| format!("short-urls/{code}")).unwrap()
    };
    let stored = async || {
        let row = sql.query_one("SELECT details::text FROM link WHERE title = 'new'", &[]).await.unwrap();
        row.get::<_, String>(0)
    };
    let (ruled, title) = (of("ruled"), Some(json!({ "title": "new" })));
    done(api, Method::PATCH, &ruled, title).await;
    assert!(stored().await.contains("moon-phase"), "an edit keeps the rule");
    let rules = Some(json!({ "redirectRules": [] }));
    let replaced = call(api, Method::POST, &format!("{ruled}/redirect-rules"), rules).await;
    expect_problem(&replaced, 409, "about:blank");
    assert!(stored().await.contains("moon-phase"), "and nothing replaces it");
    assert_eq!(call(api, Method::DELETE, &ruled, None).await.status, 204);

    let create = async || {
        let request = api.post().header("X-Api-Key", api.key()).header("Idempotency-Key", "again");
        let answer = Answer::to(request.json(&json!({ "longUrl": URL }))).await.unwrap();
        answer.success().unwrap().json().unwrap()["shortCode"].clone()
    };
    let code = create().await;
    let rules = format!(r#"{{"rules":{RULES}}}"#);
    let update = "UPDATE link SET details = $1::text::jsonb WHERE id = (SELECT link_id FROM dedupe)";
    sql.execute(update, &[&rules]).await.unwrap();
    assert_eq!(create().await, code, "the create again is answered with its link");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_a_domain_and_a_target_rule_of_a_later_release_harm_themselves_only() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(1).alone().start().await.unwrap();
    let (resolver, sql) = (&cluster.resolvers[0], cluster.postgres.client().await.unwrap());
    let api = &resolver.api;
    for domain in ["one.example", "two.example"] {
        api.create_with(&json!({ "longUrl": URL, "customSlug": "page", "domain": domain })).await.unwrap();
    }
    let database = cluster.postgres.url();
    for name in ["later", "now"] {
        let args = ["api-key", "create", "--name", name, "--database", &database];
        cluster.run_resolver(&args, SOON).await.unwrap().success().unwrap();
    }
    sql.batch_execute(
        r#"UPDATE domain SET settings = '{"login": true}' WHERE authority = 'one.example';
           INSERT INTO target_rule (pattern, allowed) VALUES ('evil.example', false), ('/a+/', false);
           UPDATE settings_version SET version = version + 1;
           UPDATE api_key SET limits = '{"networks": ["10.0.0.0/8"]}', scopes = 'read,shred' WHERE name = 'later'"#,
    )
    .await
    .unwrap();
    let refuses = async || visit(api, "one.example", "page").await.0 == 503;
    wait::until(SOON, "the domain is of a later release", refuses).await.unwrap();
    assert_eq!(visit(api, "two.example", "page").await, leads_to(URL));
    let evil = api.try_create("https://evil.example/").await.unwrap();
    assert_eq!(evil.status, 400, "the other target rule is in force: {evil:?}");
    let list = cluster.run_resolver(&["api-key", "list", "--database", &database], SOON).await.unwrap();
    let list = list.success().unwrap().stdout;
    assert!(list.contains("later") && list.contains("now"), "{list}");
}
