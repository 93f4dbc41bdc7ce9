//! The migrations of the file of visits.

use rusqlite::Connection;
use store::StoreError;

use crate::Result;

mod files {
    refinery::embed_migrations!("../../schema/sqlite-visits");
}

pub(super) fn run(connection: &mut Connection) -> Result<()> {
    let migrated = files::migrations::runner().run(connection);
    let report = migrated.map_err(|error| StoreError::Migration(Box::new(error)))?;
    for migration in report.applied_migrations() {
        tracing::info!(%migration, "migrated the file of visits");
    }
    Ok(())
}
