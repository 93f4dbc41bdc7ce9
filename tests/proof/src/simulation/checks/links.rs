//! I6, the ceiling, and at the end the account against the rows in the database.

use std::collections::{BTreeMap, BTreeSet};

use issuer::core::Account;
use numbers::Span;

use super::super::database::Database;
use crate::stores::FakeDatabase;

/// A namespace as it is found at the end.
pub(super) struct Found<'a> {
    pub(super) account: Account,
    pub(super) free: Vec<Span>,
    /// Held by reservations that are open at the end.
    pub(super) kept: Vec<Span>,
    pub(super) keyspace: &'a FakeDatabase,
}

/// What was acknowledged, trusted and given up.
#[derive(Debug)]
pub(in super::super) struct LinkCheck {
    pub(super) broken: Option<String>,
    acknowledged: BTreeMap<(usize, u64), u64>,
    /// By process and namespace: the ceiling and until when it is trusted. None when ceilings cannot be trusted any more.
    trusted: Option<BTreeMap<(usize, usize), (u64, u64)>>,
    burned: Vec<BTreeSet<u64>>,
    /// Links that a fail-over has lost: their numbers must not be acknowledged again all the same.
    lost: BTreeSet<(usize, u64)>,
    failed_over: bool,
}

impl LinkCheck {
    pub(super) fn new(namespaces: usize) -> Self {
        Self {
            broken: None,
            acknowledged: BTreeMap::new(),
            trusted: Some(BTreeMap::new()),
            burned: vec![BTreeSet::new(); namespaces],
            lost: BTreeSet::new(),
            failed_over: false,
        }
    }

    fn fail(&mut self, what: String) {
        self.broken.get_or_insert(what);
    }

    /// A link was acknowledged; whether it was held against a ceiling.
    pub(super) fn acknowledged(
        &mut self,
        now: u64,
        link: (usize, u64),
        url: u64,
        stored: Option<u64>,
    ) -> bool {
        if let Some(other) = self.acknowledged.insert(link, url) {
            self.fail(format!("I6: number {link:?} was acknowledged for {other} and for {url}"));
        }
        self.stored(now, link, url, stored)
    }

    /// A link was filled in under a reserved number. A caller may send it twice and hear so twice,
    /// and may fill a number again whose link was lost in a fail-over.
    pub(super) fn filled(&mut self, now: u64, link: (usize, u64), url: u64, stored: Option<u64>) {
        let before = self.acknowledged.insert(link, url);
        if let Some(other) = before.filter(|other| *other != url && !self.lost.contains(&link)) {
            self.fail(format!("I6: reserved number {link:?} was acknowledged for {other} and for {url}"));
        }
        self.stored(now, link, url, stored);
    }

    fn stored(&mut self, now: u64, link: (usize, u64), url: u64, stored: Option<u64>) -> bool {
        if stored.is_none() && self.failed_over {
            // Its answer was on the way when the copy took over.
            self.lost.insert(link);
        } else if stored != Some(url) {
            self.fail(format!("I6: number {link:?} was acknowledged for {url}, {stored:?} is stored"));
        }
        let lowest = self.lowest(now, link.0);
        if let Some((ceiling, process)) = lowest.filter(|(ceiling, _)| *ceiling <= link.1) {
            self.fail(format!(
                "ceiling: number {link:?} was acknowledged while process {process} trusts that none at or above {ceiling} was"
            ));
        }
        lowest.is_some()
    }

    /// The lowest ceiling that a process trusts, and which process.
    fn lowest(&self, now: u64, namespace: usize) -> Option<(u64, usize)> {
        let trusted = self.trusted.iter().flatten();
        let fresh = trusted.filter(|((_, other), (_, until))| *other == namespace && *until > now);
        fresh.map(|((process, _), (ceiling, _))| (*ceiling, *process)).min()
    }

