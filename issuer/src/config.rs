//! The issuer's configuration: read from flags and the environment, and checked first of all.

mod tls;

use std::{net::SocketAddr, time::Duration};

use clap::{Args, Parser, Subcommand};
use daemon::{LogFormat, parse_duration};
use numbers::Span;

pub use self::tls::{StatusTlsArgs, TlsArgs};
use crate::{Error, core::Limits};

/// Allocates blocks of numbers to resolvers. Several issuers run; one of them, elected through
/// etcd, leads.
///
/// Start three with the same --etcd and --cluster and different addresses, and give resolvers the
/// addresses of all three.
///
/// Before etcd is restored from a backup, stop all issuers, and restore with `etcdutl snapshot
/// restore --bump-revision 1000000000 --mark-compacted`: the revisions of etcd distinguish a leader
/// from its predecessors, so they must never repeat.
#[derive(Debug, Parser)]
#[command(name = "issuer", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// Subcommand to run; without one the issuer serves.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Flags of the server.
    #[command(flatten)]
    pub serve: Config,
}

impl Cli {
    /// Returns the form of the logs. Commands write text, for people.
    pub fn log_format(&self) -> LogFormat {
        if self.command.is_some() { LogFormat::Text } else { self.serve.log_format }
    }
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the leader, the namespaces with the account of their numbers, and the holders.
    Status(StatusArgs),
    /// Inspect the configuration without starting the server.
    #[command(subcommand)]
    Config(ConfigCommand),
}

/// Subcommands of `issuer config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Validate flags, environment and files, and print the resulting settings with their sources.
    Check(Box<ConfigCheckArgs>),
}

/// Arguments of `issuer config check`.
#[derive(Clone, Debug, Args)]
pub struct ConfigCheckArgs {
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// Flags of the server.
    #[command(flatten)]
    pub config: Config,
}

/// Flags of `issuer status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// URL of any issuer, or of several, separated by commas: all are asked at once. A follower
    /// names the leader, which is asked next. If none leads, what each said is printed, and the
    /// exit code is 69.
    #[arg(long, env = "ISSUER_ISSUER", value_name = "URL[,URL…]", value_delimiter = ',', required = true)]
    pub issuer: Vec<String>,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// Flags for TLS.
    #[command(flatten)]
    pub tls: StatusTlsArgs,
}

/// Flags of the server.
#[derive(Clone, Debug, Args)]
pub struct Config {
    /// Serve gRPC for resolvers on this address.
    #[arg(long, env = "ISSUER_LISTEN", default_value = "127.0.0.1:7070", value_name = "ADDR:PORT")]
    pub listen: SocketAddr,
    /// Serve /metrics, /livez and /readyz on this address.
    #[arg(long, env = "ISSUER_ADMIN_LISTEN", default_value = "127.0.0.1:7071", value_name = "ADDR:PORT")]
    pub admin_listen: SocketAddr,
    /// Write logs as text for people, or as JSON for collectors.
    #[arg(long, env = "ISSUER_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT")]
    pub log_format: LogFormat,
    /// Client URLs of the etcd members, separated by commas: all with https://, or all with
    /// http://.
    #[arg(
        long,
        env = "ISSUER_ETCD",
        default_value = "http://127.0.0.1:2379",
        value_name = "URL[,URL…]",
        value_delimiter = ','
    )]
    pub etcd: Vec<String>,
    /// Name of the issuer cluster, which selects its keys in etcd. Issuers with the same name elect
    /// one leader.
    #[arg(long, env = "ISSUER_CLUSTER", default_value = "default", value_name = "NAME")]
    pub cluster: String,
    /// URL of this issuer that followers give to resolvers while it leads. Defaults to --listen
    /// after http://, or https:// with --tls-cert.
    #[arg(long, env = "ISSUER_ADVERTISE", value_name = "URL")]
    pub advertise: Option<String>,
    /// Elect another leader after this much silence of the current one. Whole seconds; etcd raises
    /// less than 2s.
    #[arg(long, env = "ISSUER_LEASE_TTL", default_value = "5s", value_parser = parse_duration)]
    pub lease_ttl: Duration,
    /// Count a resolver as gone after this much silence. Its blocks are then leaked.
    #[arg(long, env = "ISSUER_HOLDER_TTL", default_value = "30s", value_parser = parse_duration)]
    pub holder_ttl: Duration,
    /// Let a leaked block rest for this long before another resolver gets it.
    #[arg(long, env = "ISSUER_RECLAIM_AFTER", default_value = "10m", value_parser = parse_duration)]
    pub reclaim_after: Duration,
    /// Minimum length of a block, in numbers. Blocks get shorter near the end of a keyspace.
    #[arg(long, env = "ISSUER_BLOCK_MIN", default_value_t = Limits::default().block_min, value_name = "NUMBERS")]
    pub block_min: u64,
    /// Maximum length of a block, in numbers.
    #[arg(long, env = "ISSUER_BLOCK_MAX", default_value_t = Limits::default().block_max, value_name = "NUMBERS")]
    pub block_max: u64,
    /// Send traces to this collector, by OTLP over gRPC, such as http://collector:4317: of calls
    /// whose callers are traced. Off if absent.
    #[arg(long, env = "ISSUER_OTLP", value_name = "URL")]
    pub otlp: Option<String>,
    /// Give up if etcd does not answer for this long at startup.
    #[arg(long, env = "ISSUER_START_DEADLINE", default_value = "30s", value_parser = parse_duration)]
    pub start_deadline: Duration,
    /// Flags for TLS.
    #[command(flatten)]
    pub tls: TlsArgs,
}

