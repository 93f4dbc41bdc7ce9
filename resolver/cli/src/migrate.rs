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
    let roles = serving_roles(args)?;
    let MigrateArgs { database: args, visits_store, forget_ledger, put_back, .. } = args;
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
    if let Some((url, roles)) = roles {
        wait_for(args, async || grant(url, &roles).await).await?;
    }
    if *forget_ledger {
        wait_for(args, async || store.forget_ledger().await).await?;
        return Ok(format!("{}: the next issuer's ledger is adopted\n", args.database));
    }
    if let Some(skip) = *put_back {
        let mark = store.begin_history(skip).await?;
        let left_out = match skip {
            Some(skip) => format!("the next {skip} numbers"),
            None => "at least half of the numbers left".to_owned(),
        };
        return Ok(format!(
            "{}: history {mark} begins, and {left_out} of each keyspace are left out\n",
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

/// Returns the address of the database and the roles that get rights there, if there are any.
fn serving_roles(args: &MigrateArgs) -> Result<Option<(&str, ServingRoles)>, Error> {
    let MigrateArgs { database, serve_role, redirect_role, .. } = args;
    let given = [("--serve-role", serve_role), ("--redirect-role", redirect_role)];
    let first = given.into_iter().find_map(|(flag, role)| Some((flag, role.as_ref()?)));
    match (first, &database.database) {
        (None, _) => Ok(None),
        (Some(_), Database::Postgres(url)) => {
            Ok(Some((url, ServingRoles { serve: serve_role.clone(), redirect: redirect_role.clone() })))
        }
        (Some((flag, role)), Database::Sqlite(_)) => {
            let reason = "expected a Postgres database as --database: SQLite has no roles".to_owned();
            Err(Error::Config { flag, value: role.clone(), reason })
        }
    }
}
