//! Pins processes to cores. Otherwise the placement by the scheduler, which differs from run to
//! run, would be part of the measurement.

use std::{ops::RangeInclusive, time::Duration};

use harness::{Launch, Program, Scratch};
use nix::unistd::Pid;

const WITHIN: Duration = Duration::from_secs(10);

/// Returns the number of cores that this process may use. Pinning the process with [`keep_on`]
/// lowers it.
pub(crate) fn count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the list of all cores, as `taskset` expects it.
pub(crate) fn all() -> String {
    list(0..=count() - 1)
}

/// Returns a list of cores, as `taskset` expects it.
pub(crate) fn list(cores: RangeInclusive<usize>) -> String {
    format!("{}-{}", cores.start(), cores.end())
}

/// Pins a process with all its threads, and its future children, to these cores.
///
/// # Errors
/// Returns an error if `taskset` is not installed or the machine has no such cores.
pub(crate) async fn keep_on(scratch: &Scratch, pid: Pid, cores: RangeInclusive<usize>) -> anyhow::Result<()> {
    let taskset = Launch::new(scratch, "taskset", Program::Taskset.path()?);
    let taskset = taskset.args(["-a", "-c", "-p", &list(cores), &pid.to_string()]);
    taskset.run(WITHIN).await?.success().map(drop)
}
