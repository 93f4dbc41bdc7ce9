//! Closed-loop load: each client sends its next operation when the last one was answered.

use std::time::Duration;

use anyhow::Context;
use tokio::{task::JoinSet, time::Instant};

use crate::stats::Latencies;

/// One of many that do the same.
pub(crate) trait Client: Send + 'static {
    /// One measured operation; an error ends the bench.
    fn operate(&mut self) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// What has to be done between two operations. Its time lowers the rate, and is in no latency.
    fn tidy(&mut self) -> impl Future<Output = anyhow::Result<()>> + Send {
        async { Ok(()) }
    }
}

/// How long a round takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// Before anything counts.
    pub(crate) warm_up: Duration,
    /// What counts.
    pub(crate) length: Duration,
}

/// What a round came to.
#[derive(Debug)]
pub(crate) struct Round {
    /// Operations that ended within the length, per second.
    pub(crate) rate: f64,
    /// Their latencies.
    pub(crate) latencies: Latencies,
    /// Operations of the warm-up too.
    pub(crate) operations: usize,
}

/// Lets all clients work side by side, and gives them back.
pub(crate) async fn drive<C: Client>(clients: Vec<C>, span: Span) -> anyhow::Result<(Vec<C>, Round)> {
    let from = Instant::now() + span.warm_up;
    let until = from + span.length;
    let mut tasks = JoinSet::new();
    for client in clients {
        tasks.spawn(work(client, from, until));
    }
    let (mut clients, mut samples, mut operations) = (Vec::new(), Vec::new(), 0);
    while let Some(ended) = tasks.join_next().await {
        let (client, taken, count) = ended.context("a client's task")??;
        clients.push(client);
        samples.extend(taken);
        operations += count;
    }
    let latencies = Latencies::new(samples);
    let count = u32::try_from(latencies.len()).context("count the operations of a round")?;
    Ok((clients, Round { rate: f64::from(count) / span.length.as_secs_f64(), latencies, operations }))
}

async fn work<C: Client>(
    mut client: C,
    from: Instant,
    until: Instant,
) -> anyhow::Result<(C, Vec<Duration>, usize)> {
    let (mut samples, mut count) = (Vec::new(), 0);
    let mut sent = Instant::now();
    while sent < until {
        client.operate().await?;
        let answered = Instant::now();
        count += 1;
        if answered >= from && answered < until {
            samples.push(answered - sent);
        }
        client.tidy().await?;
        sent = Instant::now();
    }
    Ok((client, samples, count))
}
