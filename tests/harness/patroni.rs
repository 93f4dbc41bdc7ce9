//! Postgres servers under Patroni, which decides by a lease in etcd who is the primary.
//!
//! 1. A server is no child of this process but of its Patroni, and outlives it. So it is found by
//!    the process id in its data folder.
//! 2. [`Patroni::kill`] kills both at once, like the power loss of a machine.

use std::{fs, net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::Context;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_postgres::NoTls;

use crate::{
    account::Account, etcd::EtcdCluster, launch::Launch, net, orphans::Watch, process::Process, procfs,
    programs::Program, scratch::Scratch, wait,
};

const START_WITHIN: Duration = Duration::from_secs(90);
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
const KILLED_WITHIN: Duration = Duration::from_secs(10);
const QUIT_WITHIN: Duration = Duration::from_secs(6);
/// Seconds after which the lease of a primary that died ends: at least one round and two retries.
/// Later releases than 3.0 have a minimum of 20.
const LEASE: u32 = 10;
const SUPERUSER: &str = "shortmint";

/// Whether a commit waits until a standby has it on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// It waits, as long as there is a standby: what was acknowledged survives the primary.
    Synchronous,
    /// It does not.
    Asynchronous,
}

/// A cluster of three servers.
#[derive(Debug)]
pub struct Patroni {
    nodes: Vec<Node>,
    replication: Replication,
    http: Client,
}

#[derive(Debug)]
struct Node {
    patroni: Process,
    data: PathBuf,
    sql: SocketAddr,
    rest: SocketAddr,
    /// The server's guard, for when this process is killed.
    server: Option<(Pid, Watch)>,
}

impl Patroni {
    /// Starts three servers, and waits until one is the primary and the others stream from it.
    ///
    /// # Errors
    /// Returns an error if Patroni or Postgres is not installed, or they do not start; the message
    /// contains the end of a log.
    pub async fn start(
        scratch: &Scratch,
        etcd: &EtcdCluster,
        replication: Replication,
    ) -> anyhow::Result<Self> {
        let nodes = (0..3).map(|number| Node::start(scratch, etcd, replication, number));
        let nodes = nodes.collect::<Result<_, _>>()?;
        let mut patroni = Self { nodes, replication, http: Client::new() };
        patroni.wait_whole().await?;
        Ok(patroni)
    }

    /// Returns the address of a server.
    pub fn addr(&self, number: usize) -> SocketAddr {
        self.nodes[number].sql
    }

    /// Returns the URL of the database on one server.
    pub fn url_of(&self, number: usize) -> String {
        format!("postgres://{SUPERUSER}@{}/postgres", self.addr(number))
    }

    /// Returns the URL of the database, with the addresses of all servers.
    pub fn url(&self) -> String {
        let addresses: Vec<String> = self.nodes.iter().map(|node| node.sql.to_string()).collect();
        format!("postgres://{SUPERUSER}@{}/postgres", addresses.join(","))
    }

    /// Returns which server is the primary, by its own Patroni; `None` while none is.
    pub async fn primary(&self) -> Option<usize> {
        for (number, node) in self.nodes.iter().enumerate() {
            if self.says(node, "primary").await {
                return Some(number);
            }
        }
        None
    }

    /// Waits until another server than this one is the primary, and returns which.
    ///
    /// # Errors
    /// Returns an error if none is in time.
    pub async fn next_primary(&mut self, before: usize) -> anyhow::Result<usize> {
        wait::until_some(START_WITHIN, "another server is the primary", async || {
            self.watch();
            self.primary().await.filter(|primary| *primary != before)
        })
        .await
    }

    /// Waits until one server is the primary, and both others stream from it and could take over.
    ///
    /// # Errors
    /// Returns an error if that takes too long; the message contains the end of a log.
    pub async fn wait_whole(&mut self) -> anyhow::Result<()> {
        let whole = wait::until(START_WITHIN, "a primary and two standbys", async || {
            self.watch();
            let Some(primary) = self.primary().await else { return false };
            self.standbys(&self.nodes[primary]).await == self.nodes.len() - 1
        });
        whole.await.with_context(|| self.nodes[0].patroni.tail())
    }

