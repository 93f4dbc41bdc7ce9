//! Limits of open files and memory that the operating system grants this process. Budgets are
//! derived from both.
//!
//! 1. Most systems start a process with a soft limit of 1,024 files and a far higher hard limit.
//!    The soft limit is raised to the hard one, at most to [`DESCRIPTORS_MAX`].
//! 2. Memory is the smallest of the limits of the process' control groups, version 2 or 1, and the
//!    machine's own memory.
//! 3. An unreadable limit does not prevent the start: if no memory limit can be read,
//!    [`MEMORY_UNKNOWN`] applies. The resulting limits are logged.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Assumed memory in bytes if no limit can be read; chosen to be cautious.
const MEMORY_UNKNOWN: u64 = 512 << 20;
/// The cap on descriptors: Linux expresses "unlimited" by its largest numbers.
const DESCRIPTORS_MAX: u64 = 1 << 20;
/// Limits from this value on mean "no limit": version 1 of control groups writes a number just
/// below 2^63 for that.
const NO_LIMIT: u64 = 1 << 60;

/// The resource limits of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Maximum number of open files and connections.
    pub descriptors: usize,
    /// Memory limit in bytes.
    pub memory: u64,
}

impl Resources {
    /// Raises the soft limit of open files to the hard one, and reads both limits.
    pub fn claim() -> Self {
        let resources = Self { descriptors: raise_descriptors(), memory: memory(Path::new("/")) };
        let Self { descriptors, memory } = resources;
        tracing::info!(descriptors, memory_mib = memory >> 20, "limits of this process");
        resources
    }
}

/// Raises the soft limit of open files towards the hard one, and returns the resulting soft limit.
fn raise_descriptors() -> usize {
    let before = getrlimit(Resource::Nofile);
    let most = before.maximum.unwrap_or(DESCRIPTORS_MAX).min(DESCRIPTORS_MAX);
    if before.current.is_some_and(|current| current < most)
        && let Err(error) =
            setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: before.maximum })
    {
        tracing::warn!(%error, "raise the limit of open files");
    }
    let now = getrlimit(Resource::Nofile).current.unwrap_or(DESCRIPTORS_MAX).min(DESCRIPTORS_MAX);
    usize::try_from(now).unwrap_or(usize::MAX)
}

/// Returns the smallest memory limit in bytes, read from `proc` and `sys` below `root`.
fn memory(root: &Path) -> u64 {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let machine = fs::read_to_string(root.join("proc/meminfo")).ok().and_then(|text| total(&text));
    let limits = groups.lines().flat_map(|line| limit_files(root, line));
    // Inside a container the process' own group is often mounted as the root group.
    let limits = limits.chain(
        ["sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"]
            .map(|path| root.join(path)),
    );
    let limits = limits.filter_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
    limits.filter(|limit| *limit < NO_LIMIT).chain(machine).min().unwrap_or(MEMORY_UNKNOWN)
}

/// Returns the limit files of a control group and of its ancestors, given a line of
/// `/proc/self/cgroup`: `ID:CONTROLLERS:PATH`.
fn limit_files(root: &Path, line: &str) -> Vec<PathBuf> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let (folder, file) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        _ if controllers.split(',').any(|one| one == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let groups = Path::new(path.trim_start_matches('/')).ancestors();
    groups.map(|group| root.join(folder).join(group).join(file)).collect()
}

/// Returns `MemTotal` of `/proc/meminfo`, in bytes.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_smallest_limit_counts_whichever_version_of_control_groups_tells_it() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert_eq!(memory(root), MEMORY_UNKNOWN);
        write(root, "proc/meminfo", "MemTotal:       4194304 kB\nMemFree: 1 kB\n");
        assert_eq!(memory(root), 4 << 30);
        write(root, "proc/self/cgroup", "0::/a/b\n");
        write(root, "sys/fs/cgroup/a/b/memory.max", "max\n");
        write(root, "sys/fs/cgroup/a/memory.max", "1073741824\n");
        assert_eq!(memory(root), 1 << 30, "a group around it");
        write(root, "proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/x\n");
        write(root, "sys/fs/cgroup/memory/x/memory.limit_in_bytes", "536870912\n");
        write(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(memory(root), 512 << 20);
    }

    #[test]
    fn the_soft_limit_of_open_files_becomes_the_hard_one() {
        let raised = raise_descriptors();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current.map(|current| current.min(DESCRIPTORS_MAX)), u64::try_from(raised).ok());
        assert!(limit.maximum.is_none_or(|maximum| limit.current == Some(maximum.min(DESCRIPTORS_MAX))));
    }
}
