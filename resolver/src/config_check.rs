//! `resolver config check`: shows every setting of the server with its source. It starts nothing,
//! and hides secrets.

use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory as _, parser::ValueSource};
use serde_json::{Value, json};

use crate::config::{Cli, Config, ConfigCheckArgs, Settings};
use cli::{
    Error, json_text,
    table::{Column, layout, printable},
};

/// The placeholder of a secret.
const HIDDEN: &str = "(hidden)";
/// The placeholder of an absent setting without a default.
const NONE: &str = "(none)";
/// Arguments that are not settings.
const NOT_SETTINGS: [&str; 3] = ["json", "help", "version"];

/// Checks the configuration, and returns the table or the JSON of its settings.
pub(crate) fn run(args: &ConfigCheckArgs) -> Result<String, Error> {
    let settings = args.config.settings()?;
    let mut cli = Cli::command();
    // The arguments were parsed successfully before. They are parsed again to learn the source of
    // each value.
    let matches = cli.try_get_matches_from_mut(std::env::args_os()).unwrap_or_default();
    let found = found(&cli, &matches, &args.config, &settings);
    let keyspaces: Vec<Value> = settings
        .keyspaces
        .iter()
        .map(|keyspace| json!({ "keyspace": keyspace.to_string(), "codes": keyspace.capacity() }))
        .collect();
    if args.json {
        let found: Vec<Value> = found.iter().map(Setting::to_json).collect();
        return Ok(json_text::pretty(&json!({ "settings": found, "keyspaces": keyspaces })));
    }
    let of = |head, read: fn(&Setting) -> String| Column::new(head, true, found.iter().map(read));
    let columns = vec![
        of("setting", |setting| setting.name.clone()),
        of("source", Setting::shown_source),
        of("value", |setting| printable(&setting.value)),
    ];
    // Values are not cut, because people copy them.
    let mut text = layout(columns, usize::MAX);
    for keyspace in &settings.keyspaces {
        text.push_str(&format!("keyspace {keyspace}: {} codes\n", keyspace.capacity()));
    }
    Ok(text)
}

/// A setting with its source.
struct Setting {
    name: String,
    value: String,
    source: Source,
    variable: Option<String>,
}

/// The source of a setting's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Flag,
    Environment,
    Default,
}

impl Setting {
    fn shown_source(&self) -> String {
        match (self.source, &self.variable) {
            (Source::Flag, _) => "flag".to_owned(),
            (Source::Environment, Some(variable)) => variable.clone(),
            (Source::Environment, None) => "environment".to_owned(),
            (Source::Default, _) => "default".to_owned(),
        }
    }

    fn to_json(&self) -> Value {
        let source = match self.source {
            Source::Flag => "flag",
            Source::Environment => "environment",
            Source::Default => "default",
        };
        json!({ "name": self.name, "value": self.value, "source": source, "variable": self.variable })
    }
}

/// Returns all settings of the server, in the order of its help.
fn found(cli: &Command, matches: &ArgMatches, config: &Config, settings: &Settings) -> Vec<Setting> {
    let check = ["config", "check"];
    let command = check.iter().try_fold(cli, |command, name| command.find_subcommand(name));
    let matches = check.iter().try_fold(matches, |matches, name| matches.subcommand_matches(name));
    let (Some(command), Some(matches)) = (command, matches) else { return Vec::new() };
    let args = command.get_arguments().filter(|arg| !NOT_SETTINGS.contains(&arg.get_id().as_str()));
    args.filter_map(|arg| setting(arg, matches, config, settings)).collect()
}

fn setting(arg: &Arg, matches: &ArgMatches, config: &Config, settings: &Settings) -> Option<Setting> {
    let (id, name) = (arg.get_id().as_str(), arg.get_long()?.to_owned());
    let source = match matches.value_source(id) {
        Some(ValueSource::CommandLine) => Source::Flag,
        Some(ValueSource::EnvVariable) => Source::Environment,
        _ => Source::Default,
    };
    let raw = matches.get_raw(id).map(|values| {
        let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
        values.join(",")
    });
    let value = match (id, raw) {
        ("database", _) => config.database.database.to_string(),
        ("read_database", _) => {
            config.read_database.as_ref().map_or_else(|| NONE.to_owned(), ToString::to_string)
        }
        (_, Some(_)) if matches!(arg.get_action(), ArgAction::SetTrue) => matches.get_flag(id).to_string(),
        (_, Some(_)) if arg.is_hide_env_values_set() => HIDDEN.to_owned(),
        (_, Some(raw)) => raw,
        (id, None) => instead(id, settings),
    };
    let variable = arg.get_env().map(|name| name.to_string_lossy().into_owned());
    Some(Setting { name, value, source, variable })
}

