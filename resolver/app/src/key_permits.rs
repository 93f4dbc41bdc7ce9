//! Limits on the concurrent database calls of each API key, so that connections stay free for
//! others.

use std::sync::Arc;

use links::api_key::ApiKeyId;
use store::postgres::ConnectionBudget;

/// A fixed number of permits for each API key.
pub type KeyPermits = limits::KeyPermits<ApiKeyId>;

/// The permits of each key, by kind of database call.
#[derive(Debug)]
pub struct DatabasePermits {
    /// For queries that may take the database long.
    pub queries: KeyPermits,
    /// For brief statements: changes of a link, tag, domain or rule, reads of a link's data outside
    /// its row, and creates that are transactions of their own. Plain creates have their own
    /// connections.
    pub writes: Arc<KeyPermits>,
}

impl DatabasePermits {
    /// Gives a key half of the connections for queries that may take long, such as lists, and half
    /// of those for all other calls. Changes of one link wait for each other on the latter.
    pub fn of(budget: ConnectionBudget) -> Self {
        let half = |connections: u32| usize::try_from(connections / 2).unwrap_or(usize::MAX).max(1);
        let writes = Arc::new(KeyPermits::new(half(budget.general)));
        Self { queries: KeyPermits::new(half(budget.lists)), writes }
    }
}
