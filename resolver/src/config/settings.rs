//! The validated settings, with every default filled in.

use std::{collections::HashMap, path::PathBuf, str::FromStr as _, sync::Arc, time::Duration};

use ::webhooks::{Roots, Sender};
use api::CallLimits;
use app::LinkPolicy;
use cli::{Error, args::Database, wrong_value};
use codes::{Keyspace, parse_keyspaces};
use geoip::GeoIp;
use hyper::header::HeaderName;
use jiff::tz::TimeZone;
use limits::Resources;
use links::{OwnAddress, Protocol, Redirects, Schemes, check_process_target, find_zone};
use lookup::{
    LookupConfig,
    domain_cache::{Policy, PublicUrl},
    freshness::AWAY,
};
use numbers::{HolderId, Namespace};
use redirect::fallback_page::FallbackTargets;
use store::postgres::ConnectionBudget;
use supply::safety_rule::SafetyRules;
use url::Url;
use web::client_limits::ClientLimits;

use super::{Config, PageSettings, Role, VisitSettings, entries::Entries};

/// The most MiB that a size may have: a TiB.
pub(super) const MIB_MAX: u64 = 1 << 20;
/// The most links that are cached at the start: 5 GB of memory, and a list of 80 MB.
const WARM_LINKS_MAX: usize = 10_000_000;
/// The most days that anything is kept for: a century.
pub(super) const DAYS_MAX: i32 = 36_500;
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// The default size of the cache of links in MiB, and the divisor for the share of the memory that
/// it takes at most by default.
const CACHE_MIB: u64 = 128;
const CACHE_OF_MEMORY: u64 = 8;

/// The validated configuration, with every default filled in.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) flags: Config,
    /// The keyspaces, in the order of the flag.
    pub(crate) keyspaces: Vec<Keyspace>,
    pub(crate) default_keyspace: Namespace,
    /// The name of this process at the issuer.
    pub(crate) holder: HolderId,
    /// The beginning of short URLs of the default domain, without a trailing slash.
    pub(crate) public_url: String,
    pub(crate) link_policy: LinkPolicy,
    /// The time zone of times without an offset.
    pub(crate) time_zone: TimeZone,
    pub(crate) redirect_status: hyper::StatusCode,
    /// The public URL in parts.
    pub(crate) default_domain: PublicUrl,
    pub(crate) fallbacks: FallbackTargets,
    pub(crate) policy: Policy,
    pub(crate) call_limits: CallLimits,
    pub(crate) code_key_file: PathBuf,
    /// The path of the witness file, which survives a restore of the database.
    pub(crate) witness: Option<PathBuf>,
    pub(crate) client_limits: ClientLimits,
    pub(crate) geoip: GeoIp,
    pub(crate) lookup: LookupConfig,
    /// Whether the size of its cache was set.
    pub(crate) is_cache_set: bool,
    pub(crate) database_connections: u32,
    /// The number of threads of the public listener.
    pub(crate) threads: usize,
    /// Whether redirects of cached links are answered without hyper.
    pub(crate) fast_path: bool,
    pub(crate) pages: PageSettings,
    /// How long entries of the audit log are kept; `None` for ever.
    pub(crate) audit_for: Option<Duration>,
    pub(crate) visits: VisitSettings,
    pub(crate) webhooks: Arc<Sender>,
}

impl Settings {
    /// Sizes what depends on the memory of this process, unless it was set.
    pub(crate) fn fit(&mut self, resources: &Resources) {
        if !self.is_cache_set {
            self.lookup.cache_bytes = self.lookup.cache_bytes.min(resources.memory / CACHE_OF_MEMORY);
        }
    }
}

