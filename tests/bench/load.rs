//! A closed-loop load: each client starts its next operation after the last response.

use std::time::Duration;

use anyhow::Context;
use tokio::{task::JoinSet, time::Instant};

use crate::stats::Latencies;

/// A client of a load; many of them perform the same operation concurrently.
pub(crate) trait Client: Send + 'static {
    /// Performs one measured operation. An error ends the benchmark.
    fn operate(&mut self) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// Performs the unmeasured work between two operations. Its time lowers the rate but is part of
    /// no latency.
    fn tidy(&mut self) -> impl Future<Output = anyhow::Result<()>> + Send {
        async { Ok(()) }
    }
}

/// The duration of a round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// The time before operations count.
    pub(crate) warm_up: Duration,
    /// The time in which operations count.
    pub(crate) length: Duration,
}

/// The result of a round.
#[derive(Debug)]
pub(crate) struct Round {
    /// The rate of operations that ended within the counted time, per second.
    pub(crate) rate: f64,
    /// The latencies of those operations.
    pub(crate) latencies: Latencies,
    /// The number of all operations, warm-up included.
    pub(crate) operations: usize,
}

/// Runs all clients concurrently for one round, and returns them with its result.
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
