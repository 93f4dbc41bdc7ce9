//! One link as another system tells it, and why one could not be read.

use std::io;

use jiff::Timestamp;

/// The longest item, in bytes: what a create by itself may be.
pub const ITEM_BYTES: usize = 64 * 1024;

/// One link as another system tells it; nothing in it is checked against the rules for links yet. An empty text is never kept: it is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Which item of the input it is, counted from 1. Items that could not be read count too; lines of a header do not.
    pub place: u64,
    /// What follows the domain in the short URL.
    pub code: Option<String>,
    /// The host of the short URL, with its port where it has one. None when the input does not tell it or calls it the default.
    pub domain: Option<String>,
    /// Where it leads.
    pub long_url: String,
    /// What a person calls it.
    pub title: Option<String>,
    /// What a person says about it.
    pub description: Option<String>,
    /// What it is grouped by, in the order of the input; none of them is blank.
    pub tags: Vec<String>,
    /// When it was made.
    pub created_at: Option<Timestamp>,
    /// Before this it does not redirect.
    pub valid_since: Option<Timestamp>,
    /// From this time on it does not redirect any more.
    pub valid_until: Option<Timestamp>,
    /// How often it redirects.
    pub max_visits: Option<u64>,
    /// Whether robots may follow it.
    pub crawlable: Option<bool>,
    /// Whether the visitor's query goes along.
    pub forward_query: Option<bool>,
    /// How often it was visited there.
    pub visits: Option<u64>,
    /// What it has there and cannot have here: something to warn of.
    pub left_out: Vec<LeftOut>,
}

/// What a link of another system has and a row cannot carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeftOut {
    /// Visitors had to know a password; without it the link is open to everybody.
    Password,
    /// It led some visitors elsewhere, by rules or by their device.
    RedirectRules,
}

/// Why an item, or what is left of the input, could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// One field of an item is wrong; the next item still comes.
    #[error("item {place}: {field}: expected {expected}")]
    Field {
        /// Which item of the input it is, counted from 1.
        place: u64,
        /// The name of the field in the input; a dot leads into an object.
        field: &'static str,
        /// What would have been right.
        expected: &'static str,
    },
    /// An item is wrong as a whole; the next one still comes.
    #[error("item {place}: expected {expected}")]
    Item {
        /// Which item of the input it is, counted from 1.
        place: u64,
        /// What would have been right.
        expected: &'static str,
    },
    /// An item has a field that is not known; the next item still comes.
    #[error("item {place}: expected no field {name:?}, but only {known}")]
    Name {
        /// Which item of the input it is, counted from 1.
        place: u64,
        /// The name of the field, or its beginning.
        name: String,
        /// The names that are understood.
        known: &'static str,
    },
    /// An item is not a JSON object; the next one still comes.
    #[error("item {place}: expected a JSON object: {cause}")]
    Json {
        /// Which item of the input it is, counted from 1.
        place: u64,
        /// What the parser says, with the line and the column inside the item.
        cause: serde_json::Error,
    },
    /// A document has no list of links, as an answer that tells of an error; the next document still comes.
    #[error("after item {after}: expected a document with a list of links in {path}")]
    Document {
        /// How many items came before.
        after: u64,
        /// The name of the list; a dot leads into an object.
        path: &'static str,
    },
    /// The first line does not say what the columns are; nothing comes after this.
    #[error("expected a first line with the names of columns: {known}; {problem}")]
    Header {
        /// The names that are understood.
        known: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// The input is broken; nothing comes after this.
    #[error("after item {after}: expected {expected}")]
    Broken {
        /// How many items came before.
        after: u64,
        /// What would have been right.
        expected: &'static str,
    },
    /// The input could not be read any further; nothing comes after this.
    #[error("after item {after}: expected more to read: {cause}")]
    Read {
        /// How many items came before.
        after: u64,
        /// What the system says.
        cause: io::Error,
    },
}

impl RowError {
    /// Whether the rest of the input is lost with it.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Header { .. } | Self::Broken { .. } | Self::Read { .. })
    }
}
