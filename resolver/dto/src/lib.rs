//! The JSON of the REST API: bodies, queries and answers, each defined once.
//!
//! 1. A type here is all there is to say about its JSON: serde reads or writes it, schemars derives
//!    its schema for the OpenAPI document, and the command line serializes the same type.
//! 2. A field's doc comment is its description in the document. Limits come from the constants that
//!    the code enforces.
//! 3. Fields that Shlink does not have are marked with `x-addition`.
//! 4. Requests are lenient as Shlink is: numbers and flags may be strings ([`Number`], [`Flag`]).
//!    Their values are checked by the application.

mod audit;
mod bulk;
mod domain;
mod health;
mod link;
mod live;
mod page;
mod patch;
mod query;
mod reservation;
mod rule;
mod stats;
mod tag;
mod target;
mod values;
mod visit;
mod webhook;

pub use audit::{AuditData, AuditEntry, AuditPage};
pub use bulk::{BatchResult, BatchResults, BatchWord, FillResult, FillResults, FillWord};
pub use domain::{
    Domain, DomainData, DomainEdit, DomainList, DomainQuery, DomainRedirects, DomainRedirectsEdit,
    DomainsQuery,
};
pub use health::{Health, HealthLinks, HealthStatus, OpenApi};
pub use link::{
    BatchItem, ChangedShortUrl, FillItem, LinkFields, LinkLimits, MoveShortUrl, NewShortUrl, NewTakedown,
    ShortUrl, ShortUrlEdit, ShortUrlName, ShortUrlPage, TagName, Takedown,
};
pub use live::{LiveVisit, LiveVisitsQuery, MercureInfo, SkippedVisits};
pub use page::{BeforeQuery, Data, Page, Pagination};
pub use patch::Patch;
pub use query::{LinkListQuery, MatchMode};
pub use reservation::{NewReservation, Reservation, ReservationList};
pub use rule::{
    ChangedRedirectRules, Condition, NewCondition, NewRedirectRule, NewRedirectRules, RedirectRule,
    RedirectRules,
};
pub use stats::{Stats, StatsDays, StatsDistinct, StatsPoint, StatsQuery, StatsRange, StatsValue};
pub use tag::{TagPage, TagRenaming, TagStats, TagStatsPage, TagsDeletionQuery, TagsQuery};
pub use target::{Target, TargetList};
pub use values::{DateTime, Flag, Ignored, Number, Time};
pub use visit::{
    DeletedVisits, ErasedVisits, ErasureQuery, OrphanVisitsQuery, Visit, VisitLocation, VisitPage,
    VisitsByKind, VisitsDomainQuery, VisitsOverview, VisitsQuery, VisitsSummary,
};
pub use webhook::{
    DeliveryData, DeliveryPage, NewWebhook, Webhook, WebhookDelivery, WebhookEdit, WebhookList,
};
