//! Codes of countries, and their English names.

/// Codes of ISO 3166-1 in alphabetical order, each with its short English name, and XK, which is in
/// common use for Kosovo.
const COUNTRIES: &str = include_str!("countries.txt");

/// A country code: two capital letters, usually of ISO 3166-1. Databases have a few more countries
/// than the standard, such as XK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CountryCode([u8; 2]);

impl CountryCode {
    /// Reads a code of two ASCII letters in either case. Returns `None` for any other text.
    pub fn parse(code: &str) -> Option<Self> {
        let letters: [u8; 2] = code.as_bytes().try_into().ok()?;
        letters.iter().all(u8::is_ascii_alphabetic).then(|| Self(letters.map(|it| it.to_ascii_uppercase())))
    }

    /// Returns the two capital letters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("ASCII letters are UTF-8")
    }

    /// Returns the English name of the country, for codes of ISO 3166-1 and XK.
    pub fn name(self) -> Option<&'static str> {
        COUNTRIES.lines().find_map(|line| line.strip_prefix(self.as_str())?.strip_prefix(' '))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_two_letters() {
        let name = |code| CountryCode::parse(code).map(CountryCode::name);
        assert_eq!(["de", "Xk", "XX"].map(name), [Some(Some("Germany")), Some(Some("Kosovo")), Some(None)]);
        assert_eq!(["", "D", "DEU", "D1", "Ä", "D "].map(name), [None; 6]);
    }

    #[test]
    fn each_country_is_found_by_its_code() {
        assert!(COUNTRIES.lines().is_sorted() && COUNTRIES.lines().count() == 250);
        for (code, name) in COUNTRIES.lines().map(|line| line.split_once(' ').unwrap()) {
            assert_eq!(CountryCode::parse(code).unwrap().name(), Some(name));
        }
    }
}
