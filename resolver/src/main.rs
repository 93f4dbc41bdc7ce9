//! The resolver's binary: parses arguments, starts logging, runs, and maps the result to an exit
//! code.

use std::process::ExitCode;

use clap::CommandFactory as _;
use daemon::{parse, unknown_variables, variables};
use mimalloc::MiMalloc;
use resolver::{
    Error,
    config::{Arguments, Cli, Command},
};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { list, warnings, conflict } = Arguments::of_process();
    match parse::<Cli>(list) {
        Ok(cli) => {
            let format = cli.log_format();
            format.init();
            if matches!(cli.command, None | Some(Command::Serve(_) | Command::Config(_) | Command::Doctor(_)))
            {
                let present = variables().filter(|(name, _)| !Arguments::is_former(name));
                let unknown = unknown_variables(&Cli::command(), "RESOLVER_", present);
                for warning in warnings.iter().chain(&unknown) {
                    tracing::warn!("{warning}");
                }
            }
            let done = match conflict {
                Some(conflict) => Err(Error::Contradiction(conflict)),
                None => resolver::run(cli).await,
            };
            format.end("resolver", done.map_err(|error| (error.exit(), error.into())))
        }
        Err(code) => code,
    }
}
