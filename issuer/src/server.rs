//! The issuer as a daemon. Serves the admin listener, waits for etcd, then runs the rest.

use std::{io, sync::Arc, time::Duration};

use daemon::{
    Admin, Recorder, Refresh, Share, TaskSupervisor, bind,
    traces::{TraceLayer, Traces},
};
use etcd_client::Client;
use futures_util::Stream;
use limits::{
    Connections, ListenerLimits, Resources,
    budgets::issuer_connections,
    grpc::{CallLayer, GrpcStream, incoming, peer_of},
};
use proto::issuer::v1::issuer_server::IssuerServer;
use tls::{ClientTls, ServerTls};
use tokio::{
    net::TcpListener,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tonic::transport::Server;

use crate::{
    Error,
    config::Config,
    driver::{Driver, DriverChannels},
    election::Election,
    etcd_channel,
    grpc::IssuerService,
    ledger::etcd::{EtcdLedger, leader_key},
    metrics::Metrics,
    observer::Observer,
};

const ETCD_DEADLINE: Duration = Duration::from_secs(2);
/// Maximum size of a health or reflection request, in bytes.
const QUESTION_BYTES: usize = 4 * 1024;
/// Maximum total size of a call's headers, in bytes.
const HEADER_BYTES: u32 = 8 * 1024;
/// Time limit for each of two steps at shutdown: the resignation, and the end of the calls.
const STOP_DEADLINE: Duration = Duration::from_secs(5);

/// The sockets that the daemon serves on. A test binds port 0.
pub struct Listeners {
    /// gRPC for resolvers.
    pub grpc: TcpListener,
    /// HTTP for probes and Prometheus.
    pub admin: TcpListener,
}

impl Listeners {
    /// Binds the addresses of the configuration.
    pub fn bind(config: &Config) -> Result<Self, Error> {
        let bound = |flag, address| {
            bind(address).map_err(|source| Error::Bind { flag, address: address.to_string(), source })
        };
        Ok(Self {
            grpc: bound("--listen", config.listen)?,
            admin: bound("--admin-listen", config.admin_listen)?,
        })
    }
}

/// Runs until `shutdown` is cancelled. Then it finishes the transaction in flight, resigns
/// leadership, and ends the calls. Returns an error if etcd does not answer by the start deadline,
/// or if serving fails.
pub async fn run(config: Config, listeners: Listeners, shutdown: CancellationToken) -> Result<(), Error> {
    let connections = issuer_connections(&Resources::claim());
    let recorder = Recorder::new();
    let metrics = Metrics::new(&recorder);
    let traces = traces(&config)?;
    let tls = config.tls.listener()?;
    let to_etcd = config.tls.etcd(&config.etcd)?;
    let probed = leader_key(&config.cluster);
    let client = etcd_channel::to_all(&config.etcd, ETCD_DEADLINE, to_etcd.as_ref(), &probed).await?;
    let to_one = etcd_channel::to_one(&config.etcd, ETCD_DEADLINE, to_etcd.as_ref()).await?;
    let ledger = EtcdLedger::new(to_one.clone(), &config.cluster, ETCD_DEADLINE);
    let (driver, ends) = Driver::new(config.limits(), Arc::new(ledger.clone()), metrics.clone());

    let observer = Arc::new(Observer::new(ends.handle.clone(), metrics.clone()));
    // All that an issuer does runs on the threads that answer probes.
    let supervisor = TaskSupervisor::default();
    // Readiness does not mean leadership. Otherwise followers would never be ready, and a rolling
    // update would never finish.
    let (standing, stopping) = (ends.handle.standing.clone(), shutdown.clone());
    let admin = Admin {
        daemon: "issuer",
        recorder,
        ready: Arc::new(move || standing.borrow().informed && !stopping.is_cancelled()),
        supervisor: supervisor.clone(),
        refresh: refresh(Arc::clone(&observer), metrics.clone(), (tls.clone(), to_etcd)),
    };
    let _observing = observer.start();
    let admin_stop = CancellationToken::new();
    let admin_task = tokio::spawn(admin.serve(listeners.admin, admin_stop.clone()));
    wait_for_etcd(&config, [&client, &to_one], &shutdown).await?;

    supervisor.spawn("driver", driver.run(shutdown.clone()));
    let DriverChannels { handle, elections, abdications } = ends;
    let election = Election {
        client,
        ledger,
        advertise: config.advertise(),
        lease_ttl: config.lease_ttl,
        elections,
        abdications,
        shutdown: shutdown.clone(),
        metrics: metrics.election(),
    };
    let election = supervisor.spawn("election", election.run());
    let connections = Connections::new("grpc", ListenerLimits::grpc(connections));
    let incoming = incoming(listeners.grpc, connections, tls);
    let service = IssuerService::server(
        handle,
        config.advertise(),
        config.limits().holder_ttl_ms,
        &config.tls.tls_client_names,
        observer,
    );
    let served = tokio::select! {
        served = serve(&config, incoming, (service, traces.clone()), election, shutdown) => served,
        task = supervisor.first_failure() => Err(Error::TaskFailed(task)),
    };
    if let Some(traces) = traces {
        traces.stop().await;
    }
    admin_stop.cancel();
    let _ = admin_task.await;
    served
}

/// Starts to send traces, if there is a collector. An issuer begins none.
fn traces(config: &Config) -> Result<Option<Arc<Traces>>, Error> {
    let Some(otlp) = &config.otlp else { return Ok(None) };
    let started = Traces::start(otlp, Share::NONE, ("shortmint-issuer", config.advertise().as_str()));
    started.map(Some).map_err(|error| Error::config("--otlp", otlp, daemon::reasons(&error)))
}

/// Serves calls until shutdown. Leadership is handed over before the server stops, so that late
/// calls are pointed to the next leader.
async fn serve(
    config: &Config,
    incoming: impl Stream<Item = io::Result<GrpcStream>> + Send + 'static,
    (service, traces): (IssuerServer<IssuerService>, Option<Arc<Traces>>),
    election: JoinHandle<()>,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_serving::<IssuerServer<IssuerService>>().await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .map_err(|_| Error::Internal("the descriptors made at build time do not parse"))?;

    let stop = CancellationToken::new();
    let health_service = health_service.max_decoding_message_size(QUESTION_BYTES);
    let reflection = reflection.max_decoding_message_size(QUESTION_BYTES);
    let server = Server::builder()
        .http2_keepalive_interval(Some(Duration::from_secs(10)))
        .http2_keepalive_timeout(Some(Duration::from_secs(5)))
        .max_concurrent_streams(1_024)
        .http2_max_header_list_size(HEADER_BYTES)
        .layer(TraceLayer(traces))
        .layer(CallLayer::new(Arc::new(peer_of)))
        .add_service(service)
        .add_service(health_service)
        .add_service(reflection)
        .serve_with_incoming_shutdown(incoming, stop.clone().cancelled_owned());
    tracing::info!(listen = %config.listen, admin = %config.admin_listen, cluster = config.cluster, "serving");
    let mut server = AbortOnDropHandle::new(tokio::spawn(server));
    tokio::select! {
        ended = &mut server => return ended.map_err(|_| Error::Internal("the server's task failed"))?.map_err(Error::from),
        () = shutdown.cancelled() => {}
    }
    if timeout(STOP_DEADLINE, election).await.is_err() {
        tracing::warn!("etcd did not confirm the resignation in time: the lease will run out by itself");
    }
    stop.cancel();
    // A silent client can block a graceful stop without end (hyper #4170).
    let _ = timeout(STOP_DEADLINE, server).await;
    tracing::info!("stopped");
    Ok(())
}

/// Waits until etcd answers one of the clients, up to the start deadline. The admin listener serves
/// meanwhile. The second client is that of one member, which says why it is not connected.
async fn wait_for_etcd(
    config: &Config,
    clients: [&Client; 2],
    shutdown: &CancellationToken,
) -> Result<(), Error> {
    let until = Instant::now() + config.start_deadline;
    loop {
        let [all, one] = clients.map(|client| {
            let mut client = client.kv_client();
            async move { timeout(ETCD_DEADLINE, client.get(leader_key(&config.cluster), None)).await }
        });
        let last = match tokio::join!(all, one) {
            (Ok(Ok(_)), _) | (_, Ok(Ok(_))) => return Ok(()),
            (_, Ok(Err(error))) | (Ok(Err(error)), _) => Some(Box::from(error)),
            (Err(_), Err(_)) => None,
        };
        if shutdown.is_cancelled() {
            return Ok(());
        }
        if Instant::now() >= until {
            let (address, seconds) = (config.etcd.join(","), config.start_deadline.as_secs());
            return Err(Error::Unreachable { flag: "--etcd", address, seconds, source: last });
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Returns the callback that refreshes gauges just before a metrics page is rendered.
fn refresh(
    observer: Arc<Observer>,
    metrics: Metrics,
    (server, to_etcd): (Option<ServerTls>, Option<ClientTls>),
) -> Refresh {
    Arc::new(move || {
        metrics.certificate("server", server.as_ref().and_then(ServerTls::certificate));
        metrics.certificate("etcd", to_etcd.as_ref().and_then(ClientTls::certificate));
        metrics.show_etcd();
        let observer = Arc::clone(&observer);
        Box::pin(async move { observer.observe().await })
    })
}
