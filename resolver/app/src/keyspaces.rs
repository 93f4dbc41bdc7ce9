//! Adopts the keyspaces of this process's configuration.

use codes::{Keyspace, KeyspaceIndex};
use store::{LinkStore, StoreError};
use supply::guard::{self, Guard};
use tokio::time::{Instant, sleep_until};

use crate::domain_cache::SHOWN;

/// Adopts keyspaces, and waits until every resolver has heard of all of them: one that has not
/// takes their codes for slugs. The wait counts from when this process has read them back, because
/// the COMMIT may have come much later than the time of the adoption. Numbers that are registered
/// do not make it needless: an older copy of the database may have lacked the keyspace, and another
/// process may have minted in it until it noticed, and adopted it again just now.
pub async fn adopt_keyspaces(
    store: &dyn LinkStore,
    mine: &[Keyspace],
) -> Result<Vec<(KeyspaceIndex, Keyspace)>, StoreError> {
    let keyspaces = store.adopt_keyspaces(mine).await?;
    let seen = Instant::now();
    if !store.is_shared() || !guard::is_on(Guard::KeyspaceWait) {
        return Ok(keyspaces);
    }
    sleep_until(seen + SHOWN).await;
    Ok(keyspaces)
}
