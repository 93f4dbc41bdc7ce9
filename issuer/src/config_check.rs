//! `issuer config check`: shows every setting of the server with its source. It starts nothing.

use clap::CommandFactory as _;
use daemon::Setting;
use serde_json::{Value, json};

use crate::{
    Error,
    config::{Cli, ConfigCheckArgs},
};

/// Checks the configuration and its files, and returns the table or the JSON of its settings.
pub fn run(args: &ConfigCheckArgs) -> Result<String, Error> {
    args.config.check()?;
    args.config.tls.listener()?;
    args.config.tls.etcd(&args.config.etcd)?;
    let mut cli = Cli::command();
    // They were parsed before. This time it is for the source of each value.
    let matches = cli.try_get_matches_from_mut(std::env::args_os()).unwrap_or_default();
    let settings = Setting::list(&cli, &matches, |id| match id {
        "advertise" => Some(args.config.advertise()),
        _ => None,
    });
    if args.json {
        let settings: Vec<Value> = settings.iter().map(Setting::to_json).collect();
        return Ok(format!("{:#}\n", json!({ "settings": settings })));
    }
    let rows = settings.iter().map(|setting| [&*setting.name, setting.source(), &*setting.value]);
    let lines: Vec<[&str; 3]> = [["setting", "source", "value"]].into_iter().chain(rows).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let (names, sources) = (width(0), width(1));
    let line = |[name, source, value]: &[&str; 3]| format!("{name:<names$}  {source:<sources$}  {value}\n");
    Ok(lines.iter().map(line).collect())
}
