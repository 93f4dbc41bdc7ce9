//! What calls are answered with, as schemas. They name every field that there is; more may come, so that clients pass over what they do not
//! know.

use links::{Browser, CONDITION_TYPES, Device, Protocol, RedirectStatus, audit::Action};
use serde_json::{Map, Value, json};

use super::{nullable, operation::reference, ours, text};

/// All schemas of answers, by name.
pub(super) fn schemas() -> Map<String, Value> {
    let mut all = Map::new();
    for group in
        [links(), rules(), lists(), tags(), visits(), domains(), reservations(), batches(), service()]
    {
        if let Value::Object(group) = group {
            all.extend(group);
        }
    }
    all
}

/// An object that always has all of these fields.
fn full(description: &str, fields: Value) -> Value {
    let required: Vec<String> =
        fields.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default();
    json!({ "type": "object", "description": description, "properties": fields, "required": required })
}

fn time(description: &str) -> Value {
    text(description, &[("format", json!("date-time"))])
}

fn flag(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

fn number(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": description })
}

fn list(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn links() -> Value {
    let status: Vec<u16> = (300..400).filter(|status| RedirectStatus::try_from(*status).is_ok()).collect();
    let status: Vec<Value> = status.into_iter().map(Value::from).chain([Value::Null]).collect();
    let fields = json!({
        "shortUrl": text("What visitors ask for.", &[]),
        "shortCode": text("Its code, or the slug that a person picked.", &[]),
        "longUrl": text("Where it leads, as it was written.", &[]),
        "dateCreated": time("When it was created."),
        "tags": { "type": "array", "items": { "type": "string" }, "description": "Its tags." },
        "meta": reference("LinkLimits"),
        "domain": nullable(text("Its domain; null for the default one, `(removed)` for one that is gone.", &[])),
        "title": nullable(text("What a person calls it.", &[])),
        "crawlable": flag("Whether robots may follow it."),
        "forwardQuery": flag("Whether the visitor's query goes along."),
        "visitsSummary": reference("VisitsSummary"),
        "hasRedirectRules": flag("Whether it leads some visitors elsewhere."),
        "description": ours(nullable(text("What a person says of it.", &[]))),
        "enabled": ours(flag("Whether it redirects at all.")),
        "redirectStatus": ours(json!({ "enum": status, "description": "The status of its redirects; null for that of all others." })),
        "hasPassword": ours(flag("Whether visitors are asked for a password.")),
        "createdBy": ours(nullable(text("The name of the key that created it; null on the operator's command line.", &[]))),
        "editedBy": ours(nullable(text("The name of the key that edited it last; null when it was never edited, too.", &[]))),
        "editedAt": ours(nullable(time("When it was last edited."))),
        "version": ours(number("Grows with each edit; what `ETag` says.")),
        "deletedAt": ours(nullable(time("When it was deleted; null for a link that is there."))),
        "blocked": ours(json!({
            "anyOf": [reference("Takedown"), { "type": "null" }],
            "description": "Why an operator took it down; null for a link that was not.",
        })),
    });
    json!({
        "ShortUrl": full("A link.", fields),
        "Takedown": ours(full("Why and when an operator took a link down.", json!({
            "reason": text("Why, in the operator's words.", &[]),
            "date": time("When."),
        }))),
        "LinkLimits": full("When and how often it redirects.", json!({
            "validSince": nullable(time("Before this it does not redirect.")),
            "validUntil": nullable(time("From this time on it does not redirect.")),
            "maxVisits": { "type": ["integer", "null"], "minimum": 1, "description": "How often it redirects." },
        })),
        "ShortUrlPage": page("shortUrls", "A page of links.", &reference("ShortUrl")),
    })
}

fn rules() -> Value {
    let condition = full(
        "What is asked of a visitor.",
        json!({
            "type": { "enum": CONDITION_TYPES, "description": "What is looked at." },
            "matchKey": nullable(text("The name of a query parameter, where the type needs one.", &[])),
            "matchValue": nullable(text(
                &format!(
                    "What it has to be. Devices are {}; browsers are {}.",
                    Device::names().join(", "),
                    Browser::names().join(", ")
                ),
                &[],
            )),
        }),
    );
    let rule = full(
        "Another place to go, for visitors who meet all conditions.",
        json!({
            "longUrl": text("Where they go.", &[]),
            "priority": { "type": "integer", "minimum": 1, "description": "The place among the rules; 1 is tried first." },
            "conditions": list(&reference("Condition")),
        }),
    );
    let rules = full(
        "The rules of a link.",
        json!({
            "defaultLongUrl": text("Where all others go.", &[]),
            "redirectRules": list(&reference("RedirectRule")),
        }),
    );
    json!({ "Condition": condition, "RedirectRule": rule, "RedirectRules": rules })
}

fn page(name: &str, description: &str, items: &Value) -> Value {
    let page = full(description, json!({ "data": list(items), "pagination": reference("Pagination") }));
    full(description, json!({ name: page }))
}

fn lists() -> Value {
    let pagination = full(
        "Which part of a list this is. An empty list has one page.",
        json!({
            "currentPage": number("The page that was asked for, from 1."),
            "pagesCount": number("How many pages there are."),
            "itemsPerPage": number("How many items a page has."),
            "itemsInCurrentPage": number("How many items this page has."),
            "totalItems": number("How many items there are on all pages. Of very long lists of links that there are so many, if not more."),
        }),
    );
    json!({ "Pagination": pagination })
}

fn tags() -> Value {
    let stats = full(
        "A tag, and what is known of it.",
        json!({
            "tag": text("Its name.", &[]),
            "shortUrlsCount": number("How many links have it."),
            "visitsSummary": reference("VisitsSummary"),
        }),
    );
    json!({
        "TagStats": stats,
        "TagPage": page("tags", "A page of tags.", &json!({ "type": "string" })),
        "TagStatsPage": page("tags", "A page of tags with their counts.", &reference("TagStats")),
    })
}

fn visits() -> Value {
    let location = full(
        "Where a visitor was.",
        json!({
            "countryCode": text("Two letters of ISO 3166-1.", &[]),
            "countryName": text("The country.", &[]),
            "regionName": text("The region.", &[]),
            "cityName": text("The city.", &[]),
            "latitude": { "type": "number" },
            "longitude": { "type": "number" },
            "timezone": text("The name of a time zone.", &[]),
            "isEmpty": flag("Whether nothing of it is known."),
        }),
    );
    let mut visit = full(
        "A visit. None are kept by this version.",
        json!({
            "referer": text("Where the visitor came from.", &[]),
            "date": time("When it was."),
            "userAgent": text("What the visitor's browser calls itself.", &[]),
            "visitLocation": { "anyOf": [reference("VisitLocation"), { "type": "null" }] },
            "potentialBot": flag("Whether it looks like a bot's."),
            "visitedUrl": nullable(text("What was asked for.", &[])),
            "redirectUrl": nullable(text("Where it led.", &[])),
        }),
    );
    visit["properties"]["type"] = json!({ "enum": super::super::visits::ORPHANS, "description": "The kind of a visit that no link has led on." });
    json!({
        "VisitsSummary": full("Counts of visits. None are counted by this version, so that all are 0.", json!({
            "total": number("All of them."),
            "nonBots": number("Those of people."),
            "bots": number("Those of bots."),
        })),
        "VisitLocation": location,
        "Visit": visit,
        "VisitPage": page("visits", "A page of visits, the latest first.", &reference("Visit")),
        "VisitsOverview": full("Counts of all visits.", json!({
            "visits": full("Counts of all visits.", json!({
                "nonOrphanVisits": reference("VisitsSummary"),
                "orphanVisits": reference("VisitsSummary"),
            })),
        })),
        "DeletedVisits": full("What was deleted.", json!({ "deletedVisits": number("How many visits.") })),
    })
}

fn domains() -> Value {
    let target = |from: &str| nullable(text(&format!("Where visitors go {from}."), &[]));
    let domain = full(
        "A domain.",
        json!({
            "domain": text("Its name, with its port if it has one.", &[]),
            "isDefault": flag("Whether it is the one of `--public-url`."),
            "redirects": reference("DomainRedirects"),
            "enabled": ours(flag("Whether its links lead anywhere.")),
            "protocol": ours(json!({
                "enum": [Protocol::Http.as_str(), Protocol::Https.as_str(), null],
                "description": "What its short URLs begin with; null for that of `--public-url`.",
            })),
        }),
    );
    let list = full(
        "All domains.",
        json!({
            "data": list(&reference("Domain")),
            "defaultRedirects": reference("DomainRedirects"),
        }),
    );
    json!({
        "DomainRedirects": full("Where visitors go that no link leads on; null for a page of the service.", json!({
            "baseUrlRedirect": target("from the domain itself"),
            "regular404Redirect": target("from a path that no code could have"),
            "invalidShortUrlRedirect": target("from a code that leads nowhere"),
        })),
        "Domain": domain,
        "DomainList": full("All domains.", json!({ "domains": list })),
    })
}

fn reservations() -> Value {
    let mut reservation = full(
        "Codes before links.",
        json!({
            "id": text("Its id.", &[("pattern", json!("^[0-9a-f]{32}$"))]),
            "keyspace": text("The keyspace of its codes; empty for one that this resolver does not know any more.", &[]),
            "count": number("How many codes it has."),
            "dateCreated": time("When it was made."),
            "dateClosed": nullable(time("When it was given up.")),
        }),
    );
    reservation["properties"]["filled"] = number("How many of them have links. Not in lists.");
    reservation["properties"]["shortCodes"] =
        json!({ "type": "array", "items": { "type": "string" }, "description": "Its codes. Not in lists." });
    let data = full("Reservations.", json!({ "data": list(&reference("Reservation")) }));
    json!({
        "Reservation": ours(reservation),
        "ReservationList": ours(full("Reservations, the latest first.", json!({ "reservations": data }))),
    })
}

/// Results of calls for many links: which words there are, and what each means.
fn batches() -> Value {
    let expected = json!({
        "type": "object", "additionalProperties": { "type": "string" },
        "description": "With `invalid`: what was expected, field by field.",
    });
    let result = |words: &[(&str, &str)]| {
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let meanings: Vec<String> =
            words.iter().map(|(word, meaning)| format!("`{word}`: {meaning}.")).collect();
        json!({ "enum": names, "description": meanings.join(" ") })
    };
    let created = result(&[
        ("created", "a new link"),
        ("invalid", "nothing was created, and `expected` says why"),
        ("exhausted", "every code of the keyspace is taken"),
        ("taken", "another link has the code"),
        ("unavailable", "the database or the issuer of numbers does not answer at the moment"),
    ]);
    let filled = result(&[
        ("stored", "it is stored, by this call or by an earlier copy of it"),
        ("invalid", "nothing was stored, and `expected` says why"),
        ("not-reserved", "the code is not of this reservation"),
        ("repeated", "the code came before in the same call"),
        ("conflict", "another link is stored under the code"),
        ("failed", "surely not stored: it may be sent again"),
        ("unknown", "nobody knows: it may be sent again as it is"),
    ]);
    let code = |when: &str| text(&format!("The code {when}."), &[]);
    let url = |when: &str| text(&format!("With `{when}`: what visitors ask for."), &[]);
    json!({
        "BatchResult": ours(json!({
            "type": "object", "description": "What became of an item.", "required": ["result"],
            "properties": { "result": created, "shortCode": code("that it got"), "shortUrl": url("created"), "expected": expected },
        })),
        "BatchResults": ours(full("A result for each item, in their order.", json!({ "results": list(&reference("BatchResult")) }))),
        "FillResult": ours(json!({
            "type": "object", "description": "What became of an item.", "required": ["shortCode", "result"],
            "properties": {
                "shortCode": { "description": "What came as its code." },
                "result": filled, "shortUrl": url("stored"), "expected": expected,
            },
        })),
        "FillResults": ours(full("A result for each item, in their order.", json!({ "results": list(&reference("FillResult")) }))),
    })
}

fn service() -> Value {
    let actions = [
        Action::EditLink,
        Action::DeleteLink,
        Action::RestoreLink,
        Action::BlockLink,
        Action::UnblockLink,
        Action::RenameTag,
        Action::DeleteTag,
        Action::EditDomain,
        Action::RemoveDomain,
        Action::SetTarget,
        Action::RemoveTarget,
        Action::CreateKey,
        Action::RevokeKey,
        Action::RotateKey,
    ];
    let entry = full(
        "Something that was done.",
        json!({
            "id": { "type": "integer", "format": "int64", "description": "Its number; grows with time." },
            "date": time("When."),
            "apiKey": nullable(text("The name of the key that it was done with; null on the operator's command line.", &[])),
            "action": text("What was done.", &[("examples", json!(actions.map(Action::as_str)))]),
            "subject": text("To what: a link's code, a tag, a domain, a pattern, a key's name.", &[]),
            "domain": nullable(text("A link's domain; null for the default one, `(removed)` for one that is gone.", &[])),
            "details": { "description": "What it came to. Of an edited link or domain `changed` has each changed field with its value before and after." },
        }),
    );
    let page = full(
        "Entries, the latest first.",
        json!({
            "data": list(&reference("AuditEntry")),
            "before": { "type": ["integer", "null"], "description": "What leads to the next page; null at the end." },
        }),
    );
    let targets = full("All rules about targets.", json!({ "data": list(&reference("Target")) }));
    let about = json!({ "about": text("The API's makers.", &[]), "project": text("Their program.", &[]) });
    json!({
        "TargetList": ours(full("All rules about targets.", json!({ "targets": targets }))),
        "AuditEntry": ours(entry),
        "AuditPage": ours(full("A page of the log.", json!({ "audit": page }))),
        "Health": full("Whether the database answers.", json!({
            "status": { "enum": ["pass", "fail"] },
            "version": text("The level of Shlink's API.", &[("examples", json!([super::super::health::API_LEVEL]))]),
            "links": full("Where more is to be read.", about),
        })),
        "OpenApi": ours(json!({
            "type": "object", "description": "A document of OpenAPI 3.1.", "required": ["openapi", "info", "paths"],
            "properties": { "openapi": { "type": "string" }, "info": { "type": "object" }, "paths": { "type": "object" } },
            "additionalProperties": true,
        })),
    })
}
