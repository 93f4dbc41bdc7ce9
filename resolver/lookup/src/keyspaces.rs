//! Keyspaces that this process has adopted, and from when on their codes may be used.

use codes::{Keyspace, KeyspaceIndex, LinkId};
use store::{Settings, StoreError};
use supply::safety_rule::{SafetyRule, SafetyRules};
use tokio::time::{Instant, sleep_until};

use crate::{domain_cache::SHOWN, lookup::Lookup};

/// The keyspaces of the database, those of this process among them.
pub struct Adopted {
    /// All keyspaces.
    pub keyspaces: Vec<(KeyspaceIndex, Keyspace)>,
    /// When every resolver knows them. No number is taken before.
    pub shown_at: Instant,
}

/// Adopts the keyspaces of this process's configuration.
///
/// A resolver that does not know a keyspace takes its codes for slugs. [`Adopted::shown_at`] counts
/// from when this process has read the keyspaces back, because the COMMIT may have come much later
/// than the time of the adoption. It is later than that even if numbers of a keyspace are
/// registered. An older copy of the database may have lacked the keyspace. Another process may then
/// have minted in it until it noticed, and have adopted it again just now.
pub async fn adopt_keyspaces(
    settings: &dyn Settings,
    mine: &[Keyspace],
    rules: SafetyRules,
) -> Result<Adopted, StoreError> {
    let keyspaces = settings.adopt_keyspaces(mine).await?;
    let waits = settings.is_shared() && rules.keep(SafetyRule::KeyspaceWait);
    let shown_at = if waits { Instant::now() + SHOWN } else { Instant::now() };
    Ok(Adopted { keyspaces, shown_at })
}

impl Lookup {
    /// Waits until the other resolvers know the keyspace of an id, which this process may have just
    /// learned of. Afterwards a link may be acknowledged, or numbers reserved. Numbers of its own
    /// blocks need no wait, because blocks are taken after the same wait.
    pub async fn wait_until_shown(&self, id: LinkId) {
        if self.is_shared
            && self.sizes.rules.keep(SafetyRule::KeyspaceShown)
            && let Some(seen) = self.keyspace_seen(id)
        {
            sleep_until(seen + SHOWN).await;
        }
    }
}
