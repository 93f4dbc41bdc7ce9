//! Visits by link of one batch, in the bytes that wait to be added to the links.

use codes::LinkId;
use store::{Dialect, Sql, StoreError, Value};

use crate::{LinkVisits, Result, sqlite::next_number};

/// Bytes of an entry: four numbers of eight bytes.
const ENTRY: usize = 32;

/// Stores visits by link, which are added to the links later.
pub(crate) async fn insert_links(sql: &mut dyn Sql, links: &[LinkVisits]) -> Result<()> {
    if links.is_empty() {
        return Ok(());
    }
    let insert = match sql.dialect() {
        Dialect::Postgres => "INSERT INTO visit_link_batch (links) VALUES ($1)".to_owned(),
        Dialect::Sqlite => {
            let number = next_number("visit_link_batch");
            format!("INSERT INTO visit_link_batch (number, links) VALUES ({number}, $1)")
        }
    };
    sql.execute(&insert, &[Value::Bytes(encode_links(links))]).await?;
    Ok(())
}

fn encode_links(links: &[LinkVisits]) -> Vec<u8> {
    let numbers = links.iter().flat_map(|visits| [visits.link.get(), visits.total, visits.bots, visits.last]);
    numbers.flat_map(i64::to_le_bytes).collect()
}

pub(crate) fn decode_links(bytes: &[u8]) -> Result<Vec<LinkVisits>, StoreError> {
    let (entries, rest) = bytes.as_chunks::<ENTRY>();
    if !rest.is_empty() {
        return Err(StoreError::Corrupt(format!("visits by link: expected entries of {ENTRY} bytes")));
    }
    let entry = |entry: &[u8; ENTRY]| {
        let (numbers, _) = entry.as_chunks::<8>();
        let number = |place: usize| i64::from_le_bytes(numbers[place]);
        LinkVisits {
            link: LinkId::from_stored(number(0)),
            total: number(1),
            bots: number(2),
            last: number(3),
        }
    };
    Ok(entries.iter().map(entry).collect())
}

/// Adds up visits by link. The result is in the order of ids.
pub(crate) fn sum_links(mut links: Vec<LinkVisits>) -> Vec<LinkVisits> {
    links.sort_unstable_by_key(|visits| visits.link);
    links.dedup_by(|next, sum| {
        let is_same = next.link == sum.link;
        if is_same {
            sum.total += next.total;
            sum.bots += next.bots;
            sum.last = sum.last.max(next.last);
        }
        is_same
    });
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visits(link: i64, total: i64, last: i64) -> LinkVisits {
        LinkVisits { link: LinkId::from_stored(link), total, bots: total / 2, last }
    }

    #[test]
    fn visits_by_link_are_encoded_and_added_up() {
        let given = [visits(3, 4, 50), visits(1, 2, 10), visits(3, -2, 40)];
        assert_eq!(decode_links(&encode_links(&given)).unwrap(), given);
        assert_eq!(sum_links(given.to_vec()), [visits(1, 2, 10), visits(3, 2, 50)]);
        assert!(decode_links(&[0; 33]).is_err());
    }
}
