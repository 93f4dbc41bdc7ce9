//! Processes that serve visitors only, or the API only, each with a role in the database that may
//! do no more than its part.

use std::time::Duration;

use harness::{Answer, Cluster, Launch, Resolver, Scratch, binaries, wait};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::done;

const SOON: Duration = Duration::from_secs(30);
/// A change reaches the caches of other processes within this.
const CHANGED_WITHIN: Duration = Duration::from_secs(1);

/// A platform whose processes for the API and for visitors are apart.
struct Apart {
    cluster: Cluster,
    api: Resolver,
    visitors: Resolver,
}

impl Apart {
    async fn start() -> Self {
        let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(0).start().await.unwrap();
        let sql = cluster.postgres.client().await.unwrap();
        sql.batch_execute("CREATE ROLE \"serve-role\" LOGIN; CREATE ROLE follow LOGIN").await.unwrap();
        let url = cluster.database_url();
        let migrate =
            ["migrate", "--database", &url, "--serve-role", "serve-role", "--redirect-role", "follow"];
        let migrated = cluster.run_resolver(&migrate, SOON).await.unwrap();
        assert!(migrated.status.success(), "{}", migrated.stderr);
        let owner = cluster.postgres.url();
        let user = owner.strip_prefix("postgres://").unwrap().split('@').next().unwrap();
        let of = |role: &str| owner.replacen(user, role, 1);
        let args = ["--tune", "visits-flush=turn", "--compat", "bitly"];
        let api = cluster.resolver("api-0").unwrap().database(&of("serve-role"));
        let api = api.args(["--role", "api"]).args(args).start().await.unwrap();
        let visitors = cluster.resolver("redirect-0").unwrap().database(&of("follow"));
        let public_url = format!("http://{}", api.addr());
        let visitors = visitors.public_url(&public_url).redirects_only().args(args);
        let visitors = visitors.args(["--limit", "warm-links=9"]).start().await.unwrap();
        let log = visitors.process.stderr();
        assert!(log.contains("cached links before the start"), "it may read which they are: {log}");
        Self { cluster, api, visitors }
    }

    async fn follow(&self, code: &str) -> (u16, Option<String>) {
        self.visitors.api.follow(code).await.unwrap()
    }

    async fn visits_of(&self, code: &str) -> serde_json::Value {
        let path = format!("/rest/v3/short-urls/{code}");
        let answer = call(&self.api, self.api.api.key(), &path).await;
        answer.json().unwrap()["visitsSummary"]["total"].clone()
    }
}

async fn call(resolver: &Resolver, key: &str, path: &str) -> Answer {
    let url = format!("http://{}{path}", resolver.addr());
    Answer::to(resolver.api.http().get(url).header("X-Api-Key", key)).await.unwrap()
}

/// The pages need the API. Every process has the files of its pages.
async fn pages_are_with_the_api(visitors: &Resolver, api: &Resolver) {
    for path in ["/manage", "/manage/create", "/cluster", "/_pages/sign-in", "/v4/user"] {
        assert_eq!(call(visitors, "", path).await.status, 421, "{path}");
        assert_ne!(call(api, "", path).await.status, 421, "{path}");
    }
    assert_eq!(call(visitors, "", "/").await.status, 200);
    for process in [visitors, api] {
        assert_eq!(call(process, "", "/_pages/assets/0/style.css").await.status, 200);
    }
    app_links_are_with_both(visitors, api).await;
    names_in_other_letters_are_found(visitors, api).await;
}

/// A name that could be a code is looked for among reservations.
async fn names_in_other_letters_are_found(visitors: &Resolver, api: &Resolver) {
    done(&api.api, Method::PATCH, "domains/DEFAULT", Some(json!({ "ignoreCase": true }))).await;
    let wish = json!({ "longUrl": "https://example.org/autumn", "customSlug": "autumn" });
    api.api.create_with(&wish).await.unwrap();
    let found = async || call(visitors, "", "/AUTUMN").await.status == 302;
    wait::until(SOON, "the setting has arrived", found).await.unwrap();
}

