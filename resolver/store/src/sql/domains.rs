//! Domains, and everything else that each resolver keeps a copy of.

use links::{
    Authority, Domain, DomainEdit, DomainId, DomainSettings,
    api_key::ApiKeyId,
    audit::{Action, domain_change, domain_name},
};

use super::{Row, Sql, Value, audit::note, keyspaces::keyspaces, targets::targets};
use crate::{DomainEdited, DomainRemoved, SettingsVersion, SharedSettings, StoreError};

/// The settings that every resolver keeps a copy of, unless they are of the known version.
pub(crate) async fn shared_settings<S: Sql>(
    sql: &mut S,
    known: Option<&SettingsVersion>,
) -> Result<Option<SharedSettings>, StoreError> {
    // Read first: what changes meanwhile has a version of its own, and is read again.
    let select = format!("SELECT version, {} FROM settings_version", S::DIALECT.settings_copy());
    let version = match sql.query(&select, &[]).await?.first() {
        Some(row) => SettingsVersion { number: row.int(0)?, copy: row.text(1)?.to_owned() },
        None => SettingsVersion::default(),
    };
    if known.is_some_and(|known| version.is(known)) {
        return Ok(None);
    }
    let keyspaces = keyspaces(sql).await?;
    let domains = format!("SELECT {} FROM domain ORDER BY id", columns::<S>());
    let domains = sql.query(&domains, &[]).await?.iter().map(domain).collect::<Result<_, _>>()?;
    let targets = targets(sql).await?;
    Ok(Some(SharedSettings { version, domains, targets, keyspaces }))
}

/// A statement that tells every resolver to read its copy again.
pub(crate) const NOTE_SETTINGS: &str = "UPDATE settings_version SET version = version + 1";

/// Tells every resolver to read its copy again, once the transaction is committed.
pub(super) async fn note_change<S: Sql>(sql: &mut S) -> Result<(), StoreError> {
    sql.query(NOTE_SETTINGS, &[]).await.map(drop)
}

/// The domain of this name, which is added if there is none; none when there are `most` beside the
/// default one.
pub(crate) async fn add_domain<S: Sql>(
    sql: &mut S,
    authority: &Authority,
    most: u32,
    by: ApiKeyId,
) -> Result<Option<DomainId>, StoreError> {
    let name = [Value::Text(authority.to_string())];
    let find = "SELECT id FROM domain WHERE authority = $1";
    if let Some(row) = sql.query(find, &name).await?.first() {
        return Ok(Some(DomainId::from_stored(row.int(0)?)));
    }
    // Every change of a domain takes this row, so nobody adds another one between the count and the
    // insert.
    let lock = format!("SELECT version FROM settings_version {}", S::DIALECT.for_update());
    sql.query(&lock, &[]).await?;
    let counted = sql.query("SELECT count(*) FROM domain WHERE id <> 0", &[]).await?;
    if counted.first().map_or(Ok(0), |row| row.int(0))? >= i64::from(most) {
        return Ok(None);
    }
    let add = "INSERT INTO domain (authority) VALUES ($1) ON CONFLICT (authority) DO NOTHING RETURNING id";
    if !sql.query(add, &name).await?.is_empty() {
        note_change(sql).await?;
        note(sql, by, Action::AddDomain, authority.as_str(), None).await?;
    }
    let rows = sql.query(find, &name).await?;
    let row = rows.first().ok_or_else(|| StoreError::Corrupt("a domain is gone".to_owned()))?;
    Ok(Some(DomainId::from_stored(row.int(0)?)))
}

/// True for a row of `slug` whose link is in use: it is not deleted, or it is blocked and keeps its
/// code from others. A deleted link with a minted code has a row as well, so that the code is not
/// given again.
const IS_IN_USE: &str = "(link.details->>'deletedAt' IS NULL OR link.details->>'blocked' IS NOT NULL)";

