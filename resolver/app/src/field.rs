//! The fields of a link that a caller sets, named once.
//!
//! The names are those of Shlink's REST API where it has the field. Every adapter reads and writes
//! them through [`Field`]: a field that is added here fails to compile wherever a match lacks it.

use links::{Slug, TAGS_MAX};

/// Bytes of a title; a longer one is cut there, as Shlink does.
pub const TITLE_BYTES: usize = 512;
/// Bytes of a description.
pub const DESCRIPTION_BYTES: usize = 4_096;
/// Characters of a code that is not a custom slug, as in Shlink.
pub const CODE_LEN_MAX: usize = Slug::MAX_LEN;

/// A field of a link that a create or an edit may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Where the link leads: an absolute URL.
    LongUrl,
    /// A name for people.
    Title,
    /// A text for people.
    Description,
    /// Tags, at most a hundred.
    Tags,
    /// The link does not redirect before this time.
    ValidSince,
    /// The link does not redirect from this time on.
    ValidUntil,
    /// How many visits the link redirects.
    MaxVisits,
    /// Whether robots may follow the link.
    Crawlable,
    /// Whether the visitor's query goes along.
    ForwardQuery,
    /// Whether the link redirects.
    Enabled,
    /// The status of redirects: 301, 302, 307 or 308.
    RedirectStatus,
    /// The password that visitors are asked for.
    Password,
    /// A slug of the caller.
    CustomSlug,
    /// A prefix of the code.
    PathPrefix,
    /// Characters of the code.
    ShortCodeLength,
    /// The name of the keyspace of the code.
    Keyspace,
    /// How the code comes about: `sequence` or `hash`.
    Strategy,
    /// The domain.
    Domain,
    /// Whether a link that exists already for the URL will do.
    FindIfExists,
}

impl Field {
    /// Every field.
    pub const ALL: [Self; 19] = [
        Self::LongUrl,
        Self::Title,
        Self::Description,
        Self::Tags,
        Self::ValidSince,
        Self::ValidUntil,
        Self::MaxVisits,
        Self::Crawlable,
        Self::ForwardQuery,
        Self::Enabled,
        Self::RedirectStatus,
        Self::Password,
        Self::CustomSlug,
        Self::PathPrefix,
        Self::ShortCodeLength,
        Self::Keyspace,
        Self::Strategy,
        Self::Domain,
        Self::FindIfExists,
    ];

    /// Returns the name in requests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LongUrl => "longUrl",
            Self::Title => "title",
            Self::Description => "description",
            Self::Tags => "tags",
            Self::ValidSince => "validSince",
            Self::ValidUntil => "validUntil",
            Self::MaxVisits => "maxVisits",
            Self::Crawlable => "crawlable",
            Self::ForwardQuery => "forwardQuery",
            Self::Enabled => "enabled",
            Self::RedirectStatus => "redirectStatus",
            Self::Password => "password",
            Self::CustomSlug => "customSlug",
            Self::PathPrefix => "pathPrefix",
            Self::ShortCodeLength => "shortCodeLength",
            Self::Keyspace => "keyspace",
            Self::Strategy => "strategy",
            Self::Domain => "domain",
            Self::FindIfExists => "findIfExists",
        }
    }

    /// Finds a field by its name in requests.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
    }

    /// Whether an edit passes over the field. The code and the domain of a link never change, but
    /// Shlink's clients send them with an edit too, since they know one form for both.
    pub const fn is_passed_over_by_edits(self) -> bool {
        matches!(
            self,
            Self::CustomSlug | Self::PathPrefix | Self::ShortCodeLength | Self::Domain | Self::FindIfExists
        )
    }

    /// Describes the values that the field takes.
    pub fn expected(self) -> String {
        match self {
            Self::LongUrl => "expected a string with an absolute URL".to_owned(),
            Self::Title => "expected a string without NUL, or null".to_owned(),
            Self::Description => {
                format!("expected a string of at most {DESCRIPTION_BYTES} bytes without NUL, or null")
            }
            Self::Tags => format!("expected an array of at most {TAGS_MAX} strings"),
            Self::ValidSince | Self::ValidUntil => {
                "expected a time such as 2026-11-22T10:00:00+00:00, or a date; \
                 without an offset they are in the server's time zone"
                    .to_owned()
            }
            Self::MaxVisits => "expected a whole number from 1, or null".to_owned(),
            Self::Crawlable | Self::ForwardQuery | Self::Enabled | Self::FindIfExists => {
                "expected true, false or null".to_owned()
            }
            Self::RedirectStatus => "expected 301, 302, 307, 308 or null".to_owned(),
            Self::Password | Self::CustomSlug | Self::PathPrefix | Self::Domain => {
                "expected a string, or null".to_owned()
            }
            Self::ShortCodeLength => format!("expected a number from 1 to {CODE_LEN_MAX}, or null"),
            Self::Keyspace => "expected the name of a keyspace that codes are minted of".to_owned(),
            Self::Strategy => "expected sequence, hash or null".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_found_by_its_name() {
        for field in Field::ALL {
            assert_eq!(Field::parse(field.name()), Some(field));
        }
        assert_eq!(Field::parse("longurl"), None);
    }
}
