//! Checkers of the properties that must hold after every run. Faults are injected elsewhere; a
//! checker knows nothing about them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use tokio::task::JoinSet;

use crate::api::Api;
use crate::cluster::Cluster;
use crate::load::Acknowledged;
use crate::postgres::Postgres;
use crate::resolver::Resolver;
use crate::status::{Namespace, Status};
use crate::wait;

/// The number of clients that follow links concurrently.
const FOLLOWERS: usize = 32;

/// The largest number of offenders in an error message.
const SHOWN_MAX: usize = 10;

/// Returns the codes that more than one of the links has, each with the long URLs of those links.
pub fn duplicated(links: &[Acknowledged]) -> BTreeMap<&str, Vec<&str>> {
    let mut owners: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for link in links {
        owners.entry(&link.code).or_default().push(&link.long_url);
    }
    owners.retain(|_, long_urls| long_urls.len() > 1);
    owners
}

/// Checks I6, first half: no two acknowledged links share a code.
///
/// # Errors
/// Returns an error if a code is shared; the message lists the codes.
pub fn all_distinct(links: &[Acknowledged]) -> anyhow::Result<()> {
    let shared: Vec<_> = duplicated(links).into_iter().collect();
    let (count, shown) = (shared.len(), &shared[..shared.len().min(SHOWN_MAX)]);
    anyhow::ensure!(shared.is_empty(), "{count} codes were given to several links: {shown:?}");
    Ok(())
}

/// Checks I6, second half: each acknowledged link redirects to its own URL. Each link is requested
/// from the resolver after the one that created it, so with two resolvers from the other one.
///
/// # Errors
/// Returns an error if a link does not redirect to its URL; the message lists those links with the
/// responses.
pub async fn all_resolve(links: &[Acknowledged], resolvers: &[Resolver]) -> anyhow::Result<()> {
    let wrong = unresolved(links, resolvers).await?;
    let (count, shown) = (wrong.len(), &wrong[..wrong.len().min(SHOWN_MAX)]);
    anyhow::ensure!(wrong.is_empty(), "{count} of {} links are wrong:\n{}", links.len(), shown.join("\n"));
    Ok(())
}

/// Returns one line for each acknowledged link that does not redirect to its own URL.
///
/// # Errors
/// Returns an error if a follower's task panicked.
pub async fn unresolved(links: &[Acknowledged], resolvers: &[Resolver]) -> anyhow::Result<Vec<String>> {
    let apis: Vec<Api> = resolvers.iter().map(|resolver| resolver.api.clone()).collect();
    let mut followers = JoinSet::new();
    for chunk in links.chunks(links.len().div_ceil(FOLLOWERS).max(1)) {
        followers.spawn(follow_all(chunk.to_vec(), apis.clone()));
    }
    let mut wrong = Vec::new();
    while let Some(follower) = followers.join_next().await {
        wrong.extend(follower.context("a follower's task ended early")?);
    }
    Ok(wrong)
}

/// Follows links and returns one line for each that does not redirect to its own URL.
async fn follow_all(links: Vec<Acknowledged>, apis: Vec<Api>) -> Vec<String> {
    let mut wrong = Vec::new();
    for link in links {
        let answer = apis[(link.created_on + 1) % apis.len()].follow(&link.code).await;
        if !matches!(&answer, Ok((302, Some(location))) if *location == link.long_url) {
            wrong.push(format!("{} must lead to {}: {answer:?}", link.code, link.long_url));
        }
    }
    wrong
}

/// Checks I10: `allocated = used + open + free + leaked + burned` in every namespace.
///
/// # Errors
/// Returns an error if an account does not balance, or if allocated ≤ high watermark ≤ ceiling ≤
/// capacity does not hold.
pub fn account_balances(status: &Status) -> anyhow::Result<()> {
    for namespace in &status.namespaces {
        let Namespace { capacity, high_watermark, ceiling, allocated, .. } = *namespace;
        let Namespace { used, open, free, leaked, burned, .. } = *namespace;
        anyhow::ensure!(
            allocated == used + open + free + leaked + burned,
            "the account does not balance: {namespace:?}"
        );
        anyhow::ensure!(
            allocated <= high_watermark && high_watermark <= ceiling && ceiling <= capacity,
            "allocated <= high watermark <= ceiling <= capacity does not hold: {namespace:?}"
        );
    }
    Ok(())
}

