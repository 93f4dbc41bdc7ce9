//! The nodes of a distributed database: connections to each, and which of them answer.
//!
//! 1. A batch of links, and a read of some, goes to the node that has their bucket. What is written
//!    there commits there, as on one Postgres: through another node it would be prepared and then
//!    committed, and could stay invisible for a minute after its acknowledgement. A node that has
//!    lost the bucket to another one passes the statement on.
//! 2. A node that does not answer holds up only its own links. New links get numbers of the others.
//! 3. A node that has restarted may have been put back from an older copy, or have failed over to a
//!    standby that lacks the last links. Nothing tells whether it did, so each restart of a node
//!    begins a new history: numbers in hand, and those of holders that are gone, are burned. They
//!    last for minutes, so a restart costs few.
//! 4. The identities of all nodes are part of the database's history. A connection for writes
//!    belongs to one identity: a node with another one refuses the numbers of the former history.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use codes::LinkId;
use futures_util::future::join_all;
use links::NewLink;
use numbers::StoreEpoch;
use sha2::{Digest as _, Sha256};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout},
};
use tokio_postgres::Row;

use super::{
    batch::insert_on,
    connect::{Address, Connections, check_out},
    line::Line,
    statements::{IDENTITY, INSERT_ANY, LAYOUT, READ},
    transaction::{DEADLINE, within},
};
use crate::{
    InsertError, Inserted, Result, StoreError,
    buckets::{Bucket, Buckets, by_bucket},
};

/// How often the nodes are asked.
const EVERY: Duration = Duration::from_secs(1);
/// How long a node is not written at most after failed writes.
const SHUNNED_MAX: Duration = Duration::from_secs(30);
/// How often a database without nodes is asked whether it has some.
const NONE_EVERY: Duration = Duration::from_secs(30);
/// How many ids are looked at together, by the connection that redirects read with.
const LOOKED_AT: i64 = 500;
/// How long a node may take to say who it is, and to answer a read.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// Whether the database has the catalogs of Citus.
const HAS_NODES: &str = "SELECT to_regclass('pg_dist_shard') IS NOT NULL";

/// The host and port of a node.
type Place = (String, u16);
/// The first hash of each bucket, ascending, and where it is.
type Layout = Vec<(i32, Place)>;

/// The nodes that have buckets of the links.
pub(super) struct Nodes {
    layout: Layout,
    buckets: Buckets,
    /// The node of each bucket.
    of_bucket: Vec<usize>,
    nodes: Vec<Arc<Node>>,
    /// The history of the coordinator, if that has been compared since its start.
    coordinator: Option<String>,
    /// The end of the history's name: a digest of the nodes' identities.
    mark: String,
    /// The bucket that new links get numbers of.
    open: AtomicUsize,
    /// Whether a node has turned out to be another one than it was.
    is_stale: AtomicBool,
    /// Wakes the watch.
    wake: Arc<Notify>,
}

struct Node {
    at: Place,
    /// Who the node was when it last answered: server, timeline and start. `None` if it has not
    /// answered yet.
    identity: Option<Arc<str>>,
    writers: Vec<Line>,
    turn: AtomicUsize,
    reader: Line,
    /// Whether it answered when it was last asked.
    answers: AtomicBool,
    /// Back-off: until this instant nothing is written, and how long that is after another failure.
    shunned: Mutex<(Option<Instant>, Duration)>,
}

impl Nodes {
    /// Returns the bucket of a link.
    pub(super) fn bucket(&self, id: LinkId) -> Bucket {
        self.buckets.of(id)
    }

    /// Returns the number of nodes.
    pub(super) fn count(&self) -> usize {
        self.nodes.len()
    }

    /// Returns how many nodes did not answer when they were last asked.
    pub(super) fn away(&self) -> usize {
        self.nodes.iter().filter(|node| !node.answers.load(Ordering::Relaxed)).count()
    }

