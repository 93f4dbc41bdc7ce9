//! What the issuer and the resolver have in common: a process, an admin listener, readiness and metrics.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use reqwest::Client;

use crate::http::{self, Answer};
use crate::launch::Launch;
use crate::metrics;
use crate::process::Process;

/// How long a daemon may take from its start to readiness.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// The admin listener answers at once or not at all: a paused process must not hold up whoever asks around.
const ADMIN_ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// One of our daemons.
#[derive(Debug)]
pub struct Daemon {
    /// Its process: to kill, pause, terminate, or read the logs of.
    pub process: Process,
    admin: SocketAddr,
    http: Client,
}

impl Daemon {
    /// Starts it and waits until it is ready.
    ///
    /// # Errors
    /// It cannot be started or is not ready in time; the message holds the end of its log.
    pub async fn start(launch: Launch, admin: SocketAddr) -> anyhow::Result<Self> {
        let mut daemon = Self { process: launch.spawn()?, admin, http: http::client()? };
        daemon.wait_ready().await?;
        Ok(daemon)
    }

    /// The root of the admin listener, without a slash at the end.
    pub fn admin_url(&self) -> String {
        format!("http://{}", self.admin)
    }

    /// The HTTP client for this daemon.
    pub fn http(&self) -> &Client {
        &self.http
    }

    /// Whether `/readyz` answers 200 just now.
    pub async fn is_ready(&self) -> bool {
        is_ready(&self.http, &self.admin_url()).await
    }

    /// Waits until `/readyz` answers 200.
    ///
    /// # Errors
    /// It ends instead, or is not ready in time; the message holds the end of its log.
    pub async fn wait_ready(&mut self) -> anyhow::Result<()> {
        let (http, admin_url) = (self.http.clone(), self.admin_url());
        self.process.wait_ready(READY_WITHIN, async || is_ready(&http, &admin_url).await).await
    }

    /// Starts it again with the same arguments, killing it first if it runs, and waits until it is ready.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn restart(&mut self) -> anyhow::Result<()> {
        self.process.respawn()?;
        self.wait_ready().await
    }

    /// SIGTERM, and waits for a clean end.
    ///
    /// # Errors
    /// It does not end in time, or not with exit code 0; the message holds the end of its log.
    pub async fn stop(&mut self, within: Duration) -> anyhow::Result<()> {
        self.process.terminate()?;
        let status = self.process.wait_exit(within).await?;
        anyhow::ensure!(status.success(), "ended with {status}; {}", self.process.tail());
        Ok(())
    }

    /// The page of metrics.
    ///
    /// # Errors
    /// The admin listener does not answer.
    pub async fn metrics(&self) -> anyhow::Result<String> {
        let request = self.http.get(format!("{}/metrics", self.admin_url())).timeout(ADMIN_ANSWER_WITHIN);
        Ok(Answer::to(request).await.context("read the metrics")?.success()?.body)
    }

    /// The sum of a metric over all its label sets; `None` when there is none, or nobody answers.
    pub async fn metric(&self, name: &str) -> Option<f64> {
        metrics::sum(&self.metrics().await.ok()?, name)
    }

    /// The sum over the label sets that contain `label`, as in `result="ok"`.
    pub async fn metric_where(&self, name: &str, label: &str) -> Option<f64> {
        metrics::sum_where(&self.metrics().await.ok()?, name, label)
    }
}

async fn is_ready(http: &Client, admin_url: &str) -> bool {
    let request = http.get(format!("{admin_url}/readyz")).timeout(ADMIN_ANSWER_WITHIN);
    Answer::to(request).await.is_ok_and(|answer| answer.status == 200)
}
