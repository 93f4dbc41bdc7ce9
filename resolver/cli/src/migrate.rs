//! `resolver migrate`: sets up or updates the schema of the database.

use store::postgres::{ServingRoles, grant};
use visit_store::{ClickhouseAddress, ClickhouseVisits, PostgresVisits, VisitStore as _, VisitStoreError};

use super::{
    database::{open, open_existing},
    wait_for,
};
use crate::{
    Error,
    args::{Database, MigrateArgs},
};

pub(super) async fn run(args: &MigrateArgs) -> Result<String, Error> {
    let MigrateArgs { database: args, visits_store, serve_role, redirect_role, forget_ledger, put_back } =
        args;
    let roles = ServingRoles { serve: serve_role.clone(), redirect: redirect_role.clone() };
    let visits = visits_store.of(&args.database)?;
    let store = match put_back {
        // A mistyped path must not create an empty database.
        Some(_) => open_existing(&args.database).await?,
        None => open(&args.database, None).await?,
    };
    // Migrations hold a lock of their session, which a pooler would leave with another client.
    wait_for(args, async || store.prove_notifications().await).await?;
    wait_for(args, async || store.migrate().await).await?;
    if let (Some(address), Database::Postgres(url)) = (visits, &args.database) {
        migrate_visits(&address, url).await?;
    }
    if let Database::Postgres(url) = &args.database {
        wait_for(args, async || grant(url, &roles).await).await?;
    } else if let Some(role) = serve_role.as_ref().or(redirect_role.as_ref()) {
        let reason = "expected a Postgres database as --database: SQLite has no roles".to_owned();
        return Err(Error::Config { flag: "--serve-role", value: role.clone(), reason });
    }
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

/// Creates the tables of visits' rows.
async fn migrate_visits(address: &ClickhouseAddress, database: &str) -> Result<(), Error> {
    let failed = |source: VisitStoreError| Error::Visits { address: address.to_string(), source };
    let counters = PostgresVisits::new(database).map_err(failed)?;
    ClickhouseVisits::new(address.clone(), counters).migrate().await.map_err(failed)
}
