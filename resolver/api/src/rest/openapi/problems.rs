//! Problems as schemas (RFC 9457). Each is derived from a problem as calls are answered with it, so
//! that type, title, status and members are those of the code.

use std::{collections::BTreeMap, time::Duration};

use app::{AppError, InvalidField};
use hyper::{Method, StatusCode};
use limits::ExceededShare;
use links::{reservation::OPEN_MAX, scope::Scope, webhook::WEBHOOKS_MAX};
use serde_json::{Map, Value, json};

use super::{
    super::{docs::Kind, problem::Problem, route::BODY_BYTES},
    parameters,
};
use crate::{authenticate::AuthError, calls::Refused};

impl Kind {
    /// Returns problems of this kind. The first has every optional member; a member that all have
    /// is required.
    fn samples(self) -> Vec<Problem> {
        let text = str::to_owned;
        vec![match self {
            Self::BodyTooLarge => Problem::BodyTooLarge { limit: BODY_BYTES },
            Self::MalformedBody => Problem::MalformedBody,
            Self::SlowBody => Problem::SlowBody,
            Self::NoKey => AuthError::NoKey.into(),
            Self::WrongKey => AuthError::WrongKey.into(),
            Self::NoMercure => Problem::NoMercure,
            Self::NoRoute => Problem::NoRoute { method: Method::GET, url: text("https://s.test/rest/v3/x") },
            Self::TooManyCalls => {
                let refused = Refused { wait: Duration::from_secs(1), share: None };
                let refused = AuthError::TooManyCalls(refused);
                return vec![refused.into(), AppError::TooMuchAtOnce(ExceededShare::Own).into()];
            }
            _ => return self.samples_of_app().into_iter().map(Problem::from).collect(),
        }]
    }

    /// Returns errors of the application of this kind; none for a kind that only HTTP has.
    fn samples_of_app(self) -> Vec<AppError> {
        let text = str::to_owned;
        let domain = || Some(text("example.com"));
        vec![match self {
            Self::NoShortUrl => {
                let missing = |domain| AppError::NoLink { code: text("promo"), domain };
                return vec![missing(domain()), missing(None)];
            }
            Self::SlugTaken => {
                let taken = |domain| AppError::SlugTaken { slug: text("promo"), domain };
                return vec![taken(domain()), taken(None)];
            }
            Self::InvalidData => AppError::Invalid(vec![InvalidField {
                field: text("longUrl"),
                expected: text("expected one of the schemes http, https, mailto, tel (--allowed-schemes)"),
            }]),
            Self::NoDomain => AppError::NoDomain { name: text("example.com") },
            Self::DomainTaken => AppError::DomainTaken { name: text("example.com") },
            Self::TooManyDomains => AppError::TooManyDomains { most: 1_000 },
            Self::DomainInUse => AppError::DomainInUse {
                name: text("example.com"),
                by: "expected its links to be deleted before",
            },
            Self::NoTarget => AppError::NoTarget { pattern: text("*.example.com") },
            Self::NoTag => AppError::NoTag { tag: text("summer") },
            Self::TagConflict => AppError::TagConflict { old: text("summer"), new: text("winter") },
            Self::NoReservation => AppError::NoReservation { id: "0".repeat(32) },
            Self::NoWebhook => AppError::NoWebhook { id: text("7") },
            Self::NoDelivery => AppError::NoDelivery { id: text("9") },
            Self::TooManyWebhooks => AppError::TooManyWebhooks { most: WEBHOOKS_MAX },
            Self::WebhookDisabled => AppError::WebhookDisabled { id: text("7") },
            Self::AddressesNotKept => AppError::AddressesNotKept,
            Self::TooManyErasures => AppError::TooManyErasures { most: 1_000 },
            Self::LaterRelease => AppError::LaterRelease,
            Self::ReservationClosed => AppError::ReservationClosed { id: "0".repeat(32) },
            Self::TooManyReserved => {
                let reservations = AppError::TooManyReservations { held: OPEN_MAX, most: OPEN_MAX };
                return vec![AppError::TooManyReserved { held: 990_000, most: 1_000_000 }, reservations];
            }
            Self::Forbidden => AppError::Forbidden { scope: Scope::Edit },
            Self::ForbiddenTags => AppError::ForbiddenTags { what: "rename" },
            Self::IdempotencyKeyReused => AppError::IdempotencyKeyReused,
            Self::OneDomainOnly => AppError::OneDomainOnly,
            Self::Superseded => AppError::Superseded,
            Self::Blocked => AppError::Blocked,
            Self::Exhausted => AppError::Exhausted,
            Self::Unavailable => {
                return vec![AppError::Unavailable, AppError::TooMuchAtOnce(ExceededShare::All)];
            }
            Self::Internal => AppError::Internal,
            Self::BodyTooLarge
            | Self::MalformedBody
            | Self::SlowBody
            | Self::NoKey
            | Self::WrongKey
            | Self::NoMercure
            | Self::NoRoute
            | Self::TooManyCalls => return Vec::new(),
        }]
    }

