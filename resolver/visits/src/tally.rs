//! Counters of visits: what one subject had on one UTC day.

mod chunk;
mod quarters;

pub use chunk::{Column, Damaged};
pub use quarters::{Counts, Quarter, QuarterCounts};
