//! The vocabulary that routes are described with: topics, headers of requests, and kinds of
//! problems ([`Kind`]). `openapi` says what each of them means in the document.

pub(super) use crate::kind::Kind;

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

/// All topics in the order in which they are shown, with their names and descriptions.
pub(super) const TOPICS: [(Topic, &str, &str); 9] = [
    (
        Topic::Links,
        "Short URLs",
        "Links: a code or a slug on a domain, and the long URL that it redirects to.",
    ),
    (
        Topic::Rules,
        "Redirect rules",
        "Other targets of a link for some visitors: the first rule whose conditions all hold.",
    ),
    (Topic::Tags, "Tags", "Words that links are grouped by."),
    (Topic::Domains, "Domains", "Hosts of short links."),
    (
        Topic::Visits,
        "Visits",
        "Requests that visitors made. Rows of single visits are kept for as long as the operator configured, so that lists end where they do; statistics go further back, as far as the operator keeps counts. Calls of bots are visits, told apart; HEAD is none.",
    ),
    (
        Topic::Reservations,
        "Reservations",
        "An addition. Codes before their links, for codes that are printed before their targets are known: a range is reserved, its codes are returned at once, and links are filled in later.",
    ),
    (Topic::Targets, "Targets", "An addition. Hosts that links may lead to, or may not."),
    (
        Topic::Webhooks,
        "Webhooks",
        "An addition. Receivers of events, called with POST as the Standard Webhooks specification defines it: signed, at least once, and in no particular order. A repeated event has the same `webhook-id`.",
    ),
    (Topic::Service, "Service", "The service itself."),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    IfMatch,
    IdempotencyKey,
}
