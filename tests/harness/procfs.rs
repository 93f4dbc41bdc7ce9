//! The state of other processes, read from `/proc`.
//!
//! Process ids are reused, so a process is remembered together with its start time. So
//! [`Seen::is_gone`] does not mistake another process with the same id for it.

use std::{fs, time::Duration};

use nix::unistd::Pid;

/// A process as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The process id.
    pub pid: Pid,
    parent: Pid,
    state: char,
    /// The start time, in clock ticks since the machine's boot.
    started: u64,
}

impl Seen {
    /// Looks up a process; `None` if there is no process with that id.
    pub fn look(pid: Pid) -> Option<Self> {
        let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the program's name in parentheses. It may contain any character,
        // including parentheses and spaces.
        let (_, rest) = line.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let state = fields.next()?.chars().next()?;
        let parent = Pid::from_raw(fields.next()?.parse().ok()?);
        // proc(5): the state is field 3, the parent field 4, the start time field 22.
        let started = fields.nth(17)?.parse().ok()?;
        Some(Self { pid, parent, state, started })
    }

    /// Returns whether the process is stopped, as after SIGSTOP. The kernel reports the state of
    /// the main thread.
    pub fn is_stopped(self) -> bool {
        matches!(self.state, 'T' | 't')
    }

    /// Returns whether this very process has ended. A zombie counts as ended: it no longer holds
    /// files, locks or memory.
    pub fn is_gone(self) -> bool {
        Self::look(self.pid).is_none_or(|now| now.started != self.started || matches!(now.state, 'Z' | 'X'))
    }
}

/// Returns the processor time that a process has used in user and kernel mode; `None` if there is
/// no such process.
pub fn cpu_time(pid: Pid) -> Option<Duration> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = line.rsplit_once(") ")?;
    // proc(5): user time is field 14 and kernel time field 15, in ticks of 10 ms (`USER_HZ` is
    // 100).
    let ticks: u64 = rest.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(ticks * 10))
}

/// Returns the resident memory of a process in bytes; `None` if there is no such process.
pub fn resident(pid: Pid) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

/// Returns the children of a process.
pub fn children(parent: Pid) -> Vec<Seen> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Seen::look(Pid::from_raw(pid))).filter(|seen| seen.parent == parent).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::unistd::Pid;

    use super::{Seen, children};

    #[test]
    fn a_child_is_seen_until_it_ends() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_raw(child.id().try_into().unwrap());
        let seen = Seen::look(pid).unwrap();
        assert!(children(Pid::this()).iter().any(|found| found.pid == pid));
        assert!(!seen.is_gone());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(seen.is_gone());
    }
}
