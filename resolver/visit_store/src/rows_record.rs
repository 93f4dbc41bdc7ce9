//! The record of a batch's rows, for a store that keeps rows in a database of their own.
//!
//! Two databases have no common transaction. So the writer records the rows on disk, stores the
//! counters and the position, then stores the rows, and then removes the record. Whatever
//! interrupts it, the next process finds either a record whose batch was not stored, which it
//! drops, or one whose rows may be missing, which it stores again: that is idempotent.

use visits::{Month, TextHash, VisitRow};

use crate::{Batch, StoredText, TextRef};

const VERSION: u8 = 2;
/// Bytes before the rows: the version, the position, the version of changes, and the number of
/// rows.
const HEAD: usize = 1 + 8 + 8 + 4;
const ROW: usize = 8 * 8 + 2 * 4 + 2 + 1;
/// Bytes of an address: its month, its hash, and itself.
const ADDRESS: usize = 4 + 8 + 16;

/// The rows of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowsRecord {
    /// The position after the batch. Once the producer is there, the batch is stored.
    pub to: u64,
    /// The version of the changes that the batch respects.
    pub known: i64,
    /// The rows, ordered by link and id.
    pub rows: Vec<VisitRow>,
    /// Whole IPv6 addresses of the rows, which are texts of 16 bytes.
    pub addresses: Vec<StoredText>,
    /// Whether some of them may be stored already: they were sent before, or by another process.
    pub may_be_stored: bool,
}

impl RowsRecord {
    /// Makes the record of a batch that respects the changes up to version `known`.
    pub fn of(batch: &Batch, known: i64) -> Self {
        let addresses = batch.addresses.clone();
        Self { to: batch.to, known, rows: batch.rows.clone(), addresses, may_be_stored: false }
    }

    /// Writes the record as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + ROW * self.rows.len() + ADDRESS * self.addresses.len());
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.to.to_le_bytes());
        bytes.extend_from_slice(&self.known.to_le_bytes());
        // A batch has at most some ten thousand rows.
        bytes.extend_from_slice(&u32::try_from(self.rows.len()).unwrap_or(u32::MAX).to_le_bytes());
        for row in &self.rows {
            let [wide @ .., _visitor, domain, _language, _flags, _rule] = row.numbers();
            for number in wide.into_iter().chain([domain]) {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            for number in [row.visitor, row.language.get()] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            bytes.extend_from_slice(&row.flags.get().to_le_bytes());
            bytes.push(row.rule);
        }
        for StoredText { at, text } in &self.addresses {
            bytes.extend_from_slice(&at.month.get().to_le_bytes());
            bytes.extend_from_slice(&at.hash.get().to_le_bytes());
            bytes.extend_from_slice(text);
        }
        bytes
    }

    /// Reads a record. Returns `None` if the bytes are none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&version, mut rest) = bytes.split_first()?;
        if version != VERSION {
            return None;
        }
        let to = u64::from_le_bytes(take(&mut rest)?);
        let known = i64::from_le_bytes(take(&mut rest)?);
        let count = usize::try_from(u32::from_le_bytes(take(&mut rest)?)).ok()?;
        if count > rest.len() / ROW {
            return None;
        }
        let rows = (0..count).map(|_| row(&mut rest)).collect::<Option<_>>()?;
        let mut addresses = Vec::with_capacity(rest.len() / ADDRESS);
        while !rest.is_empty() {
            addresses.push(address(&mut rest)?);
        }
        Some(Self { to, known, rows, addresses, may_be_stored: true })
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

/// Reads a row, whose domain stands before its visitor.
fn row(bytes: &mut &[u8]) -> Option<VisitRow> {
    let mut numbers = [0; 12];
    for number in &mut numbers[..7] {
        *number = i64::from_le_bytes(take(bytes)?);
    }
    let domain = i64::from_le_bytes(take(bytes)?);
    let [visitor, language] = [take(bytes)?, take(bytes)?].map(i32::from_le_bytes).map(i64::from);
    let flags = i16::from_le_bytes(take(bytes)?).into();
    let [rule] = take(bytes)?;
    numbers[7..].copy_from_slice(&[visitor, domain, language, flags, rule.into()]);
    VisitRow::from_numbers(numbers)
}

fn address(bytes: &mut &[u8]) -> Option<StoredText> {
    let month = Month::from_stored(i32::from_le_bytes(take(bytes)?));
    let hash = TextHash::from_stored(i64::from_le_bytes(take(bytes)?));
    Some(StoredText { at: TextRef { month, hash }, text: take::<16>(bytes)?.to_vec() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows() -> impl Strategy<Value = VisitRow> {
        let numbers = (any::<[i64; 7]>(), any::<u32>(), any::<[i32; 2]>(), any::<i16>(), any::<u8>());
        numbers.prop_map(|(wide, domain, [visitor, language], flags, rule)| {
            let narrow: [i64; 5] =
                [visitor.into(), domain.into(), language.into(), flags.into(), rule.into()];
            VisitRow::from_numbers([&wide[..], &narrow[..]].concat().try_into().unwrap()).unwrap()
        })
    }

    fn addresses() -> impl Strategy<Value = StoredText> {
        any::<(i32, i64, [u8; 16])>().prop_map(|(month, hash, text)| StoredText {
            at: TextRef { month: Month::from_stored(month), hash: TextHash::from_stored(hash) },
            text: text.to_vec(),
        })
    }

    proptest! {
        #[test]
        fn a_record_comes_back_and_one_that_is_cut_does_not(
            to: u64, known: i64, rows in prop::collection::vec(rows(), 0..20),
            addresses in prop::collection::vec(addresses(), 0..5), cut in 1_usize..ADDRESS,
        ) {
            let record = RowsRecord { to, known, rows, addresses, may_be_stored: true };
            let bytes = record.to_bytes();
            prop_assert_eq!(RowsRecord::from_bytes(&bytes), Some(record));
            let cut = bytes.len() - cut.min(bytes.len());
            prop_assert_eq!(RowsRecord::from_bytes(&bytes[..cut]), None);
        }

        #[test]
        fn any_bytes_are_a_record_or_none(bytes: Vec<u8>) {
            if let Some(record) = RowsRecord::from_bytes(&bytes) {
                prop_assert_eq!(record.to_bytes(), bytes);
            }
        }
    }
}
