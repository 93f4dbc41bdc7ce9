//! Counters of visits: what one subject had on one UTC day.

#[cfg(test)]
mod accuracy;
mod chunk;
mod dictionary;
mod dimension;
mod dimension_chunk;
mod dimensions;
mod quarters;
mod registers;
mod uniques;

pub use chunk::{Column, Damaged};
pub use dimension::{Dimension, Values};
pub use dimensions::{DimensionCounts, OTHER, VALUE_BYTES_MAX, VALUES_HELD, VALUES_MAX, ValueCount};
pub use quarters::{Counts, Quarter, QuarterCounts};
pub use uniques::{Estimate, RELATIVE_ERROR, Uniques};
