//! The wait before a link is acknowledged, until every resolver knows its keyspace.

use links::Link;
use supply::safety_rule::SafetyRule;
use tokio::time::sleep_until;

use super::{Creator, Parts};
use crate::domain_cache::SHOWN;

impl Creator {
    /// Waits until the other resolvers know the keyspace of a link that is about to be
    /// acknowledged.
    pub async fn wait_until_shown(&self, link: &Link) {
        self.parts.wait_until_shown(link).await;
    }
}

impl Parts {
    /// Waits until the other resolvers know the link's keyspace, which this process may have just
    /// learned of. Minting waits for the same before it begins.
    pub(super) async fn wait_until_shown(&self, link: &Link) {
        if self.links.is_shared()
            && self.lookup.rules().keep(SafetyRule::KeyspaceShown)
            && let Some(seen) = self.lookup.keyspace_seen(link.id)
        {
            sleep_until(seen + SHOWN).await;
        }
    }
}