/// Proxies send paths below `/.well-known` to the API, and the files of app links are for visitors.
async fn app_links_are_with_both(visitors: &Resolver, api: &Resolver) {
    let path = "/.well-known/assetlinks.json";
    assert_eq!((call(visitors, "", path).await.status, call(api, "", path).await.status), (404, 421));
    let set = async |file: Value| {
        done(&api.api, Method::PATCH, "domains/DEFAULT", Some(json!({ "assetLinks": file }))).await;
    };
    set(json!([])).await;
    for process in [visitors, api] {
        assert_eq!(call(process, "", path).await.status, 200);
    }
    set(Value::Null).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn visitors_and_the_api_are_served_apart_by_roles_that_may_do_no_more() {
    let apart = Apart::start().await;
    let Apart { cluster, api, visitors } = &apart;
    let first = "https://example.com/one";
    let created = api.api.create(first).await.unwrap();
    let code = created.code.as_str();
    assert_eq!(apart.follow(code).await, (302, Some(first.to_owned())));
    assert_eq!(apart.follow("zzzzzz").await.0, 404);

    // Each refuses the other's requests, and never by "there is no such link".
    let links = call(visitors, api.api.key(), "/rest/v3/short-urls").await;
    assert_eq!((links.status, links.header("cache-control")), (421, Some("no-store")), "{}", links.body);
    assert_eq!(call(visitors, "", "/rest/health").await.status, 421);
    for path in [format!("/{code}"), "/".to_owned(), format!("/{code}/qr-code"), "/robots.txt".to_owned()] {
        assert_eq!(call(api, "", &path).await.status, 421, "{path}");
    }
    pages_are_with_the_api(visitors, api).await;
    // A process for the API alone knows what the others would answer.
    let explained = call(api, api.api.key(), &format!("/rest/v3/explain?url={code}")).await.json().unwrap();
    assert_eq!(explained["answer"]["location"], first, "{explained}");

    let edit = json!({ "longUrl": "https://example.com/other", "maxVisits": 3 });
    let request = api.api.http().patch(format!("{}/rest/v3/short-urls/{code}", api.api.url()));
    Answer::to(request.header("X-Api-Key", api.api.key()).json(&edit)).await.unwrap().success().unwrap();
    // One visit before the edit, and one for each redirect from here on.
    let mut visits = 1;
    wait::until(CHANGED_WITHIN, "the edit has arrived", async || {
        visits += 1;
        apart.follow(code).await.1.as_deref() != Some(first)
    })
    .await
    .unwrap();
    wait::until(SOON, "the limit is reached", async || {
        let (status, _) = apart.follow(code).await;
        visits += i32::from(status == 302);
        status == 404
    })
    .await
    .unwrap();
    assert!(visits >= 4, "three visits are allowed from the edit on");
    wait::until(SOON, "the visits are counted", async || apart.visits_of(code).await == visits)
        .await
        .unwrap();

    let owner = cluster.postgres.client().await.unwrap();
    let days = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'visit'::regclass";
    wait::until(SOON, "days have partitions", async || {
        owner.query_one(days, &[]).await.unwrap().get::<_, i64>(0) > 3
    })
    .await
    .unwrap();
    for (role, statement) in [
        ("follow", "SELECT * FROM api_key"),
        ("follow", "SELECT * FROM session"),
        ("follow", "SELECT secret FROM webhook"),
        ("follow", "INSERT INTO link SELECT * FROM link"),
        ("follow", "UPDATE deployment SET history = history"),
        ("follow", "SELECT visit_remove_day(1)"),
        ("serve-role", "DROP TABLE link"),
        ("serve-role", "ALTER TABLE link ADD COLUMN x integer"),
        ("serve-role", "CREATE TABLE mine (x integer)"),
        ("serve-role", "DELETE FROM refinery_schema_history"),
    ] {
        let tried = format!("SET ROLE \"{role}\"; {statement}");
        let error = owner.batch_execute(&tried).await.expect_err(statement);
        let code = error.code().map(tokio_postgres::error::SqlState::code);
        assert_eq!(code, Some("42501"), "{role}: {statement}: {error}");
        owner.batch_execute("RESET ROLE").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_for_visitors_starts_and_redirects_without_issuer_etcd_and_api() {
    let Apart { mut cluster, mut api, mut visitors } = Apart::start().await;
    let first = "https://example.com/one";
    let created = api.api.create(first).await.unwrap();
    api.stop(SOON).await.unwrap();
    cluster.issuers[0].process.kill_now().unwrap();
    cluster.etcd.stop_all().unwrap();
    visitors.stop(SOON).await.unwrap();
    visitors.restart().await.unwrap();
    let answer = visitors.api.follow(&created.code).await.unwrap();
    assert_eq!(answer, (302, Some(first.to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_for_a_sqlite_file_is_refused_before_the_file_is_made() {
    let scratch = Scratch::new().unwrap();
    let file = scratch.path().join("none.db");
    let url = format!("sqlite:{}", file.display());
    let args = ["migrate", "--database", &url, "--redirect-role", "follow"];
    let launch = Launch::new(&scratch, "migrate", binaries::resolver().await.unwrap()).args(args);
    let refused = launch.run(SOON).await.unwrap();
    assert!(!refused.status.success() && refused.stderr.contains("--redirect-role"), "{}", refused.stderr);
    assert!(!file.exists());
}
