//! How visits are recorded and kept.

use std::{path::PathBuf, time::Duration};

use cli::{Error, wrong_value};
use ingest::upkeep::Retention;
use numbers::HolderId;
use recorder::{CaptureRules, Flush};
use visit_store::ClickhouseAddress;
use visits::AddressMode;

use super::{
    Config,
    entries::Entries,
    settings::{DAYS_MAX, MIB_MAX},
    tuning::Tuning,
};

/// The longest name of a parameter of `--visits-skip`, in bytes.
const PARAM_MAX: usize = 255;

#[derive(Clone, Debug)]
pub(crate) struct VisitSettings {
    /// Whether visits are spooled and stored.
    pub(crate) is_on: bool,
    /// The database of their rows, if it is not that of the links.
    pub(crate) store: Option<ClickhouseAddress>,
    pub(crate) spool: PathBuf,
    /// The maximum size of the spool, in bytes.
    pub(crate) spool_bytes: u64,
    pub(crate) flush: Flush,
    pub(crate) addresses: AddressMode,
    /// How long single visits are kept; `None` if they are only counted.
    pub(crate) keep: Option<Duration>,
    /// For how many days visits are counted; `None` for ever.
    pub(crate) counts_days: Option<i32>,
    /// Which visits are recorded, and how much of each.
    pub(crate) rules: CaptureRules,
}

impl VisitSettings {
    /// Returns the number of days for which single visits are kept, a begun one counted whole.
    pub(crate) fn keep_days(&self) -> i32 {
        let days = self.keep.map_or(0, |keep| keep.as_secs().div_ceil(24 * 3_600));
        i32::try_from(days).unwrap_or(i32::MAX).min(DAYS_MAX)
    }

    pub(crate) fn retention(&self) -> Retention {
        Retention { rows_days: self.keep_days(), counts_days: self.counts_days }
    }

    /// Refuses to remove counts of single visits that are kept: lists find their pages by them.
    fn check_counts(&self) -> Result<(), Error> {
        let keep_days = self.keep_days();
        let Some(days) = self.counts_days.filter(|days| *days < keep_days) else { return Ok(()) };
        let reason = format!(
            "--visits-keep keeps single visits for {keep_days} days, which need their counts: use at least \
             as many, or a shorter --visits-keep"
        );
        Err(wrong_value("--limit", format!("visit-counts-days={days}"), reason))
    }
}

impl Config {
    pub(super) fn check_visits(
        &self,
        holder: &HolderId,
        limits: &Entries<'_>,
        tuning: &Tuning,
    ) -> Result<VisitSettings, Error> {
        let default_spool = || self.database.data_folder().join("visits").join(holder.as_str());
        let (addresses, recorded) = self.check_privacy()?;
        let (is_on, rules) = self.check_skipped(recorded)?;
        let settings = VisitSettings {
            is_on,
            store: self.visits_store.of(&self.database.database)?,
            spool: self.visits_spool.clone().unwrap_or_else(default_spool),
            spool_bytes: limits.number("visits-spool-mib", 64..=MIB_MAX)?.unwrap_or(4_096) << 20,
            flush: tuning.flush,
            addresses,
            keep: Some(self.visits_keep).filter(|keep| !keep.is_zero()),
            counts_days: limits.number("visit-counts-days", 1..=DAYS_MAX)?,
            rules,
        };
        // Processes of other roles remove none, and may share the limits of one that does.
        if self.role.serves_api() {
            settings.check_counts()?;
        }
        Ok(settings)
    }

    fn check_privacy(&self) -> Result<(AddressMode, CaptureRules), Error> {
        let names =
            ["strict", "default", "full", "addresses", "opt-out", "referrers", "user-agents", "cookies"];
        let given = Entries::of("--visits-privacy", &names, &self.visits_privacy)?;
        let (is_strict, is_full) = (given.has("strict")?, given.has("full")?);
        if [is_strict, is_full, given.has("default")?].iter().filter(|level| **level).count() > 1 {
            let given = self.visits_privacy.join(",");
            return Err(wrong_value("--visits-privacy", given, "name one level only"));
        }
        let addresses = given.parse("addresses", |value| match value {
            "cut" => Ok(AddressMode::Cut),
            "full" => Ok(AddressMode::Full),
            "none" => Ok(AddressMode::None),
            _ => Err("use cut, full or none"),
        })?;
        let of_level = match (is_strict, is_full) {
            (true, _) => AddressMode::None,
            (_, true) => AddressMode::Full,
            _ => AddressMode::Cut,
        };
        if given.switch("cookies")? == Some(true) {
            tracing::warn!("cookies are not recorded any more: remove cookies=on, or --visits-cookies");
        }
        let rules = CaptureRules {
            referrers: given.switch("referrers")?.unwrap_or(!is_strict),
            user_agents: given.switch("user-agents")?.unwrap_or(!is_strict),
            opt_out: given.switch("opt-out")?.unwrap_or(is_strict),
            ..CaptureRules::default()
        };
        Ok((addresses.unwrap_or(of_level), rules))
    }

