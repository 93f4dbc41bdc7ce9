//! Counters of past days that are in another database than those of today.

use std::collections::HashSet;

use async_trait::async_trait;
use codes::LinkId;
use links::DomainId;
use store::Sql;
use visits::{Day, tally::Counters};

use crate::{MERGED, Result};

/// Counters of a link by day and domain.
pub(crate) type LinkDays = Vec<(Day, DomainId, Counters)>;

/// Counters of past days in another database.
///
/// Calls come from transactions that hold the lock of deletions, so nothing is transferred there
/// meanwhile.
#[async_trait]
pub(crate) trait Elsewhere: Send + Sync {
    /// Returns the slot whose rows take changes of past days.
    fn slot(&self) -> i16;

    /// Returns which of some links it has counters of. It may name others.
    async fn has(&self, links: &[LinkId]) -> Result<HashSet<LinkId>>;

    async fn of_link(&self, sql: &mut dyn Sql, link: LinkId) -> Result<LinkDays>;

    /// Returns how many visits it counts that no link redirected.
    async fn orphans(&self, sql: &mut dyn Sql) -> Result<i64>;

    /// Deletes the counters of a link that was just cut; 0 stands for the visits without one.
    async fn cut(&self, sql: &mut dyn Sql, link: i64) -> Result<()>;

    /// Deletes the counters of a tag, whose id no other tag will have.
    async fn forget_tag(&self, tag: i64) -> Result<()>;
}

/// All counters are in one database.
pub(crate) struct Nowhere;

#[async_trait]
impl Elsewhere for Nowhere {
    fn slot(&self) -> i16 {
        MERGED
    }

    async fn has(&self, _: &[LinkId]) -> Result<HashSet<LinkId>> {
        Ok(HashSet::new())
    }

    async fn of_link(&self, _: &mut dyn Sql, _: LinkId) -> Result<LinkDays> {
        Ok(LinkDays::new())
    }

    async fn orphans(&self, _: &mut dyn Sql) -> Result<i64> {
        Ok(0)
    }

    async fn cut(&self, _: &mut dyn Sql, _: i64) -> Result<()> {
        Ok(())
    }

    async fn forget_tag(&self, _: i64) -> Result<()> {
        Ok(())
    }
}
