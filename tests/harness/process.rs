//! A child process that dies with the value that stands for it.
//!
//! 1. It is signalled by process id, and only until it was reaped: the id cannot have passed to a stranger.
//! 2. Dropping the value kills and reaps it.

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

/// How much of a log an error message shows.
const TAIL_LINES: usize = 40;

/// How long a signal may take to stop a process.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// A started program.
#[derive(Debug)]
pub struct Process {
    launch: Launch,
    child: Child,
    /// `None` once the child was reaped.
    watch: Option<Watch>,
}

impl Process {
    pub(crate) fn new(launch: Launch, child: Child, watch: Watch) -> Self {
        Self { launch, child, watch: Some(watch) }
    }

    /// Its process id, or that of its last run.
    pub fn pid(&self) -> Pid {
        pid_of(&self.child)
    }

    /// Whether it has not ended yet; a paused process runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.poll_exit(), Ok(None))
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// The process has ended.
    pub fn signal(&mut self, signal: Signal) -> anyhow::Result<()> {
        if let Some(status) = self.poll_exit()? {
            anyhow::bail!("{signal} to {}, which has ended with {status}", self.launch.stem());
        }
        kill(self.pid(), signal).with_context(|| format!("send {signal} to {}", self.launch.stem()))
    }

    /// SIGKILL, and returns when the process is gone. Nothing happens if it was gone already.
    ///
    /// # Errors
    /// The signal cannot be sent.
    pub fn kill_now(&mut self) -> anyhow::Result<()> {
        if self.is_running() {
            self.signal(Signal::SIGKILL)?;
            self.child.wait().with_context(|| format!("reap {}", self.launch.stem()))?;
            self.watch = None;
        }
        Ok(())
    }

    /// SIGTERM: the polite request, as Kubernetes sends it.
    ///
    /// # Errors
    /// The process has ended.
    pub fn terminate(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::SIGTERM)
    }

    /// SIGINT: Ctrl-C; a fast shutdown to Postgres.
    ///
    /// # Errors
    /// The process has ended.
    pub fn interrupt(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::SIGINT)
    }

    /// SIGQUIT: an immediate shutdown to Postgres.
    ///
    /// # Errors
    /// The process has ended.
    pub fn quit(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::SIGQUIT)
    }

    /// SIGSTOP, and returns when the process stands still.
    ///
    /// # Errors
    /// The process has ended, or does not stop.
    pub async fn pause(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::SIGSTOP)?;
        let (pid, what) = (self.pid(), format!("{} stops", self.launch.stem()));
        wait::until(STOP_WITHIN, &what, async || Seen::look(pid).is_none_or(Seen::is_stopped)).await
    }

    /// SIGCONT: goes on after [`Self::pause`].
    ///
    /// # Errors
    /// The process has ended.
    pub fn resume(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::SIGCONT)
    }

    /// Waits for the process to end.
    ///
    /// # Errors
    /// It still runs after the given time; the message holds the end of its log.
    pub async fn wait_exit(&mut self, within: Duration) -> anyhow::Result<ExitStatus> {
        let what = format!("{} ends", self.launch.stem());
        let ended = wait::until_some(within, &what, async || self.poll_exit().transpose()).await;
        ended.flatten().map_err(|failed| self.blame(&failed))
    }

    /// Waits for the process to end, for destructors, which cannot be async; says whether it did.
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

    /// Waits until the process does its work, as `condition` tells.
    ///
    /// # Errors
    /// It ended instead, or is not ready in time; the message holds the end of its log.
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

    /// Starts it again with the same arguments, after killing what is left of it. The logs are continued.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn respawn(&mut self) -> anyhow::Result<()> {
        self.kill_now()?;
        let (child, watch) = self.launch.child()?;
        (self.child, self.watch) = (child, Some(watch));
        Ok(())
    }

    /// All it wrote to its standard output so far, over all its runs.
    pub fn stdout(&self) -> String {
        self.launch.log("out")
    }

    /// All it wrote to its standard error so far, over all its runs.
    pub fn stderr(&self) -> String {
        self.launch.log("err")
    }

    /// Both logs, one after the other.
    pub fn logs(&self) -> String {
        self.stdout() + &self.stderr()
    }

    /// The last lines of its logs, with a headline, for error messages.
    pub fn tail(&self) -> String {
        let logs = self.logs();
        let lines: Vec<&str> = logs.lines().collect();
        let last = &lines[lines.len().saturating_sub(TAIL_LINES)..];
        format!("the log of {} ends with:\n{}", self.launch.stem(), last.join("\n"))
    }

    /// The failure first, then the log: an error chain would show them the other way round.
    fn blame(&self, failed: &anyhow::Error) -> anyhow::Error {
        anyhow::anyhow!("{failed:#}; {}", self.tail())
    }

    /// How it ended, if it did; reaps it then.
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
        // Nobody is left to tell about a failure; the watcher in `orphans` tries once more when this run ends.
        drop(self.kill_now());
    }
}

/// The process id of a child.
pub(crate) fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("Linux process ids have at most 22 bits"))
}
