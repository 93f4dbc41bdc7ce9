//! Change notifications from other processes: LISTEN on a dedicated connection.
//!
//! A notification is sent when the change commits, and is lost if the connection breaks. So the
//! listener reports the instant from which it misses nothing, and reports it anew after each break.
//! A connection that does not answer in time counts as broken.

use std::{future::poll_fn, time::Duration};

use codes::LinkId;
use tokio::{
    sync::mpsc,
    time::{Instant, interval, sleep, timeout},
};
use tokio_postgres::{
    AsyncMessage, Client,
    types::{ToSql, Type},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    connect::Address,
    transaction::{DEADLINE, within},
};
use crate::{Change, Result, StoreError};

/// Subscribes to the channel. A payload is a comma-separated list of ids in decimal, or a plus sign
/// and the id of one mintable custom slug.
const LISTEN: &str = "LISTEN shortmint_links";
/// Interval between probes of the connection. Together with the deadline of a probe, a broken
/// connection is noticed within a second.
const ASKED_EVERY: Duration = Duration::from_millis(100);
/// Deadline of a probe.
const ANSWERED_WITHIN: Duration = Duration::from_millis(500);
/// Maximum time for a notification to come back to its sender.
const HEARD_WITHIN: Duration = Duration::from_secs(2);
/// Maximum number of queued notifications. With more, the connection is given up as if they had
/// been lost.
const WAITING_MAX: usize = 4_096;
/// Maximum number of notifications that are reported together.
const TOGETHER_MAX: usize = 256;
/// Back-off before the next connection attempt.
const PAUSE: Duration = Duration::from_millis(500);

/// Reports changes until the receiver is dropped. Reconnects after errors.
pub(super) async fn tell(address: &Address, changes: &mpsc::Sender<Change>) {
    let mut failures = 0_u64;
    while !changes.is_closed() {
        let begun = Instant::now();
        let Err(error) = tell_until_broken(address, changes).await;
        // An unavailable database is logged once, and not twice a second.
        failures = if begun.elapsed() > 2 * DEADLINE { 1 } else { failures + 1 };
        if failures == 1 {
            tracing::warn!(error = &error as &dyn std::error::Error, "listen for changed links");
        }
        if changes.send(Change::Away).await.is_err() {
            return;
        }
        sleep(PAUSE).await;
    }
}

/// Opens a connection that listens. The task that drives it ends with its handle.
async fn listen(address: &Address) -> Result<(Client, AbortOnDropHandle<()>, mpsc::Receiver<String>)> {
    let (client, mut connection) = within(address.connect()).await?;
    let (heard, notifications) = mpsc::channel(WAITING_MAX);
    let driver = AbortOnDropHandle::new(tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(notification) = message
                && heard.try_send(notification.payload().to_owned()).is_err()
            {
                return;
            }
        }
    }));
    ask(&client, LISTEN).await?;
    Ok((client, driver, notifications))
}

async fn tell_until_broken(
    address: &Address,
    changes: &mpsc::Sender<Change>,
) -> Result<std::convert::Infallible> {
    let (client, _driver, mut notifications) = listen(address).await?;
    prove(address, &client, &mut notifications).await?;
    let stopped = |_| StoreError::Stopped;
    changes.send(Change::Listening(Instant::now())).await.map_err(stopped)?;
    let mut asking = interval(ASKED_EVERY);
    let mut texts = Vec::with_capacity(TOGETHER_MAX);
    loop {
        tokio::select! {
            count = notifications.recv_many(&mut texts, TOGETHER_MAX) => {
                if count == 0 {
                    return Err(StoreError::Stopped);
                }
                changes.send(change(&mut texts)).await.map_err(stopped)?;
            }
            _ = asking.tick() => {
                let sent = Instant::now();
                ask(&client, "").await?;
                // Notifications sent before the answer arrived before it, and are in the queue by
                // now.
                while !notifications.is_empty() {
                    notifications.recv_many(&mut texts, TOGETHER_MAX).await;
                    changes.send(change(&mut texts)).await.map_err(stopped)?;
                }
                changes.send(Change::Heard(sent)).await.map_err(stopped)?;
            }
        }
    }
}

/// Proves once that notifications arrive; [`StoreError::Deaf`] if they do not.
pub(super) async fn prove_once(address: &Address) -> Result<()> {
    let (client, _driver, mut notifications) = listen(address).await?;
    prove(address, &client, &mut notifications).await
}

/// Sends a notification over a second connection and waits until it arrives here.
///
/// A pooler in transaction mode accepts LISTEN too, and then delivers nothing. Other notifications
/// that arrive meanwhile are discarded: no cache relies on them before [`Change::Listening`].
///
/// # Errors
/// Returns [`StoreError::Deaf`] if the notification does not arrive within [`HEARD_WITHIN`], though
/// the connection that listens answers.
async fn prove(
    address: &Address,
    listening: &Client,
    notifications: &mut mpsc::Receiver<String>,
) -> Result<()> {
    let (client, connection) = within(address.connect()).await?;
    let _driver = AbortOnDropHandle::new(tokio::spawn(connection));
    let mark = getrandom::u64().map_err(|error| StoreError::Unreachable(Box::new(error)))?;
    let mark = format!("?{mark:016x}");
    let text: (&(dyn ToSql + Sync), Type) = (&mark, Type::TEXT);
    let tell = client.query_typed("SELECT pg_notify('shortmint_links', $1)", std::slice::from_ref(&text));
    timeout(ANSWERED_WITHIN, tell).await.map_err(|_| StoreError::TimedOut)??;
    let heard = async {
        while let Some(text) = notifications.recv().await {
            if text == mark {
                return true;
            }
        }
        false
    };
    match timeout(HEARD_WITHIN, heard).await {
        Ok(true) => Ok(()),
        // A connection that broke has heard nothing either.
        _ => ask(listening, "").await.and(Err(StoreError::Deaf)),
    }
}

async fn ask(client: &Client, question: &str) -> Result<()> {
    let answered = timeout(ANSWERED_WITHIN, client.batch_execute(question)).await;
    Ok(answered.map_err(|_| StoreError::TimedOut)??)
}

/// Parses notifications. Other text than ids was not sent by this product, and concerns no link.
///
/// A plus sign marks the first link under the number of a mintable custom slug. It is evicted as
/// well: after a fail-over, the link that was lost may still be cached under that number.
fn change(texts: &mut Vec<String>) -> Change {
    let ids = texts.iter().flat_map(|text| text.strip_prefix('+').unwrap_or(text).split(','));
    let changed = ids.filter_map(|id| id.parse().ok()).map(LinkId::from_stored).collect();
    texts.clear();
    Change::Links(changed)
}
