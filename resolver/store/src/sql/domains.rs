//! Domains, and the shared settings that each resolver keeps a copy of.

use links::{
    Authority, Domain, DomainEdit, DomainId, DomainSettings, StoredObject as _,
    api_key::ApiKeyId,
    audit::{Action, domain_change, domain_name},
};

use super::{
    Dialect, Row, Sql, Value,
    audit::note,
    details::{DOMAIN_OR_DEFAULT, IS_IN_USE, KEY_DOMAIN},
    keys::is_valid,
    keyspaces::keyspaces,
    note_change,
    targets::targets,
    webhooks::subscriptions,
};
use crate::{DomainEdited, DomainRemoved, Result, SettingsVersion, SharedSettings, StoreError};

/// Returns the shared settings, or `None` if their version is `known`.
pub(crate) async fn shared_settings(
    sql: &mut dyn Sql,
    known: Option<&SettingsVersion>,
) -> Result<Option<SharedSettings>> {
    // The version is read first: a concurrent change gets a version of its own, and is read again.
    let select = format!("SELECT version, {} FROM settings_version", sql.dialect().copy_of_database());
    let version = match sql.first(&select, &[]).await? {
        Some(row) => SettingsVersion { number: row.int(0)?, copy: row.text(1)?.to_owned() },
        None => SettingsVersion::default(),
    };
    if known == Some(&version) {
        return Ok(None);
    }
    let keyspaces = keyspaces(sql).await?;
    let domains = format!("SELECT {} FROM domain ORDER BY id", columns(sql.dialect()));
    let domains = sql.query(&domains, &[]).await?.iter().map(domain).collect::<Result<_, _>>()?;
    let targets = targets(sql).await?;
    let webhooks = subscriptions(sql).await?;
    Ok(Some(SharedSettings { version, domains, targets, keyspaces, webhooks }))
}

pub(crate) async fn add_domain(
    sql: &mut dyn Sql,
    authority: &Authority,
    most: u32,
    by: ApiKeyId,
) -> Result<Option<DomainId>> {
    let name = [Value::Text(authority.to_string())];
    let find = "SELECT id FROM domain WHERE authority = $1";
    if let Some(id) = sql.number(find, &name).await? {
        return Ok(Some(DomainId::from_stored(id)));
    }
    // Every change of a domain locks this row, so no other domain is added between the count and
    // the insert.
    let lock = format!("SELECT version FROM settings_version {}", sql.dialect().for_update());
    sql.query(&lock, &[]).await?;
    let count = sql.number("SELECT count(*) FROM domain WHERE id <> 0", &[]).await?;
    if count >= Some(i64::from(most)) {
        return Ok(None);
    }
    let add = "INSERT INTO domain (authority) VALUES ($1) ON CONFLICT (authority) DO NOTHING RETURNING id";
    if !sql.query(add, &name).await?.is_empty() {
        note_change(sql).await?;
        note(sql, by, Action::AddDomain, authority.as_str(), None).await?;
    }
    let id = sql.number(find, &name).await?;
    let id = id.ok_or_else(|| StoreError::Corrupt("a domain is gone".to_owned()))?;
    Ok(Some(DomainId::from_stored(id)))
}

/// Removes a domain that has no links in use and to which no API key is limited.
///
/// Each link of a domain has a row in `slug`. Adding or restoring a link locks the domain's row
/// until the transaction ends ([`super::slugs::keep_domain`]), so none can appear between the check
/// and the removal. Deleted links keep the domain's number, which is never reused, and cannot be
/// restored.
pub(crate) async fn remove_domain(sql: &mut dyn Sql, id: DomainId, by: ApiKeyId) -> Result<DomainRemoved> {
    let own = [Value::Int(id.get())];
    let lock =
        format!("SELECT authority FROM domain WHERE id = $1 AND id <> 0 {}", sql.dialect().for_update());
    let Some(row) = sql.first(&lock, &own).await? else { return Ok(DomainRemoved::Absent) };
    let name = row.text(0)?.to_owned();
    if has_links(sql, id).await? {
        return Ok(DomainRemoved::HasLinks);
    }
    let keys =
        format!("SELECT id FROM api_key WHERE {KEY_DOMAIN} = $1 AND {} LIMIT 1", is_valid(sql.dialect()));
    if !sql.query(&keys, &own).await?.is_empty() {
        return Ok(DomainRemoved::HasKeys);
    }
    sql.query("DELETE FROM domain WHERE id = $1", &own).await?;
    note_change(sql).await?;
    note(sql, by, Action::RemoveDomain, &name, None).await?;
    Ok(DomainRemoved::Done)
}

