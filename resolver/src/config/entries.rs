//! Flags that take several settings in one value: `NAME=VALUE[,NAME=VALUE…]`, in the flag or its
//! variable. The flag may be repeated; of two entries for one setting the later one holds.

use std::{fmt::Display, net::IpAddr, ops::RangeInclusive, str::FromStr};

use cli::{Error, wrong_value};
use ipnet::IpNet;

pub(super) struct Entries<'a> {
    flag: &'static str,
    entries: Vec<(&'a str, Option<&'a str>)>,
}

impl<'a> Entries<'a> {
    /// Splits the values of a flag. A comma ends an entry only before one of the known names,
    /// because URLs and texts contain commas too.
    pub(super) fn of(flag: &'static str, names: &[&str], texts: &'a [String]) -> Result<Self, Error> {
        let mut entries = Vec::new();
        for mut rest in texts.iter().map(String::as_str) {
            while !rest.is_empty() {
                let comma = rest.match_indices(',').find(|(at, _)| begins_entry(&rest[at + 1..], names));
                let (text, more) = comma.map_or((rest, ""), |(at, _)| (&rest[..at], &rest[at + 1..]));
                if !begins_entry(text, names) {
                    let reason = format!("no such setting: use {}", names.join(", "));
                    return Err(wrong_value(flag, text, reason));
                }
                let entry = text.split_once('=').map(|(name, value)| (name, Some(value)));
                entries.push(entry.unwrap_or((text, None)));
                rest = more;
            }
        }
        Ok(Self { flag, entries })
    }

    /// Returns the values of all entries of a name. If it ends in a colon, each comes with the name
    /// that follows.
    pub(super) fn all(&self, name: &str) -> Result<Vec<(&'a str, &'a str)>, Error> {
        let named = self.entries.iter().filter_map(|(of, value)| Some((of.strip_prefix(name)?, *value)));
        let named = named.filter(|(rest, _)| rest.is_empty() || name.ends_with(':'));
        let given = |(rest, value): (&'a str, Option<&'a str>)| {
            let missing = || wrong_value(self.flag, name, format!("the value is missing: use {name}=VALUE"));
            value.map(|value| (rest, value)).ok_or_else(missing)
        };
        named.map(given).collect()
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, Error> {
        Ok(self.all(name)?.pop().map(|(_, value)| value))
    }

    /// Returns whether there is an entry of this name, without a value.
    pub(super) fn has(&self, name: &str) -> Result<bool, Error> {
        match self.entries.iter().find(|(of, _)| *of == name) {
            Some((_, Some(value))) => Err(self.wrong(name, value, format!("use {name} without a value"))),
            found => Ok(found.is_some()),
        }
    }

    /// Parses the value of a setting, as a flag of its own would.
    pub(super) fn parse<T, E: ToString>(
        &self,
        name: &str,
        parser: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Error> {
        let Some(value) = self.text(name)? else { return Ok(None) };
        parser(value).map(Some).map_err(|error| self.wrong(name, value, error))
    }

    /// Parses a whole number within a range.
    pub(super) fn number<N>(&self, name: &str, range: RangeInclusive<N>) -> Result<Option<N>, Error>
    where
        N: FromStr + PartialOrd + Display,
    {
        self.parse(name, |value| {
            let number = value.parse().ok().filter(|number| range.contains(number));
            number.ok_or_else(|| format!("not a number from {} to {}", range.start(), range.end()))
        })
    }

    pub(super) fn switch(&self, name: &str) -> Result<Option<bool>, Error> {
        self.parse(name, |value| match value {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err("use on or off"),
        })
    }

    /// Parses the networks of all entries of this name.
    pub(super) fn networks(&self, name: &str) -> Result<Vec<IpNet>, Error> {
        let parse =
            |(_, value): (_, &str)| parse_network(value).map_err(|error| self.wrong(name, value, error));
        self.all(name)?.into_iter().map(parse).collect()
    }

    pub(super) fn wrong(&self, name: &str, value: &str, reason: impl ToString) -> Error {
        wrong_value(self.flag, format!("{name}={value}"), reason)
    }
}

/// Returns whether a text begins with one of the names. One that ends in a colon is followed by
/// another name.
fn begins_entry(text: &str, names: &[&str]) -> bool {
    let name = &text[..text.find(['=', ',']).unwrap_or(text.len())];
    names.iter().any(|known| *known == name || (known.ends_with(':') && name.starts_with(known)))
}

/// Parses a network such as `10.0.0.0/8`. An address without a prefix is the network of it alone.
pub(super) fn parse_network(text: &str) -> Result<IpNet, String> {
    let text = text.trim();
    let address = text.parse::<IpAddr>().map(IpNet::from);
    address.or_else(|_| text.parse()).map_err(|_| {
        format!("{text:?} is neither an IP address nor a network such as 10.0.0.0/8 or 2001:db8::/32")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_ends_an_entry_only_before_a_known_name() {
        let names = ["base-url", "keyspace:", "off"];
        for (text, entries) in [
            ("", vec![]),
            ("base-url=https://a/?x=1,y=2", vec![("base-url", Some("https://a/?x=1,y=2"))]),
            (
                "base-url=https://a/,b,off,keyspace:web=c,",
                vec![("base-url", Some("https://a/,b")), ("off", None), ("keyspace:web", Some("c,"))],
            ),
        ] {
            let texts = [text.to_owned()];
            assert_eq!(Entries::of("--fallback", &names, &texts).unwrap().entries, entries, "{text}");
        }
        let texts = ["base=https://a/".to_owned()];
        let error = Entries::of("--fallback", &names, &texts).err().unwrap().to_string();
        assert_eq!(error, "--fallback base=https://a/: no such setting: use base-url, keyspace:, off");
    }

    #[test]
    fn an_address_is_the_network_of_it_alone() {
        for (text, network) in [
            ("127.0.0.1", "127.0.0.1/32"),
            (" ::1 ", "::1/128"),
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("2001:db8::/32", "2001:db8::/32"),
        ] {
            assert_eq!(parse_network(text), Ok(network.parse().unwrap()), "{text}");
        }
        for text in ["", "10.0.0", "10.0.0.0/33", "localhost", "127.0.0.1:80", "[::1]"] {
            assert!(parse_network(text).is_err(), "{text}");
        }
    }
}