    /// Waits until both standbys have what a primary has committed by now.
    ///
    /// # Errors
    /// Returns an error if the primary does not answer, or the standbys are late.
    pub async fn wait_replicated(&self, primary: usize) -> anyhow::Result<()> {
        let (sql, connection) = tokio_postgres::connect(&self.url_of(primary), NoTls).await?;
        tokio::spawn(connection);
        let end: String = sql.query_one("SELECT pg_current_wal_flush_lsn()::text", &[]).await?.try_get(0)?;
        let have = format!(
            "SELECT count(*) FROM pg_stat_replication
             WHERE application_name LIKE 'node-%' AND flush_lsn >= '{end}'::pg_lsn"
        );
        wait::until(START_WITHIN, "both standbys have it", async || {
            sql.query_one(&have, &[]).await.is_ok_and(|row| row.get::<_, i64>(0) == 2)
        })
        .await
    }

    fn watch(&mut self) {
        self.nodes.iter_mut().for_each(Node::watch);
    }

    /// Asks for a switch-over from this primary. Patroni has accepted it when this returns.
    ///
    /// # Errors
    /// Returns an error if Patroni refuses.
    pub async fn switch_over(&self, primary: usize) -> anyhow::Result<()> {
        let node = &self.nodes[primary];
        let request = self.http.post(format!("http://{}/switchover", node.rest));
        let answer = request.json(&json!({ "leader": format!("node-{primary}") })).send().await?;
        let (status, text) = (answer.status(), answer.text().await?);
        anyhow::ensure!(status.is_success(), "switch over: {status} {text}");
        Ok(())
    }

    /// Kills a server and its Patroni with SIGKILL.
    ///
    /// # Errors
    /// Returns an error if a process survives.
    pub async fn kill(&mut self, number: usize) -> anyhow::Result<()> {
        let node = &mut self.nodes[number];
        // A stopped one starts nothing more.
        node.patroni.pause().await?;
        let killed = node.kill_server();
        node.patroni.kill_now()?;
        node.server = None;
        wait::until(KILLED_WITHIN, "the server's processes are gone", async || {
            killed.iter().all(|process| process.is_gone())
        })
        .await
    }

    /// Starts a server again that was killed, and waits until the cluster is whole.
    ///
    /// # Errors
    /// Returns an error if that takes too long.
    pub async fn restart(&mut self, number: usize) -> anyhow::Result<()> {
        self.nodes[number].patroni.respawn()?;
        self.wait_whole().await
    }

    async fn says(&self, node: &Node, role: &str) -> bool {
        let request = self.http.get(format!("http://{}/{role}", node.rest)).timeout(ANSWER_WITHIN);
        request.send().await.is_ok_and(|answer| answer.status().is_success())
    }

    /// Returns how many standbys stream from a primary; none while Patroni knows of no synchronous
    /// one that it needs.
    async fn standbys(&self, primary: &Node) -> usize {
        let (state, cluster) = (self.ask(primary, "patroni").await, self.ask(primary, "cluster").await);
        let list = |list: &Value| list.as_array().cloned().unwrap_or_default();
        let is_kept = self.replication == Replication::Asynchronous
            || list(&cluster["members"]).iter().any(|member| member["role"] == "sync_standby");
        // While it is copied, a server has a connection of another name.
        let streams = |standby: &Value| {
            let name = standby["application_name"].as_str().unwrap_or_default();
            name.starts_with("node-") && standby["state"] == "streaming"
        };
        if is_kept {
            list(&state["replication"]).iter().filter(|standby| streams(standby)).count()
        } else {
            0
        }
    }

    async fn ask(&self, node: &Node, what: &str) -> Value {
        let request = self.http.get(format!("http://{}/{what}", node.rest)).timeout(ANSWER_WITHIN);
        let Ok(answer) = request.send().await else { return Value::Null };
        answer.json().await.unwrap_or_default()
    }
}

