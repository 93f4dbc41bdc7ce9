//! Password files as libpq reads them (PostgreSQL documentation, "The Password File").

use std::{path::PathBuf, str::Chars};

use tokio::io::AsyncReadExt as _;
use tokio_postgres::{Config, config::Host};

use crate::{Result, StoreError};

const FILE_MAX: u64 = 64 * 1024;
/// The port without one in the URL.
const PORT: u16 = 5432;

/// Path of a file with lines `host:port:database:user:password`.
pub(super) struct Passfile(pub(super) PathBuf);

impl Passfile {
    /// Returns the password of the first line that fits a server. The file is read each time,
    /// because passwords change.
    ///
    /// # Errors
    /// Returns [`StoreError::Unreachable`] if the file cannot be read.
    pub(super) async fn password(&self, server: &Config) -> Result<Option<String>> {
        let unreadable = |error: std::io::Error| {
            let error = format!("password file {}: {error}", self.0.display());
            StoreError::Unreachable(error.into())
        };
        let file = tokio::fs::File::open(&self.0).await.map_err(unreadable)?;
        let mut text = String::new();
        let length = file.take(FILE_MAX + 1).read_to_string(&mut text).await.map_err(unreadable)?;
        if length as u64 > FILE_MAX {
            return Err(unreadable(std::io::Error::other("expected at most 64 KiB")));
        }
        Ok(find(&text, server))
    }
}

/// Returns the password for the one server of a configuration.
fn find(text: &str, server: &Config) -> Option<String> {
    let user = server.get_user().unwrap_or_default();
    let database = server.get_dbname().unwrap_or(user);
    let name = match server.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(_)) => "localhost".to_owned(),
        None => server.get_hostaddrs().first()?.to_string(),
    };
    let port = server.get_ports().first().copied().unwrap_or(PORT);
    of_server(text, [&name, &port.to_string(), database, user])
}

/// Returns the password of the first line that fits a server, a database and a user.
fn of_server(text: &str, wanted: [&str; 4]) -> Option<String> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let mut rest = line.chars();
        let fields: [String; 4] = std::array::from_fn(|_| field(&mut rest));
        let password = field(&mut rest);
        let fits = fields.iter().zip(wanted).all(|(field, wanted)| field == "*" || field == wanted);
        (fits && !password.is_empty()).then_some(password)
    })
}

/// Takes the next field of a line. A backslash stands before a colon or a backslash in it.
fn field(rest: &mut Chars<'_>) -> String {
    let mut field = String::new();
    while let Some(letter) = rest.next() {
        match letter {
            ':' => break,
            '\\' => field.extend(rest.next()),
            letter => field.push(letter),
        }
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# comment\n\
        db-1:5433:links:me:one\n\
        db-1:5432:links:you:two\n\
        db\\:2:*:links:me:a\\:b\\\\c\n\
        localhost:*:links:me:socket\n\
        *:5432:links:me:any\n";

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        for (url, password) in [
            ("postgres://me@db-1:5433/links", Some("one")),
            ("postgres://you@db-1/links", Some("two")),
            ("postgres://me@db-1/links", Some("any")),
            ("postgres://me@db-0:5432/links", Some("any")),
            ("postgres:///links?user=me&hostaddr=192.0.2.1&port=5432", Some("any")),
            ("postgres://me@%2Frun%2Fpg:1/links", Some("socket")),
            ("postgres://me@db%3A2:1/links", Some("a:b\\c")),
            ("postgres://me@db-1/other", None),
            ("postgres://other@db-1/links", None),
        ] {
            assert_eq!(find(FILE, &url.parse().unwrap()).as_deref(), password, "{url}");
        }
    }
}
