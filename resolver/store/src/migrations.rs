//! The files of a schema, as their runner takes them.
//!
//! Rejected: `refinery::embed_migrations!`, whose macro needs refinery a second time, for the host: eight seconds of
//! a first build.

use refinery_core::{Migration, Runner};
use rust_embed::Embed;

use crate::Result;

/// Returns the runner of a folder's files, each named `V<version>__<what it does>.sql`.
///
/// # Errors
/// Returns [`StoreError::Migration`](crate::StoreError::Migration) if a file has another name.
pub fn runner<Files: Embed>() -> Result<Runner> {
    let file = |name: String| {
        let file = Files::get(&name).map(|file| file.data).unwrap_or_default();
        Migration::unapplied(name.strip_suffix(".sql").unwrap_or(&name), &String::from_utf8_lossy(&file))
            .map_err(Box::new)
    };
    let mut files = Files::iter().map(|name| file(name.into_owned())).collect::<Result<Vec<_>, _>>()?;
    files.sort();
    Ok(Runner::new(&files))
}
