//! The rights of database roles. Migrations belong to the role that runs them; the processes that
//! serve have roles of their own, which change rows and nothing else.

use tokio_postgres::Client;

use super::connect::Address;
use crate::{Result, sql::Sql};

/// The roles that are granted rights after a migration.
#[derive(Clone, Debug, Default)]
pub struct ServingRoles {
    /// The role of processes that serve the API, or all.
    pub serve: Option<String>,
    /// The role of processes that serve visitors only.
    pub redirect: Option<String>,
}

/// The part of a platform's work that a role of the database is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The API, or all.
    Serve,
    /// Visitors only.
    Redirect,
}

/// Tables that a process that serves visitors only reads for a redirect.
const REDIRECT_READS: &str = "block, deployment, domain, keyspace, link, link_tag, link_use, picked, \
     refinery_schema_history, reservation, settings_version, slug, tag, target_rule";
/// Tables that it writes: visits and their counts, the uses of links with a limit, and when links
/// were last visited.
const REDIRECT_WRITES: &str = "link_use, tag_change, visit, visit_cut, visit_day, \
     visit_default, visit_erased, visit_erasure, visit_link_batch, visit_marks, visit_month, \
     visit_producer, visit_secret, visit_state, visit_tag, visit_text";
/// Tables that it writes and removes nothing from: a link whose last visit is forgotten would count
/// as unvisited.
const REDIRECT_NOTES: &str = "chore, link_seen";
/// Columns of webhooks that it reads: their subscriptions, and no secret.
const REDIRECT_WEBHOOKS: &str =
    "GRANT SELECT (id, kinds, domain_id, tag_id, link_id, disabled_at) ON webhook";

/// Grants the roles what they need, and takes back what they had beyond that.
///
/// # Errors
/// Returns `StoreError::Postgres` if a role does not exist, or the tables belong to another role.
pub async fn grant(url: &str, roles: &ServingRoles) -> Result<()> {
    let (client, connection) = Address::parse(url)?.connect().await?;
    let connection = tokio::spawn(connection);
    if let Some(role) = &roles.serve {
        client.batch_execute(&serve(&quoted(&client, role).await?)).await?;
    }
    if let Some(role) = &roles.redirect {
        client.batch_execute(&redirect(&quoted(&client, role).await?)).await?;
    }
    drop(client);
    // It ends with the client; an error of the connection no longer matters.
    let _ = connection.await;
    Ok(())
}

/// Returns the tables on which this connection's role lacks a right that its part needs.
pub(super) async fn lacking(sql: &mut dyn Sql, part: Part) -> Result<Vec<String>> {
    let listed = |tables: &str| format!("relname = ANY(string_to_array('{tables}', ', '))");
    let wanted = match part {
        Part::Serve => {
            let tables = "NOT relispartition AND relname <> 'refinery_schema_history'";
            vec![(tables.to_owned(), "SELECT INSERT UPDATE DELETE")]
        }
        Part::Redirect => vec![
            (listed(REDIRECT_READS), "SELECT"),
            (listed(REDIRECT_WRITES), "SELECT INSERT UPDATE DELETE"),
            (listed(REDIRECT_NOTES), "SELECT INSERT UPDATE"),
        ],
    };
    let mut names = Vec::new();
    for (tables, rights) in wanted {
        let has = rights.split(' ').map(|right| format!("has_table_privilege(oid, '{right}')"));
        let has = has.collect::<Vec<_>>().join(" AND ");
        // Tables of others may be in the same schema.
        let lacking = format!(
            "SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'p') AND {tables} AND NOT ({has})
             AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
             AND relowner = (SELECT relowner FROM pg_class WHERE oid = to_regclass('link')) ORDER BY relname"
        );
        for row in sql.query(&lacking, &[]).await? {
            names.push(row.text(0)?.to_owned());
        }
    }
    Ok(names)
}

/// Returns a name as an identifier of SQL, and the schema's beside it.
async fn quoted(client: &Client, role: &str) -> Result<[String; 2]> {
    let row = client.query_one("SELECT quote_ident($1), quote_ident(current_schema())", &[&role]).await?;
    Ok([row.try_get(0)?, row.try_get(1)?])
}

/// Begins with no rights at all, so that those of a former release do not stay.
fn cleared([role, schema]: &[String; 2]) -> String {
    format!(
        "BEGIN; REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {role};
         REVOKE ALL ON ALL SEQUENCES IN SCHEMA {schema} FROM {role};
         REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM {role};
         GRANT USAGE ON SCHEMA {schema} TO {role};"
    )
}

fn serve(names: &[String; 2]) -> String {
    let (cleared, [role, schema]) = (cleared(names), names);
    format!(
        "{cleared} GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role};
         REVOKE INSERT, UPDATE, DELETE ON refinery_schema_history FROM {role};
         GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO {role};
         GRANT EXECUTE ON FUNCTION search_key(text), sort_key(text), link_search_text(text, text, jsonb) TO {role};
         GRANT EXECUTE ON FUNCTION visit_add_day(integer, bigint, bigint), visit_remove_day(integer) TO {role};
         COMMIT"
    )
}

fn redirect(names: &[String; 2]) -> String {
    let (cleared, [role, schema]) = (cleared(names), names);
    format!(
        "{cleared} GRANT SELECT ON {REDIRECT_READS} TO {role};
         GRANT SELECT, INSERT, UPDATE, DELETE ON {REDIRECT_WRITES} TO {role};
         GRANT SELECT, INSERT, UPDATE ON {REDIRECT_NOTES} TO {role};
         {REDIRECT_WEBHOOKS} TO {role}; GRANT INSERT ON webhook_event TO {role};
         GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {role}; COMMIT"
    )
}