/// Checks I1 in the database: no two registered blocks overlap, and no block is empty.
///
/// # Errors
/// Returns an error if the register cannot be read, is empty, or contains an empty block or an
/// overlap.
pub async fn registered_blocks_are_disjoint(postgres: &Postgres) -> anyhow::Result<()> {
    let rows = postgres.client().await?;
    let rows = rows.query("SELECT lower(ids), upper(ids) FROM block ORDER BY lower(ids)", &[]).await;
    let rows = rows.context("read the block register")?;
    let blocks: Vec<(i64, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    anyhow::ensure!(!blocks.is_empty(), "no block was ever registered");
    for (start, end) in &blocks {
        anyhow::ensure!(start < end, "an empty block: {start}..{end}");
    }
    for pair in blocks.windows(2) {
        let [(_, end), (start, _)] = pair else { continue };
        anyhow::ensure!(end <= start, "blocks overlap: {pair:?}");
    }
    Ok(())
}

/// Checks I5 in the database: all allocated numbers are registered, so no allocation was lost on
/// its way to its holder. This holds only while no block was returned in part and no resolver is
/// about to register one.
///
/// # Errors
/// Returns an error if the register cannot be read or its total differs from the allocated total.
pub async fn all_allocated_is_registered(status: &Status, postgres: &Postgres) -> anyhow::Result<()> {
    let client = postgres.client().await?;
    let sum = "SELECT coalesce(sum(upper(ids) - lower(ids)), 0)::bigint FROM block";
    let row = client.query_one(sum, &[]).await.context("add up the block register")?;
    let registered: u64 = row.get::<_, i64>(0).try_into().context("add up the block register")?;
    let allocated: u64 = status.namespaces.iter().map(|namespace| namespace.allocated).sum();
    anyhow::ensure!(
        allocated == registered,
        "{allocated} numbers are allocated, {registered} registered: {status:?}"
    );
    Ok(())
}

/// Waits until [`all_allocated_is_registered`] holds: the holder registers a new block a moment
/// after its allocation.
///
/// # Errors
/// Returns an error if it does not hold within the given time.
pub async fn all_allocated_gets_registered(cluster: &Cluster, within: Duration) -> anyhow::Result<()> {
    wait::until(within, "every allocated block has come to its holder", async || {
        let Ok(status) = cluster.status().await else { return false };
        all_allocated_is_registered(&status, &cluster.postgres).await.is_ok()
    })
    .await
}

/// Checks I10 against the database once every holder has returned its blocks: `used` equals the
/// number of links, and `open` is 0.
///
/// # Errors
/// Returns an error if the database cannot be read, a number is still open, or the counts differ.
pub async fn used_numbers_have_links(status: &Status, postgres: &Postgres) -> anyhow::Result<()> {
    let client = postgres.client().await?;
    let row = client.query_one("SELECT count(*) FROM link", &[]).await.context("count the links")?;
    let links: u64 = row.get::<_, i64>(0).try_into().context("count the links")?;
    let used: u64 = status.namespaces.iter().map(|namespace| namespace.used).sum();
    let open: u64 = status.namespaces.iter().map(|namespace| namespace.open).sum();
    anyhow::ensure!(open == 0, "{open} numbers are still open: {status:?}");
    anyhow::ensure!(used == links, "{used} numbers are used, but there are {links} links: {status:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{account_balances, all_distinct};
    use crate::load::Acknowledged;
    use crate::status::Status;

    fn link(code: &str, long_url: &str) -> Acknowledged {
        Acknowledged { code: code.to_owned(), long_url: long_url.to_owned(), created_on: 0 }
    }

    #[test]
    fn a_code_given_twice_is_named_with_both_of_its_links() {
        assert!(all_distinct(&[link("a", "1"), link("b", "2")]).is_ok());
        let failed = all_distinct(&[link("a", "1"), link("b", "2"), link("a", "3")]).unwrap_err();
        assert!(failed.to_string().contains(r#"("a", ["1", "3"])"#), "{failed}");
    }

    #[test]
    fn an_account_with_a_number_too_many_does_not_balance() {
        let status = |open: u64| {
            Status::parse(&format!(
                r#"{{"leader": "http://x", "epoch": 7, "holders": [], "namespaces": [
                    {{"name": "n", "capacity": 62, "high_watermark": 30, "ceiling": 62, "allocated": 30,
                      "used": 10, "open": {open}, "free": 4, "leaked": 3, "burned": 1}}]}}"#
            ))
        };
        assert!(account_balances(&status(12).unwrap()).is_ok());
        assert!(account_balances(&status(13).unwrap()).is_err());
    }
}
