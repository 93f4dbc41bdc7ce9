//! A recorded history of creates and their outcomes, checked after the run.
//!
//! 1. Every create that was sent is an attempt. It ends acknowledged (the response has a code),
//!    failed (a response without a code) or unknown (no complete response: the process died, or the
//!    connection did). Only acknowledgements are promises.
//! 2. The check runs when the fault is over: codes distinct, links right, every acknowledged link
//!    stored, blocks disjoint, account balanced. It reports every problem, not only the first.
//! 3. The report has the fields of Jepsen's checker for unique ids (`jepsen.checker/unique-ids`:
//!    attempted, acknowledged, duplicated with multiplicities, range), and those that a link has
//!    beyond an id.
//!
//! Rejected: a log of every invocation with its time, as for linearizability. Distinct codes need
//! no order of events.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use anyhow::Context;
use serde::Serialize;

use crate::api::{Api, Created};
use crate::checks;
use crate::cluster::Cluster;
use crate::http::Answer;
use crate::load::{Acknowledged, next_long_url};
use crate::postgres::Postgres;
use crate::status::Namespace;

/// The largest number of offenders of each kind that a report names; all of them are counted.
const SHOWN_MAX: usize = 10;

/// The number of low bits of a link id that hold the number. The keyspace's index is in the bits
/// above.
const NUMBER_BITS: u32 = 48;

/// The history of a test. Cheap to clone: all clones write to the same history.
#[derive(Clone, Debug, Default)]
pub struct History(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    attempted: usize,
    failed: usize,
    links: Vec<Acknowledged>,
}

impl History {
    /// Creates a link, and records that and how it ended. Returns any other answer than 200 in
    /// place of a link, which may exist all the same: a 503 can hide an insert in doubt.
    ///
    /// # Errors
    /// Returns an error if there is no complete answer. Then it is unknown how it ended.
    pub async fn create(&self, api: &Api, created_on: usize) -> anyhow::Result<Result<Acknowledged, Answer>> {
        let long_url = next_long_url();
        self.recorded().attempted += 1;
        let answer = api.try_create(&long_url).await.with_context(|| format!("create {long_url}"))?;
        if answer.status != 200 {
            self.recorded().failed += 1;
            return Ok(Err(answer));
        }
        let link = Acknowledged { code: Created::read(&answer)?.code, long_url, created_on };
        self.recorded().links.push(link.clone());
        Ok(Ok(link))
    }

    /// Returns the links acknowledged so far, in the order of the responses.
    pub fn links(&self) -> Vec<Acknowledged> {
        self.recorded().links.clone()
    }

    /// Checks the history against the whole platform, which must have recovered, and prints the
    /// report.
    ///
    /// # Errors
    /// Returns an error if a server cannot be queried or a check fails; the message of a failed
    /// check contains the report.
    pub async fn check(&self, cluster: &Cluster) -> anyhow::Result<Report> {
        let links = self.links();
        let mut report = self.report();
        let unresolved = checks::unresolved(&links, &cluster.resolvers).await?;
        report.blame_all("links do not lead to their own URL", unresolved);
        report.stored = Some(Stored::read(&cluster.postgres).await?);
        report.blame_lost_links();
        report.blame(checks::registered_blocks_are_disjoint(&cluster.postgres).await);
        let status = cluster.status().await?;
        report.blame(checks::account_balances(&status));
        report.namespaces = status.namespaces;
        report.print();
        anyhow::ensure!(report.valid, "the history is not valid:\n{report}");
        Ok(report)
    }

    /// Returns the report on the history alone. [`Self::check`] adds the state of the platform.
    pub fn report(&self) -> Report {
        let recorded = self.recorded();
        let (attempted, failed, links) = (recorded.attempted, recorded.failed, &recorded.links);
        let duplicated = checks::duplicated(links).into_iter();
        let duplicated: BTreeMap<_, _> =
            duplicated.map(|(code, long_urls)| (code.to_owned(), long_urls.len())).collect();
        let codes = || links.iter().map(|link| &link.code);
        let mut report = Report {
            valid: true,
            attempted_count: attempted,
            acknowledged_count: links.len(),
            failed_count: failed,
            // Includes creates in flight: callers wait for their loads before they check.
            unknown_count: attempted - failed - links.len(),
            duplicated_count: duplicated.len(),
            range: codes().min().zip(codes().max()).map(|(first, last)| [first.clone(), last.clone()]),
            stored: None,
            namespaces: Vec::new(),
            problems: Vec::new(),
            duplicated: BTreeMap::new(),
        };
        let shown = duplicated.iter().map(|(code, count)| format!("{code} for {count} links"));
        report.blame_all("codes were given several times", shown.collect());
        report.duplicated = duplicated;
        report
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().expect("no code panics while it holds this lock")
    }
}

/// The report on a history.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Whether no problem was found.
    pub valid: bool,
    /// The number of creates that were sent.
    pub attempted_count: usize,
    /// The number of creates whose response has a code.
    pub acknowledged_count: usize,
    /// The number of creates with any other response.
    pub failed_count: usize,
    /// The number of creates without a complete response.
    pub unknown_count: usize,
    /// The number of codes that were given more than once.
    pub duplicated_count: usize,
    /// The codes that were given more than once, each with its number of links.
    pub duplicated: BTreeMap<String, usize>,
    /// The first and the last acknowledged code in text order.
    pub range: Option<[String; 2]>,
    /// The links in the database; `None` before [`History::check`] has read them.
    pub stored: Option<Stored>,
    /// The account of every namespace, as the issuers report it.
    pub namespaces: Vec<Namespace>,
    /// The problems found, one sentence each.
    pub problems: Vec<String>,
}

