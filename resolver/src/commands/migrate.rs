//! `resolver migrate`

use super::{open, wait_for};
use crate::{Error, config::DatabaseArgs};

pub(super) async fn run(args: &DatabaseArgs) -> Result<String, Error> {
    let store = open(&args.database, None).await?;
    wait_for(args, async || store.migrate().await).await?;
    Ok(format!("{}: the schema is up to date\n", args.database))
}
