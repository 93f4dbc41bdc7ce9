//! Tasks that a daemon cannot do without. When one panics the process ends: a supervisor outside starts it anew, while a daemon that
//! lives on without its heart answers probes and nothing else.

use tokio::{sync::mpsc, task::JoinHandle};

/// Starts vital tasks. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Vitals {
    failures: mpsc::Sender<&'static str>,
}

/// Hears of the first vital task that failed.
#[derive(Debug)]
pub struct Failures(mpsc::Receiver<&'static str>);

impl Vitals {
    /// Nothing has failed yet.
    #[must_use]
    pub fn new() -> (Self, Failures) {
        let (failures, failed) = mpsc::channel(1);
        (Self { failures }, Failures(failed))
    }

    /// Starts a task. Its end is no failure, its panic is.
    pub fn spawn(
        &self,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        let failures = self.failures.clone();
        tokio::spawn(async move {
            let ended = tokio::spawn(task).await;
            if ended.is_err_and(|error| error.is_panic()) {
                tracing::error!(task = name, "a task that the process cannot do without has failed");
                // One failure is enough; a second finds the channel full.
                let _ = failures.try_send(name);
            }
        })
    }
}

impl Failures {
    /// Waits for a failure; for ever when there is none.
    pub async fn first(&mut self) -> &'static str {
        match self.0.recv().await {
            Some(name) => name,
            // Every task has ended well.
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_heard_of_and_an_end_is_not() {
        let (vitals, mut failures) = Vitals::new();
        vitals.spawn("well", async {}).await.unwrap();
        vitals.spawn("ill", async { panic!("as the test wants it") });
        assert_eq!(failures.first().await, "ill");
    }
}
