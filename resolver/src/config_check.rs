//! `resolver config check`: shows every setting of the server with its source. It starts nothing,
//! and hides secrets.

use clap::CommandFactory as _;
use daemon::Setting;
use serde_json::{Value, json};

use crate::config::{Arguments, Cli, InspectArgs, Settings};
use cli::{
    Error, json_text,
    table::{Field, grid, printable},
};

const FIELDS: [Field<Setting>; 3] = [
    ("setting", true, |setting| setting.name.clone()),
    ("source", true, |setting| setting.source().to_owned()),
    ("value", true, |setting| printable(&setting.value)),
];

/// Checks the configuration, and returns the table or the JSON of its settings.
pub(crate) fn run(args: &InspectArgs) -> Result<String, Error> {
    let settings = args.config.settings()?;
    let mut cli = Cli::command();
    // The arguments were parsed successfully before. They are parsed again to learn the source of
    // each value.
    let matches = cli.try_get_matches_from_mut(Arguments::of_process().list).unwrap_or_default();
    let found = Setting::list(&cli, &matches, |id| effective(id, &settings));
    let keyspaces: Vec<Value> = settings
        .keyspaces
        .iter()
        .map(|keyspace| json!({ "keyspace": keyspace.to_string(), "codes": keyspace.capacity() }))
        .collect();
    if args.json {
        let found: Vec<Value> = found.iter().map(Setting::to_json).collect();
        return Ok(json_text::pretty(&json!({ "settings": found, "keyspaces": keyspaces })));
    }
    // Values are not cut, because people copy them.
    let mut text = grid(&found, &FIELDS, usize::MAX);
    for keyspace in &settings.keyspaces {
        text.push_str(&format!("keyspace {keyspace}: {} codes\n", keyspace.capacity()));
    }
    Ok(text)
}

/// Returns the value of a setting that differs from what is given: a URL without its password, or
/// what stands in for a setting that is absent.
fn effective(id: &str, settings: &Settings) -> Option<String> {
    let flags = &settings.flags;
    match id {
        "database" => Some(flags.database.database.to_string()),
        "read_database" => flags.read_database.as_ref().map(ToString::to_string),
        "issuer" => flags.issuer.is_empty().then(|| "embedded".to_owned()),
        "holder_id" => Some(settings.holder.to_string()),
        "public_url" => Some(settings.public_url.clone()),
        "code_key_file" => Some(settings.code_key_file.display().to_string()),
        "default_keyspace" => Some(settings.default_keyspace.to_string()),
        "visits_spool" => Some(settings.visits.spool.display().to_string()),
        "witness" => settings.witness.as_ref().map(|path| path.display().to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction, Command, Parser as _};

    use super::*;

    #[test]
    fn every_setting_of_the_server_is_there_with_its_source_and_no_secret() {
        let args = "resolver config check --limit threads=3 --initial-api-key s3cret-s3cret-s3cret \
                    --database postgres://me:s3cret@db/links?sslmode=verify-full";
        let args: Vec<&str> = args.split(' ').collect();
        let mut cli = Cli::command();
        let matches = cli.try_get_matches_from_mut(args.clone()).unwrap();
        let config = Cli::try_parse_from(args).unwrap();
        let Some(crate::config::Command::Config(crate::config::ConfigCommand::Check(check))) = config.command
        else {
            panic!("expected config check");
        };
        let settings = check.config.settings().unwrap();
        let found = Setting::list(&cli, &matches, |id| effective(id, &settings));
        let serve = cli.find_subcommand("serve").unwrap();
        let flags = serve.get_arguments().filter_map(Arg::get_long).filter(|name| *name != "help");
        for flag in flags {
            assert!(found.iter().any(|setting| setting.name == flag), "{flag} is missing");
        }
        let of = |name: &str| {
            let setting = found.iter().find(|setting| setting.name == name).unwrap();
            (setting.value.as_str(), setting.source())
        };
        assert_eq!(of("limit"), ("threads=3", "flag"));
        assert_eq!(of("listen"), ("127.0.0.1:8080", "default"));
        assert_eq!(of("initial-api-key"), ("(hidden)", "flag"));
        assert_eq!(of("database"), ("postgres://me:***@db/links", "flag"));
        assert_eq!(of("holder-id"), ("embedded", "default"));
        assert_eq!(of("tell-gone"), ("false", "default"));
        assert!(found.iter().all(|setting| !setting.value.contains("s3cret")));
    }

    #[test]
    fn every_switch_takes_the_usual_words_from_its_variable() {
        let cli = Cli::command();
        let serve = cli.find_subcommand("serve").unwrap();
        let switches = serve.get_arguments().filter(|arg| matches!(arg.get_action(), ArgAction::SetTrue));
        let switches: Vec<&Arg> = switches.filter(|arg| arg.get_env().is_some()).collect();
        assert!(switches.len() >= 4);
        for switch in switches {
            // The value of a variable goes through the same parser as that of a flag.
            let name = switch.get_id().as_str();
            let arg = switch.clone().action(ArgAction::Set).num_args(1).env(None::<&str>);
            for (word, value) in [("1", true), ("yes", true), ("TRUE", true), ("0", false), ("off", false)] {
                let given = ["x", &format!("--{}", switch.get_long().unwrap()), word];
                let matches = Command::new("x").arg(arg.clone()).try_get_matches_from(given).unwrap();
                assert_eq!(matches.get_one::<bool>(name), Some(&value), "{name} {word}");
            }
        }
    }
}
