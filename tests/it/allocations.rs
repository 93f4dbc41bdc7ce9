//! Block allocation: every request gets its own block, a repeated request gets the same block
//! again, and an issuer that does not lead refuses.

use std::time::Duration;

use harness::{Cluster, wait};
use proto::issuer::v1::{
    AllocateBlockRequest, AllocateBlockResponse, NamespaceSpec, RegisterRequest, issuer_client::IssuerClient,
};
use tokio::task::JoinSet;
use tonic::{Code, Status, transport::Channel};

const SOON: Duration = Duration::from_secs(30);

type Client = IssuerClient<Channel>;

#[tokio::test(flavor = "multi_thread")]
async fn each_request_of_several_holders_has_a_block_of_its_own_and_may_be_repeated() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(0).start().await.unwrap();
    cluster.wait_leader(SOON).await.unwrap();
    let mut client = IssuerClient::connect(cluster.issuers[0].url()).await.unwrap();
    let mut allocating = JoinSet::new();
    for holder in ["a", "b", "c"] {
        register(&mut client, holder).await;
        let mut client = client.clone();
        allocating.spawn(async move {
            let mut starts = Vec::new();
            for seq in 1..=3 {
                starts.push(start(&allocate(&mut client, request(holder, seq)).await.unwrap()));
            }
            // A request whose response was lost is sent again: the repeated `seq` returns the
            // holder's last block.
            let again = allocate(&mut client, request(holder, 3)).await.unwrap();
            assert_eq!(Some(&start(&again)), starts.last(), "{holder}");
            starts
        });
    }
    let mut starts: Vec<_> = allocating.join_all().await.into_iter().flatten().collect();
    starts.sort_unstable();
    starts.dedup();
    assert_eq!(starts.len(), 9, "every request has a block of its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_refuses_and_names_the_leader() {
    let cluster = Cluster::builder().etcd(1).issuers(2).resolvers(0).alone().holder_ttl("60s");
    let cluster = cluster.start().await.unwrap();
    let leader = cluster.wait_leader(SOON).await.unwrap();
    let mut client = IssuerClient::connect(cluster.issuers[leader].url()).await.unwrap();
    register(&mut client, "a").await;
    let follower = IssuerClient::connect(cluster.issuers[1 - leader].url()).await.unwrap();
    let points_there = async || {
        let refused = allocate(&mut follower.clone(), request("a", 1)).await;
        let refused = refused.expect_err("a follower allocates nothing");
        assert_eq!(refused.code(), Code::FailedPrecondition);
        refused.metadata().get("shortmint-leader").is_some_and(|url| !url.is_empty())
    };
    wait::until(SOON, "the follower knows the leader", points_there).await.unwrap();
}

async fn register(client: &mut Client, holder: &str) {
    let request = RegisterRequest {
        holder: holder.to_owned(),
        instance: format!("start-of-{holder}"),
        namespaces: vec![NamespaceSpec { name: "web".to_owned(), capacity: 1 << 30 }],
        reserved: false,
    };
    assert_eq!(client.register(request).await.unwrap().into_inner().incarnation, 1);
}

fn request(holder: &str, seq: u64) -> AllocateBlockRequest {
    AllocateBlockRequest {
        holder: holder.to_owned(),
        incarnation: 1,
        seq,
        namespace: "web".to_owned(),
        wanted_len: 1,
        store_epoch: "test:1".to_owned(),
    }
}

async fn allocate(
    client: &mut Client,
    request: AllocateBlockRequest,
) -> Result<AllocateBlockResponse, Status> {
    Ok(client.allocate_block(request).await?.into_inner())
}

fn start(answer: &AllocateBlockResponse) -> u64 {
    answer.block.as_ref().unwrap().start
}