    /// Describes when calls are answered with this problem.
    fn when(self) -> &'static str {
        match self {
            Self::MalformedBody => {
                "The body is not JSON, or not of the kind that is expected (an object; for fills an array of objects)."
            }
            Self::BodyTooLarge => "The body is longer than is read. The detail says how long it may be.",
            Self::SlowBody => {
                "The body came too slowly: nothing for ten seconds, or less than 16 KiB a second after that."
            }
            Self::InvalidData => {
                "Fields or parameters are wrong. Up to 16 of them are named at once; `expected` is an addition and says for each what would have been right."
            }
            Self::NoKey => "There is no `X-Api-Key`, or it is empty.",
            Self::WrongKey => "The key does not exist, was revoked or has expired.",
            Self::Forbidden => {
                "The key exists, but lacks the scope that the call needs; or it is limited to some links, and the call concerns all of them."
            }
            Self::NoShortUrl => {
                "No link has this code on this domain, or the key must not know of it. `domain` is left out for the default one."
            }
            Self::SlugTaken => {
                "Another link has this slug on this domain, or had this code before. `domain` is left out for the default one."
            }
            Self::IdempotencyKeyReused => "The Idempotency-Key came with another body before.",
            Self::NoDomain => "No domain has this name, or the key is for another one.",
            Self::DomainTaken => "Another domain has this name.",
            Self::TooManyDomains => "There are as many domains as the operator allows.",
            Self::DomainInUse => "Links are on the domain, keys are limited to it, or it is the default one.",
            Self::NoTarget => "No rule has this pattern.",
            Self::ForbiddenTags => "Only keys that see all links may change tags, which all links share.",
            Self::NoMercure => "There is no Mercure hub: this service sends no updates.",
            Self::OneDomainOnly => "Keys of a domain that is not the default one make links one by one.",
            Self::TooManyCalls => {
                "Too many calls were made with this key or from this client. `Retry-After` says how long to wait."
            }
            Self::Superseded => "The link was edited since its `ETag` was read: read it, and decide again.",
            Self::Blocked => {
                "An operator took the link down, and has to bring it back before it is deleted or moved."
            }
            Self::NoTag => "No link has this tag.",
            Self::TagConflict => "Another tag has the new name.",
            Self::NoReservation => "No reservation has this id, or it is another key's.",
            Self::ReservationClosed => "The reservation was given up, so nothing can be filled in any more.",
            Self::TooManyReserved => {
                "The key has as many codes in open reservations as the operator allows, or as many open reservations as a key may have."
            }
            Self::NoWebhook => "No webhook has this id.",
            Self::NoDelivery => "The webhook has no such delivery, or it was removed a week after its end.",
            Self::TooManyWebhooks => "There are as many webhooks as there may be.",
            Self::WebhookDisabled => "The webhook is disabled, so that it is not called.",
            Self::AddressesNotKept => {
                "The operator keeps no addresses of visitors, so that no visit can be found by one."
            }
            Self::TooManyErasures => {
                "There are as many erasures as are kept for visits that are not stored yet. Each is forgotten when single visits of its time are."
            }
            Self::LaterRelease => {
                "A later release has stored something of the link that this one cannot read, and that the change would lose."
            }
            Self::NoRoute => {
                "Nothing is called by this method and path. A wrong method is answered like this too, and not with 405."
            }
            Self::Exhausted => "Every code of the keyspace is taken. An operator has to add a keyspace.",
            Self::Unavailable => {
                "The database or the issuer of numbers does not answer at the moment. Nothing is lost: try again."
            }
            Self::Internal => "A mistake of the server, which its log tells more of.",
        }
    }

    fn status(self) -> StatusCode {
        self.samples().first().map_or(StatusCode::INTERNAL_SERVER_ERROR, |sample| sample.shown().0)
    }

    fn schema(self) -> Value {
        let bodies: Vec<Map<String, Value>> = self.samples().iter().map(|sample| sample.shown().1).collect();
        let Some(full) = bodies.first() else { return json!(false) };
        let is_always = |name: &&String| bodies.iter().all(|body| body.contains_key(*name));
        let required: Vec<&String> = full.keys().filter(is_always).collect();
        let properties: Map<String, Value> = full
            .iter()
            .map(|(name, value)| {
                let is_fixed = matches!(name.as_str(), "type" | "title" | "status");
                (name.clone(), if is_fixed { json!({ "const": value }) } else { shape(name, value) })
            })
            .collect();
        json!({
            "type": "object",
            "description": self.when(),
            "properties": properties,
            "required": required,
            "examples": [full],
        })
    }
}

