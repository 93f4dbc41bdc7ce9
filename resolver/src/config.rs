//! The resolver's configuration: one struct, read from flags and the environment and validated
//! before anything starts. The arguments of most subcommands are in the crate `cli`.

mod entries;
mod former;
mod pages;
mod role;
mod settings;
mod tls;
mod tuning;
mod visits;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, builder::BoolishValueParser};
use cli::args::{Database, DatabaseArgs, VisitsStoreArgs};
use compat::{Facade, parse_facade};
use daemon::{LogFormat, Share, parse_duration, parse_duration_or_zero};
use ipnet::IpNet;

use self::entries::parse_network;
pub use self::{former::Arguments, role::Role};
pub(crate) use self::{pages::PageSettings, settings::Settings, visits::VisitSettings};

// The headings of `--help`, in its order.
const LISTEN: &str = "Listen";
const STORAGE: &str = "Storage";
const NUMBERS: &str = "Numbers and codes";
const LINKS: &str = "Links and API";
const REDIRECTS: &str = "Redirects";
const CLIENTS: &str = "Clients";
const LIMITS: &str = "Limits";
const TLS: &str = "TLS";
const VISITS: &str = "Visits";
const PAGES: &str = "Pages";
const WEBHOOKS: &str = "Webhooks";
const TELEMETRY: &str = "Telemetry";

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
    /// Look for what is wrong with a deployment, and say what to do.
    ///
    /// Takes the flags of the server, and checks from here what a server with them would need: its
    /// files, database, issuers, store of visits and public URL. Starts and changes nothing. The
    /// exit code is 69 if something is wrong, and 0 otherwise, also with warnings.
    Doctor(Box<InspectArgs>),
}

/// Subcommands of `resolver config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Validate flags and environment, and print the resulting settings with their sources.
    Check(Box<InspectArgs>),
}

