//! Kutt's API v2. Its key is in the header `X-API-KEY`.
//!
//! Kutt names a link by a UUID, and this service by its code. The UUID has the link's number in the
//! database: 16 hexadecimal digits, of which 8 are its beginning, 4 follow, and 4 are its end, with
//! version 8 (RFC 9562) and zeros between them.

use app::{
    AppError, Field, FieldErrors, LinkFields, create_link::CreateLink, edit_link::Target,
    find_link::LinkName, list_links::ListLinks, visit_stats::VisitCount,
};
use codes::LinkId;
use hyper::StatusCode;
use jiff::{SignedDuration, Span, Timestamp, tz::TimeZone};
use links::{Filter, Record};
use serde_json::{Map, Value, json};
use store::VisitTotals;
use visits::{series::Interval, tally::Dimension};
use web::{Answer, TEXT, answer as with_body};

use crate::{
    call::Call,
    failure::Failure,
    link::{Shown, hours_before, json as json_answer, with_scheme},
};

const LIST: (u64, u64) = (10, 50);
const LIFETIME_MIN: SignedDuration = SignedDuration::from_mins(1);
const LIFETIME: &str = "expected a time of at least a minute, such as 2 minutes, 8h or 42 days";
const FIELDS: [(&str, &str); 3] =
    [("longUrl", "target"), ("customSlug", "customurl"), ("validUntil", "expire_in")];
/// The periods of statistics: their names, hours, and points of which length.
const PERIODS: [(&str, i64, Interval, usize); 4] = [
    ("lastYear", 365 * 24, Interval::Month, 12),
    ("lastDay", 24, Interval::Hour, 24),
    ("lastMonth", 30 * 24, Interval::Day, 30),
    ("lastWeek", 7 * 24, Interval::Day, 7),
];
const DIMENSIONS: [(Dimension, &str); 4] = [
    (Dimension::Browser, "browser"),
    (Dimension::Os, "os"),
    (Dimension::Country, "country"),
    (Dimension::Referrer, "referrer"),
];

/// Returns whether a call needs no key.
pub(crate) fn is_open(call: &Call) -> bool {
    call.path_after("/api/v2/") == "health"
}

pub(crate) async fn answer(call: &Call) -> Result<Answer, Failure> {
    let segments: Vec<&str> = call.path_after("/api/v2/").split('/').collect();
    let body = match (call.http.method.as_str(), &*segments) {
        ("GET" | "HEAD", ["health"]) => return Ok(with_body(StatusCode::OK, TEXT, "OK")),
        ("GET", ["users"]) => user(call).await?,
        ("GET", ["links"]) => list(call).await?,
        ("POST", ["links"]) => return create(call).await,
        ("PATCH", ["links", id]) => edit(call, find(call, id).await?).await?,
        ("DELETE", ["links", id]) => {
            let target = Target { name: find(call, id).await?, versions: None };
            call.api().links.delete_link(&target, call.by()?).await?;
            json!({ "message": "Link has been deleted successfully." })
        }
        ("GET", ["links", id, "stats"]) => stats(call, find(call, id).await?).await?,
        _ => return Err(call.no_route()),
    };
    Ok(json_answer(StatusCode::OK, &body))
}

pub(crate) fn refuse(failure: &Failure) -> Answer {
    let error = match failure.status() {
        StatusCode::UNAUTHORIZED => "Unauthorized.".to_owned(),
        _ => failure.text(&FIELDS),
    };
    json_answer(failure.status(), &json!({ "error": error }))
}

fn uuid(id: LinkId) -> String {
    let number = id.get().cast_unsigned();
    format!("{:08x}-{:04x}-8000-8000-{:012x}", number >> 32, number >> 16 & 0xffff, number & 0xffff)
}

fn id_of(text: &str) -> Option<LinkId> {
    let [first, second, _, _, last] = text.split('-').collect::<Vec<_>>()[..] else { return None };
    let digits = [first, second, last.strip_prefix("00000000")?].concat();
    let id = LinkId::from_stored(u64::from_str_radix(&digits, 16).ok()?.cast_signed());
    (uuid(id) == text).then_some(id)
}

