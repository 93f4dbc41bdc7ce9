//! Queries of requests.

use hyper::Uri;
use url::form_urlencoded;

/// The pairs of a query, decoded. As in Shlink, unknown names are ignored.
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

    /// Returns the values of a list: `tags[]=a&tags[]=b`, also with numbers in the brackets.
    pub(super) fn list(&self, name: &str) -> impl Iterator<Item = &str> {
        let is_item = move |key: &str| name_of_list(key).is_some_and(|list| list == name);
        self.0.iter().filter(move |(key, _)| is_item(key)).map(|(_, value)| value.trim())
    }
}

/// Returns the name of the list that a value belongs to: `tags` for `tags[]` and `tags[1]`.
pub(super) fn name_of_list(key: &str) -> Option<String> {
    let (name, index) = key.strip_suffix(']')?.rsplit_once('[')?;
    index.bytes().all(|byte| byte.is_ascii_digit()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_texts_are_found_under_their_names() {
        let query = Query::new(Some("tags%5B%5D=a&tags[1]=b+c&page=&page=2&x=%20&tags=no"));
        assert_eq!(query.list("tags").collect::<Vec<_>>(), ["a", "b c"]);
        assert_eq!((query.text("page"), query.text("x"), query.text("y")), (Some("2"), None, None));
        assert_eq!([query.has("page"), query.has("x"), query.has("y")], [true, true, false]);
    }
}
