//! The database: whether it answers, its settings and rights as this process would have them, and
//! its schema.

use std::{path::Path, sync::Arc};

use cli::{
    args::{Database, DatabaseArgs},
    open_with,
};
use daemon::reasons;
use jiff::{SignedDuration, Timestamp};
use store::{
    Store, StoreError,
    postgres::{ConnectOptions, Part, ServerState, inspect},
    sqlite::SqliteStore,
};
use tokio::time::timeout;

use super::{Finding, WITHIN, bounded, unanswered};
use crate::config::Settings;

/// Before this release, Postgres goes on with statements of processes that were killed.
const RELEASE_MIN: i64 = 140_000;
/// The difference between two clocks that is worth a word: what NTP keeps is far less.
const CLOCKS_APART: SignedDuration = SignedDuration::from_secs(2);

/// Asks the database, and opens it to be looked at if its schema is current.
pub(super) async fn reach(settings: &Settings) -> (Vec<Finding>, Option<Arc<dyn Store>>) {
    let database = &settings.flags.database;
    let (mut findings, opened) = match &database.database {
        Database::Sqlite(path) => sqlite(path),
        Database::Postgres(url) => postgres(settings, url).await,
    };
    if let Some(Database::Postgres(url)) = &settings.flags.read_database {
        findings.push(bounded("replica", replica(url)).await);
    }
    let Some(store) = opened else { return (findings, None) };
    let (listens, (schema, is_current)) = tokio::join!(notifications(&*store), schema(database, &*store));
    findings.extend(listens.into_iter().chain([schema]));
    (findings, is_current.then_some(store))
}

fn sqlite(path: &Path) -> (Vec<Finding>, Option<Arc<dyn Store>>) {
    if !path.exists() {
        let found = format!("there is no file {} yet: the first start creates it", path.display());
        return (vec![Finding::ok("database", found)], None);
    }
    match SqliteStore::inspect(path) {
        Ok(store) => {
            let store: Arc<dyn Store> = Arc::new(store);
            let found = format!("the file {} can be read", path.display());
            (vec![Finding::ok("database", found)], Some(store))
        }
        Err(error) => (vec![away(&format!("sqlite:{}", path.display()), &error)], None),
    }
}

async fn postgres(settings: &Settings, url: &str) -> (Vec<Finding>, Option<Arc<dyn Store>>) {
    let database = &settings.flags.database.database;
    let part = if settings.flags.role.serves_api() { Part::Serve } else { Part::Redirect };
    let sent = Timestamp::now();
    let state = timeout(WITHIN, inspect(url, part)).await.unwrap_or(Err(StoreError::TimedOut));
    let answered = Timestamp::now();
    let state = match state {
        Ok(state) => state,
        Err(error) => return (vec![away(&database.to_string(), &error)], None),
    };
    let mut findings = vec![
        server(database, &state),
        durability(&state),
        connections(&state, settings.database_connections),
        clock(&state, sent, answered),
        rights(&state),
    ];
    match open_with(database, None, None, &ConnectOptions::default()).await {
        Ok(store) => (findings, Some(store)),
        Err(error) => {
            findings.push(Finding::wrong("database", reasons(&error)));
            (findings, None)
        }
    }
}

fn away(database: &str, error: &StoreError) -> Finding {
    Finding::wrong("database", format!("{database} does not answer: {}", reasons(error)))
        .advise(
            "Creates, edits and lists fail, and redirects of links that no cache has.",
            "Start it, or correct --database, its password or the network between.",
        )
        .see("database.md#shortmintdatabaseunreachable")
}

fn server(database: &Database, state: &ServerState) -> Finding {
    let (release, minor) = (state.version / 10_000, state.version % 10_000);
    let found = format!("{database} answers as Postgres {release}.{minor} to the role {}", state.role);
    if state.is_standby || state.is_read_only {
        return Finding::wrong("database", format!("{found}, and takes no writes"))
            .advise("It is a standby, or was made read-only.", "Name the primary in --database.")
            .see("database.md#shortmintdatabaseunreachable");
    }
    if state.version < RELEASE_MIN {
        return Finding::warning("database", found).advise(
            "Before 14, statements of a process that was killed go on and keep their connections.",
            "Plan an update of Postgres.",
        );
    }
    Finding::ok("database", found)
}

fn durability(state: &ServerState) -> Finding {
    let ServerState { synchronous_commit, synchronous_standbys, standbys, .. } = state;
    let fsync = if state.has_fsync { "on" } else { "off" };
    let waits = match synchronous_standbys.as_str() {
        "" => "none is waited for",
        names => names,
    };
    let found = format!(
        "synchronous_commit {synchronous_commit}, fsync {fsync}, {standbys} standbys connected ({waits})"
    );
    if !state.has_fsync || synchronous_commit == "off" {
        return Finding::wrong("durability", found)
            .advise("An acknowledged link could be lost.", "Set fsync and synchronous_commit to on.")
            .see("objectives.md#shortmintcreatelatencybudgetburn");
    }
    if !synchronous_standbys.is_empty() && *standbys == 0 {
        return Finding::warning("durability", found)
            .advise("Each commit waits for a standby.", "Start the standby, or do not wait for it.");
    }
    Finding::ok("durability", found)
}

fn connections(state: &ServerState, limit: u32) -> Finding {
    let ServerState { connections_max, connections, own_connections, .. } = *state;
    let (limit, free) = (i64::from(limit), connections_max - connections);
    let found = format!(
        "{free} of {connections_max} are free, resolvers have {own_connections}, and one opens up to {limit}"
    );
    let why = "A process that gets no connection answers 503.";
    let todo = "Raise max_connections, or lower --limit database-connections.";
    let finding = if connections_max < limit {
        Finding::wrong("connections", found)
    } else if free < limit - own_connections {
        // A process may have some of its own already.
        Finding::warning("connections", found)
    } else {
        return Finding::ok("connections", found);
    };
    finding.advise(why, todo).see("capacity.md#connections")
}