    /// Returns the place of the node that has a link.
    pub(super) fn place(&self, id: LinkId) -> usize {
        self.of_bucket[self.bucket(id).0]
    }

    fn is_like(&self, other: &Self) -> bool {
        (&self.layout, &self.coordinator, &self.mark) == (&other.layout, &other.coordinator, &other.mark)
    }

    /// Returns the bucket whose numbers new links should get.
    pub(super) fn open_bucket(&self) -> Bucket {
        let (from, count) = (self.open.load(Ordering::Relaxed), self.of_bucket.len());
        let next = (0..count).map(|step| Bucket((from + step) % count)).find(|bucket| self.is_up(*bucket));
        next.unwrap_or(Bucket(from % count))
    }

    /// Returns whether the node of a bucket answered when it was last asked. A bucket of an earlier
    /// layout counts as one that has no node.
    pub(super) fn is_up(&self, bucket: Bucket) -> bool {
        let node = self.of_bucket.get(bucket.0);
        node.is_some_and(|node| self.nodes[*node].takes_writes())
    }

    /// Notes that a node is not the one that it was. No number is asked for until it is known which
    /// one it is: it would be burned at once.
    pub(super) fn suspect(&self) {
        self.is_stale.store(true, Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// Returns the name of the history of which the first part is that of the coordinator. Returns
    /// `None` until it is known here who that and the nodes are, and has them looked at.
    pub(super) fn history(&self, coordinator: &StoreEpoch) -> Result<Option<StoreEpoch>> {
        if self.is_stale.load(Ordering::Relaxed) || self.coordinator.as_deref() != Some(coordinator.as_str())
        {
            self.suspect();
            return Ok(None);
        }
        let name = format!("{coordinator}:{}", self.mark);
        StoreEpoch::new(name).map(Some).map_err(|error| StoreError::Corrupt(error.to_string()))
    }

    /// Returns the coordinator's part of a history's name.
    ///
    /// # Errors
    /// Returns [`StoreError::AnotherHistory`] if the nodes are others, or have restarted, since.
    pub(super) fn of_coordinator<'a>(&self, history: &'a StoreEpoch) -> Result<&'a str> {
        let before = history.as_str().strip_suffix(&self.mark).and_then(|before| before.strip_suffix(':'));
        before.ok_or(StoreError::AnotherHistory)
    }

    /// Checks that the node that has a link is the one that had it.
    ///
    /// # Errors
    /// Returns [`StoreError::AnotherHistory`] if the node has restarted, and
    /// [`StoreError::NotCompared`] if it is another one: the bucket has moved.
    pub(super) fn compare(&self, id: LinkId, identity: Option<&str>) -> Result<()> {
        let is_its = |node: &Node| node.identity.is_some() && node.identity.as_deref() == identity;
        if is_its(&self.nodes[self.place(id)]) {
            return Ok(());
        }
        self.suspect();
        let has_moved = self.nodes.iter().any(|node| is_its(node));
        Err(if has_moved { StoreError::NotCompared } else { StoreError::AnotherHistory })
    }

    /// Inserts links, each on its node, and returns the outcome of each in the order of `links`. If
    /// only some of several buckets fail, all links are in doubt.
    pub(super) async fn insert(
        &self,
        history: &StoreEpoch,
        links: &[NewLink],
    ) -> Result<Vec<Inserted>, InsertError> {
        let places = by_bucket(links, |link| self.bucket(link));
        if places.len() < 2 {
            return self.insert_bucket(history, links).await;
        }
        let inserts = places.iter().map(async |places| {
            let links: Vec<NewLink> = places.iter().map(|place| links[*place].clone()).collect();
            self.insert_bucket(history, &links).await
        });
        let ends = join_all(inserts).await;
        let is_stored = ends.iter().any(|end| !matches!(end, Err(InsertError::Failed(_))));
        let mut outcomes: Vec<(usize, Inserted)> = Vec::with_capacity(links.len());
        for (places, end) in places.into_iter().zip(ends) {
            match end {
                Ok(inserted) => outcomes.extend(places.into_iter().zip(inserted)),
                Err(InsertError::Failed(error)) if is_stored => return Err(InsertError::Unknown(error)),
                Err(error) => return Err(error),
            }
        }
        outcomes.sort_unstable_by_key(|(place, _)| *place);
        Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
    }

