//! Messages as the fields of a body and the pairs of a query. What is absent in a message is absent there.

use jiff::Timestamp;
use links::TAGS_MAX;
use proto::links::v1::{CreateLinkRequest, EditLinkRequest, ListLinksRequest};
use serde_json::{Map, Value, json};
use tonic::Status;

/// The fields of a link to be created.
pub(super) fn of_create(request: CreateLinkRequest) -> Result<Map<String, Value>, Status> {
    let mut fields = Fields::default();
    fields.put("longUrl", Some(request.long_url));
    fields.put("customSlug", request.custom_slug);
    fields.put("pathPrefix", request.path_prefix);
    fields.put("shortCodeLength", request.short_code_length);
    fields.put("keyspace", request.keyspace);
    fields.put("strategy", request.strategy);
    fields.put("domain", request.domain);
    fields.put("title", request.title);
    fields.put("description", request.description);
    fields.put("tags", Some(request.tags).filter(|tags| !tags.is_empty()));
    fields.put("validSince", time("valid_since_ms", request.valid_since_ms)?);
    fields.put("validUntil", time("valid_until_ms", request.valid_until_ms)?);
    fields.put("maxVisits", request.max_visits);
    fields.put("crawlable", request.crawlable);
    fields.put("forwardQuery", request.forward_query);
    fields.put("enabled", request.enabled);
    fields.put("redirectStatus", request.redirect_status);
    fields.put("password", request.password);
    fields.put("findIfExists", Some(true).filter(|_| request.find_if_exists));
    Ok(fields.0)
}

/// The fields of an edit. Null takes something away.
pub(super) fn of_edit(request: EditLinkRequest) -> Result<Map<String, Value>, Status> {
    let mut fields = Fields::default();
    fields.put("longUrl", request.long_url);
    fields.put("title", request.title.map(text));
    fields.put("description", request.description.map(text));
    fields.put("tags", request.tags.map(|tags| tags.tags));
    fields.put("validSince", end("valid_since_ms", request.valid_since_ms)?);
    fields.put("validUntil", end("valid_until_ms", request.valid_until_ms)?);
    fields.put("maxVisits", request.max_visits.map(number));
    fields.put("crawlable", request.crawlable);
    fields.put("forwardQuery", request.forward_query);
    fields.put("enabled", request.enabled);
    fields.put("redirectStatus", request.redirect_status.map(|status| number(status.into())));
    fields.put("password", request.password.map(text));
    Ok(fields.0)
}

/// The pairs of a list's query.
pub(super) fn of_list(request: ListLinksRequest) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut put =
        |name: &str, value: Option<String>| pairs.extend(value.map(|value| (name.to_owned(), value)));
    put("page", Some(request.page).filter(|page| *page > 0).map(|page| page.to_string()));
    put(
        "itemsPerPage",
        Some(request.items_per_page).filter(|count| *count > 0).map(|count| count.to_string()),
    );
    put("searchTerm", request.search);
    put("domain", request.domain);
    put("orderBy", request.order_by);
    put("tagsMode", Some("all".to_owned()).filter(|_| request.all_tags));
    // One more than there may be is refused.
    pairs.extend(request.tags.into_iter().take(TAGS_MAX + 1).map(|tag| ("tags[]".to_owned(), tag)));
    pairs
}

#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, name: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), value.into());
        }
    }
}

fn text(text: String) -> Value {
    if text.is_empty() { Value::Null } else { Value::String(text) }
}

fn number(number: u64) -> Value {
    if number == 0 { Value::Null } else { json!(number) }
}

fn time(name: &str, milliseconds: Option<i64>) -> Result<Option<String>, Status> {
    let parse = |milliseconds| {
        let time = Timestamp::from_millisecond(milliseconds).map(|time| time.to_string());
        time.map_err(|_| Status::invalid_argument(format!("{name}: expected milliseconds since 1970")))
    };
    milliseconds.map(parse).transpose()
}

/// 0 takes a time away.
fn end(name: &str, milliseconds: Option<i64>) -> Result<Option<Value>, Status> {
    match milliseconds {
        Some(0) => Ok(Some(Value::Null)),
        other => Ok(time(name, other)?.map(Value::String)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_in_a_message_is_absent_in_the_body_and_nothing_takes_away() {
        let create =
            CreateLinkRequest { long_url: "https://a.b/".to_owned(), ..CreateLinkRequest::default() };
        assert_eq!(Value::Object(of_create(create).unwrap()), json!({ "longUrl": "https://a.b/" }));
        assert_eq!(Value::Object(of_edit(EditLinkRequest::default()).unwrap()), json!({}));
        let edit = EditLinkRequest {
            title: Some(String::new()),
            valid_until_ms: Some(0),
            max_visits: Some(0),
            valid_since_ms: Some(1_700_000_000_123),
            tags: Some(proto::links::v1::Tags::default()),
            ..EditLinkRequest::default()
        };
        let expected = json!({
            "title": null, "tags": [], "validSince": "2023-11-14T22:13:20.123Z", "validUntil": null, "maxVisits": null
        });
        assert_eq!(Value::Object(of_edit(edit).unwrap()), expected);
        let far = CreateLinkRequest { valid_until_ms: Some(i64::MAX), ..CreateLinkRequest::default() };
        assert!(of_create(far).unwrap_err().message().starts_with("valid_until_ms: expected"));
    }
}