async fn find(call: &Call, uuid: &str) -> Result<LinkName, Failure> {
    let unknown = || AppError::NoLink(LinkName { code: uuid.to_owned(), domain: None });
    let id = id_of(&uuid.to_ascii_lowercase()).ok_or_else(unknown)?;
    Ok(call.api().links.name_of_id(id, call.by()?).await?)
}

fn link(call: &Call, shown: &Shown<'_>, visits: VisitTotals) -> Value {
    let details = shown.record.link.details();
    let created_at = shown.record.link.created_at;
    json!({
        "id": uuid(shown.record.link.id),
        "address": shown.name,
        "description": shown.description,
        "banned": details.blocked.is_some(),
        "password": details.password.is_some(),
        "expire_in": details.valid_until.map(time),
        "target": shown.long_url,
        "visit_count": visits.non_bots(),
        "created_at": time(created_at),
        "updated_at": time(details.edited_at.unwrap_or(created_at)),
        "domain": call.api().domain_cache.shown_name(shown.record.link.domain()),
        "link": shown.short_url,
    })
}

fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

async fn list(call: &Call) -> Result<Value, Failure> {
    let limit = call.query.number("limit").filter(|limit| *limit > 0).unwrap_or(LIST.0).min(LIST.1);
    let skip = call.query.number("skip").unwrap_or_default();
    let filter = Filter { search: call.query.owned("search"), ..Filter::default() };
    let show = |record: &Record, visits| Ok(link(call, &call.shown(record, None)?, visits));
    let request = ListLinks { filter, ..ListLinks::default() };
    let (data, total) = call.list(&request, (skip, limit), show).await?;
    Ok(json!({ "total": total, "limit": limit, "skip": skip, "data": data }))
}

/// Reads the fields that creates and edits share.
fn fields(call: &Call, wrong: &mut FieldErrors) -> LinkFields {
    let body = &call.body;
    let valid_until = body.text("expire_in").map(|text| {
        let end = end_of(text, call.api().domain_cache.now());
        wrong.check(Field::ValidUntil, end.ok_or_else(|| LIFETIME.to_owned()))
    });
    LinkFields {
        long_url: body.text("target").map(|url| Some(with_scheme(url))),
        description: body.owned("description").map(Some),
        password: body.owned("password").map(Some),
        valid_until,
        ..LinkFields::default()
    }
}

async fn create(call: &Call) -> Result<Answer, Failure> {
    let (body, mut wrong) = (&call.body, FieldErrors::default());
    let fields = fields(call, &mut wrong);
    let sent = fields.long_url.clone().flatten();
    let request = CreateLink {
        fields,
        custom_slug: body.owned("customurl"),
        domain: body.owned("domain"),
        find_if_exists: body.is_on("reuse"),
        ..CreateLink::default()
    };
    let (status, record) = call.create(request, wrong).await?;
    Ok(json_answer(status, &shown_with_visits(call, &record, sent.as_deref()).await?))
}

async fn edit(call: &Call, name: LinkName) -> Result<Value, Failure> {
    let mut wrong = FieldErrors::default();
    let mut fields = fields(call, &mut wrong);
    if call.body.is_cleared("password") {
        fields.password = Some(None);
    }
    if call.body.text("address").is_some_and(|address| address != name.code) {
        wrong.add("address", "the address of a link does not change here");
    }
    let (sent, target) = (fields.long_url.clone().flatten(), Target { name, versions: None });
    let record = call.api().links.edit_link(&target, fields, wrong, call.by()?).await?;
    shown_with_visits(call, &record, sent.as_deref()).await
}

async fn shown_with_visits(call: &Call, record: &Record, sent: Option<&str>) -> Result<Value, Failure> {
    Ok(link(call, &call.shown(record, sent)?, call.visits_of(record).await?))
}

