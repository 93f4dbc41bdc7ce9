//! Edits of links on schedule: scheduled, listed, cancelled, and made when they are due.
//!
//! 1. Every process that serves the API looks for due edits, also for those whose moments passed
//!    while no process ran. The transaction that makes an edit removes it from the schedule, so it
//!    is made once. If the answer to COMMIT is lost, the schedule tells.
//! 2. An edit is checked when it is scheduled, and like an undo when it is made: its key has to be
//!    valid and see the link, and the target rules decide anew.
//! 3. One that fails is kept with the reason, and is not tried again. What passes, such as a
//!    database that does not answer, is no failure. Neither is what a later release has stored:
//!    during a rolling upgrade, processes of that release make the edit.
//! 4. However many edits have to wait, those behind them are made: all due edits are gone through.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use links::{
    Edit, Precondition, ScheduledEdit, ScheduledEditId, ScheduledFields, api_key::Grant, scope::Scope,
};
use store::{Scheduled, StoreError};
use tokio::time::{Instant, sleep};

use crate::{
    Answer, AppError, FieldErrors, LinkFields, LinkService, authorize::require, find_link::LinkName,
};

/// The field with the moment of an edit.
pub const SCHEDULED_FOR: &str = "scheduledFor";
const EXPECTED: &str = "expected a time in the future";
/// How often the database is asked for due edits.
const EVERY: Duration = Duration::from_millis(500);
/// Maximum number of due edits that are read at once. They are of different links.
const DUE_MAX: usize = 100;
/// Pause before an edit is tried again that could not be made for a reason that passes.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// Maximum number of edits that are made at a time.
const AT_ONCE: usize = 8;

const KEY_ENDED: &str = "The API key that scheduled the edit was revoked or has expired.";
const NO_LINK: &str = "The link is deleted, or the API key that scheduled the edit does not see it any more.";

/// Makes the edits that are due, as long as the process runs.
pub async fn make_due_edits(links: Arc<LinkService>) {
    let (mut is_known, mut after, mut has_made) = (true, None, false);
    let mut waiting: HashMap<ScheduledEditId, Instant> = HashMap::new();
    loop {
        let due = links.store.due_edits(after, DUE_MAX).await;
        if let (Err(error), true) = (&due, is_known) {
            tracing::warn!(error = error as &dyn std::error::Error, "read scheduled edits");
        }
        is_known = due.is_ok();
        let mut due = due.unwrap_or_default();
        after = due.last().filter(|_| due.len() == DUE_MAX).map(|last| (last.due_at, last.id));
        let now = Instant::now();
        waiting.retain(|_, until| *until > now);
        due.retain(|due| !waiting.contains_key(&due.id));
        let make = |due: ScheduledEdit| {
            let links = Arc::clone(&links);
            async move { (due.id, links.make_due(&due).await) }
        };
        let ended = stream::iter(due.into_iter().map(make)).buffer_unordered(AT_ONCE);
        let ended: Vec<(ScheduledEditId, bool)> = ended.collect().await;
        let until = Instant::now() + RETRY_AFTER;
        for (id, has_ended) in ended {
            has_made |= has_ended;
            if !has_ended {
                waiting.insert(id, until);
            }
        }
        // After an edit, the next one of its link may be due.
        if after.is_none() && !std::mem::take(&mut has_made) {
            sleep(EVERY).await;
        }
    }
}

/// Why a due edit is not made.
enum NotMade {
    /// For a reason that passes.
    Yet,
    /// For good, with the reason for people.
    Failed(String),
}

