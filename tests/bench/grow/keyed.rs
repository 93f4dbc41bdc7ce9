//! A table of links with one kind of key, and the statements that a resolver would send to it.
//!
//! The rows have the same content for both kinds. The key of the n-th link is its id, or the code
//! minted from its number, which is as good as random.

use std::{cell::Cell, time::Duration};

use anyhow::Context;
use codes::{CodeKey, Keyspace, KeyspaceIndex, LinkId, Mint};
use futures_util::future::try_join_all;
use harness::Postgres;
use tokio::time::Instant;
use tokio_postgres::{Client, Statement, types::ToSql};

/// The number of concurrent statements, as many as a resolver sends.
const LINES: usize = 4;
/// The rows of a measured insert: the batch that a resolver writes when a few hundred clients
/// create.
const INSERTED: u64 = 64;
/// The rows of an insert that fills the table.
const FILLED: u64 = 5_000;
/// The keys of a read: the batch that a resolver reads when a few hundred clients miss.
const READ: usize = 32;
/// The number of prepared reads, sent in turn.
const READS: usize = 4_096;

/// The kind of a table's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Number,
    Text,
}

/// A table with one kind of key, and the connections to it.
pub(super) struct Keyed {
    key: Key,
    lines: Vec<Line>,
    mint: Mint,
    index: KeyspaceIndex,
    rows: Cell<u64>,
}

struct Line {
    client: Client,
    insert: Statement,
    read: Statement,
}

impl Key {
    fn table(self) -> &'static str {
        match self {
            Self::Number => "keyed_by_number",
            Self::Text => "keyed_by_text",
        }
    }

    fn column(self) -> &'static str {
        match self {
            Self::Number => "bigint",
            Self::Text => "text",
        }
    }
}

impl Keyed {
    /// Creates the table, without rows.
    pub(super) async fn new(postgres: &Postgres, key: Key) -> anyhow::Result<Self> {
        let (table, column) = (key.table(), key.column());
        let make = format!(
            "CREATE TABLE {table} (LIKE link INCLUDING DEFAULTS);
             ALTER TABLE {table} DROP COLUMN id, ADD COLUMN key {column} PRIMARY KEY"
        );
        postgres.client().await?.batch_execute(&make).await.context("make a table")?;
        let insert = format!(
            "INSERT INTO {table} (key, long_url, title, crawlable, forward_query, created_by)
             SELECT * FROM unnest($1::{column}[], $2::text[], $3::text[], $4::boolean[], $5::boolean[], $6::bigint[])
             ON CONFLICT (key) DO NOTHING RETURNING key, created_at"
        );
        let read = format!(
            "SELECT key, long_url, title, crawlable, forward_query, created_at, created_by
             FROM {table} WHERE key = ANY($1::{column}[])"
        );
        let mut lines = Vec::new();
        for _ in 0..LINES {
            let client = postgres.client().await?;
            let (insert, read) = (client.prepare(&insert).await?, client.prepare(&read).await?);
            lines.push(Line { client, insert, read });
        }
        let code_key = CodeKey::draw().context("draw a code key")?;
        let index = KeyspaceIndex::new(1).context("the first keyspace")?;
        let mint = Mint::new(&code_key, [(index, Keyspace::parse("bench=6:0-9A-Za-z")?)]);
        Ok(Self { key, lines, mint, index, rows: Cell::new(0) })
    }

    /// Deletes all rows.
    pub(super) async fn clear(&self) -> anyhow::Result<()> {
        let clear = format!("TRUNCATE {}", self.key.table());
        self.lines[0].client.batch_execute(&clear).await.context("empty a table")?;
        self.rows.set(0);
        Ok(())
    }

    /// Inserts rows until the table has at least `rows` rows.
    pub(super) async fn fill(&self, rows: u64) -> anyhow::Result<()> {
        let fill = async |line| {
            while self.rows.get() < rows {
                self.insert(line, FILLED).await?;
            }
            anyhow::Ok(())
        };
        try_join_all(self.lines.iter().map(fill)).await.map(drop)
    }

    /// Inserts rows for this long and returns the rate in rows per second.
    pub(super) async fn insert_for(&self, length: Duration) -> anyhow::Result<f64> {
        let (begun, before) = (Instant::now(), self.rows.get());
        let insert = async |line| {
            while begun.elapsed() < length {
                self.insert(line, INSERTED).await?;
            }
            anyhow::Ok(())
        };
        try_join_all(self.lines.iter().map(insert)).await?;
        Ok(rate(self.rows.get() - before, begun))
    }

    /// Reads random rows for this long and returns the rate in rows per second.
    pub(super) async fn read_for(&self, length: Duration) -> anyhow::Result<f64> {
        let rows = self.rows.get();
        let random = || Ok(getrandom::u64()? % rows);
        let numbers =
            (0..READS * READ).map(|_| random()).collect::<anyhow::Result<Vec<_>>>().context("draw rows")?;
        let reads: Vec<_> = numbers.chunks(READ).map(|some| self.keys(some.iter().copied())).collect();
        let (begun, found, next) = (Instant::now(), Cell::new(0), Cell::new(0));
        let read = async |line: &Line| {
            while begun.elapsed() < length {
                let keys = &*reads[next.replace((next.get() + 1) % READS)];
                let rows = line.client.query(&line.read, &[keys]).await.context("read rows")?;
                found.set(found.get() + rows.len() as u64);
            }
            anyhow::Ok(())
        };
        try_join_all(self.lines.iter().map(read)).await?;
        Ok(rate(found.get(), begun))
    }

    async fn insert(&self, line: &Line, count: u64) -> anyhow::Result<()> {
        let numbers = self.rows.get()..self.rows.get() + count;
        self.rows.set(numbers.end);
        let urls: Vec<String> =
            numbers.clone().map(|number| format!("https://example.org/some/where/{number}")).collect();
        let keys = self.keys(numbers);
        let titles: Vec<Option<&str>> = vec![None; urls.len()];
        let (crawlable, forward, creators) =
            (vec![false; urls.len()], vec![true; urls.len()], vec![1_i64; urls.len()]);
        let columns: [&(dyn ToSql + Sync); 6] = [&*keys, &urls, &titles, &crawlable, &forward, &creators];
        let stored = line.client.query(&line.insert, &columns).await.context("insert rows")?.len() as u64;
        anyhow::ensure!(stored == count, "{stored} of {count} rows were stored");
        Ok(())
    }

    /// Returns the keys of links as a parameter of the statements.
    fn keys(&self, numbers: impl Iterator<Item = u64>) -> Box<dyn ToSql + Sync> {
        match self.key {
            Key::Number => {
                Box::new(numbers.map(|number| LinkId::new(self.index, number).get()).collect::<Vec<_>>())
            }
            Key::Text => {
                let code = |number| self.mint.mint(self.index, number).code;
                Box::new(numbers.map(|number| code(number).as_str().to_owned()).collect::<Vec<_>>())
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of rows stay far below 2^52")]
fn rate(rows: u64, begun: Instant) -> f64 {
    rows as f64 / begun.elapsed().as_secs_f64()
}
