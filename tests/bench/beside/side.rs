//! One build's resolver with its servers.

use std::{path::Path, time::Duration};

use harness::{Load, Postgres, Resolver, Scratch, migrate, migrate_with, procfs, secret};
use nix::unistd::Pid;

use super::Way;
use crate::{
    cores, create, links,
    wrk::{Loaded, Wrk},
};

/// The cache size for misses, in MiB: it holds less than one link in a hundred.
const MISS_CACHE_MIB: &str = "1";
/// The number of links for redirects; all of them fit into the thread caches.
const REDIRECTED: usize = 10_000;

/// A resolver and its database.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Build<'a> {
    /// Another build's binary; this build's if `None`.
    pub(super) binary: Option<&'a Path>,
    /// The nodes of Citus that have its links; 0 for one Postgres.
    pub(super) nodes: usize,
}

/// One build's resolver under load.
pub(super) struct Side {
    resolver: Resolver,
    postgres: Option<Postgres>,
    wrk: Wrk,
}

impl Side {
    /// Starts the resolver of this build, or of another one, with the servers that a workload
    /// needs.
    pub(super) async fn start(
        way: Way,
        threads: usize,
        count: u32,
        Build { binary, nodes }: Build<'_>,
    ) -> anyhow::Result<Self> {
        let scratch = Scratch::new()?;
        let key = secret::random_hex()?;
        let mut builder = Resolver::builder(&scratch, "resolver", &key)?;
        if let Some(binary) = binary {
            builder = builder.binary(binary);
        }
        builder = builder.args(["--limit", &format!("threads={threads}")]);
        let postgres = match way {
            Way::Redirect => None,
            Way::Create | Way::Miss if nodes > 0 => {
                Some(create::configured(&scratch, 0).start_with_nodes(nodes).await?)
            }
            Way::Create | Way::Miss => Some(create::server(&scratch, 0).await?),
        };
        if let Some(postgres) = &postgres {
            let url = postgres.url();
            let migrated = match binary {
                Some(binary) => migrate_with(&scratch, binary.to_owned(), &url).await?,
                None => migrate(&scratch, &url).await?,
            };
            migrated.success()?;
            builder = builder.database(&url);
        }
        if way == Way::Miss {
            builder = builder.args(["--limit", &format!("cache-mib={MISS_CACHE_MIB}")]);
        }
        let resolver = builder.start().await?;
        let wrk = match way {
            Way::Create => Wrk::creating(&scratch, &key)?,
            Way::Redirect => {
                cores::keep_on(&scratch, resolver.process.pid(), 0..=threads - 1).await?;
                let created = Load::on([&resolver]).clients(64).creates(REDIRECTED).run().await?;
                let paths: Vec<_> = created.iter().map(|link| format!("/{}", link.code)).collect();
                Wrk::getting(&scratch, &paths)?
            }
            Way::Miss => {
                let paths = links::create(&resolver, usize::try_from(count)?).await?;
                Wrk::getting_at_random(&scratch, &paths)?
            }
        };
        Ok(Self { resolver, postgres, wrk })
    }

    /// Runs the load against the resolver from these cores.
    pub(super) async fn load(&self, cores: &str, connections: usize, seconds: u64) -> anyhow::Result<Loaded> {
        self.wrk.load(self.resolver.api.url(), cores, connections, seconds).await
    }

    /// Returns the processor time that the resolver and its Postgres have used so far.
    pub(super) fn cpu(&self) -> Duration {
        let servers =
            self.postgres.iter().flat_map(|postgres| [postgres].into_iter().chain(postgres.nodes()));
        let servers: Vec<Pid> = servers.map(Postgres::pid).collect();
        let backends = servers.iter().flat_map(|pid| procfs::children(*pid)).map(|seen| seen.pid);
        let pids: Vec<Pid> = backends.chain([self.resolver.process.pid()]).collect();
        let pids = pids.into_iter().chain(servers);
        pids.filter_map(procfs::cpu_time).sum()
    }
}
