//! `resolver migrate`: sets up or updates the schema of the database.

use clap::Args;
use daemon::Exit;
use store::postgres::{ServingRoles, distribute, grant};
use visit_store::{ClickhouseAddress, ClickhouseVisits, PostgresVisits, VisitStore as _, VisitStoreError};

use crate::{
    Error,
    args::{Database, DatabaseArgs, VisitsStoreArgs},
    database::{open, open_existing},
    wait_for, wrong_value,
};

#[derive(Clone, Debug, Args)]
pub struct MigrateArgs {
    #[command(flatten)]
    pub database: DatabaseArgs,
    #[command(flatten)]
    pub visits_store: VisitsStoreArgs,
    /// Grant this database role what processes with --role all or api need, once the schema is up
    /// to date: to change rows, and not the schema. Migrations belong to the role of --database.
    #[arg(long, env = "RESOLVER_SERVE_ROLE", value_name = "NAME")]
    pub serve_role: Option<String>,
    /// Grant this database role what processes with --role redirect need: to read links, and to
    /// write visits.
    #[arg(long, env = "RESOLVER_REDIRECT_ROLE", value_name = "NAME")]
    pub redirect_role: Option<String>,
    /// Divide the links among the nodes of Citus that the database was given after its first links.
    /// Stop creates first: nothing is written to a table while it moves. The links of a new
    /// database are divided without it.
    #[arg(long)]
    pub distribute: bool,
    /// Adopt the ledger of the issuer that the next resolver registers with. Use it if the former
    /// ledger is lost for good, or to change to another issuer on purpose, and only while no
    /// resolver of the former issuer runs.
    #[arg(long)]
    pub forget_ledger: bool,
    /// Begin a new history after the database and the issuer's ledger were both restored from
    /// backups that `resolver backup` did not make: otherwise codes that were published since would
    /// be minted again. Half of the numbers left in each keyspace and a random share of the rest
    /// are skipped, or this many: then more than were allocated to resolvers and reservations since
    /// the older backup. Stop all resolvers and issuers first.
    #[arg(long, value_name = "NUMBERS", num_args = 0..=1, conflicts_with = "forget_ledger")]
    pub put_back: Option<Option<u64>>,
}

pub(super) async fn run(args: &MigrateArgs) -> Result<String, Error> {
    let roles = serving_roles(args)?;
    let MigrateArgs { database: args, visits_store, distribute: divides, forget_ledger, put_back, .. } = args;
    let visits = visits_store.of(&args.database)?;
    let store = match put_back {
        // A mistyped path must not create an empty database.
        Some(_) => open_existing(&args.database).await?,
        None => open(&args.database).await?,
    };
    // Migrations hold a lock of their session, which a pooler would leave with another client.
    wait_for(args, async || store.prove_notifications().await).await?;
    wait_for(args, async || store.migrate().await).await?;
    if let (Some(address), Database::Postgres(url)) = (visits, &args.database) {
        migrate_visits(&address, url).await?;
    }
    if *divides {
        let is_distributed = match &args.database {
            Database::Postgres(url) => wait_for(args, async || distribute(url).await).await?,
            _ => false,
        };
        if !is_distributed {
            return Err(wrong_value("--distribute", true, "the database has no nodes of Citus"));
        }
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

async fn migrate_visits(address: &ClickhouseAddress, database: &str) -> Result<(), Error> {
    let failed = |error: VisitStoreError| {
        Error::Failed(format!("--visits-store {address}"), Exit::Unavailable, error.into())
    };
    let counters = PostgresVisits::new(database).map_err(failed)?;
    ClickhouseVisits::new(address.clone(), counters).migrate().await.map_err(failed)
}

/// Returns the address of the database and the roles that get rights there, if there are any.
fn serving_roles(args: &MigrateArgs) -> Result<Option<(&str, ServingRoles)>, Error> {
    let MigrateArgs { database, serve_role, redirect_role, .. } = args;
    let given = [("--serve-role", serve_role), ("--redirect-role", redirect_role)];
    let first = given.into_iter().find_map(|(flag, role)| Some((flag, role.as_ref()?)));
    let Some((flag, role)) = first else { return Ok(None) };
    let Database::Postgres(url) = &database.database else {
        let reason = "expected a Postgres database as --database: SQLite has no roles";
        return Err(wrong_value(flag, role, reason));
    };
    Ok(Some((url, ServingRoles { serve: serve_role.clone(), redirect: redirect_role.clone() })))
}