/// Returns the schema of a member like this one.
fn shape(name: &str, value: &Value) -> Value {
    match value {
        Value::Array(_) => json!({ "type": "array", "items": { "type": "string" } }),
        Value::Object(_) => {
            json!({ "type": "object", "additionalProperties": { "type": "string" }, "x-addition": true })
        }
        _ if name == "detail" => json!({ "type": "string", "description": "What went wrong, for people." }),
        _ => json!({ "type": "string" }),
    }
}

/// Returns the schemas of all kinds, by name.
pub(super) fn schemas() -> Map<String, Value> {
    Kind::ALL.into_iter().map(|kind| (format!("{kind:?}"), kind.schema())).collect()
}

/// Returns the answers with these kinds, by status.
pub(super) fn responses(kinds: &[Kind], is_limited: bool) -> Map<String, Value> {
    let mut by_status: BTreeMap<u16, Vec<Kind>> = BTreeMap::new();
    for kind in kinds {
        by_status.entry(kind.status().as_u16()).or_default().push(*kind);
    }
    let answer =
        |(status, kinds): (u16, Vec<Kind>)| (status.to_string(), response(status, &kinds, is_limited));
    by_status.into_iter().map(answer).collect()
}

fn response(status: u16, kinds: &[Kind], is_limited: bool) -> Value {
    let name =
        StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Error");
    let schema = |kind: &Kind| json!({ "$ref": format!("#/components/schemas/{kind:?}") });
    let schema = match kinds {
        [only] => schema(only),
        _ => json!({ "anyOf": kinds.iter().map(schema).collect::<Vec<_>>() }),
    };
    let mut headers = Map::new();
    if matches!(status, 429 | 503) {
        headers.insert("Retry-After".to_owned(), parameters::header("RetryAfter"));
    }
    // These are answered before the key is looked up, or have none.
    if is_limited && !matches!(status, 401 | 408 | 413) {
        parameters::add_rate_limit(&mut headers);
    }
    // The schemas describe the kinds.
    let names: Vec<String> = kinds.iter().map(|kind| format!("`{kind:?}`")).collect();
    let mut response = json!({
        "description": format!("{name}: {}", names.join(" or ")),
        "content": { "application/problem+json": { "schema": schema } },
    });
    if !headers.is_empty() {
        response["headers"] = Value::Object(headers);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A problem that is new in the code does not compile here until it is described above.
    fn kind_of(problem: &Problem) -> Kind {
        match problem {
            Problem::App(error) | Problem::Auth(AuthError::App(error)) => kind_of_app(error),
            Problem::MalformedBody => Kind::MalformedBody,
            Problem::BodyTooLarge { .. } | Problem::TooManyValues { .. } => Kind::BodyTooLarge,
            Problem::SlowBody => Kind::SlowBody,
            Problem::Auth(AuthError::NoKey) | Problem::NoKeyInQuery => Kind::NoKey,
            Problem::Auth(AuthError::WrongKey) => Kind::WrongKey,
            Problem::Auth(AuthError::TooManyCalls(_)) => Kind::TooManyCalls,
            Problem::NoMercure => Kind::NoMercure,
            Problem::NoRoute { .. } => Kind::NoRoute,
        }
    }

    fn kind_of_app(error: &AppError) -> Kind {
        match error {
            AppError::Invalid(_) => Kind::InvalidData,
            AppError::Forbidden { .. } => Kind::Forbidden,
            AppError::NoLink { .. } => Kind::NoShortUrl,
            AppError::SlugTaken { .. } => Kind::SlugTaken,
            AppError::IdempotencyKeyReused => Kind::IdempotencyKeyReused,
            AppError::NoDomain { .. } => Kind::NoDomain,
            AppError::DomainTaken { .. } => Kind::DomainTaken,
            AppError::TooManyDomains { .. } => Kind::TooManyDomains,
            AppError::DomainInUse { .. } => Kind::DomainInUse,
            AppError::MayNotAddDomain { .. } | AppError::LimitedKey | AppError::TooManyOwnLinks { .. } => {
                Kind::Forbidden
            }
            AppError::NoTarget { .. } => Kind::NoTarget,
            AppError::ForbiddenTags { .. } => Kind::ForbiddenTags,
            AppError::OneDomainOnly => Kind::OneDomainOnly,
            AppError::TooMuchAtOnce(ExceededShare::Own) => Kind::TooManyCalls,
            AppError::TooMuchAtOnce(ExceededShare::All) => Kind::Unavailable,
            AppError::Superseded => Kind::Superseded,
            AppError::Blocked => Kind::Blocked,
            AppError::NoTag { .. } => Kind::NoTag,
            AppError::TagConflict { .. } => Kind::TagConflict,
            AppError::NoReservation { .. } => Kind::NoReservation,
            AppError::ReservationClosed { .. } => Kind::ReservationClosed,
            AppError::NoWebhook { .. } => Kind::NoWebhook,
            AppError::NoDelivery { .. } => Kind::NoDelivery,
            AppError::TooManyWebhooks { .. } => Kind::TooManyWebhooks,
            AppError::WebhookDisabled { .. } => Kind::WebhookDisabled,
            AppError::AddressesNotKept => Kind::AddressesNotKept,
            AppError::TooManyErasures { .. } => Kind::TooManyErasures,
            AppError::LaterRelease => Kind::LaterRelease,
            AppError::TooManyReserved { .. } | AppError::TooManyReservations { .. } => Kind::TooManyReserved,
            AppError::Exhausted => Kind::Exhausted,
            AppError::Unavailable => Kind::Unavailable,
            AppError::Internal => Kind::Internal,
        }
    }

    #[test]
    fn every_kind_is_shown_by_problems_of_its_own() {
        for kind in Kind::ALL {
            let samples = kind.samples();
            assert!(!samples.is_empty() && samples.iter().all(|sample| kind_of(sample) == kind), "{kind:?}");
        }
        let names: std::collections::BTreeSet<_> = Kind::ALL.into_iter().collect();
        assert_eq!(names.len(), Kind::ALL.len());
    }

    #[test]
    fn a_member_that_is_left_out_at_times_is_not_required() {
        let schemas = schemas();
        let missing = &schemas["NoShortUrl"];
        assert_eq!(missing["required"], json!(["shortCode", "title", "type", "status", "detail"]));
        assert!(missing["properties"]["domain"].is_object());
        assert_eq!(schemas["InvalidData"]["properties"]["status"], json!({ "const": 400 }));
        assert_eq!(schemas["Superseded"]["properties"]["type"], json!({ "const": "about:blank" }));
    }

    #[test]
    fn problems_of_one_status_share_an_answer() {
        let answers = responses(&[Kind::NoKey, Kind::WrongKey, Kind::TooManyCalls], true);
        assert_eq!(answers.keys().collect::<Vec<_>>(), ["401", "429"]);
        let schema = &answers["401"]["content"]["application/problem+json"]["schema"];
        assert_eq!(schema["anyOf"].as_array().unwrap().len(), 2);
        assert!(answers["429"]["headers"]["Retry-After"].is_object());
    }
}
