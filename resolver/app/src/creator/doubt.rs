//! What became of an insert in doubt (I4): its row is read, and then the register.

use std::time::Duration;

use codes::LinkId;
use jiff::Timestamp;
use links::Draft;
use tokio::time::{Instant, sleep, timeout_at};

use super::{CreateError, Parts};
use supply::{
    Claim, Fate,
    guard::{self, Guard},
};

/// Pause before the row of an insert in doubt is looked for again.
const RESOLVE_PAUSE: Duration = Duration::from_millis(100);

/// What is stored under the id of an insert in doubt.
enum Row {
    Ours(Timestamp),
    Other,
    Absent,
}

impl Parts {
    /// Looks for the row of an insert in doubt until the store answers. Ours: acknowledged. Absent or not ours: another number is
    /// tried. No answer: the creator is told.
    pub(super) async fn resolve(
        &self,
        claim: &Claim,
        id: LinkId,
        draft: &Draft,
        deadline: Instant,
    ) -> (Fate, Option<Result<Timestamp, CreateError>>) {
        loop {
            match timeout_at(deadline, self.look(claim, id, draft)).await {
                Ok(Some(Row::Ours(at))) => return (Fate::Used, Some(Ok(at))),
                Ok(Some(Row::Other)) => return (Fate::Used, None),
                Ok(Some(Row::Absent)) => return (Fate::Burned, None),
                Ok(None) if Instant::now() < deadline => sleep(RESOLVE_PAUSE).await,
                Ok(None) | Err(_) => return (Fate::Burned, Some(Err(CreateError::NoStore))),
            }
        }
    }

    /// One look at the row of an insert in doubt; none when the store does not say. The register is asked after the row was
    /// read: if the number is ours alone then, nobody else can have written what was read.
    async fn look(&self, claim: &Claim, id: LinkId, draft: &Draft) -> Option<Row> {
        let Some(link) = self.lookup.read_fresh(id).await.ok()? else { return Some(Row::Absent) };
        if (claim.reclaimed && guard::is_on(Guard::Reclaimed)) || !link.is(draft) {
            return Some(Row::Other);
        }
        let entry = self.owner.entry_name(claim.entry);
        let ours = self.store.holds(id, claim.generation.0, &entry).await.ok()?;
        Some(if ours || !guard::is_on(Guard::Holds) { Row::Ours(link.created_at) } else { Row::Other })
    }
}