/// Returns whether a domain has links in use. Its first few tell nearly always; nodes of Citus have
/// to be sent all that they are compared with.
async fn has_links(sql: &mut dyn Sql, id: DomainId) -> Result<bool> {
    for limit in ["LIMIT 20", ""] {
        let used = format!(
            "SELECT slug.link_id FROM (SELECT link_id, domain_id FROM slug WHERE domain_id = $1 {limit}) AS slug
             JOIN link ON link.id = slug.link_id WHERE {DOMAIN_OR_DEFAULT} = slug.domain_id AND {IS_IN_USE} LIMIT 1"
        );
        if !sql.query(&used, &[Value::Int(id.get())]).await?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The default domain is not checked: it is always shown, and most of its codes have no row in
/// `slug`.
pub(crate) async fn domains_with_links(sql: &mut dyn Sql, of: Option<ApiKeyId>) -> Result<Vec<DomainId>> {
    if sql.is_distributed() {
        return domains_one_by_one(sql, of).await;
    }
    let of_domain = format!(
        "FROM slug JOIN link ON link.id = slug.link_id
         WHERE slug.domain_id = domain.id AND {DOMAIN_OR_DEFAULT} = slug.domain_id AND {IS_IN_USE}"
    );
    let is_used = match of {
        // Not EXISTS: Postgres would join all links, although the first few of each domain suffice.
        None => format!("(SELECT slug.link_id {of_domain} LIMIT 1) IS NOT NULL"),
        // The links of one API key may be anywhere or nowhere: one join is cheaper than a search
        // for each domain.
        Some(_) => format!("EXISTS (SELECT 1 {of_domain} AND link.created_by = $1)"),
    };
    let select = format!("SELECT id FROM domain WHERE id <> 0 AND {is_used} ORDER BY id");
    let values: Vec<Value> = of.iter().map(|key| Value::Int(key.0)).collect();
    domain_ids(&sql.query(&select, &values).await?)
}

/// Returns the same by statements that do not correlate links with domains.
async fn domains_one_by_one(sql: &mut dyn Sql, of: Option<ApiKeyId>) -> Result<Vec<DomainId>> {
    if let Some(key) = of {
        let select = format!(
            "SELECT DISTINCT slug.domain_id FROM slug JOIN link ON link.id = slug.link_id
             WHERE slug.domain_id <> 0 AND {DOMAIN_OR_DEFAULT} = slug.domain_id AND {IS_IN_USE}
               AND link.created_by = $1 ORDER BY slug.domain_id"
        );
        return domain_ids(&sql.query(&select, &[Value::Int(key.0)]).await?);
    }
    let all = domain_ids(&sql.query("SELECT id FROM domain WHERE id <> 0 ORDER BY id", &[]).await?)?;
    let mut used = Vec::new();
    for id in all {
        if has_links(sql, id).await? {
            used.push(id);
        }
    }
    Ok(used)
}

fn domain_ids(rows: &[super::Row]) -> Result<Vec<DomainId>> {
    rows.iter().map(|row| Ok(DomainId::from_stored(row.int(0)?))).collect()
}

pub(super) async fn find_domain(sql: &mut dyn Sql, id: DomainId) -> Result<Option<Domain>> {
    let select = format!("SELECT {} FROM domain WHERE id = $1", columns(sql.dialect()));
    sql.first(&select, &[Value::Int(id.get())]).await?.as_ref().map(domain).transpose()
}

pub(crate) async fn edit_domain(
    sql: &mut dyn Sql,
    id: DomainId,
    edit: &DomainEdit,
    by: ApiKeyId,
) -> Result<DomainEdited> {
    let select =
        format!("SELECT {} FROM domain WHERE id = $1 {}", columns(sql.dialect()), sql.dialect().for_update());
    let Some(row) = sql.first(&select, &[Value::Int(id.get())]).await? else {
        return Ok(DomainEdited::Absent);
    };
    let before = domain(&row)?;
    let mut domain = before.clone();
    domain.settings = edit.apply(domain.settings);
    if let Some(name) = &edit.authority {
        let others = "SELECT id FROM domain WHERE authority = $1 AND id <> $2";
        let values = [Value::Text(name.to_string()), Value::Int(id.get())];
        if !sql.query(others, &values).await?.is_empty() {
            return Ok(DomainEdited::Taken);
        }
        domain.authority = Some(name.clone());
    }
    let settings = serde_json::to_string(&domain.settings)
        .map_err(|error| StoreError::Corrupt(format!("domain: {error}")))?;
    let update =
        format!("UPDATE domain SET authority = $1, settings = {} WHERE id = $3", sql.dialect().json("$2"));
    let authority = domain.authority.as_ref().map(ToString::to_string).unwrap_or_default();
    sql.query(&update, &[Value::Text(authority), Value::Text(settings), Value::Int(id.get())]).await?;
    note_change(sql).await?;
    // The entry has the domain's former name, and its details the new one: a renamed domain is
    // found by either.
    let change = domain_change(&before, &domain);
    note(sql, by, Action::EditDomain, domain_name(&before), Some(change)).await?;
    Ok(DomainEdited::Done(Box::new(domain)))
}

/// Columns of a domain, for [`domain`].
fn columns(dialect: Dialect) -> String {
    format!("id, authority, {}", dialect.json_text("settings"))
}

fn domain(row: &Row) -> Result<Domain> {
    let settings = row.opt_text(2)?.map(DomainSettings::from_stored);
    Ok(Domain {
        id: DomainId::from_stored(row.int(0)?),
        authority: Some(row.text(1)?).filter(|name| !name.is_empty()).map(Authority::from_stored),
        settings: settings.unwrap_or_default(),
    })
}
