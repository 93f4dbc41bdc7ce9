//! Settings that all resolvers of a deployment share: domains, target rules, keyspaces and the code
//! key.

use async_trait::async_trait;
use codes::{Keyspace, KeyspaceIndex};
use jiff::Timestamp;
use links::{Authority, DomainEdit, DomainId, api_key::ApiKeyId, targets::TargetRule};

use crate::{
    Database, DomainEdited, DomainRemoved,
    Lane::{List, Read, Write},
    Result, SettingsPoll, SettingsVersion,
    operation::run,
    sql::{deployment, domains, keyspaces, targets},
};

/// Domains, target rules, keyspaces, and the fingerprint of the code key.
#[async_trait]
pub trait Settings: Database {
    /// Returns the database's time, and the shared settings unless their version is `known`.
    async fn poll_settings(&self, known: Option<&SettingsVersion>) -> Result<SettingsPoll> {
        let settings = run(self, Read, known.cloned(), |sql, known| {
            Box::pin(domains::shared_settings(sql, known.as_ref()))
        });
        // SQLite's clock is this machine's.
        Ok(SettingsPoll { now: Timestamp::now(), settings: settings.await? })
    }

    /// Adds new keyspaces and returns all keyspaces ever adopted, with their indexes.
    ///
    /// # Errors
    /// Returns `StoreError::Keyspace` if a keyspace was defined otherwise before, overlaps
    /// another one, or contains the code of an existing custom slug.
    async fn adopt_keyspaces(&self, mine: &[Keyspace]) -> Result<Vec<(KeyspaceIndex, Keyspace)>> {
        run(self, Write, mine.to_vec(), |sql, mine| Box::pin(keyspaces::adopt_keyspaces(sql, mine))).await
    }

    /// Returns the fingerprint of the adopted code key, or `None` if no key was adopted yet.
    async fn fingerprint(&self) -> Result<Option<String>> {
        run(self, Read, (), |sql, ()| Box::pin(deployment::fingerprint(sql))).await
    }

    /// Adopts the code key's fingerprint if none is stored, and returns the stored one.
    async fn adopt_fingerprint(&self, mine: &str) -> Result<String> {
        run(self, Write, mine.to_owned(), |sql, mine| Box::pin(deployment::adopt_fingerprint(sql, mine)))
            .await
    }

    /// Returns the id of the domain with this name, and adds the domain if it does not exist.
    /// Returns `None` if it would have to be added and there are `most` domains beside the default
    /// one.
    async fn add_domain(&self, authority: &Authority, most: u32, by: ApiKeyId) -> Result<Option<DomainId>> {
        run(self, Write, (authority.clone(), most, by), |sql, (authority, most, by)| {
            Box::pin(domains::add_domain(sql, authority, *most, *by))
        })
        .await
    }

    /// Edits a domain.
    async fn edit_domain(&self, id: DomainId, edit: &DomainEdit, by: ApiKeyId) -> Result<DomainEdited> {
        let args = (id, edit.clone(), by);
        run(self, Write, args, |sql, (id, edit, by)| Box::pin(domains::edit_domain(sql, *id, edit, *by)))
            .await
    }

    /// Removes a domain, unless a link or an API key depends on it. Its number is never reused.
    async fn remove_domain(&self, id: DomainId, by: ApiKeyId) -> Result<DomainRemoved> {
        run(self, Write, (id, by), |sql, (id, by)| Box::pin(domains::remove_domain(sql, *id, *by))).await
    }

    /// Returns the domains with links, without the default one. With `of`, only links of that API
    /// key count.
    async fn domains_with_links(&self, of: Option<ApiKeyId>) -> Result<Vec<DomainId>> {
        run(self, List, of, |sql, of| Box::pin(domains::domains_with_links(sql, *of))).await
    }

    /// Adds a target rule, or changes an existing one.
    async fn set_target(&self, rule: &TargetRule, by: ApiKeyId) -> Result<()> {
        let args = (rule.clone(), by);
        run(self, Write, args, |sql, (rule, by)| Box::pin(targets::set_target(sql, rule, *by))).await
    }

    /// Removes a target rule, and returns whether it existed.
    async fn remove_target(&self, pattern: &str, by: ApiKeyId) -> Result<bool> {
        let args = (pattern.to_owned(), by);
        run(self, Write, args, |sql, (pattern, by)| Box::pin(targets::remove_target(sql, pattern, *by))).await
    }
}
