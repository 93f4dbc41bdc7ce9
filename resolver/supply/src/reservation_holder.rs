//! The issuer's calls for a reservation: a holder of its own, whose blocks do not leak.

use holder::{Closed, EntryId, Refused};
use numbers::Block;
use proto::issuer::v1 as pb;

use crate::{IssuerClient, Minting, messages};

/// The registration of a holder that stands for a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationHolder {
    /// The name of the holder.
    pub holder: String,
    /// The incarnation of the registration.
    pub incarnation: u64,
}

impl IssuerClient {
    /// Registers the holder of a reservation. With `reserved` its blocks do not leak.
    pub async fn register_reservation(
        &self,
        holder: String,
        minting: &Minting,
        instance: &str,
        reserved: bool,
    ) -> Result<ReservationHolder, Refused> {
        let capacity = minting.capacity;
        let request = pb::RegisterRequest {
            holder: holder.clone(),
            instance: instance.to_owned(),
            namespaces: vec![pb::NamespaceSpec { name: minting.namespace.to_string(), capacity }],
            reserved,
        };
        let incarnation = self.register(request).await?.incarnation;
        Ok(ReservationHolder { holder, incarnation })
    }

    /// Allocates a block of at most `wanted_len` numbers to a reservation. Returns `None` for an
    /// answer that a reservation cannot use, such as a block that was another holder's before.
    pub async fn set_aside(
        &self,
        to: &ReservationHolder,
        minting: &Minting,
        seq: u64,
        wanted_len: u64,
        store_epoch: String,
    ) -> Result<Option<Block>, Refused> {
        let request = pb::AllocateBlockRequest {
            holder: to.holder.clone(),
            incarnation: to.incarnation,
            seq,
            namespace: minting.namespace.to_string(),
            wanted_len,
            store_epoch,
        };
        let answer = self.allocate(request).await?;
        let is_unused = answer.leaked_generation == 0;
        let block = answer.block.filter(|_| is_unused).and_then(messages::block);
        Ok(block.filter(|block| block.namespace == minting.namespace && block.span.len() <= wanted_len))
    }

    /// Returns a block that overlaps the register, with all of its numbers burned and the end of
    /// the registered numbers.
    pub async fn return_overlapping(
        &self,
        of: &ReservationHolder,
        block: &Block,
        registered_end: u64,
    ) -> Result<(), Refused> {
        let burned = block.span.len();
        let closed = Closed { block: block.clone(), entry: EntryId(0), used: 0, burned, unused: Vec::new() };
        let returned = messages::returned_block(&closed, Some(registered_end));
        let (holder, incarnation) = (of.holder.clone(), of.incarnation);
        let request = pb::ReturnBlocksRequest { holder, incarnation, blocks: vec![returned] };
        self.return_blocks(request).await.map(|_| ())
    }
}
