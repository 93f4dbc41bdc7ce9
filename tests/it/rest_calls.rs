//! Calls of the REST API that several test files share, and checks of the responses.

use std::{path::PathBuf, time::Duration};

use harness::{Answer, Api, Cluster, Launch, Resolver, ResolverBuilder, Scratch, binaries, secret};
use reqwest::Method;
use serde_json::{Value, json};

/// A time limit generous enough for a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// An embedded resolver with its folder, where the command line finds the same database.
pub(crate) struct Alone {
    pub(crate) resolver: Resolver,
    scratch: Scratch,
}

impl Alone {
    /// Starts a resolver with these flags besides the defaults.
    pub(crate) async fn start(args: &[&str]) -> Self {
        Self::start_with(|builder| builder.args(args.iter().copied())).await
    }

    /// Starts a resolver with this public URL, with which its short links begin.
    pub(crate) async fn start_at(public_url: &str) -> Self {
        Self::start_with(|builder| builder.public_url(public_url)).await
    }

    async fn start_with(change: impl FnOnce(ResolverBuilder) -> ResolverBuilder) -> Self {
        let scratch = Scratch::new().unwrap();
        let builder = Resolver::builder(&scratch, "resolver-0", &secret::random_hex().unwrap()).unwrap();
        let resolver = change(builder).start().await.unwrap();
        Self { resolver, scratch }
    }

    /// Returns a client with the administrator's key.
    pub(crate) fn api(&self) -> &Api {
        &self.resolver.api
    }

    /// Returns the path of a file in the resolver's folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Runs `resolver api-key` on the resolver's database and returns its output.
    pub(crate) async fn api_key(&self, args: &[&str]) -> String {
        let launch = Launch::new(&self.scratch, "api-key", binaries::resolver().await.unwrap());
        let finished = launch.arg("api-key").args(args).run(SOON).await.unwrap();
        finished.success().unwrap().stdout.trim().to_owned()
    }

    /// Creates an API key and returns a client with it.
    pub(crate) async fn with_new_key(&self, name: &str, args: &[&str]) -> Api {
        let key = self.api_key(&[&["create", "--name", name], args].concat()).await;
        self.api().with_key(&key)
    }
}

/// Resolvers of one database, on either store.
pub(crate) enum Place {
    /// One resolver.
    Sqlite(Box<Alone>),
    /// Two resolvers.
    Postgres(Box<Cluster>),
}

impl Place {
    /// Starts a resolver on SQLite.
    pub(crate) async fn sqlite() -> Self {
        Self::Sqlite(Box::new(Alone::start_at("https://s.test").await))
    }

    /// Starts two resolvers on Postgres.
    pub(crate) async fn postgres() -> Self {
        Self::Postgres(Box::new(Cluster::builder().resolvers(2).start().await.unwrap()))
    }

    /// Returns clients of two resolvers; of the same one on SQLite.
    pub(crate) fn apis(&self) -> [Api; 2] {
        match self {
            Self::Sqlite(alone) => [0, 1].map(|_| alone.api().clone()),
            Self::Postgres(cluster) => [0, 1].map(|index| cluster.resolvers[index].api.clone()),
        }
    }

    /// Runs `resolver api-key` on the database and returns its output.
    pub(crate) async fn api_key(&self, args: &[&str]) -> String {
        match self {
            Self::Sqlite(alone) => alone.api_key(args).await,
            Self::Postgres(cluster) => {
                let database = cluster.database_url();
                let args = [&["api-key"], args, &["--database", &database]].concat();
                let finished = cluster.run_resolver(&args, SOON).await.unwrap();
                finished.success().unwrap().stdout.trim().to_owned()
            }
        }
    }
}

/// Makes two tests of a check that takes a [`Place`]: `on_sqlite` and `on_postgres`, in a module
/// with the check's name.
macro_rules! on_either_store {
    ($check:ident) => {
        mod $check {
            use crate::rest_calls::Place;

            #[tokio::test(flavor = "multi_thread")]
            async fn on_sqlite() {
                super::$check(Place::sqlite().await).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn on_postgres() {
                super::$check(Place::postgres().await).await;
            }
        }
    };
}

pub(crate) use on_either_store;

/// Calls a path below `/rest/v3/`.
pub(crate) async fn call(api: &Api, method: Method, path: &str, body: Option<Value>) -> Answer {
    let request = api.http().request(method, format!("{}/rest/v3/{path}", api.url()));
    let request = request.header("X-Api-Key", api.key());
    let request = match body {
        Some(body) => request.json(&body),
        None => request,
    };
    Answer::to(request).await.unwrap()
}

/// Makes a call that must succeed and returns its JSON.
pub(crate) async fn done(api: &Api, method: Method, path: &str, body: Option<Value>) -> Value {
    call(api, method, path, body).await.success().unwrap().json().unwrap()
}

/// Returns an object with more fields.
pub(crate) fn plus(mut object: Value, more: &Value) -> Value {
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}

/// Makes a GET that must succeed and returns its JSON.
pub(crate) async fn get(api: &Api, path: &str) -> Value {
    done(api, Method::GET, path, None).await
}

/// Requests a path, without a leading slash, on this host. Returns the status and the `Location` of
/// the response.
pub(crate) async fn visit(api: &Api, host: &str, path: &str) -> (u16, Option<String>) {
    let request = api.http().get(format!("{}/{path}", api.url())).header("host", host);
    let answer = Answer::to(request).await.unwrap();
    (answer.status, answer.header("location").map(str::to_owned))
}

/// Returns a redirect to this URL in the form of [`visit`] and `Api::follow`.
pub(crate) fn leads_to(url: &str) -> (u16, Option<String>) {
    (302, Some(url.to_owned()))
}

/// Returns the short codes of a list of links, in list order.
pub(crate) async fn listed(api: &Api, query: &str) -> Vec<String> {
    let answer = get(api, &format!("short-urls?{query}")).await;
    let links = answer["shortUrls"]["data"].as_array().unwrap();
    links.iter().map(|link| link["shortCode"].as_str().unwrap().to_owned()).collect()
}

/// Returns the number of links that a key sees.
pub(crate) async fn count(api: &Api) -> usize {
    let page = get(api, "short-urls?itemsPerPage=1").await;
    page["shortUrls"]["pagination"]["totalItems"].as_u64().unwrap().try_into().unwrap()
}

/// Returns the changes of a link, the latest first.
pub(crate) async fn history(api: &Api, slug: &str) -> Vec<Value> {
    let page = get(api, &format!("history?shortCode={slug}")).await;
    page["audit"]["data"].as_array().unwrap().clone()
}

/// Asserts a problem by RFC 9457 and returns it. `kind` is one of Shlink's types, or `about:blank`
/// for a problem that the status alone describes.
pub(crate) fn expect_problem(answer: &Answer, status: u16, kind: &str) -> Value {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
    let problem = answer.json().unwrap();
    let base = if kind == "about:blank" { "" } else { "https://shlink.io/api/error/" };
    assert_eq!(problem["type"], format!("{base}{kind}"), "{problem}");
    assert_eq!(problem["status"], status, "{problem}");
    for field in ["title", "detail"] {
        assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "no {field}: {problem}");
    }
    problem
}

/// Asserts that a body is refused because of this field alone.
pub(crate) fn expect_invalid(answer: &Answer, field: &str) {
    let problem = expect_problem(answer, 400, "invalid-data");
    assert_eq!(problem["invalidElements"], json!([field]), "{problem}");
}
