//! The issuer's binary: parse, log, bind, run, and turn what happened into an exit code.

use std::process::ExitCode;

use clap::Parser;
use issuer::{
    Error, Listeners,
    config::{Cli, Command},
    daemon::{Exit, cancel_on_signals, init_logs},
};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come as errors too, and are none.
            let exit = if error.use_stderr() { Exit::Config } else { Exit::Clean };
            let _ = error.print();
            return exit.into();
        }
    };
    match act(cli).await {
        Ok(()) => Exit::Clean.into(),
        Err(error) => {
            let exit = error.exit();
            report(&anyhow::Error::new(error));
            exit.into()
        }
    }
}

async fn act(cli: Cli) -> Result<(), Error> {
    if let Some(Command::Status(args)) = cli.command {
        print(&issuer::status_command::run(&args).await?);
        return Ok(());
    }
    init_logs();
    cli.serve.check()?;
    let listeners = Listeners::bind(&cli.serve)?;
    let shutdown = CancellationToken::new();
    cancel_on_signals(shutdown.clone())?;
    issuer::run(cli.serve, listeners, shutdown).await
}

#[expect(clippy::print_stdout, reason = "the answer to what a person asked for")]
fn print(text: &str) {
    print!("{text}");
}

#[expect(clippy::print_stderr, reason = "the one line that says why the process ends")]
fn report(error: &anyhow::Error) {
    eprintln!("issuer: {error:#}");
}
