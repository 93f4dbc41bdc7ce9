//! Finds the server programs of other projects that the tests run.
//!
//! Debian keeps Postgres' servers out of PATH, in one folder per major version; a link in PATH, if there is one,
//! may point to an old version. So that folder comes first there, with its newest version.

use std::path::{Path, PathBuf};

use anyhow::Context;

const POSTGRES_ROOT: &str = "/usr/lib/postgresql";

/// A program that is found, never built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The Postgres server.
    Postgres,
    /// Makes a Postgres data folder; always from the same installation as [`Program::Postgres`].
    Initdb,
    /// Copies the data folder of a running server.
    Basebackup,
    /// Postgres' own load generator.
    Pgbench,
    /// The etcd server.
    Etcd,
    /// etcd's command line client.
    Etcdctl,
    /// Checks Prometheus rule files and metric pages.
    Promtool,
    /// Checks Kubernetes manifests.
    Kubectl,
    /// The web server that benches compare with.
    Nginx,
    /// Makes the load of benches.
    Wrk,
    /// Binds a process to cores.
    Taskset,
}

impl Program {
    /// The program's name, and the Debian package that holds it.
    fn name_and_package(self) -> (&'static str, &'static str) {
        match self {
            Self::Postgres => ("postgres", "postgresql"),
            Self::Initdb => ("initdb", "postgresql"),
            Self::Basebackup => ("pg_basebackup", "postgresql"),
            Self::Pgbench => ("pgbench", "postgresql"),
            Self::Etcd => ("etcd", "etcd-server"),
            Self::Etcdctl => ("etcdctl", "etcd-client"),
            Self::Promtool => ("promtool", "prometheus"),
            Self::Kubectl => ("kubectl", "kubernetes-client"),
            Self::Nginx => ("nginx", "nginx-light"),
            Self::Wrk => ("wrk", "wrk"),
            Self::Taskset => ("taskset", "util-linux"),
        }
    }

    /// Where the program is, with symbolic links resolved: Postgres finds its own files from there.
    ///
    /// # Errors
    /// It is not installed; the message names the package that has it.
    pub fn path(self) -> anyhow::Result<PathBuf> {
        let (name, package) = self.name_and_package();
        let newest = matches!(self, Self::Postgres | Self::Initdb | Self::Basebackup | Self::Pgbench)
            .then(newest_postgres)
            .flatten();
        let found = newest.map(|bin| bin.join(name)).or_else(|| in_search_path(name));
        let found =
            found.with_context(|| format!("{name} not found: install the Debian package {package}"))?;
        found.canonicalize().with_context(|| format!("resolve {}", found.display()))
    }
}

/// The folder with both `postgres` and `initdb` that has the highest version.
fn newest_postgres() -> Option<PathBuf> {
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
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
