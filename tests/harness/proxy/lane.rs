//! One direction of a proxied connection.
//!
//! A reader stamps each chunk with the time at which it may leave, and a writer holds it until
//! then. The bounded queue between them produces a true delay; sleeping between read and write
//! would lower the rate instead.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::Flow;

const CHUNK_BYTES: usize = 16 * 1024;
const QUEUE_CHUNKS: usize = 64;

/// The error that resets the connection on both sides.
#[derive(Debug)]
pub(super) struct Broken;

/// Bytes on their way; an empty chunk is the end of the stream.
struct Chunk {
    due: Instant,
    bytes: Vec<u8>,
}

/// Forwards bytes until the end of the stream has been forwarded.
///
/// # Errors
/// Returns [`Broken`] if a socket fails, the stream lost bytes to a cut, or the proxy is dropped.
pub(super) async fn carry(
    flow: watch::Receiver<Flow>,
    from: ReadHalf<'_>,
    to: WriteHalf<'_>,
) -> Result<(), Broken> {
    let (queue, chunks) = mpsc::channel(QUEUE_CHUNKS);
    tokio::try_join!(read_all(flow.clone(), from, queue), write_all(flow, chunks, to))?;
    Ok(())
}

async fn read_all(
    mut flow: watch::Receiver<Flow>,
    mut from: ReadHalf<'_>,
    queue: mpsc::Sender<Chunk>,
) -> Result<(), Broken> {
    loop {
        if *flow.borrow_and_update() == Flow::Stall {
            changed(&mut flow).await?;
            continue;
        }
        let mut bytes = vec![0; CHUNK_BYTES];
        let read = tokio::select! {
            read = from.read(&mut bytes) => read,
            flow = changed(&mut flow) => { flow?; continue; }
        };
        let now = *flow.borrow();
        let delay = match now {
            Flow::Cut => return discard(flow, from).await,
            Flow::Delay(delay) => delay,
            Flow::Pass | Flow::Stall => std::time::Duration::ZERO,
        };
        bytes.truncate(read.map_err(|_| Broken)?);
        let is_end = bytes.is_empty();
        queue.send(Chunk { due: Instant::now() + delay, bytes }).await.map_err(|_| Broken)?;
        if is_end {
            return Ok(());
        }
    }
}

/// Discards everything while the cut lasts. The stream has a hole by then, so it always ends
/// broken.
async fn discard(mut flow: watch::Receiver<Flow>, mut from: ReadHalf<'_>) -> Result<(), Broken> {
    let mut bytes = vec![0; CHUNK_BYTES];
    let swallow = async { while matches!(from.read(&mut bytes).await, Ok(1..)) {} };
    let mut again = flow.clone();
    tokio::select! {
        // The end of the stream or a reset is not forwarded either.
        () = swallow => healed(&mut again).await,
        () = healed(&mut flow) => {}
    }
    Err(Broken)
}

async fn write_all(
    mut flow: watch::Receiver<Flow>,
    mut chunks: mpsc::Receiver<Chunk>,
    mut to: WriteHalf<'_>,
) -> Result<(), Broken> {
    while let Some(chunk) = chunks.recv().await {
        may_leave(&mut flow, chunk.due).await?;
        if chunk.bytes.is_empty() {
            return to.shutdown().await.map_err(|_| Broken);
        }
        let mut rest = &chunk.bytes[..];
        while !rest.is_empty() {
            may_leave(&mut flow, chunk.due).await?;
            tokio::select! {
                written = to.write(rest) => rest = &rest[written.map_err(|_| Broken)?..],
                flow = changed(&mut flow) => flow?,
            }
        }
    }
    Ok(())
}

/// Waits until bytes with this due time may be written.
async fn may_leave(flow: &mut watch::Receiver<Flow>, due: Instant) -> Result<(), Broken> {
    loop {
        let now = *flow.borrow_and_update();
        match now {
            Flow::Pass => return Ok(()),
            Flow::Delay(_) if due <= Instant::now() => return Ok(()),
            Flow::Delay(_) => tokio::select! {
                () = sleep_until(due) => {}
                flow = changed(flow) => flow?,
            },
            Flow::Stall => changed(flow).await?,
            Flow::Cut => {
                healed(flow).await;
                return Err(Broken);
            }
        }
    }
}

/// Waits for the next change of the flow; fails if the proxy is gone.
async fn changed(flow: &mut watch::Receiver<Flow>) -> Result<(), Broken> {
    flow.changed().await.map_err(|_| Broken)
}

/// Waits for the end of a cut, or of the proxy.
async fn healed(flow: &mut watch::Receiver<Flow>) {
    drop(flow.wait_for(|flow| *flow != Flow::Cut).await);
}
