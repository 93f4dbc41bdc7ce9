//! YOURLS' API: one address, actions, and three formats.
//!
//! 1. The API key is the `signature`, or the `password` with any user name; or it is in the header
//!    `X-Api-Key`. Signatures that expire (`timestamp`) are digests of a secret that this service
//!    does not store, so they are not supported.
//! 2. Most clients send it in the query of a GET, which proxies log. There it may have the scope
//!    `create` only, or be a key for its own links with `create`, `read` and `visits`.
//! 3. As by YOURLS' default, a long URL has one link: another create for it fails with
//!    `error:url`, and names the link.

use api::{AuthError, rest::Problem};
use app::{
    AppError, FieldErrors, LinkFields, create_link::CreateLink, find_link::LinkName, list_links::ListLinks,
};
use hyper::{Method, StatusCode};
use jiff::Timestamp;
use links::{Record, api_key::Grant, scope::Scope};
use serde_json::{Map, Value, json};
use store::VisitTotals;
use web::{Answer, TEXT, answer as with_body};

use crate::{
    call::Call,
    failure::Failure,
    link::{Shown, json as json_answer, with_scheme},
};

/// The version that clients may expect.
const VERSION: &str = "1.10.4";
/// Maximum number of links in the answer to `stats`.
const LIST_MAX: u64 = 100;
const NO_TEXT: &str = "Need either XML or JSON format for stats";
const KEY_IN_ADDRESS: &str = "This API key may do too much to be part of an address. Send it in the body \
    of a POST, or use one with the scope create only, or one for its own links with create, read and visits.";
const TIMED_SIGNATURE: &str =
    "Signatures with a timestamp are not supported. Send the API key as signature, and no timestamp.";
const FIELDS: [(&str, &str); 2] = [("longUrl", "url"), ("customSlug", "keyword")];

/// What an action returns: members for JSON and XML, and the text of the format `simple`.
struct Output {
    members: Value,
    simple: String,
}

/// Returns a parameter of the body or the query; that of the body first, as in PHP.
fn text<'a>(call: &'a Call, name: &str) -> Option<&'a str> {
    call.body.text(name).or_else(|| call.query.text(name))
}

pub(crate) async fn authenticate(call: &Call) -> Result<(), Failure> {
    if text(call, "timestamp").is_some() {
        return Err(Failure::Key(TIMED_SIGNATURE));
    }
    let header = Some(call.header("x-api-key")).filter(|key| !key.is_empty());
    let sent = call.body.text("signature").or_else(|| call.body.text("password")).or(header);
    let in_address = || call.query.text("signature").or_else(|| call.query.text("password"));
    call.authenticate(sent.or_else(in_address).unwrap_or_default()).await?;
    if sent.is_none() && !may_be_in_address(call.by()?) { Err(Failure::Key(KEY_IN_ADDRESS)) } else { Ok(()) }
}

/// Returns whether a key may be part of an address: what its finder could do is create links, and
/// read those that were created with it.
fn may_be_in_address(key: &Grant) -> bool {
    Scope::ALL.into_iter().filter(|scope| key.scopes.allow(*scope)).all(|scope| match scope {
        Scope::Create => true,
        Scope::Read | Scope::Visits => key.limits.own_links_only,
        Scope::Edit | Scope::Delete | Scope::Reserve | Scope::Domains | Scope::Admin => false,
    })
}

pub(crate) async fn answer(call: &Call) -> Result<Answer, Failure> {
    if !matches!(call.http.method, Method::GET | Method::POST) {
        return Err(call.no_route());
    }
    let output = match text(call, "action") {
        Some("shorturl") => shorten(call).await?,
        Some("expand") => expand(call).await?,
        Some("url-stats") => url_stats(call).await?,
        Some("stats") => stats(call).await?,
        Some("db-stats") => Output {
            members: json!({ "db-stats": totals(call).await?, "statusCode": "200", "message": "success" }),
            simple: NO_TEXT.to_owned(),
        },
        Some("version") => Output { members: json!({ "version": VERSION }), simple: VERSION.to_owned() },
        _ => failed("Unknown or missing \"action\" parameter", "400"),
    };
    Ok(write(call, output))
}

/// Answers a call that failed without a result of its own.
pub(crate) fn refuse(call: &Call, failure: &Failure) -> Answer {
    let message = match failure {
        Failure::Api(Problem::Auth(AuthError::NoKey)) => "Please log in".to_owned(),
        failure => failure.text(&FIELDS),
    };
    let status = match failure.status() {
        StatusCode::UNAUTHORIZED => StatusCode::FORBIDDEN,
        status => status,
    };
    write(call, failed(&message, status.as_str()))
}

fn failed(message: &str, code: &str) -> Output {
    Output { members: json!({ "message": message, "errorCode": code }), simple: message.to_owned() }
}

