//! The issuer's binary: parses arguments, starts logs, runs, and maps the result to a code.

use std::process::ExitCode;

use clap::CommandFactory as _;
use daemon::{Exit, cancel_on_signals, parse, print, unknown_variables, variables};
use issuer::{
    Error, Listeners,
    config::{Cli, Command, ConfigCommand},
    status_command,
};
use mimalloc::MiMalloc;
use tokio_util::sync::CancellationToken;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

// One worker thread: the driver is one task, and the others only bring calls to it and carry
// answers away.
//
// Rejected: the current-thread runtime. It has no slot for the task that was woken last, so a
// transaction waited until all answers of the previous one had been written. That cost a fifth of
// the allocations per second (`bench allocate`, 2026-11-21).
#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() -> ExitCode {
    match parse::<Cli>(std::env::args_os()) {
        Ok(cli) => {
            let format = cli.log_format();
            let done = act(cli).await.map(|()| Exit::Clean);
            format.end("issuer", done.map_err(|error| (error.exit(), error.into())))
        }
        Err(code) => code,
    }
}

async fn act(cli: Cli) -> Result<(), Error> {
    match cli.command {
        Some(Command::Status(args)) => {
            let status = status_command::run(&args).await;
            if let (true, Err(Error::NoLeader(issuers))) = (args.json, &status) {
                print(&status_command::no_leader_json(issuers))?;
            }
            Ok(print(&status?)?)
        }
        Some(Command::Config(ConfigCommand::Check(args))) => {
            cli.serve.log_format.init();
            warn_of_unknown_variables();
            Ok(print(&issuer::config_check::run(&args)?)?)
        }
        None => serve(cli).await,
    }
}

async fn serve(cli: Cli) -> Result<(), Error> {
    cli.serve.log_format.init();
    warn_of_unknown_variables();
    cli.serve.check()?;
    let listeners = Listeners::bind(&cli.serve)?;
    let shutdown = CancellationToken::new();
    cancel_on_signals(shutdown.clone())?;
    issuer::run(cli.serve, listeners, shutdown).await
}

fn warn_of_unknown_variables() {
    for warning in unknown_variables(&Cli::command(), "ISSUER_", variables()) {
        tracing::warn!("{warning}");
    }
}
