//! The common part of issuer and resolver: a process, an admin listener, readiness and metrics.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use reqwest::Client;

use crate::http::{self, Answer};
use crate::launch::Launch;
use crate::metrics;
use crate::process::Process;

/// The time limit from a daemon's start to readiness. A resolver that gets no numbers is ready
/// after its `--start-deadline` of 30 s.
const READY_WITHIN: Duration = Duration::from_secs(45);

/// The time limit for a response of the admin listener. It responds at once or not at all, and a
/// paused process must not delay a caller that asks several.
const ADMIN_ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// A running issuer or resolver.
#[derive(Debug)]
pub struct Daemon {
    /// The process: to kill, pause or terminate it, or to read its logs.
    pub process: Process,
    admin: SocketAddr,
    http: Client,
}

impl Daemon {
    /// Starts the daemon and waits until it is ready.
    ///
    /// # Errors
    /// Returns an error if the daemon cannot be started or is not ready in time; the message
    /// contains the end of its log.
    pub async fn start(launch: Launch, admin: SocketAddr) -> anyhow::Result<Self> {
        let mut daemon = Self { process: launch.spawn()?, admin, http: http::client()? };
        daemon.wait_ready().await?;
        Ok(daemon)
    }

    /// Returns the root URL of the admin listener, without a trailing slash.
    pub fn admin_url(&self) -> String {
        format!("http://{}", self.admin)
    }

    /// Returns the HTTP client for this daemon.
    pub fn http(&self) -> &Client {
        &self.http
    }

    /// Returns whether `/readyz` currently responds with 200.
    pub async fn is_ready(&self) -> bool {
        is_ready(&self.http, &self.admin_url()).await
    }

    /// Waits until `/readyz` responds with 200.
    ///
    /// # Errors
    /// Returns an error if the daemon ends or is not ready in time; the message contains the end of
    /// its log.
    pub async fn wait_ready(&mut self) -> anyhow::Result<()> {
        let (http, admin_url) = (self.http.clone(), self.admin_url());
        self.process.wait_ready(READY_WITHIN, async || is_ready(&http, &admin_url).await).await
    }

    /// Restarts the daemon with the same arguments, killing it first if it runs, and waits until it
    /// is ready.
    ///
    /// # Errors
    /// See [`Self::start`].
    pub async fn restart(&mut self) -> anyhow::Result<()> {
        self.process.respawn()?;
        self.wait_ready().await
    }

    /// Sends SIGTERM and waits for a clean exit.
    ///
    /// # Errors
    /// Returns an error if the daemon does not exit in time, or not with exit code 0; the message
    /// contains the end of its log.
    pub async fn stop(&mut self, within: Duration) -> anyhow::Result<()> {
        self.process.terminate()?;
        let status = self.process.wait_exit(within).await?;
        anyhow::ensure!(status.success(), "ended with {status}; {}", self.process.tail());
        Ok(())
    }

    /// Returns the metrics page.
    ///
    /// # Errors
    /// Returns an error if the admin listener does not respond with 200.
    pub async fn metrics(&self) -> anyhow::Result<String> {
        let request = self.http.get(format!("{}/metrics", self.admin_url())).timeout(ADMIN_ANSWER_WITHIN);
        Ok(Answer::to(request).await.context("read the metrics")?.success()?.body)
    }

    /// Returns the sum of a metric over all its label sets; `None` if there is no such metric or no
    /// response.
    pub async fn metric(&self, name: &str) -> Option<f64> {
        metrics::sum(&self.metrics().await.ok()?, name)
    }

    /// Returns the sum of a metric over the label sets that contain `label`, for example
    /// `result="ok"`.
    pub async fn metric_where(&self, name: &str, label: &str) -> Option<f64> {
        metrics::sum_where(&self.metrics().await.ok()?, name, label)
    }
}

async fn is_ready(http: &Client, admin_url: &str) -> bool {
    let request = http.get(format!("{admin_url}/readyz")).timeout(ADMIN_ANSWER_WITHIN);
    Answer::to(request).await.is_ok_and(|answer| answer.status == 200)
}
