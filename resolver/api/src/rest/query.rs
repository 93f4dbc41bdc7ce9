//! Queries of requests.

use daemon::nearest;
use hyper::Uri;
use serde_json::{Map, Value};
use url::form_urlencoded;

use super::problem::Problem;

/// Maximum length of an unknown name in an answer, in characters.
const NAME_CHARS: usize = 100;

/// The pairs of a query, decoded.
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn new(query: Option<&str>) -> Self {
        Self(form_urlencoded::parse(query.unwrap_or("").as_bytes()).into_owned().collect())
    }

    pub(super) fn of(uri: &Uri) -> Self {
        Self::new(uri.query())
    }

    /// Returns the last value of this name that is not blank.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().rev().find(|(key, _)| key == name);
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// Returns whether there is a value of this name, even a blank one.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    /// Refuses a parameter that the call does not have, so that a misspelled filter is not taken
    /// for none. (Shlink ignores it.)
    pub(super) fn check_names(&self, known: &[String]) -> Result<(), Problem> {
        let is_known = |name: &str| {
            let list = name_of_list(name).map(|list| format!("{list}[]"));
            known.iter().any(|known| known == name || Some(known) == list.as_ref())
        };
        let Some((name, _)) = self.0.iter().find(|(name, _)| !is_known(name)) else { return Ok(()) };
        let name: String = name.chars().take(NAME_CHARS).collect();
        let reason = match nearest(&name, known.iter().map(String::as_str)) {
            Some(meant) => format!("there is no such parameter: did you mean {meant}?"),
            None if known.is_empty() => "this call has no parameters".to_owned(),
            None => format!("there is no such parameter; there are {}", known.join(", ")),
        };
        Err(Problem::invalid(&name, reason))
    }

    /// Returns the parameters as fields: of each name the last value that is not blank, and of a
    /// list (`tags[]=a&tags[]=b`, also with numbers in the brackets) all values.
    pub(super) fn fields(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        for (name, value) in &self.0 {
            let value = value.trim();
            match name_of_list(name) {
                Some(list) => {
                    let items = fields.entry(format!("{list}[]")).or_insert_with(|| Value::Array(Vec::new()));
                    items.as_array_mut().into_iter().for_each(|items| items.push(value.into()));
                }
                None if value.is_empty() => drop(fields.remove(name)),
                None => drop(fields.insert(name.clone(), value.into())),
            }
        }
        fields
    }
}

/// Returns the name of the list that a value belongs to: `tags` for `tags[]` and `tags[1]`.
pub(super) fn name_of_list(key: &str) -> Option<String> {
    let (name, index) = key.strip_suffix(']')?.rsplit_once('[')?;
    index.bytes().all(|byte| byte.is_ascii_digit()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use app::AppError;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unknown_name_is_refused_with_the_one_that_is_like_it() {
        let known = ["shortCode", "tags[]", "page"].map(str::to_owned);
        let refusal = |query: &str| {
            let problem = Query::new(Some(query)).check_names(&known).err()?;
            let Problem::App(AppError::Invalid(fields)) = problem else { return None };
            Some((fields[0].field.clone(), fields[0].expected.clone()))
        };
        for query in ["", "page=1&shortCode=a", "tags[]=a&tags%5B7%5D=b", "page=&page="] {
            assert_eq!(refusal(query), None, "{query}");
        }
        for (query, name, part) in [
            ("page=1&code=a", "code", "did you mean shortCode?"),
            ("tags=a", "tags", "did you mean tags[]?"),
            ("page[]=1", "page[]", "did you mean page?"),
            ("colour=red", "colour", "there are shortCode, tags[], page"),
            ("=x", "", "there is no such parameter"),
        ] {
            let (field, reason) = refusal(query).unwrap();
            assert!(field == name && reason.contains(part), "{query}: {field} {reason}");
        }
        assert!(Query::new(Some("a=b")).check_names(&[]).is_err());
    }

    #[test]
    fn lists_and_texts_are_found_under_their_names() {
        let query = Query::new(Some("tags%5B%5D=a&tags[1]=b+c&page=&page=2&x=%20&tags=no"));
        assert_eq!(
            query.fields(),
            *json!({ "tags[]": ["a", "b c"], "page": "2", "tags": "no" }).as_object().unwrap()
        );
        assert_eq!((query.text("page"), query.text("x"), query.text("y")), (Some("2"), None, None));
        assert_eq!([query.has("page"), query.has("x"), query.has("y")], [true, true, false]);
    }
}
