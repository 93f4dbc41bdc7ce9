//! Bitly's API v4. Its key is a bearer token.
//!
//! A link is called `DOMAIN/CODE`. Clients that only know Bitly send its own domains, which mean
//! the default one here. There is one group, whose id is fixed.

use app::{
    AppError, FieldErrors, LinkFields, create_link::CreateLink, edit_link::Target, find_link::LinkName,
    values::read_time,
};
use hyper::{StatusCode, header::AUTHORIZATION};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value, json};
use visits::{
    series::Interval,
    tally::{Dimension, OTHER},
};
use web::Answer;

use crate::{
    call::{Call, decoded},
    failure::{Failure, renamed},
    link::{Shown, hours_before, json as json_answer},
};

const GROUP: &str = "Bshortmint01";
const BITLY: [&str; 3] = ["bit.ly", "j.mp", "bitly.com"];
const FIELDS: [(&str, &str); 3] = [("longUrl", "long_url"), ("customSlug", "keyword"), ("interval", "unit")];
const FORBIDDEN: &str = "You are currently forbidden to access this resource.";

/// A metric of the clicks on a bitlink.
#[derive(Clone, Copy)]
enum Metric {
    /// Clicks per unit of time.
    Clicks,
    /// All clicks.
    Summary,
    /// Clicks per value of a dimension, and the name of that value in answers.
    By(Dimension, &'static str),
}

/// Metrics by the last segments of their paths.
const METRICS: [(&str, Metric); 6] = [
    ("clicks", Metric::Clicks),
    ("clicks/summary", Metric::Summary),
    ("countries", Metric::By(Dimension::Country, "value")),
    ("devices", Metric::By(Dimension::Device, "device_type")),
    ("referrers", Metric::By(Dimension::Referrer, "value")),
    ("referring_domains", Metric::By(Dimension::Referrer, "value")),
];

/// Returns the key of the call; empty without one.
pub(crate) fn key(call: &Call) -> &str {
    key_in(call.header(AUTHORIZATION.as_str()))
}

/// Returns the key in a header. The npm package `bitly` sends it without a scheme.
fn key_in(header: &str) -> &str {
    match header.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => key.trim(),
        Some(_) => "",
        None => header,
    }
}

pub(crate) async fn answer(call: &Call) -> Result<Answer, Failure> {
    let path = call.path_after("/v4/");
    let body = match (call.http.method.as_str(), path) {
        ("POST", "shorten" | "bitlinks") => return create(call, path == "bitlinks").await,
        ("POST", "expand") => {
            let name = name_of(call, call.body.text("bitlink_id").unwrap_or_default())?;
            let record = call.api().links.get_link(&name, call.by()?).await?;
            let shown = call.shown(&record, None)?;
            let created_at = time(record.link.created_at);
            let (id, link) = (id_of(&shown), &shown.short_url);
            json!({ "created_at": created_at, "link": link, "id": id, "long_url": shown.long_url })
        }
        ("GET", "user") => user(call)?,
        ("GET", "groups") => {
            json!({ "groups": [{ "guid": GROUP, "name": "Shortmint", "is_active": true, "bsds": [] }] })
        }
        (method, path) => {
            let link = path.strip_prefix("bitlinks/").ok_or_else(|| call.no_route())?;
            let metric = metric_of(link);
            let name = name_of(call, &decoded(metric.map_or(link, |(link, ..)| link)));
            match (method, metric) {
                ("GET", Some((_, facet, metric))) => clicks(call, &name?, facet, metric).await?,
                ("GET", None) => {
                    let record = call.api().links.get_link(&name?, call.by()?).await?;
                    bitlink(&call.shown(&record, None)?, true)
                }
                ("PATCH", None) => edit(call, name?).await?,
                _ => return Err(call.no_route()),
            }
        }
    };
    Ok(json_answer(StatusCode::OK, &body))
}

