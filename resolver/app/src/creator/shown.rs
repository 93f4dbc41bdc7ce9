//! When a link may be acknowledged: once no resolver answers any more as if it were not there.
//!
//! Resolvers deny the code of a picked slug by arithmetic while their filter is trusted, and for as long they give the default
//! domain's link in place of another domain's ([`TRUSTED`], counted from before the question was asked). Whoever stores such a
//! link, or tells a client of one that is young, waits for as long after the COMMIT.

use std::time::Duration;

use jiff::SignedDuration;
use links::Link;
use tokio::time::{sleep, sleep_until};

use super::{Creator, Parts};
use supply::guard::{self, Guard};

use crate::{domain_cache::SHOWN, lookup::TRUSTED};

/// How long the wait is: a tenth more than resolvers trust, for clocks that run at different speeds.
const WAIT: Duration = Duration::from_millis(275);
const _: () = assert!(WAIT.as_millis() * 10 == TRUSTED.as_millis() * 11);

/// A link that was stored or changed so long ago was committed more than [`WAIT`] ago: its times are those of the beginning of
/// a transaction, and no transaction lasts that long.
const OLD: SignedDuration = SignedDuration::from_secs(30);

impl Creator {
    /// Waits until no resolver denies a link that is about to be told of.
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
        if is_deniable && self.links.is_shared() && !is_old() && guard::is_on(Guard::SlugWait) {
            sleep(WAIT).await;
        }
    }

    /// Others may not have heard of a keyspace that this process has just heard of. Minting waits
    /// for that before it begins.
    async fn wait_for_keyspace(&self, link: &Link) {
        if self.links.is_shared()
            && guard::is_on(Guard::KeyspaceShown)
            && let Some(seen) = self.lookup.keyspace_seen(link.id)
        {
            sleep_until(seen + SHOWN).await;
        }
    }
}
