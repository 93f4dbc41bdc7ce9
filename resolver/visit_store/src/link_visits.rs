//! Visits by link of one batch, in the bytes that wait to be added to the links.

use codes::LinkId;
use store::{Dialect, Sql, StoreError, Value};

use crate::{LinkVisits, Result, sqlite::next_number};

/// Bytes of an entry: four numbers of eight bytes.
///
/// How many imported visits took the place of those that were only counted is an entry of its own,
/// without visits, and with that number below zero in place of the time. A release before adds
/// nothing for it, so that totals and times are right whichever process adds them.
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
    let entries = |LinkVisits { link, total, bots, last, imported }: &LinkVisits| {
        let replaced = (*imported > 0).then(|| [link.get(), 0, 0, -imported]);
        [Some([link.get(), *total, *bots, *last]), replaced].into_iter().flatten()
    };
    links.iter().flat_map(entries).flatten().flat_map(i64::to_le_bytes).collect()
}

pub(crate) fn decode_links(bytes: &[u8]) -> Result<Vec<LinkVisits>, StoreError> {
    let (entries, rest) = bytes.as_chunks::<ENTRY>();
    if !rest.is_empty() {
        return Err(StoreError::Corrupt(format!("visits by link: expected entries of {ENTRY} bytes")));
    }
    let entry = |entry: &[u8; ENTRY]| {
        let (numbers, _) = entry.as_chunks::<8>();
        let number = |place: usize| i64::from_le_bytes(numbers[place]);
        let last = number(3);
        LinkVisits {
            link: LinkId::from_stored(number(0)),
            total: number(1),
            bots: number(2),
            last: last.max(0),
            imported: last.saturating_neg().max(0),
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
            sum.imported += next.imported;
        }
        is_same
    });
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visits(link: i64, total: i64, last: i64) -> LinkVisits {
        LinkVisits { link: LinkId::from_stored(link), total, bots: total / 2, last, imported: 0 }
    }

    #[test]
    fn visits_by_link_are_encoded_and_added_up() {
        let given = [visits(3, 4, 50), visits(1, 2, 10), visits(3, -2, 40)];
        assert_eq!(decode_links(&encode_links(&given)).unwrap(), given);
        assert_eq!(sum_links(given.to_vec()), [visits(1, 2, 10), visits(3, 2, 50)]);
        let imported = LinkVisits { imported: 5, ..visits(3, 5, 60) };
        let decoded = decode_links(&encode_links(&[imported])).unwrap();
        let replaced = LinkVisits { imported: 5, ..visits(3, 0, 0) };
        assert_eq!(decoded, [visits(3, 5, 60), replaced], "a release before reads the first as it is");
        assert_eq!(sum_links(decoded), [imported]);
        let sum = LinkVisits { imported: 5, bots: 4, ..visits(3, 9, 60) };
        assert_eq!(sum_links(vec![imported, visits(3, 4, 50)]), [sum]);
        assert!(decode_links(&[0; 33]).is_err());
    }
}
