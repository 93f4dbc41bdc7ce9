//! The byte columns of counters: merged into one chunk each, or negated.

use visits::tally::{Columns, Damaged, Delta, Tally};

/// Byte columns of one or more rows of counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByteColumns {
    pub(crate) quarters: Vec<u8>,
    pub(crate) dimensions: Vec<u8>,
    pub(crate) visitors: Vec<u8>,
    pub(crate) addresses: Vec<u8>,
}

impl ByteColumns {
    /// Appends the columns of another row.
    pub(crate) fn append(&mut self, other: &Self) {
        self.quarters.extend_from_slice(&other.quarters);
        self.dimensions.extend_from_slice(&other.dimensions);
        self.visitors.extend_from_slice(&other.visitors);
        self.addresses.extend_from_slice(&other.addresses);
    }

    /// Returns the bytes of all columns.
    pub(crate) fn len(&self) -> usize {
        self.quarters.len() + self.dimensions.len() + self.visitors.len() + self.addresses.len()
    }

    /// Merges the chunks of each column into one.
    pub(crate) fn merged(&self) -> Result<Self, Damaged> {
        let Delta { quarters, dimensions, visitors, addresses, .. } = self.delta()?;
        Ok(Self { quarters, dimensions, visitors, addresses })
    }

    /// Returns the delta that adds these counts.
    pub(crate) fn delta(&self) -> Result<Delta, Damaged> {
        Ok(self.tally()?.delta())
    }

    /// Returns the delta that takes these counts away. Sketches stay: a union cannot be undone, so
    /// unique visitors of wider subjects include those of deleted visits.
    pub(crate) fn negated(&self) -> Result<Delta, Damaged> {
        let mut nothing = Tally::default();
        nothing.subtract(&self.tally()?);
        Ok(nothing.delta())
    }

    fn tally(&self) -> Result<Tally, Damaged> {
        Tally::from_chunks(Columns {
            quarters: &self.quarters,
            dimensions: &self.dimensions,
            visitors: &self.visitors,
            addresses: &self.addresses,
        })
    }
}