pub(crate) fn refuse(failure: &Failure) -> Answer {
    let (status, invalid) = (failure.status(), failure.invalid());
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        let body = json!({ "message": "FORBIDDEN", "description": FORBIDDEN, "resource": "bitlinks" });
        return json_answer(StatusCode::FORBIDDEN, &body);
    }
    let message = match invalid {
        [..] if failure.is_own_url() => "ALREADY_A_BITLY_LINK".to_owned(),
        [first, ..] => format!("INVALID_ARG_{}", renamed(&first.field, &FIELDS)),
        [] if failure.is_taken() => "KEYWORD_UNAVAILABLE".to_owned(),
        [] => status.canonical_reason().unwrap_or("ERROR").replace(' ', "_"),
    };
    let error = |field: &str| json!({ "field": renamed(field, &FIELDS), "error_code": "invalid" });
    let body = json!({
        "message": message.to_ascii_uppercase(),
        "description": failure.text(&FIELDS),
        "resource": "bitlinks",
        "errors": invalid.iter().map(|one| error(&one.field)).collect::<Vec<_>>(),
    });
    json_answer(status, &body)
}

/// Splits a path below `bitlinks/` into a bitlink and a metric.
fn metric_of(path: &str) -> Option<(&str, &'static str, Metric)> {
    METRICS.into_iter().find_map(|(end, metric)| {
        let link = path.strip_suffix(end)?.strip_suffix('/')?;
        Some((link, end, metric))
    })
}

/// Returns the name that a bitlink stands for, with or without a scheme.
fn name_of(call: &Call, bitlink: &str) -> Result<LinkName, Failure> {
    let bitlink = bitlink.split_once("://").map_or(bitlink, |(_, rest)| rest);
    let expected = "expected a domain, a slash and a code";
    let name = call.name_of_short_url(bitlink).ok_or_else(|| AppError::invalid("bitlink_id", expected))?;
    Ok(LinkName { domain: own_domain(name.domain), ..name })
}

/// Returns a domain; `None` for the default one, which Bitly's own stand for.
fn own_domain(domain: Option<String>) -> Option<String> {
    domain.filter(|domain| !BITLY.contains(&domain.as_str()))
}

fn id_of<'a>(shown: &'a Shown<'_>) -> &'a str {
    shown.short_url.split_once("://").map_or("", |(_, id)| id)
}

fn bitlink(shown: &Shown<'_>, is_full: bool) -> Value {
    let mut body = json!({
        "created_at": time(shown.record.link.created_at),
        "id": id_of(shown),
        "link": shown.short_url,
        "custom_bitlinks": [],
        "long_url": shown.long_url,
        "archived": false,
        "tags": shown.tags,
        "deeplinks": [],
        "references": { "group": format!("/v4/groups/{GROUP}") },
    });
    if is_full {
        body["title"] = json!(shown.title.unwrap_or_default());
    }
    body
}

fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S+0000").to_string()
}

/// Creates a link, unless there is one for the long URL. A link with a word of its own is new.
async fn create(call: &Call, is_full: bool) -> Result<Answer, Failure> {
    let body = &call.body;
    let custom_slug = body.owned("keyword").filter(|_| is_full);
    let fields = LinkFields {
        long_url: Some(body.owned("long_url")),
        title: body.owned("title").filter(|_| is_full).map(Some),
        tags: body.texts("tags").filter(|_| is_full).map(Some),
        ..LinkFields::default()
    };
    let request = CreateLink {
        fields,
        find_if_exists: custom_slug.is_none(),
        custom_slug,
        domain: own_domain(body.owned("domain")),
        ..CreateLink::default()
    };
    let (status, record) = call.create(request, FieldErrors::default()).await?;
    Ok(json_answer(status, &bitlink(&call.shown(&record, body.text("long_url"))?, is_full)))
}

async fn edit(call: &Call, name: LinkName) -> Result<Value, Failure> {
    let (body, mut wrong) = (&call.body, FieldErrors::default());
    if body.is_on("archived") {
        wrong.add("archived", "links are not archived here: delete the link, or disable it");
    }
    let title = body.owned("title").map(Some);
    let fields = LinkFields {
        long_url: body.owned("long_url").map(Some),
        title: if body.is_cleared("title") { Some(None) } else { title },
        tags: body.texts("tags").map(Some),
        ..LinkFields::default()
    };
    let target = Target { name, versions: None };
    let record = call.api().links.edit_link(&target, fields, wrong, call.by()?).await?;
    Ok(bitlink(&call.shown(&record, body.text("long_url"))?, true))
}