    /// Returns whether visits are recorded at all, and the rules with those that are left out.
    fn check_skipped(&self, rules: CaptureRules) -> Result<(bool, CaptureRules), Error> {
        let given = Entries::of("--visits-skip", &["all", "orphans", "param", "from"], &self.visits_skip)?;
        let skip_param = given.parse("param", |name| match name.len() {
            1..=PARAM_MAX => Ok(name.into()),
            _ => Err(format!("not the name of a query parameter: 1 to {PARAM_MAX} bytes")),
        })?;
        let (skip_from, orphans) = (given.networks("from")?, !given.has("orphans")?);
        let is_on = !given.has("all")?;
        let rules = if is_on { CaptureRules { orphans, ..rules } } else { CaptureRules::least() };
        Ok((is_on, CaptureRules { skip_param, skip_from, ..rules }))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::settings::tests::parse;

    #[test]
    fn by_default_all_visits_are_recorded_and_addresses_are_cut() {
        let visits = parse(&[]).unwrap().visits;
        assert_eq!(
            (visits.is_on, &*visits.spool, visits.spool_bytes),
            (true, Path::new("./data/visits/embedded"), 4 << 30)
        );
        assert_eq!(visits.flush, Flush::Every(Duration::from_millis(100)));
        assert_eq!((visits.addresses, visits.rules), (AddressMode::Cut, CaptureRules::default()));
        assert_eq!(visits.keep, Some(Duration::from_secs(90 * 24 * 3_600)));
        assert_eq!(visits.counts_days, None);
    }

    #[test]
    fn visits_are_counted_for_at_least_as_long_as_they_are_listed() {
        let retention = |args: &[&str]| {
            let Retention { rows_days, counts_days } =
                parse(args).map(|settings| settings.visits.retention())?;
            Ok::<_, String>((rows_days, counts_days))
        };
        assert_eq!(retention(&["--limit=visit-counts-days=90"]), Ok((90, Some(90))));
        assert_eq!(retention(&["--visits-keep=0", "--limit=visit-counts-days=1"]), Ok((0, Some(1))));
        let error = retention(&["--visits-keep=2137h", "--limit=visit-counts-days=89"]).unwrap_err();
        assert!(error.contains("--limit visit-counts-days=89: --visits-keep keeps"), "{error}");
    }

    #[test]
    fn every_flag_has_its_effect() {
        let skip = "--visits-skip=orphans,param=nostat,from=10.0.0.0/8,from=2001:db8::/32";
        let skipping = CaptureRules {
            skip_param: Some("nostat".into()),
            skip_from: ["10.0.0.0/8", "2001:db8::/32"].map(|network| network.parse().unwrap()).into(),
            orphans: false,
            ..CaptureRules::default()
        };
        let strict = CaptureRules { referrers: false, user_agents: false, opt_out: true, ..skipping.clone() };
        for (privacy, addresses, rules) in [
            ("default", AddressMode::Cut, skipping.clone()),
            ("strict", AddressMode::None, strict.clone()),
            (
                "strict,user-agents=on",
                AddressMode::None,
                CaptureRules { user_agents: true, ..strict.clone() },
            ),
            ("full", AddressMode::Full, skipping.clone()),
            ("addresses=none,opt-out=on,referrers=off,user-agents=off", AddressMode::None, strict),
            ("addresses=full,cookies=on", AddressMode::Full, skipping.clone()),
        ] {
            let visits = parse(&[skip, "--visits-privacy", privacy]).unwrap().visits;
            assert_eq!((visits.is_on, visits.addresses, visits.rules), (true, addresses, rules), "{privacy}");
        }
        let off = parse(&["--visits-privacy=full", skip, "--visits-skip=all"]).unwrap().visits;
        let least = CaptureRules { referrers: false, user_agents: false, ..skipping };
        assert_eq!((off.is_on, off.rules), (false, least));
        let visits = parse(&[
            "--visits-spool=/var/spool",
            "--limit=visits-spool-mib=64",
            "--tune=visits-flush=turn",
            "--visits-keep=0",
        ]);
        let visits = visits.unwrap().visits;
        assert_eq!((&*visits.spool, visits.spool_bytes), (Path::new("/var/spool"), 64 << 20));
        assert_eq!((visits.flush, visits.keep), (Flush::Turn, None));
    }
}
