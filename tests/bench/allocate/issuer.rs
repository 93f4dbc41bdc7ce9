//! Holders of a real issuer, over gRPC: all holders of a connection on one stream, or a call for each allocation.

use anyhow::Context;
use proto::issuer::v1::{
    AllocateBlockRequest, AllocateBlockResponse, Block, NamespaceSpec, RegisterRequest, ReturnBlocksRequest,
    ReturnedBlock, issuer_client::IssuerClient,
};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::{StreamExt as _, wrappers::ReceiverStream};
use tonic::{
    Streaming,
    transport::{Channel, Endpoint},
};

use crate::load;

const NAMESPACE: &str = "bench";
/// All there is, so that the ceiling is never reached.
const CAPACITY: u64 = 1 << 48;

/// How a holder asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// On one stream for all holders of a connection.
    Stream,
    /// A call for each.
    Calls,
}

type Asked = (AllocateBlockRequest, oneshot::Sender<AllocateBlockResponse>);

/// Where a holder's requests go.
#[derive(Clone)]
enum Line {
    Calls,
    Stream(mpsc::Sender<Asked>),
}

/// A holder, registered once and kept for all rounds.
pub(super) struct Holder {
    stub: IssuerClient<Channel>,
    line: Line,
    next: AllocateBlockRequest,
    open: Vec<ReturnedBlock>,
    return_after: usize,
}

impl load::Client for Holder {
    async fn operate(&mut self) -> anyhow::Result<()> {
        let block = self.allocate().await?.block.context("an allocation has a block")?;
        self.next.seq += 1;
        self.open.push(used_up(block));
        Ok(())
    }

    /// A holder may have 64 blocks open, and no resolver has more than a few: they go back, used up.
    async fn tidy(&mut self) -> anyhow::Result<()> {
        if self.open.len() < self.return_after {
            return Ok(());
        }
        let blocks = std::mem::take(&mut self.open);
        let count = u32::try_from(blocks.len()).context("count blocks")?;
        let (holder, incarnation) = (self.next.holder.clone(), self.next.incarnation);
        let request = ReturnBlocksRequest { holder, incarnation, blocks };
        let closed = self.stub.return_blocks(request).await.context("return blocks")?.into_inner().closed;
        anyhow::ensure!(closed == count, "{closed} of {count} returned blocks were still open");
        Ok(())
    }
}

impl Holder {
    async fn allocate(&mut self) -> anyhow::Result<AllocateBlockResponse> {
        let request = self.next.clone();
        match &self.line {
            Line::Calls => {
                Ok(self.stub.allocate_block(request).await.context("allocate a block")?.into_inner())
            }
            Line::Stream(requests) => {
                let (answer, answered) = oneshot::channel();
                requests.send((request, answer)).await.context("the stream of allocations has ended")?;
                answered.await.context("the stream of allocations ended without an answer")
            }
        }
    }
}

/// Opens a stream that many holders share: it answers in the order of the requests.
fn stream(mut stub: IssuerClient<Channel>) -> Line {
    let (requests, out) = mpsc::channel::<Asked>(256);
    let (waiting, mut answered) = mpsc::channel(256);
    let out = ReceiverStream::new(out).map(move |(request, answer)| {
        // There is room for all who share the stream; nobody reads any more when it has ended, and then nobody waits.
        let _ = waiting.try_send(answer);
        request
    });
    tokio::spawn(async move {
        let mut answers: Streaming<AllocateBlockResponse> = stub.allocate_blocks(out).await?.into_inner();
        while let Some(answer) = answers.message().await? {
            if let Some(waiting) = answered.recv().await {
                let _ = waiting.send(answer);
            }
        }
        anyhow::Ok(())
    });
    Line::Stream(requests)
}

fn used_up(block: Block) -> ReturnedBlock {
    let used = block.len;
    ReturnedBlock { block: Some(block), used, burned: 0, unused: Vec::new(), registered_end: 0 }
}

/// Registers that many holders over that many connections.
pub(super) async fn holders(
    url: &str,
    count: usize,
    connections: usize,
    manner: Manner,
    (block_len, return_after): (u64, usize),
) -> anyhow::Result<Vec<Holder>> {
    let mut pool = Vec::new();
    for _ in 0..connections.min(count) {
        let endpoint =
            Endpoint::from_shared(url.to_owned()).context("parse the issuer's URL")?.tcp_nodelay(true);
        let stub = IssuerClient::new(endpoint.connect().await.context("connect to the issuer")?);
        let line = if manner == Manner::Stream { stream(stub.clone()) } else { Line::Calls };
        pool.push((stub, line));
    }
    let mut holders = Vec::new();
    for (index, (stub, line)) in pool.iter().cycle().take(count).enumerate() {
        // A name of its own for each number of holders: they are never the same holder twice.
        let holder = format!("{manner:?}-{count}-{index:03}");
        let mut stub = stub.clone();
        let next = register(&mut stub, holder, block_len).await?;
        let line = line.clone();
        holders.push(Holder { stub, line, next, open: Vec::new(), return_after });
    }
    Ok(holders)
}

async fn register(
    stub: &mut IssuerClient<Channel>,
    holder: String,
    wanted_len: u64,
) -> anyhow::Result<AllocateBlockRequest> {
    let request = RegisterRequest {
        holder: holder.clone(),
        instance: "bench-instance".to_owned(),
        namespaces: vec![NamespaceSpec { name: NAMESPACE.to_owned(), capacity: CAPACITY }],
        reserved: false,
    };
    let registered = stub.register(request).await.context("register a holder")?.into_inner();
    Ok(AllocateBlockRequest {
        holder,
        incarnation: registered.incarnation,
        seq: registered.last_seq + 1,
        namespace: NAMESPACE.to_owned(),
        wanted_len,
        store_epoch: "bench:1".to_owned(),
    })
}
