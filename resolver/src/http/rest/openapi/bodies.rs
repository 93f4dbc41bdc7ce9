//! What calls send, as schemas.

use app::{create_link, field, reservation::COUNT_MAX};
use links::{
    Authority, Block, Browser, CONDITION_TYPES, CONDITIONS_MAX, Country, Device, LongUrl, PasswordHash,
    Protocol, RULES_MAX, RedirectStatus, Slug, TAGS_MAX, Tag, Text, targets::TargetRule,
};
use serde_json::{Map, Value, json};

use super::{
    super::{edit, fields},
    moment, nullable, object, ours, text,
};

/// All schemas of bodies, by name.
pub(super) fn schemas() -> Map<String, Value> {
    let mut edit = of_edits();
    edit.extend(passed_over(edit::passed_over()));
    edit.insert(
        "longUrl".to_owned(),
        json!({ "anyOf": [long_url("Where it leads; null leaves it as it is."), { "type": "null" }] }),
    );
    let mut new = of_links();
    new.insert("longUrl".to_owned(), long_url("Where it leads."));
    new.extend(of_codes());
    let mut filled = of_batches();
    filled.insert("shortCode".to_owned(), text("One of the reservation's codes.", &[]));
    let each = [
        ("NewShortUrl", object("A link to be created.", &["longUrl"], new)),
        ("ShortUrlEdit", object("What is to be changed of a link.", &[], edit)),
        ("BatchItem", ours(object("One of many links to be created.", &["longUrl"], of_batches()))),
        (
            "FillItem",
            ours(object("A link to be created under a reserved code.", &["longUrl", "shortCode"], filled)),
        ),
        ("NewRedirectRules", redirect_rules()),
        ("NewRedirectRule", redirect_rule()),
        ("NewCondition", condition()),
        ("TagRenaming", tag_renaming()),
        ("DomainRedirectsEdit", domain_redirects()),
        ("DomainEdit", ours(domain())),
        ("NewTakedown", ours(takedown())),
        ("NewReservation", ours(reservation())),
        ("Target", ours(target())),
    ];
    each.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

/// A long URL that is sent.
fn long_url(description: &str) -> Value {
    let description = format!(
        "{description} An absolute URL with a scheme that the operator allows, which are http, https, mailto and tel unless said otherwise; without \
        user name and password, that is no short link of this service, and whose host links may lead to. At most {} bytes.",
        LongUrl::MAX_LEN
    );
    text(
        &description,
        &[
            ("format", json!("iri")),
            ("maxLength", json!(LongUrl::MAX_LEN)),
            ("examples", json!(["https://example.com/page"])),
        ],
    )
}

/// A name of a domain that is sent.
fn authority(description: &str) -> Value {
    let description = format!("{description} A host name with or without a port, and no address.");
    let rest = [
        ("format", json!("authority")),
        ("maxLength", json!(Authority::MAX_LEN)),
        ("examples", json!(["sho.rt"])),
    ];
    text(&description, &rest)
}

fn tag(how: &str) -> Value {
    let rest = [("format", json!("tag")), ("minLength", json!(1)), ("maxLength", json!(Tag::MAX_LEN))];
    text(how, &rest)
}

/// A number that may come as a text, too.
fn number(most: impl Into<Value>, description: &str) -> Value {
    json!({
        "type": ["integer", "string", "null"],
        "minimum": 1, "maximum": most.into(), "pattern": "^[0-9]{1,20}$", "description": description,
    })
}

fn countries() -> Vec<String> {
    let codes = ('A'..='Z').flat_map(|first| ('A'..='Z').map(move |second| format!("{first}{second}")));
    codes.filter(|code| Country::parse(code).is_some()).collect()
}

fn statuses() -> Vec<u16> {
    (300..400).filter(|status| RedirectStatus::try_from(*status).is_ok()).collect()
}

fn flag(description: &str, default: Option<bool>) -> Value {
    // Forms know nothing but texts.
    let values = json!([true, false, null, "true", "false", "1", "0", 1, 0]);
    let mut flag = json!({ "enum": values, "description": description });
    if let Some(default) = default {
        flag["default"] = json!(default);
    }
    flag
}

/// Fields of links that every way of creating them takes, and edits too; without the long URL, which edits may leave out.
fn of_all() -> Map<String, Value> {
    let description = [("maxLength", json!(field::DESCRIPTION_BYTES))];
    let title = format!("What a person calls it. Cut after {} bytes.", field::TITLE_BYTES);
    let fields = json!({
        "title": nullable(text(&title, &[])),
        "crawlable": flag("Whether robots may follow it.", None),
        "forwardQuery": flag("Whether the visitor's query goes along to the long URL.", None),
        "maxVisits": number(i64::MAX, "How often it redirects."),
        "validSince": { "anyOf": [moment("Before this it does not redirect."), { "type": "null" }] },
        "validUntil": { "anyOf": [moment("From this time on it does not redirect."), { "type": "null" }] },
        "description": ours(nullable(text("What a person says of it.", &description))),
        "enabled": ours(flag("Whether it redirects at all.", None)),
        "redirectStatus": ours(json!({
            "enum": statuses().into_iter().flat_map(|status| [json!(status), json!(status.to_string())]).chain([Value::Null]).collect::<Vec<_>>(),
            "description": "The status of its redirects, if it is not that of all others.",
        })),
    });
    let mut fields = fields.as_object().cloned().unwrap_or_default();
    fields.extend(passed_over(fields::WITHOUT_EFFECT));
    fields
}

/// Fields that Shlink's clients send, and that change nothing.
fn passed_over(names: impl IntoIterator<Item = &'static str>) -> impl Iterator<Item = (String, Value)> {
    let schema = json!({ "deprecated": true, "description": "Passed over, whatever it is: Shlink's clients send it." });
    names.into_iter().map(|name| (name.to_owned(), schema.clone())).collect::<Vec<_>>().into_iter()
}

/// Fields that have a way into the database when links come one by one only.
fn of_edits() -> Map<String, Value> {
    let mut fields = of_all();
    let password = format!(
        "Visitors are asked for it before they are led on. 1 to {} bytes without control characters; kept as a hash, and never told.",
        PasswordHash::MAX_LEN
    );
    let rest =
        [("format", json!("password")), ("minLength", json!(1)), ("maxLength", json!(PasswordHash::MAX_LEN))];
    fields.insert("password".to_owned(), ours(nullable(text(&password, &rest))));
    let tags = json!({
        "type": ["array", "null"], "items": tag("Kept in small letters, with dashes for spaces."), "maxItems": TAGS_MAX,
        "description": "All of its tags. An edit with null leaves them as they are, and one with an empty array takes them away.",
    });
    fields.insert("tags".to_owned(), tags);
    fields
}

fn of_links() -> Map<String, Value> {
    let mut fields = of_edits();
    let finds = "Whether a link that there is for the long URL already will do, however it was made, if it has the tags, limits, domain, status and code that are given; of several the first. Title, description and the other flags do not count. It does not go with a password.";
    fields.insert("findIfExists".to_owned(), flag(finds, Some(false)));
    let domain = nullable(authority(
        "The domain that it is for; without it, and with `DEFAULT`, the default one. One that is not known is added, which takes the scope `domains`. Keys of one domain make links of that one, whatever is asked for.",
    ));
    fields.insert("domain".to_owned(), domain);
    fields
}

/// Ways to wish for a code.
fn of_codes() -> Map<String, Value> {
    let slug = format!(
        "A code that a person picked, 1 to {} bytes. Spaces become dashes, and slashes at its ends are dropped; it may have several segments. It goes before all other wishes for a code.",
        Slug::MAX_LEN
    );
    let prefix = "What stands before the code. Spaces become dashes; so do slashes, unless it ends in one: then it is made of segments. The code is then made from a digest of the long URL.";
    let strategy = "`sequence` takes the next number of a keyspace, `hash` a digest of the long URL.";
    let len = format!(
        "How long the code is. It comes from the keyspace whose codes are that long. Where there is none, codes of up to 8 characters come from \
        a digest, and longer ones are drawn at random. Codes from digests have {} characters otherwise.",
        create_link::DIGEST_LEN
    );
    let fields = json!({
        "customSlug": nullable(text(&slug, &[("format", json!("slug")), ("maxLength", json!(Slug::MAX_LEN))])),
        "pathPrefix": nullable(text(prefix, &[("format", json!("path-prefix")), ("maxLength", json!(Slug::MAX_LEN))])),
        "shortCodeLength": number(field::CODE_LEN_MAX, &len),
        "strategy": ours(json!({ "enum": ["sequence", "hash", null], "description": strategy })),
        "keyspace": ours(nullable(text(
            "The name of the keyspace that the code comes from. It goes neither with the strategy `hash` nor with a prefix.",
            &[("format", json!("keyspace"))],
        ))),
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn of_batches() -> Map<String, Value> {
    let mut fields = of_all();
    fields.insert("longUrl".to_owned(), long_url("Where it leads."));
    let keyspace = "The name of the default keyspace: the links of one call are of no other.";
    fields.insert("keyspace".to_owned(), nullable(text(keyspace, &[("format", json!("keyspace"))])));
    let len = "The length of the default keyspace's codes.";
    fields.insert("shortCodeLength".to_owned(), number(field::CODE_LEN_MAX, len));
    fields
}

fn redirect_rules() -> Value {
    let items = super::operation::reference("NewRedirectRule");
    json!({
        "type": "object",
        "description": "All rules of a link, in the order in which they are tried.",
        "properties": { "redirectRules": { "type": "array", "items": items, "maxItems": RULES_MAX } },
        "required": ["redirectRules"],
        "additionalProperties": false,
    })
}

fn redirect_rule() -> Value {
    let items = super::operation::reference("NewCondition");
    json!({
        "type": "object",
        "description": "Another place to go, for visitors who meet all conditions; everybody meets none at all.",
        "properties": {
            "longUrl": long_url("Where they go."),
            "conditions": { "type": "array", "items": items, "maxItems": CONDITIONS_MAX },
            "priority": { "description": "Passed over: the place in the array says it." },
        },
        "required": ["longUrl", "conditions"],
        "additionalProperties": false,
    })
}

/// One schema for each type, so that each says what its key and value are.
fn condition() -> Value {
    let given = |what: &str| text(what, &[("minLength", json!(1)), ("maxLength", json!(Text::MAX_LEN))]);
    let unused = || json!({ "type": ["string", "null"], "maxLength": Text::MAX_LEN });
    let value = |kind: &str| match kind {
        "device" => Some(json!({ "enum": Device::names() })),
        "browser" => Some(json!({ "enum": Browser::names() })),
        "language" => Some(given("A language, and a country behind it, if it matters: `en`, `en-US`.")),
        "query-param" => Some(given("The value, exactly.")),
        "ip-address" => Some(json!({
            "type": "string", "format": "address-pattern", "minLength": 1, "maxLength": Text::MAX_LEN,
            "description": "An IP address, a network such as `192.0.2.0/24`, or a pattern such as `192.0.*.7`.",
        })),
        "geolocation-country-code" => Some(json!({
            "enum": countries(), "description": "Two capital letters of ISO 3166-1.",
        })),
        "geolocation-city-name" => Some(given("The name of a city.")),
        "before-date" | "after-date" => Some(moment("A moment.")),
        _ => None,
    };
    let of_type = |kind: &&str| {
        let (key, value) =
            (kind.contains("query-param").then(|| given("The name of a query parameter.")), value(kind));
        let mut required = vec!["type"];
        required.extend(key.is_some().then_some("matchKey"));
        required.extend(value.is_some().then_some("matchValue"));
        json!({
            "type": "object",
            "properties": {
                "type": { "const": kind },
                "matchKey": key.unwrap_or_else(unused),
                "matchValue": value.unwrap_or_else(unused),
            },
            "required": required,
            "additionalProperties": false,
        })
    };
    json!({
        "description": "What is asked of a visitor.",
        "oneOf": CONDITION_TYPES.iter().map(of_type).collect::<Vec<_>>(),
    })
}

fn tag_renaming() -> Value {
    json!({
        "type": "object",
        "description": "The name of a tag, and another one.",
        "properties": { "oldName": tag("Exactly as it is."), "newName": tag("Kept as it is given.") },
        "required": ["oldName", "newName"],
        "additionalProperties": false,
    })
}

fn domain_redirects() -> Value {
    let target = |from: &str| {
        let what = format!(
            "Where visitors go {from}: a URL with http or https, or one without a scheme, and no control characters. Null takes it away, and so does an empty text."
        );
        let rest = [("maxLength", json!(fields::STRAY_TARGET_BYTES)), ("format", json!("line"))];
        nullable(text(&what, &rest))
    };
    let fields = json!({
        "domain": authority("The domain; `DEFAULT` for the default one."),
        "baseUrlRedirect": target("from the domain itself"),
        "regular404Redirect": target("from a path that no code could have"),
        "invalidShortUrlRedirect": target("from a code that leads nowhere"),
    });
    object(
        "Where a domain's stray visitors go.",
        &["domain"],
        fields.as_object().cloned().unwrap_or_default(),
    )
}

fn domain() -> Value {
    let protocols = json!([Protocol::Http.as_str(), Protocol::Https.as_str(), null]);
    let fields = json!({
        "domain": authority("Another name."),
        "enabled": flag("Whether its links lead anywhere.", None),
        "protocol": { "enum": protocols, "description": "What its short URLs begin with; null for that of `--public-url`." },
    });
    object("What is to be changed of a domain.", &[], fields.as_object().cloned().unwrap_or_default())
}

fn takedown() -> Value {
    let rest =
        [("minLength", json!(1)), ("maxLength", json!(Block::REASON_BYTES)), ("format", json!("reason"))];
    let fields = json!({ "reason": text("Why, for the link's owner to read.", &rest) });
    object("A takedown.", &["reason"], fields.as_object().cloned().unwrap_or_default())
}

fn reservation() -> Value {
    let keyspace = text("The keyspace; without it the default one.", &[("format", json!("keyspace"))]);
    let fields = json!({
        "count": { "type": "integer", "minimum": 1, "maximum": COUNT_MAX, "description": "How many codes." },
        "keyspace": nullable(keyspace),
    });
    object("How many codes are wanted.", &["count"], fields.as_object().cloned().unwrap_or_default())
}

fn target() -> Value {
    let pattern = text(
        "A host, or `*.` and a domain for every host below it, but not the domain itself.",
        &[
            ("format", json!("host-pattern")),
            ("maxLength", json!(TargetRule::MAX_LEN)),
            ("examples", json!(["*.example.com"])),
        ],
    );
    let fields = json!({
        "pattern": pattern,
        "allowed": { "type": "boolean", "description": "Whether links may lead there." },
    });
    object(
        "Hosts, and whether links may lead there.",
        &["pattern", "allowed"],
        fields.as_object().cloned().unwrap_or_default(),
    )
}
