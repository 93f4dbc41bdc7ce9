//! Adoption of the keyspaces in this process's configuration.

use codes::{Keyspace, KeyspaceIndex};
use store::{Settings, StoreError};
use supply::safety_rule::{SafetyRule, SafetyRules};
use tokio::time::sleep;

use crate::domain_cache::SHOWN;

/// Adopts keyspaces, and waits until every resolver knows all of them.
///
/// A resolver that does not know a keyspace takes its codes for slugs. The wait counts from when
/// this process has read the keyspaces back, because the COMMIT may have come much later than the
/// time of the adoption. Registered numbers do not make the wait needless. An older copy of the
/// database may have lacked the keyspace. Another process may then have minted in it until it
/// noticed, and have adopted it again just now.
pub async fn adopt_keyspaces(
    settings: &dyn Settings,
    mine: &[Keyspace],
    rules: SafetyRules,
) -> Result<Vec<(KeyspaceIndex, Keyspace)>, StoreError> {
    let keyspaces = settings.adopt_keyspaces(mine).await?;
    if settings.is_shared() && rules.keep(SafetyRule::KeyspaceWait) {
        sleep(SHOWN).await;
    }
    Ok(keyspaces)
}
