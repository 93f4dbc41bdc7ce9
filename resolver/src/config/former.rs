//! Former spellings of flags and variables, for one release: they are translated before the
//! arguments are parsed, and each is warned of.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
};

const PREFIX: &str = "RESOLVER_";

/// The present spelling of a flag whose value is a part of another flag's value now.
enum Now {
    /// `--flag VALUE` is `--other PART=VALUE`.
    Part(&'static str, &'static str),
    /// The same for each part of a list.
    Each(&'static str, &'static str),
    /// `--flag WORD` is `--other ENTRY`; `on` or `off`, whichever it is not, is the default.
    Word(&'static str, &'static str, &'static str),
}

use Now::{Each, Part, Word};

static FORMER: [(&str, Now); 43] = [
    ("tls-cert", Part("tls", "cert=")),
    ("tls-key", Part("tls", "key=")),
    ("issuer-ca", Part("issuer-tls", "ca=")),
    ("issuer-cert", Part("issuer-tls", "cert=")),
    ("issuer-key", Part("issuer-tls", "key=")),
    ("database-connections", Part("limit", "database-connections=")),
    ("cache-mib", Part("limit", "cache-mib=")),
    ("threads", Part("limit", "threads=")),
    ("visits-spool-mib", Part("limit", "visits-spool-mib=")),
    ("calls-per-key", Part("limit", "calls-per-key=")),
    ("calls-per-client", Part("limit", "calls-per-client=")),
    ("connections-per-client", Part("limit", "connections-per-client=")),
    ("unknown-codes-per-minute", Part("limit", "unknown-codes-per-minute=")),
    ("domains-max", Part("limit", "domains=")),
    ("reserved-per-key", Part("limit", "reserved-per-key=")),
    ("keyspace-fallbacks", Each("fallback", "keyspace:")),
    ("base-url-redirect", Part("fallback", "base-url=")),
    ("regular-404-redirect", Part("fallback", "regular-404=")),
    ("invalid-short-url-redirect", Part("fallback", "invalid-short-url=")),
    ("client-address-header", Part("proxy-headers", "address=")),
    ("country-header", Part("proxy-headers", "country=")),
    ("theme-name", Part("theme", "name=")),
    ("theme-logo", Part("theme", "logo=")),
    ("theme-colour", Part("theme", "colour=")),
    ("theme-footer", Part("theme", "footer=")),
    ("webhook-networks", Each("webhooks", "network=")),
    ("webhook-http", Word("webhooks", "on", "http")),
    ("webhook-ca", Part("webhooks", "ca=")),
    ("visits", Word("visits-skip", "off", "all")),
    ("visits-orphans", Word("visits-skip", "off", "orphans")),
    ("visits-skip-param", Part("visits-skip", "param=")),
    ("visits-skip-from", Each("visits-skip", "from=")),
    ("visits-addresses", Part("visits-privacy", "addresses=")),
    ("visits-opt-out", Part("visits-privacy", "opt-out=")),
    ("visits-cookies", Part("visits-privacy", "cookies=")),
    ("visits-referrers", Part("visits-privacy", "referrers=")),
    ("visits-user-agents", Part("visits-privacy", "user-agents=")),
    ("visits-flush", Part("tune", "visits-flush=")),
    ("replica-lag", Part("tune", "replica-lag=")),
    ("find-existing-for", Part("tune", "find-existing=")),
    ("idempotency-for", Part("tune", "idempotency-keys=")),
    ("check-targets", Part("tune", "target-rules=")),
    ("fast-path", Part("tune", "fast-path=")),
];

/// The arguments of this process, in the present spelling.
#[derive(Debug)]
pub struct Arguments {
    /// The arguments to parse.
    pub list: Vec<OsString>,
    /// A warning for each former spelling.
    pub warnings: Vec<String>,
    /// Error text for a setting that has different values in both spellings.
    pub conflict: Option<String>,
}

impl Arguments {
    /// Reads the arguments and the environment of this process.
    pub fn of_process() -> Self {
        Self::translate(std::env::args_os().collect(), &daemon::variables().collect())
    }

    /// Returns whether a variable has a former spelling.
    pub fn is_former(name: &str) -> bool {
        FORMER.iter().any(|(former, _)| variable(former) == name)
    }

