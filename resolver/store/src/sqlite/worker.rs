//! A thread that owns a connection and runs jobs on it, in order.
//!
//! It is public, so that the store of visits has its file in the same way.

#[cfg(any(test, feature = "inline"))]
use std::sync::{Arc, Mutex};
use std::thread;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::transaction::{self, SqliteSql};
use crate::{Result, StoreError};

/// Maximum number of queued jobs. The callers are bounded batches and rare commands.
const QUEUE: usize = 64;

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// The queue of a thread. The thread ends once this is dropped and the queue is empty.
pub struct Worker(Queue);

enum Queue {
    Thread(mpsc::Sender<Job>),
    /// Runs jobs in place: the paused clock of tests must not advance meanwhile.
    #[cfg(any(test, feature = "inline"))]
    Here(Arc<Mutex<Connection>>),
}

impl Worker {
    /// Starts a thread under a name.
    pub fn start(name: &str, mut connection: Connection) -> Self {
        let (jobs, mut queue) = mpsc::channel::<Job>(QUEUE);
        let run = move || {
            while let Some(job) = queue.blocking_recv() {
                job(&mut connection);
            }
        };
        // The system refused a thread at start-up. Every call then returns `Stopped`.
        if let Err(error) = thread::Builder::new().name(name.to_owned()).spawn(run) {
            tracing::error!(%error, name, "start a thread");
        }
        Self(Queue::Thread(jobs))
    }

    /// Creates a worker that runs jobs where they are made, on a connection that it shares.
    #[cfg(any(test, feature = "inline"))]
    pub fn here(connection: &Arc<Mutex<Connection>>) -> Self {
        Self(Queue::Here(Arc::clone(connection)))
    }

    /// Runs a job on the thread, and returns its result. A job that is queued is done even if the
    /// caller gives up.
    pub async fn run<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &self,
        call: impl FnOnce(&mut Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        match &self.0 {
            Queue::Thread(jobs) => {
                let (answer, answered) = oneshot::channel();
                let job: Job = Box::new(move |connection| {
                    // The caller may have given up; the job is done either way.
                    let _ = answer.send(call(connection));
                });
                jobs.send(job).await.map_err(|_| StoreError::Stopped)?;
                answered.await.unwrap_or_else(|_| Err(StoreError::Stopped.into()))
            }
            #[cfg(any(test, feature = "inline"))]
            Queue::Here(connection) => {
                call(&mut connection.lock().expect("no code panics while it holds this lock"))
            }
        }
    }

    /// Checkpoints the write-ahead log into the main file, so that a copy of that file is complete.
    /// A failure is logged and loses nothing: the log has all data as well.
    pub async fn checkpoint(&self) {
        let checkpoint = |connection: &mut Connection| -> Result<i64> {
            Ok(connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?)
        };
        match self.run(checkpoint).await {
            Ok(0) => {}
            Ok(_) => tracing::warn!("another connection reads the database: its -wal file stays"),
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "checkpoint the -wal file");
            }
        }
    }

    /// Runs a shared operation on the thread, in a transaction that writes, and commits it.
    ///
    /// The operation borrows the connection, so it is awaited by that thread and not by the caller.
    pub async fn write<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &self,
        operation: impl AsyncFnOnce(&mut SqliteSql<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        self.run(move |connection| transaction::write(connection, operation)).await
    }

    /// Runs a shared operation on the thread, in a transaction that reads.
    pub async fn read<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &self,
        operation: impl AsyncFnOnce(&mut SqliteSql<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        self.run(move |connection| transaction::run(connection, "BEGIN", operation)).await
    }
}
