//! The index of long URLs: which links lead to a URL ([`link_index`](super::link_index)).
//!
//! A lookup reads no more than the last [`TAIL`] of the links that are not indexed yet. While the
//! task is further behind, as after the upgrade or under the heaviest load, links that it has not
//! reached are not found.

use std::time::Duration;

use codes::LinkId;
use links::{LongUrl, Record};

use super::{
    Sql, Value,
    details::DELETED_AT,
    insert_numbers,
    tags::{visible, with_tags},
};
use crate::{Result, Visible};

/// Maximum number of index entries of one URL that a lookup examines.
const LOOKED_AT: usize = 5_000;
/// Age limit of links that a lookup reads although they are not indexed yet.
pub(super) const TAIL: Duration = Duration::from_secs(60);

/// Indexes the long URLs of links. Idempotent.
pub(super) async fn note_long_urls(
    sql: &mut dyn Sql,
    links: impl Iterator<Item = (LinkId, &LongUrl)>,
) -> Result<()> {
    // Sorted, because two transactions with different orders could deadlock.
    let mut rows: Vec<[i64; 2]> = links.map(|(id, url)| [url.digest(), id.get()]).collect();
    rows.sort_unstable();
    let then = "ON CONFLICT (digest, link_id) DO NOTHING";
    insert_numbers(sql, "INSERT INTO long_url_index (digest, link_id)", &rows, then).await
}

/// SQL query for candidate ids of links that lead to a long URL. The caller must compare the URL as
/// well, because other links are among them.
///
/// `digest` and `url` are the placeholders of its parameters, which must be numbered in this order.
/// With `most`, only the first entries of the index are read.
pub(super) fn candidates(dialect: super::Dialect, digest: &str, url: &str, most: Option<usize>) -> String {
    let since = dialect.later("indexed_until", &dialect.now_minus(TAIL));
    let bound = most.map_or_else(String::new, |most| format!("ORDER BY link_id LIMIT {most}"));
    format!(
        "SELECT link_id FROM (SELECT link_id FROM long_url_index WHERE digest = {digest} {bound}) AS noted UNION
         SELECT id FROM link WHERE created_at >= (SELECT {since} FROM long_url_index_state) AND long_url = {url}"
    )
}

/// Only the first [`LOOKED_AT`] index entries of the URL are examined, so that a client that
/// creates a million links to one URL does not make each lookup as expensive.
pub(crate) async fn links_of_url(
    sql: &mut dyn Sql,
    url: &LongUrl,
    of: &Visible,
    most: usize,
) -> Result<Vec<Record>> {
    let mut values = vec![Value::Int(url.digest()), Value::Text(url.as_str().to_owned())];
    let conditions = visible(of, &mut values);
    values.push(Value::count(most));
    let select = format!(
        "SELECT {} FROM link WHERE link.id IN ({}) AND link.long_url = $2
           AND {DELETED_AT} IS NULL{conditions} ORDER BY link.id LIMIT ${}",
        sql.dialect().link(),
        candidates(sql.dialect(), "$1", "$2", Some(LOOKED_AT)),
        values.len()
    );
    let rows = sql.query(&select, &values).await?;
    let links = rows.iter().map(super::Row::link).collect::<Result<Vec<_>>>()?;
    with_tags(sql, links).await
}