/// Returns the end of a lifetime such as `2 minutes`, `8h` or `42 days`.
fn end_of(lifetime: &str, now: Timestamp) -> Option<Timestamp> {
    let lifetime: Span = lifetime.to_ascii_lowercase().parse().ok()?;
    let end = now.to_zoned(TimeZone::UTC).checked_add(lifetime).ok()?.timestamp();
    let is_long = end.duration_since(now) >= LIFETIME_MIN;
    // In the resolution of the store.
    Timestamp::from_millisecond(end.as_millisecond()).ok().filter(|_| is_long)
}

async fn stats(call: &Call, name: LinkName) -> Result<Value, Failure> {
    let record = call.api().links.get_link(&name, call.by()?).await?;
    let now = call.api().domain_cache.now();
    let mut all = Map::new();
    for (period, hours, interval, count) in PERIODS {
        let dimensions = DIMENSIONS.map(|(dimension, _)| dimension);
        let stats = call.stats(&name, (Some(hours_before(now, hours)), None), interval, &dimensions).await?;
        // Points begin with hours, days and months of the clock, so that one may be too many.
        let points = &stats.current.points;
        let views: Vec<u64> =
            points[points.len().saturating_sub(count)..].iter().map(|(_, visits)| visits.total).collect();
        let missing = count - views.len();
        let views: Vec<u64> = std::iter::repeat_n(0, missing).chain(views).collect();
        let mut ranked = Map::new();
        for ((_, values), (_, dimension)) in stats.dimensions.iter().zip(DIMENSIONS) {
            let value = |(value, visits): &(String, VisitCount)| json!({ "name": value.to_ascii_lowercase(), "value": visits.total });
            ranked.insert(dimension.to_owned(), values.iter().map(value).collect());
        }
        let total: u64 = views.iter().sum();
        all.insert(period.to_owned(), json!({ "stats": ranked, "views": views, "total": total }));
    }
    all.insert("updatedAt".to_owned(), json!(time(now)));
    if let Value::Object(members) = shown_with_visits(call, &record, None).await? {
        all.extend(members);
    }
    Ok(all.into())
}

/// Describes the key as Kutt describes a user.
async fn user(call: &Call) -> Result<Value, Failure> {
    let by = call.by()?;
    let domains = call.api().links.domains(false, by).await?;
    let shown = domains.iter().filter(|domain| !domain.is_default).map(|domain| {
        json!({ "address": domain.name, "banned": false, "homepage": domain.settings.redirects.base_url })
    });
    Ok(json!({ "apikey": null, "email": &*by.name, "domains": shown.collect::<Vec<_>>() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_stands_for_one_link_and_others_for_none() {
        for number in [1, -1, 0x1234_5678_9abc, i64::MAX, i64::MIN] {
            let uuid = uuid(LinkId::from_stored(number));
            assert_eq!((uuid.len(), id_of(&uuid).map(LinkId::get)), (36, Some(number)), "{uuid}");
        }
        assert_eq!(uuid(LinkId::from_stored(0x1234_5678_9abc)), "00001234-5678-8000-8000-000000009abc");
        for text in [
            "",
            "00001234-5678-4000-8000-000000009abc",
            "00001234-5678-8000-8000-000100009abc",
            "00001234-5678-8000-8000-00000000+abc",
            "00001234-5678-8000-8000-9abc",
        ] {
            assert_eq!(id_of(text), None, "{text}");
        }
    }

    #[test]
    fn lifetimes_are_read_as_kutt_reads_them() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let minutes = |text| end_of(text, now).map(|end| end.duration_since(now).as_mins());
        for (text, expected) in [
            ("2 minutes", Some(2)),
            ("1m", Some(1)),
            ("8h", Some(480)),
            ("42 Days", Some(42 * 24 * 60)),
            ("59s", None),
            ("-2 days", None),
            ("soon", None),
            ("9999999999999999999y", None),
            ("", None),
        ] {
            assert_eq!(minutes(text), expected, "{text}");
        }
    }
}
