//! The resolver's configuration: one struct, from flags and environment, checked before anything starts. What other subcommands take is in files of its own.

mod args;
mod audit_args;
mod client_args;
mod domain_args;
mod link_args;
mod settings;
mod target_args;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, builder::BoolishValueParser};
use daemon::{parse_duration, parse_duration_or_zero};
use hyper::header::HeaderName;
use ipnet::IpNet;

pub use args::{
    ApiKeyCommand, ConfigCheckArgs, ConfigCommand, Database, DatabaseArgs, ExportArgs, ExportFormat,
    ImportArgs, MigrateArgs, Unprotected,
};
pub use audit_args::AuditArgs;
pub use client_args::{ServerArgs, TableArgs};
pub use domain_args::{
    DomainCommand, DomainEditArgs, DomainListArgs, DomainProtocol, DomainRedirectsArgs, DomainRemoveArgs,
};
pub use link_args::{
    CodeStrategy, LinkBlockArgs, LinkClears, LinkCommand, LinkCreateArgs, LinkDeleteArgs, LinkEditArgs,
    LinkGetArgs, LinkListArgs, LinkName, LinkSetters,
};
pub use settings::Settings;
pub use target_args::{CheckTargets, TargetCommand, TargetListArgs, TargetRuleArgs};

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
    Migrate(MigrateArgs),
    /// Make, list and revoke API keys.
    #[command(subcommand)]
    ApiKey(ApiKeyCommand),
    /// Make, show, list, change and delete links of a running server.
    #[command(subcommand)]
    Link(LinkCommand),
    /// List the domains of a running server, rename them, switch them off and on, and say where their stray visitors go.
    #[command(subcommand)]
    Domain(DomainCommand),
    /// Say to which hosts links of a running server may lead.
    #[command(subcommand)]
    Target(TargetCommand),
    /// Show who wrote what, and when.
    Audit(AuditArgs),
    /// Print the script with which a shell completes what is typed.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Bring links of another system along, with the codes that they have there.
    Import(ImportArgs),
    /// Write every link to a file, or to the standard output.
    Export(ExportArgs),
    /// Look at the configuration without starting.
    #[command(subcommand)]
    Config(ConfigCommand),
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
    /// Where other services create and manage links over gRPC; nowhere, when absent.
    #[arg(long, env = "RESOLVER_GRPC_LISTEN", value_name = "ADDR:PORT")]
    pub grpc_listen: Option<SocketAddr>,
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
    /// The schemes that long URLs and URLs of rules may have. Links into apps have schemes of their own, such as myapp; javascript, data, file and others
    /// that act in the visitor's browser are refused.
    #[arg(
        long,
        env = "RESOLVER_ALLOWED_SCHEMES",
        default_value = "http,https,mailto,tel",
        value_name = "SCHEME[,SCHEME…]",
        value_delimiter = ','
    )]
    pub allowed_schemes: Vec<String>,
    /// Create links also with GET /rest/v3/short-urls/shorten?apiKey=…&longUrl=…, as Shlink does. The key is then part of an address, which proxies log and
    /// browsers remember: make a key for it that may only create.
    #[arg(long, env = "RESOLVER_SINGLE_STEP_CREATE", value_parser = BoolishValueParser::new())]
    pub single_step_create: bool,
    /// The time zone of times that come without an offset, such as 2031-01-01 10:00:00.
    #[arg(long, env = "RESOLVER_TIME_ZONE", default_value = "UTC", value_name = "NAME")]
    pub time_zone: String,
    /// Keep a witness file here: how far the database had come, as this process has seen it. It tells that the database and the issuer's ledger
    /// were both restored from older backups. Put it on a disk that no backup of either covers. Without this it is FILE.witness beside a SQLite file, and
    /// there is none with Postgres. Each process needs its own; with several resolvers use `migrate --put-back` as well.
    #[arg(long, env = "RESOLVER_WITNESS", value_name = "FILE")]
    pub witness: Option<PathBuf>,
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
    /// The sets of codes, each with a name, a length and the class of the first character. Codes of one that ends in :hand-picked are never minted.
    #[arg(
        long,
        env = "RESOLVER_KEYSPACES",
        default_value = "default=6:0-9A-Za-z",
        value_name = "NAME=LENGTH:CLASS[:hand-picked][,…]"
    )]
    pub keyspaces: String,
    /// Where visitors of a code without a link are sent, by keyspace.
    #[arg(long, env = "RESOLVER_KEYSPACE_FALLBACKS", value_name = "NAME=URL[,…]", value_delimiter = ',')]
    pub keyspace_fallbacks: Vec<String>,
    /// Where visitors of the domain itself are sent, unless their domain says otherwise; a page of our own, when absent.
    #[arg(long, env = "RESOLVER_BASE_URL_REDIRECT", value_name = "URL")]
    pub base_url_redirect: Option<String>,
    /// Where visitors are sent who ask for what no code could be, likewise.
    #[arg(long, env = "RESOLVER_REGULAR_404_REDIRECT", value_name = "URL")]
    pub regular_404_redirect: Option<String>,
    /// Where visitors are sent whose code leads nowhere, likewise.
    #[arg(long, env = "RESOLVER_INVALID_SHORT_URL_REDIRECT", value_name = "URL")]
    pub invalid_short_url_redirect: Option<String>,
    /// Tell visitors of links that have expired, are spent or disabled, or were deleted under a minted code, that there was one (410); otherwise they see
    /// what all see who ask for none (404). It goes before --keyspace-fallbacks and --invalid-short-url-redirect, but not before what a domain itself
    /// says of invalid short URLs.
    #[arg(long, env = "RESOLVER_TELL_GONE", value_parser = BoolishValueParser::new())]
    pub tell_gone: bool,
    /// Remove links that nobody has visited for so long, half a year for example as 180d; never, when absent. Visits count from the first start of this version.
    #[arg(long, env = "RESOLVER_REMOVE_UNVISITED_AFTER", value_parser = parse_duration, value_name = "TIME")]
    pub remove_unvisited_after: Option<Duration>,
    /// How long a call with an Idempotency-Key may be sent again without making another link.
    #[arg(long, env = "RESOLVER_IDEMPOTENCY_FOR", default_value = "24h", value_parser = parse_duration, value_name = "TIME")]
    pub idempotency_for: Duration,
    /// When the rules about targets are asked: always, so that links to a host that is denied stop
    /// redirecting within a second, or only at creation.
    #[arg(long, env = "RESOLVER_CHECK_TARGETS", value_enum, default_value_t = CheckTargets::Always)]
    pub check_targets: CheckTargets,
    /// Domains beside the default one that keys may add, all together; those that there are stay.
    #[arg(long, env = "RESOLVER_DOMAINS_MAX", default_value_t = 1_000, value_name = "COUNT")]
    pub domains_max: u32,
    /// Codes that the open reservations of one key may have together, filled or not.
    #[arg(long, env = "RESOLVER_RESERVED_PER_KEY", default_value_t = 1_000_000, value_name = "COUNT")]
    pub reserved_per_key: u64,
    /// Calls of the API that one key may make in a minute, unless the key has a limit of its own; 0 for any number. Each resolver counts by itself.
    #[arg(long, env = "RESOLVER_CALLS_PER_KEY", default_value_t = 0, value_name = "COUNT")]
    pub calls_per_key: u32,
    /// Calls of the API that one client may make in a minute, whatever its keys; 0 for any number.
    #[arg(long, env = "RESOLVER_CALLS_PER_CLIENT", default_value_t = 0, value_name = "COUNT")]
    pub calls_per_client: u32,
    /// The header in which trusted proxies say from which country a client comes, in two letters, such as CF-IPCountry.
    #[arg(long, env = "RESOLVER_COUNTRY_HEADER", value_name = "NAME")]
    pub country_header: Option<HeaderName>,
    /// Databases of places in MaxMind DB format, such as GeoLite2-City.mmdb: where visitors are of whom no proxy says it, and in which city. A file
    /// that is replaced is read again within a minute.
    #[arg(long, env = "RESOLVER_PLACES", value_name = "FILE[,FILE…]", value_delimiter = ',')]
    pub places: Vec<PathBuf>,
    /// The keyspace that links are created in; the first that is not hand-picked, when absent.
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
    /// Connections that one client may have open; its next one takes the place of its idlest.
    /// Trusted proxies have no such limit. 0 for any number; a quarter of all there may be, and
    /// 1,024 at most, when absent.
    #[arg(long, env = "RESOLVER_CONNECTIONS_PER_CLIENT", value_name = "COUNT")]
    pub connections_per_client: Option<u32>,
    /// Codes without a link that one client may ask for in a minute, before it gets 429; 0 for any number.
    #[arg(long, env = "RESOLVER_UNKNOWN_CODES_PER_MINUTE", default_value_t = 600, value_name = "COUNT")]
    pub unknown_codes_per_minute: u32,
    /// Memory for cached links, in MiB, about.
    #[arg(long, env = "RESOLVER_CACHE_MIB", default_value_t = 64, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub cache_mib: u32,
    /// Threads that serve the public listener; one per core, when absent.
    #[arg(long, env = "RESOLVER_THREADS", value_name = "COUNT")]
    pub threads: Option<usize>,
    /// Whether redirects of known links are answered without hyper. Off, every request takes hyper's way: answers are the
    /// same, at a tenth more of processor time.
    #[arg(long, env = "RESOLVER_FAST_PATH", value_enum, default_value_t = FastPath::On)]
    pub fast_path: FastPath,
}

/// Whether the fast path of redirects is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum FastPath {
    /// Known links are answered straight from what a connection sends.
    #[default]
    On,
    /// Every request goes through hyper.
    Off,
}

impl Config {
    /// Where this process keeps what is its own: beside the SQLite file, or in ./data.
    #[must_use]
    pub fn data_folder(&self) -> PathBuf {
        self.database.data_folder()
    }
}
