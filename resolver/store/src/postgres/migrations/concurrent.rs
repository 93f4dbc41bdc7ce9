//! Indexes of the table of links, which are built while links are created.
//!
//! CREATE INDEX in a transaction keeps writers out until the last row is read: 1.9 s with four
//! million links (2026-11-22). Concurrently it reads the table twice, and keeps nobody out. The
//! files stay as they are, for databases that were migrated by them.

use tokio_postgres::Client;

use crate::Result;

/// A migration that creates indexes of large tables, and does nothing else.
pub(super) struct IndexMigration {
    pub(super) version: i32,
    indexes: &'static [Index],
}

/// An index: its name, and what follows it in its definition.
struct Index {
    name: &'static str,
    on: &'static str,
}

/// The migrations, in order.
pub(super) const MIGRATIONS: &[IndexMigration] = &[
    IndexMigration {
        version: 3,
        indexes: &[Index { name: "link_created_at", on: "ON link (created_at, id)" }],
    },
    IndexMigration {
        version: 6,
        indexes: &[
            Index {
                name: "link_deleted",
                on: "ON link ((details->>'slug')) WHERE details->>'deletedAt' IS NOT NULL",
            },
            Index { name: "link_crawlable", on: "ON link (created_at) WHERE crawlable" },
        ],
    },
];

impl IndexMigration {
    /// Builds the indexes that do not stand yet.
    pub(super) async fn build(&self, client: &Client) -> Result<()> {
        // Building concurrently waits for transactions, and keeps nobody waiting meanwhile.
        client.batch_execute("SET lock_timeout = 0").await?;
        for Index { name, on } in self.indexes {
            let stands = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)";
            match client.query_opt(stands, &[name]).await?.map(|row| row.try_get(0)).transpose()? {
                Some(true) => continue,
                // What is left of a build that was broken off.
                Some(false) => client.batch_execute(&format!("DROP INDEX CONCURRENTLY {name}")).await?,
                None => {}
            }
            client.batch_execute(&format!("CREATE INDEX CONCURRENTLY {name} {on}")).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A migration that is noted as applied must have had the effect of its file.
    #[test]
    fn the_indexes_are_those_of_the_files_which_contain_nothing_else() {
        let runner = super::super::files::migrations::runner();
        for migration in MIGRATIONS {
            let file = runner.get_migrations().iter().find(|file| file.version() == migration.version);
            let sql = file.unwrap().sql().unwrap();
            let lines = sql.lines().filter(|line| !line.starts_with("--"));
            let statements: Vec<String> =
                lines.collect::<String>().split_terminator(';').map(str::to_owned).collect();
            let built: Vec<String> = migration
                .indexes
                .iter()
                .map(|Index { name, on }| format!("CREATE INDEX {name} {on}"))
                .collect();
            assert_eq!(statements, built, "V{}", migration.version);
        }
    }
}
