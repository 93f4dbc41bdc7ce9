//! The bystanders: visitors who follow links at a steady rate, on a separate thread.

use std::{net::SocketAddr, thread, time::Duration};

use harness::Connection;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

/// The number of connections, used in turn.
const CONNECTIONS: u32 = 20;
/// The time after which a visitor gives up.
const GONE_AFTER: Duration = Duration::from_secs(5);

type Seen = (Vec<Duration>, usize);

/// A running load of bystanders.
pub(super) struct Bystanders(thread::JoinHandle<anyhow::Result<Seen>>);

impl Bystanders {
    pub(super) fn start(
        address: SocketAddr,
        paths: Vec<String>,
        rate: u32,
        length: Duration,
    ) -> anyhow::Result<Self> {
        let visit = move || crate::on_runtime(visit(address, paths, rate, length));
        Ok(Self(thread::Builder::new().name("bystanders".to_owned()).spawn(visit)?))
    }

    /// Waits for the bystanders and returns the latency of each redirect and the number of
    /// failures.
    pub(super) fn end(self) -> anyhow::Result<Seen> {
        self.0.join().map_err(|_| anyhow::anyhow!("the bystanders' thread failed"))?
    }
}

async fn visit(address: SocketAddr, paths: Vec<String>, rate: u32, length: Duration) -> anyhow::Result<Seen> {
    let (begun, mut tasks) = (Instant::now(), JoinSet::new());
    for number in 0..CONNECTIONS {
        let paths = paths.clone();
        let first = begun + Duration::from_secs(1) * number / rate;
        tasks.spawn(follow(
            address,
            paths,
            first,
            Duration::from_secs(1) * CONNECTIONS / rate,
            begun + length,
        ));
    }
    let (mut samples, mut failed) = (Vec::new(), 0);
    while let Some(ended) = tasks.join_next().await {
        let (of_one, failed_of_one) = ended?;
        samples.extend(of_one);
        failed += failed_of_one;
    }
    Ok((samples, failed))
}

/// Follows links at fixed intervals on one connection, and reconnects when it ends.
async fn follow(
    address: SocketAddr,
    paths: Vec<String>,
    mut due: Instant,
    pause: Duration,
    until: Instant,
) -> Seen {
    let (mut samples, mut failed, mut connection) = (Vec::new(), 0, None);
    for path in paths.iter().cycle() {
        if due >= until {
            break;
        }
        sleep_until(due).await;
        let visited = timeout(GONE_AFTER, async {
            let mut open: Connection = match connection.take() {
                Some(open) => open,
                None => Connection::open(address).await?,
            };
            let answer = open.get(path).await?;
            anyhow::Ok((open, answer.status))
        });
        match visited.await {
            Ok(Ok((open, 302))) => {
                connection = Some(open);
                samples.push(due.elapsed());
            }
            _ => failed += 1,
        }
        due += pause;
    }
    (samples, failed)
}
