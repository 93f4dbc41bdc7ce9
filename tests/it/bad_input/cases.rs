//! Calls with an invalid body or query.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Case, INVALID, NO_TYPE, URL, case};

const MALFORMED: &str = "malformed-request-body";
/// The maximum length of a call's body in bytes. Redirect rules may be longer.
const BODY_BYTES: usize = 64 * 1024;
/// The maximum length of a redirect rules body in bytes: a hundred rules with twenty short
/// conditions each fit.
const RULES_BYTES: usize = 256 * 1024;
/// The maximum length of a domain's body in bytes, which may have two files of app links.
const DOMAIN_BYTES: usize = 320 * 1024;

/// Fields of a create that an edit ignores.
const OF_CREATES: [&str; 5] = ["customSlug", "pathPrefix", "shortCodeLength", "domain", "findIfExists"];

/// Returns a call whose body is refused with these fields as `invalidElements`.
fn invalid(method: Method, path: &str, body: &Value, fields: &[&str]) -> Case {
    case(method, path, 400, INVALID).body(body).names(fields)
}

/// Returns the calls that take a JSON object, each with the fields that an empty object lacks.
fn calls_with_a_body() -> Vec<(Method, &'static str, &'static [&'static str])> {
    vec![
        (Method::POST, "short-urls", &["longUrl"]),
        (Method::PATCH, "short-urls/x", &[]),
        (Method::POST, "short-urls/x/redirect-rules", &["redirectRules"]),
        (Method::PUT, "tags", &["oldName", "newName"]),
        (Method::PATCH, "domains/redirects", &["domain"]),
        (Method::PATCH, "domains/one.example", &[]),
        (Method::PUT, "targets", &["allowed", "pattern"]),
        (Method::POST, "reservations", &["count"]),
    ]
}

pub(super) fn bodies() -> Vec<Case> {
    let mut cases = Vec::new();
    for (method, path, fields) in calls_with_a_body() {
        for body in
            ["{", "[7]", "null", "7", "\"x\"", "longUrl=x", "{} x", "\0", "{\"a\":1,}", "{\"a\":\"\\ud800\"}"]
        {
            cases.push(case(method.clone(), path, 400, MALFORMED).bytes(body));
        }
        cases.push(case(method.clone(), path, 400, MALFORMED).bytes(vec![0xff; 8]));
        cases.push(case(method.clone(), path, 400, MALFORMED).bytes("[".repeat(BODY_BYTES)));
        let most = match path {
            "short-urls/x/redirect-rules" => RULES_BYTES,
            "domains/one.example" => DOMAIN_BYTES,
            _ => BODY_BYTES,
        };
        cases.push(case(method.clone(), path, 413, NO_TYPE).bytes(" ".repeat(most + 1)));
        // A missing key is refused before the body is read, so it takes precedence over a malformed
        // body.
        cases.push(
            case(method.clone(), path, 401, "missing-authentication").bytes("{").by(super::Who::Nobody),
        );
        if !fields.is_empty() {
            cases.push(case(method.clone(), path, 400, INVALID).names(fields));
            cases.push(invalid(method, path, &json!({}), fields));
        }
    }
    cases
}

/// Returns the fields that creates and edits share, and two unknown ones, each with invalid values.
fn wrong_values() -> Vec<(&'static str, Vec<Value>)> {
    let many: Vec<String> = (0..101).map(|n| format!("t{n}")).collect();
    let fields = [
        ("longUrl", json!([7, [URL], {}, true])),
        ("title", json!([7, [], "a\0b"])),
        ("description", json!([7, {}, "a\0b", "x".repeat(4_097)])),
        ("tags", json!(["x", {}, [7], [""], ["a\u{7}"], ["x".repeat(256)], many, vec!["a"; 101]])),
        ("maxVisits", json!(["0", "x", "", "5.5", 0, -1, 1.5, 9_223_372_036_854_775_808_u64, true])),
        ("validSince", json!([7, "soon", "", "2026-02-30", "2026-11-22T25:00:00Z"])),
        ("validUntil", json!([[], "2026-13-01", "2026-11-22T10:00 noon", "99999-01-01", 2030])),
        ("crawlable", json!(["on", "yes", 2])),
        ("forwardQuery", json!(["no", "on", []])),
        ("enabled", json!(["yes", "no", -1])),
        ("redirectStatus", json!(["200", "303", 200, 303, 301.5, -301, 65_837])),
        ("extraPath", json!([7, "", "up", "fill", "Fill", ["fill"]])),
        ("expiredUrl", json!([7, "", "/over", "ftp://x.y/", "javascript:1", []])),
        (
            "preview",
            json!([
                "T",
                [],
                { "image": "/a.png" },
                { "image": "ftp://e.example/a.png" },
                { "image": "mailto:a@e.example" },
                { "title": 7 },
                { "title": "a\0b" },
                { "title": "x".repeat(513) },
                { "colour": "red" },
            ]),
        ),
        ("password", json!([7, "", "a\nb", "x".repeat(257)])),
        ("meta", json!([{ "maxVisits": 1 }])),
        ("colour", json!(["red", null])),
    ];
    fields.into_iter().map(|(field, values)| (field, values.as_array().unwrap().clone())).collect()
}

/// Returns the fields that only creates have, each with invalid values.
fn wrong_values_of_creates() -> Vec<(&'static str, Vec<Value>)> {
    vec![
        ("findIfExists", vec![json!("TRUE"), json!(2), json!({})]),
        ("fetchTitle", vec![json!("yes"), json!(2)]),
        ("externalId", vec![json!(7), json!(""), json!("a\nb"), json!("x".repeat(256))]),
        (
            "customSlug",
            vec![
                json!(7),
                json!(""),
                json!("/"),
                json!("a?b"),
                json!("a#b"),
                json!("a//b"),
                json!(".."),
                json!("rest"),
                json!("rest/x"),
                json!("robots.txt"),
                json!("favicon.ico"),
                json!("promo/qr-code"),
                json!("x".repeat(256)),
            ],
        ),
        ("pathPrefix", vec![json!(7), json!("a?b/"), json!("a//"), json!("rest/"), json!("x".repeat(250))]),
        ("strategy", vec![json!(7), json!("guess"), json!("random")]),
        ("keyspace", vec![json!(7), json!("none"), json!("")]),
        ("shortCodeLength", vec![json!("0"), json!("five"), json!(0), json!(256), json!(-1), json!(1.5)]),
        (
            "domain",
            vec![json!(7), json!(""), json!("a b"), json!("a:0"), json!("127.0.0.1"), json!("???/&%$&")],
        ),
    ]
}

pub(super) fn fields() -> Vec<Case> {
    let mut cases = Vec::new();
    for (field, values) in wrong_values().into_iter().chain(wrong_values_of_creates()) {
        for value in values {
            let mut create = json!({ "longUrl": URL });
            create[field] = value.clone();
            cases.push(invalid(Method::POST, "short-urls", &create, &[field]));
            // Shlink's clients send the fields of a create with an edit too.
            if !OF_CREATES.contains(&field) {
                cases.push(invalid(Method::PATCH, "short-urls/x", &json!({ field: value }), &[field]));
            }
        }
    }
    let several = json!({ "longUrl": "ftp://x.y/", "title": 7, "colour": 1, "maxVisits": 0 });
    cases.push(invalid(Method::POST, "short-urls", &json!({ "longUrl": null }), &["longUrl"]));
    cases.push(invalid(Method::POST, "short-urls", &several, &["longUrl", "title", "colour", "maxVisits"]));
    cases
}

pub(super) fn long_urls(own: &str) -> Vec<Case> {
    let long = format!("https://example.com/{}", "a".repeat(8_192));
    let urls = [
        "",
        " ",
        "example.com",
        "//example.com/",
        "https://",
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "ftp://x.y/",
        "data:text/html,x",
        "file:///etc/passwd",
        "http://user:pw@example.com/",
        "http://user@example.com/",
        "http://exa mple.com/",
        "https://example.com\\@evil.example",
        "https:evil.example",
        "https://@evil.example",
        "https://example.com/a b",
        "https://example.com/a\nb",
        "https://example.com/a\r\nSet-Cookie: a=b",
        "https://example.com/\0",
        "https://exa\tmple.com/",
        "https://example.com/\u{7f}",
        "https://example.com/\u{85}a",
        "https://example.com/\u{2028}a",
        "https://denied.example/",
        "https://a.denied.example./x",
        "https://192.0.2.7/",
        "https://0300.0.2.7/",
        &long,
        own,
    ];
    let mut cases = Vec::new();
    for url in urls {
        cases.push(invalid(Method::POST, "short-urls", &json!({ "longUrl": url }), &["longUrl"]));
        cases.push(invalid(Method::PATCH, "short-urls/x", &json!({ "longUrl": url }), &["longUrl"]));
        let rules = json!({ "redirectRules": [{ "longUrl": URL, "conditions": [] }, { "longUrl": url, "conditions": [] }] });
        cases.push(invalid(
            Method::POST,
            "short-urls/x/redirect-rules",
            &rules,
            &["redirectRules.1.longUrl"],
        ));
    }
    cases
}

pub(super) fn rules() -> Vec<Case> {
    let rule = |conditions: Value| json!({ "longUrl": URL, "conditions": conditions });
    let one = |kind: &str, key: Value, value: Value| {
        rule(json!([{ "type": kind, "matchKey": key, "matchValue": value }]))
    };
    let share = |percent: &str| one("share", Value::Null, json!(percent));
    let device = json!({ "type": "device", "matchValue": "ios" });
    let path = json!({ "type": "path", "matchValue": "/*" });
    let of_value = "redirectRules.0.conditions.0.matchValue";
    let of_key = "redirectRules.0.conditions.0.matchKey";
    let of_type = "redirectRules.0.conditions.0.type";
    [
        (Value::Null, "redirectRules"),
        (json!("x"), "redirectRules"),
        (json!({}), "redirectRules"),
        (json!(vec![rule(json!([])); 101]), "redirectRules"),
        (json!([7]), "redirectRules.0"),
        (json!([{ "longUrl": URL }]), "redirectRules.0.conditions"),
        (json!([{ "conditions": [] }]), "redirectRules.0.longUrl"),
        (json!([rule(json!([])), rule(json!("x"))]), "redirectRules.1.conditions"),
        (json!([rule(json!(vec![device; 21]))]), "redirectRules.0.conditions"),
        (json!([rule(json!([7]))]), of_type),
        (json!([rule(json!([{}]))]), of_type),
        (json!([one("moon", Value::Null, json!("full"))]), of_type),
        (json!([rule(json!([{ "type": 7 }]))]), of_type),
        (json!([one("device", Value::Null, json!("toaster"))]), of_value),
        (json!([one("device", Value::Null, Value::Null)]), of_value),
        (json!([one("device", Value::Null, json!(7))]), of_value),
        (json!([one("browser", Value::Null, json!("netscape"))]), of_value),
        (json!([one("language", Value::Null, json!(""))]), of_value),
        (json!([one("query-param", Value::Null, json!("1"))]), of_key),
        (json!([one("query-param", json!(7), json!("1"))]), of_key),
        (json!([one("query-param", json!("k".repeat(256)), json!("1"))]), of_key),
        (json!([one("any-value-query-param", json!(""), Value::Null)]), of_key),
        (json!([one("ip-address", Value::Null, json!("1.2.3"))]), of_value),
        (json!([one("geolocation-country-code", Value::Null, json!("de"))]), of_value),
        (json!([one("before-date", Value::Null, json!("tomorrow"))]), of_value),
        (json!([one("before-date", Value::Null, json!(1_827_000_000_000_u64))]), of_value),
        (json!([one("after-date", Value::Null, json!(-1_827_000_000_i64))]), of_value),
        (json!([one("after-date", Value::Null, json!(true))]), of_value),
        (json!([one("query-param", json!("k"), json!(1_827_000_000))]), of_value),
        (json!([one("path", Value::Null, json!("docs/*"))]), of_value),
        (json!([rule(json!([path, path]))]), "redirectRules.0.conditions.1.matchValue"),
        (json!([one("scheme", Value::Null, json!("ftp"))]), of_value),
        (json!([one("after-date", Value::Null, json!("x".repeat(256)))]), of_value),
        (json!([share("100")]), of_value),
        (json!([one("share", Value::Null, json!(50))]), of_value),
        (json!([share("60"), rule(json!([])), share("41")]), "redirectRules.2.conditions.0.matchValue"),
    ]
    .into_iter()
    .map(|(rules, field)| {
        invalid(Method::POST, "short-urls/x/redirect-rules", &json!({ "redirectRules": rules }), &[field])
    })
    .collect()
}

pub(super) fn domains_tags_and_targets() -> Vec<Case> {
    let redirects = |body: Value, fields: &[&str]| invalid(Method::PATCH, "domains/redirects", &body, fields);
    let domain = |body: Value, fields: &[&str]| invalid(Method::PATCH, "domains/one.example", &body, fields);
    let tags = |body: Value, fields: &[&str]| invalid(Method::PUT, "tags", &body, fields);
    let target = |body: Value, fields: &[&str]| invalid(Method::PUT, "targets", &body, fields);
    let mut cases = vec![
        redirects(json!({ "domain": 7 }), &["domain"]),
        redirects(json!({ "domain": "a b" }), &["domain"]),
        redirects(json!({ "domain": "new.example", "baseUrlRedirect": 7 }), &["baseUrlRedirect"]),
        redirects(json!({ "domain": "new.example", "regular404Redirect": "a\nb" }), &["regular404Redirect"]),
        redirects(
            json!({ "domain": "new.example", "invalidShortUrlRedirect": "x".repeat(2_049) }),
            &["invalidShortUrlRedirect"],
        ),
        redirects(json!({ "domain": "new.example", "colour": "red" }), &["colour"]),
        domain(json!({ "domain": "a b" }), &["domain"]),
        domain(json!({ "domain": 7 }), &["domain"]),
        domain(json!({ "enabled": "no" }), &["enabled"]),
        domain(json!({ "protocol": "gopher" }), &["protocol"]),
        domain(json!({ "protocol": 7 }), &["protocol"]),
        domain(json!({ "ignoreCase": "no", "ignoreTrailing": 2 }), &["ignoreCase", "ignoreTrailing"]),
        domain(json!({ "catchAll": 2 }), &["catchAll"]),
        domain(json!({ "extraPath": "up" }), &["extraPath"]),
        domain(json!({ "extraPath": 7 }), &["extraPath"]),
        domain(json!({ "expiredUrl": "over" }), &["expiredUrl"]),
        domain(json!({ "expiredUrl": 7 }), &["expiredUrl"]),
        domain(json!({ "queryTemplate": "?a={tag}" }), &["queryTemplate"]),
        domain(json!({ "queryTemplate": ["a=1"] }), &["queryTemplate"]),
        domain(
            json!({ "appleAppSiteAssociation": { "applinks": [] }, "assetLinks": "[{}]" }),
            &["appleAppSiteAssociation", "assetLinks"],
        ),
        domain(json!({ "assetLinks": [{ "include": "x".repeat(128 * 1024) }] }), &["assetLinks"]),
        domain(json!({ "colour": "red" }), &["colour"]),
        tags(json!({ "oldName": 7, "newName": [] }), &["oldName", "newName"]),
        tags(json!({ "oldName": "a" }), &["newName"]),
        tags(json!({ "oldName": "a", "newName": " " }), &["newName"]),
        tags(json!({ "oldName": "a", "newName": "x".repeat(256) }), &["newName"]),
        target(json!({ "pattern": 7, "allowed": "no" }), &["allowed", "pattern"]),
        target(json!({ "pattern": "x.example" }), &["allowed"]),
        target(json!({ "pattern": "x.example", "allowed": true, "colour": "red" }), &["colour"]),
    ];
    for pattern in ["", "*.*.example", "a/b", "x.example:80", "https://x.example", "*.192.0.2.7", "a b"] {
        cases.push(target(json!({ "pattern": pattern, "allowed": false }), &["pattern"]));
    }
    for (body, field) in [
        (json!({ "count": 0 }), "count"),
        (json!({ "count": 100_001 }), "count"),
        (json!({ "count": "7" }), "count"),
        (json!({ "count": 1, "keyspace": "none" }), "keyspace"),
        (json!({ "count": 1, "keyspace": 7 }), "keyspace"),
        (json!({ "count": 1, "colour": 1 }), "colour"),
    ] {
        cases.push(invalid(Method::POST, "reservations", &body, &[field]));
    }
    cases
}

pub(super) fn queries() -> Vec<Case> {
    let paged = [
        "tags",
        "tags/stats",
        "short-urls",
        "short-urls/x/visits",
        "tags/a/visits",
        "domains/DEFAULT/visits",
        "visits/orphan",
        "visits/non-orphan",
    ];
    let mut cases = Vec::new();
    let mut wrong = |path: &str, query: &str, field: &str| {
        cases.push(case(Method::GET, format!("{path}?{query}"), 400, INVALID).names(&[field]));
    };
    for path in paged {
        for (query, field) in [
            ("page=two", "page"),
            ("page=99999999999999999999", "page"),
            ("itemsPerPage=many", "itemsPerPage"),
        ] {
            wrong(path, query, field);
        }
    }
    // Lists of visits and tags take them for the first page, and for all items.
    for (query, field) in [
        ("page=0", "page"),
        ("page=-1", "page"),
        ("itemsPerPage=0", "itemsPerPage"),
        ("itemsPerPage=-2", "itemsPerPage"),
    ] {
        wrong("short-urls", query, field);
    }
    for path in &paged[2..] {
        wrong(path, "startDate=soon", "startDate");
        wrong(path, "endDate=2026-13-01", "endDate");
    }
    for (query, field) in [
        ("orderBy=colour", "orderBy"),
        ("orderBy=title-down", "orderBy"),
        ("tagsMode=some", "tagsMode"),
        ("excludeTagsMode=some", "excludeTagsMode"),
        ("excludePastValidUntil=maybe", "excludePastValidUntil"),
        ("excludeMaxVisitsReached=2", "excludeMaxVisitsReached"),
        ("searchTerm=%00", "(the query)"),
        ("tags[]=%00", "(the query)"),
    ] {
        wrong("short-urls", query, field);
    }
    wrong("visits/orphan", "type=colour", "type");
    wrong("visits/orphan", "type=BASE_URL", "type");
    wrong("audit", "before=now", "before");
    wrong("history", "shortCode=x&before=now", "before");
    wrong("history", "domain=DEFAULT", "shortCode");
    cases
}
