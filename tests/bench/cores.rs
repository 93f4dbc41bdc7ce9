//! Which cores a process runs on. What the scheduler decides anew in every run would else be part of what is measured.

use std::{ops::RangeInclusive, time::Duration};

use harness::{Launch, Program, Scratch};
use nix::unistd::Pid;

const WITHIN: Duration = Duration::from_secs(10);

/// How many cores the machine lets this process have.
pub(crate) fn count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// All of them, as `taskset` takes them.
pub(crate) fn all() -> String {
    list(0..=count() - 1)
}

/// A list of cores as `taskset` takes it.
pub(crate) fn list(cores: RangeInclusive<usize>) -> String {
    format!("{}-{}", cores.start(), cores.end())
}

/// Keeps a process with all its threads, and whatever it starts from now on, on these cores.
///
/// # Errors
/// `taskset` is not installed, or the machine has no such cores.
pub(crate) async fn keep_on(scratch: &Scratch, pid: Pid, cores: RangeInclusive<usize>) -> anyhow::Result<()> {
    let taskset = Launch::new(scratch, "taskset", Program::Taskset.path()?);
    let taskset = taskset.args(["-a", "-c", "-p", &list(cores), &pid.to_string()]);
    taskset.run(WITHIN).await?.success().map(drop)
}
