//! Keys and values of the ledger as text, the same in every store.
//!
//! Numbers in keys are zero-padded, so that keys sort as the numbers do. Values are JSON, because
//! there are few of them and an operator can read them with the store's own tools.

use numbers::{HolderId, Invalid, Namespace};
use serde::{Serialize, de::DeserializeOwned};

use super::LedgerError;
use crate::core::{Key, Record};

/// Key of `head`, relative to the cluster's prefix.
pub const HEAD: &str = "head";

impl Key {
    /// Returns the key as text, relative to the cluster's prefix.
    pub fn encode(&self) -> String {
        match self {
            Self::Head => HEAD.to_owned(),
            Self::Holder(id) => format!("holder/{id}"),
            Self::Leaked(namespace, start) => format!("leaked/{namespace}/{start:020}"),
            Self::Free(namespace, start) => format!("free/{namespace}/{start:020}"),
            Self::Journal(slot) => format!("journal/{slot:03}"),
        }
    }
}

impl Record {
    /// Returns the value as JSON.
    pub fn encode(&self) -> String {
        match self {
            Self::Head(head) => json(head),
            Self::Holder(_, holder) => json(holder),
            Self::Leaked(_, block) => json(block),
            Self::Free(_, part) => json(part),
            Self::Journal(_, journal) => json(journal),
        }
    }

    /// Decodes a record from its key, relative to the prefix, and its value. Returns
    /// [`LedgerError::Record`] unless [`Key::encode`] and [`Record::encode`] produce both.
    pub fn decode(key: &str, value: &[u8]) -> Result<Self, LedgerError> {
        let unknown = || LedgerError::Record(format!("key {key:?} has no known form"));
        let mut parts = key.splitn(3, '/');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(HEAD), None, None) => Ok(Self::Head(parse(key, value)?)),
            (Some("holder"), Some(id), None) => {
                Ok(Self::Holder(named(key, HolderId::new(id))?, parse(key, value)?))
            }
            (Some("leaked"), Some(namespace), Some(_)) => {
                Ok(Self::Leaked(named(key, Namespace::new(namespace))?, parse(key, value)?))
            }
            (Some("free"), Some(namespace), Some(_)) => {
                Ok(Self::Free(named(key, Namespace::new(namespace))?, parse(key, value)?))
            }
            (Some("journal"), Some(slot), None) => {
                let slot = slot.parse().map_err(|_| unknown())?;
                Ok(Self::Journal(slot, parse(key, value)?))
            }
            _ => Err(unknown()),
        }
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("records have only string keys and no failing serializer")
}

fn parse<T: DeserializeOwned>(key: &str, value: &[u8]) -> Result<T, LedgerError> {
    let wrong = |error: serde_json::Error| {
        LedgerError::Record(format!("the value of {key:?} does not parse: {error}"))
    };
    serde_json::from_slice(value).map_err(wrong)
}

fn named<T>(key: &str, name: Result<T, Invalid>) -> Result<T, LedgerError> {
    name.map_err(|error| LedgerError::Record(format!("key {key:?} has a malformed name: {error}")))
}

#[cfg(test)]
mod tests {
    use numbers::{Batch, Block, Epoch, Generation, Incarnation, Seq, Span, StoreEpoch};

    use super::*;
    use crate::core::{Entry, Head, Journal, LeakedBlock, OpenBlock, Part};

    #[test]
    fn records_come_back_as_they_were_written_and_keys_sort_as_numbers() {
        let namespace = Namespace::new("web").unwrap();
        let (store, generation) = (StoreEpoch::new("7001:1").unwrap(), Generation(3));
        let (holder, incarnation) = (HolderId::new("resolver-0").unwrap(), Incarnation(2));
        let span = |start| Span::new(start, 7).unwrap();
        let part = |start| Part { span: span(start), generation, store: store.clone(), contested: false };
        let leaked = LeakedBlock {
            span: span(10),
            generation,
            holder: holder.clone(),
            incarnation,
            store: store.clone(),
        };
        let block = Block { namespace: namespace.clone(), span: span(20), generation: Generation(4) };
        let open = OpenBlock { block, store: store.clone(), contested: true };
        let entry = Entry { holder, seq: Seq(5), epoch: Epoch(2), leaked: Some(generation), open };
        let journal = Journal { batch: Batch(9), entries: vec![entry] };
        for record in [
            Record::Journal(9, journal),
            Record::Head(Head::default()),
            Record::Free(namespace.clone(), part(9)),
            Record::Leaked(namespace.clone(), leaked),
        ] {
            let back = Record::decode(&record.key().encode(), record.encode().as_bytes()).unwrap();
            assert_eq!(back, record);
        }
        assert!(Key::Free(namespace.clone(), 9).encode() < Key::Free(namespace, 10).encode());
    }

    #[test]
    fn an_unknown_key_is_an_error_not_silence() {
        for (key, value, reason) in [
            ("feee/web/1", "{}", "no known form"),
            ("free/WEB/1", "{}", "malformed name"),
            ("head", "{", "does not parse"),
            ("journal/x", "{}", "no known form"),
        ] {
            let error = Record::decode(key, value.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
