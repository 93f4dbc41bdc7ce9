//! A Prometheus server that scrapes daemons every second.

use std::{net::SocketAddr, time::Duration};

use anyhow::Context as _;
use reqwest::Client;
use serde_json::{Value, json};

use crate::{Daemon, Launch, Program, Scratch, net, process::Process, wait};

const READY_WITHIN: Duration = Duration::from_secs(30);

/// A running Prometheus.
pub struct Prometheus {
    addr: SocketAddr,
    http: Client,
    _process: Process,
}

impl Prometheus {
    /// Starts a server that scrapes these daemons as one job, `shortmint`, and waits until it is
    /// ready.
    ///
    /// # Errors
    /// Returns an error if the server is not ready in time.
    pub async fn start(scratch: &Scratch, daemons: &[&Daemon]) -> anyhow::Result<Self> {
        let addr = net::free_addr()?;
        let target = |daemon: &&Daemon| daemon.admin_url().trim_start_matches("http://").to_owned();
        let targets: Vec<String> = daemons.iter().map(target).collect();
        // JSON is YAML.
        let config = json!({
            "global": { "scrape_interval": "1s", "scrape_timeout": "900ms" },
            "scrape_configs": [{ "job_name": "shortmint", "static_configs": [{ "targets": targets }] }],
        });
        let file = scratch.file("prometheus.yml", &config.to_string())?;
        let folder = scratch.folder("prometheus")?;
        let launch = Launch::new(scratch, "prometheus", Program::Prometheus.path()?)
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.display()))
            .arg(format!("--web.listen-address={addr}"));
        let prometheus = Self { addr, http: Client::new(), _process: launch.spawn()? };
        wait::until(READY_WITHIN, "Prometheus is ready", async || {
            let url = format!("http://{addr}/-/ready");
            prometheus.http.get(url).send().await.is_ok_and(|answer| answer.status().is_success())
        })
        .await?;
        Ok(prometheus)
    }

    /// Evaluates an expression, and returns the value of each series.
    ///
    /// # Errors
    /// Returns an error if the server does not answer with an instant vector.
    pub async fn query(&self, expression: &str) -> anyhow::Result<Vec<f64>> {
        let url = format!("http://{}/api/v1/query", self.addr);
        let url = reqwest::Url::parse_with_params(&url, [("query", expression)])?;
        let answer: Value = self.http.get(url).send().await?.json().await?;
        let series =
            answer["data"]["result"].as_array().with_context(|| format!("{expression}: {answer}"))?;
        let value = |series: &Value| series["value"][1].as_str().and_then(|text| text.parse().ok());
        series.iter().map(value).collect::<Option<_>>().with_context(|| format!("{expression}: {answer}"))
    }
}
