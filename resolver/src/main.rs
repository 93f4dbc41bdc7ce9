//! The resolver's binary: parse, log, bind, run, and turn what happened into an exit code.

use std::process::ExitCode;

use clap::Parser;
use issuer::daemon::{Exit, cancel_on_signals, init_logs};
use resolver::{
    Error, Greeting, Listeners, commands,
    config::{Cli, Command, Config},
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
    init_logs();
    let done = match cli.command {
        None => serve(cli.serve).await,
        Some(Command::Serve(config)) => serve(*config).await,
        Some(command) => commands::run(command).await.map(|text| print(&text)),
    };
    match done {
        Ok(()) => Exit::Clean.into(),
        Err(error) => {
            let exit = error.exit();
            report(&anyhow::Error::new(error));
            exit.into()
        }
    }
}

async fn serve(config: Config) -> Result<(), Error> {
    let settings = config.settings()?;
    let listeners = Listeners::bind(&config, &settings)?;
    let shutdown = CancellationToken::new();
    cancel_on_signals(shutdown.clone())?;
    resolver::run(config, settings, listeners, |greeting| print(&welcome(&greeting)), shutdown).await
}

/// A line to copy, so that the first link is one paste away.
fn welcome(greeting: &Greeting) -> String {
    let url = &greeting.public_url;
    let Some(key) = &greeting.new_key else { return format!("Shortmint serves {url}\n") };
    format!(
        "Shortmint serves {url}\n\nYour API key, shown only this once: {key}\n\nCreate a link:\n  \
         curl -X POST {url}/rest/v3/short-urls -H 'X-Api-Key: {key}' -d '{{\"longUrl\": \"https://example.com\"}}'\n\n"
    )
}

#[expect(clippy::print_stdout, reason = "the answer to what a person asked for")]
fn print(text: &str) {
    print!("{text}");
}

#[expect(clippy::print_stderr, reason = "the one line that says why the process ends")]
fn report(error: &anyhow::Error) {
    eprintln!("resolver: {error:#}");
}
