//! The layout of a database with Citus: the tables that grow with the links are divided among its
//! nodes by link, so that what belongs to a link is on one node.
//!
//! The others stay on the coordinator. Those that a create writes must: a table that each node has
//! a copy of cannot be written while a node is away.

use tokio::time::{Instant, sleep};
use tokio_postgres::{Client, error::SqlState};

use super::migrations::{LOCKED_WITHIN, PAUSE};
use crate::Result;

/// The tables that are distributed, with the column that has the link's id.
const TABLES: [(&str, &str); 6] = [
    ("link", "id"),
    ("link_tag", "link_id"),
    ("link_use", "link_id"),
    ("link_seen", "link_id"),
    ("link_text", "link_id"),
    ("long_url_index", "link_id"),
];

/// Functions that statements on these tables call. A migration that replaces one has to have it
/// prepared again.
const FUNCTIONS: [&str; 3] = ["search_key(text)", "sort_key(text)", "link_search_text(text, text, jsonb)"];

/// Removes the rows of a distributed table that were moved to nodes.
const TRUNCATE: &str = "SELECT truncate_local_data_after_distributing_table($1::text::regclass)";

/// Returns whether the database has nodes for its tables.
async fn has_nodes(client: &Client) -> Result<bool> {
    let is_there = "SELECT to_regclass('pg_catalog.pg_dist_node') IS NOT NULL";
    if !client.query_one(is_there, &[]).await?.try_get::<_, bool>(0)? {
        return Ok(false);
    }
    let nodes = "SELECT EXISTS (SELECT FROM pg_dist_node WHERE noderole = 'primary' AND shouldhaveshards)";
    Ok(client.query_one(nodes, &[]).await?.try_get(0)?)
}

/// Distributes the tables that are not yet distributed, if the database has nodes. Returns whether
/// they are distributed now.
///
/// Rows move, and nothing is written to a table meanwhile. So links that are there already are
/// moved with `moves` only, or if a run that moved them was broken off: one table after the other,
/// so the next run continues it.
pub(super) async fn distribute(client: &Client, moves: bool) -> Result<bool> {
    if !has_nodes(client).await? {
        return Ok(false);
    }
    let mut left = Vec::new();
    for (table, key) in TABLES {
        if !is_distributed(client, table).await? {
            left.push((table, key));
        }
    }
    let is_first = left.len() == TABLES.len();
    let has_links = "SELECT EXISTS (SELECT FROM link)";
    if is_first && !moves && client.query_one(has_links, &[]).await?.try_get(0)? {
        tracing::warn!(
            "the database has nodes, and its links are on none: `migrate --distribute` moves them"
        );
        return Ok(false);
    }
    if !left.is_empty() {
        prepare_functions(client).await?;
    }
    for (table, key) in TABLES {
        if !left.contains(&(table, key)) {
            // A run that was broken off may have left the rows that were moved.
            let has_rows = "SELECT pg_relation_size($1::text::regclass) > 0";
            if client.query_one(has_rows, &[&table]).await?.try_get(0)? {
                client.query(TRUNCATE, &[&table]).await?;
            }
            continue;
        }
        let beside = if table == TABLES[0].0 { "none" } else { TABLES[0].0 };
        let distribute = "SELECT create_distributed_table($1::text::regclass, $2, colocate_with => $3)";
        let until = Instant::now() + LOCKED_WITHIN;
        while let Err(error) = client.query(distribute, &[&table, &key, &beside]).await {
            if error.code() != Some(&SqlState::LOCK_NOT_AVAILABLE) || Instant::now() >= until {
                return Err(error.into());
            }
            tracing::warn!(
                table,
                "another transaction uses the table that is to be distributed: trying again"
            );
            sleep(PAUSE).await;
        }
        client.query(TRUNCATE, &[&table]).await?;
        tracing::info!(table, "distributed among the nodes");
    }
    Ok(true)
}

async fn is_distributed(client: &Client, table: &str) -> Result<bool> {
    let is_done = "SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass($1))";
    Ok(client.query_one(is_done, &[&table]).await?.try_get(0)?)
}

/// Gives the nodes the functions and their collation.
async fn prepare_functions(client: &Client) -> Result<()> {
    // Citus does not see that functions depend on it. It has nodes create what is created from now
    // on, so one that is older than the nodes is created again.
    let is_known = "SELECT EXISTS (SELECT FROM pg_dist_object WHERE classid = 'pg_collation'::regclass
         AND objid = to_regcollation('shortmint_unicode'))";
    if !client.query_one(is_known, &[]).await?.try_get::<_, bool>(0)? {
        for again in [
            "BEGIN",
            "ALTER COLLATION shortmint_unicode RENAME TO shortmint_unicode_before",
            "CREATE COLLATION shortmint_unicode FROM shortmint_unicode_before",
            "DROP COLLATION shortmint_unicode_before",
            "COMMIT",
        ] {
            client.batch_execute(again).await?;
        }
    }
    let schema: String = client.query_one("SELECT quote_ident(current_schema())", &[]).await?.try_get(0)?;
    for function in FUNCTIONS {
        // Where Citus puts the body of a function into a statement, it forgets collations. It puts
        // in none that sets something.
        client.batch_execute(&format!("ALTER FUNCTION {function} SET search_path TO {schema}")).await?;
        client.query("SELECT create_distributed_function($1::text::regprocedure)", &[&function]).await?;
    }
    Ok(())
}
