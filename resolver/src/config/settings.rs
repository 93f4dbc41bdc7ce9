//! The validated settings, with every default filled in.

use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

use ::webhooks::Sender;
use api::CallLimits;
use app::{
    domain_cache::{Policy, PublicUrl},
    freshness::AWAY,
    lookup::LookupSizes,
};
use cli::{Error, args::Database};
use codes::{Keyspace, parse_keyspaces};
use daemon::Share;
use geoip::GeoIp;
use jiff::tz::TimeZone;
use links::{Protocol, Redirects, Schemes, check_process_target, find_zone};
use numbers::{HolderId, Namespace};
use redirect::fallback_page::FallbackTargets;
use url::{Host, Url};
use web::client_limits::ClientLimits;

use super::{CheckTargets, Config, FastPath, PageSettings, Role, VisitSettings};

/// The validated configuration, with every default filled in.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The requests that this process answers.
    pub role: Role,
    /// The keyspaces, in the order of the flag.
    pub keyspaces: Vec<Keyspace>,
    /// The keyspace for new links.
    pub default_keyspace: Namespace,
    /// The name of this process at the issuer.
    pub holder: HolderId,
    /// The beginning of short URLs of the default domain, without a trailing slash.
    pub public_url: String,
    /// The host of the public URL, with its ports. Long URLs must not lead to it.
    pub own_hosts: Vec<(Host, u16)>,
    /// The schemes that long URLs may have.
    pub schemes: Schemes,
    /// Whether links can be created by a GET request with the API key in its URL.
    pub single_step_create: bool,
    /// The time zone of times without an offset.
    pub time_zone: TimeZone,
    /// The default status of redirects.
    pub redirect_status: hyper::StatusCode,
    /// The time for which repeated creates with `findIfExists` return the same link.
    pub find_existing_for: Duration,
    /// The public URL in parts.
    pub default_domain: PublicUrl,
    /// The fallback targets for visitors whose requests match no link.
    pub fallbacks: FallbackTargets,
    /// Whether a link that is no longer live is answered with 410 instead of 404.
    pub tells_gone: bool,
    /// The lifetime of idempotency keys.
    pub idempotency_for: Duration,
    /// The time without a visit after which links are deleted; `None` for never.
    pub remove_unvisited_after: Option<Duration>,
    /// The maximum number of codes in the open reservations of one API key.
    pub reserved_max: u64,
    /// The policy for domains and target rules.
    pub policy: Policy,
    /// The call limits of the API.
    pub call_limits: CallLimits,
    /// The path of the code key.
    pub code_key_file: PathBuf,
    /// The path of the witness file, which survives a restore of the database.
    pub witness: Option<PathBuf>,
    /// The limits of one client.
    pub client_limits: ClientLimits,
    /// The GeoIP databases.
    pub geoip: GeoIp,
    /// The size of the cache and the lag of replicas.
    pub lookup: LookupSizes,
    /// The number of threads of the public listener.
    pub threads: usize,
    /// Whether redirects of cached links are answered without hyper.
    pub fast_path: bool,
    /// The share of requests that is logged.
    pub access_log: Share,
    /// The pages.
    pub pages: PageSettings,
    /// How visits are recorded and kept.
    pub visits: VisitSettings,
    /// The sender of events to webhooks.
    pub webhooks: Arc<Sender>,
}

