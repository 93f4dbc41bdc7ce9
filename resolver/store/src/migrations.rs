//! The files of a schema, as their runner takes them.
//!
//! Rejected: `refinery::embed_migrations!`. Its macro runs refinery itself, so that a build
//! compiles refinery and its dependencies twice.

use refinery_core::{Migration, Runner};
use rust_embed::Embed;

use crate::Result;

/// Returns the runner of a folder's files, each named `V<version>__<what it does>.sql`.
///
/// # Errors
/// Returns [`StoreError::Migration`](crate::StoreError::Migration) if a file has another name.
///
/// # Panics
/// Panics if a file is not UTF-8.
pub fn runner<Files: Embed>() -> Result<Runner> {
    let migration = |name: &str| {
        let file = Files::get(name).expect("a file that is listed is there");
        let sql = str::from_utf8(&file.data).expect("SQL is UTF-8");
        Migration::unapplied(name.trim_end_matches(".sql"), sql).map_err(Box::new)
    };
    let mut migrations = Files::iter().map(|name| migration(&name)).collect::<Result<Vec<_>, _>>()?;
    migrations.sort();
    // A release that was rolled back serves on the newer schema.
    Ok(Runner::new(&migrations).set_abort_missing(false))
}
