//! API keys: creates, rotates, revokes and lists them.
//!
//! 1. These use cases belong to the operator. Beside the server their authorisation is the access
//!    to the database ([`ApiKeys::new`]). Within it they need an administrator's key without limits
//!    ([`LinkService::api_keys`]), which the audit log names. A secret that such a key gets, of a
//!    new key or of an old one, has at most its own lifetime and rate. The REST API does not have
//!    them, so that a program with a key makes no others.
//! 2. A secret is drawn here and returned once. Only its hash is stored.
//! 3. Resolvers learn of changes from the database ([`key_ring`](crate::key_ring)).

use std::{collections::HashMap, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use links::{
    Authority, DomainId, Invalid,
    api_key::{ApiKey, ApiKeyId, ApiKeyRecord, Grant, KeyLimits, NewKey, OPERATOR, check_name},
    scope::{Scope, Scopes},
};
use store::{Store, StoreError};

use crate::{AppError, LinkService, authorize::require_operator};

/// The use cases of API keys.
pub struct ApiKeys {
    store: Arc<dyn Store>,
    /// The key that acts, or the operator.
    by: ApiKeyId,
}

/// An API key to be created.
#[derive(Clone, Debug)]
pub struct CreateKey {
    /// Name of the key, not yet checked.
    pub name: String,
    /// Scopes of the key.
    pub scopes: Scopes,
    /// Time until the key expires; `None` if it does not expire.
    pub expires_in: Option<Duration>,
    /// The only domain on which the key may see and create links; `None` for all domains.
    pub domain: Option<KeyDomain>,
    /// Whether the key sees only the links that it created.
    pub own_links_only: bool,
    /// Whether the key sees no visit that no link redirected.
    pub no_orphan_visits: bool,
    /// Maximum calls per minute: `None` for the default of all keys, 0 for no limit.
    pub calls_per_minute: Option<u32>,
}

/// The domain that a new API key is limited to.
#[derive(Clone, Debug)]
pub enum KeyDomain {
    /// The default domain.
    Default,
    /// The domain of this name. It is added if it does not exist, as for a new link.
    Named(Authority),
}

/// An API key with the name of the domain that it is limited to.
#[derive(Clone, Debug)]
pub struct ListedKey {
    /// The key.
    pub record: ApiKeyRecord,
    /// The domain's name. `None` for a key without this limit, and for the default domain or a
    /// removed one, which have no name.
    pub domain_name: Option<String>,
}

/// Error of a use case of API keys.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The name of the new key is malformed.
    #[error(transparent)]
    Name(#[from] Invalid),
    /// Another key has the name of the new one.
    #[error("a key of this name exists: choose another name")]
    NameTaken,
    /// No key has this name, or it is revoked.
    #[error("no key has this name, or it is revoked")]
    NoKey,
    /// The key lasts longer than the one that acts, or may make more calls.
    #[error("the key lasts longer or may make more calls than your own: rotate it with a stronger key")]
    BeyondOwn,
    /// The key is the last one that could make others.
    #[error("it is the last administrator's key without limits: create another one before you revoke it")]
    LastOperator,
    /// The system provided no random bytes.
    #[error("no random bytes from the system: {0}")]
    Random(getrandom::Error),
    /// The database refused the call.
    #[error("database")]
    Store(#[from] StoreError),
}

impl ApiKeys {
    /// Returns the use cases over this database, for its operator.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, by: OPERATOR }
    }

    /// Creates an API key, and returns its secret. Its domain is added even if its name is taken.
    pub async fn create(&self, wish: CreateKey) -> Result<ApiKey, KeyError> {
        let CreateKey { name, scopes, expires_in, calls_per_minute, .. } = wish;
        check_name(&name)?;
        let limits = KeyLimits {
            domain: self.find_domain(wish.domain).await?,
            own_links_only: wish.own_links_only,
            no_orphan_visits: wish.no_orphan_visits,
            calls_per_minute,
            ..KeyLimits::default()
        };
        let key = ApiKey::draw().map_err(KeyError::Random)?;
        let span = expires_in.and_then(|span| SignedDuration::try_from(span).ok());
        let expires_at = span.and_then(|span| Timestamp::now().checked_add(span).ok());
        let keys = self.bounding_keys().await?;
        let (expires_at, limits) = self.within_own(&keys, expires_at, limits);
        let new = NewKey { name, hash: key.hash(), scopes, expires_at, limits };
        self.store.add_api_key(&new, self.by).await?.map(|_| key).ok_or(KeyError::NameTaken)
    }

    /// Returns all API keys, or none for the operator, whom no key bounds.
    async fn bounding_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError> {
        if self.by == OPERATOR { Ok(Vec::new()) } else { self.store.list_api_keys().await }
    }

    /// Cuts the lifetime and the rate of a key to those of the key that acts.
    fn within_own(
        &self,
        keys: &[ApiKeyRecord],
        expires_at: Option<Timestamp>,
        limits: KeyLimits,
    ) -> (Option<Timestamp>, KeyLimits) {
        let Some(own) = keys.iter().find(|key| key.id == self.by) else {
            return (expires_at, limits);
        };
        let expires_at = [expires_at, own.expires_at].into_iter().flatten().min();
        // Zero stands for no limit.
        let bound = own.limits.calls_per_minute.filter(|calls| *calls > 0);
        let calls = limits.calls_per_minute;
        let calls_per_minute = match bound {
            Some(most) if calls.is_none_or(|calls| calls == 0 || calls > most) => Some(most),
            _ => calls,
        };
        (expires_at, KeyLimits { calls_per_minute, ..limits })
    }

    async fn find_domain(&self, domain: Option<KeyDomain>) -> Result<Option<DomainId>, StoreError> {
        match domain {
            None => Ok(None),
            Some(KeyDomain::Default) => Ok(Some(DomainId::DEFAULT)),
            // `--limit domains` does not apply: the command is the operator's, and pages offer
            // domains that exist.
            Some(KeyDomain::Named(name)) => self.store.add_domain(&name, u32::MAX, self.by).await,
        }
    }

    /// Returns all API keys in the order of their creation.
    pub async fn list(&self) -> Result<Vec<ListedKey>, StoreError> {
        let records = self.store.list_api_keys().await?;
        let domains = self.store.poll_settings(None).await?.settings.unwrap_or_default().domains;
        let named = domains.into_iter().filter_map(|domain| Some((domain.id, domain.authority?.to_string())));
        let names: HashMap<DomainId, String> = named.collect();
        let listed = |record: ApiKeyRecord| {
            let domain_name = record.limits.domain.and_then(|id| names.get(&id).cloned());
            ListedKey { record, domain_name }
        };
        Ok(records.into_iter().map(listed).collect())
    }

    /// Replaces the secret of an API key, and returns the new one. The old secret stays valid for
    /// `keep_old_for`.
    pub async fn rotate(&self, name: &str, keep_old_for: Duration) -> Result<ApiKey, KeyError> {
        let keys = self.bounding_keys().await?;
        if let Some(rotated) = keys.iter().find(|key| key.name == name) {
            let is = (rotated.expires_at, rotated.limits.clone());
            if self.within_own(&keys, is.0, is.1.clone()) != is {
                return Err(KeyError::BeyondOwn);
            }
        }
        let key = ApiKey::draw().map_err(KeyError::Random)?;
        let is_rotated = self.store.rotate_api_key(name, &key.hash(), keep_old_for, self.by).await?;
        if is_rotated { Ok(key) } else { Err(KeyError::NoKey) }
    }

    /// Revokes an API key. The operator of the database may revoke the last one that could make
    /// others, and create another.
    pub async fn revoke(&self, name: &str) -> Result<(), KeyError> {
        if self.by != OPERATOR && self.is_last_operator(name).await? {
            return Err(KeyError::LastOperator);
        }
        if self.store.revoke_api_key(name, self.by).await? { Ok(()) } else { Err(KeyError::NoKey) }
    }

    /// Returns whether no key but the one of this name is an administrator's without limits.
    async fn is_last_operator(&self, name: &str) -> Result<bool, StoreError> {
        let now = Timestamp::now();
        let is_operator = |key: &ApiKeyRecord| {
            key.revoked_at.is_none()
                && key.expires_at.is_none_or(|end| end > now)
                && key.scopes.allow(Scope::Admin)
                && !key.limits.hide()
        };
        let keys = self.store.list_api_keys().await?;
        Ok(!keys.iter().any(|key| key.name != name && is_operator(key)))
    }
}

impl LinkService {
    /// Returns the use cases for an API key.
    pub fn api_keys(&self, by: &Grant) -> Result<ApiKeys, AppError> {
        require_operator(by)?;
        Ok(ApiKeys { store: Arc::clone(&self.store), by: by.id })
    }
}

#[cfg(test)]
mod tests {
    use store::{Keys as _, sqlite::SqliteStore};
    use tempfile::TempDir;

    use super::*;

    fn wish(name: &str) -> CreateKey {
        CreateKey {
            name: name.to_owned(),
            scopes: Scopes::admin(),
            expires_in: None,
            domain: Some(KeyDomain::Named(Authority::parse("sho.rt").unwrap())),
            own_links_only: true,
            no_orphan_visits: false,
            calls_per_minute: None,
        }
    }

    async fn store() -> (TempDir, Arc<SqliteStore>) {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(&folder.path().join("links.db")).unwrap());
        store.migrate().await.unwrap();
        (folder, store)
    }

    #[tokio::test]
    async fn no_key_gets_a_secret_that_does_more_than_itself() {
        let (_folder, store) = store().await;
        let operator = ApiKeys::new(store.clone());
        let bounded = |name: &str, days: u64, calls: Option<u32>| CreateKey {
            expires_in: Some(Duration::from_secs(days * 86_400)),
            calls_per_minute: calls,
            ..wish(name)
        };
        let own = operator.create(bounded("own", 10, Some(60))).await.unwrap();
        operator.create(wish("endless")).await.unwrap();
        for (name, days, calls) in
            [("weaker", 5, 30), ("longer", 11, 30), ("faster", 5, 61), ("unlimited", 5, 0)]
        {
            operator.create(bounded(name, days, Some(calls))).await.unwrap();
        }

        let by = store.find_api_key(&own.hash()).await.unwrap().unwrap().id;
        let within = ApiKeys { by, ..ApiKeys::new(store.clone()) };
        for name in ["own", "weaker"] {
            within.rotate(name, Duration::ZERO).await.unwrap();
        }
        for name in ["endless", "longer", "faster", "unlimited"] {
            assert!(matches!(within.rotate(name, Duration::ZERO).await, Err(KeyError::BeyondOwn)), "{name}");
        }
        assert!(matches!(within.rotate("absent", Duration::ZERO).await, Err(KeyError::NoKey)));
        within.create(bounded("new", 20, None)).await.unwrap();
        let listed = within.list().await.unwrap();
        let record = |name: &str| &listed.iter().find(|key| key.record.name == name).unwrap().record;
        assert_eq!(record("new").expires_at, record("own").expires_at);
        assert_eq!(record("new").limits.calls_per_minute, Some(60));
        operator.rotate("endless", Duration::ZERO).await.unwrap();
    }

    #[tokio::test]
    async fn the_last_administrators_key_does_not_revoke_itself() {
        let (_folder, store) = store().await;
        let operator = ApiKeys::new(store.clone());
        let admin = |name: &str| CreateKey { domain: None, own_links_only: false, ..wish(name) };
        let own = operator.create(admin("own")).await.unwrap();
        operator.create(wish("limited")).await.unwrap();
        let reader = CreateKey { scopes: Scopes::only(Scope::Read), ..admin("reader") };
        operator.create(reader).await.unwrap();
        let by = store.find_api_key(&own.hash()).await.unwrap().unwrap().id;
        let keys = ApiKeys { by, ..ApiKeys::new(store.clone()) };
        assert!(matches!(keys.revoke("own").await, Err(KeyError::LastOperator)));
        keys.revoke("limited").await.unwrap();
        operator.create(admin("other")).await.unwrap();
        keys.revoke("own").await.unwrap();
        operator.revoke("other").await.unwrap();
    }

    #[tokio::test]
    async fn a_key_is_found_by_its_last_secret_until_it_is_revoked() {
        let (_folder, store) = store().await;
        let api_keys = ApiKeys::new(store.clone());

        let first = api_keys.create(wish("ci")).await.unwrap();
        let grant = store.find_api_key(&first.hash()).await.unwrap().unwrap();
        assert!(grant.limits.own_links_only && grant.limits.domain.is_some());
        assert!(matches!(api_keys.create(wish("ci")).await, Err(KeyError::NameTaken)));
        assert!(matches!(api_keys.create(wish("c i")).await, Err(KeyError::Name(_))));
        let listed = api_keys.list().await.unwrap();
        let ci = listed.iter().find(|key| key.record.name == "ci").unwrap();
        assert_eq!(ci.domain_name.as_deref(), Some("sho.rt"));

        let is_good = async |key: &ApiKey| store.find_api_key(&key.hash()).await.unwrap().is_some();
        let second = api_keys.rotate("ci", Duration::from_secs(60)).await.unwrap();
        assert!(is_good(&first).await && is_good(&second).await);
        let third = api_keys.rotate("ci", Duration::ZERO).await.unwrap();
        assert!(!is_good(&first).await && !is_good(&second).await && is_good(&third).await);
        assert!(matches!(api_keys.rotate("other", Duration::ZERO).await, Err(KeyError::NoKey)));

        api_keys.revoke("ci").await.unwrap();
        assert!(!is_good(&third).await);
        assert!(matches!(api_keys.revoke("ci").await, Err(KeyError::NoKey)));
    }
}
