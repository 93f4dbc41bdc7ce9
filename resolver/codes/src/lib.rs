//! Conversion of numbers to codes and back: pure values, no store, no clock.
//!
//! `code = base62(permute(number))`, or in base 32 for a keyspace whose codes are read in any case.
//! Every code belongs to at most one keyspace, identified by the code's length and first character,
//! in whatever spelling. So a code alone leads to the number it was minted from (C2).

mod adoption;
mod alphabet;
mod check;
mod code;
mod code_key;
mod digest;
mod ff1;
mod keyspace;
mod minting;
mod permutation;
mod value_types;

pub use adoption::{check_slugs, plan_adoption};
pub use code::{Code, CodeError, is_reserved};
pub use code_key::{CodeKey, CodeKeyError, hex};
pub use digest::random_code;
pub use keyspace::{Class, Keyspace, parse_keyspaces};
pub use minting::{KeyspaceIndex, LinkId, Mint, Minted};
