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
use futures_util::future::BoxFuture;

use crate::{Result, Witness, sql::Sql};

/// A database behind the ports.
#[async_trait]
pub trait Database: Send + Sync + 'static {
    /// Returns whether other processes use the same database.
    fn is_shared(&self) -> bool;

    /// Returns the witness file, if the operator keeps one.
    fn witness(&self) -> Option<&Arc<Witness>> {
        None
    }

    /// Runs an operation in a transaction and commits it.
    async fn run(&self, lane: Lane, operation: Operation) -> Result<Done>;
}

/// What an operation needs: a connection that may write or only reads, and how long it may take.
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

/// An operation with its arguments.
pub struct Operation(Box<dyn Run>);

/// The result of an operation.
pub struct Done(Box<dyn Any + Send>);

/// The function of an operation whose arguments are `A`.
pub(crate) type Work<A, T> = for<'a> fn(&'a mut (dyn Sql + 'a), &'a A) -> BoxFuture<'a, Result<T>>;

struct Call<A, T> {
    args: A,
    work: Work<A, T>,
}

trait Run: Send + Sync {
    fn run<'a>(&'a self, sql: &'a mut (dyn Sql + 'a)) -> BoxFuture<'a, Result<Done>>;
}

impl<A: Send + Sync, T: Send + 'static> Run for Call<A, T> {
    fn run<'a>(&'a self, sql: &'a mut (dyn Sql + 'a)) -> BoxFuture<'a, Result<Done>> {
        Box::pin(async move { Ok(Done(Box::new((self.work)(sql, &self.args).await?))) })
    }
}

impl Operation {
    /// Runs the operation in a transaction, which the caller commits.
    pub(crate) async fn run(&self, sql: &mut dyn Sql) -> Result<Done> {
        self.0.run(sql).await
    }
}

/// Runs an operation in a transaction of a database and commits it.
pub(crate) async fn run<A: Send + Sync + 'static, T: Send + 'static>(
    database: &(impl Database + ?Sized),
    lane: Lane,
    args: A,
    work: Work<A, T>,
) -> Result<T> {
    let Done(done) = database.run(lane, Operation(Box::new(Call { args, work }))).await?;
    Ok(*done.downcast::<T>().expect("an operation gives the type of its function"))
}
