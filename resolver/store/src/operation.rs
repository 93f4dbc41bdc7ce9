//! Operations: what the ports do to a database, apart from how a database does it.
//!
//! 1. An operation is an `async fn` over [`Sql`] with its arguments. On Postgres it waits for the
//!    network, and on SQLite the connection's own thread runs it to its end.
//! 2. An operation owns its arguments, because SQLite runs it on the thread of its connection. It
//!    may run more than once: Postgres repeats a transaction that it rolled back.
//! 3. I4: these transactions may be repeated by the caller whatever their outcome. Inserts of links
//!    may not, and have their own way ([`InsertError`](crate::InsertError)).
//!
//! Rejected: a generic method in place of [`Operation`]. The ports are used as `dyn Links` and the
//! like, and a trait with a generic method cannot be.

use std::{any::Any, sync::Arc};

use async_trait::async_trait;
use codes::LinkId;
use futures_util::future::BoxFuture;
use numbers::StoreEpoch;

use crate::{InsertError, Result, StoreError, Witness, sql::Sql};

/// A database behind the ports.
#[async_trait]
pub trait Database: Send + Sync + 'static {
    /// Returns whether other processes use the same database.
    fn is_shared(&self) -> bool;

    /// Returns whether links are on nodes of their own, which store them also while the rest of the
    /// database is away.
    fn is_distributed(&self) -> bool {
        false
    }

    /// Returns the witness file, if the operator keeps one.
    fn witness(&self) -> Option<&Arc<Witness>> {
        None
    }

    /// Runs an operation in a transaction and commits it.
    async fn run(&self, lane: Lane, operation: Operation) -> Result<Done>;

    /// Runs an operation that stores links, under numbers of a history if these are given, and
    /// commits it.
    ///
    /// # Errors
    /// Returns `StoreError::AnotherHistory` within the error if the database's history is another
    /// one. Nothing is stored then.
    async fn run_insert(&self, under: Option<Under<'_>>, insert: Operation) -> Result<Done, InsertError>;

    /// Returns whether events of new links are recorded. Each is recorded only if a webhook is
    /// called for it; a database that knows of none saves the question.
    fn announces_creates(&self) -> bool {
        true
    }
}

/// The numbers that an insert stores links under.
#[derive(Clone, Copy, Debug)]
pub struct Under<'a> {
    /// The history of the database that they are of.
    pub history: &'a StoreEpoch,
    /// One of the links. The others are in its bucket.
    pub link: LinkId,
}

/// The needs of an operation: a connection that may write or only reads, and how long it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// A write.
    Write,
    /// A write of many statements, such as a batch of an import or a step of a sweep.
    LongWrite,
    /// A short read.
    Read,
    /// A read that may take long. No redirect and no create waits for one.
    List,
    /// A read that authenticates a call. It waits for nothing but others of its kind.
    Authenticate,
}

/// An operation with its arguments, whose errors are `E`.
pub struct Operation<E = StoreError>(Box<dyn Run<E>>);

/// The result of an operation.
pub struct Done(Box<dyn Any + Send>);

/// The function of an operation whose arguments are `A`.
pub type Work<A, T, E = StoreError> =
    for<'a> fn(&'a mut (dyn Sql + 'a), &'a A) -> BoxFuture<'a, Result<T, E>>;

struct Call<A, T, E> {
    args: A,
    work: Work<A, T, E>,
}

trait Run<E>: Send + Sync {
    fn run<'a>(&'a self, sql: &'a mut (dyn Sql + 'a)) -> BoxFuture<'a, Result<Done, E>>;
}

impl<A: Send + Sync, T: Send + 'static, E> Run<E> for Call<A, T, E> {
    fn run<'a>(&'a self, sql: &'a mut (dyn Sql + 'a)) -> BoxFuture<'a, Result<Done, E>> {
        Box::pin(async move { Ok(Done(Box::new((self.work)(sql, &self.args).await?))) })
    }
}

impl<E: 'static> Operation<E> {
    /// Makes an operation of its arguments and its function.
    pub fn new<A: Send + Sync + 'static, T: Send + 'static>(args: A, work: Work<A, T, E>) -> Self {
        Self(Box::new(Call { args, work }))
    }

    /// Runs the operation on a connection. The caller commits a transaction.
    pub async fn run(&self, sql: &mut dyn Sql) -> Result<Done, E> {
        self.0.run(sql).await
    }
}

impl Done {
    /// Returns the result, in the type of the operation's function.
    pub fn take<T: 'static>(self) -> T {
        *self.0.downcast::<T>().expect("an operation gives the type of its function")
    }
}

/// Runs an operation in a transaction of a database and commits it.
pub(crate) async fn run<A: Send + Sync + 'static, T: Send + 'static>(
    database: &(impl Database + ?Sized),
    lane: Lane,
    args: A,
    work: Work<A, T>,
) -> Result<T> {
    Ok(database.run(lane, Operation::new(args, work)).await?.take())
}

pub(crate) async fn insert<A: Send + Sync + 'static, T: Send + 'static>(
    database: &(impl Database + ?Sized),
    under: Option<Under<'_>>,
    args: A,
    work: Work<A, T>,
) -> Result<T, InsertError> {
    Ok(database.run_insert(under, Operation::new(args, work)).await?.take())
}