/// Arguments of `resolver config check` and `resolver doctor`.
#[derive(Clone, Debug, Args)]
pub struct InspectArgs {
    /// Print JSON instead of text.
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
    #[arg(long, env = "RESOLVER_ROLE", value_enum, default_value_t = Role::All, help_heading = LISTEN)]
    pub role: Role,
    /// Serve redirects and the API on this address.
    #[arg(long, env = "RESOLVER_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDR:PORT", help_heading = LISTEN)]
    pub listen: SocketAddr,
    /// Serve /metrics, /livez and /readyz on this address.
    #[arg(long, env = "RESOLVER_ADMIN_LISTEN", default_value = "127.0.0.1:9090", value_name = "ADDR:PORT", help_heading = LISTEN)]
    pub admin_listen: SocketAddr,
    /// Serve the links API over gRPC on this address, for other services. Off if absent.
    #[arg(long, env = "RESOLVER_GRPC_LISTEN", value_name = "ADDR:PORT", help_heading = LISTEN)]
    pub grpc_listen: Option<SocketAddr>,
    /// Beginning of short URLs. Defaults to http:// and --listen.
    #[arg(long, env = "RESOLVER_PUBLIC_URL", value_name = "URL", help_heading = LISTEN)]
    pub public_url: Option<String>,
    /// Keep serving for this long after SIGTERM while /readyz reports not ready, so that load
    /// balancers can choose other resolvers.
    #[arg(long, env = "RESOLVER_DRAIN_DELAY", default_value = "0s", value_parser = parse_duration_or_zero, value_name = "TIME", help_heading = LISTEN)]
    pub drain_delay: Duration,
    /// The database.
    #[command(flatten, next_help_heading = STORAGE)]
    pub database: DatabaseArgs,
    /// URL of a Postgres replica that links are read from if no cache has them. If it lacks a link,
    /// or may lack a change of the last minute, --database is asked.
    #[arg(long, env = "RESOLVER_READ_DATABASE", hide_env_values = true, value_name = "URL", help_heading = STORAGE)]
    pub read_database: Option<Database>,
    /// Serve cached links for at most this long after the database was last heard from, and then
    /// answer 503; at least 2s. Until then a resolver that alone is cut off from the database
    /// redirects links that others have taken down.
    #[arg(long, env = "RESOLVER_SERVE_STALE_FOR", default_value = "1d", value_parser = parse_duration, value_name = "TIME", help_heading = STORAGE)]
    pub serve_stale_for: Duration,
    /// Keep a witness file at this path, a record of how far the database had progressed as this
    /// process saw it. With it this process detects that the database and the issuer's ledger were
    /// both restored from older backups. Put it on a disk that no backup of either includes.
    /// Defaults to FILE.witness beside a SQLite file; with Postgres there is none. Each process
    /// needs its own file. With several resolvers, also run `migrate --put-back` after such a
    /// restore.
    #[arg(long, env = "RESOLVER_WITNESS", value_name = "FILE", help_heading = STORAGE)]
    pub witness: Option<PathBuf>,
    /// URLs of the issuers, separated by commas. If absent, numbers come from an issuer inside this
    /// process.
    #[arg(long, env = "RESOLVER_ISSUER", value_name = "URL[,URL…]", value_delimiter = ',', help_heading = NUMBERS)]
    pub issuer: Vec<String>,
    /// Name of this process at the issuer: the same after each restart, and different from those of
    /// all other processes. Required with --issuer.
    #[arg(long, env = "RESOLVER_HOLDER_ID", value_name = "NAME", help_heading = NUMBERS)]
    pub holder_id: Option<String>,
    /// File with the code key, which determines the order of codes: 64 hexadecimal characters, the
    /// same for all resolvers of a database and for its whole life. Defaults to code.key beside the
    /// SQLite file, or in ./data; there it is created at the first start.
    #[arg(long, env = "RESOLVER_CODE_KEY_FILE", value_name = "FILE", help_heading = NUMBERS)]
    pub code_key_file: Option<PathBuf>,
    /// Keyspaces, the sets of codes: each has a name, a length and the class of the first
    /// character. Codes of one whose class ends in :crockford are digits and small letters without
    /// i, l, o and u; they are found in any case, and with o for 0, and i or l for 1. With :check
    /// behind it, their last character is a check character, so that a typing error leads to no
    /// other link. Codes of one that ends in :hand-picked are never minted.
    #[arg(
        long,
        env = "RESOLVER_KEYSPACES",
        default_value = "default=6:0-9A-Za-z",
        value_name = "NAME=LENGTH:CLASS[:crockford[:check]][:hand-picked][,…]",
        help_heading = NUMBERS
    )]
    pub keyspaces: String,
    /// Keyspace for new links. Defaults to the first that is not hand-picked.
    #[arg(long, env = "RESOLVER_DEFAULT_KEYSPACE", value_name = "NAME", help_heading = NUMBERS)]
    pub default_keyspace: Option<String>,
    /// API key to create at the first start. If absent, a random key is generated and printed once.
    #[arg(long, env = "RESOLVER_INITIAL_API_KEY", hide_env_values = true, value_name = "KEY", help_heading = LINKS)]
    pub initial_api_key: Option<String>,
    /// Schemes that long URLs and URLs of redirect rules may have. Links into apps have schemes of
    /// their own, such as myapp. Schemes that act in the visitor's browser, such as javascript,
    /// data and file, are always refused.
    #[arg(
        long,
        env = "RESOLVER_ALLOWED_SCHEMES",
        default_value = "http,https,mailto,tel",
        value_name = "SCHEME[,SCHEME…]",
        value_delimiter = ',',
        help_heading = LINKS
    )]
    pub allowed_schemes: Vec<String>,
    /// Allow creates with GET /rest/v3/short-urls/shorten?apiKey=…&longUrl=…, as Shlink does. The
    /// API key is then part of a URL, which proxies log and browsers remember: use a key that may
    /// only create links.
    #[arg(long, env = "RESOLVER_SINGLE_STEP_CREATE", value_parser = BoolishValueParser::new(), help_heading = LINKS)]
    pub single_step_create: bool,
    /// Answer the clients of other shorteners too. No new slug is at or below the paths of such an
    /// API, and a link with such a slug is not reached. Processes with --role redirect need the
    /// same, and answer 421 there. API is one of:
    /// - yourls: YOURLS, at /yourls-api.php.
    /// - kutt: Kutt v2, below /api/v2/.
    /// - bitly: Bitly v4, below /v4/.
    #[arg(
        long,
        env = "RESOLVER_COMPAT",
        value_parser = parse_facade,
        value_name = "API[,API…]",
        value_delimiter = ',',
        verbatim_doc_comment,
        help_heading = LINKS
    )]
    pub compat: Vec<Facade>,
    /// Time zone of times without an offset, such as 2031-01-01 10:00:00.
    #[arg(long, env = "RESOLVER_TIME_ZONE", default_value = "UTC", value_name = "NAME", help_heading = LINKS)]
    pub time_zone: String,
    /// Delete links without a visit for this long, such as 180d for half a year. Off if absent.
    /// Visits count from the first start of this version. Processes with --role redirect need the
    /// same, because they note the visits.
    #[arg(long, env = "RESOLVER_REMOVE_UNVISITED_AFTER", value_parser = parse_duration, value_name = "TIME", help_heading = LINKS)]
    pub remove_unvisited_after: Option<Duration>,
    /// Status of redirects: 301, 302, 307 or 308.
    #[arg(long, env = "RESOLVER_REDIRECT_STATUS", default_value_t = 302, value_name = "STATUS", help_heading = REDIRECTS)]
    pub redirect_status: u16,
    /// Send visitors whom no link redirects elsewhere, unless their domain has its own target.
    /// Without one they see a built-in page. WHERE is one of:
    /// - base-url: The domain itself.
    /// - regular-404: A path that cannot be a code.
    /// - invalid-short-url: A code without a live link.
    /// - keyspace:NAME: A code of this keyspace without a link, before invalid-short-url.
    #[arg(long, env = "RESOLVER_FALLBACK", value_name = "WHERE=URL[,…]", verbatim_doc_comment, help_heading = REDIRECTS)]
    pub fallback: Vec<String>,
    /// Answer 410 instead of 404 for links that have expired, have used up their visits, are
    /// disabled, or were deleted under a minted code. The answer takes precedence over --fallback,
    /// but not over a domain's own fallback target for invalid short URLs.
    #[arg(long, env = "RESOLVER_TELL_GONE", value_parser = BoolishValueParser::new(), help_heading = REDIRECTS)]
    pub tell_gone: bool,
    /// Addresses or networks of proxies, such as 127.0.0.1 or 10.0.0.0/8, that are trusted to name
    /// their clients in X-Forwarded-For or Forwarded. Name all proxies in front of this server: to
    /// all limits, the clients of an unnamed proxy are one client.
    #[arg(
        long,
        env = "RESOLVER_TRUSTED_PROXIES",
        value_parser = parse_network,
        value_name = "CIDR[,CIDR…]",
        value_delimiter = ',',
        help_heading = CLIENTS
    )]
    pub trusted_proxies: Vec<IpNet>,
    /// Headers in which trusted proxies tell of a client. WHAT is one of:
    /// - address: The only header that names the client, such as X-Real-IP, CF-Connecting-IP or
    ///   Forwarded. Without it, X-Forwarded-For and Forwarded are read, and neither is believed if
    ///   they name different clients.
    /// - country: The header with the client's country in two letters, such as CF-IPCountry.
    #[arg(long, env = "RESOLVER_PROXY_HEADERS", value_name = "WHAT=NAME[,…]", verbatim_doc_comment, help_heading = CLIENTS)]
    pub proxy_headers: Vec<String>,
    /// GeoIP databases in MaxMind DB format, such as GeoLite2-City.mmdb, for the country and city
    /// of visitors. The country in a header of --proxy-headers takes precedence. A replaced file is
    /// read again within a minute.
    #[arg(long, env = "RESOLVER_PLACES", value_name = "FILE[,FILE…]", value_delimiter = ',', help_heading = CLIENTS)]
    pub places: Vec<PathBuf>,
    /// Change limits, such as calls-per-key=600,cache-mib=256. Each resolver counts by itself.
    /// - calls-per-key: API calls per minute with one API key, unless the key has its own limit.
    ///   0, the default, for no limit.
    /// - calls-per-client: API calls per minute from one client, whatever its keys. 0, the default,
    ///   for no limit.
    /// - connections-per-client: Open connections of one client; at the limit, a new connection
    ///   replaces its idlest one. Trusted proxies have no limit. 0 for no limit. By default a
    ///   quarter of all connections, at most 1024.
    /// - unknown-codes-per-minute: Codes without a link that one client may request per minute
    ///   before it receives 429; 0 for no limit. 600 by default.
    /// - domains: Domains that API keys may add, in total and besides the default one. Existing
    ///   domains stay. 1000 by default.
    /// - reserved-per-key: Codes in the open reservations of one API key, filled or not. 1000000 by
    ///   default.
    /// - database-connections: Connections to Postgres, at least 18. 34 by default, which lets
    ///   lists have twice as many as one API key may use. The sum over all processes has to stay
    ///   below Postgres' max_connections. A --read-database and webhooks' receivers are not
    ///   counted.
    /// - cache-mib: Approximate memory for cached links, in MiB. By default 128, or an eighth of
    ///   the process' memory if that is less. Slugs take a quarter more.
    /// - warm-links: Links to cache before /readyz reports ready, at most 10 million and within 30
    ///   seconds: those that were cached when this process last stopped, or without such a list in
    ///   --visits-spool, the most visited ones. 0 by default. A link takes about half a KiB of
    ///   cache-mib.
    /// - visits-spool-mib: Size of --visits-spool, in MiB, at least 64. When it is full, further
    ///   visits are dropped and counted. 4096 by default, for about 55 million visits.
    /// - visit-counts-days: Days for which counts of visits are kept for statistics, at least as
    ///   many as --visits-keep. Older months are removed for good; totals of links and tags stay.
    ///   By default all are kept. The smallest value of all resolvers holds.
    /// - audit-days: Days for which entries of the audit log are kept. By default all are. The
    ///   smallest value of all resolvers holds.
    /// - threads: Threads of the public listener. By default one per core.
    #[arg(long, env = "RESOLVER_LIMIT", value_name = "NAME=COUNT[,…]", verbatim_doc_comment, help_heading = LIMITS)]
    pub limit: Vec<String>,
    /// Serve the public listener with TLS, over HTTP/2 and HTTP/1.1. Usually a proxy in front does
    /// this. The files are in PEM, and are read again when they change.
    /// - cert: The certificates, first the server's own.
    /// - key: Its private key.
    #[arg(long, env = "RESOLVER_TLS", value_name = "cert=FILE,key=FILE", verbatim_doc_comment, help_heading = TLS)]
    pub tls: Vec<String>,
    /// Files for TLS with issuers whose addresses begin with https://. They are in PEM, and are
    /// read again when they change.
    /// - ca: Authorities of the issuers' certificates. By default those that the system trusts.
    /// - cert: Certificate to show to issuers. With the DNS name `resolver` it is for the holder
    ///   ids `resolver` and `resolver.NAME`, for any NAME.
    /// - key: Private key of that certificate.
    #[arg(long, env = "RESOLVER_ISSUER_TLS", value_name = "ca=FILE,cert=FILE,key=FILE", verbatim_doc_comment, help_heading = TLS)]
    pub issuer_tls: Vec<String>,
    /// Where the rows of visits are kept, if not in the database of the links.
    #[command(flatten, next_help_heading = VISITS)]
    pub visits_store: VisitsStoreArgs,
    /// Folder for recorded visits that are not stored yet. They contain the whole addresses of
    /// visitors. Each process needs its own folder, which has to outlast restarts. Defaults to
    /// visits/HOLDER-ID beside the SQLite file, or in ./data.
    #[arg(long, env = "RESOLVER_VISITS_SPOOL", value_name = "DIR", help_heading = VISITS)]
    pub visits_spool: Option<PathBuf>,
    /// Keep single visits for this long; 0 for no time. Counts are kept for ever, unless --limit
    /// visit-counts-days says otherwise.
    #[arg(long, env = "RESOLVER_VISITS_KEEP", default_value = "90d", value_parser = parse_duration_or_zero, value_name = "TIME", help_heading = VISITS)]
    pub visits_keep: Duration,
    /// Choose what is recorded of visitors. LEVEL is strict (no addresses, referrers and user
    /// agents, and only the counts of visitors who ask not to be tracked), default, or full (whole
    /// addresses). Single parts may follow:
    /// - addresses: cut, the default (networks: /24 of an IPv4 and /48 of an IPv6 address), full or
    ///   none.
    /// - opt-out: Whether visitors who ask not to be tracked (DNT: 1 or Sec-GPC: 1) are only
    ///   counted; off by default.
    /// - referrers: Pages that visitors come from; on by default.
    /// - user-agents: User agents, and with them browsers, systems and devices; on by default. When
    ///   off, bots are not told from people.
    /// - cookies: Not recorded any more, and ignored.
    #[arg(long, env = "RESOLVER_VISITS_PRIVACY", value_name = "LEVEL|PART=on|off[,…]", verbatim_doc_comment, help_heading = VISITS)]
    pub visits_privacy: Vec<String>,
    /// Do not record some visits. They do not count for --remove-unvisited-after either, except
    /// with all. WHICH is one of:
    /// - all: Every visit. Redirects are only counted, and noted for --remove-unvisited-after.
    /// - orphans: Visits that no link redirects: of domains themselves, unknown codes, and links
    ///   that are over.
    /// - param=NAME: Visits whose query has this parameter, whatever its value.
    /// - from=CIDR: Visits from this network, such as 10.0.0.0/8.
    #[arg(long, env = "RESOLVER_VISITS_SKIP", value_name = "WHICH[,…]", verbatim_doc_comment, help_heading = VISITS)]
    pub visits_skip: Vec<String>,
    /// Let visitors create links without an API key, or with off do not. Off by default, except for
    /// the embedded form on a loopback address without --public-url and --trusted-proxies.
    #[arg(
        long,
        env = "RESOLVER_PUBLIC_CREATE",
        value_parser = BoolishValueParser::new(),
        num_args = 0..=1,
        default_missing_value = "on",
        value_name = "SWITCH",
        help_heading = PAGES
    )]
    pub public_create: Option<bool>,
    /// Give the pages a look of their own. KEY is one of:
    /// - name: Name of the service. Shortmint by default.
    /// - logo: An SVG, PNG, WebP or JPEG file of at most 8 KiB.
    /// - colour: Colour of buttons and links, such as #0a7f5a. White text on it has to be readable.
    /// - footer: Text at the end of each page.
    /// - icons: With on, the list of links shows the icons of the hosts that they lead to. This
    ///   server then requests them there. Off by default.
    #[arg(long, env = "RESOLVER_THEME", value_name = "KEY=VALUE[,…]", verbatim_doc_comment, help_heading = PAGES)]
    pub theme: Vec<String>,
    /// Tell browsers to use HTTPS only with the host of a page, for two years.
    #[arg(long, env = "RESOLVER_HSTS", value_parser = BoolishValueParser::new(), help_heading = PAGES)]
    pub hsts: bool,
    /// Allow more receivers of webhooks, or others:
    /// - network=CIDR: Networks that are not public, such as 10.0.0.0/8. Otherwise only public
    ///   addresses are called, so that a webhook cannot reach servers of the operator.
    /// - http: Receivers with http, whose events can be read on the way.
    /// - ca=FILE: Those with certificates of the authorities in this PEM file, in place of
    ///   Mozilla's list. For an authority of your own beside the public ones, the file needs both.
    #[arg(long, env = "RESOLVER_WEBHOOKS", value_name = "http|network=CIDR|ca=FILE[,…]", verbatim_doc_comment, help_heading = WEBHOOKS)]
    pub webhooks: Vec<String>,
    /// Write logs as text for people, or as JSON for collectors.
    #[arg(long, env = "RESOLVER_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT", help_heading = TELEMETRY)]
    pub log_format: LogFormat,
    /// Log this share of requests, from 0 to 1: client, method, path, status, duration. Queries and
    /// headers are not logged. Addresses and paths are personal data.
    #[arg(long, env = "RESOLVER_ACCESS_LOG", default_value = "0", value_name = "SHARE", help_heading = TELEMETRY)]
    pub access_log: Share,
    /// Send traces to this collector, by OTLP over gRPC, such as http://collector:4317. Requests
    /// with a sampled traceparent are then served by hyper. Off if absent.
    #[arg(long, env = "RESOLVER_OTLP", value_name = "URL", help_heading = TELEMETRY)]
    pub otlp: Option<String>,
    /// Begin a trace for this share of the requests without a traceparent, from 0 to 1. Redirects
    /// that the fast path answers begin none.
    #[arg(long, env = "RESOLVER_TRACE_SHARE", default_value = "0.01", value_name = "SHARE", help_heading = TELEMETRY)]
    pub trace_share: Share,
    /// Change what is fixed otherwise, for tests: see the source of `Tuning`.
    #[arg(long, env = "RESOLVER_TUNE", value_name = "NAME=VALUE[,…]", hide = true)]
    pub tune: Vec<String>,
}
