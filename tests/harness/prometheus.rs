//! A Prometheus server that scrapes daemons, and evaluates rules, every second.

use std::{collections::BTreeMap, net::SocketAddr, path::Path, time::Duration};

use anyhow::Context as _;
use reqwest::Client;
use serde_json::{Value, json};

use crate::{Daemon, Launch, Program, Scratch, net, process::Process};

const READY_WITHIN: Duration = Duration::from_secs(30);
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// A running Prometheus.
pub struct Prometheus {
    addr: SocketAddr,
    http: Client,
    _process: Process,
}

/// An alert that is pending or fires.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct Alert {
    /// Its labels, with its name in `alertname`.
    pub labels: BTreeMap<String, String>,
    /// `pending` or `firing`.
    pub state: String,
}

impl Alert {
    /// Returns a label; empty if it has none of this name.
    pub fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }
}

impl Prometheus {
    /// Starts a server that scrapes these daemons as one job, `shortmint`, and waits until it is
    /// ready.
    ///
    /// # Errors
    /// Returns an error if the server is not ready in time.
    pub async fn start(scratch: &Scratch, daemons: &[&Daemon]) -> anyhow::Result<Self> {
        let target = |daemon: &&Daemon| daemon.admin_url().trim_start_matches("http://").to_owned();
        let targets: Vec<String> = daemons.iter().map(target).collect();
        let scrape = json!([{ "job_name": "shortmint", "static_configs": [{ "targets": targets }] }]);
        Self::with(scratch, &scrape, &[]).await
    }

    /// Starts a server with these members of `scrape_configs` and these files of rules, and waits
    /// until it is ready.
    ///
    /// # Errors
    /// Returns an error if the server is not ready in time; the message contains the end of its
    /// log.
    pub async fn with(scratch: &Scratch, scrape: &Value, rules: &[&Path]) -> anyhow::Result<Self> {
        let addr = net::free_addr()?;
        let every = json!({
            "scrape_interval": "1s", "scrape_timeout": "900ms", "evaluation_interval": "1s",
        });
        // JSON is YAML.
        let config = json!({ "global": every, "scrape_configs": scrape, "rule_files": rules });
        let file = scratch.file("prometheus.yml", &config.to_string())?;
        let folder = scratch.folder(&scratch.stem("prometheus"))?;
        let launch = Launch::new(scratch, "prometheus", Program::Prometheus.path()?)
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.display()))
            .arg(format!("--web.listen-address={addr}"));
        let (mut process, http) = (launch.spawn()?, Client::new());
        let is_ready = async || {
            let url = format!("http://{addr}/-/ready");
            http.get(url).send().await.is_ok_and(|answer| answer.status().is_success())
        };
        process.wait_ready(READY_WITHIN, is_ready).await?;
        Ok(Self { addr, http, _process: process })
    }

    /// Returns the alerts that are pending or fire.
    ///
    /// # Errors
    /// Returns an error if the server does not answer.
    pub async fn alerts(&self) -> anyhow::Result<Vec<Alert>> {
        let answer = self.http.get(format!("http://{}/api/v1/alerts", self.addr)).timeout(ANSWER_WITHIN);
        let mut answer: Value = answer.send().await?.json().await?;
        Ok(serde_json::from_value(answer["data"]["alerts"].take())?)
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
