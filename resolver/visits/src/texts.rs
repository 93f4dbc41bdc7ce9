//! Texts that hold several values of a visit.

/// The requested URL and the target of a visit, in one text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Urls<'a> {
    /// The requested path and query.
    pub request: &'a [u8],
    /// Where the visitor was redirected to; empty if to the link's own target, or nowhere.
    pub target: &'a [u8],
}

/// Separates the values. No header and no URL contains it.
const SEPARATOR: u8 = b'\n';

impl<'a> Urls<'a> {
    /// Joins both values. The result is empty if both are.
    pub fn join(self) -> Vec<u8> {
        if self.request.is_empty() && self.target.is_empty() {
            return Vec::new();
        }
        [self.request, self.target].join(&SEPARATOR)
    }

    /// Splits a joined text.
    pub fn split(text: &'a [u8]) -> Self {
        let end = text.iter().position(|byte| *byte == SEPARATOR).unwrap_or(text.len());
        Self { request: &text[..end], target: text.get(end + 1..).unwrap_or_default() }
    }
}

/// The place of a visitor, in one text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlaceText {
    /// The country, as two letters; empty if unknown, as are all texts here.
    pub country: String,
    /// The name of the country.
    pub country_name: String,
    /// The name of the region.
    pub region: String,
    /// The name of the city.
    pub city: String,
    /// The latitude in degrees.
    pub latitude: f64,
    /// The longitude in degrees.
    pub longitude: f64,
    /// The name of the time zone.
    pub time_zone: String,
}

impl PlaceText {
    /// Returns whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.country.is_empty() && self.region.is_empty() && self.city.is_empty()
    }

    /// Joins the values. The result is empty if nothing is known.
    pub fn join(&self) -> Vec<u8> {
        if self.is_empty() {
            return Vec::new();
        }
        let (latitude, longitude) = (self.latitude.to_string(), self.longitude.to_string());
        let fields = [
            &self.country,
            &self.country_name,
            &self.region,
            &self.city,
            &latitude,
            &longitude,
            &self.time_zone,
        ];
        fields.map(|field| field.replace('\n', " ")).join("\n").into_bytes()
    }

    /// Splits a joined text. Missing values are empty.
    pub fn split(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let mut fields = text.split('\n');
        let mut next = || fields.next().unwrap_or_default().to_owned();
        Self {
            country: next(),
            country_name: next(),
            region: next(),
            city: next(),
            latitude: next().parse().unwrap_or_default(),
            longitude: next().parse().unwrap_or_default(),
            time_zone: next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_values_come_apart_again() {
        let urls = Urls { request: b"/abc?x", target: b"https://a.b/" };
        assert_eq!(Urls::split(&urls.join()), urls);
        let urls = Urls { request: b"/abc?x", target: b"" };
        assert_eq!(Urls::split(&urls.join()), urls);
        assert!(Urls::default().join().is_empty());
        assert_eq!(Urls::split(b""), Urls::default());
        let place = PlaceText {
            country: "DE".to_owned(),
            city: "Ber\nlin".to_owned(),
            latitude: 52.5,
            longitude: -0.25,
            ..PlaceText::default()
        };
        let split = PlaceText::split(&place.join());
        assert_eq!(split, PlaceText { city: "Ber lin".to_owned(), ..place });
        assert!(PlaceText::split(b"").is_empty() && PlaceText::default().join().is_empty());
    }
}