    /// So many numbers are allocated now.
    pub(super) fn allocated(&mut self, now: u64, namespace: usize, high_watermark: u64) {
        let lowest = self.lowest(now, namespace);
        if let Some((ceiling, process)) = lowest.filter(|(ceiling, _)| *ceiling < high_watermark) {
            self.fail(format!(
                "ceiling: {high_watermark} numbers of {namespace} are allocated while process {process} trusts {ceiling}"
            ));
        }
    }

    /// A process trusts a ceiling.
    pub(super) fn trusts(&mut self, process: usize, namespace: usize, ceiling: u64, until: u64) {
        if let Some(trusted) = &mut self.trusted {
            trusted.insert((process, namespace), (ceiling, until));
        }
    }

    /// A process is gone, and what it trusted with it.
    pub(in super::super) fn forget(&mut self, process: usize) {
        if let Some(trusted) = &mut self.trusted {
            trusted.retain(|(owner, _), _| *owner != process);
        }
    }

    /// The ledger has lost history: what holders were told of the ceiling is void until they hold it against the register.
    pub(super) fn distrust(&mut self) {
        self.trusted = None;
    }

    /// A holder gave a number up.
    pub(super) fn burned(&mut self, namespace: usize, number: u64) {
        self.burned[namespace].insert(number);
    }

    /// Whether a holder gave a number up.
    pub(super) fn is_burned(&self, namespace: usize, number: u64) -> bool {
        self.burned[namespace].contains(&number)
    }

    /// A copy of the database has taken over that lacks the last links.
    pub(super) fn failed_over(&mut self, database: &Database) {
        let stored = |(namespace, number): &(usize, u64)| database.keyspaces[*namespace].link(*number);
        let lost = self.acknowledged.keys().filter(|link| stored(link).is_none());
        self.lost.extend(lost.copied());
        self.failed_over = true;
    }

    /// Every acknowledged link resolves to its own URL.
    pub(super) fn still_there(&mut self, database: &Database) {
        let stored = |(namespace, number): &(usize, u64)| database.keyspaces[*namespace].link(*number);
        let wrong = |(link, url): &(&_, &u64)| stored(link) != Some(**url) && !self.lost.contains(link);
        let wrong = self.acknowledged.iter().find(wrong);
        if let Some((link, url)) = wrong {
            self.broken.get_or_insert(format!("I6: {link:?} does not resolve to {url} any more"));
        }
    }

    /// I10 when nothing is leaked, and open only for reservations: the rows are those that the
    /// account calls used, and those of inserts that landed after their numbers were given up or
    /// given back. Says how many landed under numbers given back.
    pub(super) fn account(&mut self, namespace: usize, found: &Found<'_>, history_lost: bool) -> u64 {
        let Found { account, free, kept, keyspace } = found;
        let rows = |span: &Span| span.len() - keyspace.unused(*span).iter().map(|gap| gap.len()).sum::<u64>();
        let free_taken: u64 = free.iter().map(rows).sum();
        let burned = &self.burned[namespace];
        let burned_taken = burned.iter().filter(|number| keyspace.link(**number).is_some()).count();
        let burned_taken = u64::try_from(burned_taken).unwrap_or(u64::MAX);
        let burned_max = u64::try_from(burned.len()).unwrap_or(u64::MAX);
        let in_reservations: u64 = kept.iter().map(rows).sum();
        let links = u64::try_from(keyspace.links()).unwrap_or(u64::MAX) - in_reservations;
        let reserved: u64 = kept.iter().map(|span| span.len()).sum();
        if account.open != reserved || account.leaked > 0 {
            self.fail(format!(
                "I10: after the sweep numbers are out beside {reserved} reserved: {account:?}"
            ));
        } else if !account.balances() {
            self.fail(format!("I10: {account:?} does not balance"));
        } else if history_lost {
            return free_taken;
        } else if account.burned > burned_max {
            self.fail(format!("I10: {burned_max} inserts were in doubt, and {account:?}"));
        } else if !(account.used + free_taken..=account.used + free_taken + burned_taken).contains(&links) {
            self.fail(format!(
                "I10: {links} links, {free_taken} under free and {burned_taken} under burned numbers, and {account:?}"
            ));
        }
        free_taken
    }
}
