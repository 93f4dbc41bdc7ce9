//! A watcher that kills the servers of a test process that was itself killed.
//!
//! Destructors do not run after SIGKILL or an abort, and orphaned servers exhaust a small machine.
//! So one shell per test process reads the ids of running children from a pipe. When the pipe
//! breaks, it kills those still listed. The parent-death signal would be simpler, but needs unsafe
//! code and fires when the starting *thread* ends.

use std::io::Write;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

use nix::unistd::Pid;

/// The watcher's shell script. It ignores terminal signals, which reach the shell too, because it
/// must outlive them to do its work.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
live=" "
while read -r verb pid; do
  case "$verb$live" in
    watch*) live="$live$pid " ;;
    forget*" $pid "*) live="${live%%" $pid "*} ${live#*" $pid "}" ;;
  esac
done
for pid in $live; do kill -9 "$pid" 2>/dev/null; done
"#;

/// The write end of the watcher's pipe. It stays open for the life of the process, since statics
/// are never dropped.
static PIPE: LazyLock<Mutex<Option<ChildStdin>>> = LazyLock::new(|| Mutex::new(start()));

/// A guard that keeps a child registered with the watcher. Drop it once the child was reaped,
/// because its id may soon belong to another process.
#[derive(Debug)]
pub struct Watch(Pid);

impl Watch {
    /// Registers a child with the watcher.
    pub fn over(pid: Pid) -> Self {
        tell("watch", pid);
        Self(pid)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        tell("forget", self.0);
    }
}

/// Starts the shell and returns its input. Without a shell there is no safety net, but that is no
/// reason to fail a test.
fn start() -> Option<ChildStdin> {
    let mut shell = Command::new("sh");
    shell.args(["-c", SCRIPT]).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null());
    shell.stderr(Stdio::null()).spawn().ok()?.stdin
}

fn tell(verb: &str, pid: Pid) {
    let mut pipe = PIPE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pipe) = pipe.as_mut() {
        // A broken pipe means that the shell, and so only the safety net, is gone.
        drop(writeln!(pipe, "{verb} {pid}"));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command};

    use super::start;

    #[test]
    fn a_broken_pipe_kills_the_watched_and_not_the_forgotten() {
        let mut children: Vec<Child> = (0..3).map(|_| sleeper()).collect();
        let mut pipe = start().unwrap();
        for child in &children {
            writeln!(pipe, "watch {}", child.id()).unwrap();
        }
        for _ in 0..100 {
            writeln!(pipe, "forget {}", children[1].id()).unwrap();
        }
        drop(pipe);
        assert_eq!(children[0].wait().unwrap().signal(), Some(9));
        assert_eq!(children[2].wait().unwrap().signal(), Some(9));
        assert!(children[1].try_wait().unwrap().is_none());
        children[1].kill().unwrap();
        children[1].wait().unwrap();
    }

    /// Starts a child that ends on its own after 20 s, so that a failure does not hang.
    fn sleeper() -> Child {
        Command::new("sleep").arg("20").spawn().unwrap()
    }
}