/// A summary of the links in the database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stored {
    /// The number of links. It may include links of unknown and of failed creates.
    pub links: usize,
    /// The lowest and the highest link id, as `keyspace:number`.
    pub range: Option<[String; 2]>,
}

impl Stored {
    async fn read(postgres: &Postgres) -> anyhow::Result<Self> {
        let row =
            postgres.client().await?.query_one("SELECT count(*), min(id), max(id) FROM link", &[]).await;
        let row = row.context("look at the stored links")?;
        let id = |place: usize| row.get::<_, Option<i64>>(place).map(id_text);
        let links = usize::try_from(row.get::<_, i64>(0)).context("count the stored links")?;
        Ok(Self { links, range: id(1).zip(id(2)).map(|(first, last)| [first, last]) })
    }
}

fn id_text(id: i64) -> String {
    format!("{}:{}", id >> NUMBER_BITS, id & ((1 << NUMBER_BITS) - 1))
}

impl Report {
    /// Returns the report as JSON.
    ///
    /// # Errors
    /// Returns an error if serialization fails, which no report causes.
    pub fn json(&self) -> anyhow::Result<String> {
        serde_json::to_string(self).context("write the report as JSON")
    }

    /// Prints the report. The test runner shows it if the test fails, or with `--nocapture`.
    #[expect(clippy::print_stdout, reason = "the report is for the person who runs the test")]
    fn print(&self) {
        println!("{self}");
    }

    fn blame(&mut self, checked: anyhow::Result<()>) {
        if let Err(wrong) = checked {
            self.valid = false;
            self.problems.push(format!("{wrong:#}"));
        }
    }

    fn blame_all(&mut self, what: &str, mut offenders: Vec<String>) {
        let count = offenders.len();
        offenders.truncate(SHOWN_MAX);
        if count > 0 {
            self.blame(Err(anyhow::anyhow!("{count} {what}: {}", offenders.join("; "))));
        }
    }

    fn blame_lost_links(&mut self) {
        let (acknowledged, stored) = (self.acknowledged_count, self.stored.as_ref().map_or(0, |s| s.links));
        if stored < acknowledged {
            self.blame(Err(anyhow::anyhow!(
                "{acknowledged} links were acknowledged and {stored} are stored"
            )));
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            attempted_count, acknowledged_count, failed_count, unknown_count, duplicated_count, ..
        } = self;
        writeln!(out, "history: {}", if self.valid { "valid" } else { "NOT VALID" })?;
        writeln!(out, "  attempted    {attempted_count}")?;
        writeln!(out, "  acknowledged {acknowledged_count}")?;
        writeln!(out, "  failed       {failed_count}")?;
        writeln!(out, "  unknown      {unknown_count}")?;
        writeln!(out, "  duplicated   {duplicated_count}")?;
        if let Some([first, last]) = &self.range {
            writeln!(out, "  codes        {first} to {last}")?;
        }
        if let Some(Stored { links, range }) = &self.stored {
            let [first, last] = range.clone().unwrap_or_default();
            writeln!(out, "  stored       {links}, ids {first} to {last}")?;
        }
        for namespace in &self.namespaces {
            let Namespace { name, allocated, used, open, free, leaked, burned, .. } = namespace;
            writeln!(
                out,
                "  account      {name}: allocated {allocated} = used {used} + open {open} + free {free} \
                 + leaked {leaked} + burned {burned}"
            )?;
        }
        self.problems.iter().try_for_each(|problem| writeln!(out, "  WRONG        {problem}"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::{History, Recorded, id_text};
    use crate::load::Acknowledged;

    fn link(code: &str, long_url: &str) -> Acknowledged {
        Acknowledged { code: code.to_owned(), long_url: long_url.to_owned(), created_on: 0 }
    }

    fn history(attempted: usize, failed: usize, links: Vec<Acknowledged>) -> History {
        History(Arc::new(Mutex::new(Recorded { attempted, failed, links })))
    }

    #[test]
    fn an_attempt_without_an_answer_is_unknown_and_one_without_a_code_failed() {
        let history = history(4, 1, vec![link("b", "1"), link("a", "2")]);
        let report = history.report();
        assert!(report.valid, "{report}");
        let counts = (report.attempted_count, report.acknowledged_count, report.failed_count);
        assert_eq!((counts, report.unknown_count), ((4, 2, 1), 1));
        assert_eq!(report.range.unwrap(), ["a", "b"]);
    }

    #[test]
    fn a_code_given_twice_makes_a_history_invalid_and_is_named_with_its_count() {
        let history = history(3, 0, vec![link("a", "1"), link("b", "2"), link("a", "3")]);
        let report = history.report();
        assert!(!report.valid);
        assert_eq!(report.duplicated.get("a"), Some(&2));
        assert!(report.to_string().contains("a for 2 links"), "{report}");
        assert!(report.json().unwrap().contains(r#""duplicated":{"a":2}"#));
    }

    #[test]
    fn an_id_is_shown_as_its_keyspace_and_its_number() {
        assert_eq!(id_text((3 << 48) + 7), "3:7");
    }
}