/// Removes a domain that has no links in use and to which no key is limited. Each link of a domain
/// has a row in `slug`. To add a link or bring one back keeps the domain's row until the
/// transaction ends ([`super::named::keep_domain`]), so that none comes between the look and the
/// removal. Deleted links keep the number, which is never given again, and cannot be brought back.
pub(crate) async fn remove_domain<S: Sql>(
    sql: &mut S,
    id: DomainId,
    by: ApiKeyId,
) -> Result<DomainRemoved, StoreError> {
    let own = [Value::Int(id.get())];
    let lock = format!("SELECT authority FROM domain WHERE id = $1 AND id <> 0 {}", S::DIALECT.for_update());
    let rows = sql.query(&lock, &own).await?;
    let Some(row) = rows.first() else { return Ok(DomainRemoved::Absent) };
    let name = row.text(0)?.to_owned();
    let used = format!(
        "SELECT slug.link_id FROM slug JOIN link ON link.id = slug.link_id
         WHERE slug.domain_id = $1 AND {IS_IN_USE} LIMIT 1"
    );
    if !sql.query(&used, &own).await?.is_empty() {
        return Ok(DomainRemoved::HasLinks);
    }
    let keys = format!(
        "SELECT id FROM api_key WHERE CAST(limits->>'domain' AS bigint) = $1 AND revoked_at IS NULL
         AND (expires_at IS NULL OR expires_at > {}) LIMIT 1",
        S::DIALECT.now()
    );
    if !sql.query(&keys, &own).await?.is_empty() {
        return Ok(DomainRemoved::HasKeys);
    }
    sql.query("DELETE FROM domain WHERE id = $1", &own).await?;
    note_change(sql).await?;
    note(sql, by, Action::RemoveDomain, &name, None).await?;
    Ok(DomainRemoved::Done)
}

/// The domains, beside the default one, that have links in use; those of one key only, if one is
/// named. The default domain's links are not asked for: it is shown anyway, and most of its codes
/// have no row in `slug`.
pub(crate) async fn domains_with_links<S: Sql>(
    sql: &mut S,
    of: Option<ApiKeyId>,
) -> Result<Vec<DomainId>, StoreError> {
    let of_domain = format!(
        "FROM slug JOIN link ON link.id = slug.link_id WHERE slug.domain_id = domain.id AND {IS_IN_USE}"
    );
    let rows = match of {
        None => {
            // Not EXISTS: Postgres would join all links, where the first few of each domain tell.
            let used = format!(
                "SELECT id FROM domain WHERE id <> 0
                 AND (SELECT slug.link_id {of_domain} LIMIT 1) IS NOT NULL ORDER BY id"
            );
            sql.query(&used, &[]).await?
        }
        Some(key) => {
            // Links of one key may be anywhere or nowhere: one join is better than a search for
            // each domain.
            let used = format!(
                "SELECT id FROM domain WHERE id <> 0
                 AND EXISTS (SELECT 1 {of_domain} AND link.created_by = $1) ORDER BY id"
            );
            sql.query(&used, &[Value::Int(key.0)]).await?
        }
    };
    rows.iter().map(|row| Ok(DomainId::from_stored(row.int(0)?))).collect()
}

/// Changes a domain.
pub(crate) async fn edit_domain<S: Sql>(
    sql: &mut S,
    id: DomainId,
    edit: &DomainEdit,
    by: ApiKeyId,
) -> Result<DomainEdited, StoreError> {
    let select = format!("SELECT {} FROM domain WHERE id = $1 {}", columns::<S>(), S::DIALECT.for_update());
    let rows = sql.query(&select, &[Value::Int(id.get())]).await?;
    let Some(row) = rows.first() else { return Ok(DomainEdited::Absent) };
    let before = domain(row)?;
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
        format!("UPDATE domain SET authority = $1, settings = {} WHERE id = $3", S::DIALECT.json("$2"));
    let authority = domain.authority.as_ref().map(ToString::to_string).unwrap_or_default();
    sql.query(&update, &[Value::Text(authority), Value::Text(settings), Value::Int(id.get())]).await?;
    note_change(sql).await?;
    // Under the name that it had: one that was renamed is found by either.
    let change = domain_change(&before, &domain);
    note(sql, by, Action::EditDomain, domain_name(&before), Some(change)).await?;
    Ok(DomainEdited::Done(Box::new(domain)))
}

fn columns<S: Sql>() -> String {
    format!("id, authority, {}", S::DIALECT.json_text("settings"))
}

fn domain(row: &Row) -> Result<Domain, StoreError> {
    let corrupt = |error| StoreError::Corrupt(format!("domain: {error}"));
    let settings =
        row.opt_text(2)?.map(serde_json::from_str::<DomainSettings>).transpose().map_err(corrupt)?;
    Ok(Domain {
        id: DomainId::from_stored(row.int(0)?),
        authority: Some(row.text(1)?).filter(|name| !name.is_empty()).map(Authority::from_stored),
        settings: settings.unwrap_or_default(),
    })
}
