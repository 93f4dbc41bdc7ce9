//! The faulty connection to the database: every call may come late, fail, or lose its answer.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use codes::LinkId;
use links::NewLink;
use numbers::StoreEpoch;
use store::{
    Change, InsertError, Inserted, Links, Reading, Settings, SettingsPoll, SettingsVersion, Source,
    StoreError,
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, sleep_until},
};

use super::{
    database::Database,
    rules::{self, StoreRule},
};

/// Interval of a listener's probes, as in the real store.
const ASKED_EVERY: Duration = Duration::from_millis(100);
/// How long a process's polls of the settings hang, in milliseconds, on the way there or back.
const HUNG_MS: (u64, u64) = (300, 4_000);
/// Pause of a listener after its connection broke.
const DEAF_FOR: Duration = Duration::from_millis(500);

/// When a process last failed to read links from the primary, and what it knew of links before.
///
/// It may give outdated answers after that, but none that is older than what it was notified of or
/// has answered itself.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    last: Mutex<Option<Instant>>,
    /// For each link an instant of which the process knows the state, and when it learned that.
    known: Mutex<HashMap<LinkId, (Instant, Instant)>>,
}

impl Trouble {
    fn note(&self) {
        *self.last.lock().expect("no code panics while it holds this lock") = Some(Instant::now());
    }

    /// Returns whether a read has failed within this time.
    pub(super) fn was_within(&self, time: Duration) -> bool {
        let last = *self.last.lock().expect("no code panics while it holds this lock");
        last.is_some_and(|last| last.elapsed() <= time)
    }

    /// Records that the process knows a link's state of an instant.
    pub(super) fn note_known(&self, id: LinkId, state_of: Instant) {
        let mut known = self.known.lock().expect("no code panics while it holds this lock");
        let noted = known.entry(id).or_insert((state_of, Instant::now()));
        if state_of > noted.0 {
            *noted = (state_of, Instant::now());
        }
    }

    /// Returns the instant of the latest state of a link that the process knew before `began`.
    pub(super) fn known_before(&self, id: LinkId, began: Instant) -> Option<Instant> {
        let known = self.known.lock().expect("no code panics while it holds this lock");
        known.get(&id).filter(|(_, learned)| *learned < began).map(|(state_of, _)| *state_of)
    }
}

/// One process's connection to the database.
pub(super) struct FaultyStore {
    pub(super) database: Arc<Database>,
    /// Whether the process is dead: its calls are neither executed nor answered.
    pub(super) is_dead: Arc<AtomicBool>,
    pub(super) trouble: Arc<Trouble>,
    /// The time until which polls of the settings hang.
    pub(super) hung_until: Arc<Mutex<Instant>>,
    /// When the last answered poll was sent, and when the server answered it: the process's last
    /// sample of the primary's log position.
    pub(super) polled: Mutex<Option<(Instant, Instant)>>,
}

impl FaultyStore {
    async fn live(&self) {
        if self.is_dead.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }

    /// Delays a call on its way to the server, or fails it. Returns the number of the server's
    /// start that it reaches.
    async fn before(&self) -> Result<u64, StoreError> {
        let (delay, fails) = self.database.draw(|rng, rates| {
            let slow = rng.permille(rates.slow);
            (if slow { rng.millis(50, 600) } else { rng.millis(1, 4) }, rng.permille(rates.failed))
        });
        sleep(delay).await;
        self.live().await;
        if self.database.is_down() {
            return Err(StoreError::TimedOut);
        }
        if fails { Err(StoreError::TimedOut) } else { Ok(self.database.starts()) }
    }

    /// Delays an answer on its way back, or loses it. It is lost if the server has restarted.
    async fn after(&self, starts: u64) -> Result<(), StoreError> {
        let (delay, is_lost) = self.database.draw(|rng, rates| {
            let slow = rng.permille(rates.slow_back);
            (if slow { rng.millis(50, 300) } else { rng.millis(1, 4) }, rng.permille(rates.lost))
        });
        sleep(delay).await;
        self.live().await;
        if is_lost || self.database.starts() != starts { Err(StoreError::TimedOut) } else { Ok(()) }
    }

