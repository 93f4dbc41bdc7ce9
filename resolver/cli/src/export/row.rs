//! Converts stored links to rows of an export.

use std::{collections::HashMap, sync::Arc};

use codes::Mint;
use links::{Authority, Details, Domain, DomainId, Link, Record, Tag, api_key::ApiKeyId};
use store::{Exported, Store};
use transfer::{LeftOut, Row};

use crate::Error;

pub(super) struct Rows {
    mint: Arc<Mint>,
    domains: HashMap<DomainId, Domain>,
    keys: HashMap<ApiKeyId, String>,
}

impl Rows {
    /// Reads the names of domains and API keys, which links refer to by id.
    pub(super) async fn new(mint: Arc<Mint>, store: &dyn Store) -> Result<Self, Error> {
        let domains = store.poll_settings(None).await?.settings.unwrap_or_default().domains;
        let keys = store.list_api_keys().await?;
        Ok(Self {
            mint,
            domains: domains.into_iter().map(|domain| (domain.id, domain)).collect(),
            keys: keys.into_iter().map(|key| (key.id, key.name)).collect(),
        })
    }

    /// Converts a link with all its properties. Returns `None` for a link without a slug whose id
    /// is not a code.
    pub(super) fn row(&self, exported: Exported) -> Option<Row> {
        let Exported { record: Record { link, tags }, uses, visits } = exported;
        let minted = || self.mint.code_of(link.id).map(|code| code.to_string());
        let code = link.slug().map(ToString::to_string).or_else(minted)?;
        let was_minted = link.slug().is_none();
        let domain = self.domains.get(&link.domain());
        let created_by = self.keys.get(&link.created_by).cloned();
        let Link { long_url, title, crawlable, forward_query, created_at, details, .. } = link;
        let mut details = details.map(|details| *details).unwrap_or_default();
        let origin = details.origin.take().map(|origin| *origin).unwrap_or_default();
        let edited_by = details.edited_by.and_then(|key| self.keys.get(&key).cloned());
        let blocked_by = details.blocked.as_ref().and_then(|block| self.keys.get(&block.by).cloned());
        let tags =
            if details.deleted_at.is_some() { std::mem::take(&mut details.deleted_tags) } else { tags };
        Some(Row {
            place: 0,
            code: Some(code),
            domain: domain.and_then(|domain| domain.authority.as_ref()).map(Authority::to_string),
            long_url: long_url.as_str().to_owned(),
            title,
            tags: tags.iter().map(Tag::to_string).collect(),
            created_at: Some(created_at),
            crawlable: Some(crawlable),
            forward_query: Some(forward_query),
            visits: Some(visits),
            uses: details.max_visits.map(|_| uses),
            enabled: Some(!details.disabled),
            minted: (was_minted || origin.minted).then_some(true),
            created_by: origin.created_by.map(String::from).or(created_by),
            edited_by: origin.edited_by.map(String::from).or(edited_by),
            blocked_by: origin.blocked_by.map(String::from).or(blocked_by),
            left_out: left_out(&details, domain),
            ..Row::of_details(details)
        })
    }
}

/// Returns the properties of a link for which rows have no field.
fn left_out(details: &Details, domain: Option<&Domain>) -> Vec<LeftOut> {
    let is_disabled = domain.is_some_and(|domain| domain.settings.disabled);
    // A later release wrote a property that may protect the link.
    let is_unknown = !details.others.is_empty();
    let lost = [(is_disabled, LeftOut::DisabledDomain), (is_unknown, LeftOut::Unknown)];
    lost.into_iter().filter(|(is_lost, _)| *is_lost).map(|(_, left)| left).collect()
}
