//! A call that runs to its end even if its client disconnects.
//!
//! A task of its own would do that too. But moving a create to another runtime and its answer back
//! costs more than all the rest of the create except the insert. So the task of the connection
//! polls the call in place. If that task is dropped, the rest of the call moves to the daemon's
//! runtime.
//!
//! Timers, connections and tasks that the call starts belong to the daemon's runtime in either
//! case. They outlive the listener's thread and take none of its time.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use tokio::runtime;

/// A future that continues on another runtime when it is dropped. It ends with `None` if the call
/// panicked, which ends only the call.
pub struct RunToEnd<F: Future<Output: Send> + Send + 'static> {
    /// The future; `None` once it has ended.
    future: Option<Pin<Box<F>>>,
    runtime: runtime::Handle,
}

impl<F: Future<Output: Send> + Send + 'static> RunToEnd<F> {
    /// Wraps a future. It is polled in place, and by a task of `runtime` once the wrapper is
    /// dropped.
    pub fn new(runtime: &runtime::Handle, future: F) -> Self {
        Self { future: Some(Box::pin(future)), runtime: runtime.clone() }
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for RunToEnd<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let _entered = this.runtime.enter();
        let future = this.future.as_mut().expect("a future must not be polled after it has ended");
        // The future is dropped after a panic and not polled again.
        let output = match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Some(output),
            Err(_) => None,
        };
        this.future = None;
        Poll::Ready(output)
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for RunToEnd<F> {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            self.runtime.spawn(future);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use tokio::{sync::oneshot, time::timeout};

    use super::*;

    /// The runtimes of the daemon and of a listener.
    fn runtimes() -> [runtime::Runtime; 2] {
        let daemon = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        [daemon.unwrap(), runtime::Builder::new_current_thread().enable_all().build().unwrap()]
    }

    #[test]
    fn what_its_client_leaves_ends_on_the_other_runtime() {
        let [daemon, listener] = runtimes();
        let (go, waiting) = oneshot::channel::<()>();
        let (done, ended) = oneshot::channel();
        let call = RunToEnd::new(daemon.handle(), async move {
            waiting.await.unwrap();
            // The timer and the task belong to the daemon's runtime.
            tokio::time::sleep(Duration::from_millis(1)).await;
            tokio::spawn(async move { done.send(thread::current().id()).unwrap() }).await.unwrap();
        });
        let given_up = listener.block_on(async { timeout(Duration::from_millis(1), call).await });
        assert!(given_up.is_err());
        drop(listener);
        go.send(()).unwrap();
        assert_ne!(daemon.block_on(ended).unwrap(), thread::current().id());
    }

    #[test]
    fn what_is_awaited_ends_in_place() {
        let [daemon, listener] = runtimes();
        let here = RunToEnd::new(daemon.handle(), async { thread::current().id() });
        assert_eq!(listener.block_on(here), Some(thread::current().id()));
        let panics = RunToEnd::new(daemon.handle(), async { panic!("as a test wants") });
        assert_eq!(listener.block_on(panics), None::<()>);
    }
}
