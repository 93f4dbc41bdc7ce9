//! The issuer's binary: parse, log, bind, run, and turn what happened into an exit code.

use std::process::ExitCode;

use daemon::{cancel_on_signals, end, init_logs, parse};
use issuer::{
    Error, Listeners,
    config::{Cli, Command},
};
use mimalloc::MiMalloc;
use tokio_util::sync::CancellationToken;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

// One worker: the driver is one task, and the others only bring it calls and carry answers away. Not the current-thread runtime: it has
// no slot for the task that was woken last, so a transaction waited until all answers of the last one had been written, which cost a fifth
// of the allocations per second (`bench allocate`, 2026-11-21).
#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() -> ExitCode {
    match parse::<Cli>() {
        Ok(cli) => end("issuer", act(cli).await.map_err(|error| (error.exit(), error.into()))),
        Err(code) => code,
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
