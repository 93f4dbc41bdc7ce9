//! The vocabulary that routes are described with: topics, headers of requests, and kinds of
//! problems. `openapi` says what each of them means in the document.

/// What a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    Links,
    Rules,
    Tags,
    Domains,
    Visits,
    Reservations,
    Targets,
    Webhooks,
    Service,
}

impl Topic {
    /// All topics, in the order in which they are shown.
    pub(super) const ALL: [Self; 9] = [
        Self::Links,
        Self::Rules,
        Self::Tags,
        Self::Domains,
        Self::Visits,
        Self::Reservations,
        Self::Targets,
        Self::Webhooks,
        Self::Service,
    ];

    /// Returns the name in the document.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Links => "Short URLs",
            Self::Rules => "Redirect rules",
            Self::Tags => "Tags",
            Self::Domains => "Domains",
            Self::Visits => "Visits",
            Self::Reservations => "Reservations",
            Self::Targets => "Targets",
            Self::Webhooks => "Webhooks",
            Self::Service => "Service",
        }
    }

    /// Describes the topic.
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Links => "Links: a code or a slug on a domain, and the long URL that it redirects to.",
            Self::Rules => {
                "Other targets of a link for some visitors: the first rule whose conditions all hold."
            }
            Self::Tags => "Words that links are grouped by.",
            Self::Domains => "Hosts of short links.",
            Self::Visits => {
                "Requests that visitors made. Rows of single visits are kept for as long as the operator configured, so that lists end where they do; counts and statistics include the visits before. Calls of bots are visits, told apart; HEAD is none."
            }
            Self::Reservations => {
                "An addition. Codes before their links, for codes that are printed before their targets are known: a range is reserved, its codes are returned at once, and links are filled in later."
            }
            Self::Targets => "An addition. Hosts that links may lead to, or may not.",
            Self::Webhooks => {
                "An addition. Receivers of events, called with POST as the Standard Webhooks specification defines it: signed, at least once, and in no particular order. A repeated event has the same `webhook-id`."
            }
            Self::Service => "The service itself.",
        }
    }
}

/// A header of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    IfMatch,
    IdempotencyKey,
}

/// The kinds of problems that calls refer to. Their names are those of the schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// The body is not a JSON object, or not an array where one is expected.
    MalformedBody,
    /// The body is longer than the call's limit.
    BodyTooLarge,
    /// The body did not arrive in time.
    SlowBody,
    /// Fields or parameters are wrong.
    InvalidData,
    /// The call has no key.
    NoKey,
    /// The key does not exist, was revoked or has expired.
    WrongKey,
    /// The key lacks a scope.
    Forbidden,
    /// The link does not exist.
    NoShortUrl,
    /// Another link has the slug.
    SlugTaken,
    /// The key of a repeated call came with another body.
    IdempotencyKeyReused,
    /// The domain does not exist.
    NoDomain,
    /// Another domain has the name.
    DomainTaken,
    /// There are as many domains as allowed.
    TooManyDomains,
    /// Links or keys depend on the domain.
    DomainInUse,
    /// The target rule does not exist.
    NoTarget,
    /// The key must not change tags.
    ForbiddenTags,
    /// There is no Mercure hub.
    NoMercure,
    /// The key is for one domain only.
    OneDomainOnly,
    /// There were too many calls.
    TooManyCalls,
    /// The link was edited since the caller read it.
    Superseded,
    /// The link was taken down.
    Blocked,
    /// The tag does not exist.
    NoTag,
    /// Another tag has the name.
    TagConflict,
    /// The reservation does not exist.
    NoReservation,
    /// The reservation was given up.
    ReservationClosed,
    /// The key has as many codes in reservations, or as many reservations, as it may have.
    TooManyReserved,
    /// The webhook does not exist.
    NoWebhook,
    /// The delivery does not exist.
    NoDelivery,
    /// There are as many webhooks as there may be.
    TooManyWebhooks,
    /// The webhook is disabled.
    WebhookDisabled,
    /// No addresses of visitors are kept.
    AddressesNotKept,
    /// There are as many erasures as there may be.
    TooManyErasures,
    /// The change would lose what a later release has stored.
    LaterRelease,
    /// No call has this method and path.
    NoRoute,
    /// All codes are taken.
    Exhausted,
    /// The database or the issuer of numbers does not answer.
    Unavailable,
    /// A defect of the server.
    Internal,
}

impl Kind {
    /// All kinds.
    pub(super) const ALL: [Self; 37] = [
        Self::MalformedBody,
        Self::BodyTooLarge,
        Self::SlowBody,
        Self::InvalidData,
        Self::NoKey,
        Self::WrongKey,
        Self::Forbidden,
        Self::NoShortUrl,
        Self::SlugTaken,
        Self::IdempotencyKeyReused,
        Self::NoDomain,
        Self::DomainTaken,
        Self::TooManyDomains,
        Self::DomainInUse,
        Self::NoTarget,
        Self::ForbiddenTags,
        Self::NoMercure,
        Self::OneDomainOnly,
        Self::TooManyCalls,
        Self::Superseded,
        Self::Blocked,
        Self::NoTag,
        Self::TagConflict,
        Self::NoReservation,
        Self::ReservationClosed,
        Self::TooManyReserved,
        Self::NoWebhook,
        Self::NoDelivery,
        Self::TooManyWebhooks,
        Self::WebhookDisabled,
        Self::AddressesNotKept,
        Self::TooManyErasures,
        Self::LaterRelease,
        Self::NoRoute,
        Self::Exhausted,
        Self::Unavailable,
        Self::Internal,
    ];
}
