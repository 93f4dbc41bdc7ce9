//! One Postgres and everything measured on it: a resolver's links, and one table per kind of key.

use std::time::Duration;

use anyhow::Context;
use harness::{Postgres, Resolver, Scratch, migrate, secret};

use super::{
    Args,
    keyed::{Key, Keyed},
    report::Way,
};
use crate::{cores, links, progress, wrk::Wrk};

/// The number of links per bulk call.
const AT_ONCE: u64 = 100_000;
/// The smallest number of links for the miss load, which is spread evenly over all links and may be
/// up to twice as large. So the load covers about as many links of the grown table as of the small
/// one.
const ASKED: usize = 160_000;

/// One row in this many is inserted after the checkpoint: enough to change every page of a randomly
/// keyed index.
const LAST: u64 = 40;

/// The servers of one side.
pub(super) struct Side {
    scratch: Scratch,
    postgres: Postgres,
    resolver: Resolver,
    creates: Wrk,
    misses: Option<Wrk>,
    /// The paths of one link in `every`.
    paths: Vec<String>,
    every: usize,
    links: u64,
    numbers: Keyed,
    texts: Keyed,
}

impl Side {
    /// Starts the servers, with empty tables.
    pub(super) async fn start(args: &Args, shared_buffers: &str) -> anyhow::Result<Self> {
        // Each side has its own folder, because a resolver keeps its ledger in its working folder.
        let scratch = Scratch::new()?;
        let postgres = Postgres::builder()
            .scratch(&scratch)
            .setting("max_connections", "400")
            .setting("shared_buffers", shared_buffers)
            .setting("huge_pages", if args.huge_pages { "on" } else { "off" })
            .setting("checkpoint_timeout", "30min")
            .setting("max_wal_size", "4GB")
            .start()
            .await?;
        migrate(&scratch, &postgres.url()).await?.success()?;
        let key = secret::random_hex()?;
        let builder = Resolver::builder(&scratch, "resolver", &key)?.database(&postgres.url());
        // The smallest cache possible.
        let resolver = builder.args(["--limit", "cache-mib=1"]).start().await?;
        Ok(Self {
            creates: Wrk::creating(&scratch, &key)?,
            misses: None,
            paths: Vec::new(),
            every: 1,
            links: 0,
            numbers: Keyed::new(&postgres, Key::Number).await?,
            texts: Keyed::new(&postgres, Key::Text).await?,
            postgres,
            resolver,
            scratch,
        })
    }

    /// Fills the tables of these workloads. All rows but the last fortieth are vacuumed and
    /// checkpointed before the rest is inserted.
    pub(super) async fn fill(&mut self, rows: u64, ways: &[Way]) -> anyhow::Result<()> {
        self.fill_tables(rows - rows / LAST, ways).await?;
        progress::show("vacuuming …");
        let client = self.postgres.client().await?;
        client.batch_execute("VACUUM ANALYZE").await.context("vacuum")?;
        client.batch_execute("CHECKPOINT").await.context("a checkpoint")?;
        self.fill_tables(rows, ways).await
    }

    async fn fill_tables(&mut self, rows: u64, ways: &[Way]) -> anyhow::Result<()> {
        for way in ways.iter().copied() {
            match self.keyed(way) {
                None => self.fill_links(rows).await?,
                Some(keyed) => {
                    progress::show(&format!("{rows} rows for: {}", way.name()));
                    keyed.fill(rows).await?;
                }
            }
        }
        Ok(())
    }

    /// Creates links through the resolver until there are `rows` links.
    async fn fill_links(&mut self, rows: u64) -> anyhow::Result<()> {
        let before = self.links;
        while self.links < rows {
            progress::show(&format!("filling the resolver's table: {} of {rows} links", self.links));
            let count = AT_ONCE.min(rows - self.links);
            let paths = links::create(&self.resolver, usize::try_from(count)?).await?;
            self.links += count;
            self.paths.extend(paths.into_iter().step_by(self.every));
            if self.paths.len() > 2 * ASKED {
                self.paths = std::mem::take(&mut self.paths).into_iter().step_by(2).collect();
                self.every *= 2;
            }
        }
        if self.links > before {
            self.misses = Some(Wrk::getting_at_random(&self.scratch, &self.paths)?);
        }
        Ok(())
    }

    /// Deletes all rows of the table that a workload writes to.
    pub(super) async fn clear(&self, way: Way) -> anyhow::Result<()> {
        match self.keyed(way) {
            Some(keyed) => keyed.clear().await,
            None => {
                let client = self.postgres.client().await?;
                client.batch_execute("TRUNCATE link").await.context("empty the links")
            }
        }
    }

    fn keyed(&self, way: Way) -> Option<&Keyed> {
        match way {
            Way::Create | Way::Miss => None,
            Way::InsertByNumber | Way::ReadByNumber => Some(&self.numbers),
            Way::InsertByText | Way::ReadByText => Some(&self.texts),
        }
    }

    /// Runs one workload for this long and returns its rate in links per second.
    pub(super) async fn rate(&self, way: Way, clients: usize, length: Duration) -> anyhow::Result<f64> {
        if let Some(keyed) = self.keyed(way) {
            return if way.reads() { keyed.read_for(length).await } else { keyed.insert_for(length).await };
        }
        let wrk = if way.reads() { self.misses.as_ref() } else { Some(&self.creates) };
        let all = cores::all();
        let load = wrk.context("there are links to ask for")?.load(
            self.resolver.api.url(),
            &all,
            clients,
            length.as_secs(),
        );
        let load = load.await?;
        Ok(load.requests / load.seconds)
    }
}
