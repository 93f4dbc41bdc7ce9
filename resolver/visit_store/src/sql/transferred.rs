//! Counters of past days that are in another database than those of the last days.

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
pub(crate) trait Transferred: Send + Sync {
    /// Returns the slot whose rows take changes of past days.
    fn slot_of_changes(&self) -> i16;

    /// Returns which of some links have counters there. It may also return links whose counters no
    /// longer count.
    async fn links_with_days(&self, links: &[LinkId]) -> Result<HashSet<LinkId>>;

    async fn days_of_link(&self, sql: &mut dyn Sql, link: LinkId) -> Result<LinkDays>;

    /// Returns how many visits are counted there that no link redirected.
    async fn orphan_total(&self, sql: &mut dyn Sql) -> Result<i64>;

    /// Excludes the counters of a link that was just cut; 0 stands for the visits without one.
    async fn cut(&self, sql: &mut dyn Sql, link: i64) -> Result<()>;

    /// Deletes the counters of a tag, whose id no other tag will have.
    async fn forget_tag(&self, tag: i64) -> Result<()>;
}

/// All counters are in one database.
pub(crate) struct NothingTransferred;

#[async_trait]
impl Transferred for NothingTransferred {
    fn slot_of_changes(&self) -> i16 {
        MERGED
    }

    async fn links_with_days(&self, _: &[LinkId]) -> Result<HashSet<LinkId>> {
        Ok(HashSet::new())
    }

    async fn days_of_link(&self, _: &mut dyn Sql, _: LinkId) -> Result<LinkDays> {
        Ok(LinkDays::new())
    }

    async fn orphan_total(&self, _: &mut dyn Sql) -> Result<i64> {
        Ok(0)
    }

    async fn cut(&self, _: &mut dyn Sql, _: i64) -> Result<()> {
        Ok(())
    }

    async fn forget_tag(&self, _: i64) -> Result<()> {
        Ok(())
    }
}
