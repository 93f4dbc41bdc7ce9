//! A real proxy in front of a resolver: Envoy, as an ingress has it.

use std::{net::SocketAddr, time::Duration};

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::{installed, launch::Launch, net, process::Process, scratch::Scratch, wait};

const START_WITHIN: Duration = Duration::from_secs(30);
const TYPES: &str = "type.googleapis.com/envoy.extensions";

/// A running Envoy, which passes requests on and names their clients in `X-Forwarded-For`.
#[derive(Debug)]
pub struct Envoy {
    addr: SocketAddr,
    _process: Process,
}

impl Envoy {
    /// Starts a proxy in front of a server. With a collector, each request begins a trace there.
    ///
    /// # Errors
    /// Returns an error if Envoy is not installed or does not listen in time.
    pub async fn start(
        scratch: &Scratch,
        server: SocketAddr,
        collector: Option<SocketAddr>,
    ) -> anyhow::Result<Self> {
        let addr = net::free_addr()?;
        let config = scratch.file("envoy.json", &config(addr, server, collector).to_string())?;
        let program = installed::in_venv("envoy")?;
        // With a base id of its own, it shares no memory with another Envoy of this machine.
        let launch = Launch::new(scratch, "envoy", program).arg("--use-dynamic-base-id");
        let process = launch.args(["--concurrency", "1", "--config-path"]).arg(config).spawn()?;
        let envoy = Self { addr, _process: process };
        wait::until(START_WITHIN, "Envoy listens", async || TcpStream::connect(addr).await.is_ok())
            .await
            .with_context(|| envoy._process.tail())?;
        Ok(envoy)
    }

    /// Returns the address that it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

fn config(listen: SocketAddr, server: SocketAddr, collector: Option<SocketAddr>) -> Value {
    let options = format!("{TYPES}.upstreams.http.v3.HttpProtocolOptions");
    let http2 = json!({ "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": options, "explicit_http_config": { "http2_protocol_options": {} },
    }});
    let mut clusters = vec![cluster("server", server, json!({}))];
    clusters.extend(collector.map(|collector| cluster("collector", collector, http2)));
    let mut manager = json!({
        "@type": format!("{TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager"),
        "stat_prefix": "in",
        "use_remote_address": true,
        "route_config": { "virtual_hosts": [{
            "name": "all", "domains": ["*"],
            "routes": [{ "match": { "prefix": "/" }, "route": { "cluster": "server" } }],
        }] },
        "http_filters": [{
            "name": "envoy.filters.http.router",
            "typed_config": { "@type": format!("{TYPES}.filters.http.router.v3.Router") },
        }],
    });
    if collector.is_some() {
        manager["tracing"] = json!({ "spawn_upstream_span": true, "provider": {
            "name": "envoy.tracers.opentelemetry", "typed_config": {
                "@type": "type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig",
                "grpc_service": { "envoy_grpc": { "cluster_name": "collector" } },
                "service_name": "proxy",
            },
        }});
    }
    json!({ "static_resources": { "clusters": clusters, "listeners": [{
        "name": "in", "address": address(listen),
        "filter_chains": [{ "filters": [{
            "name": "envoy.filters.network.http_connection_manager", "typed_config": manager,
        }] }],
    }] } })
}

fn cluster(name: &str, to: SocketAddr, options: Value) -> Value {
    let endpoint = json!({ "lb_endpoints": [{ "endpoint": { "address": address(to) } }] });
    json!({
        "name": name, "connect_timeout": "2s", "typed_extension_protocol_options": options,
        "load_assignment": { "cluster_name": name, "endpoints": [endpoint] },
    })
}

fn address(of: SocketAddr) -> Value {
    json!({ "socket_address": { "address": of.ip().to_string(), "port_value": of.port() } })
}
