//! `issuer config check`: shows every setting of the server with its source. It starts nothing.

use clap::{Arg, ArgMatches, Command, CommandFactory as _, parser::ValueSource};
use serde_json::{Value, json};

use crate::{
    Error,
    config::{Cli, Config, ConfigCheckArgs},
};

/// Arguments that are not settings.
const NOT_SETTINGS: [&str; 3] = ["json", "help", "version"];

/// Checks the configuration and the files that it names, and returns the table or the JSON of its
/// settings.
///
/// # Errors
/// Returns [`Error::Config`] with the flag, its value and what was expected.
pub fn run(args: &ConfigCheckArgs) -> Result<String, Error> {
    args.config.check()?;
    args.config.tls.listener()?;
    args.config.tls.etcd(&args.config.etcd)?;
    let mut cli = Cli::command();
    // They were parsed before. This time it is for the source of each value.
    let matches = cli.try_get_matches_from_mut(std::env::args_os()).unwrap_or_default();
    let settings = settings(&cli, &matches, &args.config);
    if args.json {
        let settings: Vec<Value> = settings
            .iter()
            .map(|[name, source, value]| json!({ "name": name, "source": source, "value": value }))
            .collect();
        return Ok(format!("{:#}\n", json!({ "settings": settings })));
    }
    let lines = [["setting", "source", "value"].map(str::to_owned)].into_iter().chain(settings);
    let lines: Vec<[String; 3]> = lines.collect();
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let (names, sources) = (width(0), width(1));
    let line = |[name, source, value]: &[String; 3]| format!("{name:<names$}  {source:<sources$}  {value}\n");
    Ok(lines.iter().map(line).collect())
}

/// Returns name, source and value of each setting, in the order of the help.
fn settings(cli: &Command, matches: &ArgMatches, config: &Config) -> Vec<[String; 3]> {
    let path = ["config", "check"];
    let command = path.iter().try_fold(cli, |command, name| command.find_subcommand(name));
    let matches = path.iter().try_fold(matches, |matches, name| matches.subcommand_matches(name));
    let (Some(command), Some(matches)) = (command, matches) else { return Vec::new() };
    let args = command.get_arguments().filter(|arg| !NOT_SETTINGS.contains(&arg.get_id().as_str()));
    args.filter_map(|arg| setting(arg, matches, config)).collect()
}

fn setting(arg: &Arg, matches: &ArgMatches, config: &Config) -> Option<[String; 3]> {
    let (id, name) = (arg.get_id().as_str(), arg.get_long()?.to_owned());
    let variable = arg.get_env().map(|name| name.to_string_lossy().into_owned());
    let source = match matches.value_source(id) {
        Some(ValueSource::CommandLine) => "flag".to_owned(),
        Some(ValueSource::EnvVariable) => variable.unwrap_or_default(),
        _ => "default".to_owned(),
    };
    let given = matches.get_raw(id).map(|values| {
        let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
        values.join(",")
    });
    let value = match (id, given) {
        ("advertise", _) => config.advertise(),
        ("insecure", _) => config.tls.insecure.to_string(),
        (_, given) => given.unwrap_or_else(|| "(none)".to_owned()),
    };
    Some([name, source, value])
}