    /// Translates former spellings in the arguments and variables of the server. Those of other
    /// commands stay as they are.
    fn translate(given: Vec<OsString>, variables: &BTreeMap<String, String>) -> Self {
        let word = |at: usize| given.get(at).and_then(|word| word.to_str()).unwrap_or("--");
        let at = match (word(1), word(2)) {
            ("serve" | "doctor", _) => 2,
            ("config", "check") => 3,
            (first, _) if first.starts_with("--") => 1,
            _ => return Self { list: given, warnings: Vec::new(), conflict: None },
        };
        let (command, rest) = given.split_at(at.min(given.len()));
        let present = |now: &Now| present_values(rest, now.flag());
        let (mut flags, mut warnings, mut found) = (Vec::new(), Vec::new(), Vec::new());
        let (mut conflict, mut rest) = (None, rest.iter());
        while let Some(argument) = rest.next() {
            let Some((name, now, value)) = former(argument) else {
                flags.push(argument.clone());
                continue;
            };
            let value = value.or_else(|| rest.next().map(|value| value.to_string_lossy().into_owned()));
            match value {
                Some(value) => {
                    let name = format!("--{name}");
                    conflict = conflict.or_else(|| now.conflict(&name, &value, &present(now)));
                    flags.extend(now.arguments(&value));
                }
                // The parser asks for the value.
                None => flags.push(format!("--{}", now.flag()).into()),
            }
            warnings.push(now.warning(&format!("--{name}")));
            found.push((name, now));
        }
        // A variable counts less than any flag, so what it becomes stands before them.
        let mut first = Vec::new();
        for (name, now) in &FORMER {
            let Some(value) = variables.get(&variable(name)) else { continue };
            warnings.push(now.warning(&variable(name)));
            if !found.iter().any(|(flag, _)| flag == name) {
                let beside: Vec<String> = variables.get(&variable(now.flag())).cloned().into_iter().collect();
                conflict = conflict.or_else(|| now.conflict(&variable(name), value, &beside));
                first.extend(now.arguments(value));
                found.push((*name, now));
            }
        }
        // The parser ignores the variable of a flag that is given, as these are now.
        let replaced: BTreeSet<&str> = found.iter().map(|(_, now)| now.flag()).collect();
        let replaced = replaced.iter().filter_map(|flag| {
            let value = variables.get(&variable(flag))?;
            Some(format!("--{flag}={value}").into())
        });
        let list = command.iter().cloned().chain(replaced).chain(first).chain(flags).collect();
        Self { list, warnings, conflict }
    }
}

fn variable(flag: &str) -> String {
    format!("{PREFIX}{}", flag.to_ascii_uppercase().replace('-', "_"))
}

/// Reads a former flag, with its value if that is in the same argument.
fn former(argument: &OsStr) -> Option<(&'static str, &'static Now, Option<String>)> {
    let text = argument.to_str()?.strip_prefix("--")?;
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    let (name, now) = FORMER.iter().find(|(former, _)| *former == name)?;
    Some((*name, now, value.map(str::to_owned)))
}

fn present_values(arguments: &[OsString], flag: &str) -> Vec<String> {
    let mut values = Vec::new();
    let mut texts = arguments.iter().filter_map(|argument| argument.to_str());
    while let Some(text) = texts.next() {
        match text.strip_prefix("--").and_then(|text| text.strip_prefix(flag)) {
            Some("") => values.extend(texts.next().map(str::to_owned)),
            Some(rest) => values.extend(rest.strip_prefix('=').map(str::to_owned)),
            None => {}
        }
    }
    values
}

impl Now {
    fn flag(&self) -> &'static str {
        match self {
            Part(flag, _) | Each(flag, _) | Word(flag, ..) => flag,
        }
    }

    fn arguments(&self, value: &str) -> Vec<OsString> {
        let argument = |entry: String| format!("--{}={entry}", self.flag()).into();
        match self {
            Part(_, part) => vec![argument(format!("{part}{value}"))],
            Each(_, part) => value.split(',').map(|value| argument(format!("{part}{value}"))).collect(),
            Word(_, word, entry) if value == *word => vec![argument((*entry).to_owned())],
            Word(..) if matches!(value, "on" | "off") => Vec::new(),
            // The parser refuses it.
            Word(..) => vec![argument(value.to_owned())],
        }
    }

    /// Returns what is wrong if values in the present spelling say something else of the same part.
    fn conflict(&self, name: &str, value: &str, present: &[String]) -> Option<String> {
        let Part(flag, part) = self else { return None };
        let differs = |text: &String| {
            let is_named = text.split(',').any(|entry| entry.starts_with(part));
            is_named && !format!(",{text},").contains(&format!(",{part}{value},"))
        };
        let is_in_doubt = present.iter().any(differs);
        is_in_doubt.then(|| format!("{name} {value}: --{flag} has another {part}…: remove {name}"))
    }

    fn warning(&self, name: &str) -> String {
        let now = match self {
            Part(flag, part) | Each(flag, part) => format!("--{flag} {part}…"),
            Word(flag, _, entry) => format!("--{flag} {entry}"),
        };
        format!("{name} is a former spelling, and goes with the next release: use {now}")
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::config::Cli;

    /// Every flag of commit e3cd989, the last one before flags were folded.
    const FORMERLY: &str = include_str!("../../testdata/flags-of-e3cd989");
    /// The same in the present spelling.
    const PRESENT: &str = include_str!("../../testdata/flags");

    fn flags(file: &str) -> Vec<(&str, Option<&str>)> {
        let lines = file.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| line.split_once(' ').map_or((line, None), |(flag, value)| (flag, Some(value))))
            .collect()
    }

    fn words<'a>(flags: &[(&'a str, Option<&'a str>)]) -> Vec<&'a str> {
        flags.iter().flat_map(|(flag, value)| [Some(*flag), *value]).flatten().collect()
    }

