//! Resolution of inserts in doubt (I4): reads the row, and then the register.

use std::time::Duration;

use codes::LinkId;
use jiff::Timestamp;
use links::{Draft, Link, Slug};
use tokio::time::{Instant, sleep, timeout_at};

use super::{CreateError, Creator};
use supply::{Claim, Fate, Row, Verdict};

/// Pause before the row of an insert in doubt is read again.
const RESOLVE_PAUSE: Duration = Duration::from_millis(100);

impl Creator {
    /// Reads the row of an insert in doubt until the store answers or the deadline passes.
    ///
    /// If the row is this insert's, the create is acknowledged. If it is absent or another's,
    /// another number is tried. Without an answer the create fails.
    pub(super) async fn resolve(
        &self,
        claim: &Claim,
        id: LinkId,
        draft: &Draft,
        deadline: Instant,
    ) -> (Fate, Option<Result<Timestamp, CreateError>>) {
        loop {
            let looked = timeout_at(deadline, self.look(claim, id, draft)).await.ok().flatten();
            let answer = match looked {
                Some((Verdict::Ours, Some(at))) => Some(Ok(at)),
                Some(_) => None,
                None if Instant::now() < deadline => {
                    sleep(RESOLVE_PAUSE).await;
                    continue;
                }
                None => Some(Err(CreateError::NoStore)),
            };
            return (Verdict::fate(looked.map(|(verdict, _)| verdict)), answer);
        }
    }

    /// Reads the row of an insert in doubt once, and returns the verdict and the row's creation
    /// time. Returns `None` if the store does not answer.
    async fn look(&self, claim: &Claim, id: LinkId, draft: &Draft) -> Option<(Verdict, Option<Timestamp>)> {
        let Some(link) = self.config.lookup.read_fresh(id).await.ok()? else {
            return Some((Verdict::of_row(claim, Row::Absent, self.config.lookup.config.rules), None));
        };
        if link.is(draft) && !self.is_found_by_name(&link).await? {
            // The node of a distributed database has the link, and the coordinator lacks the rest.
            return Some((Verdict::of_row(claim, Row::Absent, self.config.lookup.config.rules), None));
        }
        let row = if link.is(draft) { Row::Same } else { Row::Different };
        let verdict = match Verdict::of_row(claim, row, self.config.lookup.config.rules) {
            Verdict::AskRegister => {
                let entry = self.config.owner.entry_name(claim.entry);
                Verdict::of_register(self.config.store.holds(id, claim.generation.0, &entry).await.ok()?)
            }
            verdict => verdict,
        };
        Some((verdict, Some(link.created_at)))
    }

    /// Returns whether a link on another domain than the default one has its entry there, without
    /// which it does not redirect. Returns `None` if the store does not answer.
    async fn is_found_by_name(&self, link: &Link) -> Option<bool> {
        if link.domain().is_default() {
            return Some(true);
        }
        let name = self.config.lookup.name_of(link).and_then(|name| Slug::parse(&name).ok())?;
        Some(self.config.store.find_slug(link.domain(), &name).await.ok()? == Some(link.id))
    }
}
