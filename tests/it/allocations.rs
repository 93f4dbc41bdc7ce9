//! The stream of allocations: answered in order, safe to repeat on another stream, and told of another leader.

use std::time::Duration;

use harness::{Cluster, wait};
use proto::issuer::v1::{
    AllocateBlockRequest, AllocateBlockResponse, NamespaceSpec, RegisterRequest, issuer_client::IssuerClient,
};
use tokio::{sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Streaming, transport::Channel};

const SOON: Duration = Duration::from_secs(30);

type Client = IssuerClient<Channel>;

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_several_holders_follow_one_another_and_are_answered_in_their_order() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(0).start().await.unwrap();
    cluster.wait_leader(SOON).await.unwrap();
    let mut client = IssuerClient::connect(cluster.issuers[0].url()).await.unwrap();
    let holders = ["a", "b", "c"];
    for holder in holders {
        register(&mut client, holder).await;
    }
    let (requests, mut answers) = open(&mut client, request("a", 1)).await;
    let rest = holders.into_iter().flat_map(|holder| (1..=3).map(move |seq| (holder, seq))).skip(1);
    for (holder, seq) in rest.clone() {
        requests.send(request(holder, seq)).await.unwrap();
    }
    let first = next(&mut answers).await;
    let mut told = Vec::new();
    for _ in rest.clone() {
        told.push(next(&mut answers).await);
    }
    let mut starts: Vec<_> = told.iter().chain([&first]).map(start).collect();
    starts.sort_unstable();
    starts.dedup();
    assert_eq!(starts.len(), 9, "every request has a block of its own");

    // A request whose answer was lost is sent again on another stream: each holder's last answer comes again.
    let last: Vec<_> = rest.zip(&told).filter(|((_, seq), _)| *seq == 3).collect();
    for ((holder, seq), answer) in last {
        let (_open, mut again) = open(&mut client, request(holder, seq)).await;
        assert_eq!(start(&next(&mut again).await), start(answer), "{holder}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_refusal_ends_the_stream_with_its_status() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(0).start().await.unwrap();
    cluster.wait_leader(SOON).await.unwrap();
    let mut client = IssuerClient::connect(cluster.issuers[0].url()).await.unwrap();
    register(&mut client, "a").await;
    // Nothing is sent once the refusal may have come: it ends both directions.
    let (requests, stream) = mpsc::channel(3);
    for seq in [1, 7, 2] {
        requests.send(request("a", seq)).await.unwrap();
    }
    let mut answers = client.allocate_blocks(ReceiverStream::new(stream)).await.unwrap().into_inner();
    next(&mut answers).await;
    assert_eq!(answers.message().await.unwrap_err().code(), Code::OutOfRange);
    let malformed = AllocateBlockRequest { namespace: "NOT A NAME".to_owned(), ..request("a", 2) };
    let refused = client.allocate_blocks(tokio_stream::once(malformed)).await.unwrap_err();
    assert!(refused.message().contains("namespace"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_refuses_the_stream_and_a_leader_that_stops_ends_it() {
    let cluster = Cluster::builder().etcd(1).issuers(2).resolvers(0).alone().holder_ttl("60s");
    let mut cluster = cluster.start().await.unwrap();
    let leader = cluster.wait_leader(SOON).await.unwrap();
    let mut client = IssuerClient::connect(cluster.issuers[leader].url()).await.unwrap();
    register(&mut client, "a").await;
    let follower = IssuerClient::connect(cluster.issuers[1 - leader].url()).await.unwrap();
    let points_there = async || {
        let refused = follower.clone().allocate_blocks(tokio_stream::once(request("a", 1))).await;
        let refused = refused.expect_err("a follower allocates nothing");
        assert_eq!(refused.code(), Code::FailedPrecondition);
        refused.metadata().get("shortmint-leader").is_some_and(|url| !url.is_empty())
    };
    wait::until(SOON, "the follower knows the leader", points_there).await.unwrap();

    let (_open, mut answers) = open(&mut client, request("a", 1)).await;
    next(&mut answers).await;
    cluster.issuers[leader].process.terminate().unwrap();
    let end = timeout(Duration::from_secs(10), answers.message()).await.expect("the notice is early");
    assert_eq!(end.unwrap_err().code(), Code::FailedPrecondition);
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

async fn open(
    client: &mut Client,
    first: AllocateBlockRequest,
) -> (mpsc::Sender<AllocateBlockRequest>, Streaming<AllocateBlockResponse>) {
    let (requests, stream) = mpsc::channel(16);
    requests.send(first).await.unwrap();
    let answers = client.allocate_blocks(ReceiverStream::new(stream)).await.unwrap().into_inner();
    (requests, answers)
}

async fn next(answers: &mut Streaming<AllocateBlockResponse>) -> AllocateBlockResponse {
    timeout(SOON, answers.message()).await.expect("an answer").unwrap().expect("not the end")
}

fn start(answer: &AllocateBlockResponse) -> u64 {
    answer.block.as_ref().unwrap().start
}
