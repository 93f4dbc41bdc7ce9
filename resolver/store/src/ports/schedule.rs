//! Edits of links that are made at a moment.

use async_trait::async_trait;
use codes::LinkId;
use jiff::Timestamp;
use links::{Edit, Refusal, ScheduledEdit, ScheduledEditId, ScheduledFields, api_key::ApiKeyId};

use crate::{
    Database,
    Lane::{Read, Write},
    Result,
    operation::run,
    sql::schedule,
};

/// The outcome of a call that schedules an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduled {
    /// The edit is stored under this number.
    Stored(ScheduledEditId),
    /// The link is deleted.
    NoLink,
    /// The link or the key has this many scheduled edits, as many as it may have.
    TooMany(u32),
}

/// Scheduled edits, which go with the deletion of their link.
#[async_trait]
pub trait Schedule: Database {
    /// Stores an edit of a link that is due at a moment.
    async fn schedule_edit(
        &self,
        link: LinkId,
        due_at: Timestamp,
        fields: &ScheduledFields,
        by: ApiKeyId,
    ) -> Result<Scheduled> {
        run(self, Write, (link, due_at, fields.clone(), by), |sql, (link, due_at, fields, by)| {
            Box::pin(schedule::schedule_edit(sql, *link, *due_at, fields, *by))
        })
        .await
    }

    /// Returns the scheduled edits of a link in the order of their moments, with those that failed.
    async fn scheduled_edits(&self, link: LinkId) -> Result<Vec<ScheduledEdit>> {
        run(self, Read, link, |sql, link| Box::pin(schedule::scheduled_edits(sql, *link))).await
    }

    /// Returns the scheduled edit of this number.
    async fn scheduled_edit(&self, id: ScheduledEditId) -> Result<Option<ScheduledEdit>> {
        run(self, Read, id, |sql, id| Box::pin(schedule::scheduled_edit(sql, *id))).await
    }

    /// Removes a scheduled edit. Returns whether it was there.
    async fn cancel_edit(&self, id: ScheduledEditId) -> Result<bool> {
        run(self, Write, id, |sql, id| Box::pin(schedule::cancel_edit(sql, *id))).await
    }

    /// Returns at most `most` edits whose moments have come by the database's clock, and that have
    /// not failed, the earliest first; of each link only its earliest. With `after`, those behind
    /// an edit with this moment and number.
    async fn due_edits(
        &self,
        after: Option<(Timestamp, ScheduledEditId)>,
        most: usize,
    ) -> Result<Vec<ScheduledEdit>> {
        run(self, Read, (after, most), |sql, (after, most)| Box::pin(schedule::due_edits(sql, *after, *most)))
            .await
    }

    /// Makes a due edit as its key, and removes it from the schedule, unless it is gone: made by
    /// another process, or cancelled. If it is refused, it stays.
    async fn make_edit(&self, due: &ScheduledEdit, edit: &Edit) -> Result<Result<(), Refusal>> {
        run(self, Write, (due.clone(), edit.clone()), |sql, (due, edit)| {
            Box::pin(schedule::make_edit(sql, due, edit))
        })
        .await
    }

    /// Records why a due edit cannot be made. It is not due any more.
    async fn fail_edit(&self, id: ScheduledEditId, reason: &str) -> Result<()> {
        run(self, Write, (id, reason.to_owned()), |sql, (id, reason)| {
            Box::pin(schedule::fail_edit(sql, *id, reason))
        })
        .await
    }
}

impl<D: Database> Schedule for D {}
