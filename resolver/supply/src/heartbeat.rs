//! Beats to the issuer: they keep this holder's blocks its own, report how far it is, and bring the ceilings.
//!
//! A loop of its own, so that a database that hangs or an allocation that waits never silences a living holder. Losing the issuer
//! stops nothing but the ceilings' freshness. Near the end of a number space the answers say who starves.
//!
//! What a beat reports is read after the last seq that it covers: a block that came in between is in the report, and the report
//! never says less than what is in hand.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use numbers::Mark;
use proto::issuer::v1 as pb;
use store::LinkStore;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_stream::StreamExt;

use super::{
    ceilings::{Ceilings, Moment},
    history::{History, Seen},
    issuer_client::{IssuerClient, Refused},
    minting::Minting,
    pace::Pace,
    supplier::{Lost, Session},
};
use crate::guard::{self, Guard};

/// Pause after a stream that ended or was refused.
const PAUSE: Duration = Duration::from_millis(200);

/// How long a beat waits for the database's mark, at least.
const MARK_PATIENCE: Duration = Duration::from_millis(500);

/// What beats are made of, and where their answers go.
pub(super) struct Heartbeat {
    pub(super) holder: String,
    pub(super) client: Arc<IssuerClient>,
    pub(super) store: Arc<dyn LinkStore>,
    pub(super) mintings: Vec<Arc<Minting>>,
    pub(super) ceilings: Arc<Ceilings>,
    /// The registration; set to none when the issuer does not know it any more.
    pub(super) session: watch::Sender<Option<Session>>,
    /// The last seq whose block is in a buffer.
    pub(super) entered: Arc<AtomicU64>,
    pub(super) pace: Arc<Pace>,
    pub(super) history: Arc<History>,
    /// Told when another process has taken this holder's place.
    pub(super) lost: watch::Sender<Option<Lost>>,
}

/// When the beats that have no answer yet were sent.
type Sent = Arc<Mutex<VecDeque<SentBeat>>>;

/// One of them.
struct SentBeat {
    at: Moment,
    seen: Seen,
}

impl Heartbeat {
    /// Beats for as long as there is a registration, over one stream after another. Ends when another process has taken over, or
    /// when it is dropped.
    pub(super) async fn run(self) {
        let mut sessions = self.session.subscribe();
        while self.lost.borrow().is_none() {
            let session = *sessions.borrow_and_update();
            let Some(session) = session else {
                // Its sender is this very task's.
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

    /// One stream, until it breaks or the issuer steps down.
    async fn beat(&self, session: Session) {
        let sent = Sent::default();
        let interval = session.holder_ttl / 3;
        let answers = self.client.keep_alive(|| self.beats(session, interval, &sent)).await;
        let mut answers = match answers {
            Ok(answers) => answers,
            Err(refused) => return self.refused(session, &refused),
        };
        while let Ok(Ok(Some(answer))) = timeout(interval * 2, answers.message()).await {
            let beat = lock(&sent).pop_front();
            self.share(&answer);
            if let Some(beat) = beat {
                let patience = MARK_PATIENCE.max(session.holder_ttl / 10);
                self.raise(Mark(answer.mark), beat.seen, patience).await;
                self.believe(answer, beat.at).await;
            }
        }
    }

    /// The beats of one try. The instant is noted before a beat is handed on, so what rests on it counts from too early rather
    /// than too late.
    fn beats(
        &self,
        session: Session,
        interval: Duration,
        sent: &Sent,
    ) -> impl tokio_stream::Stream<Item = pb::KeepAliveRequest> + Send + 'static {
        lock(sent).clear();
        let (sent, holder, mintings) = (Arc::clone(sent), self.holder.clone(), self.mintings.clone());
        let (entered, pace) = (Arc::clone(&self.entered), Arc::clone(&self.pace));
        let (history, store) = (Arc::clone(&self.history), Arc::clone(&self.store));
        let beat = move || {
            lock(&sent).push_back(SentBeat { at: Moment::now(), seen: Seen::now(&store) });
            let last_seq = entered.load(Ordering::Acquire);
            let progress = mintings.iter().map(|minting| pb::Progress {
                namespace: minting.namespace.to_string(),
                in_hand: minting.unsettled(),
            });
            pb::KeepAliveRequest {
                holder: holder.clone(),
                incarnation: session.incarnation,
                progress: progress.collect(),
                last_seq,
                mark: history.known().0,
            }
        };
        let waits = tokio_stream::iter([false]).chain(tokio_stream::iter(std::iter::repeat(true)));
        let due = waits.then(move |waits| {
            let pace = Arc::clone(&pace);
            async move {
                if waits {
                    pace.wait(interval).await;
                }
            }
        });
        due.map(move |()| beat())
    }

    /// Gives numbers up where another holder starves.
    fn share(&self, answer: &pb::KeepAliveResponse) {
        self.pace.ask(answer.next_beat_ms);
        let starves =
            |minting: &&Arc<Minting>| answer.starving.iter().any(|name| minting.namespace.as_str() == name);
        self.mintings.iter().filter(starves).for_each(|minting| minting.relinquish());
    }

    /// Raises the database's mark; the next beat tells it. A database that hangs must not silence a living holder.
    /// Until it has answered creates may be waiting for it, so the next beat follows soon.
    async fn raise(&self, told: Mark, seen: Seen, patience: Duration) {
        let raised = timeout(patience, self.history.advance_soon(&self.store, told, seen)).await;
        if !matches!(raised, Ok(true)) {
            self.pace.hurry();
        }
    }

    /// Takes the ceilings, none below what the database's register says. A database that does not answer renews none.
    async fn believe(&self, answer: pb::KeepAliveResponse, sent: Moment) {
        let holder_ttl = Duration::from_millis(answer.holder_ttl_ms);
        for pb::Ceiling { namespace, ceiling } in answer.ceilings {
            let known = self.mintings.iter().find(|minting| minting.namespace.as_str() == namespace);
            let Some(minting) = known else { continue };
            if let Ok(registered) = self.store.registered_end(minting.index).await {
                let least = if guard::is_on(Guard::RegisteredEnd) { registered } else { 0 };
                self.ceilings.trust(minting.index, ceiling.max(least), sent, holder_ttl);
            }
        }
    }

    fn refused(&self, session: Session, refused: &Refused) {
        if let Refused::Superseded(reason) = refused {
            // At once: the supplier may be waiting for the database.
            self.mintings.iter().for_each(|minting| minting.close());
            self.lost.send_replace(Some(Lost::Superseded(reason.clone())));
            return;
        }
        tracing::warn!(error = refused as &dyn std::error::Error, "keep-alive");
        if matches!(refused, Refused::NotRegistered(_)) {
            self.session.send_if_modified(|current| {
                let stale = *current == Some(session);
                if stale {
                    *current = None;
                }
                stale
            });
        }
    }
}

fn lock(sent: &Sent) -> std::sync::MutexGuard<'_, VecDeque<SentBeat>> {
    sent.lock().expect("no code panics while it holds this lock")
}
