//! `resolver completions`: prints the completion script of a shell.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::config::Cli;

pub(crate) fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "resolver", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}
