//! The settings of a daemon with their sources, for its command `config check`.

use clap::{Arg, ArgAction, ArgMatches, Command, parser::ValueSource};
use serde_json::{Value, json};

const HIDDEN: &str = "(hidden)";
/// The placeholder of an absent setting without a default.
const NONE: &str = "(none)";
const NOT_SETTINGS: [&str; 3] = ["json", "help", "version"];

/// A setting with its source.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The long name of its flag, without dashes.
    pub name: String,
    /// The effective value, or a placeholder.
    pub value: String,
    /// `flag`, `environment` or `default`.
    source: &'static str,
    /// The environment variable that sets it.
    variable: Option<String>,
}

impl Setting {
    /// Lists the settings of a daemon, in the order of its help. `effective` returns the value of
    /// an argument that differs from what is given, by the argument's id.
    pub fn list(
        cli: &Command,
        matches: &ArgMatches,
        effective: impl Fn(&str) -> Option<String>,
    ) -> Vec<Self> {
        let check = ["config", "check"];
        let command = check.iter().try_fold(cli, |command, name| command.find_subcommand(name));
        let matches = check.iter().try_fold(matches, |matches, name| matches.subcommand_matches(name));
        let (Some(command), Some(matches)) = (command, matches) else { return Vec::new() };
        let args = command.get_arguments().filter(|arg| !NOT_SETTINGS.contains(&arg.get_id().as_str()));
        args.filter_map(|arg| Self::of(arg, matches, &effective)).collect()
    }

    fn of(arg: &Arg, matches: &ArgMatches, effective: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let (id, name) = (arg.get_id().as_str(), arg.get_long()?.to_owned());
        let source = match matches.value_source(id) {
            Some(ValueSource::CommandLine) => "flag",
            Some(ValueSource::EnvVariable) => "environment",
            _ => "default",
        };
        let given = matches.get_raw(id).map(|values| {
            let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
            values.join(",")
        });
        let value = match given {
            Some(_) if arg.is_hide_env_values_set() && effective(id).is_none() => HIDDEN.to_owned(),
            Some(_) if matches!(arg.get_action(), ArgAction::SetTrue) => matches.get_flag(id).to_string(),
            given => effective(id).or(given).unwrap_or_else(|| NONE.to_owned()),
        };
        let variable = arg.get_env().map(|name| name.to_string_lossy().into_owned());
        Some(Self { name, value, source, variable })
    }

    /// Returns where the value comes from: `flag`, `default`, or the name of a variable.
    pub fn source(&self) -> &str {
        self.variable.as_deref().filter(|_| self.source == "environment").unwrap_or(self.source)
    }

    /// Returns the setting as JSON.
    pub fn to_json(&self) -> Value {
        let Self { name, value, source, variable } = self;
        json!({ "name": name, "value": value, "source": source, "variable": variable })
    }
}