impl Config {
    /// Validates the configuration, and fills in the defaults.
    pub(crate) fn settings(&self) -> Result<Settings, Error> {
        let keyspaces = parse_keyspaces(&self.keyspaces)
            .map_err(|error| wrong_value("--keyspaces", &self.keyspaces, error))?;
        let (public_url, own_addresses) = self.check_public_url()?;
        let (holder, limits, tuning) = (self.check_holder()?, self.limits()?, self.tuning()?);
        let count = |name| Ok::<_, Error>(limits.number(name, 0..=u32::MAX)?.unwrap_or(0));
        self.check_role()?;
        self.check_read_database()?;
        self.check_connections()?;
        let visits = self.check_visits(&holder, &limits, &tuning)?;
        let cache_mib = limits.number("cache-mib", 1..=MIB_MAX)?;
        Ok(Settings {
            flags: self.clone(),
            default_keyspace: self.check_default_keyspace(&keyspaces)?,
            link_policy: LinkPolicy {
                own_addresses,
                schemes: Schemes::parse(&self.allowed_schemes).map_err(|error| {
                    wrong_value("--allowed-schemes", self.allowed_schemes.join(","), error)
                })?,
                given_paths: self.compat.iter().map(|facade| facade.path()).collect(),
                find_existing_for: tuning.find_existing_for,
                idempotency_for: tuning.idempotency_for,
                reserved_max: limits.number("reserved-per-key", 0..=u64::MAX)?.unwrap_or(1_000_000),
                addresses: visits.addresses,
            },
            time_zone: self.check_time_zone()?,
            redirect_status: self.check_redirect_status()?,
            default_domain: default_domain(&public_url),
            fallbacks: self.fallbacks(&keyspaces)?,
            pages: self.check_pages()?,
            policy: Policy {
                domains_max: limits.number("domains", 0..=u32::MAX)?.unwrap_or(1_000),
                checks_redirects: tuning.checks_redirects,
            },
            call_limits: CallLimits {
                per_key: count("calls-per-key")?,
                per_client: count("calls-per-client")?,
            },
            witness: self.witness_file(),
            code_key_file: self.database.code_key(self.code_key_file.as_deref()),
            client_limits: self.client_limits(&limits)?,
            geoip: GeoIp::open(&self.places)
                .map_err(|(path, error)| wrong_value("--places", path.display(), error))?,
            is_cache_set: cache_mib.is_some(),
            lookup: LookupConfig {
                cache_bytes: cache_mib.unwrap_or(CACHE_MIB) << 20,
                warm_links: limits.number("warm-links", 0..=WARM_LINKS_MAX)?.unwrap_or(0),
                replica_lag: tuning.replica_lag,
                serve_stale_for: self.check_serve_stale_for()?,
                rules: SafetyRules::default(),
            },
            database_connections: limits
                .number("database-connections", ConnectionBudget::MIN..=ConnectionBudget::MAX)?
                .unwrap_or(ConnectionBudget::DEFAULT),
            threads: limits
                .number("threads", 1..=1_024)?
                .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
            fast_path: tuning.fast_path,
            audit_for: limits.number("audit-days", 1..=DAYS_MAX)?.map(|days| DAY * days.unsigned_abs()),
            visits,
            webhooks: self.webhook_sender()?,
            holder,
            keyspaces,
            public_url,
        })
    }

    fn check_serve_stale_for(&self) -> Result<Duration, Error> {
        let given = self.serve_stale_for;
        if given >= AWAY {
            return Ok(given);
        }
        let least = format!("links are served for {AWAY:?} after a read in any case; use at least that");
        Err(wrong_value("--serve-stale-for", format!("{given:?}"), least))
    }

    fn check_redirect_status(&self) -> Result<hyper::StatusCode, Error> {
        let status = hyper::StatusCode::from_u16(self.redirect_status).ok();
        let status = status.filter(|status| matches!(status.as_u16(), 301 | 302 | 307 | 308));
        let reason = "use 301, 302, 307 or 308";
        status.ok_or_else(|| wrong_value("--redirect-status", self.redirect_status, reason))
    }