impl Config {
    /// Validates the configuration, and fills in the defaults.
    ///
    /// # Errors
    /// Returns [`Error::Config`] with the flag, its value and the expected form.
    pub fn settings(&self) -> Result<Settings, Error> {
        let keyspaces = parse_keyspaces(&self.keyspaces)
            .map_err(|error| wrong("--keyspaces", &self.keyspaces, error.to_string()))?;
        let default_keyspace = self.check_default_keyspace(&keyspaces)?;
        let (public_url, own_hosts) = self.check_public_url()?;
        self.check_role()?;
        self.check_read_database()?;
        self.check_issuers()?;
        Ok(Settings {
            role: self.role,
            default_keyspace,
            holder: self.check_holder()?,
            own_hosts,
            schemes: Schemes::parse(&self.allowed_schemes).map_err(|error| {
                wrong("--allowed-schemes", self.allowed_schemes.join(","), error.to_string())
            })?,
            time_zone: self.check_time_zone()?,
            single_step_create: self.single_step_create,
            redirect_status: self.check_redirect_status()?,
            find_existing_for: self.find_existing_for,
            default_domain: default_domain(&public_url),
            fallbacks: self.fallbacks(&keyspaces)?,
            tells_gone: self.tell_gone,
            pages: self.check_pages()?,
            idempotency_for: self.idempotency_for,
            remove_unvisited_after: self.remove_unvisited_after,
            reserved_max: self.reserved_per_key,
            policy: Policy {
                domains_max: self.domains_max,
                checks_redirects: self.check_targets == CheckTargets::Always,
            },
            call_limits: CallLimits { per_key: self.calls_per_key, per_client: self.calls_per_client },
            witness: self.witness_file(),
            code_key_file: self.code_key_file.clone().unwrap_or_else(|| self.data_folder().join("code.key")),
            client_limits: ClientLimits {
                connections: self.connections_per_client,
                unknown_codes: self.unknown_codes_per_minute,
                trusted_proxies: self.trusted_proxies.clone(),
                client_header: self.client_address_header.clone(),
                country_header: self.country_header.clone(),
            },
            geoip: GeoIp::open(&self.places)
                .map_err(|(path, error)| wrong("--places", path.display(), error.to_string()))?,
            lookup: LookupSizes {
                cache_bytes: u64::from(self.cache_mib) << 20,
                replica_lag: self.replica_lag,
                serve_stale_for: self.check_serve_stale_for()?,
            },
            threads: self.check_threads()?,
            fast_path: self.fast_path == FastPath::On,
            access_log: self.access_log,
            visits: self.visits.settings(
                &self.database.database,
                &self.data_folder(),
                &self.check_holder()?,
            )?,
            webhooks: self.webhooks.sender()?,
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
        Err(wrong("--serve-stale-for", format!("{given:?}"), least))
    }

    fn check_redirect_status(&self) -> Result<hyper::StatusCode, Error> {
        match self.redirect_status {
            301 => Ok(hyper::StatusCode::MOVED_PERMANENTLY),
            302 => Ok(hyper::StatusCode::FOUND),
            307 => Ok(hyper::StatusCode::TEMPORARY_REDIRECT),
            308 => Ok(hyper::StatusCode::PERMANENT_REDIRECT),
            other => Err(wrong("--redirect-status", other, "expected 301, 302, 307 or 308")),
        }
    }

    fn check_threads(&self) -> Result<usize, Error> {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.threads.unwrap_or_else(cores);
        if (1..=1_024).contains(&threads) {
            return Ok(threads);
        }
        Err(wrong("--threads", threads, "expected 1 to 1024"))
    }

    fn fallbacks(&self, keyspaces: &[Keyspace]) -> Result<FallbackTargets, Error> {
        let flag = "--keyspace-fallbacks";
        let mut keyspace_fallbacks = HashMap::new();
        for text in &self.keyspace_fallbacks {
            let expected =
                "expected NAME=URL with the name of one of --keyspaces, for example web=https://example.com/";
            let (name, url) = text.split_once('=').ok_or_else(|| wrong(flag, text, expected))?;
            if !keyspaces.iter().any(|keyspace| keyspace.name.as_str() == name) {
                return Err(wrong(flag, text, expected));
            }
            check_redirect(flag, url)?;
            keyspace_fallbacks.insert(name.to_owned(), url.to_owned());
        }
        let check = |flag, url: &Option<String>| {
            url.as_ref().map(|url| check_redirect(flag, url).map(|()| url.clone())).transpose()
        };
        let redirects = Redirects {
            base_url: check("--base-url-redirect", &self.base_url_redirect)?,
            regular_404: check("--regular-404-redirect", &self.regular_404_redirect)?,
            invalid_short_url: check("--invalid-short-url-redirect", &self.invalid_short_url_redirect)?,
        };
        Ok(FallbackTargets { redirects, keyspaces: keyspace_fallbacks })
    }

    fn witness_file(&self) -> Option<PathBuf> {
        self.witness.clone().or_else(|| match &self.database.database {
            Database::Sqlite(path) => {
                let mut beside = path.clone().into_os_string();
                beside.push(".witness");
                Some(beside.into())
            }
            Database::Postgres(_) => None,
        })
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
        let mut minted = keyspaces.iter().filter(|keyspace| !keyspace.hand_picked);
        let Some(name) = &self.default_keyspace else {
            let expected = "expected at least one keyspace that is not hand-picked";
            let first = minted.next().ok_or_else(|| wrong("--keyspaces", &self.keyspaces, expected))?;
            return Ok(first.name.clone());
        };
        let names: Vec<_> = minted.clone().map(|keyspace| keyspace.name.as_str()).collect();
        let found = minted.find(|keyspace| keyspace.name.as_str() == name);
        let reason = || format!("expected one of --keyspaces that is not hand-picked: {}", names.join(", "));
        Ok(found.ok_or_else(|| wrong("--default-keyspace", name, reason()))?.name.clone())
    }

    fn check_time_zone(&self) -> Result<TimeZone, Error> {
        let expected =
            "expected a name of the IANA database that this system has, such as UTC or Europe/Berlin";
        find_zone(&self.time_zone).ok_or_else(|| wrong("--time-zone", &self.time_zone, expected))
    }

    fn check_holder(&self) -> Result<HolderId, Error> {
        match &self.holder_id {
            Some(id) => {
                HolderId::new(id.as_str()).map_err(|error| wrong("--holder-id", id, error.to_string()))
            }
            None if self.role == Role::Redirect => {
                Ok(HolderId::new("redirect").expect("`redirect` is a valid holder id"))
            }
            None if self.issuer.is_empty() => {
                Ok(HolderId::new("embedded").expect("`embedded` is a valid holder id"))
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
        // With default ports a short link is served under both schemes.
        let ports = match url.port() {
            Some(port) => vec![port],
            None => vec![80, 443],
        };
        let own = ports.into_iter().map(|port| (host.clone(), port)).collect();
        Ok((text.trim_end_matches('/').to_owned(), own))
    }
}

/// Splits a validated public URL into its parts.
fn default_domain(public_url: &str) -> PublicUrl {
    let (scheme, authority) = public_url.split_once("://").unwrap_or(("http", public_url));
    let protocol = Protocol::parse(&scheme.to_ascii_lowercase()).unwrap_or(Protocol::Http);
    PublicUrl { protocol, authority: authority.to_ascii_lowercase() }
}

fn check_redirect(flag: &'static str, url: &str) -> Result<(), Error> {
    check_process_target(url).map_err(|error| wrong(flag, url, error.to_string()))
}

pub(super) fn wrong(flag: &'static str, value: impl ToString, reason: impl Into<String>) -> Error {
    Error::Config { flag, value: value.to_string(), reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser as _;

    use super::*;
    use crate::config::Cli;

    const PG: &str = "postgres://me@127.0.0.1/links";

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
            (&["--issuer", "issuer:7070", "--holder-id", "a"], ["--issuer", "issuer:7070", "https://"]),
            (&["--issuer", "http://issuer:7070"], ["--issuer", "http://issuer:7070", "--insecure"]),
            (&["--database", "postgres://me@db/links"], ["--database", "me@db/links", "--insecure"]),
            (&["--database", "postgres://h/d?sslmode=never"], ["--database", "never", "verify-full"]),
            (&["--issuer-cert", "x"], ["--issuer-cert", "required", "--issuer-key"]),
            (&["--issuer", "https://issuer:7070"], ["--holder-id", "(absent)", "--issuer"]),
            (&["--role", "redirect"], ["--database", "sqlite:", "postgres://"]),
            (&["--serve-stale-for", "1s"], ["--serve-stale-for", "1s", "2s"]),
            (
                &["--role", "redirect", "--database", PG, "--issuer", "http://[::1]"],
                ["--issuer", "[::1]", "none"],
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
            (&["--threads", "0"], ["--threads", "0", "1024"]),
            (&["--places", "/nowhere.mmdb"], ["--places", "/nowhere.mmdb", "expected a file"]),
            (&["--theme-colour", "#7fffd4"], ["--theme-colour", "#7fffd4", "4.5 to 1"]),
            (&["--theme-logo", "/nowhere.png"], ["--theme-logo", "/nowhere.png", "No such file"]),
            (&["--theme-name", ""], ["--theme-name", "1 to 60", "control characters"]),
            (&["--drain-delay", "soon"], ["--drain-delay", "soon", "5s"]),
        ] {
            let error = parse(args).unwrap_err();
            for part in parts {
                assert!(error.contains(part), "{error:?} lacks {part:?}");
            }
        }
    }
}
