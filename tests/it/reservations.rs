//! Reservations: codes are reserved before their links exist, filled later, and given back.

use std::{collections::HashSet, time::Duration};

use harness::{Answer, Api, Cluster, Load, checks, wait};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    pages::sign_in,
    rest_calls::{call, expect_problem},
};

const SOON: Duration = Duration::from_secs(60);
/// The capacity of the keyspace of two-character codes, small enough to use up every number.
const CAPACITY: usize = 62 * 62;
const RESERVED: usize = 1_000;
const FILLED: usize = 300;

async fn start() -> Cluster {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(2).alone().holder_ttl("2s");
    let cluster = cluster.keyspaces("default=2:0-9A-Za-z");
    let limits = ["--block-min", "100", "--block-max", "400", "--reclaim-after", "1s"];
    cluster.issuer_args(limits).start().await.unwrap()
}

/// Creates an API key on the command line and returns it.
async fn key(cluster: &Cluster, name: &str, scopes: &str) -> String {
    let database = cluster.database_url();
    let args = ["api-key", "create", "--name", name, "--scopes", scopes, "--database", &database];
    let made = cluster.run_resolver(&args, SOON).await.unwrap();
    assert!(made.status.success(), "{made:?}");
    made.stdout.trim().to_owned()
}

async fn ask(api: &Api, method: Method, below: &str, body: Option<Value>) -> Answer {
    call(api, method, &format!("reservations{below}"), body).await
}

async fn reserve(api: &Api, count: usize) -> (String, Vec<String>) {
    let answer = ask(api, Method::POST, "", Some(json!({ "count": count }))).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let body = answer.json().unwrap();
    let codes = body["shortCodes"].as_array().unwrap().iter();
    (body["id"].as_str().unwrap().to_owned(), codes.map(|code| code.as_str().unwrap().to_owned()).collect())
}

fn link(code: &str) -> Value {
    json!({ "shortCode": code, "longUrl": format!("https://example.com/reserved/{code}") })
}

