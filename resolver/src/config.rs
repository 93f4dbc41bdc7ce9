//! The resolver's configuration: one struct, read from flags and the environment and validated
//! before anything starts. The arguments of most subcommands are in the crate `cli`.

mod network;
mod pages;
mod role;
mod settings;
mod tls;
mod visits;
mod webhooks;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum, builder::BoolishValueParser};
use cli::args::{Database, DatabaseArgs};
use daemon::{LogFormat, Share, parse_duration, parse_duration_or_zero};
use hyper::header::HeaderName;
use ipnet::IpNet;
use store::postgres::ConnectionBudget;

use self::network::parse_network;
pub use self::{
    pages::{PageSettings, PagesArgs},
    role::Role,
    tls::{IssuerTlsArgs, PublicTlsArgs},
};
pub use settings::Settings;
pub use visits::{Switch, VisitSettings, VisitsArgs};
pub use webhooks::{WebhookConfig, WebhookHttp};

/// Mints short codes, stores links and serves redirects.
///
/// Without flags it needs no other server: numbers come from an embedded issuer, and links are
/// stored in ./data. With --issuer and --database several resolvers work as one.
#[derive(Debug, Parser)]
#[command(name = "resolver", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// The subcommand; `serve` if absent.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The flags of the server.
    #[command(flatten)]
    pub serve: Config,
}

impl Cli {
    /// Returns the form of the logs. Commands write text, for people.
    #[must_use]
    pub fn log_format(&self) -> LogFormat {
        match &self.command {
            None => self.serve.log_format,
            Some(Command::Serve(config)) => config.log_format,
            Some(_) => LogFormat::Text,
        }
    }
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve redirects and the API (the default).
    Serve(Box<Config>),
    /// The commands that need no configuration of a server.
    #[command(flatten)]
    Other(Box<cli::Command>),
    /// Print the completion script of a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Inspect the configuration without starting the server.
    #[command(subcommand)]
    Config(ConfigCommand),
}

/// Subcommands of `resolver config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Validate flags and environment, and print the resulting settings with their sources.
    Check(Box<ConfigCheckArgs>),
}

/// Arguments of `resolver config check`.
#[derive(Clone, Debug, Args)]
pub struct ConfigCheckArgs {
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// The flags of the server.
    #[command(flatten)]
    pub config: Config,
}