    fn limits(&self) -> Result<Entries<'_>, Error> {
        let names = [
            "calls-per-key",
            "calls-per-client",
            "connections-per-client",
            "unknown-codes-per-minute",
            "domains",
            "reserved-per-key",
            "database-connections",
            "cache-mib",
            "warm-links",
            "visits-spool-mib",
            "visit-counts-days",
            "audit-days",
            "threads",
        ];
        Entries::of("--limit", &names, &self.limit)
    }

    fn client_limits(&self, limits: &Entries<'_>) -> Result<ClientLimits, Error> {
        let headers = Entries::of("--proxy-headers", &["address", "country"], &self.proxy_headers)?;
        Ok(ClientLimits {
            connections: limits.number("connections-per-client", 0..=u32::MAX)?,
            unknown_codes: limits.number("unknown-codes-per-minute", 0..=u32::MAX)?.unwrap_or(600),
            trusted_proxies: self.trusted_proxies.clone(),
            client_header: headers.parse("address", HeaderName::from_str)?,
            country_header: headers.parse("country", HeaderName::from_str)?,
        })
    }

    fn fallbacks(&self, keyspaces: &[Keyspace]) -> Result<FallbackTargets, Error> {
        let names = ["base-url", "regular-404", "invalid-short-url", "keyspace:"];
        let given = Entries::of("--fallback", &names, &self.fallback)?;
        let target = |name| given.parse(name, |url| check_process_target(url).map(|()| url.to_owned()));
        let mut of_keyspaces = HashMap::new();
        for (name, url) in given.all("keyspace:")? {
            let wrong = |reason| given.wrong(&format!("keyspace:{name}"), url, reason);
            if !keyspaces.iter().any(|keyspace| keyspace.name.as_str() == name) {
                return Err(wrong("no such keyspace: use the name of one of --keyspaces".to_owned()));
            }
            check_process_target(url).map_err(|error| wrong(error.to_string()))?;
            of_keyspaces.insert(name.to_owned(), url.to_owned());
        }
        let redirects = Redirects {
            base_url: target("base-url")?,
            regular_404: target("regular-404")?,
            invalid_short_url: target("invalid-short-url")?,
        };
        Ok(FallbackTargets { redirects, keyspaces: of_keyspaces })
    }

    fn webhook_sender(&self) -> Result<Arc<Sender>, Error> {
        let given = Entries::of("--webhooks", &["http", "network", "ca"], &self.webhooks)?;
        let (allowed_networks, allow_http) = (given.networks("network")?, given.has("http")?);
        let roots = given.parse("ca", |path| {
            let pem = std::fs::read(path).map_err(|error| error.to_string())?;
            Roots::from_pem(&pem).map_err(|error| error.to_string())
        })?;
        let policy = ::webhooks::Policy { allowed_networks, allow_http };
        Ok(Arc::new(Sender::new(policy, roots.unwrap_or_else(Roots::mozilla))))
    }

    fn witness_file(&self) -> Option<PathBuf> {
        self.witness.clone().or_else(|| match &self.database.database {
            Database::Sqlite(path) => Some(path.with_added_extension("witness")),
            Database::Postgres(_) => None,
        })
    }

    fn check_read_database(&self) -> Result<(), Error> {
        let reason = "use postgres://USER@HOST/NAME, a replica of a Postgres in --database";
        match (&self.read_database, &self.database.database) {
            (None, _) | (Some(Database::Postgres(_)), Database::Postgres(_)) => Ok(()),
            (Some(replica), _) => Err(wrong_value("--read-database", replica, reason)),
        }
    }

    fn check_default_keyspace(&self, keyspaces: &[Keyspace]) -> Result<Namespace, Error> {
        let mut minted = keyspaces.iter().filter(|keyspace| !keyspace.hand_picked);
        let Some(name) = &self.default_keyspace else {
            let reason = "all are hand-picked: add one that codes are minted from";
            let first = minted.next().ok_or_else(|| wrong_value("--keyspaces", &self.keyspaces, reason))?;
            return Ok(first.name.clone());
        };
        let names: Vec<_> = minted.clone().map(|keyspace| keyspace.name.as_str()).collect();
        let found = minted.find(|keyspace| keyspace.name.as_str() == name);
        let reason = || format!("use one of --keyspaces that is not hand-picked: {}", names.join(", "));
        Ok(found.ok_or_else(|| wrong_value("--default-keyspace", name, reason()))?.name.clone())
    }

    fn check_time_zone(&self) -> Result<TimeZone, Error> {
        let reason = "this system knows no such zone: use a name such as UTC or Europe/Berlin";
        find_zone(&self.time_zone).ok_or_else(|| wrong_value("--time-zone", &self.time_zone, reason))
    }

    fn check_holder(&self) -> Result<HolderId, Error> {
        let id = match &self.holder_id {
            Some(id) => id.as_str(),
            None if self.role == Role::Redirect => "redirect",
            None if self.issuer.is_empty() => "embedded",
            None => {
                let reason = "required with --issuer: a name that stays the same after a restart and that no other \
                              resolver has";
                return Err(wrong_value("--holder-id", "(absent)", reason));
            }
        };
        HolderId::new(id).map_err(|error| wrong_value("--holder-id", id, error))
    }

    fn check_public_url(&self) -> Result<(String, Vec<OwnAddress>), Error> {
        let text = self.public_url.clone().unwrap_or_else(|| format!("http://{}", self.listen));
        let reason = "use an address such as https://sho.rt or https://example.com/s, without a query or a password, \
                      and with a path of letters, digits, -, ., _ and ~";
        let wrong = || wrong_value("--public-url", &text, reason);
        let url = Url::parse(&text).map_err(|_| wrong())?;
        let (public_url, path) = (text.trim_end_matches('/'), url.path().strip_suffix('/'));
        let path = path.unwrap_or(url.path());
        let plain = matches!(url.scheme(), "http" | "https")
            && is_base_path(path)
            // Written as it is requested, and not such as `/a/../b`.
            && default_domain(public_url).path == path
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        let host = url.host().filter(|_| plain).ok_or_else(wrong)?.to_owned();
        // With default ports a short link is served under both schemes.
        let ports = url.port().map_or(vec![80, 443], |port| vec![port]);
        let own = |port| OwnAddress { host: host.clone(), port, path: path.to_owned() };
        Ok((public_url.to_owned(), ports.into_iter().map(own).collect()))
    }
}