impl Config {
    /// Checks the constraints that no parser of a single flag can check.
    pub fn check(&self) -> Result<(), Error> {
        let all = |scheme| self.etcd.iter().all(|url| url.starts_with(scheme));
        if !all("http://") && !all("https://") {
            let reason = "expected addresses that all start with http://, or all with https://";
            return Err(Error::config("--etcd", self.etcd.join(","), reason));
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if self.cluster.is_empty() || self.cluster.len() > 64 || !self.cluster.bytes().all(plain) {
            let expected = "expected 1 to 64 characters of A-Z, a-z, 0-9, '-' and '_'";
            return Err(Error::config("--cluster", &self.cluster, expected));
        }
        if self.lease_ttl.subsec_nanos() != 0 {
            let ttl = format!("{:?}", self.lease_ttl);
            return Err(Error::config("--lease-ttl", ttl, "expected whole seconds"));
        }
        if self.block_min == 0 || self.block_min > Span::LIMIT {
            return Err(Error::config("--block-min", self.block_min, "expected 1 to 2^48"));
        }
        if self.block_max < self.block_min || self.block_max > Span::LIMIT {
            return Err(Error::config("--block-max", self.block_max, "expected --block-min to 2^48"));
        }
        let advertise = self.advertise();
        if !(advertise.starts_with("http://") || advertise.starts_with("https://")) || !advertise.is_ascii() {
            let reason = "expected an address that starts with http://";
            return Err(Error::config("--advertise", advertise, reason));
        }
        if self.advertise.is_none() && self.listen.ip().is_unspecified() {
            let reason = "--advertise is required when --listen is 0.0.0.0 or [::]";
            return Err(Error::config("--listen", self.listen, reason));
        }
        self.tls.check(self)
    }

    /// Returns the URL that followers point resolvers to while this issuer leads.
    pub fn advertise(&self) -> String {
        let scheme = if self.tls.tls_cert.is_some() { "https" } else { "http" };
        self.advertise.clone().unwrap_or_else(|| format!("{scheme}://{}", self.listen))
    }

    /// Returns the limits of the core.
    pub fn limits(&self) -> Limits {
        Limits {
            block_min: self.block_min,
            block_max: self.block_max,
            holder_ttl_ms: milliseconds(self.holder_ttl),
            reclaim_after_ms: milliseconds(self.reclaim_after),
            ..Limits::default()
        }
    }
}

fn milliseconds(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<(), String> {
        let cli = Cli::try_parse_from([&["issuer"], args].concat()).map_err(|error| error.to_string())?;
        cli.serve.check().map_err(|error| error.to_string())
    }

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(parse(&[]), Ok(()));
    }

    #[test]
    fn a_wrong_value_is_named_with_its_flag_and_the_reason() {
        for (args, parts) in [
            (&["--etcd", "tcp://x"][..], ["--etcd", "tcp://x", "http://"]),
            (&["--cluster", "a/b"], ["--cluster", "a/b", "1 to 64"]),
            (&["--lease-ttl", "1500ms"], ["--lease-ttl", "1.5", "whole seconds"]),
            (&["--lease-ttl", "soon"], ["--lease-ttl", "soon", "5s"]),
            (&["--block-min", "0"], ["--block-min", "0", "1 to 2^48"]),
            (&["--block-min", "9", "--block-max", "8"], ["--block-max", "8", "--block-min"]),
            (&["--listen", "0.0.0.0:1"], ["--listen", "0.0.0.0:1", "--advertise"]),
            (&["--etcd", "https://a,http://b"], ["--etcd", "https://a,http://b", "all with https://"]),
            (&["--etcd", "http://etcd-0:2379"], ["--etcd", "http://etcd-0:2379", "--insecure"]),
            (&["--listen", "192.0.2.1:1"], ["--listen", "192.0.2.1:1", "--insecure"]),
            (&["--tls-cert", "x"], ["--tls-cert", "required", "--tls-key"]),
            (&["--tls-client-ca", "x"], ["--tls-client-ca", "required", "--tls-cert"]),
            (
                &["--tls-cert", "x", "--tls-key", "y", "--advertise", "http://a:1"],
                ["--advertise", "http://a:1", "https://"],
            ),
        ] {
            let error = parse(args).unwrap_err();
            for part in parts {
                assert!(error.contains(part), "{error:?} lacks {part:?}");
            }
        }
    }
}
