//! Keyspaces that this process has adopted, and from when on their codes may be used.

use codes::{Keyspace, KeyspaceIndex};
use store::{Settings, StoreError};
use supply::safety_rule::{SafetyRule, SafetyRules};
use tokio::time::Instant;

use crate::domain_cache::SHOWN;

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
/// from when this process has read the keyspaces back, even if numbers of a keyspace are
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
