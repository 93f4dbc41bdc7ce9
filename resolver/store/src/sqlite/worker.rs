//! A thread that owns a connection and runs what it is handed, in order.

#[cfg(any(test, feature = "inline"))]
use std::sync::{Arc, Mutex};
use std::thread;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::StoreError;

/// Calls that may wait; the callers are bounded batches and rare commands.
const QUEUE: usize = 64;

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// The thread's queue. The thread ends when this is dropped and the queue is empty.
pub(super) enum Worker {
    Thread(mpsc::Sender<Job>),
    /// Runs calls where they are made: time that tests move stands still meanwhile.
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
        // Failing here means that the system gives no threads at start-up: every call then answers `Stopped`.
        if let Err(error) = thread::Builder::new().name(name.to_owned()).spawn(run) {
            tracing::error!(%error, name, "start a thread");
        }
        Self::Thread(jobs)
    }

    /// Runs a call on the thread.
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
            // The caller may be gone; the work is done either way.
            let _ = answer.send(call(connection));
        });
        jobs.send(job).await.map_err(|_| StoreError::Stopped)?;
        answered.await.unwrap_or(Err(StoreError::Stopped))
    }
}
