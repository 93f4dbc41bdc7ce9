//! Holders of a real issuer over gRPC, with one call per allocation, as resolvers make them.

use anyhow::Context;
use proto::issuer::v1::{
    AllocateBlockRequest, Block, NamespaceSpec, RegisterRequest, ReturnBlocksRequest, ReturnedBlock,
    issuer_client::IssuerClient,
};
use tonic::transport::{Channel, Endpoint};

use crate::load;

const NAMESPACE: &str = "bench";
/// The whole number space, so that the ceiling is never reached.
const CAPACITY: u64 = 1 << 48;

/// A holder, registered once and reused in all rounds.
pub(super) struct Holder {
    stub: IssuerClient<Channel>,
    next: AllocateBlockRequest,
    open: Vec<ReturnedBlock>,
    return_after: usize,
}

impl load::Client for Holder {
    async fn operate(&mut self) -> anyhow::Result<()> {
        let answer = self.stub.allocate_block(self.next.clone()).await.context("allocate a block")?;
        let block = answer.into_inner().block.context("an allocation has a block")?;
        self.next.seq += 1;
        self.open.push(used_up(block));
        Ok(())
    }

    /// Returns the open blocks as used up. A holder may have 64 blocks open, and a resolver never
    /// has more than a few.
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

fn used_up(block: Block) -> ReturnedBlock {
    let used = block.len;
    ReturnedBlock { block: Some(block), used, burned: 0, unused: Vec::new(), registered_end: 0 }
}

/// Registers that many holders over that many connections.
pub(super) async fn holders(
    url: &str,
    count: usize,
    connections: usize,
    (block_len, return_after): (u64, usize),
) -> anyhow::Result<Vec<Holder>> {
    let mut pool = Vec::new();
    for _ in 0..connections.min(count) {
        let endpoint =
            Endpoint::from_shared(url.to_owned()).context("parse the issuer's URL")?.tcp_nodelay(true);
        let stub = IssuerClient::new(endpoint.connect().await.context("connect to the issuer")?);
        pool.push(stub);
    }
    let mut holders = Vec::new();
    for (index, stub) in pool.iter().cycle().take(count).enumerate() {
        // The number of holders is part of the name, so no two levels share a holder.
        let holder = format!("holder-{count}-{index:03}");
        let mut stub = stub.clone();
        let next = register(&mut stub, holder, block_len).await?;
        holders.push(Holder { stub, next, open: Vec::new(), return_after });
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
