//! Private ClickHouse servers: one, or replicas with a ZooKeeper of their own.
//!
//! 1. A server keeps its folder and ports when it is killed and started again.
//! 2. Servers listen on 127.0.0.1, because ClickHouse runs statements `ON CLUSTER` only on hosts
//!    whose address is one of the machine's interfaces.
//! 3. They take little memory: small caches, small thread pools, and a bound for each query.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::launch::Launch;
use crate::process::Process;
use crate::programs::Program;
use crate::scratch::Scratch;
use crate::{http, net, wait};

mod recent;

/// The account of all servers.
pub const USER: &str = "shortmint";
/// The password of the account, with letters that a URL has to escape.
pub const PASSWORD: &str = "p@ss/word";
/// The name of the cluster.
const CLUSTER: &str = "main";

const READY_WITHIN: Duration = Duration::from_secs(120);
/// How long ZooKeeper may take to tell its version. It may accept a connection and forget it.
const VERSION_WITHIN: Duration = Duration::from_secs(2);
const QUERY_WITHIN: Duration = Duration::from_secs(60);

/// Returns a free port of 127.0.0.1.
fn free_port() -> anyhow::Result<u16> {
    net::free_port_on(Ipv4Addr::LOCALHOST)
}

/// A ZooKeeper of one member.
#[derive(Debug)]
pub struct ZooKeeper {
    process: Process,
    port: u16,
}

impl ZooKeeper {
    /// Starts a member without data.
    ///
    /// # Errors
    /// Returns an error if it is not installed or does not start; the message contains the end of
    /// its log.
    pub async fn start(scratch: &Scratch) -> anyhow::Result<Self> {
        let (port, data) = (free_port()?, scratch.folder(&scratch.stem("zookeeper"))?);
        let settings = format!(
            "tickTime=500\ndataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n",
            data.display()
        );
        let settings = scratch.file("zoo.cfg", &settings)?;
        let java = Launch::new(scratch, "zookeeper", Program::Java.path()?);
        let java = java.args(["-Xmx128m", "-cp", "/usr/share/java/zookeeper.jar"]);
        let java = java.arg("org.apache.zookeeper.server.quorum.QuorumPeerMain").arg(settings);
        let mut keeper = Self { process: java.spawn()?, port };
        // 18.16 crashes if ZooKeeper accepts its first connection and does not serve it yet.
        let is_serving = async || {
            let version = tokio::time::timeout(VERSION_WITHIN, version(port)).await;
            version.is_ok_and(|answer| answer.is_ok_and(|answer| answer.starts_with("Zookeeper version")))
        };
        keeper.process.wait_ready(READY_WITHIN, is_serving).await?;
        Ok(keeper)
    }

    /// Returns the process, to pause or kill it.
    pub fn process_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// Returns the answer to ZooKeeper's command `srvr`.
async fn version(port: u16) -> anyhow::Result<String> {
    let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    connection.write_all(b"srvr").await?;
    let mut answer = String::new();
    connection.take(1_024).read_to_string(&mut answer).await?;
    Ok(answer)
}

/// The ports of a server.
#[derive(Clone, Copy, Debug)]
struct Ports {
    http: u16,
    native: u16,
    between: u16,
}

impl Ports {
    fn take() -> anyhow::Result<Self> {
        Ok(Self { http: free_port()?, native: free_port()?, between: free_port()? })
    }
}

/// A ClickHouse server: of Debian's package, or the recent engine in place of one.
#[derive(Debug)]
pub struct Clickhouse {
    process: Process,
    port: u16,
    folder: PathBuf,
}

impl Clickhouse {
    /// Starts a server without a cluster.
    ///
    /// # Errors
    /// Returns an error if it is not installed or does not start; the message contains the end of
    /// its log.
    pub async fn start(scratch: &Scratch) -> anyhow::Result<Self> {
        let mut server = Self::launch(scratch, Ports::take()?, "")?;
        server.wait_ready().await?;
        Ok(server)
    }

    fn launch(scratch: &Scratch, ports: Ports, cluster: &str) -> anyhow::Result<Self> {
        let folder = scratch.folder(&scratch.stem("clickhouse"))?;
        std::fs::write(folder.join("users.xml"), users()).context("write users.xml")?;
        let config = folder.join("config.xml");
        std::fs::write(&config, settings(&folder, ports, cluster)).context("write config.xml")?;
        let server = Launch::new(scratch, "clickhouse", Program::ClickhouseServer.path()?);
        let server = server.arg(format!("--config-file={}", config.display()));
        Ok(Self { process: server.spawn()?, port: ports.http, folder })
    }

