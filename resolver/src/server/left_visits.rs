//! Visits that a process leaves in its spool at its end, and whether the next start can find them.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use ingest::IngestMetrics;
use spool::BacklogGauge;

const MOUNTS: &str = "/proc/self/mountinfo";
/// The part of a path that the kubelet gives to volumes which are deleted with their pod.
const EMPTY_DIR: &str = "/kubernetes.io~empty-dir/";

/// The visits in a spool that are not stored yet.
#[derive(Clone)]
pub(super) struct SpoolBacklog {
    pub(super) gauge: BacklogGauge,
    pub(super) metrics: Arc<IngestMetrics>,
    pub(super) folder: PathBuf,
}

impl SpoolBacklog {
    /// Logs that the process has stopped, and what it leaves in its spool if it has one. It cannot
    /// tell whether a volume, or a folder of the machine, is there for the next start.
    pub(super) fn log_end(spool: Option<&Self>) {
        let left = spool.map(|spool| (spool, spool.gauge.events()));
        let Some((spool, visits)) = left.filter(|(_, visits)| *visits > 0) else {
            return tracing::info!("stopped");
        };
        let (bytes, folder) = (spool.gauge.read().bytes, spool.folder.display());
        let mounts = std::fs::read_to_string(MOUNTS).unwrap_or_default();
        match passing(&mounts, &spool.folder) {
            Some(place) => tracing::error!(
                visits,
                bytes,
                %folder,
                place,
                "stopped: visits are left in a spool that goes with its pod or container. They are lost unless the \
                 same container starts again"
            ),
            None => tracing::warn!(
                visits,
                bytes,
                %folder,
                "stopped: visits are left in the spool. The next start with this folder stores them; whether its \
                 volume is kept is not known here"
            ),
        }
    }
}

/// Returns what a folder is in, if that goes with the pod, the container or the machine's memory.
fn passing(mounts: &str, folder: &Path) -> Option<&'static str> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    // Of several mounts at one place, the last one counts.
    let of_folder = mounts.lines().filter_map(mount).filter(|(_, at, _)| folder.starts_with(at));
    let (root, _, kind) = of_folder.max_by_key(|(_, at, _)| at.as_os_str().len())?;
    match kind {
        "tmpfs" | "ramfs" => Some("memory"),
        "overlay" | "fuse.fuse-overlayfs" | "aufs" => Some("the container's own layer"),
        _ if format!("{root}/").contains(EMPTY_DIR) => Some("an emptyDir volume"),
        _ => None,
    }
}

/// Reads a line of [`MOUNTS`]: the folder of the file system that is mounted, where, and its kind.
fn mount(line: &str) -> Option<(&str, PathBuf, &str)> {
    let (place, system) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, at) = (place.next()?, place.next()?);
    // Characters that separate fields are escaped in octal.
    let at = at.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\");
    Some((root, at.into(), system.split(' ').next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 0:21 / / rw,relatime - overlay overlay rw
30 22 8:1 / /data rw shared:1 - ext4 /dev/sda1 rw
31 22 8:1 /var/lib/kubelet/pods/u-1/volumes/kubernetes.io~empty-dir/data /var/lib/shortmint rw - ext4 /dev/sda1 rw
32 22 8:2 /pods/u-1/volumes/kubernetes.io~csi/pvc-7/mount /var/lib/kept rw master:2 - xfs /dev/sdb rw
33 22 0:40 / /a\\040run rw - tmpfs tmpfs rw
34 30 8:3 / /data/deep rw - ext4 /dev/sdc rw
35 30 0:41 / /data/deep rw - tmpfs tmpfs rw";

    #[test]
    fn a_folder_is_passing_by_the_innermost_and_latest_mount_that_it_is_in() {
        for (folder, place) in [
            ("/var/lib/shortmint/spool", Some("an emptyDir volume")),
            ("/var/lib/shortmint", Some("an emptyDir volume")),
            ("/var/lib/kept/spool", None),
            ("/var/lib/shortmints", Some("the container's own layer")),
            ("/a run/spool", Some("memory")),
            ("/data/spool", None),
            ("/data/deep/spool", Some("memory")),
        ] {
            assert_eq!(passing(MOUNTS, Path::new(folder)), place, "{folder}");
        }
        assert_eq!(passing("", Path::new("/data")), None, "nothing is known");
    }
}
