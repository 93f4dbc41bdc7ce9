//! Dimensions: the properties of visits that are counted by value.

/// A property of visits that is counted by value. The codes are stored: one is never reused, and
/// chunks have room for 16.
///
/// Places follow each other from the widest on, because the text of each begins with that of the
/// one before, and chunks store only the difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Dimension {
    /// Host of the referring page.
    Referrer = 0,
    /// Browser.
    Browser = 1,
    /// Operating system.
    Os = 2,
    /// Kind of device.
    Device = 3,
    /// Country: two letters of ISO 3166-1.
    Country = 4,
    /// Region: `CC/Region`.
    Region = 5,
    /// City: `CC/Region/City`.
    City = 6,
    /// Preferred language, such as `de` or `pt-BR`.
    Language = 7,
    /// What the visit led to. The only one in which visits count that were not redirected.
    Outcome = 8,
    /// Number of the redirect rule that matched.
    Rule = 9,
}

impl Dimension {
    /// All dimensions, in the order of their codes.
    pub const ALL: [Self; 10] = [
        Self::Referrer,
        Self::Browser,
        Self::Os,
        Self::Device,
        Self::Country,
        Self::Region,
        Self::City,
        Self::Language,
        Self::Outcome,
        Self::Rule,
    ];

    /// Returns the name in queries, answers and tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Referrer => "referrer",
            Self::Browser => "browser",
            Self::Os => "os",
            Self::Device => "device",
            Self::Country => "country",
            Self::Region => "region",
            Self::City => "city",
            Self::Language => "language",
            Self::Outcome => "outcome",
            Self::Rule => "rule",
        }
    }

    /// Finds a dimension by its name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dimension| dimension.as_str() == name)
    }

    /// Returns the stored code.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Returns the place in [`Self::ALL`].
    pub(super) fn index(self) -> usize {
        usize::from(self.code())
    }
}

/// The values of a visit; an empty one is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Values<'a> {
    /// Value of [`Dimension::Referrer`].
    pub referrer: &'a str,
    /// Value of [`Dimension::Browser`].
    pub browser: &'a str,
    /// Value of [`Dimension::Os`].
    pub os: &'a str,
    /// Value of [`Dimension::Device`].
    pub device: &'a str,
    /// Value of [`Dimension::Country`].
    pub country: &'a str,
    /// Value of [`Dimension::Region`].
    pub region: &'a str,
    /// Value of [`Dimension::City`].
    pub city: &'a str,
    /// Value of [`Dimension::Language`].
    pub language: &'a str,
    /// Value of [`Dimension::Outcome`].
    pub outcome: &'a str,
    /// Value of [`Dimension::Rule`].
    pub rule: &'a str,
}

impl<'a> Values<'a> {
    /// Returns the value of a dimension.
    #[must_use]
    pub fn get(&self, dimension: Dimension) -> &'a str {
        match dimension {
            Dimension::Referrer => self.referrer,
            Dimension::Browser => self.browser,
            Dimension::Os => self.os,
            Dimension::Device => self.device,
            Dimension::Country => self.country,
            Dimension::Region => self.region,
            Dimension::City => self.city,
            Dimension::Language => self.language,
            Dimension::Outcome => self.outcome,
            Dimension::Rule => self.rule,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_places_in_the_list_and_fit_into_chunks() {
        for (code, dimension) in (0..).zip(Dimension::ALL) {
            assert_eq!((dimension.code(), dimension.index()), (code, usize::from(code)));
            assert!(code < 16);
        }
    }

    #[test]
    fn each_dimension_has_its_value() {
        let values = Values {
            referrer: "0",
            browser: "1",
            os: "2",
            device: "3",
            country: "4",
            region: "5",
            city: "6",
            language: "7",
            outcome: "8",
            rule: "9",
        };
        for dimension in Dimension::ALL {
            assert_eq!(values.get(dimension), dimension.code().to_string());
        }
    }
}
