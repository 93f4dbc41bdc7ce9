//! A database that answers late (fault 38). Revoked keys and ended sessions count from the
//! question, and a list says what to do.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use harness::{Cluster, Direction, Flow, Proxy, wait};
use reqwest::Method;
use serde_json::json;
use tokio::time::Instant;

use crate::rest_calls::call;

const SOON: Duration = Duration::from_secs(30);
/// How late each answer of the database comes.
const LATE: Duration = Duration::from_millis(700);
/// How long after its revocation a key may still be accepted.
const ACCEPTED: Duration = Duration::from_secs(1);
const CALLERS: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_is_refused_a_second_later_however_late_the_database_answers() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(1).alone().start().await.unwrap();
    let proxy = Proxy::start(cluster.postgres.addr()).await.unwrap();
    let slow = cluster.resolver("slow").unwrap().database(&cluster.postgres.url_via(&proxy));
    let slow = slow.start().await.unwrap();
    let database = cluster.postgres.url();
    let run = async |args: &[&str]| {
        let args = [&["api-key"], args, &["--database", &database]].concat();
        cluster.run_resolver(&args, SOON).await.unwrap().success().unwrap().stdout.trim().to_owned()
    };
    let key = run(&["create", "--name", "revoked"]).await;
    // Opens the connections. Each takes several answers, which come too late afterwards.
    assert_eq!(call(&slow.api.with_key(&key), Method::POST, "short-urls", Some(json!({}))).await.status, 400);
    proxy.set(Direction::ToClient, Flow::Delay(LATE));

    let mut callers = tokio::task::JoinSet::new();
    let (began, used) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let (stop, stopped) = tokio::sync::watch::channel(false);
    for _ in 0..CALLERS {
        let (api, stopped, used) = (slow.api.with_key(&key), stopped.clone(), Arc::clone(&used));
        callers.spawn(async move {
            let mut accepted = Vec::new();
            while !*stopped.borrow() {
                let sent = Instant::now();
                // Without a long URL: the key alone has to be looked up.
                if call(&api, Method::POST, "short-urls", Some(json!({}))).await.status == 400 {
                    used.fetch_add(1, Ordering::Relaxed);
                    accepted.push(sent);
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            accepted
        });
    }
    let is_used = async || began.elapsed() > 4 * LATE && used.load(Ordering::Relaxed) > 20 * CALLERS;
    wait::until(SOON, "the key is in use", is_used).await.unwrap();
    run(&["revoke", "--name", "revoked"]).await;
    let revoked = Instant::now();
    wait::until(SOON, "every answer has ended", async || revoked.elapsed() > 4 * ACCEPTED).await.unwrap();
    stop.send(true).unwrap();
    let accepted = callers.join_all().await.concat();
    assert!(accepted.iter().any(|sent| *sent < revoked), "the key was valid");
    let late = accepted.iter().filter_map(|sent| sent.checked_duration_since(revoked + ACCEPTED)).max();
    assert_eq!(late, None, "accepted so long after the promised second");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_takes_too_long_says_how_to_narrow_it() {
    let cluster = Cluster::builder().resolvers(1).on_one_postgres().start().await.unwrap();
    let api = &cluster.resolvers[0].api;
    let mut sql = cluster.postgres.client().await.unwrap();
    let lock = sql.transaction().await.unwrap();
    // A search looks for tags first. A list of all links does not, and only then is the database slow.
    for (locked, search, expected) in
        [("tag", "?searchTerm=sale", "Narrow it by dates"), ("link", "", "the database does not answer")]
    {
        lock.batch_execute(&format!("LOCK TABLE {locked} IN ACCESS EXCLUSIVE MODE")).await.unwrap();
        let answer = call(api, Method::GET, &format!("short-urls{search}"), None).await;
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(answer.body.contains(expected), "{answer:?}");
    }
}
