//! One link as another system tells it, and why one could not be read.

use std::{fmt, io};

use jiff::Timestamp;

/// The longest item of another system, in bytes: what a create by itself may be.
pub(super) const ITEM_BYTES: usize = 64 * 1024;
/// The longest link of our own format, in bytes: with as many rules as a link may have.
pub(super) const OWN_ITEM_BYTES: usize = 4 * 1024 * 1024;

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
    /// How many of the redirects that `max_visits` allows are spent.
    pub uses: Option<u64>,
    /// Whether it redirects at all.
    pub enabled: Option<bool>,
    /// The status of its redirects.
    pub redirect_status: Option<u64>,
    /// Whether its code was minted rather than picked by a person.
    pub minted: Option<bool>,
    /// The Argon2 hash of its password in PHC form.
    pub password_hash: Option<Secret>,
    /// Its redirect rules, as a JSON list.
    pub redirect_rules: Option<String>,
    /// The name of the API key that created it.
    pub created_by: Option<String>,
    /// When it was last edited.
    pub edited_at: Option<Timestamp>,
    /// The name of the API key that edited it last.
    pub edited_by: Option<String>,
    /// How often it was edited.
    pub version: Option<u64>,
    /// Why an operator took it down.
    pub blocked: Option<String>,
    /// When.
    pub blocked_at: Option<Timestamp>,
    /// The name of the API key that it was taken down with.
    pub blocked_by: Option<String>,
    /// When it was deleted. Its code is kept from other links.
    pub deleted_at: Option<Timestamp>,
    /// Properties that the link has there and that do not come along: something to warn of.
    pub left_out: Vec<LeftOut>,
}

/// A text that is never shown in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Row {
    /// About how many bytes it holds.
    #[must_use]
    pub fn weight(&self) -> usize {
        let texts = [&self.code, &self.domain, &self.title, &self.description, &self.redirect_rules];
        let tags = self.tags.iter().map(|tag| tag.len() + size_of::<String>());
        let texts = texts.into_iter().flatten().map(String::len);
        size_of::<Self>() + self.long_url.len() + texts.sum::<usize>() + tags.sum::<usize>()
    }

    /// Properties that a table has no column for, with those that were lost before.
    #[must_use]
    pub fn left_out_of_table(&self) -> Vec<LeftOut> {
        let mut left_out = self.left_out.clone();
        left_out.extend(self.password_hash.is_some().then_some(LeftOut::Password));
        left_out.extend(self.redirect_rules.is_some().then_some(LeftOut::RedirectRules));
        left_out.sort_unstable();
        left_out.dedup();
        left_out
    }
}

/// A property of a link that does not come along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeftOut {
    /// Visitors had to know a password; without it the link is open to everybody.
    Password,
    /// It led some visitors elsewhere, by rules or by their device.
    RedirectRules,
    /// Its whole domain was disabled.
    DisabledDomain,
    /// Limits, times and a state, for which the format has no place. Whether a link had any is
    /// unknown.
    Limits,
    /// A property of a later version, which may well protect the link.
    Unknown,
}

impl LeftOut {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Password, Self::RedirectRules, Self::DisabledDomain, Self::Limits, Self::Unknown];

    /// Its name in exports and summaries.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::RedirectRules => "redirect-rules",
            Self::DisabledDomain => "disabled-domain",
            Self::Limits => "limits",
            Self::Unknown => "unknown",
        }
    }

    /// Reads a name. One of a later version is [`Self::Unknown`]: it is never taken for harmless.
    #[must_use]
    pub fn parse(name: &str) -> Self {
        Self::ALL.into_iter().find(|one| one.as_str() == name.trim()).unwrap_or(Self::Unknown)
    }

    /// Whether the link is open to visitors without it who were kept out before.
    #[must_use]
    pub fn is_protection(self) -> bool {
        match self {
            Self::Password | Self::DisabledDomain | Self::Unknown => true,
            // Of a table without them every link would be disabled: it is told once instead.
            Self::RedirectRules | Self::Limits => false,
        }
    }
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
    /// The export is of a version that this one does not know; nothing comes after this.
    #[error(
        "expected an export of version {known}, found {found}: import it with the release that wrote it, or a later one"
    )]
    Version {
        /// The version that is understood.
        known: u64,
        /// The version found.
        found: String,
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
    /// Which item it is about; none when it is about something between two items.
    #[must_use]
    pub fn place(&self) -> Option<u64> {
        match self {
            Self::Field { place, .. }
            | Self::Item { place, .. }
            | Self::Name { place, .. }
            | Self::Json { place, .. } => Some(*place),
            _ => None,
        }
    }

    /// Whether the rest of the input is lost with it.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Header { .. } | Self::Version { .. } | Self::Broken { .. } | Self::Read { .. })
    }
}