fn clock(state: &ServerState, sent: Timestamp, answered: Timestamp) -> Finding {
    let apart = sent.duration_since(state.now).max(state.now.duration_since(answered));
    if apart < CLOCKS_APART {
        return Finding::ok("clock", "the database's and this machine's agree");
    }
    let found = format!("the database's and this machine's are {} s apart", apart.as_secs());
    Finding::warning("clock", found).advise(
        "Links and visits have the database's time, logs and certificates that of each machine.",
        "Let NTP set both clocks.",
    )
}

fn rights(state: &ServerState) -> Finding {
    if state.lacking.is_empty() {
        return Finding::ok("rights", format!("the role {} has those that it needs", state.role));
    }
    let found = format!("the role {} lacks rights on {}", state.role, state.lacking.join(", "));
    Finding::wrong("rights", found)
        .advise(
            "Calls that need these tables fail with SQLSTATE 42501.",
            "Run `resolver migrate --serve-role NAME --redirect-role NAME` as the owner of the tables.",
        )
        .see("database.md#shortmintdatabaseerrors")
}

async fn replica(url: &str) -> Finding {
    match inspect(url, Part::Redirect).await {
        Ok(ServerState { is_standby: true, .. }) => Finding::ok("replica", "a standby answers"),
        Ok(_) => Finding::warning("replica", "the server of --read-database is no standby")
            .advise("It takes no reads off the primary.", "Name a standby of --database.")
            .see("database.md#shortmintreplicabehind"),
        Err(error) => Finding::wrong("replica", format!("it does not answer: {}", reasons(&error)))
            .advise("The primary is asked for all links.", "Start it, or correct --read-database.")
            .see("database.md#shortmintreplicaunreachable"),
    }
}

/// Looks whether notifications arrive; `None` for a database without other processes.
async fn notifications(store: &dyn Store) -> Option<Finding> {
    if !store.is_shared() {
        return None;
    }
    let prove = async {
        match store.prove_notifications().await {
            Ok(()) => Finding::ok("notifications", "they arrive"),
            Err(error @ StoreError::Deaf) => Finding::wrong("notifications", reasons(&error)).advise(
                "Prepared statements, notifications and locks belong to a session: no process starts.",
                "Connect to the server itself, or to a pooler in session mode.",
            ),
            Err(error) => unanswered("notifications", &error),
        }
    };
    Some(bounded("notifications", prove).await)
}

/// Returns also whether the schema is current.
async fn schema(args: &DatabaseArgs, store: &dyn Store) -> (Finding, bool) {
    let schema = match timeout(WITHIN, store.schema()).await.unwrap_or(Err(StoreError::TimedOut)) {
        Ok(schema) => schema,
        Err(error) => return (unanswered("schema", &error), false),
    };
    let found = format!("at version {}, this release needs {}", schema.found, schema.needed);
    if schema.found >= schema.needed {
        return (Finding::ok("schema", found), true);
    }
    if matches!(args.database, Database::Sqlite(_)) {
        return (Finding::ok("schema", format!("{found}: the next start migrates it")), false);
    }
    let behind = Finding::wrong("schema", found)
        .advise("A process of this release does not start.", "Run `resolver migrate` of this release.")
        .see("database.md#shortmintschemaoutdated");
    (behind, false)
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    fn state() -> ServerState {
        ServerState {
            version: 150_004,
            is_standby: false,
            is_read_only: false,
            synchronous_commit: "on".to_owned(),
            synchronous_standbys: String::new(),
            has_fsync: true,
            standbys: 0,
            connections_max: 97,
            connections: 10,
            own_connections: 0,
            now: Timestamp::UNIX_EPOCH,
            role: "serve".to_owned(),
            lacking: Vec::new(),
        }
    }

    #[test]
    fn a_server_that_may_lose_links_is_wrong() {
        let of = |commit: &str, has_fsync, standbys: &str| {
            let (synchronous_commit, synchronous_standbys) = (commit.to_owned(), standbys.to_owned());
            let state = ServerState { synchronous_commit, synchronous_standbys, has_fsync, ..state() };
            durability(&state).verdict
        };
        assert_eq!(of("on", true, ""), Verdict::Ok);
        assert_eq!(of("local", true, ""), Verdict::Ok);
        assert_eq!(of("off", true, ""), Verdict::Wrong);
        assert_eq!(of("on", false, ""), Verdict::Wrong);
        assert_eq!(of("on", true, "one"), Verdict::Warning);
    }

    #[test]
    fn connections_that_a_process_has_already_need_not_be_free() {
        for (used, own, limit, verdict) in [
            (10, 0, 34, Verdict::Ok),
            (70, 0, 34, Verdict::Warning),
            (70, 30, 34, Verdict::Ok),
            (10, 0, 98, Verdict::Wrong),
        ] {
            let state = ServerState { connections: used, own_connections: own, ..state() };
            assert_eq!(connections(&state, limit).verdict, verdict, "{used} {own} {limit}");
        }
    }

    #[test]
    fn clocks_agree_within_the_time_that_the_answer_took() {
        let at = |second| Timestamp::from_second(second).unwrap();
        for (now, verdict) in [
            (9, Verdict::Ok),
            (10, Verdict::Ok),
            (15, Verdict::Ok),
            (8, Verdict::Warning),
            (17, Verdict::Warning),
        ] {
            let state = ServerState { now: at(now), ..state() };
            assert_eq!(clock(&state, at(10), at(15)).verdict, verdict, "{now}");
        }
    }
}
