//! API keys: the use cases of their operator, and the caches that calls look them up in.

pub mod api_keys;
pub mod key_names;
pub mod key_ring;
