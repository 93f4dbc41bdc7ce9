//! A standby that lacks the last links becomes the primary: what it lacks was public, and none of
//! it is minted again (faults 9 and 29).

use std::{collections::BTreeSet, time::Duration};

use harness::{Acknowledged, Cluster, Load, checks, wait};

const SOON: Duration = Duration::from_secs(60);

fn codes(links: &[Acknowledged]) -> BTreeSet<&str> {
    links.iter().map(|link| link.code.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lagging_standby_that_is_promoted_mints_no_public_code_again() {
    let cluster = Cluster::builder().on_one_postgres().etcd(1).issuers(1).resolvers(0).alone();
    let cluster = cluster.issuer_args(["--block-min", "200", "--block-max", "200"]);
    let mut cluster = cluster.start().await.unwrap();
    cluster.migrate().await.unwrap().success().unwrap();
    let mut standby = cluster.postgres.standby(&cluster.scratch).await.unwrap();
    let (primary, other) = (cluster.postgres.addr(), standby.addr());
    let url = cluster.database_url().replace(&primary.to_string(), &format!("{primary},{other}"));
    let mut resolvers = Vec::new();
    for holder in ["resolver-0", "resolver-1"] {
        resolvers.push(cluster.resolver(holder).unwrap().database(&url).start().await.unwrap());
    }
    let kept = Load::on(&resolvers).creates(300).run().await.unwrap();
    let sql = standby.client().await.unwrap();
    let replayed = "SELECT count(*) FROM link";
    wait::until(SOON, "the standby has them", async || {
        sql.query_one(replayed, &[]).await.is_ok_and(|row| row.get::<_, i64>(0) >= 300)
    })
    .await
    .unwrap();

    // The standby stops, and so lacks what is acknowledged from now on.
    standby.stop_fast().await.unwrap();
    let lost = Load::on(&resolvers).creates(900).run().await.unwrap();
    cluster.postgres.kill_now().await.unwrap();
    standby.restart().await.unwrap();
    let promoted = standby.client().await.unwrap();
    promoted.execute("SELECT pg_promote()", &[]).await.unwrap();

    let load = Load::on(&resolvers).creates(1_500).retries_unavailable();
    let new = load.run().await.unwrap();
    checks::all_distinct(&new).unwrap();
    let public: BTreeSet<&str> = codes(&kept).union(&codes(&lost)).copied().collect();
    assert!(codes(&new).is_disjoint(&public), "a public code was minted again");
    checks::all_resolve(&kept, &resolvers).await.unwrap();
    checks::all_resolve(&new, &resolvers).await.unwrap();
    let status = cluster.status().await.unwrap();
    assert!(status.only_namespace().unwrap().burned > 0, "blocks from before the promotion are given up");
}
