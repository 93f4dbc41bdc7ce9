//! A child process that is killed when its handle is dropped.
//!
//! 1. It is signalled by process id, and only until it was reaped, so its id cannot belong to
//!    another process yet.
//! 2. Dropping the handle kills and reaps it.

use std::process::{Child, ExitStatus};
use std::time::Duration;

use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::Instant;

use crate::launch::Launch;
use crate::orphans::Watch;
use crate::procfs::Seen;
use crate::wait;

/// The number of log lines in an error message.
const TAIL_LINES: usize = 40;

/// The time limit for SIGSTOP to stop a process.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// A started program, which may have ended since.
#[derive(Debug)]
pub struct Process {
    launch: Launch,
    child: Child,
    /// The orphan watcher's guard; `None` once the child was reaped.
    watch: Option<Watch>,
}

impl Process {
    pub(crate) fn new(launch: Launch, child: Child, watch: Watch) -> Self {
        Self { launch, child, watch: Some(watch) }
    }

    /// Returns the process id of the current run, or of the last one.
    pub fn pid(&self) -> Pid {
        pid_of(&self.child)
    }

    /// Returns whether the process has not ended yet; a paused process counts as running.
    pub fn is_running(&mut self) -> bool {
        matches!(self.poll_exit(), Ok(None))
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// Returns an error if the process has ended.
    pub fn signal(&mut self, signal: Signal) -> anyhow::Result<()> {
        if let Some(status) = self.poll_exit()? {
            anyhow::bail!("{signal} to {}, which has ended with {status}", self.launch.stem());
        }
        kill(self.pid(), signal).with_context(|| format!("send {signal} to {}", self.launch.stem()))
    }

    /// Sends SIGKILL and returns when the process has ended. Does nothing if it had ended already.
    ///
    /// # Errors
    /// Returns an error if the signal cannot be sent.
    pub fn kill_now(&mut self) -> anyhow::Result<()> {
        if self.is_running() {
            self.signal(Signal::SIGKILL)?;
            self.child.wait().with_context(|| format!("reap {}", self.launch.stem()))?;
            self.watch = None;
        }
        Ok(())
    }

    /// Sends SIGTERM, which requests a graceful shutdown as Kubernetes does.
    ///
    /// # Errors
    /// Returns an error if the process has ended.
    pub fn terminate(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::SIGTERM)
    }

    /// Sends SIGINT, like Ctrl-C; for Postgres a fast shutdown.
    ///
    /// # Errors
    /// Returns an error if the process has ended.
    pub fn interrupt(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::SIGINT)
    }

    /// Sends SIGQUIT; for Postgres an immediate shutdown.
    ///
    /// # Errors
    /// Returns an error if the process has ended.
    pub fn quit(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::SIGQUIT)
    }

    /// Sends SIGSTOP and returns when the process is stopped.
    ///
    /// # Errors
    /// Returns an error if the process has ended or does not stop.
    pub async fn pause(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::SIGSTOP)?;
        let (pid, what) = (self.pid(), format!("{} stops", self.launch.stem()));
        wait::until(STOP_WITHIN, &what, async || Seen::look(pid).is_none_or(Seen::is_stopped)).await
    }

    /// Sends SIGCONT, which continues the process after [`Self::pause`].
    ///
    /// # Errors
    /// Returns an error if the process has ended.
    pub fn resume(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::SIGCONT)
    }

    /// Waits for the process to end and returns its exit status.
    ///
    /// # Errors
    /// Returns an error if it still runs after the given time; the message contains the end of its
    /// log.
    pub async fn wait_exit(&mut self, within: Duration) -> anyhow::Result<ExitStatus> {
        let what = format!("{} ends", self.launch.stem());
        let ended = wait::until_some(within, &what, async || self.poll_exit().transpose()).await;
        ended.flatten().map_err(|failed| self.blame(&failed))
    }

    /// Waits for the process to end and returns whether it did. For destructors, which cannot be
    /// async.
    pub fn wait_exit_blocking(&mut self, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        while self.is_running() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(wait::POLL_INTERVAL);
        }
        true
    }

    /// Waits until `condition` reports that the process is ready.
    ///
    /// # Errors
    /// Returns an error if the process ends or is not ready in time; the message contains the end
    /// of its log.
    pub async fn wait_ready(
        &mut self,
        within: Duration,
        mut condition: impl AsyncFnMut() -> bool,
    ) -> anyhow::Result<()> {
        let what = format!("{} is ready", self.launch.stem());
        let looked = wait::until_some(within, &what, async || match self.poll_exit() {
            Ok(Some(status)) => Some(Err(anyhow::anyhow!("{what}: it ended with {status} instead"))),
            Ok(None) => condition().await.then_some(Ok(())),
            Err(failed) => Some(Err(failed)),
        });
        let looked = looked.await.flatten();
        looked.map_err(|failed| self.blame(&failed))
    }

    /// Restarts the program with the same arguments, killing the current run first. Appends to the
    /// logs.
    ///
    /// # Errors
    /// Returns an error if the program cannot be started.
    pub fn respawn(&mut self) -> anyhow::Result<()> {
        self.kill_now()?;
        let (child, watch) = self.launch.child()?;
        (self.child, self.watch) = (child, Some(watch));
        Ok(())
    }

    /// Returns the standard output of all runs so far.
    pub fn stdout(&self) -> String {
        self.launch.log("out")
    }

    /// Returns the standard error of all runs so far.
    pub fn stderr(&self) -> String {
        self.launch.log("err")
    }

    /// Returns the standard output followed by the standard error.
    pub fn logs(&self) -> String {
        self.stdout() + &self.stderr()
    }

    /// Returns the last lines of the logs with a headline, for error messages.
    pub fn tail(&self) -> String {
        let logs = self.logs();
        let lines: Vec<&str> = logs.lines().collect();
        let last = &lines[lines.len().saturating_sub(TAIL_LINES)..];
        format!("the log of {} ends with:\n{}", self.launch.stem(), last.join("\n"))
    }

    /// Returns an error with the failure first and the log after it. An error chain would show them
    /// the other way round.
    fn blame(&self, failed: &anyhow::Error) -> anyhow::Error {
        anyhow::anyhow!("{failed:#}; {}", self.tail())
    }

    /// Reaps the process if it has ended, and returns its exit status then.
    fn poll_exit(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        let ended = self.child.try_wait().with_context(|| format!("look after {}", self.launch.stem()))?;
        if ended.is_some() {
            self.watch = None;
        }
        Ok(ended)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A destructor cannot report a failure. The watcher in `orphans` tries once more when this
        // run ends.
        drop(self.kill_now());
    }
}

/// Returns the process id of a child.
pub(crate) fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("Linux process ids have at most 22 bits"))
}
