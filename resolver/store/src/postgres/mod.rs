//! The Postgres implementation of [`Store`].
//!
//! Inserts and reads of links have dedicated connections beside the pool. A pool's checkout would
//! add a wait between batches, and each of these connections has one batch in flight at a time
//! anyway. All other calls use the pool.

mod admin;
mod batch;
mod budget;
mod changes;
mod citus;
mod connect;
mod copy;
mod inspect;
mod line;
mod links;
mod migrations;
mod nodes;
mod passfile;
mod replica;
mod roles;
mod statements;
mod transaction;
mod url;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use codes::KeyspaceIndex;
use jiff::Timestamp;
use line::Line;
use nodes::{Nodes, Watch};
use numbers::{Span, StoreEpoch};
use replica::{Position, Positions};
use statements::{INSERT, POLL, READ, SLUGS};
use tokio::{
    sync::{OnceCell, watch},
    time::{Instant, sleep},
};
use tokio_postgres::config::TargetSessionAttrs;
use tokio_util::task::AbortOnDropHandle;
use transaction::{DEADLINE, within};

use super::{
    Lane, Register, Result, Schema, Settings, SettingsPoll, SettingsVersion, Store, StoreError, Witness,
    operation::run,
    ports::Gaps,
    sql::{domains, slugs},
};

pub use budget::{ConnectOptions, ConnectionBudget, DatabaseObserver, PoolCount, ReplicaRead, Server};
pub use connect::{Address, Connection, Connections, check_out, hosts_in_plaintext, pool};
pub use inspect::{ServerState, inspect};
pub use line::rolled_back;
pub use roles::{Part, ServingRoles, grant};
pub use transaction::PostgresSql;

/// Pause before it is asked again who the nodes are, which are being looked at.
const LOOKED_AT: Duration = Duration::from_millis(20);

/// A store in a Postgres database.
pub struct PostgresStore {
    writers: Vec<Line>,
    /// Inserts custom slugs. A connection of its own, because it waits for notifications of others
    /// to be committed.
    slug_writer: Line,
    turn: AtomicUsize,
    /// Whether a webhook was called for new links at the last poll of the settings.
    tells_creates: AtomicBool,
    reader: Line,
    /// Reads from any server of the URL, also from read-only ones, which prove how old their rows
    /// are: redirects work while there is no primary.
    copy_reader: Line,
    /// The same two connections for slugs.
    slug_reader: Line,
    copy_slug_reader: Line,
    /// Polls the time and the settings' version.
    settings_reader: Line,
    /// Positions of the primary's log, one for each answer to the poll.
    positions: Positions,
    /// A replica that takes reads off the primary.
    replica: Option<Line>,
    /// When the server was started by its own clock, as last seen.
    server_start: watch::Sender<Option<Timestamp>>,
    /// The witness file, which outlasts the database, if the operator keeps one.
    pub witness: Option<Arc<Witness>>,
    /// Back-off: until this instant the replica is not asked, because its last read ended like
    /// this.
    replica_shunned: Mutex<Option<(Instant, ReplicaRead)>>,
    /// Back-off: until this instant no copy is asked, because the last one could not answer.
    copy_shunned: Mutex<Option<Instant>>,
    /// Back-off: until this instant the primary is not asked for links, because its last read
    /// failed.
    shunned: Mutex<Option<Instant>>,
    /// The nodes of a distributed database; none of any other.
    nodes: Arc<ArcSwapOption<Nodes>>,
    /// The task that follows them, once they were looked for.
    watch: OnceCell<AbortOnDropHandle<()>>,
    pool: Connections,
    /// A pool of its own for lists: they may take long, and no other call waits for one.
    lists: Connections,
    /// A pool of its own for API key lookups: they wait for nothing but each other.
    keys: Connections,
    address: Address,
}

impl PostgresStore {
    /// Prepares connections to the database at a URL, and to a replica at `read_url`. None is
    /// opened before it is needed.
    pub async fn new(url: &str, read_url: Option<&str>) -> Result<Self> {
        Self::with(url, read_url, &ConnectOptions::default()).await
    }

    /// Prepares connections like [`new`](Self::new), as many as the options say.
    pub async fn with(url: &str, read_url: Option<&str>, options: &ConnectOptions) -> Result<Self> {
        let ConnectOptions { budget, observer } = options;
        let mut address = Address::parse(url)?;
        address.observer = Arc::clone(observer);
        // A demoted primary accepts connections too, and refuses every write.
        address.config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        let mut replica = read_url.map(Address::parse).transpose()?;
        if let Some(replica) = &mut replica {
            (replica.server, replica.observer) = (Server::Replica, Arc::clone(observer));
        }
        let writer = |_| Line::writer(address.clone(), &INSERT);
        Ok(Self {
            turn: AtomicUsize::new(0),
            tells_creates: AtomicBool::new(false),
            writers: (0..budget.writers).map(writer).collect(),
            slug_writer: Line::slugs(address.clone(), &SLUGS),
            reader: Line::reader(address.clone(), READ),
            copy_reader: Line::reader(address.reads_anywhere(), READ),
            slug_reader: Line::index_reader(address.clone(), slugs::FIND_SLUGS),
            copy_slug_reader: Line::index_reader(address.reads_anywhere(), slugs::FIND_SLUGS),
            settings_reader: Line::reader(address.clone(), POLL.as_str()),
            positions: Positions::default(),
            replica: replica.map(|address| Line::reader(address, READ)),
            server_start: watch::Sender::new(None),
            witness: None,
            replica_shunned: Mutex::new(None),
            copy_shunned: Mutex::new(None),
            shunned: Mutex::new(None),
            nodes: Arc::default(),
            watch: OnceCell::new(),
            pool: pool("general", &address, budget.general),
            lists: pool("lists", &address, budget.lists),
            keys: pool("keys", &address, budget.keys),
            address,
        })
    }

