//! A holder that knows one issuer only and asks it for blocks.

use std::time::Duration;

use anyhow::Context;
use harness::{Cluster, wait};
use proto::issuer::v1::issuer_client::IssuerClient;
use proto::issuer::v1::{AllocateBlockRequest, NamespaceSpec, RegisterRequest};
use tokio::time::{Instant, sleep, timeout};
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

const SOON: Duration = Duration::from_secs(30);

/// Between two questions; the measure is as fine as this.
const PAUSE: Duration = Duration::from_millis(1);

/// How long one question may take: a new leader that writes its take-over answers after it.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

const NAMESPACE: &str = "failover";
const CAPACITY: u64 = 1 << 40;

/// Clones are the same holder: only one of them may ask at a time.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    client: IssuerClient<Channel>,
    holder: String,
    incarnation: u64,
    seq: u64,
}

impl Caller {
    /// A caller of each issuer, in the same order, registered with the one that leads.
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

    /// Waits until the issuer refuses because it follows, so that the connection is open and the issuer is well.
    pub(crate) async fn reaches_a_follower(&mut self) -> anyhow::Result<()> {
        wait::until(SOON, "a follower refuses", async || {
            self.allocate().await.is_err_and(|status| status.code() == Code::FailedPrecondition)
        })
        .await
    }

    /// Asks until there is a block; when that was.
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

    /// Takes over what a clone of this caller got: a seq that was answered is not used again.
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
