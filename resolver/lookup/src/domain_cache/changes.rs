//! Finds and adds domains, and waits until a change of the settings is visible everywhere.

use links::{Authority, DomainId, api_key::ApiKeyId};
use store::StoreError;
use tokio::{
    join,
    time::{Instant, sleep, sleep_until},
};

use super::{DomainCache, Entries, SHOWN};

impl DomainCache {
    /// Returns the id of the domain with this name, if there is one.
    ///
    /// The settings are read again if the copy is old or lacks the name. Another resolver may have
    /// renamed the domain and have acknowledged that.
    pub async fn find(&self, name: &str) -> Result<Option<DomainId>, StoreError> {
        if name == "DEFAULT" || name == self.default_name() {
            return Ok(Some(DomainId::DEFAULT));
        }
        let parsed = Authority::parse(name).ok();
        let is_default = |name: &Authority| self.is_default_name(name.as_str());
        // A domain that was stored with its scheme's default port is found by the name in the list,
        // even if another domain serves its visitors.
        let known = |entries: &Entries| {
            let listed = entries.named(name).map(|domain| domain.id);
            let default = || parsed.as_ref().filter(|name| is_default(name)).map(|_| DomainId::DEFAULT);
            let other = || entries.named(parsed.as_ref()?.as_str()).map(|domain| domain.id);
            listed.or_else(default).or_else(other)
        };
        // Before the lookup in the copy, which may become fresh between the two.
        let was_fresh = self.is_fresh();
        let found = known(&self.entries());
        let is_settled = found.map_or(parsed.is_none(), |id| was_fresh || id.is_default());
        if is_settled {
            return Ok(found);
        }
        self.refresh().await?;
        Ok(known(&self.entries()))
    }

    /// Returns the id of the domain with this name for a new link, once every resolver knows the
    /// domain by its name. A resolver that does not know it would take the link for an unknown code
    /// of the default domain.
    pub async fn find_for_link(&self, name: &str) -> Result<Option<DomainId>, StoreError> {
        let found = self.find(name).await?;
        if let Some(id) = found.filter(|id| self.config.settings.is_shared() && !id.is_default()) {
            let first_seen = || self.first_seen.lock().expect("no code panics while it holds this lock");
            let seen = first_seen().get(&id).map(|(_, seen)| *seen);
            sleep_until(seen.unwrap_or_else(Instant::now) + SHOWN).await;
        }
        Ok(found)
    }

    /// Adds a domain, and returns its id when it is visible everywhere. Returns `None` if there are
    /// as many domains as the operator allows.
    pub async fn add(&self, name: &Authority, by: ApiKeyId) -> Result<Option<DomainId>, StoreError> {
        let added = self.config.settings.add_domain(name, self.config.policy.domains_max, by).await?;
        if added.is_some() {
            self.show().await;
        }
        Ok(added)
    }

    /// Waits until a committed change is visible everywhere. If this process cannot read the change
    /// now, a later poll brings it, as in every other process.
    pub async fn show(&self) {
        let shown = async {
            if self.config.settings.is_shared() {
                sleep(SHOWN).await;
            }
        };
        if let (Err(error), ()) = join!(self.refresh(), shown) {
            tracing::warn!(error = &error as &dyn std::error::Error, "read a domain's change");
        }
    }
}
