//! Beats (keep-alives) to the issuer: they keep this holder's blocks its own, and report the
//! numbers in hand.
//!
//! Beats run in a task of their own, so that a database that hangs or an allocation that waits
//! never silences a living holder. Near the end of a number space the answers name the keyspaces in
//! which a holder starves.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use holder::{Refused, Session};
use numbers::{Mark, Namespace};
use proto::issuer::v1 as pb;
use tokio::time::{sleep, timeout};
use tokio_stream::StreamExt;

use super::{history::Seen, holder_state::Supplier};
use crate::{Minting, Stock};

/// The pause after a stream ended or was refused.
const PAUSE: Duration = Duration::from_millis(200);

/// The minimum time that the answer to a beat waits for the database's mark.
const MARK_PATIENCE: Duration = Duration::from_millis(500);

/// The register as seen by the beats without an answer yet, in the order they were sent.
type Sent = Arc<Mutex<VecDeque<Seen>>>;

/// Returns how long the reported numbers of a namespace last, in milliseconds; `None` if none was
/// claimed of late.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; `as` saturates")]
fn lasts_ms(mintings: &[Arc<Minting>], namespace: &Namespace, in_hand: u64) -> Option<u64> {
    let minting = mintings.iter().find(|minting| minting.namespace == *namespace)?;
    let reported = Stock { in_hand, ..minting.stock() };
    (reported.rate > 0.0).then(|| (reported.supply_seconds() * 1_000.0) as u64)
}

impl Supplier {
    /// Sends beats while there is a registration, over one stream after another. Ends when this
    /// holder is lost, or when it is dropped.
    pub(super) async fn send_beats(self: Arc<Self>) {
        let mut sessions = self.session.subscribe();
        while self.closing.lost.borrow().is_none() {
            let session = *sessions.borrow_and_update();
            let Some(session) = session else {
                // This task owns the sender, so the channel cannot be closed.
                let _ = sessions.changed().await;
                continue;
            };
            tokio::select! {
                () = self.beat(session) => {}
                _ = sessions.changed() => {}
            }
            sleep(PAUSE).await;
        }
    }

    /// Runs one stream until it breaks or the issuer steps down.
    async fn beat(self: &Arc<Self>, session: Session) {
        let sent = Sent::default();
        let interval = ttl(session) / 3;
        let answers = self.config.client.keep_alive(|| self.beats(session, interval, &sent)).await;
        let mut answers = match answers {
            Ok(answers) => answers,
            Err(refused) => return self.refused(session, &refused),
        };
        while let Ok(Ok(Some(answer))) = timeout(interval * 2, answers.message()).await {
            self.config.client.contact.succeeded();
            let seen = lock(&sent).pop_front();
            self.share(&answer);
            if let Some(seen) = seen {
                let patience = MARK_PATIENCE.max(ttl(session) / 10);
                self.raise(Mark(answer.mark), seen, patience).await;
            }
        }
    }

    fn beats(
        self: &Arc<Self>,
        session: Session,
        interval: Duration,
        sent: &Sent,
    ) -> impl tokio_stream::Stream<Item = pb::KeepAliveRequest> + Send + 'static {
        lock(sent).clear();
        let (sent, holder, waiting) = (Arc::clone(sent), Arc::clone(self), Arc::clone(self));
        let beat = move || {
            let config = &holder.config;
            lock(&sent).push_back(Seen::now(&config.register));
            let beat = holder.with_core(|core, keyspaces| core.beat(session, keyspaces));
            let progress = beat.progress.into_iter();
            let progress = progress.map(|(namespace, in_hand)| pb::Progress {
                lasts_ms: lasts_ms(&config.mintings, &namespace, in_hand),
                namespace: namespace.to_string(),
                in_hand,
            });
            pb::KeepAliveRequest {
                holder: config.owner.holder.clone(),
                incarnation: beat.incarnation.0,
                progress: progress.collect(),
                last_seq: beat.last_seq.0,
                mark: holder.history.known().0,
            }
        };
        let waits = tokio_stream::iter([false]).chain(tokio_stream::iter(std::iter::repeat(true)));
        let due = waits.then(move |waits| {
            let holder = Arc::clone(&waiting);
            async move {
                if waits {
                    holder.pace.wait(interval).await;
                }
            }
        });
        due.map(move |()| beat())
    }

    /// Adopts the issuer's pace, and gives up unclaimed numbers where another holder starves.
    fn share(&self, answer: &pb::KeepAliveResponse) {
        self.pace.ask(answer.next_beat_ms);
        let starving: Vec<_> =
            answer.starving.iter().filter_map(|name| Namespace::new(name.clone()).ok()).collect();
        if starving.is_empty() {
            return;
        }
        let config = &self.config;
        let now = config.clock.now();
        self.with_core(|core, keyspaces| core.share(now, &starving, keyspaces));
        config.mintings.iter().for_each(|minting| minting.wanted.notify_one());
    }

    /// Raises the database's mark, which the next beat reports. The wait is bounded, because a
    /// database that hangs must not silence a living holder. Until the database has answered,
    /// creates may be waiting for it, so the next beat follows soon.
    async fn raise(&self, told: Mark, seen: Seen, patience: Duration) {
        let Self { history, config, pace, .. } = self;
        let raised = timeout(patience, history.advance_soon(&config.register, told, seen)).await;
        if !matches!(raised, Ok(true)) {
            pace.request_beat();
        }
    }

    fn refused(&self, session: Session, refused: &Refused) {
        if let Refused::Superseded(reason) = refused {
            let effects = self.with_core(|core, keyspaces| core.supersede(reason.clone(), keyspaces));
            self.apply(effects);
            return;
        }
        tracing::warn!(error = refused as &dyn std::error::Error, "keep-alive");
        if matches!(refused, Refused::NotRegistered(_)) {
            self.with_core(|core, _| core.forget(session));
        }
    }
}

fn ttl(session: Session) -> Duration {
    Duration::from_millis(session.holder_ttl_ms)
}

fn lock(sent: &Sent) -> std::sync::MutexGuard<'_, VecDeque<Seen>> {
    sent.lock().expect("no code panics while it holds this lock")
}
