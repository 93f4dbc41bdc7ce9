//! The flags for visits, and their validated settings.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use app::visits::{CaptureRules, Flush};
use clap::{Args, ValueEnum};
use cli::{
    Error,
    args::{Database, VisitsStoreArgs},
};
use daemon::{parse_duration, parse_duration_or_zero};
use ipnet::IpNet;
use numbers::HolderId;
use visit_store::ClickhouseAddress;
use visits::AddressMode;

use super::{network::parse_network, settings::wrong};

/// The shortest and the longest interval of `--visits-flush`.
const FLUSH_MIN: Duration = Duration::from_millis(1);
const FLUSH_MAX: Duration = Duration::from_secs(10);
/// The most days for which visits can be kept: more than ids have room for.
const KEEP_DAYS_MAX: i32 = 36_500;
/// The longest name of `--visits-skip-param`, in bytes.
const PARAM_MAX: usize = 255;

/// Whether something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// It is done.
    On,
    /// It is not done.
    Off,
}

impl Switch {
    fn is_on(self) -> bool {
        self == Self::On
    }
}

/// How much of visitors' addresses is kept, as `--visits-addresses` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Addresses {
    /// The network: /24 of an IPv4 address and /48 of an IPv6 address.
    Cut,
    /// The whole address.
    Full,
    /// Nothing.
    None,
}

/// The flags for visits.
#[derive(Clone, Debug, Args)]
pub struct VisitsArgs {
    /// Record visits. When off, redirects are only counted, and noted for --remove-unvisited-after.
    #[arg(long, env = "RESOLVER_VISITS", value_enum, default_value_t = Switch::On)]
    pub visits: Switch,
    /// Where the rows of visits are kept, if not in the database of the links.
    #[command(flatten)]
    pub visits_store: VisitsStoreArgs,
    /// Folder for recorded visits that are not stored yet. They contain the whole addresses of
    /// visitors. Each process needs its own folder, which has to outlast restarts. Defaults to
    /// visits/HOLDER-ID beside the SQLite file, or in ./data.
    #[arg(long, env = "RESOLVER_VISITS_SPOOL", value_name = "DIR")]
    pub visits_spool: Option<PathBuf>,
    /// Maximum size of --visits-spool, in MiB: at least 64. When it is full, further visits are
    /// dropped and counted. 4,096 MiB hold about 55 million visits.
    #[arg(
        long,
        env = "RESOLVER_VISITS_SPOOL_MIB",
        default_value_t = 4_096,
        value_name = "MIB",
        value_parser = clap::value_parser!(u32).range(64..=1_048_576)
    )]
    pub visits_spool_mib: u32,
    /// Write visits to --visits-spool at this interval, from 1ms to 10s, or with turn before each
    /// answer. A killed process loses the visits of one interval. With turn it loses none, but a
    /// redirect takes longer.
    #[arg(long, env = "RESOLVER_VISITS_FLUSH", default_value = "100ms", value_name = "TIME|turn")]
    pub visits_flush: String,
    /// How much of visitors' addresses is stored: their networks, /24 of an IPv4 and /48 of an IPv6
    /// address (cut), whole addresses (full), or nothing (none).
    #[arg(long, env = "RESOLVER_VISITS_ADDRESSES", value_enum, default_value_t = Addresses::Cut)]
    pub visits_addresses: Addresses,
    /// Respect visitors who ask not to be tracked (DNT: 1 or Sec-GPC: 1): their visits are counted,
    /// without anything about the visitor.
    #[arg(long, env = "RESOLVER_VISITS_OPT_OUT", value_enum, default_value_t = Switch::Off)]
    pub visits_opt_out: Switch,
    /// Record the cookies of visitors, at most 512 bytes.
    #[arg(long, env = "RESOLVER_VISITS_COOKIES", value_enum, default_value_t = Switch::Off)]
    pub visits_cookies: Switch,
    /// Keep single visits for this long; 0 for no time. Counts are kept forever.
    #[arg(long, env = "RESOLVER_VISITS_KEEP", default_value = "90d", value_parser = parse_duration_or_zero, value_name = "TIME")]
    pub visits_keep: Duration,
    /// Record visits that no link redirects: of domains themselves, unknown codes, and links that
    /// are over.
    #[arg(long, env = "RESOLVER_VISITS_ORPHANS", value_enum, default_value_t = Switch::On)]
    pub visits_orphans: Switch,
    /// Record no visits whose query has this parameter, whatever its value. They do not count for
    /// --remove-unvisited-after either.
    #[arg(long, env = "RESOLVER_VISITS_SKIP_PARAM", value_name = "NAME")]
    pub visits_skip_param: Option<String>,
    /// Record no visits from these networks, such as 10.0.0.0/8. They do not count for
    /// --remove-unvisited-after either.
    #[arg(long, env = "RESOLVER_VISITS_SKIP_FROM", value_parser = parse_network, value_name = "CIDR[,CIDR…]", value_delimiter = ',')]
    pub visits_skip_from: Vec<IpNet>,
    /// Record the pages that visitors come from.
    #[arg(long, env = "RESOLVER_VISITS_REFERRERS", value_enum, default_value_t = Switch::On)]
    pub visits_referrers: Switch,
    /// Record the user agents of visitors, and with them browsers, systems and devices. When off,
    /// bots are not told from people.
    #[arg(long, env = "RESOLVER_VISITS_USER_AGENTS", value_enum, default_value_t = Switch::On)]
    pub visits_user_agents: Switch,
}

