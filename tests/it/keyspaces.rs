//! A keyspace that is added in a rolling update: resolvers that started without it lead to its links all the same (fault 30).

use harness::{Cluster, Resolver, load::next_long_url};
use serde_json::json;

async fn newer(cluster: &Cluster, holder: &str, keyspaces: &str) -> Resolver {
    let args = ["--default-keyspace", "short"];
    cluster.resolver(holder).unwrap().keyspaces(keyspaces).args(args).start().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn older_resolvers_lead_to_the_codes_of_a_keyspace_that_came_after_them() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(2).start().await.unwrap();
    let newer = newer(&cluster, "newer", "default=6:0-9A-Za-z,short=4:0-9A-Za-z").await;
    for _ in 0..20 {
        let url = next_long_url();
        let code = newer.api.create(&url).await.unwrap().code;
        assert_eq!(code.len(), 4, "of the new default keyspace");
        for older in &cluster.resolvers {
            assert_eq!(older.api.follow(&code).await.unwrap(), (302, Some(url.clone())), "{code}");
        }
    }
    // What looks like a code of the new keyspace is one on the older resolvers too, also as a slug.
    for (number, older) in cluster.resolvers.iter().enumerate() {
        let slug = format!("zz0{number}");
        let wish = json!({ "longUrl": "https://example.com/slug", "customSlug": slug });
        older.api.create_with(&wish).await.unwrap();
        assert_eq!(newer.api.follow(&slug).await.unwrap().0, 302);
        assert_eq!(older.api.follow("zzzz").await.unwrap().0, 404, "it can tell");
    }
}
