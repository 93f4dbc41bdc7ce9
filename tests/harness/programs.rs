//! A lookup of the third-party programs that the tests run.
//!
//! Debian keeps Postgres' servers outside PATH, in one folder per major version. A link in PATH, if
//! there is one, may point to an old version. So the folder with the newest version is searched
//! before PATH.

use std::path::{Path, PathBuf};

use anyhow::Context;

const POSTGRES_ROOT: &str = "/usr/lib/postgresql";
/// The environment variable with the folder of another version's programs.
const POSTGRES_VARIABLE: &str = "SHORTMINT_POSTGRES";

/// A third-party program that must be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The Postgres server.
    Postgres,
    /// `initdb`, which creates a Postgres data folder; from the same installation as
    /// [`Program::Postgres`].
    Initdb,
    /// `pg_resetwal`, which begins a new write-ahead log.
    ResetWal,
    /// `pg_basebackup`, which copies the data folder of a running server.
    Basebackup,
    /// `pgbench`, Postgres' own load generator.
    Pgbench,
    /// Patroni, which decides which Postgres server is the primary.
    Patroni,
    /// PgBouncer, a pooler of connections to Postgres.
    Pgbouncer,
    /// The etcd server.
    Etcd,
    /// `etcdctl`, etcd's command-line client.
    Etcdctl,
    /// A browser.
    Chromium,
    /// The ClickHouse server.
    ClickhouseServer,
    /// Java, which runs ZooKeeper; from the package of ZooKeeper, which needs it.
    Java,
    /// The Prometheus server.
    Prometheus,
    /// `promtool`, which checks Prometheus rule files and metrics pages.
    Promtool,
    /// `kubectl`, which checks Kubernetes manifests.
    Kubectl,
    /// nginx, the web server that the benchmarks compare with.
    Nginx,
    /// `wrk`, the HTTP load generator of the benchmarks.
    Wrk,
    /// `taskset`, which binds a process to cores.
    Taskset,
}

impl Program {
    /// Returns the program's name and the Debian package that contains it.
    fn name_and_package(self) -> (&'static str, &'static str) {
        match self {
            Self::Postgres => ("postgres", "postgresql"),
            Self::Initdb => ("initdb", "postgresql"),
            Self::ResetWal => ("pg_resetwal", "postgresql"),
            Self::Basebackup => ("pg_basebackup", "postgresql"),
            Self::Pgbench => ("pgbench", "postgresql"),
            Self::Patroni => ("patroni", "patroni"),
            Self::Pgbouncer => ("pgbouncer", "pgbouncer"),
            Self::Etcd => ("etcd", "etcd-server"),
            Self::Etcdctl => ("etcdctl", "etcd-client"),
            Self::Chromium => ("chromium", "chromium"),
            Self::ClickhouseServer => ("clickhouse-server", "clickhouse-server"),
            Self::Java => ("java", "zookeeper"),
            Self::Prometheus => ("prometheus", "prometheus"),
            Self::Promtool => ("promtool", "prometheus"),
            Self::Kubectl => ("kubectl", "kubernetes-client"),
            Self::Nginx => ("nginx", "nginx-light"),
            Self::Wrk => ("wrk", "wrk"),
            Self::Taskset => ("taskset", "util-linux"),
        }
    }

    /// Returns the program's path with symbolic links resolved, because Postgres locates its own
    /// files relative to it.
    ///
    /// # Errors
    /// Returns an error if the program is not installed; the message names the package that
    /// contains it.
    pub fn path(self) -> anyhow::Result<PathBuf> {
        let (name, package) = self.name_and_package();
        let newest = if package == "postgresql" { newest_postgres() } else { None };
        let found = newest.map(|bin| bin.join(name)).or_else(|| in_search_path(name));
        let found =
            found.with_context(|| format!("{name} not found: install the Debian package {package}"))?;
        found.canonicalize().with_context(|| format!("resolve {}", found.display()))
    }
}

/// Returns the folder that the variable names, or that of the highest version that contains both
/// `postgres` and `initdb`.
fn newest_postgres() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(POSTGRES_VARIABLE) {
        return Some(folder.into());
    }
    let versions = std::fs::read_dir(POSTGRES_ROOT).ok()?;
    let installed = versions.flatten().filter_map(|entry| {
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        let bin = entry.path().join("bin");
        (bin.join("postgres").is_file() && bin.join("initdb").is_file()).then_some((version, bin))
    });
    installed.max().map(|(_, bin)| bin)
}

fn in_search_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    // Debian has some servers where only root's PATH leads.
    let folders = std::env::split_paths(&folders).chain(["/usr/sbin".into()]);
    folders.map(|folder| folder.join(name)).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
