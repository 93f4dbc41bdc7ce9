//! Which name was probably meant by an unknown one, and variables that no setting has.

use std::collections::BTreeSet;

use clap::Command;

/// The least similarity of a name that is proposed, from 0 to 1.
const ALIKE: f64 = 0.6;
/// The similarity of a name that contains the other one, if that has a few letters.
const CONTAINED: f64 = 0.8;
const CONTAINED_LETTERS: usize = 3;

/// Returns the known name that was probably meant by an unknown one; `None` if none is like it.
/// Case and signs between words do not count.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = letters(name);
    let scored = known.into_iter().map(|known| (similarity(&name, &letters(known)), known));
    let best = scored.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(score, _)| *score >= ALIKE).map(|(_, known)| known)
}

fn letters(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn similarity(one: &str, other: &str) -> f64 {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let is_contained = short.len() >= CONTAINED_LETTERS && long.contains(short);
    let similarity = strsim::normalized_damerau_levenshtein(one, other);
    if is_contained { similarity.max(CONTAINED) } else { similarity }
}

/// Returns a warning for each variable with this prefix that no setting of the command has, so that
/// a misspelled one is noticed. Those that Kubernetes sets for each service of a namespace are none
/// of ours, even if the service's name begins like our settings.
pub fn unknown_variables(
    command: &Command,
    prefix: &str,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Vec<String> {
    let mut known = BTreeSet::new();
    add_variables(command, &mut known);
    let is_unknown = |(name, value): &(String, String)| {
        name.starts_with(prefix) && !known.contains(name) && !is_of_kubernetes(name, value)
    };
    let found: BTreeSet<(String, String)> = variables.into_iter().filter(is_unknown).collect();
    let own: Vec<&str> = known.iter().filter_map(|known| known.strip_prefix(prefix)).collect();
    let warning = |(name, _): &(String, String)| {
        let meant = nearest(&name[prefix.len()..], own.iter().copied());
        let name = name.escape_debug();
        match meant {
            Some(meant) => format!("{name} has no effect: did you mean {prefix}{meant}?"),
            None => format!("{name} has no effect: there is no such setting"),
        }
    };
    found.iter().map(warning).collect()
}

/// Returns the variables of the environment that are text.
pub fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

fn add_variables(command: &Command, to: &mut BTreeSet<String>) {
    let named = command.get_arguments().filter_map(|arg| arg.get_env()?.to_str());
    to.extend(named.map(str::to_owned));
    command.get_subcommands().for_each(|command| add_variables(command, to));
}

/// Returns whether Kubernetes sets such a variable for a service: `X_SERVICE_HOST`,
/// `X_SERVICE_PORT`, `X_SERVICE_PORT_HTTP`, `X_PORT`, `X_PORT_80_TCP`, `X_PORT_80_TCP_ADDR`, ….
fn is_of_kubernetes(name: &str, value: &str) -> bool {
    let is_of_port = |(_, rest): (&str, &str)| rest.starts_with(|first: char| first.is_ascii_digit());
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || (name.ends_with("_PORT") && value.contains("://"))
        || name.split_once("_PORT_").is_some_and(is_of_port)
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    use super::*;

    #[test]
    fn a_name_that_is_like_a_known_one_is_found() {
        let known = ["shortCode", "domain", "tags[]", "excludeBots", "startDate", "page", "itemsPerPage"];
        for (name, meant) in [
            ("code", Some("shortCode")),
            ("short_code", Some("shortCode")),
            ("shortcode", Some("shortCode")),
            ("tags", Some("tags[]")),
            ("tag", Some("tags[]")),
            ("domian", Some("domain")),
            ("excludeBot", Some("excludeBots")),
            ("startDat", Some("startDate")),
            ("colour", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known), meant, "{name}");
        }
        assert_eq!(nearest("a", []), None);
    }

    #[test]
    fn a_misspelled_variable_is_told_and_those_of_kubernetes_are_not() {
        let argument = |name: &'static str| Arg::new(name).long(name).env(name);
        let inner = Command::new("link").arg(argument("RESOLVER_SERVER"));
        let command = Command::new("resolver")
            .args(["RESOLVER_LISTEN", "RESOLVER_ADMIN_LISTEN", "RESOLVER_DATABASE"].map(argument))
            .subcommand(inner);
        let warnings = |variables: &[(&str, &str)]| {
            let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            unknown_variables(&command, "RESOLVER_", variables)
        };
        let given = warnings(&[
            ("RESOLVER_LISTENN", "s3cret"),
            ("RESOLVER_LISTEN", "x"),
            ("RESOLVER_SERVER", "x"),
            ("RESOLVER_COLOUR", "x"),
            ("RESOLVERS", "x"),
            ("PATH", "x"),
            ("RESOLVER_PORT", "8080"),
        ]);
        assert_eq!(
            given,
            [
                "RESOLVER_COLOUR has no effect: there is no such setting",
                "RESOLVER_LISTENN has no effect: did you mean RESOLVER_LISTEN?",
                "RESOLVER_PORT has no effect: there is no such setting",
            ]
        );
        let of_kubernetes = [
            ("RESOLVER_SERVICE_HOST", "10.0.0.1"),
            ("RESOLVER_SERVICE_PORT", "8080"),
            ("RESOLVER_SERVICE_PORT_HTTP", "8080"),
            ("RESOLVER_PORT", "tcp://10.0.0.1:8080"),
            ("RESOLVER_PORT_8080_TCP", "tcp://10.0.0.1:8080"),
            ("RESOLVER_PORT_8080_TCP_PROTO", "tcp"),
            ("RESOLVER_PORT_8080_TCP_PORT", "8080"),
            ("RESOLVER_PORT_8080_TCP_ADDR", "10.0.0.1"),
            ("RESOLVER_ADMIN_SERVICE_HOST", "10.0.0.1"),
            ("RESOLVER_ADMIN_PORT_9090_TCP_ADDR", "10.0.0.1"),
        ];
        assert_eq!(warnings(&of_kubernetes), Vec::<String>::new());
    }
}