async fn fill(api: &Api, id: &str, items: Vec<Value>) -> Vec<String> {
    let answer = ask(api, Method::POST, &format!("/{id}/short-urls"), Some(Value::Array(items))).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let results = answer.json().unwrap()["results"].as_array().unwrap().clone();
    results.iter().map(|result| result["result"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn reserved_codes_are_filled_later_survive_a_crash_and_go_to_others_when_given_up() {
    let mut cluster = start().await;
    let owner = key(&cluster, "campaign", "reserve").await;
    let [first, second] = [0, 1].map(|index| cluster.resolvers[index].api.with_key(&owner));
    let (id, codes) = reserve(&first, RESERVED).await;
    assert_eq!(codes.iter().collect::<HashSet<_>>().len(), RESERVED);
    assert_eq!(first.follow(&codes[0]).await.unwrap().0, 404, "a code is not a link yet");

    // No process sends beats for a reservation. Neither silence nor a dead resolver may cost it its
    // numbers.
    for resolver in &mut cluster.resolvers {
        resolver.process.kill_now().unwrap();
    }
    let only_reserved = wait::until(SOON, "the resolvers' own blocks leaked", async || {
        let status = cluster.status().await.unwrap();
        status.only_namespace().unwrap().open == RESERVED as u64
    });
    only_reserved.await.unwrap();
    for resolver in &mut cluster.resolvers {
        resolver.restart().await.unwrap();
    }

    let filled: Vec<Value> = codes[..FILLED].iter().map(|code| link(code)).collect();
    assert_eq!(fill(&second, &id, filled.clone()).await, vec!["stored"; FILLED]);
    assert_eq!(
        fill(&first, &id, filled).await,
        vec!["stored"; FILLED],
        "the same call again changes nothing"
    );
    for code in &codes[..FILLED] {
        let (status, to) = first.follow(code).await.unwrap();
        assert_eq!((status, to), (302, Some(format!("https://example.com/reserved/{code}"))));
    }
    let shown = ask(&first, Method::GET, &format!("/{id}"), None).await.json().unwrap();
    assert_eq!((&shown["filled"], &shown["count"]), (&json!(FILLED), &json!(RESERVED)));
    assert_eq!(
        shown["shortCodes"].as_array().unwrap().len(),
        RESERVED,
        "whoever lost the codes gets them again"
    );

    assert_eq!(ask(&second, Method::DELETE, &format!("/{id}"), None).await.status, 204);
    assert_eq!(ask(&first, Method::DELETE, &format!("/{id}"), None).await.status, 204, "again");
    let late =
        ask(&first, Method::POST, &format!("/{id}/short-urls"), Some(json!([link(&codes[900])]))).await;
    assert_eq!(late.status, 409, "{late:?}");
    use_every_number_up(&cluster).await;
}

/// Creates links until every number of the keyspace is used. The numbers that the reservation did
/// not use are minted by others.
async fn use_every_number_up(cluster: &Cluster) {
    let mut links = Vec::new();
    let used_up = wait::until(SOON, "every number has a link", async || {
        let mut load = Load::on(&cluster.resolvers).creates(CAPACITY).start();
        let _ = load.reaches(CAPACITY, Duration::from_secs(5)).await;
        links.extend(load.end().await.unwrap().links);
        links.len() + FILLED >= CAPACITY
    });
    used_up.await.unwrap();
    assert_eq!(links.len() + FILLED, CAPACITY);
    checks::all_distinct(&links).unwrap();
    checks::all_resolve(&links, &cluster.resolvers).await.unwrap();
    checks::account_balances(&cluster.status().await.unwrap()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reservation_is_its_keys_own_and_takes_only_its_codes() {
    let cluster = start().await;
    let api = &cluster.resolvers[0].api;
    let owner = api.with_key(&key(&cluster, "owner", "reserve,create").await);
    let (id, codes) = reserve(&owner, 3).await;
    let (other_id, foreign) = reserve(&owner, 1).await;
    let table = owner.http().get(format!("{}/manage/reservations.csv?id={other_id}", owner.url()));
    let table = table.header("cookie", sign_in(owner.url(), owner.key()).await).send().await.unwrap();
    let expected = format!("shortCode,shortUrl\r\n{0},{1}/{0}\r\n", foreign[0], owner.url());
    assert_eq!(table.text().await.unwrap(), expected);
    let elsewhere = json!({ "shortCode": codes[0], "longUrl": "https://example.com/elsewhere" });
    assert_eq!(fill(&owner, &id, vec![link(&codes[0])]).await, ["stored"]);
    let no_url = json!({ "shortCode": codes[1], "longUrl": "ftp://example.com" });
    let items = vec![
        elsewhere,
        link(&foreign[0]),
        link(&codes[1]),
        link(&codes[1]),
        no_url,
        link("no code!"),
        link("aaaaaaaa"),
        link(&codes[2]),
    ];
    let results = fill(&owner, &id, items).await;
    let expected =
        ["conflict", "not-reserved", "stored", "repeated", "invalid", "invalid", "not-reserved", "stored"];
    assert_eq!(results, expected);

    let other = api.with_key(&key(&cluster, "other", "reserve").await);
    for (method, below) in [(Method::GET, ""), (Method::DELETE, ""), (Method::POST, "/short-urls")] {
        let body = (method == Method::POST).then(|| json!([link(&codes[2])]));
        let answer = ask(&other, method.clone(), &format!("/{id}{below}"), body).await;
        assert_eq!(answer.status, 404, "{method} {below}: {answer:?}");
    }
    let list = |api: Api| async move {
        let answer = ask(&api, Method::GET, "", None).await.json().unwrap();
        answer["reservations"]["data"].as_array().unwrap().len()
    };
    assert_eq!(list(other).await, 0);
    assert_eq!(list(owner.clone()).await, 2);
    assert_eq!(list(api.clone()).await, 2, "an admin sees them all");

    let reader = api.with_key(&key(&cluster, "reader", "read").await);
    let refused = ask(&reader, Method::POST, "", Some(json!({ "count": 1 }))).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(refused.json().unwrap()["detail"].as_str().unwrap().contains("reserve"));
    assert_eq!(reader.try_create("https://example.com").await.unwrap().status, 403);
    assert_eq!(owner.try_create("https://example.com").await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_of_the_same_key_gives_a_reserved_code_its_link() {
    let cluster = start().await;
    let [api, second] = [0, 1].map(|index| cluster.resolvers[index].api.clone());
    let owner = api.with_key(&key(&cluster, "owner", "reserve,create").await);
    let (id, codes) = reserve(&owner, 3).await;
    let url = |name: &str| format!("https://{name}.example/");
    let wish = |code: &str, name: &str| json!({ "longUrl": url(name), "customSlug": code });
    let create = async |api: &Api, wish: &Value| api.try_create_with(wish).await.unwrap();

    for (name, scopes) in [("other", "reserve,create"), ("creator", "create")] {
        let other = api.with_key(&key(&cluster, name, scopes).await);
        expect_problem(&create(&other, &wish(&codes[0], "other")).await, 400, "non-unique-slug");
    }
    let mut tagged = wish(&codes[0], "one");
    tagged["tags"] = json!(["x"]);
    let refused = expect_problem(&create(&owner, &tagged).await, 400, "invalid-data");
    assert_eq!(refused["invalidElements"], json!(["tags"]), "{refused}");
    assert_eq!(api.follow(&codes[0]).await.unwrap().0, 404);

    let of_second = second.with_key(owner.key());
    for api in [&owner, &owner, &of_second] {
        assert_eq!(api.create_with(&wish(&codes[0], "one")).await.unwrap().code, codes[0], "repeated");
        assert_eq!(api.follow(&codes[0]).await.unwrap(), (302, Some(url("one"))));
    }
    expect_problem(&create(&owner, &wish(&codes[0], "two")).await, 400, "non-unique-slug");
    let one = json!({ "shortCode": codes[0], "longUrl": url("one") });
    assert_eq!(fill(&owner, &id, vec![one, link(&codes[1])]).await, ["stored", "stored"], "the same link");
    expect_problem(&create(&owner, &wish(&codes[1], "two")).await, 400, "non-unique-slug");

    let [left, right] = ["left", "right"].map(|name| wish(&codes[2], name));
    let raced = tokio::join!(create(&owner, &left), create(&of_second, &right));
    let mut statuses = [raced.0.status, raced.1.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400], "one of two gets the code: {raced:?}");
    let shown = ask(&owner, Method::GET, &format!("/{id}"), None).await.json().unwrap();
    assert_eq!(shown["filled"], 3, "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_codes_than_there_are_cannot_be_reserved() {
    let cluster = start().await;
    let api = &cluster.resolvers[0].api;
    let too_many = ask(api, Method::POST, "", Some(json!({ "count": CAPACITY + 1 }))).await;
    assert_eq!(too_many.status, 507, "{too_many:?}");
    let given_back = wait::until(SOON, "what was got of it is given up again", async || {
        let answer = ask(api, Method::GET, "", None).await.json().unwrap();
        answer["reservations"]["data"][0]["dateClosed"].is_string()
    });
    given_back.await.unwrap();
    for below in ["/0", "/0123456789abcdef0123456789abcdef", "/x/y/z"] {
        assert_eq!(ask(api, Method::GET, below, None).await.status, 404, "{below}");
    }
}
