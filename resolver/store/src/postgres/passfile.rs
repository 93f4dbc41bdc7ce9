//! Password files as libpq reads them (PostgreSQL documentation, "The Password File").

use std::{path::PathBuf, str::Chars};

use tokio::io::AsyncReadExt as _;
use tokio_postgres::{Config, config::Host};

use crate::StoreError;

/// Maximum size of a file, in bytes.
const FILE_MAX: u64 = 64 * 1024;
/// The port without one in the URL.
const PORT: u16 = 5432;

/// Path of a file with lines `host:port:database:user:password`.
pub(super) struct Passfile(pub(super) PathBuf);

impl Passfile {
    /// Returns the password of the first line that fits one of the servers. The file is read each
    /// time, because passwords change.
    ///
    /// # Errors
    /// Returns [`StoreError::Unreachable`] if the file cannot be read.
    pub(super) async fn password(&self, config: &Config) -> Result<Option<String>, StoreError> {
        let unreadable = |error: std::io::Error| {
            let error = format!("password file {}: {error}", self.0.display());
            StoreError::Unreachable(error.into())
        };
        let file = tokio::fs::File::open(&self.0).await.map_err(unreadable)?;
        let mut text = String::new();
        file.take(FILE_MAX).read_to_string(&mut text).await.map_err(unreadable)?;
        Ok(find(&text, config))
    }
}

fn find(text: &str, config: &Config) -> Option<String> {
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    let ports = config.get_ports();
    let servers: Vec<(&str, String)> = config
        .get_hosts()
        .iter()
        .enumerate()
        .map(|(index, host)| {
            let host = match host {
                Host::Tcp(name) => name.as_str(),
                Host::Unix(_) => "localhost",
            };
            // One port counts for all hosts.
            let port = ports.get(index).or(ports.first()).copied().unwrap_or(PORT);
            (host, port.to_string())
        })
        .collect();
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let mut rest = line.chars();
        let fields: [String; 4] = std::array::from_fn(|_| field(&mut rest));
        let password = field(&mut rest);
        let fits = |field: &str, value: &str| field == "*" || field == value;
        let is_theirs = servers.iter().any(|(host, port)| fits(&fields[0], host) && fits(&fields[1], port));
        let is_found = is_theirs && fits(&fields[2], database) && fits(&fields[3], user);
        (is_found && !password.is_empty()).then_some(password)
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
            ("postgres://me@db-0,db-1:5433,5433/links", Some("one")),
            ("postgres://me@%2Frun%2Fpg:1/links", Some("socket")),
            ("postgres://me@db%3A2:1/links", Some("a:b\\c")),
            ("postgres://me@db-1/other", None),
            ("postgres://other@db-1/links", None),
        ] {
            assert_eq!(find(FILE, &url.parse().unwrap()).as_deref(), password, "{url}");
        }
    }
}
