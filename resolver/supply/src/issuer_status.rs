//! The status of the issuer, for people: its committed state, and reports and forecasts.

use proto::issuer::v1 as pb;

/// The status of the issuer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IssuerStatus {
    /// Advertised address of the leader.
    pub leader: String,
    /// Epoch of the leader.
    pub epoch: u64,
    /// All namespaces, by name.
    pub namespaces: Vec<NamespaceAccount>,
    /// All known holders, by name.
    pub holders: Vec<HolderStatus>,
}

/// Where the numbers of a namespace are (I10).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamespaceAccount {
    /// Name.
    pub name: String,
    /// How many numbers there are.
    pub capacity: u64,
    /// Numbers ever allocated.
    pub allocated: u64,
    /// Used numbers of closed blocks.
    pub used: u64,
    /// Numbers of blocks that a holder has open.
    pub open: u64,
    /// Numbers that were returned unused.
    pub free: u64,
    /// Numbers of blocks whose holder is gone.
    pub leaked: u64,
    /// Numbers given up for good.
    pub burned: u64,
    /// Unused numbers that holders had in hand when they last reported.
    pub in_hand: u64,
    /// Time until the namespace runs out, in seconds; `None` if nothing was consumed of late.
    pub exhaustion_seconds: Option<f64>,
    /// Numbers of leaked blocks that were allocated again since the leader started.
    pub reclaimed: u64,
}

/// Numbers of a namespace that a holder has in hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HolderSupply {
    /// Name of the namespace.
    pub namespace: String,
    /// Unused numbers.
    pub in_hand: u64,
    /// How long they last, in seconds; `None` if none is claimed.
    pub lasts_seconds: Option<u64>,
}

/// A holder, as the issuer knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HolderStatus {
    /// Name.
    pub id: String,
    /// Current incarnation.
    pub incarnation: u64,
    /// Whether the holder was heard within its TTL.
    pub is_alive: bool,
    /// Number of open blocks.
    pub blocks: u32,
    /// Whether it is a reservation, and no process.
    pub is_reservation: bool,
    /// What it has in hand, by namespace.
    pub supplies: Vec<HolderSupply>,
}

impl NamespaceAccount {
    /// Returns how many numbers can still be allocated.
    pub fn left(&self) -> u64 {
        self.capacity.saturating_sub(self.allocated).saturating_add(self.free)
    }

    /// Returns whether the account balances: allocated = used + open + free + leaked + burned.
    pub fn balances(&self) -> bool {
        let parts = [self.used, self.open, self.free, self.leaked, self.burned];
        parts.iter().map(|part| u128::from(*part)).sum::<u128>() == u128::from(self.allocated)
    }
}

impl From<pb::GetStatusResponse> for IssuerStatus {
    fn from(status: pb::GetStatusResponse) -> Self {
        let namespace = |one: pb::NamespaceStatus| NamespaceAccount {
            name: one.name,
            capacity: one.capacity,
            allocated: one.allocated,
            used: one.used,
            open: one.open,
            free: one.free,
            leaked: one.leaked,
            burned: one.burned,
            in_hand: one.in_hand,
            exhaustion_seconds: one.exhaustion_seconds,
            reclaimed: one.reclaimed,
        };
        let supply = |one: pb::Supply| HolderSupply {
            namespace: one.namespace,
            in_hand: one.in_hand,
            lasts_seconds: one.lasts_ms.map(|ms| ms / 1_000),
        };
        let holder = |one: pb::HolderStatus| HolderStatus {
            id: one.id,
            incarnation: one.incarnation,
            is_alive: one.alive,
            blocks: one.blocks,
            is_reservation: one.reserved,
            supplies: one.supplies.into_iter().map(supply).collect(),
        };
        Self {
            leader: status.leader,
            epoch: status.epoch,
            namespaces: status.namespaces.into_iter().map(namespace).collect(),
            holders: status.holders.into_iter().map(holder).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_balances_only_if_every_number_is_somewhere() {
        let account = |used| NamespaceAccount {
            capacity: 100,
            allocated: 60,
            used,
            open: 10,
            free: 5,
            leaked: 4,
            burned: 1,
            ..NamespaceAccount::default()
        };
        assert!(account(40).balances());
        assert!(!account(41).balances());
        assert_eq!(account(40).left(), 45);
        assert!(!NamespaceAccount { used: u64::MAX, open: u64::MAX, ..account(0) }.balances());
    }
}
