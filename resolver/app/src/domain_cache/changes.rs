//! Finds domains, and changes domains and rules about targets.

use links::{Authority, DomainEdit, DomainId, api_key::ApiKeyId, targets::TargetRule};
use store::{DomainEdited, DomainRemoved, StoreError};
use tokio::{join, time::sleep};

use super::{Directory, Entries, SHOWN};

impl Directory {
    /// The domain of this name, if there is one: looked for in the store, if it is not in the copy,
    /// or if the copy is old. Another resolver may have given the domain another name, and have
    /// said so.
    ///
    /// # Errors
    /// When the store does not say.
    pub async fn find(&self, name: &str) -> Result<Option<DomainId>, StoreError> {
        if name == "DEFAULT" || name == self.default_name() {
            return Ok(Some(DomainId::DEFAULT));
        }
        let parsed = Authority::parse(name).ok();
        let is_default = |name: &Authority| self.is_default_name(name.as_str());
        // One that was stored with a scheme's own port is found by the name that the list shows,
        // whoever has its visitors.
        let known = |entries: &Entries| {
            let listed = entries.named(name).map(|domain| domain.id);
            let default = || parsed.as_ref().filter(|name| is_default(name)).map(|_| DomainId::DEFAULT);
            let other = || entries.named(parsed.as_ref()?.as_str()).map(|domain| domain.id);
            listed.or_else(default).or_else(other)
        };
        // Before the copy is asked: it may become fresh between the two.
        let was_fresh = self.is_fresh();
        let found = known(&self.entries());
        let is_settled = found.map_or(parsed.is_none(), |id| was_fresh || id.is_default());
        if is_settled {
            return Ok(found);
        }
        self.refresh().await?;
        Ok(known(&self.entries()))
    }

    /// The domain of this name for a new link on it, once every resolver knows the domain.
    ///
    /// # Errors
    /// When the store does not say.
    pub async fn find_for_link(&self, name: &str) -> Result<Option<DomainId>, StoreError> {
        let found = self.find(name).await?;
        if let Some(id) = found {
            self.wait_until_known(id).await;
        }
        Ok(found)
    }

    /// Adds a domain, and answers when it shows everywhere; none when there are as many as there
    /// may be.
    ///
    /// # Errors
    /// When the store does not add it.
    pub async fn add(&self, name: &Authority, by: ApiKeyId) -> Result<Option<DomainId>, StoreError> {
        let added = self.settings.add_domain(name, self.policy.domains_max, by).await?;
        if added.is_some() {
            self.show().await;
        }
        Ok(added)
    }

    /// How many domains there may be beside the default one.
    #[must_use]
    pub fn domains_max(&self) -> u32 {
        self.policy.domains_max
    }

    /// Removes a domain that nothing depends on; answers when that shows everywhere.
    ///
    /// # Errors
    /// When the store does not remove it.
    pub async fn remove(&self, id: DomainId, by: ApiKeyId) -> Result<DomainRemoved, StoreError> {
        let removed = self.settings.remove_domain(id, by).await?;
        if removed == DomainRemoved::Done {
            self.show().await;
        }
        Ok(removed)
    }

    /// Changes a domain; answers when the change shows everywhere.
    ///
    /// # Errors
    /// When the store does not change it.
    pub async fn edit(
        &self,
        id: DomainId,
        edit: &DomainEdit,
        by: ApiKeyId,
    ) -> Result<DomainEdited, StoreError> {
        let edited = self.settings.edit_domain(id, edit, by).await?;
        if matches!(edited, DomainEdited::Done(_)) {
            self.show().await;
        }
        Ok(edited)
    }

    /// Adds or removes a rule about targets, and answers when the change shows everywhere. True if
    /// anything has changed.
    ///
    /// # Errors
    /// When the store does not.
    pub async fn set_target(
        &self,
        rule: &TargetRule,
        is_there: bool,
        by: ApiKeyId,
    ) -> Result<bool, StoreError> {
        let changed = if is_there {
            self.settings.set_target(rule, by).await.map(|()| true)?
        } else {
            self.settings.remove_target(rule.pattern(), by).await?
        };
        if changed {
            self.show().await;
        }
        Ok(changed)
    }

    /// Waits until a committed change shows everywhere. If this process cannot read the change now,
    /// it will hear of it like all others.
    async fn show(&self) {
        let shown = async {
            if self.settings.is_shared() {
                sleep(SHOWN).await;
            }
        };
        if let (Err(error), ()) = join!(self.refresh(), shown) {
            tracing::warn!(error = &error as &dyn std::error::Error, "read a domain's change");
        }
    }
}
