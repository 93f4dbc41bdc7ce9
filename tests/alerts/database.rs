//! Alerts on the database, as the resolvers see it.

use harness::{Proxy, nodes};

use crate::{
    case::Case,
    run::Part,
    stage::{Setup, Stage},
    visits::hold,
};

const CONSEQUENCES: &[&str] =
    &["ShortmintDatabaseUnreachable", "ShortmintRedirectErrorBudgetBurn", "ShortmintCreateErrorBudgetBurn"];

/// Returns the part.
pub(crate) fn parts() -> Vec<Part> {
    let cases = vec![
        Case::page("ShortmintDatabaseUnreachable", "all connections to Postgres stalled", silent)
            .beside(CONSEQUENCES),
        Case::ticket("ShortmintDatabaseErrors", "the table of links renamed", errors).beside(CONSEQUENCES),
        Case::ticket("ShortmintDatabaseWaitLong", "a lock on the table of producers of visits", locked),
        Case::ticket("ShortmintDatabaseConnectionsExhausted", "the same lock", locked),
        Case::ticket("ShortmintSchemaOutdated", "the newest migration taken out of the history", schema),
        Case::ticket("ShortmintReplicaUnreachable", "the replica's port closed", replica_away),
        Case::ticket("ShortmintReplicaBehind", "the replica's replay paused", replica_behind),
    ];
    let of_nodes = Case::page("ShortmintDatabaseNodeAway", "a node of Citus at a closed port", node_away);
    let part = |name, cases| Part { name, faster: 1, setup: Setup::default(), cases };
    vec![part("database", cases), part("nodes", vec![of_nodes.beside(CONSEQUENCES)])]
}

async fn silent(stage: &mut Stage) -> anyhow::Result<()> {
    stage.postgres_proxy().set_both(harness::Flow::Stall);
    stage.fires().await;
    stage.postgres_proxy().set_both(harness::Flow::Pass);
    Ok(())
}

/// As after a migration that went wrong.
async fn errors(stage: &mut Stage) -> anyhow::Result<()> {
    stage.sql("ALTER TABLE link RENAME TO link_away").await?;
    stage.fires().await;
    stage.sql("ALTER TABLE link_away RENAME TO link").await?;
    Ok(())
}

async fn locked(stage: &mut Stage) -> anyhow::Result<()> {
    let held = hold(stage).await?;
    stage.fires().await;
    drop(held);
    Ok(())
}

async fn schema(stage: &mut Stage) -> anyhow::Result<()> {
    let newest = "version = (SELECT max(version) FROM refinery_schema_history)";
    stage.sql(&format!("CREATE TABLE kept AS SELECT * FROM refinery_schema_history WHERE {newest}")).await?;
    stage.sql(&format!("DELETE FROM refinery_schema_history WHERE {newest}")).await?;
    stage.fires().await;
    stage.sql("INSERT INTO refinery_schema_history SELECT * FROM kept; DROP TABLE kept").await?;
    Ok(())
}

async fn node_away(stage: &mut Stage) -> anyhow::Result<()> {
    let (sql, addr) = (stage.cluster.postgres.client().await?, stage.cluster.postgres.addr());
    nodes::pretend(&sql, [addr; 2], 8).await?;
    stage.sql("UPDATE pg_dist_node SET nodeport = 1 WHERE groupid = 1").await?;
    stage.fires().await;
    stage.sql(&format!("UPDATE pg_dist_node SET nodeport = {}", addr.port())).await
}

async fn replica_away(stage: &mut Stage) -> anyhow::Result<()> {
    let proxy: &Proxy = &stage.standby_proxy;
    proxy.refuse().await;
    proxy.reset_all();
    stage.fires().await;
    stage.standby_proxy.accept().await
}

async fn replica_behind(stage: &mut Stage) -> anyhow::Result<()> {
    let standby = stage.standby.client().await?;
    standby.batch_execute("SELECT pg_wal_replay_pause()").await?;
    stage.fires().await;
    standby.batch_execute("SELECT pg_wal_replay_resume()").await?;
    Ok(())
}