/// Returns the effective value of a setting that is not given.
fn instead(id: &str, settings: &Settings) -> String {
    match id {
        "issuer" => "embedded".to_owned(),
        "holder_id" => settings.holder.to_string(),
        "public_url" => settings.public_url.clone(),
        "code_key_file" => settings.code_key_file.display().to_string(),
        "default_keyspace" => settings.default_keyspace.to_string(),
        "threads" => settings.threads.to_string(),
        "visits_spool" => settings.visits.spool.display().to_string(),
        "witness" => {
            settings.witness.as_ref().map_or_else(|| NONE.to_owned(), |path| path.display().to_string())
        }
        _ => NONE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn every_setting_of_the_server_is_there_with_its_source_and_no_secret() {
        let args = [
            "resolver",
            "config",
            "check",
            "--threads",
            "3",
            "--initial-api-key",
            "s3cret-s3cret-s3cret",
            "--database",
            "postgres://me:s3cret@db/links?sslmode=verify-full",
        ];
        let mut cli = Cli::command();
        let matches = cli.try_get_matches_from_mut(args).unwrap();
        let config = Cli::try_parse_from(args).unwrap();
        let Some(crate::config::Command::Config(crate::config::ConfigCommand::Check(check))) = config.command
        else {
            panic!("expected config check");
        };
        let settings = check.config.settings().unwrap();
        let found = found(&cli, &matches, &check.config, &settings);
        let serve = cli.find_subcommand("serve").unwrap();
        let flags = serve.get_arguments().filter_map(Arg::get_long).filter(|name| *name != "help");
        for flag in flags {
            assert!(found.iter().any(|setting| setting.name == flag), "{flag} is missing");
        }
        let of = |name: &str| {
            let setting = found.iter().find(|setting| setting.name == name).unwrap();
            (setting.value.as_str(), setting.source)
        };
        assert_eq!(of("threads"), ("3", Source::Flag));
        assert_eq!(of("listen"), ("127.0.0.1:8080", Source::Default));
        assert_eq!(of("initial-api-key"), (HIDDEN, Source::Flag));
        assert_eq!(of("database"), ("postgres://me:***@db/links", Source::Flag));
        assert_eq!(of("holder-id"), ("embedded", Source::Default));
        assert_eq!(of("tell-gone"), ("false", Source::Default));
        assert!(found.iter().all(|setting| !setting.value.contains("s3cret")));
    }

    #[test]
    fn every_switch_takes_the_usual_words_from_its_variable() {
        fn switches(command: &Command, found: &mut Vec<Arg>) {
            let is_switch = |arg: &&Arg| matches!(arg.get_action(), ArgAction::SetTrue | ArgAction::SetFalse);
            found.extend(
                command.get_arguments().filter(is_switch).filter(|arg| arg.get_env().is_some()).cloned(),
            );
            command.get_subcommands().for_each(|command| switches(command, found));
        }
        let mut found = Vec::new();
        switches(&Cli::command(), &mut found);
        assert!(!found.is_empty());
        for switch in found {
            // The value of a variable goes through the same parser as that of a flag.
            let name = switch.get_id().clone();
            for (word, value) in [
                ("1", true),
                ("yes", true),
                ("on", true),
                ("TRUE", true),
                ("0", false),
                ("no", false),
                ("off", false),
            ] {
                let arg = switch.clone().action(ArgAction::Set).num_args(1).env(None::<&str>);
                let matches = Command::new("x").arg(arg).try_get_matches_from([
                    "x",
                    &format!("--{}", switch.get_long().unwrap()),
                    word,
                ]);
                assert_eq!(matches.unwrap().get_one::<bool>(name.as_str()), Some(&value), "{name} {word}");
            }
        }
    }
}
