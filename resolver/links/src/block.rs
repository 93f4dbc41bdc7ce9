//! A takedown: what an operator took down, only an operator brings back.
//!
//! 1. A block is beside everything that a link's owner may change: no edit or restore by its owner
//!    sets or lifts it, and an import does not lift it. A blocked link cannot be deleted, because
//!    its name would be free for another link with the same target.
//! 2. A link that is already deleted can be blocked as well. A restored link stays blocked, and its
//!    slug is reserved until the block is lifted, unless another link has it by then. Otherwise its
//!    owner could pick the same slug for the same target again.
//! 3. Visitors are told that it was taken down (410), whatever `--tell-gone` says, and are never
//!    sent to a fallback page: that belongs to a domain's owner, from whom they are to be kept. Not
//!    451: most takedowns follow no legal demand.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::api_key::ApiKeyId;

/// Who took a link down, when and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Why, in the operator's words.
    pub reason: String,
    /// With whose key.
    pub by: ApiKeyId,
    /// When, by the database's clock.
    #[serde(serialize_with = "to_millis", deserialize_with = "from_millis")]
    pub at: Timestamp,
}

impl Block {
    /// The longest reason, in bytes.
    pub const REASON_BYTES: usize = 1_024;
}

fn to_millis<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_i64(time.as_millisecond())
}

fn from_millis<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
    Timestamp::from_millisecond(i64::deserialize(from)?).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_reads_back_as_it_was_written() {
        let at = Timestamp::from_millisecond(1_700_000_000_123).unwrap();
        let block = Block { reason: "phishing".to_owned(), by: ApiKeyId(3), at };
        let text = serde_json::to_string(&block).unwrap();
        assert_eq!(text, r#"{"reason":"phishing","by":3,"at":1700000000123}"#);
        assert_eq!(serde_json::from_str::<Block>(&text).unwrap(), block);
    }
}
