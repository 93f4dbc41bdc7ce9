//! Transactions of either database, and the values that go in and come out.

use std::time::Duration;

use async_trait::async_trait;
use codes::LinkId;
use jiff::Timestamp;

use super::Dialect;
use crate::{Result, StoreError};

/// A connection to a database, mostly within a transaction.
#[async_trait]
pub trait Sql: Send {
    /// Returns the dialect of its statements.
    fn dialect(&self) -> Dialect;

    /// Returns whether links are on nodes of Citus, which takes fewer statements.
    fn is_distributed(&self) -> bool {
        false
    }

    /// Runs a statement and returns its rows.
    async fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>>;

    /// Runs a statement and returns its first row.
    async fn first(&mut self, sql: &str, values: &[Value]) -> Result<Option<Row>> {
        Ok(self.query(sql, values).await?.into_iter().next())
    }

    /// Runs a statement and returns the number in the first column of its first row; `None` without
    /// a row, and for NULL.
    async fn number(&mut self, sql: &str, values: &[Value]) -> Result<Option<i64>> {
        self.first(sql, values).await?.map_or(Ok(None), |row| row.opt_int(0))
    }

    /// Runs a statement whose columns are all numbers, and returns these row after row. Postgres
    /// reads them without a [`Row`] for each, of which a page of visits has thousands.
    async fn numbers(&mut self, sql: &str) -> Result<Vec<i64>> {
        let rows = self.query(sql, &[]).await?;
        rows.iter().flat_map(|row| (0..row.0.len()).map(move |column| row.int(column))).collect()
    }

    /// Runs a statement and returns how many rows it has changed.
    async fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64>;

    /// Notifies other resolvers of a change when the transaction commits.
    async fn notify(&mut self, notice: Notice<'_>) -> Result<()>;
}

/// A change that other resolvers are notified of.
#[derive(Clone, Copy, Debug)]
pub enum Notice<'a> {
    /// These links were changed. At most 400 ids fit into one notification.
    Changed(&'a [LinkId]),
    /// The mintable code of this id was taken as a custom slug.
    Picked(LinkId),
}

/// A parameter of a statement.
#[derive(Clone, Debug)]
pub enum Value {
    /// A number.
    Int(i64),
    /// A number or NULL.
    OptInt(Option<i64>),
    /// A truth value.
    Bool(bool),
    /// A text.
    Text(String),
    /// A text or NULL.
    OptText(Option<String>),
    /// A time.
    Time(Timestamp),
    /// A time or NULL.
    OptTime(Option<Timestamp>),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Numbers. Only Postgres takes arrays.
    IntArray(Vec<i64>),
    /// Texts and NULLs. Only Postgres takes arrays.
    TextArray(Vec<Option<String>>),
    /// Times and NULLs. Only Postgres takes arrays.
    TimeArray(Vec<Option<Timestamp>>),
    /// Several times bytes. Only Postgres takes arrays.
    BytesArray(Vec<Vec<u8>>),
}

impl<N: Into<i64>> From<N> for Value {
    fn from(value: N) -> Self {
        Self::Int(value.into())
    }
}

impl Value {
    /// Converts a number of rows, or a position.
    pub fn count(count: impl TryInto<i64>) -> Self {
        Self::Int(count.try_into().unwrap_or(i64::MAX))
    }

    /// Joins numbers into one text, for [`Dialect::among`].
    pub fn numbers(numbers: impl IntoIterator<Item = i64>) -> Self {
        let numbers: Vec<String> = numbers.into_iter().map(|number| number.to_string()).collect();
        Self::Text(numbers.join(","))
    }

    /// Joins ids into one text, for [`Dialect::among`].
    pub(super) fn ids(ids: &[LinkId]) -> Self {
        Self::numbers(ids.iter().map(|id| id.get()))
    }

    pub(super) fn milliseconds(span: Duration) -> Self {
        Self::count(span.as_millis())
    }
}

/// A value of a column.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Null,
    Int(i64),
    Text(String),
    Time(Timestamp),
    Bytes(Vec<u8>),
}

/// A row of a result.
#[derive(Clone, Debug)]
pub struct Row(pub(crate) Vec<Cell>);

/// Reads of columns. A column of another type, or a number out of range, is
/// [`StoreError::Corrupt`].
#[expect(clippy::missing_errors_doc, reason = "the error of all of them is above")]
impl Row {
    /// Returns a number.
    pub fn int(&self, column: usize) -> Result<i64> {
        match &self.0[column] {
            Cell::Int(value) => Ok(*value),
            other => Err(unexpected("a number", other)),
        }
    }

    /// Reads a number; `None` for NULL.
    pub fn opt_int(&self, column: usize) -> Result<Option<i64>> {
        if self.is_null(column) { Ok(None) } else { self.int(column).map(Some) }
    }

    /// Returns a count: 0 for a negative number.
    pub(crate) fn count(&self, column: usize) -> Result<u64> {
        Ok(u64::try_from(self.int(column)?).unwrap_or(0))
    }

    /// Returns a number of a narrower type.
    pub fn number<N: TryFrom<i64>>(&self, column: usize) -> Result<N> {
        let found = self.int(column)?;
        N::try_from(found).map_err(|_| StoreError::Corrupt(format!("number out of range: {found}")))
    }

    /// Returns whether the column is NULL.
    pub fn is_null(&self, column: usize) -> bool {
        matches!(self.0[column], Cell::Null)
    }

    /// Returns a truth value.
    pub fn flag(&self, column: usize) -> Result<bool> {
        Ok(self.int(column)? != 0)
    }

    /// Returns a text.
    pub fn text(&self, column: usize) -> Result<&str> {
        self.opt_text(column)?.ok_or_else(|| unexpected("a text", &Cell::Null))
    }

    /// Returns a text or `None` for NULL.
    pub fn opt_text(&self, column: usize) -> Result<Option<&str>> {
        match &self.0[column] {
            Cell::Null => Ok(None),
            Cell::Text(text) => Ok(Some(text)),
            other => Err(unexpected("a text", other)),
        }
    }

    /// Takes bytes out of the row.
    pub fn take_bytes(&mut self, column: usize) -> Result<Vec<u8>> {
        match std::mem::replace(&mut self.0[column], Cell::Null) {
            Cell::Bytes(bytes) => Ok(bytes),
            other => Err(unexpected("bytes", &other)),
        }
    }

    pub(crate) fn time(&self, column: usize) -> Result<Timestamp> {
        match &self.0[column] {
            Cell::Time(time) => Ok(*time),
            Cell::Int(milliseconds) => Timestamp::from_millisecond(*milliseconds)
                .map_err(|error| StoreError::Corrupt(error.to_string())),
            other => Err(unexpected("a time", other)),
        }
    }

    pub(crate) fn opt_time(&self, column: usize) -> Result<Option<Timestamp>> {
        if self.is_null(column) { Ok(None) } else { self.time(column).map(Some) }
    }
}

fn unexpected(expected: &str, found: &Cell) -> StoreError {
    StoreError::Corrupt(format!("expected {expected}, found {found:?}"))
}
