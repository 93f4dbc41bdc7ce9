//! The mapping between numbers and codes, for commands that run beside a deployment's resolvers.

use std::{path::Path, sync::Arc};

use codes::Mint;
use store::Settings;

use crate::{Error, args::DatabaseArgs, code_key_file, wrong_value};

/// Opens the mapping that the resolvers of this database use.
pub(super) async fn open_mint(
    settings: &dyn Settings,
    database: &DatabaseArgs,
    file: Option<&Path>,
) -> Result<Arc<Mint>, Error> {
    let path = file.map_or_else(|| database.data_folder().join("code.key"), Path::to_owned);
    let wrong = |reason: String| wrong_value("--code-key-file", path.display(), reason);
    let Some(adopted) = settings.fingerprint().await? else {
        let reason =
            "expected a database that a resolver has been started on: it decides which codes there are";
        return Err(wrong_value("--database", &database.database, reason));
    };
    let key = code_key_file::read(&path).map_err(|error| wrong(error.to_string()))?;
    if key.fingerprint() != adopted {
        return Err(wrong(format!("this database belongs to another code key: its mark is {adopted}")));
    }
    let keyspaces = settings.adopt_keyspaces(&[]).await?;
    Ok(Arc::new(Mint::new(&key, keyspaces)))
}
