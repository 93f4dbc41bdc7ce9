//! The open files and the memory that the operating system grants this process; budgets are derived from both.
//!
//! 1. Most systems start a process with 1,024 files and let it have many more: the soft limit is raised to the hard one.
//! 2. Memory is the smallest limit of the process' control groups, version 2 or 1, or else the machine's own.
//! 3. A limit that cannot be read is no reason not to start: the cautious default is taken, and logged.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Taken when the system does not tell its memory.
const MEMORY_UNKNOWN: u64 = 512 << 20;
/// More descriptors than this are of no use here, and Linux calls its largest numbers unlimited.
const DESCRIPTORS_MAX: u64 = 1 << 20;
/// Version 1 of control groups writes a number close to this for "no limit".
const NO_LIMIT: u64 = 1 << 60;

/// What this process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Files and connections that may be open.
    pub descriptors: usize,
    /// Bytes of memory.
    pub memory: u64,
}

impl Resources {
    /// Raises the soft limit of open files to the hard one, and reads both limits.
    #[must_use]
    pub fn claim() -> Self {
        let resources = Self { descriptors: raise_descriptors(), memory: memory(Path::new("/")) };
        let Self { descriptors, memory } = resources;
        tracing::info!(descriptors, memory_mib = memory >> 20, "limits of this process");
        resources
    }
}

/// Raises the soft limit as far as the hard one lets it, and returns what it is now.
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

/// The smallest limit that the files below a root folder tell of.
fn memory(root: &Path) -> u64 {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let machine = fs::read_to_string(root.join("proc/meminfo")).ok().and_then(|text| total(&text));
    let limits = groups.lines().flat_map(|line| limit_files(root, line));
    // Inside a container the group's own folder is often mounted as the top one.
    let limits = limits.chain(
        ["sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"]
            .map(|path| root.join(path)),
    );
    let limits = limits.filter_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
    limits.filter(|limit| *limit < NO_LIMIT).chain(machine).min().unwrap_or(MEMORY_UNKNOWN)
}

/// Files with the limits of a group and of those around it, by a line of `/proc/self/cgroup`: `ID:CONTROLLERS:PATH`.
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

/// `MemTotal` of `/proc/meminfo`, in bytes.
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
