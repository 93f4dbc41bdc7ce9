//! A holder that requests blocks from one issuer only.

use std::time::Duration;

use anyhow::Context;
use harness::{Cluster, wait};
use proto::issuer::v1::issuer_client::IssuerClient;
use proto::issuer::v1::{AllocateBlockRequest, NamespaceSpec, RegisterRequest};
use tokio::time::{Instant, sleep, timeout};
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

const SOON: Duration = Duration::from_secs(30);

/// The pause between two requests, and so the resolution of the measurement.
const PAUSE: Duration = Duration::from_millis(1);

/// The time limit for one request: a new leader that is committing its take-over responds only
/// afterwards.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

const NAMESPACE: &str = "failover";
const CAPACITY: u64 = 1 << 40;

/// A holder with a client of one issuer. Clones are the same holder, so only one of them may send
/// requests at a time.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    client: IssuerClient<Channel>,
    holder: String,
    incarnation: u64,
    seq: u64,
}

impl Caller {
    /// Returns a caller for each issuer, in the same order, registered with the leader.
    pub(crate) async fn one_for_each(cluster: &Cluster) -> anyhow::Result<Vec<Self>> {
        let leader = cluster.wait_leader(SOON).await?;
        let mut registrar = client_of(&cluster.issuers[leader].url())?;
        let mut callers = Vec::new();
        for (index, issuer) in cluster.issuers.iter().enumerate() {
            let holder = format!("caller-{index}");
            let request = RegisterRequest {
                holder: holder.clone(),
                instance: format!("instance-{index}"),
                namespaces: vec![NamespaceSpec { name: NAMESPACE.to_owned(), capacity: CAPACITY }],
                reserved: false,
            };
            let registered = registrar.register(request).await.context("register")?.into_inner();
            let (client, incarnation) = (client_of(&issuer.url())?, registered.incarnation);
            callers.push(Self { client, holder, incarnation, seq: registered.last_seq });
        }
        Ok(callers)
    }

    /// Waits until the issuer refuses because it is a follower. Then the connection is open and the
    /// issuer works.
    pub(crate) async fn reaches_a_follower(&mut self) -> anyhow::Result<()> {
        wait::until(SOON, "a follower refuses", async || {
            self.allocate().await.is_err_and(|status| status.code() == Code::FailedPrecondition)
        })
        .await
    }

    /// Requests a block until one is allocated, and returns that time.
    pub(crate) async fn allocate_at_last(mut self) -> anyhow::Result<Instant> {
        loop {
            match self.allocate().await.map_err(|status| status.code()) {
                Ok(()) => return Ok(Instant::now()),
                Err(Code::FailedPrecondition | Code::Unavailable | Code::DeadlineExceeded) => {
                    sleep(PAUSE).await;
                }
                Err(code) => anyhow::bail!("{} was answered {code:?}", self.holder),
            }
        }
    }

    /// Advances to the sequence number that a clone of this caller has used, so that an answered
    /// number is not reused.
    pub(crate) async fn catch_up(&mut self) -> anyhow::Result<()> {
        let caught =
            wait::until(SOON, "the issuer tells where the caller is", async || match self.allocate().await {
                Ok(()) => {
                    self.seq += 1;
                    true
                }
                Err(status) => status.code() == Code::FailedPrecondition,
            });
        caught.await
    }

    async fn allocate(&mut self) -> Result<(), tonic::Status> {
        let request = AllocateBlockRequest {
            holder: self.holder.clone(),
            incarnation: self.incarnation,
            seq: self.seq + 1,
            namespace: NAMESPACE.to_owned(),
            wanted_len: 1,
            store_epoch: "failover".to_owned(),
        };
        let answered = timeout(ANSWER_WITHIN, self.client.allocate_block(request)).await;
        answered.unwrap_or_else(|_| Err(tonic::Status::deadline_exceeded("no answer in time"))).map(drop)
    }
}

fn client_of(url: &str) -> anyhow::Result<IssuerClient<Channel>> {
    let endpoint = Endpoint::from_shared(url.to_owned()).context("an issuer's URL")?;
    Ok(IssuerClient::new(endpoint.tcp_nodelay(true).connect_timeout(Duration::from_secs(1)).connect_lazy()))
}
