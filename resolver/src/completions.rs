//! `resolver completions`: prints the completion script of a shell.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::config::Cli;

pub(crate) fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "resolver", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_has_a_script_that_knows_the_subcommands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let script = script(shell);
            assert!(
                ["link", "if-version", "domain", "no-invalid-short-url", "target", "deny"]
                    .iter()
                    .all(|word| script.contains(word)),
                "{shell}"
            );
        }
    }
}