async fn shorten(call: &Call) -> Result<Output, Failure> {
    let long_url = text(call, "url").map(with_scheme);
    let (keyword, title) = (text(call, "keyword"), text(call, "title"));
    let sent = long_url.as_deref().unwrap_or_default();
    let fields = LinkFields {
        long_url: Some(long_url.clone()),
        title: title.map(|title| Some(title.to_owned())),
        ..LinkFields::default()
    };
    let custom_slug = keyword.map(str::to_owned);
    let request = CreateLink { fields, custom_slug, find_if_exists: true, ..CreateLink::default() };
    let (status, record) = match call.create(request, FieldErrors::default()).await {
        Ok(made) => made,
        Err(failure) => return not_created(keyword, failure),
    };
    let mut shown = call.shown(&record, Some(sent))?;
    if status == StatusCode::OK {
        let visits = call.visits_of(&record).await?;
        let short_url = shown.short_url.split_once("://").map_or("", |(_, rest)| rest);
        let message = format!("{sent} already exists in database (short URL: {short_url})");
        let mut url = members_of(call, &shown, None);
        url["clicks"] = json!(visits.total.to_string());
        return Ok(created("error:url", &message, Some((&shown, url))));
    }
    shown.title = shown.title.or(title);
    let message = format!("{sent} added to database");
    let url = members_of(call, &shown, Some(call.http.client.to_string()));
    Ok(created("", &message, Some((&shown, url))))
}

/// Returns the output of a create that YOURLS has a code for, or the failure itself.
fn not_created(keyword: Option<&str>, failure: Failure) -> Result<Output, Failure> {
    let is_wrong = |field: &str| failure.invalid().iter().any(|one| one.field == field);
    let is_taken = failure.is_taken();
    let (code, message) = if is_taken || is_wrong("customSlug") {
        let keyword = keyword.unwrap_or_default();
        let reason = if is_taken { String::new() } else { format!(" ({})", failure.text(&FIELDS)) };
        let message = format!("Short URL {keyword} already exists in database or is reserved{reason}");
        ("error:keyword", message)
    } else if failure.is_own_url() {
        ("error:noloop", "URL is a short URL".to_owned())
    } else if is_wrong("longUrl") {
        ("error:nourl", format!("Missing or malformed URL ({})", failure.text(&FIELDS)))
    } else {
        return Err(failure);
    };
    Ok(created(code, &message, None))
}

