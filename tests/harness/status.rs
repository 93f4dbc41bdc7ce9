//! The output of `issuer status --json`.

use anyhow::Context;
use serde::{Deserialize, Serialize};

/// The committed state as the leader reports it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Status {
    /// The leader's advertised URL.
    pub leader: String,
    /// The leader's epoch, its fencing token.
    pub epoch: u64,
    /// The namespaces.
    pub namespaces: Vec<Namespace>,
    /// The known holders.
    pub holders: Vec<Holder>,
}

/// The account of one namespace. All counts are numbers, not blocks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Namespace {
    /// The name of the namespace, which is that of its keyspace.
    pub name: String,
    /// The size of the number space.
    pub capacity: u64,
    /// The first number never allocated.
    pub high_watermark: u64,
    /// The allocation limit: numbers at or above it are not allocated.
    pub ceiling: u64,
    /// Numbers ever allocated.
    pub allocated: u64,
    /// Numbers in closed blocks that have a link.
    pub used: u64,
    /// Numbers in blocks that a holder has open.
    pub open: u64,
    /// Numbers returned unused.
    pub free: u64,
    /// Numbers in blocks whose holder is gone.
    pub leaked: u64,
    /// Numbers given up for good.
    pub burned: u64,
}

/// A holder of blocks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Holder {
    /// The stable name of the holder.
    pub id: String,
    /// The incarnation, which grows at each start of the holder.
    pub incarnation: u64,
    /// Whether the holder was heard from within the holder TTL.
    pub alive: bool,
    /// The number of open blocks.
    pub blocks: u64,
}

impl Status {
    /// Parses the command's output.
    ///
    /// # Errors
    /// Returns an error if the text is not a status in JSON.
    pub fn parse(json: &str) -> anyhow::Result<Self> {
        serde_json::from_str(json).with_context(|| format!("read the issuers' status: {json}"))
    }

    /// Returns the only namespace.
    ///
    /// # Errors
    /// Returns an error if there are no namespaces or several.
    pub fn only_namespace(&self) -> anyhow::Result<&Namespace> {
        match &self.namespaces[..] {
            [only] => Ok(only),
            others => anyhow::bail!("expected one namespace, found {}", others.len()),
        }
    }

    /// Returns a holder by its id.
    ///
    /// # Errors
    /// Returns an error if the issuers do not know the holder.
    pub fn holder(&self, id: &str) -> anyhow::Result<&Holder> {
        self.holders
            .iter()
            .find(|holder| holder.id == id)
            .with_context(|| format!("no holder {id}: {self:?}"))
    }
}
