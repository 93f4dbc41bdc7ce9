//! The resolver's configuration: one struct, from flags and environment, checked before anything starts.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, Parser, Subcommand};
use ipnet::IpNet;
use issuer::{
    daemon::{parse_duration, parse_duration_or_zero},
    names::{HolderId, Namespace},
};
use url::{Host, Url};

use crate::{
    Error,
    codes::{Keyspace, parse_keyspaces},
    http::ClientLimits,
    lookup::LookupSizes,
    scope::Scopes,
};

/// Mints short codes, stores links and serves redirects.
///
/// Without flags it needs no other server: numbers come from an issuer inside it, links go to ./data. With --issuer and
/// --database many of them work as one.
#[derive(Debug, Parser)]
#[command(name = "resolver", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do; to serve, when absent.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The server's flags.
    #[command(flatten)]
    pub serve: Config,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve redirects and the API (the default).
    Serve(Box<Config>),
    /// Bring the database's schema up to date. Safe to run at any time and more than once.
    Migrate(DatabaseArgs),
    /// Make, list and revoke API keys.
    #[command(subcommand)]
    ApiKey(ApiKeyCommand),
    /// Look at the configuration without starting.
    #[command(subcommand)]
    Config(ConfigCommand),
}

/// `resolver api-key …`
#[derive(Debug, Subcommand)]
pub enum ApiKeyCommand {
    /// Make a key and print it; it is stored only as a hash and cannot be shown again.
    Create {
        /// What to call it.
        #[arg(long)]
        name: String,
        /// What it may do: create, read, reserve, or admin for everything. Several are separated by commas.
        #[arg(long, default_value = "admin")]
        scopes: Scopes,
        /// The database.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// List the keys.
    List {
        /// Print JSON instead of a table.
        #[arg(long)]
        json: bool,
        /// The database.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Revoke a key; resolvers refuse it within a second.
    Revoke {
        /// Which.
        #[arg(long)]
        name: String,
        /// The database.
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

/// `resolver config …`
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check flags and environment, and print what they come to.
    Check(Box<Config>),
}

/// Which database.
#[derive(Clone, Debug, Args)]
pub struct DatabaseArgs {
    /// postgres://USER@HOST/NAME, or sqlite:PATH.
    #[arg(
        long,
        env = "RESOLVER_DATABASE",
        default_value = "sqlite:./data/shortmint.db",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub database: Database,
    /// How long to wait for the database at start.
    #[arg(long, env = "RESOLVER_START_DEADLINE", default_value = "30s", value_parser = parse_duration)]
    pub start_deadline: Duration,
}

/// A database's address.
#[derive(Clone, PartialEq, Eq)]
pub enum Database {
    /// A URL, with its password.
    Postgres(String),
    /// A file.
    Sqlite(PathBuf),
}

impl std::str::FromStr for Database {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        match text.strip_prefix("sqlite:") {
            Some(path) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            _ => Err("expected postgres://USER@HOST/NAME or sqlite:PATH".to_owned()),
        }
    }
}

impl std::fmt::Display for Database {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(text) => match Url::parse(text) {
                Ok(mut url) => {
                    if url.password().is_some() {
                        // A URL that has a password has a host, and then a password may be set.
                        let _ = url.set_password(Some("***"));
                    }
                    url.set_query(None);
                    write!(f, "{url}")
                }
                Err(_) => f.write_str("postgres://***"),
            },
        }
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// Flags of the server.
#[derive(Clone, Debug, Args)]
pub struct Config {
    /// Where redirects and the API are served.
    #[arg(long, env = "RESOLVER_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDR:PORT")]
    pub listen: SocketAddr,
    /// Where /metrics, /livez and /readyz are served.
    #[arg(long, env = "RESOLVER_ADMIN_LISTEN", default_value = "127.0.0.1:9090", value_name = "ADDR:PORT")]
    pub admin_listen: SocketAddr,
    /// The issuers; without them numbers come from an issuer inside this process.
    #[arg(long, env = "RESOLVER_ISSUER", value_name = "URL[,URL…]", value_delimiter = ',')]
    pub issuer: Vec<String>,
    /// The database.
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// A Postgres replica that links are read from when no cache has them; what it lacks is asked of --database.
    #[arg(long, env = "RESOLVER_READ_DATABASE", hide_env_values = true, value_name = "URL")]
    pub read_database: Option<Database>,
    /// How far --read-database may lag behind: a link that was changed within this time is read from --database.
    #[arg(long, env = "RESOLVER_REPLICA_LAG", default_value = "1m", value_parser = parse_duration, value_name = "TIME")]
    pub replica_lag: Duration,
    /// This process's name with the issuer: the same after a restart, and no other process's. Needed with --issuer.
    #[arg(long, env = "RESOLVER_HOLDER_ID", value_name = "NAME")]
    pub holder_id: Option<String>,
    /// What short links begin with; http:// and --listen, when absent.
    #[arg(long, env = "RESOLVER_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,
    /// The status of redirects: 301, 302, 307 or 308.
    #[arg(long, env = "RESOLVER_REDIRECT_STATUS", default_value_t = 302, value_name = "STATUS")]
    pub redirect_status: u16,
    /// How long whoever asks for an existing link (findIfExists) is given the one that was made for the same wish, counted from the last time.
    #[arg(long, env = "RESOLVER_FIND_EXISTING_FOR", default_value = "30d", value_parser = parse_duration, value_name = "TIME")]
    pub find_existing_for: Duration,
    /// The file with the key that orders codes: 64 hexadecimal characters, the same for all resolvers of a database and
    /// for its whole life. Without it the key lies beside the SQLite file, or in ./data, and is made at the first start.
    #[arg(long, env = "RESOLVER_CODE_KEY_FILE", value_name = "FILE")]
    pub code_key_file: Option<PathBuf>,
    /// The sets of codes, each with a name, a length and the class of the first character.
    #[arg(
        long,
        env = "RESOLVER_KEYSPACES",
        default_value = "default=6:0-9A-Za-z",
        value_name = "NAME=LENGTH:CLASS[,…]"
    )]
    pub keyspaces: String,
    /// The keyspace that links are created in; the first, when absent.
    #[arg(long, env = "RESOLVER_DEFAULT_KEYSPACE", value_name = "NAME")]
    pub default_keyspace: Option<String>,
    /// How long to go on serving after SIGTERM while /readyz says no, so that load balancers can look elsewhere.
    #[arg(long, env = "RESOLVER_DRAIN_DELAY", default_value = "0s", value_parser = parse_duration_or_zero)]
    pub drain_delay: Duration,
    /// An API key to make at the first start. Without it one is drawn and printed once.
    #[arg(long, env = "RESOLVER_INITIAL_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub initial_api_key: Option<String>,
    /// Proxies that may say whom they speak for (X-Forwarded-For), as networks such as 10.0.0.0/8. Name those in front of this
    /// server: to all limits, their clients are one client otherwise.
    #[arg(long, env = "RESOLVER_TRUSTED_PROXIES", value_name = "CIDR[,CIDR…]", value_delimiter = ',')]
    pub trusted_proxies: Vec<IpNet>,
    /// Connections that one client may have open; 0 for any number.
    #[arg(long, env = "RESOLVER_CONNECTIONS_PER_CLIENT", default_value_t = 4_096, value_name = "COUNT")]
    pub connections_per_client: u32,
    /// Codes without a link that one client may ask for in a minute, before it gets 429; 0 for any number.
    #[arg(long, env = "RESOLVER_UNKNOWN_CODES_PER_MINUTE", default_value_t = 600, value_name = "COUNT")]
    pub unknown_codes_per_minute: u32,
    /// Memory for cached links, in MiB, about.
    #[arg(long, env = "RESOLVER_CACHE_MIB", default_value_t = 64, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub cache_mib: u32,
    /// Threads that serve the public listener; one per core, when absent.
    #[arg(long, env = "RESOLVER_THREADS", value_name = "COUNT")]
    pub threads: Option<usize>,
}

