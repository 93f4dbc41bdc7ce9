//! A thread that owns a connection and runs jobs on it, in order.

#[cfg(any(test, feature = "inline"))]
use std::sync::{Arc, Mutex};
use std::thread;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::transaction::{self, SqliteSql};
use crate::StoreError;

/// Maximum number of queued jobs. The callers are bounded batches and rare commands.
const QUEUE: usize = 64;

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// The queue of a thread. The thread ends once this is dropped and the queue is empty.
pub(super) enum Worker {
    Thread(mpsc::Sender<Job>),
    /// Runs jobs in place: the paused clock of tests must not advance meanwhile.
    #[cfg(any(test, feature = "inline"))]
    Here(Arc<Mutex<Connection>>),
}

impl Worker {
    pub(super) fn start(name: &str, mut connection: Connection) -> Self {
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
        Self::Thread(jobs)
    }

    /// Runs a job on the thread, and returns its result.
    ///
    /// # Errors
    /// Returns [`StoreError::Stopped`] if the thread has ended.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let jobs = match self {
            Self::Thread(jobs) => jobs,
            #[cfg(any(test, feature = "inline"))]
            Self::Here(connection) => {
                return call(&mut connection.lock().expect("no code panics while it holds this lock"));
            }
        };
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            // The caller may have given up; the job is done either way.
            let _ = answer.send(call(connection));
        });
        jobs.send(job).await.map_err(|_| StoreError::Stopped)?;
        answered.await.unwrap_or(Err(StoreError::Stopped))
    }

    /// Runs a shared operation on the thread, in a transaction that writes, and commits it.
    ///
    /// The operation borrows the connection, so it is awaited by that thread and not by the caller.
    ///
    /// # Errors
    /// Returns [`StoreError::Stopped`] if the thread has ended.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        operation: impl AsyncFnOnce(&mut SqliteSql<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run(move |connection| transaction::write(connection, operation)).await
    }

    /// Runs a shared operation on the thread, in a transaction that reads.
    ///
    /// # Errors
    /// Returns [`StoreError::Stopped`] if the thread has ended.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        operation: impl AsyncFnOnce(&mut SqliteSql<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run(move |connection| transaction::read(connection, operation)).await
    }
}
