//! What `issuer status --json` prints.

use anyhow::Context;
use serde::{Deserialize, Serialize};

/// The committed state as the leader tells it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Status {
    /// The leader's advertised URL.
    pub leader: String,
    /// The leader's fencing token.
    pub epoch: u64,
    /// Every namespace.
    pub namespaces: Vec<Namespace>,
    /// Every known holder.
    pub holders: Vec<Holder>,
}

/// The account of one number space; all counts are numbers, not blocks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Namespace {
    /// Its name, which is that of the keyspace.
    pub name: String,
    /// How many numbers there are.
    pub capacity: u64,
    /// The first number never allocated.
    pub high_watermark: u64,
    /// Numbers at or above it are allocated to nobody.
    pub ceiling: u64,
    /// Ever allocated.
    pub allocated: u64,
    /// In closed blocks, with a link under them.
    pub used: u64,
    /// In blocks that a holder has now.
    pub open: u64,
    /// Given back unused.
    pub free: u64,
    /// In blocks whose holder is gone.
    pub leaked: u64,
    /// Given up for good.
    pub burned: u64,
}

/// One holder.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Holder {
    /// Its stable name.
    pub id: String,
    /// Grows at each of its starts.
    pub incarnation: u64,
    /// Whether it was heard of lately.
    pub alive: bool,
    /// How many blocks it has open.
    pub blocks: u64,
}

impl Status {
    /// Reads what the command printed.
    ///
    /// # Errors
    /// It is something else.
    pub fn parse(json: &str) -> anyhow::Result<Self> {
        serde_json::from_str(json).with_context(|| format!("read the issuers' status: {json}"))
    }

    /// The namespace, if there is just one.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub fn only_namespace(&self) -> anyhow::Result<&Namespace> {
        match &self.namespaces[..] {
            [only] => Ok(only),
            others => anyhow::bail!("expected one namespace, found {}", others.len()),
        }
    }

    /// A holder by its name.
    ///
    /// # Errors
    /// The issuers do not know it.
    pub fn holder(&self, id: &str) -> anyhow::Result<&Holder> {
        self.holders
            .iter()
            .find(|holder| holder.id == id)
            .with_context(|| format!("no holder {id}: {self:?}"))
    }
}
