//! Checks of I6, and at the end of the account against the rows in the database.

use std::collections::{BTreeMap, BTreeSet};

use issuer::core::Account;
use numbers::Span;

use super::super::database::Database;
use crate::stores::FakeDatabase;

/// The final state of a namespace.
pub(super) struct Found<'a> {
    pub(super) account: Account,
    pub(super) free: Vec<Span>,
    /// Numbers of reservations that are open at the end.
    pub(super) kept: Vec<Span>,
    pub(super) keyspace: &'a FakeDatabase,
}

/// The check of links: acknowledged and burned numbers.
#[derive(Debug)]
pub(super) struct LinkCheck {
    pub(super) broken: Option<String>,
    acknowledged: BTreeMap<(usize, u64), u64>,
    burned: Vec<BTreeSet<u64>>,
    /// Links that a failover has lost. Their numbers must still not be acknowledged again.
    lost: BTreeSet<(usize, u64)>,
    failed_over: bool,
}

impl LinkCheck {
    pub(super) fn new(namespaces: usize) -> Self {
        Self {
            broken: None,
            acknowledged: BTreeMap::new(),
            burned: vec![BTreeSet::new(); namespaces],
            lost: BTreeSet::new(),
            failed_over: false,
        }
    }

    fn fail(&mut self, what: String) {
        self.broken.get_or_insert(what);
    }

    /// Checks an acknowledged link.
    pub(super) fn acknowledged(&mut self, link: (usize, u64), url: u64, stored: Option<u64>) {
        if let Some(other) = self.acknowledged.insert(link, url) {
            self.fail(format!("I6: number {link:?} was acknowledged for {other} and for {url}"));
        }
        self.stored(link, url, stored);
    }

    /// Checks a link that was filled in under a reserved number. A caller may send it twice and get
    /// two confirmations, and may fill a number again whose link was lost in a failover.
    pub(super) fn filled(&mut self, link: (usize, u64), url: u64, stored: Option<u64>) {
        let before = self.acknowledged.insert(link, url);
        if let Some(other) = before.filter(|other| *other != url && !self.lost.contains(&link)) {
            self.fail(format!("I6: reserved number {link:?} was acknowledged for {other} and for {url}"));
        }
        self.stored(link, url, stored);
    }

    fn stored(&mut self, link: (usize, u64), url: u64, stored: Option<u64>) {
        if stored.is_none() && self.failed_over {
            // The answer was on its way when the copy took over.
            self.lost.insert(link);
        } else if stored != Some(url) {
            self.fail(format!("I6: number {link:?} was acknowledged for {url}, {stored:?} is stored"));
        }
    }

    /// Records that a holder burned a number.
    pub(super) fn burned(&mut self, namespace: usize, number: u64) {
        self.burned[namespace].insert(number);
    }

    /// Returns whether a holder burned a number.
    pub(super) fn is_burned(&self, namespace: usize, number: u64) -> bool {
        self.burned[namespace].contains(&number)
    }

    /// Records that a copy of the database has taken over that lacks the last links.
    pub(super) fn failed_over(&mut self, database: &Database) {
        let stored = |(namespace, number): &(usize, u64)| database.keyspaces[*namespace].link(*number);
        let lost = self.acknowledged.keys().filter(|link| stored(link).is_none());
        self.lost.extend(lost.copied());
        self.failed_over = true;
    }

    /// Checks that every acknowledged link resolves to its own URL.
    pub(super) fn still_there(&mut self, database: &Database) {
        let stored = |(namespace, number): &(usize, u64)| database.keyspaces[*namespace].link(*number);
        let wrong = |(link, url): &(&_, &u64)| stored(link) != Some(**url) && !self.lost.contains(link);
        let wrong = self.acknowledged.iter().find(wrong);
        if let Some((link, url)) = wrong {
            self.broken.get_or_insert(format!("I6: {link:?} does not resolve to {url} any more"));
        }
    }

    /// Checks I10 once nothing is leaked, and only reservations are open. The rows must be those
    /// that the account counts as used, and those of inserts that landed after their numbers were
    /// burned or returned. Returns how many landed under returned numbers.
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
