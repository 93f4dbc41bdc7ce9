//! The wait before a link is acknowledged, until no resolver denies it any more.
//!
//! While their filter is trusted, resolvers deny the code of a custom slug by arithmetic. For as
//! long they also serve the default domain's link in place of another domain's. Trust lasts for
//! [`TRUSTED`], counted from before the question was sent. So a create of such a link, and an
//! answer that names a recent one, waits for that long after the COMMIT.

use std::time::Duration;

use jiff::SignedDuration;
use links::Link;
use tokio::time::{sleep, sleep_until};

use super::{Creator, Parts};
use supply::safety_rule::{self, SafetyRule};

use crate::{domain_cache::SHOWN, lookup::TRUSTED};

/// How long an acknowledgement waits: a tenth more than [`TRUSTED`], for clocks that run at
/// different speeds.
const WAIT: Duration = Duration::from_millis(275);
const _: () = assert!(WAIT.as_millis() * 10 == TRUSTED.as_millis() * 11);

/// Age from which a link needs no wait: it was committed more than [`WAIT`] ago. A link's times are
/// those of the beginning of its transaction, and no transaction lasts this long.
const OLD: SignedDuration = SignedDuration::from_secs(30);

impl Creator {
    /// Waits until no resolver denies a link that is about to be acknowledged.
    pub async fn wait_until_shown(&self, link: &Link) {
        self.parts.wait_until_shown(link).await;
    }
}

impl Parts {
    pub(super) async fn wait_until_shown(&self, link: &Link) {
        self.wait_for_keyspace(link).await;
        let is_deniable =
            link.slug().is_some() && (link.id.unpack().is_some() || !link.domain().is_default());
        let edited_at = link.details.as_ref().and_then(|details| details.edited_at);
        let changed_at = edited_at.map_or(link.created_at, |edited_at| edited_at.max(link.created_at));
        let is_old = || self.clock.now().duration_since(changed_at) > OLD;
        if is_deniable && self.links.is_shared() && !is_old() && safety_rule::is_on(SafetyRule::SlugWait) {
            sleep(WAIT).await;
        }
    }

    /// Waits until the other resolvers know the link's keyspace, which this process may have just
    /// learned of. Minting waits for the same before it begins.
    async fn wait_for_keyspace(&self, link: &Link) {
        if self.links.is_shared()
            && safety_rule::is_on(SafetyRule::KeyspaceShown)
            && let Some(seen) = self.lookup.keyspace_seen(link.id)
        {
            sleep_until(seen + SHOWN).await;
        }
    }
}
