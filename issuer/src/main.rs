//! The issuer's binary: parse, log, bind, run, and turn what happened into an exit code.

use std::process::ExitCode;

use issuer::{
    Error, Listeners,
    config::{Cli, Command},
    daemon::{cancel_on_signals, end, init_logs, parse},
};
use mimalloc::MiMalloc;
use tokio_util::sync::CancellationToken;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

// One thread: the driver is one task anyway, and the daemon's other tasks only bring it calls and carry answers away.
#[tokio::main(flavor = "current_thread")]
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
