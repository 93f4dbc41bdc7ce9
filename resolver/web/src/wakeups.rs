//! Wake-ups from other threads, delivered to a listener's thread in groups.
//!
//! Creates and reads of links end on the daemon's own runtime, dozens at a time, and each wakes a
//! request that waits on a listener's thread. Waking a task of another runtime costs a write to
//! that runtime's eventfd every time. Here the first wake-up of a group wakes one task of the
//! listener's thread, and those that follow before that task runs only join its list. That task
//! wakes theirs from their own thread, where a wake-up is a push to a queue.
//!
//! A list holds each waiting request once, so the number of connections bounds its length.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, ThreadId},
};

use tokio::sync::Notify;

use crate::lock;

/// The requests of one listener's thread that other threads have woken.
#[derive(Debug)]
pub struct Wakeups {
    thread: ThreadId,
    woken: Mutex<Vec<Arc<Sleeper>>>,
    some: Notify,
}

impl Wakeups {
    /// Creates a group for requests that the current thread polls.
    pub fn of_this_thread() -> Arc<Self> {
        Arc::new(Self { thread: thread::current().id(), woken: Mutex::default(), some: Notify::new() })
    }

    /// Delivers wake-ups until it is dropped. It must run as a task of the thread.
    pub async fn deliver(self: Arc<Self>) {
        let mut woken = Vec::new();
        loop {
            self.some.notified().await;
            std::mem::swap(&mut woken, &mut *lock(&self.woken));
            for sleeper in woken.drain(..) {
                // Cleared before the task is woken, so that an event after this line lists the
                // request again.
                sleeper.is_listed.swap(false, Ordering::AcqRel);
                sleeper.wake_task();
            }
        }
    }

    /// Wraps a future so that its wake-ups go through the group. The future is boxed, because
    /// futures of the API are large, unlike those of redirects beside them.
    pub fn gather<F: Future>(self: &Arc<Self>, future: F) -> Gathered<F> {
        let sleeper =
            Arc::new(Sleeper { group: Arc::clone(self), task: Mutex::new(None), is_listed: false.into() });
        Gathered { future: Box::pin(future), waker: Waker::from(Arc::clone(&sleeper)), sleeper }
    }

    fn add(&self, sleeper: Arc<Sleeper>) {
        let mut woken = lock(&self.woken);
        let is_first = woken.is_empty();
        woken.push(sleeper);
        drop(woken);
        if is_first {
            self.some.notify_one();
        }
    }
}

/// A future whose wake-ups go through [`Wakeups`].
pub struct Gathered<F> {
    future: Pin<Box<F>>,
    sleeper: Arc<Sleeper>,
    waker: Waker,
}

impl<F: Future> Future for Gathered<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        this.sleeper.set_task(cx.waker());
        this.future.as_mut().poll(&mut Context::from_waker(&this.waker))
    }
}

/// A request that any thread may wake.
#[derive(Debug)]
struct Sleeper {
    group: Arc<Wakeups>,
    /// The waker of the task that polls it.
    task: Mutex<Option<Waker>>,
    /// Whether it is in the group's list.
    is_listed: AtomicBool,
}

impl Sleeper {
    fn set_task(&self, waker: &Waker) {
        let mut task = lock(&self.task);
        if !task.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *task = Some(waker.clone());
        }
    }

    fn wake_task(&self) {
        // Wakes the task outside of the lock, because a waker may run any code.
        let task = lock(&self.task).clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        if thread::current().id() == self.group.thread {
            return self.wake_task();
        }
        if !self.is_listed.swap(true, Ordering::AcqRel) {
            let group = Arc::clone(&self.group);
            group.add(self);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::oneshot;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn what_other_threads_finish_ends_here_however_many_there_are() {
        let group = Wakeups::of_this_thread();
        let delivering = tokio::spawn(Arc::clone(&group).deliver());
        for _ in 0..50 {
            let (senders, waiting): (Vec<_>, Vec<_>) = (0..100).map(|_| oneshot::channel()).unzip();
            let tasks: Vec<_> =
                waiting.into_iter().map(|waiting| tokio::spawn(group.gather(waiting))).collect();
            let sending = thread::spawn(move || {
                for (number, sender) in senders.into_iter().enumerate() {
                    sender.send(number).unwrap();
                }
            });
            for (number, task) in tasks.into_iter().enumerate() {
                assert_eq!(task.await.unwrap(), Ok(number));
            }
            sending.join().unwrap();
        }
        assert!(lock(&group.woken).len() <= 100);
        delivering.abort();
    }

    #[tokio::test]
    async fn a_group_is_listed_once_each_until_it_is_delivered() {
        let group = Wakeups::of_this_thread();
        let (count, mut never) = (Arc::new(Count::default()), group.gather(std::future::pending::<()>()));
        let polled_by = Waker::from(Arc::clone(&count));
        assert!(Pin::new(&mut never).poll(&mut Context::from_waker(&polled_by)).is_pending());
        let waker = never.waker.clone();
        let woken = move || {
            for _ in 0..3 {
                waker.wake_by_ref();
            }
        };
        thread::spawn(woken.clone()).join().unwrap();
        assert_eq!((lock(&group.woken).len(), count.0.load(Ordering::Relaxed)), (1, 0));
        let delivering = tokio::spawn(Arc::clone(&group).deliver());
        tokio::task::yield_now().await;
        assert_eq!((lock(&group.woken).len(), count.0.load(Ordering::Relaxed)), (0, 1));
        // After a delivery it is listed again. A wake-up from its own thread is immediate.
        thread::spawn(woken.clone()).join().unwrap();
        tokio::task::yield_now().await;
        assert_eq!(count.0.load(Ordering::Relaxed), 2);
        woken();
        assert_eq!(count.0.load(Ordering::Relaxed), 5);
        delivering.abort();
    }
}