    fn translate(words: &[&str], variables: &[(String, String)]) -> (Vec<String>, Vec<String>) {
        let given = ["resolver"].iter().chain(words).map(OsString::from).collect();
        let Arguments { list, warnings, .. } =
            Arguments::translate(given, &variables.iter().cloned().collect());
        (list.into_iter().map(|word| word.into_string().unwrap()).collect(), warnings)
    }

    /// Returns the settings, and the flags that are none of them.
    fn meaning(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> String {
        let mut settings = Cli::try_parse_from(arguments).unwrap().serve.settings().unwrap();
        let flags = &mut settings.flags;
        for folded in [
            &mut flags.fallback,
            &mut flags.proxy_headers,
            &mut flags.limit,
            &mut flags.visits_privacy,
            &mut flags.visits_skip,
            &mut flags.theme,
            &mut flags.webhooks,
            &mut flags.tune,
        ] {
            folded.clear();
        }
        // The order of a map is random.
        let keyspaces = &settings.fallbacks.keyspaces;
        assert!(keyspaces.len() == 2 && keyspaces["press"].ends_with("?x=1"), "{keyspaces:?}");
        format!("{settings:?}").replace(&format!("{keyspaces:?}"), "")
    }

    #[test]
    fn a_full_configuration_in_former_spellings_says_the_same_as_the_present_one() {
        let expected = meaning(["resolver"].into_iter().chain(words(&flags(PRESENT))));
        let is_former = |flag: &str| Arguments::is_former(&variable(&flag[2..]));
        let (former, unchanged): (Vec<_>, Vec<_>) =
            flags(FORMERLY).into_iter().partition(|(flag, _)| is_former(flag));
        let variables: Vec<(String, String)> =
            former.iter().map(|(flag, value)| (variable(&flag[2..]), value.unwrap().to_owned())).collect();
        for (given, variables) in [(words(&flags(FORMERLY)), &[][..]), (words(&unchanged), &variables[..])] {
            let (arguments, warnings) = translate(&given, variables);
            assert_eq!(meaning(&arguments), expected);
            assert_eq!(warnings.len(), former.len());
            for (flag, _) in &former {
                let name = if variables.is_empty() { (*flag).to_owned() } else { variable(&flag[2..]) };
                assert!(warnings.iter().any(|warning| warning.starts_with(&format!("{name} is"))), "{name}");
            }
            // A value may be long, or secret.
            assert!(warnings.iter().all(|warning| !warning.contains("web.example")), "{warnings:?}");
        }
        let (arguments, _) = translate(&["serve", "--client-address-header=X-Real-IP"], &[]);
        assert_eq!(arguments[2], "--proxy-headers=address=X-Real-IP", "it is younger than that commit");
    }

    #[test]
    fn a_flag_counts_more_than_a_variable_and_other_commands_stay_as_they_are() {
        let variables =
            [("RESOLVER_LIMIT", "domains=1"), ("RESOLVER_THREADS", "2"), ("RESOLVER_VISITS", "off")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let given = ["config", "check", "--visits", "on", "--cache-mib=9", "--json"];
        let (arguments, warnings) = translate(&given, &variables);
        let expected =
            ["config", "check", "--limit=domains=1", "--limit=threads=2", "--limit=cache-mib=9", "--json"];
        assert_eq!(arguments[1..], expected);
        assert_eq!(warnings.len(), 4, "{warnings:?}");
        assert_eq!(
            warnings[0],
            "--visits is a former spelling, and goes with the next release: use --visits-skip all"
        );
        assert_eq!(translate(&["--threads"], &[]).0[1..], ["--limit"], "the parser asks for the value");
        for words in [&["link", "list", "--visits", "on"][..], &["migrate"], &["--help"], &[]] {
            let (arguments, warnings) = translate(words, &[]);
            assert!(arguments[1..] == *words && warnings.is_empty(), "{words:?}");
        }
    }

    #[test]
    fn both_spellings_of_one_setting_have_to_say_the_same() {
        let conflict = |words: &[&str], variables: &[(&str, &str)]| {
            let given = ["resolver"].iter().chain(words).map(OsString::from).collect();
            let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            Arguments::translate(given, &variables.collect()).conflict
        };
        let present = ("RESOLVER_LIMIT", "domains=1,threads=3");
        for found in [
            conflict(&["--threads", "2", "--limit", "threads=3"], &[]),
            conflict(&["--limit=domains=1,threads=3", "--threads=2"], &[]),
            conflict(&[], &[present, ("RESOLVER_THREADS", "2")]),
        ] {
            let found = found.expect("the two differ");
            assert!(found.contains(" 2: --limit has another threads=…: remove "), "{found}");
        }
        assert_eq!(conflict(&["--threads=3", "--limit", "domains=1,threads=3"], &[]), None);
        assert_eq!(conflict(&["--threads", "2", "--limit=domains=1"], &[]), None);
        assert_eq!(conflict(&["--threads", "2"], &[present]), None, "a flag counts more than a variable");
    }
}
