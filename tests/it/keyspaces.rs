//! Rolling updates that change the keyspaces. Resolvers that started before redirect the links of a
//! new keyspace too, or answer 503 while they cannot know (fault 30).

use std::time::Duration;

use harness::{Cluster, Load, Resolver, checks, load::next_long_url, wait};
use serde_json::json;

use crate::rest_calls::{SOON, leads_to};

const KEYSPACES: &str = "default=6:0-9A-Za-z,short=4:0-9A-Za-z";
const STOP_WITHIN: Duration = Duration::from_secs(30);
/// The number of creates on a group of resolvers before the next group starts, and on the next one
/// beside it.
const CREATES: usize = 500;
/// Creates per second of a load that goes on meanwhile.
const RATE: u32 = 300;

async fn newer(cluster: &Cluster, holder: &str, default: &str) -> Resolver {
    let args = ["--default-keyspace", default];
    cluster.resolver(holder).unwrap().keyspaces(KEYSPACES).args(args).start().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn older_resolvers_lead_to_the_codes_of_a_keyspace_that_came_after_them() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(2).start().await.unwrap();
    let newer = newer(&cluster, "newer", "short").await;
    for _ in 0..20 {
        let url = next_long_url();
        let code = newer.api.create(&url).await.unwrap().code;
        assert_eq!(code.len(), 4, "of the new default keyspace");
        for older in &cluster.resolvers {
            assert_eq!(older.api.follow(&code).await.unwrap(), (302, Some(url.clone())), "{code}");
        }
    }
    // The older resolvers treat a code of the new keyspace as mintable too, also when it is picked
    // as a slug.
    for (number, older) in cluster.resolvers.iter().enumerate() {
        let slug = format!("zz0{number}");
        let wish = json!({ "longUrl": "https://example.com/slug", "customSlug": slug });
        older.api.create_with(&wish).await.unwrap();
        assert_eq!(newer.api.follow(&slug).await.unwrap().0, 302);
        assert_eq!(older.api.follow("zzzz").await.unwrap().0, 404, "it can tell");
    }
}

/// The older resolver's query for keyspaces fails while its lookups are answered. If the database
/// answered nothing at all, every miss would be 503 anyway.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_resolver_that_hears_of_no_keyspaces_never_denies_the_codes_of_a_new_one() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(0).start().await.unwrap();
    let database = cluster.postgres.client().await.unwrap();
    let role = "CREATE ROLE older LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO older;
                GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO older";
    database.batch_execute(role).await.unwrap();
    let url = cluster.postgres.url();
    let (_, server) = url.split_once('@').unwrap();
    let older = cluster.resolver("older").unwrap().database(&format!("postgres://older@{server}"));
    let older = older.start().await.unwrap();
    let known = older.api.create("https://example.com/known").await.unwrap().code;
    let is_sure = async || older.api.follow("zzzz").await.unwrap().0 == 404;
    wait::until(SOON, "it can tell that there is no such code", is_sure).await.unwrap();

    database.batch_execute("REVOKE ALL ON settings_version FROM older").await.unwrap();
    let is_unsure = async || older.api.follow("zzzz").await.unwrap().0 == 503;
    wait::until(SOON, "the copy of the keyspaces is too old", is_unsure).await.unwrap();
    assert_eq!(older.api.follow("no-code").await.unwrap().0, 404, "no keyspace has such codes");
    let newer = newer(&cluster, "newer", "short").await;
    let mut made = Vec::new();
    for _ in 0..20 {
        let url = next_long_url();
        let wish = json!({ "longUrl": url, "extraPath": "ignore" });
        let code = newer.api.create_with(&wish).await.unwrap().code;
        assert_eq!(code.len(), 4, "of the new default keyspace");
        let behind = format!("{code}/behind");
        assert_eq!(newer.api.follow(&behind).await.unwrap(), leads_to(&url));
        for path in [&code, &behind] {
            assert_eq!(older.api.follow(path).await.unwrap().0, 503, "{path} is not denied");
        }
        made.push((code, url));
    }
    assert_eq!(older.api.follow(&known).await.unwrap(), leads_to("https://example.com/known"));

    database.batch_execute("GRANT ALL ON settings_version TO older").await.unwrap();
    for (code, url) in made {
        let leads = async || older.api.follow(&code).await.unwrap() == leads_to(&url);
        wait::until(SOON, "it has heard of the keyspace", leads).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_keyspace_changes_under_load_in_rolling_updates_there_and_back() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(2).drain_delay("200ms");
    let mut cluster = cluster.start().await.unwrap();
    let mut serving = std::mem::take(&mut cluster.resolvers);
    let mut load = Load::on(&serving).creates(usize::MAX).per_second(RATE).start();
    let mut links = Vec::new();
    for (default, length) in [("short", 4), ("default", 6)] {
        load.reaches(CREATES, SOON).await.unwrap();
        let next = [
            newer(&cluster, &format!("{default}-0"), default).await,
            newer(&cluster, &format!("{default}-1"), default).await,
        ];
        let mut next_load = Load::on(&next).creates(usize::MAX).per_second(RATE).start();
        next_load.reaches(CREATES, SOON).await.unwrap();
        for resolver in &next {
            let url = next_long_url();
            let code = resolver.api.create(&url).await.unwrap().code;
            assert_eq!(code.len(), length, "{code}: of {default}");
            for other in serving.iter().chain(&next) {
                assert_ne!(other.api.follow(&code).await.unwrap().0, 404, "{code} is not denied");
                let leads = async || other.api.follow(&code).await.unwrap() == leads_to(&url);
                wait::until(SOON, "the code leads on", leads).await.unwrap();
            }
        }
        load.wind_down();
        links.extend(load.finish().await.unwrap());
        checks::all_resolve(&links, &next).await.unwrap();
        for resolver in &mut serving {
            resolver.stop(STOP_WITHIN).await.unwrap();
        }
        (serving, load) = (next.into(), next_load);
    }
    load.wind_down();
    links.extend(load.finish().await.unwrap());
    checks::all_resolve(&links, &serving).await.unwrap();
}