impl Node {
    fn start(
        scratch: &Scratch,
        etcd: &EtcdCluster,
        replication: Replication,
        number: usize,
    ) -> anyhow::Result<Self> {
        let account = Account::unprivileged()?;
        let folder = scratch.folder(&scratch.stem("patroni"))?;
        let (data, sql, rest) = (folder.join("data"), net::free_addr()?, net::free_addr()?);
        let bin = Program::Postgres.path()?;
        let endpoints = etcd.endpoints().replace("http://", "");
        let trust = ["host all all 127.0.0.0/8 trust", "host replication all 127.0.0.0/8 trust"];
        let settings = json!({
            "scope": "links", "name": format!("node-{number}"),
            "restapi": { "listen": rest.to_string(), "connect_address": rest.to_string() },
            "etcd3": { "hosts": endpoints },
            "bootstrap": {
                "dcs": {
                    "ttl": LEASE, "loop_wait": 1, "retry_timeout": 3,
                    "synchronous_mode": replication == Replication::Synchronous,
                    "postgresql": { "use_pg_rewind": true, "parameters": { "max_connections": 200 } },
                },
                "initdb": [{ "encoding": "UTF8" }, { "locale": "C.UTF-8" }],
            },
            "postgresql": {
                "listen": sql.to_string(), "connect_address": sql.to_string(),
                "data_dir": data, "bin_dir": bin.parent(), "pgpass": folder.join("pgpass"),
                "authentication": {
                    "superuser": { "username": SUPERUSER }, "rewind": { "username": SUPERUSER },
                    "replication": { "username": "replicator" },
                },
                "pg_hba": trust,
                "parameters": {
                    "unix_socket_directories": "",
                    // Otherwise a killed server leaves its segments in /dev/shm.
                    "dynamic_shared_memory_type": "mmap",
                },
            },
        });
        // JSON is YAML.
        let file = folder.join("patroni.yml");
        fs::write(&file, settings.to_string()).context("write Patroni's settings")?;
        if let Some(account) = account {
            account.own(&folder)?;
        }
        let launch = Launch::new(scratch, "patroni", Program::Patroni.path()?).account(account);
        Ok(Self { patroni: launch.arg(&file).spawn()?, data, sql, rest, server: None })
    }

    /// Returns the process id of the server, by its data folder. The file there outlives a server
    /// that was killed, and then the number may belong to another process.
    fn postmaster(&self) -> Option<Pid> {
        let file = fs::read_to_string(self.data.join("postmaster.pid")).ok()?;
        // Negative for a server in single-user mode.
        let pid: i32 = file.lines().next()?.parse().ok()?;
        let folder = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
        (pid > 0 && folder == self.data.canonicalize().ok()?).then(|| Pid::from_raw(pid))
    }

    /// Registers the server that runs now, so that it ends if this process is killed.
    fn watch(&mut self) {
        let Some(pid) = self.postmaster() else { return };
        if self.server.as_ref().is_none_or(|(watched, _)| *watched != pid) {
            self.server = Some((pid, Watch::over(pid)));
        }
    }

    /// Kills the server's processes, and returns them.
    fn kill_server(&self) -> Vec<procfs::Seen> {
        let Some(postmaster) = self.postmaster() else { return Vec::new() };
        // A stopped one starts no more children while they are listed.
        let _ = kill(postmaster, Signal::SIGSTOP);
        let processes: Vec<_> =
            procfs::Seen::look(postmaster).into_iter().chain(procfs::children(postmaster)).collect();
        for process in &processes {
            // A child may have noticed the postmaster's death and exited just now.
            let _ = kill(process.pid, Signal::SIGKILL);
        }
        processes
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.patroni.kill_now();
        // SIGQUIT lets the server remove its shared memory.
        if let Some(server) = self.postmaster().and_then(procfs::Seen::look) {
            let _ = kill(server.pid, Signal::SIGQUIT);
            let until = Instant::now() + QUIT_WITHIN;
            while !server.is_gone() && Instant::now() < until {
                std::thread::sleep(wait::POLL_INTERVAL);
            }
        }
        self.kill_server();
    }
}