    /// Inserts links of one bucket on its node.
    async fn insert_bucket(
        &self,
        history: &StoreEpoch,
        links: &[NewLink],
    ) -> Result<Vec<Inserted>, InsertError> {
        let of_coordinator = self.of_coordinator(history).map_err(InsertError::Failed)?;
        match &self.coordinator {
            None => return Err(InsertError::Failed(StoreError::NotCompared)),
            Some(known) if known != of_coordinator => {
                return Err(InsertError::Failed(StoreError::AnotherHistory));
            }
            Some(_) => {}
        }
        let Some(first) = links.first() else { return Ok(Vec::new()) };
        let (bucket, node) = (self.bucket(first.id), &self.nodes[self.place(first.id)]);
        // The next links get numbers of another bucket meanwhile.
        let next = (bucket.0 + 1) % self.of_bucket.len();
        let _ = self.open.compare_exchange(bucket.0, next, Ordering::Relaxed, Ordering::Relaxed);
        let done = insert_on(node.writer().map_err(InsertError::Failed)?, links).await;
        node.note_write(done.as_ref().err());
        if matches!(done, Err(InsertError::Failed(StoreError::AnotherHistory))) {
            self.suspect();
        }
        done
    }

    /// Returns the first ids of a range that are those of links, or of buckets whose node is away,
    /// ascending, and the end of the part of the range that these are all of.
    pub(super) async fn taken_ids(&self, next: i64, end: i64) -> Result<(Vec<i64>, i64)> {
        let until = end.min(next.saturating_add(LOOKED_AT));
        let ids = (next..until).map(LinkId::from_stored);
        let answers = |id: &LinkId| self.nodes[self.place(*id)].answers.load(Ordering::Relaxed);
        let (known, mut taken): (Vec<LinkId>, Vec<LinkId>) = ids.partition(answers);
        for row in self.read(&known).await? {
            taken.push(LinkId::from_stored(row.try_get(0)?));
        }
        taken.sort_unstable();
        Ok((taken.into_iter().map(LinkId::get).collect(), until))
    }

    /// Reads links from their nodes: of each node, the links of each bucket by a statement.
    pub(super) async fn read(&self, ids: &[LinkId]) -> Result<Vec<Row>> {
        let mut of_nodes: Vec<Vec<Vec<i64>>> = vec![Vec::new(); self.nodes.len()];
        let mut place = vec![None; self.of_bucket.len()];
        for id in ids {
            let bucket = self.bucket(*id).0;
            let of_node = &mut of_nodes[self.of_bucket[bucket]];
            let at = *place[bucket].get_or_insert_with(|| {
                of_node.push(Vec::new());
                of_node.len() - 1
            });
            of_node[at].push(id.get());
        }
        let asked = self.nodes.iter().zip(&of_nodes).filter(|(_, ids)| !ids.is_empty());
        let reads = asked.map(async |(node, ids)| {
            if !node.answers.load(Ordering::Relaxed) {
                return Err(StoreError::TimedOut);
            }
            let read = node.reader.read_each(ANSWER_WITHIN, ids).await;
            read.inspect_err(|_| node.answers.store(false, Ordering::Relaxed)).map_err(StoreError::from)
        });
        let rows: Result<Vec<Vec<Row>>> = join_all(reads).await.into_iter().collect();
        Ok(rows?.into_iter().flatten().collect())
    }
}

