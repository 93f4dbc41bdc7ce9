//! The servers compared: the resolver, nginx and the bare hyper server.

use std::time::Duration;

use harness::{Launch, Process, Program, Resolver, Scratch, net, procfs, secret, wait};
use tokio::time::sleep;

use crate::{cores, named::named_values};

const STARTS_WITHIN: Duration = Duration::from_secs(10);
/// The time in which the last events are consumed: several times as long as a buffer may hold them.
const CONSUMED_WITHIN: Duration = Duration::from_millis(300);
const EVENTS: &str = "resolver_visits_total";

named_values! {
    /// The kinds of server.
    pub(super) enum Kind {
        Resolver => "resolver",
        /// A resolver that has prefix links as well.
        Prefixes => "resolver, prefix links",
        Nginx => "nginx, return 302",
        Bare => "bare hyper, a map",
    }
}

enum Running {
    Resolver(Box<Resolver>),
    Other(Process),
}

/// A server under load.
pub(super) struct Server {
    pub(super) kind: Kind,
    pub(super) url: String,
    running: Running,
}

/// Starts a resolver with the embedded issuer and SQLite: the database has no part in a redirect
/// from the cache.
pub(super) async fn resolver(scratch: &Scratch, threads: usize) -> anyhow::Result<Resolver> {
    let builder = Resolver::builder(scratch, &format!("resolver-{threads}"), &secret::random_hex()?)?;
    let resolver = builder.args(["--limit", &format!("threads={threads}")]).start().await?;
    cores::keep_on(scratch, resolver.process.pid(), 0..=threads - 1).await?;
    Ok(resolver)
}

impl Server {
    pub(super) fn of_resolver(kind: Kind, resolver: Resolver) -> Self {
        let url = resolver.api.url().to_owned();
        Self { kind, url, running: Running::Resolver(Box::new(resolver)) }
    }

    pub(super) async fn nginx(scratch: &Scratch, threads: usize) -> anyhow::Result<Self> {
        let listen = net::free_addr()?;
        let folder = scratch.folder(&format!("nginx-{threads}"))?;
        let folder = folder.display();
        let config = format!(
            "daemon off; worker_processes {threads}; pid {folder}/pid; error_log {folder}/error.log;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; keepalive_requests 1000000000; client_body_temp_path {folder}/body;\n\
             proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;\n\
             scgi_temp_path {folder}/scgi;\n\
             server {{ listen {listen} reuseport; return 302 https://example.org/some/where/1; }} }}\n"
        );
        let config = scratch.file(&format!("nginx-{threads}.conf"), &config)?;
        let launch = Launch::new(scratch, &format!("nginx-{threads}"), Program::Taskset.path()?);
        let launch = launch.args(["-c", &cores::list(0..=threads - 1)]).arg(Program::Nginx.path()?);
        let launch = launch.args(["-e", "stderr", "-c"]).arg(&config);
        Self::started(Kind::Nginx, listen, launch.spawn()?).await
    }

    pub(super) async fn bare(scratch: &Scratch, threads: usize, paths: &[String]) -> anyhow::Result<Self> {
        let listen = net::free_addr()?;
        let paths = scratch.file(&format!("bare-{threads}.txt"), &(paths.join("\n") + "\n"))?;
        let launch = Launch::new(scratch, &format!("bare-{threads}"), Program::Taskset.path()?);
        let launch = launch
            .args(["-c", &cores::list(0..=threads - 1)])
            .arg(std::env::current_exe()?)
            .arg("bare-hyper");
        let launch =
            launch.args(["--listen", &listen.to_string(), "--threads", &threads.to_string(), "--paths"]);
        Self::started(Kind::Bare, listen, launch.arg(&paths).spawn()?).await
    }

    async fn started(kind: Kind, listen: std::net::SocketAddr, process: Process) -> anyhow::Result<Self> {
        let listens = async || tokio::net::TcpStream::connect(listen).await.is_ok();
        wait::until(STARTS_WITHIN, kind.name(), listens).await?;
        Ok(Self { kind, url: format!("http://{listen}"), running: Running::Other(process) })
    }

    /// Returns the server's process and its children: nginx works in its children.
    fn processes(&self) -> Vec<nix::unistd::Pid> {
        let pid = match &self.running {
            Running::Resolver(resolver) => resolver.process.pid(),
            Running::Other(process) => process.pid(),
        };
        let mut all = vec![pid];
        all.extend(procfs::children(pid).into_iter().map(|seen| seen.pid));
        all
    }

    /// Returns the processor time that all its processes have used so far.
    pub(super) fn cpu(&self) -> Duration {
        self.processes().into_iter().filter_map(procfs::cpu_time).sum()
    }

    /// Returns the resident memory of all its processes, in bytes.
    pub(super) fn resident(&self) -> u64 {
        self.processes().into_iter().filter_map(procfs::resident).sum()
    }

    /// Returns the number of events consumed so far, after a pause for those in flight; 0 for
    /// servers without events.
    pub(super) async fn events(&self) -> f64 {
        match &self.running {
            Running::Resolver(resolver) => {
                sleep(CONSUMED_WITHIN).await;
                resolver.metric(EVENTS).await.unwrap_or_default()
            }
            Running::Other(_) => 0.0,
        }
    }
}

impl Drop for Server {
    /// Sends SIGTERM, on which nginx ends its children; SIGKILL would orphan them.
    fn drop(&mut self) {
        if let Running::Other(process) = &mut self.running
            && process.terminate().is_ok()
        {
            process.wait_exit_blocking(STARTS_WITHIN);
        }
    }
}