/// The flags of the server.
#[derive(Clone, Debug, Args)]
pub struct Config {
    /// Serve visitors and the API, or only one of them, so that each can be scaled and fail by
    /// itself. The others' requests are then answered 421.
    #[arg(long, env = "RESOLVER_ROLE", value_enum, default_value_t = Role::All)]
    pub role: Role,
    /// Serve redirects and the API on this address.
    #[arg(long, env = "RESOLVER_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDR:PORT")]
    pub listen: SocketAddr,
    /// Flags for TLS of the public listener.
    #[command(flatten)]
    pub tls: PublicTlsArgs,
    /// Serve /metrics, /livez and /readyz on this address.
    #[arg(long, env = "RESOLVER_ADMIN_LISTEN", default_value = "127.0.0.1:9090", value_name = "ADDR:PORT")]
    pub admin_listen: SocketAddr,
    /// Write logs as text for people, or as JSON for collectors.
    #[arg(long, env = "RESOLVER_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT")]
    pub log_format: LogFormat,
    /// Serve the links API over gRPC on this address, for other services. Off if absent.
    #[arg(long, env = "RESOLVER_GRPC_LISTEN", value_name = "ADDR:PORT")]
    pub grpc_listen: Option<SocketAddr>,
    /// URLs of the issuers, separated by commas. If absent, numbers come from an issuer inside this
    /// process.
    #[arg(long, env = "RESOLVER_ISSUER", value_name = "URL[,URL…]", value_delimiter = ',')]
    pub issuer: Vec<String>,
    /// Flags for TLS of the connections to issuers.
    #[command(flatten)]
    pub issuer_tls: IssuerTlsArgs,
    /// The database.
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// URL of a Postgres replica that links are read from if no cache has them. If it lacks a link,
    /// --database is asked.
    #[arg(long, env = "RESOLVER_READ_DATABASE", hide_env_values = true, value_name = "URL")]
    pub read_database: Option<Database>,
    /// Maximum number of connections to Postgres, at least 18. The default lets lists have twice as
    /// many as one API key may use. The sum over all processes has to stay below Postgres'
    /// max_connections. A --read-database and webhooks' receivers are not counted.
    #[arg(
        long,
        env = "RESOLVER_DATABASE_CONNECTIONS",
        default_value_t = ConnectionBudget::DEFAULT,
        value_name = "COUNT",
        value_parser = clap::value_parser!(u32).range(i64::from(ConnectionBudget::MIN)..=i64::from(ConnectionBudget::MAX))
    )]
    pub database_connections: u32,
    /// Maximum lag of --read-database. A link that was changed within this time is read from
    /// --database.
    #[arg(long, env = "RESOLVER_REPLICA_LAG", default_value = "1m", value_parser = parse_duration, value_name = "TIME")]
    pub replica_lag: Duration,
    /// Serve cached links for at most this long after the database was last heard from, and then
    /// answer 503; at least 2s. Until then a resolver that alone is cut off from the database
    /// redirects links that others have taken down.
    #[arg(long, env = "RESOLVER_SERVE_STALE_FOR", default_value = "1d", value_parser = parse_duration, value_name = "TIME")]
    pub serve_stale_for: Duration,
    /// Name of this process at the issuer: the same after each restart, and different from those of
    /// all other processes. Required with --issuer.
    #[arg(long, env = "RESOLVER_HOLDER_ID", value_name = "NAME")]
    pub holder_id: Option<String>,
    /// Beginning of short URLs. Defaults to http:// and --listen.
    #[arg(long, env = "RESOLVER_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,
    /// Schemes that long URLs and URLs of redirect rules may have. Links into apps have schemes of
    /// their own, such as myapp. Schemes that act in the visitor's browser, such as javascript,
    /// data and file, are always refused.
    #[arg(
        long,
        env = "RESOLVER_ALLOWED_SCHEMES",
        default_value = "http,https,mailto,tel",
        value_name = "SCHEME[,SCHEME…]",
        value_delimiter = ','
    )]
    pub allowed_schemes: Vec<String>,
    /// Allow creates with GET /rest/v3/short-urls/shorten?apiKey=…&longUrl=…, as Shlink does. The
    /// API key is then part of a URL, which proxies log and browsers remember: use a key that may
    /// only create links.
    #[arg(long, env = "RESOLVER_SINGLE_STEP_CREATE", value_parser = BoolishValueParser::new())]
    pub single_step_create: bool,
    /// Time zone of times without an offset, such as 2031-01-01 10:00:00.
    #[arg(long, env = "RESOLVER_TIME_ZONE", default_value = "UTC", value_name = "NAME")]
    pub time_zone: String,
    /// Keep a witness file at this path, a record of how far the database had progressed as this
    /// process saw it. With it this process detects that the database and the issuer's ledger were
    /// both restored from older backups. Put it on a disk that no backup of either includes.
    /// Defaults to FILE.witness beside a SQLite file; with Postgres there is none. Each process
    /// needs its own file. With several resolvers, also run `migrate --put-back` after such a
    /// restore.
    #[arg(long, env = "RESOLVER_WITNESS", value_name = "FILE")]
    pub witness: Option<PathBuf>,
    /// Status of redirects: 301, 302, 307 or 308.
    #[arg(long, env = "RESOLVER_REDIRECT_STATUS", default_value_t = 302, value_name = "STATUS")]
    pub redirect_status: u16,
    /// Return the same link for repeated creates with findIfExists for this long after the last of
    /// them. Creates that are further apart find the link in the index of long URLs.
    #[arg(long, env = "RESOLVER_FIND_EXISTING_FOR", default_value = "30d", value_parser = parse_duration, value_name = "TIME")]
    pub find_existing_for: Duration,
    /// File with the code key, which determines the order of codes: 64 hexadecimal characters, the
    /// same for all resolvers of a database and for its whole life. Defaults to code.key beside the
    /// SQLite file, or in ./data; there it is created at the first start.
    #[arg(long, env = "RESOLVER_CODE_KEY_FILE", value_name = "FILE")]
    pub code_key_file: Option<PathBuf>,
    /// Keyspaces, the sets of codes: each has a name, a length and the class of the first
    /// character. Codes of a keyspace that ends in :hand-picked are never minted.
    #[arg(
        long,
        env = "RESOLVER_KEYSPACES",
        default_value = "default=6:0-9A-Za-z",
        value_name = "NAME=LENGTH:CLASS[:hand-picked][,…]"
    )]
    pub keyspaces: String,
    /// Fallback targets by keyspace, for codes without a link.
    #[arg(long, env = "RESOLVER_KEYSPACE_FALLBACKS", value_name = "NAME=URL[,…]", value_delimiter = ',')]
    pub keyspace_fallbacks: Vec<String>,
    /// Fallback target for the domain itself, unless a domain has its own. Shows a built-in page if
    /// absent.
    #[arg(long, env = "RESOLVER_BASE_URL_REDIRECT", value_name = "URL")]
    pub base_url_redirect: Option<String>,
    /// Fallback target for paths that cannot be a code, unless a domain has its own. Shows a
    /// built-in page if absent.
    #[arg(long, env = "RESOLVER_REGULAR_404_REDIRECT", value_name = "URL")]
    pub regular_404_redirect: Option<String>,
    /// Fallback target for codes without a live link, unless a domain has its own. Shows a built-in
    /// page if absent.
    #[arg(long, env = "RESOLVER_INVALID_SHORT_URL_REDIRECT", value_name = "URL")]
    pub invalid_short_url_redirect: Option<String>,
    /// Answer 410 instead of 404 for links that have expired, have used up their visits, are
    /// disabled, or were deleted under a minted code. The answer takes precedence over
    /// --keyspace-fallbacks and --invalid-short-url-redirect, but not over a domain's own fallback
    /// target for invalid short URLs.
    #[arg(long, env = "RESOLVER_TELL_GONE", value_parser = BoolishValueParser::new())]
    pub tell_gone: bool,
    /// Delete links without a visit for this long, such as 180d for half a year. Off if absent.
    /// Visits count from the first start of this version. Processes with --role redirect need the
    /// same, because they note the visits.
    #[arg(long, env = "RESOLVER_REMOVE_UNVISITED_AFTER", value_parser = parse_duration, value_name = "TIME")]
    pub remove_unvisited_after: Option<Duration>,
    /// Keep idempotency keys for this long. Meanwhile a repeated call with the same Idempotency-Key
    /// creates no other link.
    #[arg(long, env = "RESOLVER_IDEMPOTENCY_FOR", default_value = "24h", value_parser = parse_duration, value_name = "TIME")]
    pub idempotency_for: Duration,
    /// Apply target rules always, so that links to a denied host stop redirecting within a second,
    /// or only at creation.
    #[arg(long, env = "RESOLVER_CHECK_TARGETS", value_enum, default_value_t = CheckTargets::Always)]
    pub check_targets: CheckTargets,
    /// Maximum number of domains that API keys may add, in total and besides the default one.
    /// Existing domains stay.
    #[arg(long, env = "RESOLVER_DOMAINS_MAX", default_value_t = 1_000, value_name = "COUNT")]
    pub domains_max: u32,
    /// Maximum number of codes in the open reservations of one API key, filled or not.
    #[arg(long, env = "RESOLVER_RESERVED_PER_KEY", default_value_t = 1_000_000, value_name = "COUNT")]
    pub reserved_per_key: u64,
    /// Maximum number of API calls per minute with one API key, unless the key has its own limit; 0
    /// for no limit. Each resolver counts by itself.
    #[arg(long, env = "RESOLVER_CALLS_PER_KEY", default_value_t = 0, value_name = "COUNT")]
    pub calls_per_key: u32,
    /// Maximum number of API calls per minute from one client, whatever its keys; 0 for no limit.
    /// Each resolver counts by itself.
    #[arg(long, env = "RESOLVER_CALLS_PER_CLIENT", default_value_t = 0, value_name = "COUNT")]
    pub calls_per_client: u32,
    /// Header in which trusted proxies give the country of a client in two letters, such as
    /// CF-IPCountry.
    #[arg(long, env = "RESOLVER_COUNTRY_HEADER", value_name = "NAME")]
    pub country_header: Option<HeaderName>,
    /// GeoIP databases in MaxMind DB format, such as GeoLite2-City.mmdb, for the country and city
    /// of visitors. The country in --country-header takes precedence. A replaced file is read again
    /// within a minute.
    #[arg(long, env = "RESOLVER_PLACES", value_name = "FILE[,FILE…]", value_delimiter = ',')]
    pub places: Vec<PathBuf>,
    /// Keyspace for new links. Defaults to the first that is not hand-picked.
    #[arg(long, env = "RESOLVER_DEFAULT_KEYSPACE", value_name = "NAME")]
    pub default_keyspace: Option<String>,
    /// Keep serving for this long after SIGTERM while /readyz reports not ready, so that load
    /// balancers can choose other resolvers.
    #[arg(long, env = "RESOLVER_DRAIN_DELAY", default_value = "0s", value_parser = parse_duration_or_zero)]
    pub drain_delay: Duration,
    /// API key to create at the first start. If absent, a random key is generated and printed once.
    #[arg(long, env = "RESOLVER_INITIAL_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub initial_api_key: Option<String>,
    /// Addresses or networks of proxies, such as 127.0.0.1 or 10.0.0.0/8, that are trusted to name
    /// their clients in X-Forwarded-For or Forwarded. Name all proxies in front of this server: to
    /// all limits, the clients of an unnamed proxy are one client.
    #[arg(long, env = "RESOLVER_TRUSTED_PROXIES", value_parser = parse_network, value_name = "CIDR[,CIDR…]", value_delimiter = ',')]
    pub trusted_proxies: Vec<IpNet>,
    /// The only header in which trusted proxies name their clients, such as X-Real-IP,
    /// CF-Connecting-IP or Forwarded. Without it, X-Forwarded-For and Forwarded are read, and neither
    /// is believed if they name different clients.
    #[arg(long, env = "RESOLVER_CLIENT_ADDRESS_HEADER", value_name = "NAME")]
    pub client_address_header: Option<HeaderName>,
    /// Maximum number of open connections of one client; at the limit, a new connection replaces
    /// its idlest one. Trusted proxies have no limit. 0 for no limit. Defaults to a quarter of all
    /// connections, at most 1,024.
    #[arg(long, env = "RESOLVER_CONNECTIONS_PER_CLIENT", value_name = "COUNT")]
    pub connections_per_client: Option<u32>,
    /// Maximum number of codes without a link that one client may request per minute before it
    /// receives 429; 0 for no limit.
    #[arg(long, env = "RESOLVER_UNKNOWN_CODES_PER_MINUTE", default_value_t = 600, value_name = "COUNT")]
    pub unknown_codes_per_minute: u32,
    /// Approximate memory for cached links, in MiB.
    #[arg(long, env = "RESOLVER_CACHE_MIB", default_value_t = 64, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub cache_mib: u32,
    /// Number of threads of the public listener. Defaults to one per core.
    #[arg(long, env = "RESOLVER_THREADS", value_name = "COUNT")]
    pub threads: Option<usize>,
    /// Answer redirects of cached links without hyper. When off, hyper serves every request: the
    /// answers are the same, apart from the request id that the fast path leaves out, at a tenth
    /// more processor time.
    #[arg(long, env = "RESOLVER_FAST_PATH", value_enum, default_value_t = FastPath::On)]
    pub fast_path: FastPath,
    /// Log this share of requests, from 0 to 1: client, method, path, status, duration. Queries and
    /// headers are not logged.
    #[arg(long, env = "RESOLVER_ACCESS_LOG", default_value = "0", value_name = "SHARE")]
    pub access_log: Share,
    /// Send traces to this collector, by OTLP over gRPC, such as http://collector:4317. Requests
    /// with a sampled traceparent are then served by hyper. Off if absent.
    #[arg(long, env = "RESOLVER_OTLP", value_name = "URL")]
    pub otlp: Option<String>,
    /// Begin a trace for this share of the requests without a traceparent, from 0 to 1. Redirects
    /// that the fast path answers begin none.
    #[arg(long, env = "RESOLVER_TRACE_SHARE", default_value = "0.01", value_name = "SHARE")]
    pub trace_share: Share,
    /// The flags for visits.
    #[command(flatten)]
    pub visits: VisitsArgs,
    /// The flags of the pages.
    #[command(flatten)]
    pub pages: PagesArgs,
    /// The flags of webhooks.
    #[command(flatten)]
    pub webhooks: WebhookConfig,
}

/// Whether the fast path serves redirects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FastPath {
    /// Redirects of cached links are answered from the bytes of the connection.
    #[default]
    On,
    /// hyper serves every request.
    Off,
}

impl Config {
    /// Returns the folder for this process's own files: that of the SQLite file, or ./data.
    #[must_use]
    pub fn data_folder(&self) -> PathBuf {
        self.database.data_folder()
    }
}

/// The operations for which target rules are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckTargets {
    /// Check when a link is created, edited or restored, and at every redirect.
    Always,
    /// Check only when a link is created, edited or restored. Existing links keep redirecting.
    Creation,
}
