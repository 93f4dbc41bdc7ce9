//! Adopts the keyspaces of this process's configuration.

use codes::{Keyspace, KeyspaceIndex};
use store::{Settings, StoreError};
use supply::guard::{self, Guard};
use tokio::time::{Instant, sleep_until};

use crate::domain_cache::SHOWN;

/// Adopts keyspaces, and waits until every resolver has heard of all of them: one that has not
/// takes their codes for slugs. The wait counts from when this process has read them back, because
/// the COMMIT may have come much later than the time of the adoption. Numbers that are registered
/// do not make it needless: an older copy of the database may have lacked the keyspace, and another
/// process may have minted in it until it noticed, and adopted it again just now.
pub async fn adopt_keyspaces(
    settings: &dyn Settings,
    mine: &[Keyspace],
) -> Result<Vec<(KeyspaceIndex, Keyspace)>, StoreError> {
    let keyspaces = settings.adopt_keyspaces(mine).await?;
    let seen = Instant::now();
    if !settings.is_shared() || !guard::is_on(Guard::KeyspaceWait) {
        return Ok(keyspaces);
    }
    sleep_until(seen + SHOWN).await;
    Ok(keyspaces)
}
