//! Counters of visits: what one subject had on one UTC day.
//!
//! 1. A stored column is any number of chunks, one after another, each a change. To count a visit,
//!    a database appends a chunk and reads nothing; to read a column, all its chunks are merged.
//! 2. The order of chunks, and how visits were divided into them, make no difference, as long as no
//!    dimension has more than 1,000 values.
//! 3. Compaction is reading a column and writing one chunk. It changes nothing that is read.
//! 4. Bytes of any content end in an answer or in [`Damaged`], within bounds of memory.
//! 5. The sum of each dimension but the outcome is the number of redirects; the sum of the outcomes
//!    is the number of all visits.
//!
//! Bots count as visits, which are told apart, but neither as visitors nor as addresses. A crawler
//! comes from ever new addresses, and would drown the people that these two columns are about. It
//! could not be left out later either, since sketches cannot be subtracted.
//!
//! Rejected: one column for all, because lists of links read only the quarters, and pages of visits
//! nothing else. Rejected: a row for each value, which takes ten statements for each visit.

#[cfg(test)]
mod accuracy;
mod chunk;
mod dictionary;
mod dimension;
mod dimension_chunk;
mod dimensions;
mod quarters;
mod registers;
#[cfg(test)]
mod tests;
mod uniques;

pub use chunk::{Column, Damaged};
pub use dimension::{Dimension, Values};
pub use dimensions::{DimensionCounts, OTHER, VALUE_BYTES_MAX, VALUES_HELD, VALUES_MAX, ValueCount};
pub use quarters::{Counts, Quarter, QuarterCounts};
pub use uniques::{Estimate, RELATIVE_ERROR, Uniques};

/// A visit as it is counted.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a> {
    /// When it was.
    pub quarter: Quarter,
    /// Whether a bot made it.
    pub is_bot: bool,
    /// Whether it has a row.
    pub is_listed: bool,
    /// Whether it is a visit of the subject: of a link, a redirect or a request for its pixel.
    /// Other requests count by their outcome alone.
    pub is_redirected: bool,
    /// The visitor, if known.
    pub visitor: Option<u64>,
    /// The address, if known.
    pub address: Option<u64>,
    /// Values of the dimensions.
    pub values: Values<'a>,
}

/// What a subject had on a day, or a change of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Redirects by quarter hour.
    pub quarters: QuarterCounts,
    /// Redirects by the value of each dimension, and all visits by outcome.
    pub dimensions: DimensionCounts,
    /// Distinct visitors who were redirected, without bots.
    pub visitors: Uniques,
    /// Distinct addresses that were redirected, without bots.
    pub addresses: Uniques,
}

/// A change of stored counters: numbers to add and bytes to append.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// Redirects.
    pub total: i64,
    /// Redirects of bots.
    pub bots: i64,
    /// Chunk of [`Column::Quarters`]; empty for no change, as are the others.
    pub quarters: Vec<u8>,
    /// Chunk of [`Column::Dimensions`].
    pub dimensions: Vec<u8>,
    /// Chunk of [`Column::Visitors`].
    pub visitors: Vec<u8>,
    /// Chunk of [`Column::Addresses`].
    pub addresses: Vec<u8>,
}

/// The stored columns of a subject and day.
#[derive(Clone, Copy, Debug, Default)]
pub struct Columns<'a> {
    /// [`Column::Quarters`].
    pub quarters: &'a [u8],
    /// [`Column::Dimensions`].
    pub dimensions: &'a [u8],
    /// [`Column::Visitors`].
    pub visitors: &'a [u8],
    /// [`Column::Addresses`].
    pub addresses: &'a [u8],
}

impl Tally {
    /// Counts a visit.
    pub fn add(&mut self, visit: &Counted<'_>) {
        let one = ValueCount::one(visit.is_bot);
        self.dimensions.add(Dimension::Outcome, visit.values.get(Dimension::Outcome), one);
        if !visit.is_redirected {
            return;
        }
        self.quarters.add(visit.quarter, Counts::one(visit.is_bot, visit.is_listed));
        for dimension in Dimension::ALL.into_iter().filter(|dimension| *dimension != Dimension::Outcome) {
            self.dimensions.add(dimension, visit.values.get(dimension), one);
        }
        if !visit.is_bot {
            visit.visitor.into_iter().for_each(|key| self.visitors.add(key));
            visit.address.into_iter().for_each(|key| self.addresses.add(key));
        }
    }

    /// Adds what another has.
    pub fn merge(&mut self, other: &Self) {
        self.quarters.merge(&other.quarters);
        self.dimensions.merge(&other.dimensions);
        self.visitors.merge(&other.visitors);
        self.addresses.merge(&other.addresses);
    }

    /// Takes the visits of another away. Visitors and addresses stay, since sketches cannot be
    /// subtracted.
    pub fn subtract(&mut self, other: &Self) {
        self.quarters.subtract(&other.quarters);
        self.dimensions.subtract(&other.dimensions);
    }

    /// Reads stored columns.
    ///
    /// # Errors
    /// Returns [`Damaged`] if the bytes of a column are not chunks of known formats.
    pub fn from_chunks(columns: Columns<'_>) -> Result<Self, Damaged> {
        Ok(Self {
            quarters: QuarterCounts::from_chunks(columns.quarters)?,
            dimensions: DimensionCounts::from_chunks(columns.dimensions)?,
            visitors: Uniques::from_chunks(Column::Visitors, columns.visitors)?,
            addresses: Uniques::from_chunks(Column::Addresses, columns.addresses)?,
        })
    }

    /// Returns all of it as a change: a chunk for each column, to be appended to a row, or to take
    /// the place of the columns that it was read from.
    pub fn delta(&self) -> Delta {
        let Counts { total, bots, .. } = self.quarters.total();
        Delta {
            total,
            bots,
            quarters: self.quarters.chunk(),
            dimensions: self.dimensions.chunk(),
            visitors: self.visitors.chunk(),
            addresses: self.addresses.chunk(),
        }
    }
}

impl Delta {
    /// Returns the chunks as columns.
    pub fn columns(&self) -> Columns<'_> {
        Columns {
            quarters: &self.quarters,
            dimensions: &self.dimensions,
            visitors: &self.visitors,
            addresses: &self.addresses,
        }
    }
}
