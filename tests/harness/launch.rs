//! The launch of a program: arguments, environment, account and log files.
//!
//! The environment is cleaned: variables that configure one of the programs are not passed on, so
//! the settings of a developer's shell do not affect a test.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context;

use crate::account::Account;
use crate::orphans::Watch;
use crate::process::{Process, pid_of};
use crate::scratch::Scratch;

/// The prefixes of environment variables that are not passed on, because they change the behaviour
/// of one of the programs.
const DROPPED_PREFIXES: [&str; 6] = ["RESOLVER_", "ISSUER_", "PG", "ETCD", "OTEL_", "RUST_LOG"];

/// Bytes that a pipe holds before its writer has to wait.
const PIPE_BYTES: usize = 64 * 1024;

/// Where the standard error of a program goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorOutput {
    /// To a log file.
    Log,
    /// To a pipe whose reader is gone: each write fails with EPIPE.
    Closed,
    /// To a full disk: each write fails with ENOSPC.
    Full,
    /// To a full pipe that is never read: each write waits for ever.
    Unread,
}

/// A program with its arguments and environment. It can be started more than once.
#[derive(Clone, Debug)]
pub struct Launch {
    scratch: Scratch,
    stem: String,
    program: PathBuf,
    args: Vec<OsString>,
    envs: Vec<(OsString, OsString)>,
    account: Option<Account>,
    stdin: Option<PathBuf>,
    descriptors: Option<u32>,
    error_output: ErrorOutput,
}

impl Launch {
    /// Creates a launch of a program in the scratch folder. The names of its log files start with
    /// `name`.
    pub fn new(scratch: &Scratch, name: &str, program: impl Into<PathBuf>) -> Self {
        let (scratch, stem) = (scratch.clone(), scratch.stem(name));
        let (args, envs) = (Vec::new(), Vec::new());
        Self {
            scratch,
            stem,
            program: program.into(),
            args,
            envs,
            account: None,
            stdin: None,
            descriptors: None,
            error_output: ErrorOutput::Log,
        }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.envs.push((key.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Runs the program as another account; `None` keeps the current one.
    #[must_use]
    pub fn account(mut self, account: Option<Account>) -> Self {
        self.account = account;
        self
    }

    /// Uses this file as the standard input, which is empty otherwise.
    #[must_use]
    pub fn stdin(mut self, path: impl Into<PathBuf>) -> Self {
        self.stdin = Some(path.into());
        self
    }

    /// Limits the number of open files, whatever the machine allows; `None` keeps the machine's
    /// limit.
    #[must_use]
    pub fn descriptors(mut self, most: Option<u32>) -> Self {
        self.descriptors = most;
        self
    }

    /// Sets where the standard error goes, which is a log file otherwise.
    #[must_use]
    pub fn error_output(mut self, to: ErrorOutput) -> Self {
        self.error_output = to;
        self
    }

    /// Starts the program.
    ///
    /// # Errors
    /// Returns an error if the program cannot be executed or its log files cannot be created.
    pub fn spawn(self) -> anyhow::Result<Process> {
        let (child, watch) = self.child()?;
        Ok(Process::new(self, child, watch))
    }

    /// Runs the program to completion.
    ///
    /// # Errors
    /// Returns an error if the program cannot start or does not end in time. A non-zero exit code
    /// is not an error here.
    pub async fn run(self, within: Duration) -> anyhow::Result<Finished> {
        let mut process = self.spawn()?;
        let status = process.wait_exit(within).await?;
        Ok(Finished { status, stdout: process.stdout(), stderr: process.stderr() })
    }

    /// Starts the program as a plain child, without the [`Process`] that kills it on drop.
    pub(crate) fn child(&self) -> anyhow::Result<(Child, Watch)> {
        let mut command = self.command();
        command.args(&self.args).current_dir(self.scratch.path()).stdin(self.input()?);
        command.stdout(append(&self.log_path("out"))?).stderr(self.standard_error()?);
        for (key, _) in std::env::vars_os() {
            if DROPPED_PREFIXES.iter().any(|prefix| key.to_string_lossy().starts_with(prefix)) {
                command.env_remove(key);
            }
        }
        command.envs(self.envs.iter().map(|(key, value)| (key, value)));
        if let Some(account) = self.account {
            command.uid(account.uid).gid(account.gid);
        }
        let child = command.spawn().with_context(|| format!("start {}", self.program.display()))?;
        let watch = Watch::over(pid_of(&child));
        Ok((child, watch))
    }

    /// Returns the command to run. The standard library cannot set the limit on open files, so a
    /// shell sets it and then executes the program.
    fn command(&self) -> Command {
        let Some(most) = self.descriptors else { return Command::new(&self.program) };
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -n {most} && exec \"$0\" \"$@\"")]).arg(&self.program);
        shell
    }

    fn input(&self) -> anyhow::Result<Stdio> {
        let Some(path) = &self.stdin else { return Ok(Stdio::null()) };
        Ok(File::open(path).with_context(|| format!("open {}", path.display()))?.into())
    }

    fn standard_error(&self) -> anyhow::Result<Stdio> {
        let (reader, mut writer) = std::io::pipe().context("make a pipe")?;
        Ok(match self.error_output {
            ErrorOutput::Log => append(&self.log_path("err"))?.into(),
            ErrorOutput::Closed => writer.into(),
            ErrorOutput::Full => append(Path::new("/dev/full"))?.into(),
            ErrorOutput::Unread => {
                writer.write_all(&[b'\n'; PIPE_BYTES]).context("fill a pipe")?;
                // Stays open for as long as this process lives.
                std::mem::forget(reader);
                writer.into()
            }
        })
    }

    /// Returns the common start of the log files' names.
    pub(crate) fn stem(&self) -> &str {
        &self.stem
    }

    /// Returns the output of all runs so far; `kind` is `out` or `err`.
    pub(crate) fn log(&self, kind: &str) -> String {
        let bytes = std::fs::read(self.log_path(kind)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn log_path(&self, kind: &str) -> PathBuf {
        self.scratch.path().join(format!("{}.{kind}.log", self.stem))
    }
}

fn append(path: &Path) -> anyhow::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("open {}", path.display()))
}

/// The result of a program that ran to completion.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The exit status.
    pub status: ExitStatus,
    /// The whole standard output.
    pub stdout: String,
    /// The whole standard error.
    pub stderr: String,
}

impl Finished {
    /// Returns the exit code; `None` if a signal ended the program.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Returns the result itself if the program succeeded.
    ///
    /// # Errors
    /// Returns an error for any other exit status; the message contains the program's output.
    pub fn success(self) -> anyhow::Result<Self> {
        let Self { status, stdout, stderr } = &self;
        anyhow::ensure!(status.success(), "{status}; it wrote:\n{stdout}{stderr}");
        Ok(self)
    }
}
