//! The fields of a link that a caller sets, defined in one place.
//!
//! The names are those of Shlink's REST API where it has the field. Every adapter reads and writes
//! fields through [`Field`]. After a field is added here, every match that lacks it fails to
//! compile.

use links::{Slug, TAGS_MAX};

/// Maximum length of a title, in bytes. A longer title is truncated, as in Shlink.
pub const TITLE_BYTES: usize = 512;
/// Maximum length of a description, in bytes.
pub const DESCRIPTION_BYTES: usize = 4_096;
/// Maximum length of a requested code that is not a custom slug, in characters, as in Shlink.
pub const CODE_LEN_MAX: usize = Slug::MAX_LEN;

/// A field of a link that a create or an edit may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The long URL, absolute.
    LongUrl,
    /// A title for people.
    Title,
    /// A description for people.
    Description,
    /// Tags, at most a hundred.
    Tags,
    /// The time before which the link does not redirect.
    ValidSince,
    /// The time from which the link no longer redirects.
    ValidUntil,
    /// The number of visits after which the link no longer redirects.
    MaxVisits,
    /// Whether robots may follow the link.
    Crawlable,
    /// Whether a redirect passes on the visitor's query.
    ForwardQuery,
    /// Whether the link redirects.
    Enabled,
    /// The status of redirects: 301, 302, 307 or 308.
    RedirectStatus,
    /// The password that visitors have to enter.
    Password,
    /// A slug of the caller's choice.
    CustomSlug,
    /// A prefix of the generated code.
    PathPrefix,
    /// The length of the generated code, in characters.
    ShortCodeLength,
    /// The name of the keyspace that the code is minted from.
    Keyspace,
    /// How the code is generated: `sequence` or `hash`.
    Strategy,
    /// The link's domain.
    Domain,
    /// Whether an existing link for the URL may be returned.
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

    /// Returns the field's name in requests.
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

    /// Finds a field by its name in requests; names are case-sensitive.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
    }

    /// Returns whether edits ignore the field.
    ///
    /// A link's code and domain never change, but Shlink's clients use one form for creates and
    /// edits and send these fields with both.
    pub const fn is_passed_over_by_edits(self) -> bool {
        matches!(
            self,
            Self::CustomSlug | Self::PathPrefix | Self::ShortCodeLength | Self::Domain | Self::FindIfExists
        )
    }

    /// Returns the phrase that describes the accepted values.
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
