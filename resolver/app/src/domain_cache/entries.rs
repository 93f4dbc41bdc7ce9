//! One state of the copy that every resolver keeps of domains and rules about targets.

use std::{collections::HashMap, sync::Arc};

use links::{Domain, DomainId, DomainSettings, requested_authority, targets::Targets};
use store::{SettingsVersion, SharedSettings};

/// A state of the settings.
#[derive(Debug)]
pub struct Entries {
    /// The version; none before anything was read.
    pub(super) version: Option<SettingsVersion>,
    by_name: HashMap<Box<str>, Arc<Domain>>,
    by_id: HashMap<DomainId, Arc<Domain>>,
    default: Arc<Domain>,
    targets: Targets,
}

impl Entries {
    /// Before anything was read.
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
        // What was stored with a scheme's own port, before that was dropped, is what requests
        // without it mean: unless it has a domain of its own, which then keeps its visitors.
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
        }
    }

    /// The domain of this number.
    #[must_use]
    pub fn domain(&self, id: DomainId) -> Option<&Arc<Domain>> {
        self.by_id.get(&id)
    }

    /// The domain of this name; not the default one, which has none here.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Arc<Domain>> {
        self.by_name.get(name)
    }

    /// Every domain but the default one, in the order of their names.
    #[must_use]
    pub fn others(&self) -> Vec<&Arc<Domain>> {
        let mut others: Vec<_> = self.by_id.values().filter(|domain| domain.authority.is_some()).collect();
        others.sort_by(|one, other| one.authority.cmp(&other.authority));
        others
    }

    /// Where links may lead to.
    #[must_use]
    pub fn targets(&self) -> &Targets {
        &self.targets
    }

    /// The default domain.
    #[must_use]
    pub fn default_domain(&self) -> &Arc<Domain> {
        &self.default
    }

    /// Whether every host is the default domain's, of which nothing is said.
    pub(super) fn is_plain(&self) -> bool {
        self.by_name.is_empty() && self.default.settings == DomainSettings::default()
    }
}