    pub(super) async fn pass<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let starts = self.before().await?;
        let done = call.await;
        self.after(starts).await?;
        done
    }

    /// Polls the settings as the real store does: with the server's time, and with its start in the
    /// version, which tells copies apart.
    pub(super) async fn poll(&self, known: Option<&SettingsVersion>) -> Result<SettingsPoll, StoreError> {
        let (begins, hang, is_back) = self.database.draw(|rng, rates| {
            (rng.permille(rates.hung), rng.millis(HUNG_MS.0, HUNG_MS.1), rng.permille(400))
        });
        let until = {
            let mut until = self.hung_until.lock().expect("no code panics while it holds this lock");
            if begins {
                *until = until.max(Instant::now() + hang);
            }
            *until
        };
        let (sent, mut answered) = (Instant::now(), Instant::now());
        if !is_back {
            sleep_until(until).await;
        }
        let polled = self.pass(async {
            answered = Instant::now();
            let SettingsPoll { settings, .. } = self.database.sqlite.poll_settings(None).await?;
            let mut settings = settings.unwrap_or_default();
            settings.version.copy = format!("{}/{}", self.database.starts(), settings.version.copy);
            let is_known = known.is_some_and(|known| {
                if rules::keep(StoreRule::SettingsCopy) {
                    settings.version == *known
                } else {
                    settings.version.number <= known.number
                }
            });
            Ok(SettingsPoll { now: self.database.now(), settings: Some(settings).filter(|_| !is_known) })
        });
        let polled = polled.await;
        if is_back {
            sleep_until(until).await;
        }
        if polled.is_ok() {
            *self.polled.lock().expect("no code panics while it holds this lock") = Some((sent, answered));
        }
        polled
    }

    /// Returns the instant that a copy of this state of the database is at least as recent as. It
    /// has to have all that the primary is known to have written.
    fn proven(&self, copied_at: Instant) -> Result<Option<Instant>, StoreError> {
        if !rules::keep(StoreRule::Proved) {
            return Ok(None);
        }
        let polled = *self.polled.lock().expect("no code panics while it holds this lock");
        let reached = polled.filter(|(_, answered)| copied_at >= *answered);
        reached.map(|(sent, _)| Some(sent)).ok_or(StoreError::ReplicaBehind)
    }

    /// Runs an insert, which may land late. Once it was sent, a missing answer does not prove that
    /// nothing is stored.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<T, InsertError>> + Send + 'static,
    ) -> Result<T, InsertError> {
        let starts = self.before().await.map_err(InsertError::Failed)?;
        let late = self
            .database
            .draw(|rng, rates| rng.permille(rates.late).then(|| (rng.millis(5, 3_000), rng.millis(1, 60))));
        if let Some((lands, gives_up)) = late {
            let database = Arc::clone(&self.database);
            tokio::spawn(async move {
                sleep(lands).await;
                if database.starts() == starts && !database.is_down() {
                    let _ = call.await;
                }
            });
            sleep(gives_up).await;
            self.live().await;
            return Err(InsertError::Unknown(StoreError::TimedOut));
        }
        let done = call.await;
        self.after(starts).await.map_err(InsertError::Unknown)?;
        done
    }

    /// Runs a change of a link. It is recorded and announced at the moment of its COMMIT.
    pub(super) async fn change<T: Send>(
        &self,
        id: LinkId,
        change: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.change_all(&[id], change).await
    }

    /// Runs a change of links as [`change`](Self::change) does that of one.
    pub(super) async fn change_all<T: Send>(
        &self,
        ids: &[LinkId],
        change: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.pass(async {
            for id in ids {
                self.database.note(*id).await;
            }
            let changed = change.await;
            for id in ids {
                self.database.note(*id).await;
            }
            self.database.tell(&Change::Links(ids.to_vec()));
            changed
        })
        .await
    }

    /// Inserts links as the real store does. The statement checks the history, and stores nothing
    /// in another one. The reason why nothing was stored is queried afterwards, when the server may
    /// have another history or other rows.
    pub(super) async fn insert_links(
        &self,
        history: &StoreEpoch,
        links: &[NewLink],
    ) -> Result<Vec<Inserted>, InsertError> {
        let (database, its, new) = (Arc::clone(&self.database), history.clone(), links.to_vec());
        let inserted = self.write(async move { insert_in(&database, &its, &new).await }).await?;
        if inserted.iter().any(|one| *one != Inserted::Taken) {
            return Ok(inserted);
        }
        let ids: Vec<LinkId> = links.iter().map(|link| link.id).collect();
        let asked = self.pass(async {
            let epoch = self.database.epoch().await?;
            Ok((epoch, self.database.sqlite.read(&ids, Source::Primary).await?.links.len()))
        });
        match asked.await {
            Ok((epoch, taken)) if epoch == *history && taken == ids.len() => Ok(inserted),
            Ok((epoch, _)) if epoch == *history => Err(InsertError::Failed(StoreError::NotCompared)),
            Ok(_) => Err(InsertError::Failed(StoreError::AnotherHistory)),
            Err(error) => Err(InsertError::Failed(error)),
        }
    }

    /// Reads links as the real store does.
    ///
    /// A replica whose lag is within the bound is asked first, and the primary for the links that
    /// it lacks. If the primary does not answer, a copy is asked, which proves how recent it is,
    /// and presences but no absences.
    pub(super) async fn read_links(&self, ids: &[LinkId], source: Source) -> Result<Reading, StoreError> {
        let asks = self.database.draw(|rng, rates| rng.permille(rates.copied));
        let copy = self.database.replica().filter(|_| asks);
        let replica = copy.as_ref().filter(|(_, at)| match source {
            Source::Any { lag } => at.elapsed() <= lag,
            Source::Primary => false,
        });
        let copied = match replica {
            Some((replica, at)) => Some((replica.read(ids, source).await?.links, *at)),
            None => None,
        };
        let copied = copied.map(|(mut links, at)| {
            // A link that is deleted on the replica may have been restored since.
            links.retain(|link| !link.is_deleted());
            (links, at)
        });
        let has: HashSet<LinkId> = copied.iter().flat_map(|(links, _)| links).map(|link| link.id).collect();
        let missing: Vec<LinkId> = ids.iter().copied().filter(|id| !has.contains(id)).collect();
        let error = match self.pass(self.database.sqlite.read(&missing, Source::Primary)).await {
            Ok(found) => return Ok(Reading { copied, ..found }),
            // The replica has answered for all of them.
            Err(_) if missing.is_empty() => {
                return Ok(Reading { links: Vec::new(), copied, complete: true });
            }
            Err(error) => error,
        };
        self.trouble.note();
        let Some((copy, at)) = copy else { return Err(error) };
        let proven = self.proven(at)?;
        let links = copy.read(&missing, source).await?.links;
        let Some(proven) = proven else { return Ok(Reading { links, copied, complete: false }) };
        let (mut all, replayed) = copied.unwrap_or((Vec::new(), proven));
        all.extend(links);
        Ok(Reading { links: Vec::new(), copied: Some((all, proven.min(replayed))), complete: false })
    }

    /// Sends changes in their order, each a little late. A connection that breaks misses some
    /// changes, and reports that.
    pub(super) async fn tell_all(&self, changes: &mpsc::Sender<Change>) {
        loop {
            let mut told = self.database.listen();
            if changes.send(Change::Listening(Instant::now())).await.is_err() {
                return;
            }
            if self.tell_until_broken(&mut told, changes).await.is_none() {
                return;
            }
            drop(told);
            sleep(DEAF_FOR).await;
        }
    }

    /// Sends changes until the connection breaks. Returns `None` when the receiver is gone.
    async fn tell_until_broken(
        &self,
        told: &mut mpsc::Receiver<(Instant, Change)>,
        changes: &mpsc::Sender<Change>,
    ) -> Option<()> {
        let mut asked = Instant::now() + ASKED_EVERY;
        loop {
            let (at, change) = tokio::select! {
                biased;
                told = told.recv() => told.unwrap_or((Instant::now(), Change::Away)),
                () = sleep_until(asked) => {
                    asked = Instant::now() + ASKED_EVERY;
                    (Instant::now(), Change::Heard(Instant::now()))
                }
            };
            let (delay, breaks) =
                self.database.draw(|rng, rates| (rng.millis(0, 30), rng.permille(rates.deaf)));
            sleep(delay).await;
            self.live().await;
            let breaks = breaks || change == Change::Away;
            let change = if breaks { Change::Away } else { change };
            if let Change::Links(ids) = &change {
                ids.iter().for_each(|id| self.trouble.note_known(*id, at));
            }
            changes.send(change).await.ok()?;
            if breaks {
                return Some(());
            }
        }
    }
}

/// Inserts links if the database has this history. Otherwise it reports all of their numbers as
/// taken.
async fn insert_in(
    database: &Database,
    history: &StoreEpoch,
    links: &[NewLink],
) -> Result<Vec<Inserted>, InsertError> {
    if !database.is_compared() {
        return Err(InsertError::Failed(StoreError::NotCompared));
    }
    let is_another = database.epoch().await.map_err(InsertError::Failed)? != *history;
    if is_another && rules::keep(StoreRule::History) {
        return Ok(vec![Inserted::Taken; links.len()]);
    }
    let inserted = database.sqlite.insert(history, links).await?;
    let stamped = links.iter().zip(inserted).map(|(link, one)| match one {
        Inserted::Stored(_) => Inserted::Stored(database.stamp(link.id)),
        Inserted::Taken => Inserted::Taken,
    });
    Ok(stamped.collect())
}