    /// Returns the address for HTTP.
    pub fn addr(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// Returns the address of a database, as `--visits-store` expects it.
    pub fn url(&self, database: &str) -> String {
        format!("clickhouse+http://{USER}:p%40ss%2Fword@{}/{database}", self.addr())
    }

    /// Returns the folder with the data.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the process, to kill or pause it.
    pub fn process_mut(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Starts the server again on its data, and waits until it answers.
    ///
    /// # Errors
    /// Returns an error if it does not start; the message contains the end of its log.
    pub async fn restart(&mut self) -> anyhow::Result<()> {
        self.process.respawn()?;
        self.wait_ready().await
    }

    /// Runs a statement, and returns what it answers as text.
    ///
    /// # Errors
    /// Returns an error if the server does not answer, or with an error.
    pub async fn query(&self, statement: &str) -> anyhow::Result<String> {
        query(self.addr(), statement).await
    }

    async fn wait_ready(&mut self) -> anyhow::Result<()> {
        let addr = self.addr();
        self.process.wait_ready(READY_WITHIN, async || query(addr, "SELECT 1").await.is_ok()).await
    }
}

/// Runs a statement on a server, and returns what it answers as text.
///
/// # Errors
/// Returns an error if the server does not answer, or with an error.
pub async fn query(addr: SocketAddr, statement: &str) -> anyhow::Result<String> {
    let request = http::client()?.post(format!("http://{addr}/")).timeout(QUERY_WITHIN);
    let request = request.header("X-ClickHouse-User", USER).header("X-ClickHouse-Key", PASSWORD);
    let answer = request.body(statement.to_owned()).send().await.context("call ClickHouse")?;
    let status = answer.status();
    let text = answer.text().await.context("read ClickHouse's answer")?;
    anyhow::ensure!(status.is_success(), "{statement}: {status} {text}");
    Ok(text.trim_end().to_owned())
}

/// Replicas of one shard, with their ZooKeeper.
#[derive(Debug)]
pub struct ClickhouseCluster {
    replicas: Vec<Clickhouse>,
    keeper: ZooKeeper,
}

impl ClickhouseCluster {
    /// Starts that many replicas without data.
    ///
    /// # Errors
    /// Returns an error if ClickHouse or ZooKeeper is not installed or does not start; the message
    /// contains the end of a log.
    pub async fn start(scratch: &Scratch, replicas: usize) -> anyhow::Result<Self> {
        let keeper = ZooKeeper::start(scratch).await?;
        let ports: Vec<Ports> = (0..replicas).map(|_| Ports::take()).collect::<anyhow::Result<_>>()?;
        let mut cluster = Self { replicas: Vec::new(), keeper };
        for (number, own) in ports.iter().enumerate() {
            let settings = cluster_settings(cluster.keeper.port, &ports, number);
            cluster.replicas.push(Clickhouse::launch(scratch, *own, &settings)?);
        }
        for replica in &mut cluster.replicas {
            replica.wait_ready().await?;
        }
        Ok(cluster)
    }

    /// Returns the address of a database, as `--visits-store` expects it.
    pub fn url(&self, database: &str) -> String {
        let hosts: Vec<String> = self.replicas.iter().map(|replica| replica.addr().to_string()).collect();
        format!("clickhouse+http://{USER}:p%40ss%2Fword@{}/{database}?cluster={CLUSTER}", hosts.join(","))
    }

    /// Returns the replicas.
    pub fn replicas(&self) -> &[Clickhouse] {
        &self.replicas
    }

    /// Returns the replicas, to kill, pause or restart them.
    pub fn replicas_mut(&mut self) -> &mut [Clickhouse] {
        &mut self.replicas
    }

    /// Waits until a statement answers this text on a replica.
    ///
    /// # Errors
    /// Returns an error if that does not happen in time.
    pub async fn answers(
        &self,
        replica: usize,
        statement: &str,
        text: &str,
        within: Duration,
    ) -> anyhow::Result<()> {
        let replica = &self.replicas[replica];
        wait::until(within, &format!("{statement} answers {text}"), async || {
            replica.query(statement).await.is_ok_and(|answer| answer == text)
        })
        .await
    }
}

fn users() -> String {
    format!(
        "<yandex>
  <profiles><default><max_memory_usage>1000000000</max_memory_usage></default></profiles>
  <users><{USER}>
    <password>{PASSWORD}</password><networks><ip>127.0.0.1</ip></networks>
    <profile>default</profile><quota>default</quota>
  </{USER}></users>
  <quotas><default></default></quotas>
</yandex>"
    )
}

fn settings(folder: &Path, ports: Ports, cluster: &str) -> String {
    let (folder, Ports { http, native, between }) = (folder.display(), ports);
    format!(
        "<yandex>
  <logger><level>warning</level><console>1</console></logger>
  <listen_host>127.0.0.1</listen_host><interserver_http_host>127.0.0.1</interserver_http_host>
  <http_port>{http}</http_port><tcp_port>{native}</tcp_port><interserver_http_port>{between}</interserver_http_port>
  <path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><users_config>{folder}/users.xml</users_config>
  <default_profile>default</default_profile><default_database>default</default_database>
  <mark_cache_size>16777216</mark_cache_size><uncompressed_cache_size>0</uncompressed_cache_size>
  <max_concurrent_queries>50</max_concurrent_queries><max_connections>100</max_connections>
{cluster}</yandex>"
    )
}

fn cluster_settings(keeper: u16, replicas: &[Ports], own: usize) -> String {
    let replica = |ports: &Ports| {
        format!(
            "<replica><host>127.0.0.1</host><port>{}</port><user>{USER}</user><password>{PASSWORD}</password></replica>",
            ports.native
        )
    };
    let replicas: String = replicas.iter().map(replica).collect();
    format!(
        "  <zookeeper>
    <node><host>127.0.0.1</host><port>{keeper}</port></node><session_timeout_ms>5000</session_timeout_ms>
  </zookeeper>
  <macros><shard>1</shard><replica>{own}</replica></macros>
  <distributed_ddl><path>/clickhouse/task_queue/ddl</path></distributed_ddl>
  <remote_servers><{CLUSTER}><shard><internal_replication>true</internal_replication>{replicas}</shard></{CLUSTER}></remote_servers>
"
    )
}