/// Returns whether a path, without a slash at its end, needs no escapes anywhere.
fn is_base_path(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    path.split('/').skip(1).all(|segment| !segment.is_empty() && segment.bytes().all(is_plain))
}

fn default_domain(public_url: &str) -> PublicUrl {
    let (scheme, rest) = public_url.split_once("://").unwrap_or(("http", public_url));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let protocol = Protocol::parse(&scheme.to_ascii_lowercase()).unwrap_or(Protocol::Http);
    PublicUrl { protocol, authority: authority.to_ascii_lowercase(), path: path.to_owned() }
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;

    use clap::Parser as _;

    use super::*;
    use crate::config::Cli;

    const PG: &str = "postgres://me@127.0.0.1/links";

    pub(in crate::config) fn parse(args: &[&str]) -> Result<Settings, String> {
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
    fn a_public_url_may_have_a_path() {
        for (text, path) in
            [("https://A.test/", ""), ("https://A.test/S", "/S"), ("https://A.test/a/b-1/", "/a/b-1")]
        {
            let settings = parse(&["--public-url", text]).unwrap();
            let PublicUrl { authority, path: found, .. } = &settings.default_domain;
            assert_eq!((&**authority, &**found), ("a.test", path), "{text}");
            assert!(settings.link_policy.own_addresses.iter().all(|own| own.path == path), "{text}");
            assert_eq!(settings.public_url, format!("https://A.test{path}"));
        }
    }

    #[test]
    fn the_cache_fits_into_the_memory_unless_it_was_set() {
        for (args, memory_mib, cache_mib) in [
            (&[][..], 64, 8),
            (&[], 1_024, 128),
            (&[], 1 << 20, 128),
            (&["--limit", "cache-mib=100"], 64, 100),
        ] {
            let mut settings = parse(args).unwrap();
            settings.fit(&Resources { descriptors: 1_024, memory: memory_mib << 20 });
            assert_eq!(settings.lookup.cache_bytes, cache_mib << 20, "{args:?} in {memory_mib} MiB");
        }
    }

    #[test]
    fn the_audit_log_is_kept_for_ever_or_for_some_days() {
        assert_eq!(parse(&[]).unwrap().audit_for, None);
        assert_eq!(parse(&["--limit", "audit-days=7"]).unwrap().audit_for, Some(7 * DAY));
    }

    #[test]
    fn a_file_of_authorities_is_read_at_the_start() {
        parse(&["--webhooks", "ca=webhooks/testdata/authority.pem"]).unwrap();
    }

    /// Checks that the error of each row's flags contains all its parts.
    fn name_what_is_wrong(rows: &[(&[&str], [&str; 3])]) {
        for (args, parts) in rows {
            let error = parse(args).unwrap_err();
            let lacking: Vec<_> = parts.iter().filter(|part| !error.contains(**part)).collect();
            assert!(lacking.is_empty(), "{args:?}: {error:?} lacks {lacking:?}");
        }
    }

    #[test]
    fn a_wrong_value_is_named_with_its_flag_and_the_reason() {
        name_what_is_wrong(&[
            (&["--database", "mysql://x"], ["--database", "mysql://x", "sqlite:PATH"]),
            (&["--keyspaces", "web=9:A-Z"], ["--keyspaces", "web=9:A-Z", "1 to 8"]),
            (&["--default-keyspace", "web"], ["--default-keyspace", "web", "default"]),
            (&["--redirect-status", "200"], ["--redirect-status", "200", "308"]),
            (&["--public-url", "https://sho.rt?x"], ["--public-url", "sho.rt?x", "without a query"]),
            (&["--public-url", "https://sho.rt/a//b"], ["--public-url", "sho.rt/a//b", "a path of"]),
            (&["--public-url", "https://sho.rt//"], ["--public-url", "sho.rt//", "a path of"]),
            (&["--public-url", "https://sho.rt/a/../b"], ["--public-url", "sho.rt/a/../b", "a path of"]),
            (&["--public-url", "https://sho.rt/%61"], ["--public-url", "sho.rt/%61", "a path of"]),
            (&["--issuer", "issuer:7070", "--holder-id", "a"], ["--issuer", "issuer:7070", "https://"]),
            (
                &["--issuer", "http://issuer:7070", "--holder-id", "a"],
                ["--issuer", "http://issuer:7070", "--insecure"],
            ),
            (&["--database", "postgres://me@db/links"], ["--database", "me@db/links", "--insecure"]),
            (&["--database", "postgres://h/d?sslmode=never"], ["--database", "never", "verify-full"]),
            (&["--issuer", "https://issuer:7070"], ["--holder-id", "(absent)", "--issuer"]),
            (&["--role", "redirect"], ["--database", "sqlite:", "postgres://"]),
            (&["--serve-stale-for", "1s"], ["--serve-stale-for", "1s", "2s"]),
            (
                &["--role", "redirect", "--database", PG, "--issuer", "http://[::1]"],
                ["--issuer", "[::1]", "leave it out"],
            ),
            (&["--role", "redirect", "--database", PG, "--holder-id", "a"], ["--holder-id", "a", "visitors"]),
            (&["--holder-id", "a/b"], ["--holder-id", "a/b", "1 to 128"]),
            (&["--read-database", "postgres://a@b/c"], ["--read-database", "postgres://a@b/c", "--database"]),
            (&["--trusted-proxies", "10.0.0.0/99"], ["--trusted-proxies", "10.0.0.0/99", "CIDR"]),
            (&["--time-zone", "Nowhere/Land"], ["--time-zone", "Nowhere/Land", "Europe/Berlin"]),
            (
                &["--allowed-schemes", "https,data"],
                ["--allowed-schemes", "https,data", "none of javascript, data"],
            ),
            (&["--compat", "polr"], ["--compat", "polr", "yourls, kutt, bitly"]),
            (&["--visits-keep", "soon"], ["--visits-keep", "soon", "30d"]),
            (&["--places", "/nowhere.mmdb"], ["--places", "/nowhere.mmdb", "cannot be read"]),
            (&["--drain-delay", "soon"], ["--drain-delay", "soon", "5s"]),
        ]);
    }

    #[test]
    fn a_wrong_setting_of_a_flag_is_named_with_the_reason() {
        let long = &format!("param={}", "x".repeat(256));
        name_what_is_wrong(&[
            (&["--issuer-tls", "cert=x"], ["--issuer-tls", "cert=x", "both"]),
            (&["--tls", "key=x"], ["--tls", "key=x", "both"]),
            (&["--tls", "ca=x"], ["--tls", "ca=x", "no such setting"]),
            (&["--limit", "threads=0"], ["--limit", "threads=0", "1024"]),
            (&["--limit", "calls=1"], ["--limit", "calls=1", "calls-per-key"]),
            (&["--limit", "domains"], ["--limit", "domains", "domains=VALUE"]),
            (&["--limit", "visits-spool-mib=63"], ["--limit", "visits-spool-mib=63", "64"]),
            (&["--limit", "audit-days=0"], ["--limit", "audit-days=0", "1 to 36500"]),
            (&["--limit", "visit-counts-days=89"], ["--limit visit-counts-days=89", "--visits-keep", "90"]),
            (&["--limit", "database-connections=17"], ["--limit", "=17", "18 to 1000"]),
            (&["--proxy-headers", "country=a b"], ["--proxy-headers", "country=a b", "invalid HTTP header"]),
            (&["--fallback", "base-url=ftp://x"], ["--fallback", "base-url=ftp://x", "http"]),
            (&["--fallback", "keyspace:web=https://x/"], ["--fallback", "keyspace:web", "--keyspaces"]),
            (&["--webhooks", "network=x"], ["--webhooks", "network=x", "10.0.0.0/8"]),
            (&["--webhooks", "http=on"], ["--webhooks", "http=on", "without a value"]),
            (&["--webhooks", "ca=/nowhere.pem"], ["--webhooks ca=", "/nowhere.pem", "No such file"]),
            (&["--webhooks", "ca=Cargo.toml"], ["--webhooks ca=", "Cargo.toml", "certificate"]),
            (&["--visits-skip", "some"], ["--visits-skip", "some", "orphans, param"]),
            (&["--visits-skip", "all=on"], ["--visits-skip", "all=on", "without a value"]),
            (&["--visits-skip", "param="], ["--visits-skip", "param=", "query parameter"]),
            (&["--visits-skip", long], ["--visits-skip", long, "1 to 255"]),
            (&["--visits-skip", "from=10.0.0.0/99"], ["--visits-skip", "from=10.0.0.0/99", "10.0.0.0/8"]),
            (&["--visits-privacy", "half"], ["--visits-privacy", "half", "strict, default, full"]),
            (&["--visits-privacy", "strict,full"], ["--visits-privacy", "strict,full", "one level"]),
            (&["--visits-privacy", "addresses=half"], ["privacy", "addresses=half", "cut, full or none"]),
            (&["--visits-privacy", "cookies=maybe"], ["--visits-privacy", "cookies=maybe", "on or off"]),
            (&["--tune", "visits-flush=0"], ["--tune", "visits-flush=0", "1ms to 10s, or turn"]),
            (&["--tune", "visits-flush=999us"], ["--tune", "visits-flush=999us", "1ms to 10s, or turn"]),
            (&["--tune", "visits-flush=11s"], ["--tune", "visits-flush=11s", "1ms to 10s, or turn"]),
            (&["--tune", "visits-flush=each"], ["--tune", "visits-flush=each", "1ms to 10s, or turn"]),
            (&["--tune", "fast-path=no"], ["--tune", "fast-path=no", "on or off"]),
            (&["--theme", "colour=#7fffd4"], ["--theme", "colour=#7fffd4", "4.5 to 1"]),
            (&["--theme", "logo=/nowhere.png"], ["--theme", "logo=/nowhere.png", "No such file"]),
            (&["--theme", "name="], ["--theme name=", "1 to 60", "control characters"]),
            (&["--theme", "icons=maybe"], ["--theme", "icons=maybe", "on or off"]),
        ]);
    }
}