/// Counts visits by people, the latest first: of all times, or in so many units up to a time.
async fn clicks(call: &Call, name: &LinkName, facet: &str, metric: Metric) -> Result<Value, Failure> {
    let unit = call.query.text("unit").unwrap_or("day");
    let (interval, hours) = match unit {
        "hour" => (Interval::Hour, 1),
        "day" => (Interval::Day, 24),
        "week" => (Interval::Week, 7 * 24),
        "month" => (Interval::Month, 31 * 24),
        _ => return Err(AppError::invalid("unit", "expected hour, day, week or month").into()),
    };
    let reference = call.query.text("unit_reference").map(|text| read_time(text, &TimeZone::UTC)).transpose();
    let reference = reference.map_err(|expected| AppError::invalid("unit_reference", expected))?;
    let units = call.query.number("units").map(|units| u32::try_from(units).unwrap_or(u32::MAX));
    let end = reference.unwrap_or_else(|| call.api().domain_cache.now());
    let start = units.map(|units| hours_before(end, i64::from(units) * hours));
    let dimension = match metric {
        Metric::By(dimension, _) => Some(dimension),
        Metric::Clicks | Metric::Summary => None,
    };
    let stats = call.stats(name, (start, reference), interval, dimension.as_slice()).await?;
    let most = units.map_or(usize::MAX, |units| units as usize);
    let points = stats.current.points.iter().rev().take(most).filter(|(_, visits)| visits.total > 0);
    let units = units.map_or(json!(-1), Value::from);
    let mut body = json!({ "unit_reference": time(end), "units": units, "unit": unit });
    match metric {
        Metric::Summary => body["total_clicks"] = json!(points.map(|(_, visits)| visits.total).sum::<u64>()),
        Metric::Clicks => {
            let shown = points.map(|(start, visits)| {
                let date = Timestamp::from_microsecond(*start).map(time).unwrap_or_default();
                json!({ "clicks": visits.total, "date": date })
            });
            body["link_clicks"] = shown.collect();
        }
        Metric::By(dimension, member) => {
            let values = stats.dimensions.iter().flat_map(|(_, values)| values);
            let shown = values.filter(|(_, visits)| visits.total > 0).map(|(value, visits)| {
                json!({ "clicks": visits.total, member: in_bitlys_words(dimension, value) })
            });
            body["metrics"] = shown.collect();
            body["facet"] = json!(facet);
        }
    }
    Ok(body)
}

/// Returns the word that Bitly has for a value of a dimension.
fn in_bitlys_words(dimension: Dimension, value: &str) -> &str {
    match (value, dimension) {
        ("", Dimension::Referrer) => "direct",
        ("", _) => "unknown",
        (OTHER, _) => "other",
        _ => value,
    }
}

/// Describes the key as Bitly describes a user.
fn user(call: &Call) -> Result<Value, Failure> {
    let name = &*call.by()?.name;
    Ok(json!({ "login": name, "name": name, "is_active": true, "emails": [], "default_group_guid": GROUP }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_needs_no_scheme_but_has_no_other_than_bearer() {
        for (header, key) in
            [("Bearer abc", "abc"), ("bearer  abc", "abc"), ("abc", "abc"), ("Basic abc", ""), ("", "")]
        {
            assert_eq!(key_in(header), key, "{header}");
        }
    }

    #[test]
    fn metrics_are_behind_a_bitlink() {
        let split = |path| metric_of(path).map(|(link, facet, _)| (link, facet));
        for (path, expected) in [
            ("bit.ly/a/clicks", Some(("bit.ly/a", "clicks"))),
            ("bit.ly/a/clicks/summary", Some(("bit.ly/a", "clicks/summary"))),
            ("bit.ly/a/countries", Some(("bit.ly/a", "countries"))),
            ("bit.ly/a%2Fclicks", None),
            ("bit.ly/clicks", Some(("bit.ly", "clicks"))),
            ("clicks", None),
            ("bit.ly/a", None),
        ] {
            assert_eq!(split(path), expected, "{path}");
        }
    }
}