/// How visits are recorded and kept.
#[derive(Clone, Debug)]
pub struct VisitSettings {
    /// Whether visits are spooled and stored.
    pub is_on: bool,
    /// The database of their rows, if it is not that of the links.
    pub store: Option<ClickhouseAddress>,
    /// The folder of the spool.
    pub spool: PathBuf,
    /// The maximum size of the spool, in bytes.
    pub spool_bytes: u64,
    /// When visits are written to the spool.
    pub flush: Flush,
    /// How much of visitors' addresses is stored.
    pub addresses: AddressMode,
    /// How long single visits are kept; `None` if they are only counted.
    pub keep: Option<Duration>,
    /// Which visits are recorded, and how much of each.
    pub rules: CaptureRules,
}

impl VisitSettings {
    /// Returns the number of days for which single visits are kept, a begun one counted whole.
    #[must_use]
    pub fn keep_days(&self) -> i32 {
        let days = self.keep.map_or(0, |keep| keep.as_secs().div_ceil(24 * 3_600));
        i32::try_from(days).unwrap_or(i32::MAX).min(KEEP_DAYS_MAX)
    }
}

impl VisitsArgs {
    /// Validates the flags. `database` is that of the links, `data_folder` the folder for this
    /// process's own files, and `holder` its name.
    ///
    /// # Errors
    /// Returns [`Error::Config`] with the flag, its value and the expected form.
    pub fn settings(
        &self,
        database: &Database,
        data_folder: &Path,
        holder: &HolderId,
    ) -> Result<VisitSettings, Error> {
        Ok(VisitSettings {
            is_on: self.visits.is_on(),
            store: self.visits_store.of(database)?,
            spool: self
                .visits_spool
                .clone()
                .unwrap_or_else(|| data_folder.join("visits").join(holder.as_str())),
            spool_bytes: u64::from(self.visits_spool_mib) << 20,
            flush: self.check_flush()?,
            addresses: match self.visits_addresses {
                Addresses::Cut => AddressMode::Cut,
                Addresses::Full => AddressMode::Full,
                Addresses::None => AddressMode::None,
            },
            keep: Some(self.visits_keep).filter(|keep| !keep.is_zero()),
            rules: self.check_rules()?,
        })
    }

    fn check_flush(&self) -> Result<Flush, Error> {
        if self.visits_flush == "turn" {
            return Ok(Flush::Turn);
        }
        let interval =
            parse_duration(&self.visits_flush).ok().filter(|time| (FLUSH_MIN..=FLUSH_MAX).contains(time));
        let expected = "expected a time from 1ms to 10s, or turn";
        interval.map(Flush::Every).ok_or_else(|| wrong("--visits-flush", &self.visits_flush, expected))
    }

