//! Converts messages to commands of the application, and links to messages. An absent field stays
//! absent. In an edit an empty text, 0 or an empty list clears a field.

use app::{
    AppError, LinkFields,
    create_link::{CreateLink, IdempotencyKey},
    edit_link::Target,
    find_link::LinkName,
    key_names::Names,
    list_links::ListLinks,
};
use jiff::Timestamp;
use links::{Filter, Record, TAGS_MAX, TagsMode};
use prost::Message as _;
use proto::links::v1::{CreateLinkRequest, EditLinkRequest, Link, ListLinksRequest, Takedown};
use tonic::Status;

use crate::Api;

pub(super) fn name(short_code: String, domain: Option<String>) -> LinkName {
    LinkName { code: short_code, domain: text(domain) }
}

pub(super) fn idempotency(request: &CreateLinkRequest) -> Result<Option<IdempotencyKey>, AppError> {
    let Some(key) = &request.idempotency_key else { return Ok(None) };
    let canonical = CreateLinkRequest { password: None, idempotency_key: None, ..request.clone() };
    IdempotencyKey::new(key.as_bytes(), canonical.encode_to_vec()).map(Some)
}

pub(super) fn create_command(request: CreateLinkRequest) -> Result<CreateLink, Status> {
    let fields = LinkFields {
        long_url: Some(Some(request.long_url)),
        title: request.title.map(Some),
        description: request.description.map(Some),
        tags: Some(request.tags).filter(|tags| !tags.is_empty()).map(Some),
        valid_since: time("valid_since_ms", request.valid_since_ms)?.map(Some),
        valid_until: time("valid_until_ms", request.valid_until_ms)?.map(Some),
        max_visits: request.max_visits.map(Some),
        crawlable: request.crawlable.map(Some),
        forward_query: request.forward_query.map(Some),
        enabled: request.enabled.map(Some),
        redirect_status: request.redirect_status.map(|status| Some(u64::from(status))),
        extra_path: request.extra_path.map(Some),
        expired_url: request.expired_url.map(Some),
        preview: None,
        password: request.password.map(Some),
    };
    Ok(CreateLink {
        fields,
        custom_slug: request.custom_slug,
        path_prefix: request.path_prefix,
        short_code_length: request.short_code_length.map(u64::from),
        keyspace: request.keyspace,
        strategy: request.strategy,
        domain: request.domain,
        find_if_exists: request.find_if_exists,
        fetch_title: false,
        external_id: None,
    })
}

pub(super) fn edit_command(request: EditLinkRequest) -> Result<(Target, LinkFields), Status> {
    let edit = LinkFields {
        long_url: request.long_url.map(Some),
        title: request.title.map(or_cleared),
        description: request.description.map(or_cleared),
        tags: request.tags.map(|tags| Some(tags.tags)),
        valid_since: time_or_cleared("valid_since_ms", request.valid_since_ms)?,
        valid_until: time_or_cleared("valid_until_ms", request.valid_until_ms)?,
        max_visits: request.max_visits.map(or_cleared),
        crawlable: request.crawlable.map(Some),
        forward_query: request.forward_query.map(Some),
        enabled: request.enabled.map(Some),
        redirect_status: request.redirect_status.map(|status| or_cleared(u64::from(status))),
        extra_path: request.extra_path.map(or_cleared),
        expired_url: request.expired_url.map(or_cleared),
        preview: None,
        password: request.password.map(or_cleared),
    };
    let name = name(request.short_code, request.domain);
    Ok((Target { name, versions: request.version.map(|version| vec![version]) }, edit))
}

/// Converts a request for a page of links.
pub(super) fn list_command(request: ListLinksRequest) -> ListLinks {
    let tags = request.tags.into_iter().take(TAGS_MAX + 1).map(|tag| tag.trim().to_owned());
    let filter = Filter {
        page: request.page,
        per_page: Some(request.items_per_page).filter(|count| *count > 0),
        search: text(request.search),
        tags_mode: if request.all_tags { TagsMode::All } else { TagsMode::Any },
        ..Filter::default()
    };
    ListLinks {
        filter,
        domain: text(request.domain),
        order_by: text(request.order_by),
        tags: tags.collect(),
        ..ListLinks::default()
    }
}

/// Returns the message of a link that only says its name and version; `None` for a row without a
/// code or slug.
pub(super) fn link_name(api: &Api, Record { link, .. }: &Record) -> Option<Link> {
    let short_code = api.lookup.name_of(link)?;
    let short_url = format!("{}/{short_code}", api.base(link.domain()));
    Some(Link { short_code, short_url, version: link.version(), ..Link::default() })
}