/// The configuration, checked and with every default filled in.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the keyspaces' flag came to.
    pub keyspaces: Vec<Keyspace>,
    /// Where links are created.
    pub default_keyspace: Namespace,
    /// This process's name with the issuer.
    pub holder: HolderId,
    /// What short links begin with, without a slash at the end.
    pub public_url: String,
    /// The hosts that long URLs must not lead to.
    pub own_hosts: Vec<(Host, u16)>,
    /// The status of redirects.
    pub redirect_status: hyper::StatusCode,
    /// How long a link is given to whoever wishes for the same.
    pub find_existing_for: Duration,
    /// Where the code key is.
    pub code_key_file: PathBuf,
    /// What one client may take.
    pub client_limits: ClientLimits,
    /// Of the cache and of replicas.
    pub lookup: LookupSizes,
    /// Threads of the public listener.
    pub threads: usize,
}

impl Config {
    /// Checks everything and fills the defaults in.
    ///
    /// # Errors
    /// Names the flag, its value and what was expected.
    pub fn settings(&self) -> Result<Settings, Error> {
        let keyspaces = parse_keyspaces(&self.keyspaces)
            .map_err(|error| wrong("--keyspaces", &self.keyspaces, error.to_string()))?;
        let default_keyspace = self.check_default_keyspace(&keyspaces)?;
        let (public_url, own_hosts) = self.check_public_url()?;
        for url in &self.issuer {
            if !url.starts_with("http://") || url.parse::<hyper::Uri>().is_err() {
                return Err(wrong("--issuer", url, "expected an address such as http://issuer-0:7070"));
            }
        }
        self.check_read_database()?;
        let redirect_status = match self.redirect_status {
            301 | 302 | 307 | 308 => hyper::StatusCode::from_u16(self.redirect_status),
            _ => {
                return Err(wrong(
                    "--redirect-status",
                    self.redirect_status,
                    "expected 301, 302, 307 or 308",
                ));
            }
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.threads.unwrap_or(cores);
        if !(1..=1_024).contains(&threads) {
            return Err(wrong("--threads", threads, "expected 1 to 1024"));
        }
        Ok(Settings {
            keyspaces,
            default_keyspace,
            holder: self.check_holder()?,
            public_url,
            own_hosts,
            redirect_status: redirect_status.unwrap_or(hyper::StatusCode::FOUND),
            find_existing_for: self.find_existing_for,
            code_key_file: self.code_key_file.clone().unwrap_or_else(|| self.data_folder().join("code.key")),
            client_limits: ClientLimits {
                connections: self.connections_per_client,
                unknown_codes: self.unknown_codes_per_minute,
                trusted_proxies: self.trusted_proxies.clone(),
            },
            lookup: LookupSizes {
                cache_bytes: u64::from(self.cache_mib) << 20,
                replica_lag: self.replica_lag,
            },
            threads,
        })
    }

    /// Where this process keeps what is its own: beside the SQLite file, or in ./data.
    #[must_use]
    pub fn data_folder(&self) -> PathBuf {
        match &self.database.database {
            Database::Sqlite(path) => path.parent().unwrap_or(Path::new("")).to_owned(),
            Database::Postgres(_) => "./data".into(),
        }
    }

    fn check_read_database(&self) -> Result<(), Error> {
        match (&self.read_database, &self.database.database) {
            (None | Some(Database::Postgres(_)), Database::Postgres(_)) | (None, Database::Sqlite(_)) => {
                Ok(())
            }
            (Some(replica), _) => Err(wrong(
                "--read-database",
                replica,
                "expected a replica of a Postgres in --database: postgres://USER@HOST/NAME",
            )),
        }
    }

    fn check_default_keyspace(&self, keyspaces: &[Keyspace]) -> Result<Namespace, Error> {
        let Some(name) = &self.default_keyspace else { return Ok(keyspaces[0].name.clone()) };
        let found = keyspaces.iter().find(|keyspace| keyspace.name.as_str() == name);
        let names: Vec<_> = keyspaces.iter().map(|keyspace| keyspace.name.as_str()).collect();
        let reason = || format!("expected one of --keyspaces: {}", names.join(", "));
        Ok(found.ok_or_else(|| wrong("--default-keyspace", name, reason()))?.name.clone())
    }

    fn check_holder(&self) -> Result<HolderId, Error> {
        match &self.holder_id {
            Some(id) => {
                HolderId::new(id.as_str()).map_err(|error| wrong("--holder-id", id, error.to_string()))
            }
            None if self.issuer.is_empty() => {
                Ok(HolderId::new("embedded").expect("a plain word is a holder id"))
            }
            None => Err(wrong(
                "--holder-id",
                "(absent)",
                "expected with --issuer: a name that stays the same after a restart and that no other resolver has",
            )),
        }
    }

    fn check_public_url(&self) -> Result<(String, Vec<(Host, u16)>), Error> {
        let text = self.public_url.clone().unwrap_or_else(|| format!("http://{}", self.listen));
        let expected = "expected an address such as https://sho.rt, without a path, a query or a password";
        let url = Url::parse(&text).map_err(|_| wrong("--public-url", &text, expected))?;
        let plain = matches!(url.scheme(), "http" | "https")
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        let host =
            url.host().filter(|_| plain).ok_or_else(|| wrong("--public-url", &text, expected))?.to_owned();
        // A short link answers under both schemes where the port is the scheme's own.
        let ports = match url.port() {
            Some(port) => vec![port],
            None => vec![80, 443],
        };
        let own = ports.into_iter().map(|port| (host.clone(), port)).collect();
        Ok((text.trim_end_matches('/').to_owned(), own))
    }
}

fn wrong(flag: &'static str, value: impl ToString, reason: impl Into<String>) -> Error {
    Error::Config { flag, value: value.to_string(), reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Settings, String> {
        let cli = Cli::try_parse_from([&["resolver"], args].concat()).map_err(|error| error.to_string())?;
        cli.serve.settings().map_err(|error| error.to_string())
    }

    #[test]
    fn the_defaults_are_valid_and_keep_everything_in_one_folder() {
        let settings = parse(&[]).unwrap();
        assert_eq!(settings.public_url, "http://127.0.0.1:8080");
        assert_eq!(settings.code_key_file, Path::new("./data/code.key"));
        assert_eq!(settings.default_keyspace.as_str(), "default");
    }

    #[test]
    fn a_wrong_value_is_named_with_its_flag_and_the_reason() {
        for (args, parts) in [
            (&["--database", "mysql://x"][..], ["--database", "mysql://x", "sqlite:PATH"]),
            (&["--keyspaces", "web=9:A-Z"], ["--keyspaces", "web=9:A-Z", "1 to 8"]),
            (&["--default-keyspace", "web"], ["--default-keyspace", "web", "default"]),
            (&["--redirect-status", "200"], ["--redirect-status", "200", "308"]),
            (&["--public-url", "https://sho.rt/x"], ["--public-url", "sho.rt/x", "without a path"]),
            (&["--issuer", "issuer:7070", "--holder-id", "a"], ["--issuer", "issuer:7070", "http://"]),
            (&["--issuer", "http://issuer:7070"], ["--holder-id", "(absent)", "--issuer"]),
            (&["--holder-id", "a/b"], ["--holder-id", "a/b", "1 to 128"]),
            (&["--read-database", "postgres://a@b/c"], ["--read-database", "postgres://a@b/c", "--database"]),
            (&["--trusted-proxies", "10.0.0.0/99"], ["--trusted-proxies", "10.0.0.0/99", "CIDR"]),
            (&["--threads", "0"], ["--threads", "0", "1024"]),
            (&["--drain-delay", "soon"], ["--drain-delay", "soon", "5s"]),
        ] {
            let error = parse(args).unwrap_err();
            for part in parts {
                assert!(error.contains(part), "{error:?} lacks {part:?}");
            }
        }
    }

    #[test]
    fn a_password_is_never_printed() {
        let database: Database =
            "postgres://me:secret@db/links?sslmode=disable&password=secret".parse().unwrap();
        assert_eq!(database.to_string(), "postgres://me:***@db/links");
        assert!(!format!("{database:?}").contains("secret"));
    }
}
