//! The resolver's binary: parses arguments, starts logging, binds, runs, and maps the result to an
//! exit code.

use std::process::ExitCode;

use clap::CommandFactory as _;
use daemon::{Exit, cancel_on_signals, parse, print, unknown_variables, variables};
use mimalloc::MiMalloc;
use resolver::{
    Error, Listeners, completions,
    config::{Arguments, Cli, Command, Config, ConfigCommand},
    config_check,
};
use tokio_util::sync::CancellationToken;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { list, warnings, conflict } = Arguments::of_process();
    match parse::<Cli>(list) {
        Ok(cli) => {
            let format = cli.log_format();
            format.init();
            if matches!(cli.command, None | Some(Command::Serve(_) | Command::Config(_))) {
                let present = variables().filter(|(name, _)| !Arguments::is_former(name));
                let unknown = unknown_variables(&Cli::command(), "RESOLVER_", present);
                for warning in warnings.iter().chain(&unknown) {
                    tracing::warn!("{warning}");
                }
            }
            let done = match conflict {
                Some(conflict) => Err(Error::Contradiction(conflict)),
                None => act(cli).await,
            };
            format.end("resolver", done.map_err(|error| (error.exit(), error.into())))
        }
        Err(code) => code,
    }
}

async fn act(cli: Cli) -> Result<Exit, Error> {
    let output = match cli.command {
        None => return serve(cli.serve).await,
        Some(Command::Serve(config)) => return serve(*config).await,
        Some(Command::Other(command)) => ::cli::run(*command).await?,
        Some(Command::Completions { shell }) => completions::script(shell).into(),
        Some(Command::Config(ConfigCommand::Check(args))) => config_check::run(&args)?.into(),
    };
    print(&output.text)?;
    Ok(output.exit)
}

async fn serve(config: Config) -> Result<Exit, Error> {
    let settings = config.settings()?;
    let listeners = Listeners::bind(&settings)?;
    let shutdown = CancellationToken::new();
    cancel_on_signals(shutdown.clone())?;
    resolver::run(settings, listeners, shutdown).await?;
    Ok(Exit::Clean)
}
