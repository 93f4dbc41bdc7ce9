//! Beats to the issuer: they keep this holder's blocks its own, report how far it is, and bring the ceilings.
//!
//! A loop of its own, so that a database that hangs or an allocation that waits never silences a living holder. Losing the issuer
//! stops nothing but the ceilings' freshness.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use proto::issuer::v1 as pb;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tokio_stream::StreamExt;

use super::{
    ceilings::Ceilings,
    issuer_client::{IssuerClient, Refused},
    minting::Minting,
    supplier::Session,
};
use crate::store::LinkStore;

/// Pause after a stream that ended or was refused.
const PAUSE: Duration = Duration::from_millis(200);

/// What beats are made of, and where their answers go.
pub(super) struct Heartbeat {
    pub(super) holder: String,
    pub(super) client: Arc<IssuerClient>,
    pub(super) store: Arc<dyn LinkStore>,
    pub(super) mintings: Vec<Arc<Minting>>,
    pub(super) ceilings: Arc<Ceilings>,
    /// The registration; set to none when the issuer does not know it any more.
    pub(super) session: watch::Sender<Option<Session>>,
}

/// When the beats that have no answer yet were sent.
type Sent = Arc<Mutex<VecDeque<Instant>>>;

impl Heartbeat {
    /// Beats for as long as there is a registration, over one stream after another. Ends only when it is dropped.
    pub(super) async fn run(self) {
        let mut sessions = self.session.subscribe();
        loop {
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
            let since = lock(&sent).pop_front();
            if let Some(since) = since {
                self.believe(answer, since).await;
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
        tokio_stream::iter(std::iter::repeat(())).throttle(interval).map(move |()| {
            lock(&sent).push_back(Instant::now());
            let progress = mintings.iter().map(|minting| pb::Progress {
                namespace: minting.namespace.to_string(),
                in_hand: minting.stock().in_hand,
            });
            pb::KeepAliveRequest {
                holder: holder.clone(),
                incarnation: session.incarnation,
                progress: progress.collect(),
            }
        })
    }

    /// Takes the ceilings, none below what the database's register says. A database that does not answer renews none.
    async fn believe(&self, answer: pb::KeepAliveResponse, sent: Instant) {
        let holder_ttl = Duration::from_millis(answer.holder_ttl_ms);
        for pb::Ceiling { namespace, ceiling } in answer.ceilings {
            let known = self.mintings.iter().find(|minting| minting.namespace.as_str() == namespace);
            let Some(minting) = known else { continue };
            if let Ok(registered) = self.store.registered_end(minting.index).await {
                self.ceilings.trust(minting.index, ceiling.max(registered), sent, holder_ttl);
            }
        }
    }

    fn refused(&self, session: Session, refused: &Refused) {
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

fn lock(sent: &Sent) -> std::sync::MutexGuard<'_, VecDeque<Instant>> {
    sent.lock().expect("no code panics while it holds this lock")
}
