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
mod dimensions;
mod quarters;
mod registers;
#[cfg(test)]
mod tests;
mod uniques;

pub use chunk::Damaged;
pub use dimension::Dimension;
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
    /// The values of [`Dimension::ALL`]; an empty one is unknown.
    pub values: [&'a str; Dimension::ALL.len()],
}

/// The counts of a subject on a day, or a change of them.
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

/// Counters as they are stored, or a change of them: two numbers, and four columns of chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Redirects.
    pub total: i64,
    /// Redirects of bots.
    pub bots: i64,
    /// Visits by quarter hour.
    pub quarters: Vec<u8>,
    /// Visits by referrer, browser, place and so on.
    pub dimensions: Vec<u8>,
    /// Distinct visitors.
    pub visitors: Vec<u8>,
    /// Distinct addresses.
    pub addresses: Vec<u8>,
}

impl Tally {
    /// Counts a visit.
    pub fn add(&mut self, visit: &Counted<'_>) {
        let one = ValueCount::one(visit.is_bot);
        for (dimension, value) in Dimension::ALL.into_iter().zip(visit.values) {
            if visit.is_redirected || dimension == Dimension::Outcome {
                self.dimensions.add(dimension, value, one);
            }
        }
        if !visit.is_redirected {
            return;
        }
        self.quarters.add(visit.quarter, visit.is_bot, visit.is_listed);
        if !visit.is_bot {
            visit.visitor.into_iter().for_each(|key| self.visitors.add(key));
            visit.address.into_iter().for_each(|key| self.addresses.add(key));
        }
    }

    /// Returns what takes these visits away. It has no sketches: a union cannot be undone, so
    /// unique visitors of wider subjects include those of deleted visits.
    pub fn negated(&self) -> Self {
        Self { quarters: self.quarters.negated(), dimensions: self.dimensions.negated(), ..Self::default() }
    }

    /// Reads stored counters.
    pub fn from_chunks(stored: &Counters) -> Result<Self, Damaged> {
        Ok(Self {
            quarters: QuarterCounts::from_chunks(&stored.quarters)?,
            dimensions: DimensionCounts::from_chunks(&stored.dimensions)?,
            visitors: Uniques::from_chunks("visitors", &stored.visitors)?,
            addresses: Uniques::from_chunks("addresses", &stored.addresses)?,
        })
    }

    /// Returns all of it as a change: a chunk for each column, to be appended to a row, or to take
    /// the place of the columns that it was read from.
    pub fn delta(&self) -> Counters {
        let Counts { total, bots, .. } = self.quarters.total();
        Counters {
            total,
            bots,
            quarters: self.quarters.chunk(),
            dimensions: self.dimensions.chunk(),
            visitors: self.visitors.chunk(),
            addresses: self.addresses.chunk(),
        }
    }
}

impl Counters {
    /// Adds the numbers, and appends the columns, of another row.
    pub fn append(&mut self, other: &Self) {
        self.total += other.total;
        self.bots += other.bots;
        self.quarters.extend_from_slice(&other.quarters);
        self.dimensions.extend_from_slice(&other.dimensions);
        self.visitors.extend_from_slice(&other.visitors);
        self.addresses.extend_from_slice(&other.addresses);
    }

    /// Returns the bytes of all columns.
    pub fn bytes(&self) -> usize {
        [&self.quarters, &self.dimensions, &self.visitors, &self.addresses].map(Vec::len).iter().sum()
    }

    /// Merges the chunks of each column into one.
    pub fn merged(&self) -> Result<Self, Damaged> {
        Ok(Tally::from_chunks(self)?.delta())
    }

    /// Returns the change that takes these counts away ([`Tally::negated`]).
    pub fn negated(&self) -> Result<Self, Damaged> {
        Ok(Tally::from_chunks(self)?.negated().delta())
    }
}
