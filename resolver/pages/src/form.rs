//! The fields of a form or a query.

use app::FieldErrors;
use url::form_urlencoded;

/// Maximum number of fields. Each takes far more memory than its two bytes on the wire.
const FIELDS_MAX: usize = 200;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Form(pub(crate) Vec<(String, String)>);

impl Form {
    /// Reads `application/x-www-form-urlencoded`. Fields beyond the first [`FIELDS_MAX`] are left
    /// out: no page has so many.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        Self(form_urlencoded::parse(bytes).into_owned().take(FIELDS_MAX).collect())
    }

    pub(crate) fn only(&self, names: &[&str]) -> Self {
        let kept = self.0.iter().filter(|(name, _)| names.contains(&name.as_str()));
        Self(kept.cloned().collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(has, _)| has == name).map(|(_, value)| value.as_str())
    }

    /// Returns the first value of a field; empty without one.
    pub(crate) fn value(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    pub(crate) fn has(&self, name: &str, value: &str) -> bool {
        self.0.iter().any(|(has, one)| has == name && one == value)
    }

    /// Returns the values of a field, in their order.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(has, _)| has == name).map(|(_, value)| value.as_str())
    }

    /// Returns a field that is not empty, without white space around it.
    pub(crate) fn filled(&self, name: &str) -> Option<&str> {
        self.get(name).map(str::trim).filter(|text| !text.is_empty())
    }

    pub(crate) fn owned(&self, name: &str) -> Option<String> {
        self.filled(name).map(str::to_owned)
    }

    /// Reads a field that is not empty; what is wrong is recorded.
    pub(crate) fn read<T>(
        &self,
        name: &str,
        expected: &str,
        wrong: &mut FieldErrors,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let read = parse(self.filled(name)?);
        wrong.note(name, read.ok_or_else(|| expected.to_owned()))
    }

    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn without(&self, names: &[&str]) -> Self {
        let kept = self.0.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        Self(kept.cloned().collect())
    }

    pub(crate) fn query(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.0).finish()
    }

    /// Returns the fields as a query, with one replaced, added, or with an empty value left out.
    pub(crate) fn query_with(&self, name: &str, value: &str) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (has, kept) in self.0.iter().filter(|(has, kept)| has != name && !kept.is_empty()) {
            query.append_pair(has, kept);
        }
        if !value.is_empty() {
            query.append_pair(name, value);
        }
        query.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_written_again() {
        let form = Form::parse(b"search=a+b%26&tag=x&tag=y&empty=&page=2&on=");
        assert_eq!(form.filled("search"), Some("a b&"));
        assert_eq!(form.filled("empty"), None);
        assert_eq!(form.all("tag").collect::<Vec<_>>(), ["x", "y"]);
        assert!(form.is_on("on") && !form.is_on("off"));
        assert_eq!(form.query_with("page", "3"), "search=a+b%26&tag=x&tag=y&page=3");
        assert_eq!(form.query_with("page", ""), "search=a+b%26&tag=x&tag=y");
    }
}
