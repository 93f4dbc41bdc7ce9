//! Domains, and everything else that each resolver keeps a copy of.

use super::{Row, Sql, Value, audit::note, targets::targets};
use crate::{
    api_key::ApiKeyId,
    audit::Action,
    links::{Authority, Domain, DomainEdit, DomainId, DomainSettings},
    store::{DomainEdited, SharedSettings, StoreError},
};

/// Which version of what every resolver keeps a copy of there is.
pub(in crate::store) const SETTINGS_VERSION: &str = "SELECT version FROM settings_version";

/// What every resolver keeps a copy of, if it is not of this version.
pub(in crate::store) async fn shared_settings<S: Sql>(
    sql: &mut S,
    known: i64,
) -> Result<Option<SharedSettings>, StoreError> {
    // Read first: what changes meanwhile has a version of its own, and is read again.
    let rows = sql.query(SETTINGS_VERSION, &[]).await?;
    let version = rows.first().map_or(Ok(0), |row| row.int(0))?;
    if version == known {
        return Ok(None);
    }
    let domains = format!("SELECT {} FROM domain ORDER BY id", columns::<S>());
    let domains = sql.query(&domains, &[]).await?.iter().map(domain).collect::<Result<_, _>>()?;
    Ok(Some(SharedSettings { version, domains, targets: targets(sql).await? }))
}

/// Tells every resolver to read its copy again, once the transaction is committed.
pub(super) async fn note_change<S: Sql>(sql: &mut S) -> Result<(), StoreError> {
    sql.query("UPDATE settings_version SET version = version + 1", &[]).await.map(drop)
}

/// The domain of this name, which is added if there is none.
pub(in crate::store) async fn add_domain<S: Sql>(
    sql: &mut S,
    authority: &Authority,
) -> Result<DomainId, StoreError> {
    let name = [Value::Text(authority.to_string())];
    let find = "SELECT id FROM domain WHERE authority = $1";
    if let Some(row) = sql.query(find, &name).await?.first() {
        return Ok(DomainId::from_stored(row.int(0)?));
    }
    let add = "INSERT INTO domain (authority) VALUES ($1) ON CONFLICT (authority) DO NOTHING";
    sql.query(add, &name).await?;
    note_change(sql).await?;
    let rows = sql.query(find, &name).await?;
    let row = rows.first().ok_or_else(|| StoreError::Corrupt("a domain is gone".to_owned()))?;
    Ok(DomainId::from_stored(row.int(0)?))
}

/// Changes a domain.
pub(in crate::store) async fn edit_domain<S: Sql>(
    sql: &mut S,
    id: DomainId,
    edit: &DomainEdit,
    by: ApiKeyId,
) -> Result<DomainEdited, StoreError> {
    let select = format!("SELECT {} FROM domain WHERE id = $1 {}", columns::<S>(), S::DIALECT.for_update());
    let rows = sql.query(&select, &[Value::Int(id.get())]).await?;
    let Some(row) = rows.first() else { return Ok(DomainEdited::Absent) };
    let mut domain = domain(row)?;
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
    let name = domain.authority.as_ref().map_or("DEFAULT", Authority::as_str);
    let state = serde_json::to_value(&domain.settings).ok();
    note(sql, by, Action::EditDomain, name, state).await?;
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
