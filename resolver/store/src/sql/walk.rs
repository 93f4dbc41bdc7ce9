//! Walks through links in the order of their ids, in steps.
//!
//! A step looks at a bounded number of links, however few of them meet the conditions. So it ends
//! in time also where no index has what is asked for, and a walk that was left goes on behind the
//! last id that it came to. Ids never change. A link that is created meanwhile may be left out.

use codes::LinkId;
use links::Filter;

use super::{
    Sql, Value, places,
    search::Search,
    wanted::{Wanted, names_of, tag_sets},
};
use crate::{Result, Walked};

/// Maximum number of links that a step looks at, unless an index has all those that it looks for.
const LOOKED_AT: u64 = 20_000;

pub(crate) async fn walk(
    sql: &mut dyn Sql,
    filter: &Filter,
    code: Option<LinkId>,
    (after, most): (Option<LinkId>, usize),
) -> Result<Walked> {
    let after = after.map_or(0, LinkId::get);
    let search = Search::of(sql, filter, code).await?;
    let mut wanted = Wanted::new(sql.dialect());
    if let Some(search) = search.as_ref().filter(|_| filter.sees_all) {
        search.narrow(sql, &mut wanted, None).await?;
    }
    let is_indexed = filter.long_url.is_some() || !wanted.parts.is_empty();
    let end = match is_indexed {
        true => None,
        false => match end_of_step(sql, filter, after).await? {
            None => return Ok(Walked::default()),
            end => end,
        },
    };
    wanted.walk(after, end.unwrap_or(i64::MAX));
    wanted.state_and_time(filter);
    wanted.others(filter, search.as_ref());
    let entries = wanted.outlines(sql, most).await?;
    let last = entries.last().filter(|_| entries.len() == most);
    let next = last.map(|entry| entry.id).or(end.map(LinkId::from_stored));
    Ok(Walked { entries, next })
}

/// Returns the id that a step goes up to; `None` behind the last link. A list of one tag looks at
/// the links of that tag alone.
async fn end_of_step(sql: &mut dyn Sql, filter: &Filter, after: i64) -> Result<Option<i64>> {
    if let Some(tags) = tag_sets(&filter.tags, filter.tags_mode).next() {
        let names = names_of(tags);
        let find = format!("SELECT id FROM tag WHERE name IN ({}) LIMIT 2", places(1, names.len()));
        match &*sql.query(&find, &names).await? {
            [] => return Ok(None),
            [tag] => {
                let last = format!(
                    "SELECT max(link_id) FROM (SELECT link_id FROM link_tag
                     WHERE tag_id = $1 AND link_id > $2 ORDER BY link_id LIMIT {LOOKED_AT}) AS next"
                );
                return sql.number(&last, &[Value::Int(tag.int(0)?), Value::Int(after)]).await;
            }
            // Their links would have to be merged.
            _ => {}
        }
    }
    let last = format!(
        "SELECT max(id) FROM
           (SELECT id FROM link WHERE id > $1 ORDER BY id LIMIT {LOOKED_AT}) AS next"
    );
    sql.number(&last, &[Value::Int(after)]).await
}