/// Returns the output of a create. The code says why it failed, and is empty if it did not.
fn created(code: &str, message: &str, link: Option<(&Shown<'_>, Value)>) -> Output {
    let (status, error_code, status_code) =
        if code.is_empty() { ("success", "", "200") } else { ("fail", "400", "400") };
    let mut members = json!({
        "status": status,
        "code": code,
        "message": message,
        "errorCode": error_code,
        "statusCode": status_code,
    });
    let Some((shown, url)) = link else { return Output { members, simple: String::new() } };
    let title = url["title"].clone();
    members["url"] = url;
    members["title"] = title;
    members["shorturl"] = json!(shown.short_url);
    Output { members, simple: shown.short_url.clone() }
}

/// Returns the members of a link that was created. Addresses of creators are not stored.
fn members_of(call: &Call, shown: &Shown<'_>, ip: Option<String>) -> Value {
    json!({
        "keyword": shown.name,
        "url": shown.long_url,
        "title": shown.title.unwrap_or(shown.long_url),
        "date": date(call, shown.record.link.created_at),
        "ip": ip.unwrap_or_default(),
    })
}

/// Returns the name that a short URL or a keyword stands for.
fn asked(call: &Call) -> LinkName {
    let text = text(call, "shorturl").unwrap_or_default();
    let in_url = text.split_once("://").and_then(|(_, rest)| call.name_of_short_url(rest));
    in_url.unwrap_or_else(|| LinkName { code: text.to_owned(), domain: None })
}

async fn expand(call: &Call) -> Result<Output, Failure> {
    let name = asked(call);
    let record = match call.api().links.get_link(&name, call.by()?).await {
        Ok(record) => record,
        Err(AppError::NoLink(_)) => {
            let members = json!({
                "keyword": name.code, "message": "Error: short URL not found", "errorCode": "404",
            });
            return Ok(Output { members, simple: "not found".to_owned() });
        }
        Err(error) => return Err(error.into()),
    };
    let shown = call.shown(&record, None)?;
    let members = json!({
        "keyword": shown.name,
        "shorturl": shown.short_url,
        "longurl": shown.long_url,
        "title": shown.title.unwrap_or(shown.long_url),
        "message": "success",
        "statusCode": "200",
    });
    Ok(Output { members, simple: shown.long_url.to_owned() })
}

async fn url_stats(call: &Call) -> Result<Output, Failure> {
    let (service, by) = (&call.api().links, call.by()?);
    let members = match service.get_link(&asked(call), by).await {
        Ok(record) => {
            let visits = service.visit_totals(&[record.link.id], by).await?;
            let visits = visits.get(&record.link.id).copied().unwrap_or_default();
            let link = listed(call, &call.shown(&record, None)?, visits);
            json!({ "statusCode": "200", "message": "success", "link": link })
        }
        Err(AppError::NoLink(_)) => json!({ "statusCode": "404", "message": "Error: short URL not found" }),
        Err(error) => return Err(error.into()),
    };
    Ok(Output { members, simple: NO_TEXT.to_owned() })
}

/// Returns the members of a link in lists.
fn listed(call: &Call, shown: &Shown<'_>, visits: VisitTotals) -> Value {
    json!({
        "shorturl": shown.short_url,
        "url": shown.long_url,
        "title": shown.title.unwrap_or(shown.long_url),
        "timestamp": date(call, shown.record.link.created_at),
        "ip": "",
        "clicks": visits.total.to_string(),
    })
}

async fn stats(call: &Call) -> Result<Output, Failure> {
    let number = |name| text(call, name).and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
    let limit = number("limit").min(LIST_MAX);
    let order = match text(call, "filter") {
        Some("bottom") => "visits-ASC",
        // Nothing is drawn at random.
        Some("last" | "rand" | "random") => "dateCreated-DESC",
        _ => "visits-DESC",
    };
    let mut members = Map::new();
    if limit > 0 {
        let request = ListLinks { order_by: Some(order.to_owned()), ..ListLinks::default() };
        let show = |record: &Record, visits| Ok(listed(call, &call.shown(record, None)?, visits));
        let (links, _) = call.list(&request, (number("start"), limit), show).await?;
        let named = links.into_iter().enumerate().map(|(place, link)| (format!("link_{}", place + 1), link));
        let named: Map<String, Value> = named.collect();
        if !named.is_empty() {
            members.insert("links".to_owned(), named.into());
        }
    }
    members.insert("stats".to_owned(), totals(call).await?);
    members.insert("statusCode".to_owned(), json!("200"));
    members.insert("message".to_owned(), json!("success"));
    Ok(Output { members: members.into(), simple: NO_TEXT.to_owned() })
}

/// Counts links and visits.
async fn totals(call: &Call) -> Result<Value, Failure> {
    let (_, links) = call.list(&ListLinks::default(), (0, 1), |_, _| Ok(Value::Null)).await?;
    let visits = call.api().links.visits_overview(call.by()?).await?.links.total;
    Ok(json!({ "total_links": links, "total_clicks": visits }))
}

fn date(call: &Call, at: Timestamp) -> String {
    at.to_zoned(call.api().time_zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Writes an output in the format of the call, XML by default. Its status is one of its members.
fn write(call: &Call, Output { members, simple }: Output) -> Answer {
    let code = |name: &str| StatusCode::from_bytes(members[name].as_str()?.as_bytes()).ok();
    let status = code("statusCode").or_else(|| code("errorCode")).unwrap_or(StatusCode::OK);
    match text(call, "format").unwrap_or("xml") {
        "json" => json_answer(status, &members),
        "xml" => {
            let head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";
            let body = format!("{head}\n<root>{}</root>\n", xml(&members));
            with_body(status, "application/xml; charset=utf-8", body)
        }
        _ => with_body(status, TEXT, simple),
    }
}

/// Writes members as elements. Their names are those in this file, which are names in XML too.
fn xml(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            members.iter().map(|(name, value)| format!("<{name}>{}</{name}>", xml(value))).collect()
        }
        Value::String(text) => {
            let escaped = |one: char| match one {
                '&' => "&amp;".to_owned(),
                '<' => "&lt;".to_owned(),
                '>' => "&gt;".to_owned(),
                '\t' | '\n' | '\r' => one.to_string(),
                // Not in XML, not even escaped.
                one if one.is_control() || matches!(one, '\u{fffe}' | '\u{ffff}') => String::new(),
                one => one.to_string(),
            };
            text.chars().map(escaped).collect()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use links::{
        api_key::{ApiKeyId, KeyLimits, SecretNumber},
        scope::Scopes,
    };

    use super::*;

    #[test]
    fn an_address_has_keys_that_create_and_read_their_own_links() {
        let key = |scopes: &str, own_links_only| Grant {
            id: ApiKeyId(1),
            secret: SecretNumber(1),
            name: Arc::from("n8n"),
            scopes: scopes.parse::<Scopes>().unwrap(),
            limits: KeyLimits { own_links_only, ..KeyLimits::default() },
        };
        for (scopes, own_links_only, expected) in [
            ("create", false, true),
            ("create,read,visits", true, true),
            ("create,read", false, false),
            ("create,visits", false, false),
            ("create,edit", true, false),
            ("create,delete", true, false),
            ("create,reserve", true, false),
            ("create,domains", true, false),
            ("admin", true, false),
        ] {
            assert_eq!(may_be_in_address(&key(scopes, own_links_only)), expected, "{scopes}");
        }
    }

    #[test]
    fn xml_has_the_members_and_texts_are_escaped() {
        let members = json!({ "title": "a & <b>\u{1}", "links": { "link_1": { "clicks": 1 } }, "code": "" });
        let expected =
            "<title>a &amp; &lt;b&gt;</title><links><link_1><clicks>1</clicks></link_1></links><code></code>";
        assert_eq!(xml(&members), expected);
    }
}
