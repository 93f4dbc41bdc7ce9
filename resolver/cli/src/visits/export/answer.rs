//! Reads the visits of a list while it arrives: `{"visits": {"data": [{…}, …], …}}`.

use std::{
    fmt,
    io::{self, Read},
};

use serde::{
    Deserialize, Serialize,
    de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

/// A visit, as the API has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Visit {
    pub(super) date: String,
    /// The kind of a visit that no link redirected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) r#type: Option<String>,
    pub(super) visited_url: Option<String>,
    pub(super) redirect_url: Option<String>,
    pub(super) referer: String,
    pub(super) user_agent: String,
    pub(super) potential_bot: bool,
    pub(super) visit_location: Option<Location>,
}

/// The location of a visitor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Location {
    pub(super) country_code: String,
    pub(super) country_name: String,
    pub(super) region_name: String,
    pub(super) city_name: String,
    pub(super) latitude: f64,
    pub(super) longitude: f64,
    pub(super) timezone: String,
    pub(super) is_empty: bool,
}

impl Location {
    /// Makes the location of a visitor of whom nothing is known.
    pub(super) fn unknown() -> Self {
        Self { is_empty: true, ..Self::default() }
    }
}

/// Why reading an answer ended before its end.
#[derive(Debug)]
pub(super) enum Ended {
    /// The visits could not be written.
    Write(io::Error),
    /// The answer stopped.
    BrokenOff(serde_json::Error),
    /// The answer has another form.
    Foreign,
}

/// Passes each visit of an answer to `take`, until one cannot be taken.
///
/// # Errors
/// Returns an error if the answer is not complete, has another form, or a visit was not taken.
pub(super) fn each_visit(
    answer: impl Read,
    mut take: impl FnMut(&Visit) -> io::Result<()>,
) -> Result<(), Ended> {
    let mut refused = None;
    let mut take = |visit: &Visit| match take(visit) {
        Ok(()) => true,
        Err(error) => {
            refused = Some(error);
            false
        }
    };
    let mut json = serde_json::Deserializer::from_reader(answer);
    let data = Within { name: "data", inner: List(&mut take) };
    let read = Within { name: "visits", inner: data }.deserialize(&mut json).and_then(|()| json.end());
    match (read, refused) {
        (Ok(()), _) => Ok(()),
        (Err(_), Some(error)) => Err(Ended::Write(error)),
        (Err(error), None) if error.is_io() || error.is_eof() => Err(Ended::BrokenOff(error)),
        (Err(_), None) => Err(Ended::Foreign),
    }
}

/// Reads one field of an object, which must be there, and ignores the others.
struct Within<Inner> {
    name: &'static str,
    inner: Inner,
}

impl<'de, Inner: DeserializeSeed<'de>> DeserializeSeed<'de> for Within<Inner> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de, Inner: DeserializeSeed<'de>> Visitor<'de> for Within<Inner> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with {:?}", self.name)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut inner = Some(self.inner);
        while let Some(name) = fields.next_key::<String>()? {
            match inner.take_if(|_| name == self.name) {
                Some(seed) => drop(fields.next_value_seed(seed)?),
                None => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        if inner.is_some() { Err(A::Error::missing_field(self.name)) } else { Ok(()) }
    }
}

/// Reads a list of visits.
struct List<'a, Take>(&'a mut Take);

impl<'de, Take: FnMut(&Visit) -> bool> DeserializeSeed<'de> for List<'_, Take> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de, Take: FnMut(&Visit) -> bool> Visitor<'de> for List<'_, Take> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of visits")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut visits: A) -> Result<(), A::Error> {
        while let Some(visit) = visits.next_element()? {
            if !(self.0)(&visit) {
                return Err(A::Error::custom("the visit was not taken"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer() -> String {
        let visit = |date: &str| {
            json!({
                "date": date, "referer": "", "userAgent": "a", "visitLocation": null, "potentialBot": true,
                "visitedUrl": "https://s.test/a", "redirectUrl": null, "aNewField": [1],
            })
        };
        json!({ "visits": { "data": [visit("1"), visit("2")], "pagination": { "data": 1 } } }).to_string()
    }

    fn dates(answer: &str) -> Result<Vec<String>, Ended> {
        let mut dates = Vec::new();
        each_visit(answer.as_bytes(), |visit| {
            dates.push(visit.date.clone());
            Ok(())
        })?;
        Ok(dates)
    }

    #[test]
    fn visits_are_read_and_fields_of_a_newer_server_are_ignored() {
        assert_eq!(dates(&answer()).unwrap(), ["1", "2"]);
        assert_eq!(dates(r#"{"visits": {"data": []}}"#).unwrap(), [""; 0]);
    }

    #[test]
    fn an_answer_that_ends_anywhere_is_broken_off() {
        let answer = answer();
        for end in 0..answer.len() {
            let ended = dates(&answer[..end]).unwrap_err();
            assert!(matches!(ended, Ended::BrokenOff(_)), "{end}: {ended:?}");
        }
    }

    #[test]
    fn an_answer_of_another_form_is_foreign() {
        for other in ["{}", r#"{"visits": {}}"#, r#"{"visits": {"data": [1]}}"#, "<html>", "[]"] {
            let ended = dates(other).unwrap_err();
            assert!(matches!(ended, Ended::Foreign), "{other}: {ended:?}");
        }
    }

    #[test]
    fn a_visit_that_is_not_taken_ends_the_list() {
        let mut taken = 0;
        let ended = each_visit(answer().as_bytes(), |_| {
            taken += 1;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert!(matches!(ended, Err(Ended::Write(error)) if error.kind() == io::ErrorKind::StorageFull));
        assert_eq!(taken, 1);
    }
}
