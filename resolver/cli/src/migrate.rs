//! `resolver migrate`: sets up or updates the schema of the database.

use super::{
    database::{open, open_existing},
    wait_for,
};
use crate::{Error, args::MigrateArgs};

pub(super) async fn run(args: &MigrateArgs) -> Result<String, Error> {
    let MigrateArgs { database: args, forget_ledger, put_back } = args;
    let store = match put_back {
        // A mistyped path must not create an empty database.
        Some(_) => open_existing(&args.database).await?,
        None => open(&args.database, None).await?,
    };
    wait_for(args, async || store.migrate().await).await?;
    if *forget_ledger {
        wait_for(args, async || store.forget_ledger().await).await?;
        return Ok(format!("{}: the next issuer's ledger is adopted\n", args.database));
    }
    if let Some(skip) = *put_back {
        let mark = store.begin_history(skip).await?;
        return Ok(format!(
            "{}: history {mark} begins, and the next {skip} numbers of each keyspace are left out\n",
            args.database
        ));
    }
    Ok(format!("{}: the schema is up to date\n", args.database))
}
