//! The migrations of the file of visits.

use rusqlite::Connection;
use store::{StoreError, runner};

use crate::Result;

#[derive(rust_embed::Embed)]
#[folder = "../../schema/sqlite-visits"]
struct Files;

pub(super) fn run(connection: &mut Connection) -> Result<()> {
    let migrated = runner::<Files>()?.run(connection);
    let report = migrated.map_err(|error| StoreError::Migration(Box::new(error)))?;
    for migration in report.applied_migrations() {
        tracing::info!(%migration, "migrated the file of visits");
    }
    Ok(())
}