/// Returns the message of a link; `None` for a row without a code or slug.
pub(super) fn link(api: &Api, record: &Record, names: &Names) -> Option<Link> {
    let Record { link, tags } = record;
    let details = link.details.as_deref().cloned().unwrap_or_default();
    let milliseconds = |time: Option<Timestamp>| time.map(Timestamp::as_millisecond);
    Some(Link {
        long_url: link.long_url.as_str().to_owned(),
        domain: api.domain_cache.shown_name(link.domain()),
        title: link.title.clone(),
        description: details.description,
        tags: tags.iter().map(ToString::to_string).collect(),
        created_at_ms: link.created_at.as_millisecond(),
        valid_since_ms: milliseconds(details.valid_since),
        valid_until_ms: milliseconds(details.valid_until),
        max_visits: details.max_visits,
        crawlable: link.crawlable,
        forward_query: link.forward_query,
        enabled: !details.disabled,
        redirect_status: details.status.map(|status| u32::from(u16::from(status))),
        extra_path: details.extra_path.map(|extra_path| extra_path.as_str().to_owned()),
        expired_url: details.expired_url.map(|url| url.as_str().to_owned()),
        has_password: details.password.is_some(),
        created_by: names.creator(link).map(str::to_owned),
        edited_by: names.editor(link).map(str::to_owned),
        edited_at_ms: milliseconds(details.edited_at),
        blocked: details
            .blocked
            .map(|block| Takedown { date_ms: block.at.as_millisecond(), reason: block.reason }),
        ..link_name(api, record)?
    })
}

/// Returns a text without surrounding white space, or `None` if it is blank.
fn text(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Returns the value of an edited field; `None`, which clears the field, for the type's default.
fn or_cleared<T: Default + PartialEq>(value: T) -> Option<T> {
    Some(value).filter(|value| *value != T::default())
}

fn time(name: &str, milliseconds: Option<i64>) -> Result<Option<Timestamp>, Status> {
    let parse = |milliseconds| {
        Timestamp::from_millisecond(milliseconds)
            .map_err(|_| Status::invalid_argument(format!("{name}: expected milliseconds since 1970")))
    };
    milliseconds.map(parse).transpose()
}

fn time_or_cleared(name: &str, milliseconds: Option<i64>) -> Result<Option<Option<Timestamp>>, Status> {
    match milliseconds {
        Some(0) => Ok(Some(None)),
        other => Ok(time(name, other)?.map(Some)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_in_a_message_is_absent_in_the_command_and_nothing_clears() {
        let long_url = "https://a.b/".to_owned();
        let request = CreateLinkRequest { long_url: long_url.clone(), ..CreateLinkRequest::default() };
        let fields = LinkFields { long_url: Some(Some(long_url)), ..LinkFields::default() };
        let expected = CreateLink { fields, ..CreateLink::default() };
        assert_eq!(create_command(request).unwrap(), expected);
        assert_eq!(edit_command(EditLinkRequest::default()).unwrap().1, LinkFields::default());
        let request = EditLinkRequest {
            title: Some(String::new()),
            valid_until_ms: Some(0),
            max_visits: Some(0),
            extra_path: Some(String::new()),
            expired_url: Some(String::new()),
            valid_since_ms: Some(1_700_000_000_123),
            tags: Some(proto::links::v1::Tags::default()),
            ..EditLinkRequest::default()
        };
        let expected = LinkFields {
            title: Some(None),
            tags: Some(Some(Vec::new())),
            valid_since: Some(Some("2023-11-14T22:13:20.123Z".parse().unwrap())),
            valid_until: Some(None),
            max_visits: Some(None),
            extra_path: Some(None),
            expired_url: Some(None),
            ..LinkFields::default()
        };
        assert_eq!(edit_command(request).unwrap().1, expected);
        let far = CreateLinkRequest { valid_until_ms: Some(i64::MAX), ..CreateLinkRequest::default() };
        assert!(create_command(far).unwrap_err().message().starts_with("valid_until_ms: expected"));
    }

    #[test]
    fn a_password_is_no_part_of_what_an_idempotency_key_is_for() {
        let request = |password: &str, title: &str| {
            let request = CreateLinkRequest {
                long_url: "https://a.b/".to_owned(),
                password: Some(password.to_owned()),
                title: Some(title.to_owned()),
                idempotency_key: Some("k".to_owned()),
                ..CreateLinkRequest::default()
            };
            idempotency(&request).unwrap()
        };
        assert_eq!(request("one", "a"), request("two", "a"));
        assert_ne!(request("one", "a"), request("one", "b"));
    }
}
