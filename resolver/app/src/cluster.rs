//! The state of the whole platform, for operators: the issuer's account, this process's supply of
//! numbers, and the stores.

use std::{sync::Arc, time::Duration};

use links::api_key::Grant;
use numbers::Namespace;
use supply::{IssuerStatus, NamespaceStatus, Stock};
use tokio::time::timeout;

use super::{AppError, LinkService, authorize::require_operator};

/// How long the issuer and the database may take to answer. The state is shown without them then.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// The state of the platform, as one process sees it.
#[derive(Clone, Debug)]
pub struct ClusterStatus {
    /// Status of the leading issuer; `None` if none answers.
    pub issuer: Option<IssuerStatus>,
    /// The numbers that this process has in hand, by the namespace of their keyspace.
    pub supplies: Vec<(Namespace, Stock)>,
    /// Whether the database answers, and its schema is recent enough.
    pub database: bool,
    /// Whether the store of visits answers.
    pub visits: bool,
    /// Recorded visits of this process that are not stored yet; `None` if it records none.
    pub spool: Option<SpoolState>,
}

/// The spool of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpoolState {
    /// Blocks that are not stored yet.
    pub blocks: u64,
    /// Size in bytes.
    pub bytes: u64,
}

/// Returns the present state of the spool.
pub type SpoolGauge = Arc<dyn Fn() -> SpoolState + Send + Sync>;

/// Returns how many numbers of a namespace can still be allocated.
pub fn left(account: &NamespaceStatus) -> u64 {
    account.capacity.saturating_sub(account.allocated).saturating_add(account.free)
}

/// Returns whether an account balances (I10): allocated = used + open + free + leaked + burned.
pub fn balances(account: &NamespaceStatus) -> bool {
    let parts = [account.used, account.open, account.free, account.leaked, account.burned];
    parts.iter().map(|part| u128::from(*part)).sum::<u128>() == u128::from(account.allocated)
}

impl LinkService {
    /// Returns the state of the platform, for an administrator's key without limits. What does not
    /// answer is part of the state.
    pub async fn cluster_status(&self, by: &Grant) -> Result<ClusterStatus, AppError> {
        require_operator(by)?;
        let asked = timeout(ANSWER_WITHIN, self.creator.config.client.status());
        let checked = timeout(ANSWER_WITHIN, self.store.poll_settings(None));
        let visits = timeout(ANSWER_WITHIN, self.visits.ping());
        let (asked, checked, visits) = tokio::join!(asked, checked, visits);
        let mintings = self.creator.config.mintings.iter();
        let supplies = mintings.map(|minting| (minting.namespace.clone(), minting.stock()));
        Ok(ClusterStatus {
            issuer: asked.ok().and_then(Result::ok),
            supplies: supplies.collect(),
            database: matches!(checked, Ok(Ok(_))),
            visits: matches!(visits, Ok(Ok(_))),
            spool: self.backlog.as_ref().map(|backlog| backlog()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_balances_only_if_every_number_is_somewhere() {
        let account = |used| NamespaceStatus {
            capacity: 100,
            allocated: 60,
            used,
            open: 10,
            free: 5,
            leaked: 4,
            burned: 1,
            ..NamespaceStatus::default()
        };
        assert!(balances(&account(40)));
        assert!(!balances(&account(41)));
        assert_eq!(left(&account(40)), 45);
        assert!(!balances(&NamespaceStatus { used: u64::MAX, open: u64::MAX, ..account(0) }));
    }
}