impl From<AppError> for NotMade {
    fn from(error: AppError) -> Self {
        match error {
            AppError::Unavailable | AppError::TooMuchAtOnce(_) | AppError::LaterRelease => Self::Yet,
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<StoreError> for NotMade {
    fn from(error: StoreError) -> Self {
        AppError::from(error).into()
    }
}

impl LinkService {
    /// Schedules an edit of a link. It is checked as if it were made now.
    pub fn schedule_edit<'a>(
        &'a self,
        name: &'a LinkName,
        due_at: Option<Timestamp>,
        fields: LinkFields,
        mut wrong: FieldErrors,
        by: &'a Grant,
    ) -> Answer<'a, ScheduledEdit> {
        Box::pin(async move {
            require(by, Scope::Edit)?;
            let now = self.domain_cache.now();
            let due_at = match due_at {
                // It shows how the time was read: a date alone is its beginning.
                Some(past) if past <= now => Err(format!("{EXPECTED}: {past} has passed")),
                due_at => due_at.ok_or_else(|| EXPECTED.to_owned()),
            };
            let due_at = wrong.note(SCHEDULED_FOR, due_at);
            let edit = self.prepare_edit(fields, wrong, by).await?;
            let due_at = due_at.ok_or_else(|| AppError::invalid(SCHEDULED_FOR, EXPECTED))?;
            let link = self.find_link(name, by).await?;
            let fields = ScheduledFields::of(&self.check_against(&link, &edit)?);
            if fields.is_empty() {
                return Err(AppError::invalid("(the fields)", "expected at least one that is to be changed"));
            }
            let turn = self.turns.writes.take(by.id).await?;
            let scheduled = self.store.schedule_edit(link.id, due_at, &fields, by.id).await?;
            drop(turn);
            let by_name = Some(by.name.to_string());
            match scheduled {
                Scheduled::Stored(id) => {
                    Ok(ScheduledEdit { id, link: link.id, due_at, fields, by: by.id, by_name, failure: None })
                }
                Scheduled::NoLink => Err(self.no_link(name)),
                Scheduled::TooMany(most) => Err(AppError::TooManyScheduledEdits(most)),
            }
        })
    }

    /// Returns the scheduled edits of a link in the order of their moments, with those that failed.
    pub async fn scheduled_edits(&self, name: &LinkName, by: &Grant) -> Result<Vec<ScheduledEdit>, AppError> {
        require(by, Scope::Read)?;
        let link = self.find_link(name, by).await?.id;
        let _turn = self.turns.queries.take(by.id).await?;
        Ok(self.store.scheduled_edits(link).await?)
    }

    /// Cancels a scheduled edit of a link that the key sees, whichever key scheduled it. Removes
    /// one that failed.
    pub async fn cancel_scheduled_edit(&self, id: &str, by: &Grant) -> Result<(), AppError> {
        require(by, Scope::Edit)?;
        let missing = || AppError::NoScheduledEdit(id.to_owned());
        let number = id.parse().map(ScheduledEditId::from_stored).map_err(|_| missing())?;
        let turn = self.turns.writes.take(by.id).await?;
        let found = self.store.scheduled_edit(number).await?.ok_or_else(missing)?;
        drop(turn);
        let link = self.lookup.read_fresh(found.link).await.map_err(|_| AppError::Unavailable)?;
        link.filter(|link| by.sees(link)).ok_or_else(missing)?;
        let _turn = self.turns.writes.take(by.id).await?;
        if self.store.cancel_edit(number).await? { Ok(()) } else { Err(missing()) }
    }

    /// Makes a due edit, or records why it cannot be made. Returns false if it is to be tried
    /// again.
    async fn make_due(&self, due: &ScheduledEdit) -> bool {
        let reason = match self.try_due(due).await {
            Ok(()) => return true,
            Err(NotMade::Yet) => return false,
            Err(NotMade::Failed(reason)) => reason,
        };
        tracing::warn!(link = due.link.get(), reason, "a scheduled edit has failed");
        self.store.fail_edit(due.id, &reason).await.is_ok()
    }

    async fn try_due(&self, due: &ScheduledEdit) -> Result<(), NotMade> {
        let edit = due.fields.edit().ok_or(NotMade::Yet)?;
        let by = self.store.find_grant_of_key(due.by).await?;
        let by = by.ok_or_else(|| NotMade::Failed(KEY_ENDED.to_owned()))?;
        require(&by, Scope::Edit)?;
        let link = self.lookup.read_fresh(due.link).await.map_err(|_| NotMade::Yet)?;
        let link = link.filter(|link| !link.is_deleted() && by.sees(link));
        let link = link.ok_or_else(|| NotMade::Failed(NO_LINK.to_owned()))?;
        self.check_former_targets(&edit)?;
        let edit = Edit { precondition: Precondition::of(&link), ..self.check_against(&link, &edit)? };
        let made = self.store.make_edit(due, &edit).await;
        // Also if the answer to COMMIT was lost.
        self.lookup.changed(due.link);
        // A link that has moved, was renamed or deleted meanwhile is read again.
        made?.map_err(|_| NotMade::Yet)
    }
}
