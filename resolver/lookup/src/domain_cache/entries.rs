//! One version of the domains and target rules.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use links::{Domain, DomainId, DomainSettings, requested_authority, targets::Targets, webhook::Subscription};
use store::{SettingsVersion, SharedSettings};

/// One version of the domains and target rules, indexed by name and id.
#[derive(Debug)]
pub struct Entries {
    /// The version; `None` before the first read.
    pub(super) version: Option<SettingsVersion>,
    by_name: HashMap<Box<str>, Arc<Domain>>,
    by_id: HashMap<DomainId, Arc<Domain>>,
    /// The default domain.
    pub default: Arc<Domain>,
    /// The target rules.
    pub targets: Targets,
    /// Subscriptions of the enabled webhooks.
    pub webhooks: Vec<Subscription>,
}

impl Entries {
    /// Returns the state before the first read.
    pub(super) fn nothing() -> Self {
        Self { version: None, ..Self::new(SharedSettings::default()) }
    }

    pub(super) fn new(settings: SharedSettings) -> Self {
        let domains: Vec<Arc<Domain>> = settings.domains.into_iter().map(Arc::new).collect();
        let unsaid =
            || Domain { id: DomainId::DEFAULT, authority: None, settings: DomainSettings::default() };
        let mut by_name: HashMap<Box<str>, Arc<Domain>> = HashMap::new();
        let named =
            || domains.iter().filter_map(|domain| Some((domain.authority.as_ref()?.as_str(), domain)));
        for (name, domain) in named() {
            by_name.insert(name.into(), Arc::clone(domain));
        }
        // A name that was stored with its scheme's default port, as earlier versions did, also
        // serves requests without the port. If another domain has the name without the port, that
        // one keeps its visitors.
        for (name, domain) in named() {
            by_name.entry((*requested_authority(name)).into()).or_insert_with(|| Arc::clone(domain));
        }
        let by_id: HashMap<_, _> = domains.iter().map(|domain| (domain.id, Arc::clone(domain))).collect();
        Self {
            version: Some(settings.version),
            by_name,
            default: by_id.get(&DomainId::DEFAULT).map_or_else(|| Arc::new(unsaid()), Arc::clone),
            by_id,
            targets: Targets::new(&settings.targets),
            webhooks: settings.webhooks,
        }
    }

    /// Returns the domains whose visitors are only counted.
    pub fn untracked(&self) -> HashSet<DomainId> {
        let untracked = self.by_id.values().filter(|domain| domain.settings.untracked);
        untracked.map(|domain| domain.id).collect()
    }

    /// Returns the domain with this id.
    pub fn domain(&self, id: DomainId) -> Option<&Arc<Domain>> {
        self.by_id.get(&id)
    }

    /// Returns the domain with this name. The default domain has no name here.
    pub fn named(&self, name: &str) -> Option<&Arc<Domain>> {
        self.by_name.get(name)
    }

    /// Returns every domain but the default one, sorted by name.
    pub fn others(&self) -> Vec<&Arc<Domain>> {
        let mut others: Vec<_> = self.by_id.values().filter(|domain| domain.authority.is_some()).collect();
        others.sort_by(|one, other| one.authority.cmp(&other.authority));
        others
    }

    /// Returns whether every host belongs to the default domain, which has no settings.
    pub(super) fn is_plain(&self) -> bool {
        self.by_name.is_empty() && self.default.settings == DomainSettings::default()
    }
}