    fn check_rules(&self) -> Result<CaptureRules, Error> {
        let skip_param = match &self.visits_skip_param {
            Some(name) if name.is_empty() || name.len() > PARAM_MAX => {
                let expected = format!("expected the name of a query parameter, 1 to {PARAM_MAX} bytes");
                return Err(wrong("--visits-skip-param", name, expected));
            }
            name => name.as_deref().map(Box::from),
        };
        let kept = if self.visits.is_on() { self.kept() } else { CaptureRules::least() };
        Ok(CaptureRules { skip_param, skip_from: self.visits_skip_from.clone(), ..kept })
    }

    fn kept(&self) -> CaptureRules {
        CaptureRules {
            orphans: self.visits_orphans.is_on(),
            referrers: self.visits_referrers.is_on(),
            user_agents: self.visits_user_agents.is_on(),
            cookies: self.visits_cookies.is_on(),
            opt_out: self.visits_opt_out.is_on(),
            ..CaptureRules::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::config::Cli;

    fn parse(args: &[&str]) -> Result<VisitSettings, String> {
        let cli = Cli::try_parse_from([&["resolver"], args].concat()).map_err(|error| error.to_string())?;
        cli.serve.settings().map(|settings| settings.visits).map_err(|error| error.to_string())
    }

    #[test]
    fn by_default_all_visits_are_recorded_and_addresses_are_cut() {
        let visits = parse(&[]).unwrap();
        assert_eq!(
            (visits.is_on, &*visits.spool, visits.spool_bytes),
            (true, Path::new("./data/visits/embedded"), 4 << 30)
        );
        assert_eq!(visits.flush, Flush::Every(Duration::from_millis(100)));
        assert_eq!((visits.addresses, visits.rules), (AddressMode::Cut, CaptureRules::default()));
        assert_eq!(visits.keep, Some(Duration::from_secs(90 * 24 * 3_600)));
    }

    #[test]
    fn every_flag_has_its_effect() {
        let on_and_off = [
            "--visits-opt-out=on",
            "--visits-cookies=on",
            "--visits-orphans=off",
            "--visits-referrers=off",
            "--visits-user-agents=off",
            "--visits-skip-param=nostat",
            "--visits-skip-from=10.0.0.0/8,2001:db8::/32",
        ];
        let rules = CaptureRules {
            skip_param: Some("nostat".into()),
            skip_from: ["10.0.0.0/8", "2001:db8::/32"].map(|network| network.parse().unwrap()).into(),
            orphans: false,
            referrers: false,
            user_agents: false,
            cookies: true,
            opt_out: true,
        };
        assert_eq!(parse(&on_and_off).unwrap().rules, rules);
        let off = parse(&[&on_and_off[..], &["--visits=off"]].concat()).unwrap();
        assert_eq!((off.is_on, off.rules), (false, CaptureRules { cookies: false, opt_out: false, ..rules }));
        let visits = parse(&[
            "--visits-spool=/var/spool",
            "--visits-spool-mib=64",
            "--visits-flush=turn",
            "--visits-addresses=none",
            "--visits-keep=0",
        ]);
        let visits = visits.unwrap();
        assert_eq!((&*visits.spool, visits.spool_bytes), (Path::new("/var/spool"), 64 << 20));
        assert_eq!((visits.flush, visits.addresses, visits.keep), (Flush::Turn, AddressMode::None, None));
    }

    #[test]
    fn a_wrong_value_is_named_with_its_flag_and_the_reason() {
        let long = "x".repeat(256);
        for (flag, value, reason) in [
            ("--visits", "maybe", "on, off"),
            ("--visits-spool-mib", "63", "64"),
            ("--visits-flush", "0", "1ms to 10s, or turn"),
            ("--visits-flush", "999us", "1ms to 10s, or turn"),
            ("--visits-flush", "11s", "1ms to 10s, or turn"),
            ("--visits-flush", "each", "1ms to 10s, or turn"),
            ("--visits-addresses", "half", "cut, full, none"),
            ("--visits-keep", "soon", "30d"),
            ("--visits-skip-param", "", "query parameter"),
            ("--visits-skip-param", &long, "1 to 255"),
            ("--visits-skip-from", "10.0.0.0/99", "CIDR"),
        ] {
            let error = parse(&[&format!("{flag}={value}")]).unwrap_err();
            for part in [flag, value, reason] {
                assert!(error.contains(part), "{error:?} lacks {part:?}");
            }
        }
    }
}