    /// Applies the deadline of calls, and counts a failure.
    async fn within<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        within(call).await.inspect_err(|error| self.address.note_error(error))
    }

    /// Returns the nodes of a distributed database. The first call looks for them, and they are
    /// followed from then on.
    async fn find_nodes(&self) -> Result<Option<Arc<Nodes>>> {
        let find = async || -> Result<AbortOnDropHandle<()>> {
            let mut watch = Watch::new(self.address.clone(), self.pool.clone(), self.writers.len());
            self.nodes.store(watch.find().await?.map(Arc::new));
            Ok(AbortOnDropHandle::new(tokio::spawn(watch.follow(Arc::clone(&self.nodes)))))
        };
        self.watch.get_or_try_init(find).await?;
        Ok(self.nodes.load_full())
    }

    async fn connection(&self) -> Result<bb8::PooledConnection<'_, Address>> {
        check_out(&self.pool).await
    }
}

/// Applies pending migrations up to a version, for tests of later ones.
pub async fn migrate_to(url: &str, version: i32) -> Result<()> {
    migrations::run(&Address::parse(url)?, Some(version)).await
}

/// Divides the tables of links among the nodes of Citus that the database has. Returns false if it
/// has none. Nothing is written to a table while its rows move.
pub async fn distribute(url: &str) -> Result<bool> {
    migrations::run_distribute(&Address::parse(url)?).await
}

#[async_trait]
impl Store for PostgresStore {
    async fn migrate(&self) -> Result<()> {
        migrations::run(&self.address, None).await
    }

    async fn prove_notifications(&self) -> Result<()> {
        changes::prove_once(&self.address).await
    }

    fn pools(&self) -> Vec<PoolCount> {
        let mut pools = [&self.pool, &self.lists, &self.keys].map(Connections::count).to_vec();
        pools.push(Line::count("writers", &self.writers));
        pools
    }

    async fn ping_replica(&self) {
        self.probe_replica().await;
    }

    async fn schema(&self) -> Result<Schema> {
        self.within(async { migrations::schema(&*self.connection().await?).await }).await
    }

    async fn check(&self) -> Result<()> {
        self.schema().await?.check()?;
        self.find_nodes().await.map(drop)
    }
}

#[async_trait]
impl Register for PostgresStore {
    async fn epoch(&self) -> Result<StoreEpoch> {
        self.find_nodes().await?;
        self.within(async {
            let connection = self.connection().await?;
            while let Some(nodes) = self.nodes.load_full() {
                // What is written on a node is not compared with the coordinator's mark there.
                if let Some(history) = nodes.history(&admin::compared_epoch(&*connection).await?)? {
                    return Ok(history);
                }
                sleep(LOOKED_AT).await;
            }
            admin::epoch(&connection).await
        })
        .await
    }

    async fn known_unused(&self, keyspace: KeyspaceIndex, span: Span) -> Result<Vec<Span>> {
        let Some(nodes) = self.find_nodes().await?.filter(|nodes| nodes.away() > 0) else {
            return self.unused(keyspace, span).await;
        };
        let mut gaps = Gaps::of(keyspace, span);
        while let Some((next, end)) = gaps.left() {
            let (taken, until) = nodes.taken_ids(next, end).await?;
            gaps.note(taken, until);
        }
        Ok(gaps.unused)
    }

    fn server_start(&self) -> Option<watch::Receiver<Option<Timestamp>>> {
        Some(self.server_start.subscribe())
    }
}

#[async_trait]
impl Settings for PostgresStore {
    async fn poll_settings(&self, known: Option<&SettingsVersion>) -> Result<SettingsPoll> {
        // Every resolver polls four times a second, and the version rarely changes.
        let sent = Instant::now();
        let rows = self.settings_reader.read(DEADLINE, &[]).await?;
        self.address.observer.answered(Server::Database);
        let row =
            rows.first().ok_or_else(|| StoreError::Corrupt("table settings_version is empty".to_owned()))?;
        let row = transaction::row(row)?;
        let version = SettingsVersion { number: row.int(0)?, copy: row.text(1)?.to_owned() };
        let start = row.time(4)?;
        self.positions.note(sent, Position { start, at: row.int(3)? }, row.int(5)?);
        let started = Some(start);
        self.server_start.send_if_modified(|seen| std::mem::replace(seen, started) != started);
        let settings = match known == Some(&version) {
            true => None,
            false => {
                run(self, Lane::Read, known.cloned(), |sql, known| {
                    Box::pin(domains::shared_settings(sql, known.as_ref()))
                })
                .await?
            }
        };
        if let Some(settings) = &settings {
            self.note_subscriptions(&settings.webhooks);
        }
        Ok(SettingsPoll { now: row.time(2)?, settings })
    }
}
