//! The address of a ClickHouse database:
//! `clickhouse+http://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?cluster=NAME`.

use std::{fmt, str::FromStr};

use percent_encoding::percent_decode_str;

const SCHEME: &str = "clickhouse+http://";
/// The port for HTTP where an address has none.
const PORT: u16 = 8_123;
const SERVERS_MAX: usize = 16;

/// The address of a database, on one server or on the replicas of a cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct ClickhouseAddress {
    /// Hosts with their ports, in the order in which they are asked.
    pub(super) servers: Vec<String>,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    /// The database, which [`migrate`](crate::VisitStore::migrate) creates.
    pub(super) database: String,
    /// The cluster that the servers belong to; without one their tables are not replicated.
    pub(super) cluster: Option<String>,
}

impl FromStr for ClickhouseAddress {
    /// The expected form.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected =
            format!("expected {SCHEME}[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]…]/DATABASE[?cluster=NAME]");
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| expected.clone())?;
        let (authority, path) = rest.split_once('/').ok_or_else(|| expected.clone())?;
        let (account, hosts) = match authority.rsplit_once('@') {
            Some((account, hosts)) => (Some(account), hosts),
            None => (None, authority),
        };
        let (user, password) = match account.map(|account| account.split_once(':').unwrap_or((account, ""))) {
            Some((user, password)) => (Some(decoded("user", user)?), Some(decoded("password", password)?)),
            None => (None, None),
        };
        let (database, query) = path.split_once('?').unwrap_or((path, ""));
        let cluster = match query.split_once('=') {
            Some(("cluster", cluster)) => Some(name("cluster", cluster)?),
            None if query.is_empty() => None,
            _ => return Err(format!("{query:?}: expected cluster=NAME, and no other parameter")),
        };
        let servers: Vec<String> = hosts.split(',').map(server).collect::<Result<_, _>>()?;
        if servers.len() > SERVERS_MAX {
            return Err(format!("expected at most {SERVERS_MAX} servers"));
        }
        if servers.len() > 1 && cluster.is_none() {
            return Err(
                "expected ?cluster=NAME where there are several servers: they must be replicas".to_owned()
            );
        }
        Ok(Self { servers, user, password, database: name("database", database)?, cluster })
    }
}

/// Without the password.
impl fmt::Display for ClickhouseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.servers.join(","), self.database)
    }
}

impl fmt::Debug for ClickhouseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClickhouseAddress({self})")
    }
}

/// Checks a name that becomes part of statements.
fn name(of: &str, text: &str) -> Result<String, String> {
    let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if text.is_empty() || text.len() > 64 || !is_name(text) {
        return Err(format!("{of} {text:?}: expected 1 to 64 letters, digits and underscores"));
    }
    Ok(text.to_owned())
}

fn decoded(of: &str, text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8().map_err(|_| format!("{of}: expected UTF-8"))?;
    Ok(decoded.into_owned())
}

/// Completes a host with its port.
fn server(text: &str) -> Result<String, String> {
    let expected = || format!("server {text:?}: expected HOST, HOST:PORT or [IPV6]:PORT");
    let is_host = |host: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        match bracketed {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.bytes().all(plain),
        }
    };
    if is_host(text) {
        return Ok(format!("{text}:{PORT}"));
    }
    let (host, port) = text.rsplit_once(':').ok_or_else(expected)?;
    let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
    if is_host(host) && is_port { Ok(text.to_owned()) } else { Err(expected()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_servers_an_account_a_database_and_a_cluster() {
        let parsed =
            ClickhouseAddress::from_str("clickhouse+http://a:p%40%2F:s@h1:1,h2,[::1]:3/d_1?cluster=c")
                .unwrap();
        assert_eq!(parsed.servers, ["h1:1", "h2:8123", "[::1]:3"]);
        assert_eq!((parsed.user.as_deref(), parsed.password.as_deref()), (Some("a"), Some("p@/:s")));
        assert_eq!((parsed.database.as_str(), parsed.cluster.as_deref()), ("d_1", Some("c")));
        assert_eq!(format!("{parsed} {parsed:?}").matches("p@").count(), 0, "the password is not shown");
        let bare = ClickhouseAddress::from_str("clickhouse+http://[::1]/d").unwrap();
        assert_eq!((bare.servers, bare.user, bare.cluster), (vec!["[::1]:8123".to_owned()], None, None));
    }

    #[test]
    fn what_is_no_address_is_refused_with_what_was_expected() {
        for (text, expected) in [
            ("http://h/d", "expected clickhouse+http://"),
            ("clickhouse+http://h", "expected clickhouse+http://"),
            ("clickhouse+http://h/", "database \"\""),
            ("clickhouse+http://h/d;x", "database \"d;x\""),
            ("clickhouse+http://h/d?cluster=", "cluster \"\""),
            ("clickhouse+http://h/d?x=1", "\"x=1\": expected cluster=NAME"),
            ("clickhouse+http://h/d?x", "\"x\": expected cluster=NAME"),
            ("clickhouse+http:///d", "server \"\""),
            ("clickhouse+http://h:0/d", "server \"h:0\""),
            ("clickhouse+http://h:x/d", "server \"h:x\""),
            ("clickhouse+http://a b/d", "server \"a b\""),
            ("clickhouse+http://h,i/d", "expected ?cluster=NAME"),
            ("clickhouse+http://%ff:x@h/d", "user: expected UTF-8"),
        ] {
            let error = ClickhouseAddress::from_str(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