impl Node {
    fn new(address: &Address, at: Place, identity: Option<Arc<str>>, writers: usize) -> Self {
        let address = address.of_node(&at);
        let of = |identity: &Arc<str>| Line::node_writer(address.clone(), INSERT_ANY, Arc::clone(identity));
        Self {
            writers: identity.iter().flat_map(|identity| (0..writers).map(move |_| of(identity))).collect(),
            turn: AtomicUsize::new(0),
            reader: Line::reader(address, READ),
            answers: AtomicBool::new(identity.is_some()),
            shunned: Mutex::new((None, EVERY)),
            at,
            identity,
        }
    }

    fn takes_writes(&self) -> bool {
        let until = self.shunned.lock().expect("no code panics while it holds this lock").0;
        self.answers.load(Ordering::Relaxed)
            && self.identity.is_some()
            && until.is_none_or(|until| until <= Instant::now())
    }

    /// Notes how a write ended. One that the node refuses because of its content says nothing about
    /// the node.
    fn note_write(&self, error: Option<&InsertError>) {
        let mut shunned = self.shunned.lock().expect("no code panics while it holds this lock");
        *shunned = match error {
            None => (None, EVERY),
            Some(InsertError::Failed(StoreError::Postgres(error))) if is_of_content(error) => return,
            // Several writes may fail together: only one after the back-off makes the next longer.
            Some(_) if shunned.0.is_some_and(|until| until > Instant::now()) => return,
            Some(_) => (Some(Instant::now() + shunned.1), (shunned.1 * 2).min(SHUNNED_MAX)),
        };
    }

    /// Returns a connection for writes, if it is known who the node is.
    fn writer(&self) -> Result<&Line> {
        if self.writers.is_empty() {
            Err(StoreError::TimedOut)
        } else {
            Ok(Line::free(&self.writers, &self.turn))
        }
    }
}

/// Watches the nodes: who they are, and whether they answer.
pub(super) struct Watch {
    address: Address,
    pool: Connections,
    writers: usize,
    layout: Line,
    probes: HashMap<Place, Line>,
    wake: Arc<Notify>,
}

impl Watch {
    /// Prepares a watch of a database. `writers` is the number of connections to a node for writes.
    pub(super) fn new(address: Address, pool: Connections, writers: usize) -> Self {
        let layout = Line::reader(address.clone(), &LAYOUT);
        Self { address, pool, writers, layout, probes: HashMap::new(), wake: Arc::default() }
    }

    /// Finds the nodes of a database. Returns `None` if it has none: its links are not distributed.
    pub(super) async fn find(&mut self) -> Result<Option<Nodes>> {
        let asked = within(async { Ok(check_out(&self.pool).await?.query_one(HAS_NODES, &[]).await?) });
        if !asked.await?.try_get::<_, bool>(0)? {
            return Ok(None);
        }
        let (layout, coordinator) = self.layout().await?;
        if layout.is_empty() { Ok(None) } else { self.look(layout, coordinator, None).await.map(Some) }
    }

