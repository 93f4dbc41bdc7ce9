//! The schema's migrations for SQLite.

use rusqlite::{Connection, OptionalExtension};

use crate::{Result, Schema, migrations::runner};

#[derive(rust_embed::Embed)]
#[folder = "../../schema/sqlite"]
struct Files;

pub(super) fn run(connection: &mut Connection) -> Result<()> {
    let report = runner::<Files>()?.run(connection).map_err(Box::new)?;
    for migration in report.applied_migrations() {
        tracing::info!(%migration, "migrated");
    }
    Ok(())
}

/// Returns the newest migration that has run, and the newest that this version has.
pub(super) fn schema(connection: &mut Connection) -> Result<Schema> {
    let runner = runner::<Files>()?;
    let needed =
        runner.get_migrations().iter().map(|migration| i64::from(migration.version())).max().unwrap_or(0);
    let table = "SELECT 1 FROM sqlite_master WHERE name = 'refinery_schema_history'";
    let found = match connection.query_row(table, [], |_| Ok(())).optional()? {
        Some(()) => {
            let latest = "SELECT coalesce(max(version), 0) FROM refinery_schema_history";
            connection.query_row(latest, [], |row| row.get(0))?
        }
        None => 0,
    };
    Ok(Schema { found, needed })
}
