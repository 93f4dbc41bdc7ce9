//! The keep-alive stream: what its beats report, and that its end is an early notice of a new
//! leader.

use std::time::Duration;

use harness::{Cluster, Load, wait};
use proto::issuer::v1::{
    KeepAliveRequest, NamespaceSpec, Progress, RegisterRequest, issuer_client::IssuerClient,
};
use tokio::{sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;

const SOON: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_stops_ends_its_streams_at_once() {
    let cluster = Cluster::builder().etcd(1).issuers(2).resolvers(0).alone().holder_ttl("60s");
    let mut cluster = cluster.start().await.unwrap();
    let leader = cluster.wait_leader(SOON).await.unwrap();
    let mut client = IssuerClient::connect(cluster.issuers[leader].url()).await.unwrap();
    let namespaces = vec![NamespaceSpec { name: "web".to_owned(), capacity: 1 << 30 }];
    let (holder, instance) = ("probe".to_owned(), "start-of-probe".to_owned());
    let request = RegisterRequest { holder: holder.clone(), instance, namespaces, reserved: false };
    let incarnation = client.register(request).await.unwrap().into_inner().incarnation;

    let (beats, stream) = mpsc::channel(1);
    let progress =
        ["web", "unheard-of"].map(|name| Progress { namespace: name.to_owned(), in_hand: 5, lasts_ms: None });
    let progress = progress.to_vec();
    beats.send(KeepAliveRequest { holder, incarnation, progress, last_seq: 0, mark: 0 }).await.unwrap();
    let mut answers = client.keep_alive(ReceiverStream::new(stream)).await.unwrap().into_inner();
    answers.message().await.unwrap().unwrap();

    cluster.issuers[leader].process.terminate().unwrap();
    // No beat is due for twenty seconds, so only the issuer itself can end the stream.
    let end = timeout(Duration::from_secs(10), answers.message()).await.expect("the notice is early");
    assert_eq!(end.unwrap_err().code(), Code::FailedPrecondition);
    drop(beats);
}

#[tokio::test(flavor = "multi_thread")]
async fn holders_report_what_they_have_in_hand() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(1).alone().holder_ttl("2s");
    let cluster = cluster.issuer_args(["--block-min", "500", "--block-max", "500"]).start().await.unwrap();
    Load::on(&cluster.resolvers).creates(50).run().await.unwrap();
    let reported = wait::until(SOON, "the report is in the issuer's metrics", async || {
        let open = cluster.status().await.unwrap().only_namespace().unwrap().open as f64;
        let in_hand = cluster.issuers[0].metric("issuer_numbers_in_hand").await.unwrap_or_default();
        in_hand == open - 50.0
    });
    reported.await.unwrap();
}