    /// Follows the nodes, and replaces them when one has restarted or a bucket has moved. Without
    /// nodes it looks for some now and then.
    pub(super) async fn follow(mut self, nodes: Arc<ArcSwapOption<Nodes>>) {
        loop {
            let Some(known) = nodes.load_full() else {
                sleep(NONE_EVERY).await;
                nodes.store(self.find().await.ok().flatten().map(Arc::new));
                continue;
            };
            self.address.observer.nodes_away(known.away());
            let _ = timeout(EVERY, self.wake.notified()).await;
            // Without the coordinator, the nodes have the buckets that they had.
            let layout = timeout(ANSWER_WITHIN, self.layout()).await.ok().and_then(Result::ok);
            let layout = layout.filter(|(layout, _)| !layout.is_empty());
            let (layout, coordinator) =
                layout.unwrap_or_else(|| (known.layout.clone(), known.coordinator.clone()));
            match self.look(layout, coordinator, Some(&known)).await {
                Ok(seen) if seen.is_like(&known) => known.is_stale.store(false, Ordering::Relaxed),
                Ok(seen) if (&seen.layout, &seen.mark) == (&known.layout, &known.mark) => {
                    nodes.store(Some(Arc::new(seen)));
                }
                Ok(seen) => {
                    tracing::warn!(
                        nodes = seen.nodes.len(),
                        "the database's nodes have restarted, or are others now"
                    );
                    nodes.store(Some(Arc::new(seen)));
                }
                Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "look for nodes"),
            }
        }
    }

    /// Returns the first hash and the node of each bucket, and the coordinator's history if that
    /// has been compared.
    async fn layout(&self) -> Result<(Layout, Option<String>)> {
        let rows = self.layout.read(DEADLINE, &[]).await?;
        let bucket = |row: &Row| {
            let port = u16::try_from(row.try_get::<_, i32>(2)?);
            Ok((row.try_get(0)?, (row.try_get(1)?, port.unwrap_or_default())))
        };
        let coordinator = rows.first().map(|row| row.try_get(3)).transpose()?;
        Ok((rows.iter().map(bucket).collect::<Result<_>>()?, coordinator.flatten()))
    }

    /// Asks the nodes who they are. One that does not answer counts as the one that it was.
    async fn look(
        &mut self,
        layout: Layout,
        coordinator: Option<String>,
        known: Option<&Nodes>,
    ) -> Result<Nodes> {
        let mut places: Vec<Place> = layout.iter().map(|(_, at)| at.clone()).collect();
        places.sort_unstable();
        places.dedup();
        for at in &places {
            let probe = || Line::reader(self.address.of_node(at), &IDENTITY);
            self.probes.entry(at.clone()).or_insert_with(probe);
        }
        let of_known = |at: &Place| known.and_then(|known| known.nodes.iter().find(|node| node.at == *at));
        let asked = places.iter().map(async |at| {
            let rows = self.probes[at].read(ANSWER_WITHIN, &[]).await.ok();
            let identity = rows.and_then(|rows| rows.first()?.try_get::<_, Option<String>>(0).ok()?);
            // At once: another node may take its time.
            of_known(at).inspect(|node| node.answers.store(identity.is_some(), Ordering::Relaxed));
            identity
        });
        let answers = join_all(asked).await;
        let nodes = places.iter().zip(answers).map(|(at, answer)| {
            let before = of_known(at);
            let identity = answer.map(Arc::from).or_else(|| before?.identity.clone());
            match before.filter(|before| before.identity == identity) {
                Some(before) => Arc::clone(before),
                None => Arc::new(Node::new(&self.address, at.clone(), identity, self.writers)),
            }
        });
        let nodes: Vec<Arc<Node>> = nodes.collect();
        let buckets = Buckets::new(layout.iter().map(|(first, _)| *first).collect());
        let buckets = buckets.ok_or_else(|| {
            StoreError::Corrupt("pg_dist_shard: the hashes of `link` have a gap".to_owned())
        })?;
        let place = |(_, at): &(i32, Place)| places.iter().position(|place| place == at);
        let of_bucket = layout.iter().filter_map(place).collect();
        let (mark, wake) = (mark(&nodes), Arc::clone(&self.wake));
        let (open, is_stale) = (AtomicUsize::new(0), AtomicBool::new(false));
        Ok(Nodes { layout, buckets, of_bucket, nodes, coordinator, mark, open, is_stale, wake })
    }
}

/// Returns whether an error is about the rows of a statement, and not about the server.
fn is_of_content(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| ["22", "23"].contains(&&code.code()[..2]))
}

/// Returns a digest of who the nodes are.
fn mark(nodes: &[Arc<Node>]) -> String {
    let mut digest = Sha256::new();
    for node in nodes {
        let identity = node.identity.as_deref().unwrap_or_default();
        digest.update(format!("{}:{} {identity}\n", node.at.0, node.at.1));
    }
    digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
