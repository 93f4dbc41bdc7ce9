//! Link model: links, slugs, redirect rules, domains, API keys and the destination policy.
//!
//! All types are pure values, validated on construction. This crate performs no I/O, has no async
//! code, and does not depend on the protocol that a request arrived in.

pub mod api_key;
mod app_links;
pub mod audit;
mod block;
mod bulk;
mod destination;
mod details;
mod domain;
mod emoji;
mod explanation;
mod external_id;
mod extra_path;
mod fallback_target;
mod filter;
mod forward;
mod idempotency;
mod import;
mod lifecycle;
mod limits;
mod link;
mod location;
mod long_url;
mod lookalike;
mod other_names;
mod own_address;
mod password;
mod preview;
mod query_template;
mod record;
mod reference;
pub mod reservation;
mod reserved;
mod rule;
mod schedule;
mod scheme;
pub mod scope;
mod search;
mod slug;
mod spelling;
mod stored;
mod tag;
pub mod targets;
mod text_value;
mod time;
mod visitor;
pub mod webhook;

pub use api_key::SessionHash;
pub use app_links::{AppLinks, AppLinksFile};
pub use block::Block;
pub use bulk::{BulkChange, BulkEdit, BulkRefusal};
pub use destination::Base;
pub use details::{Details, DetailsEdit, LinkState, Origin, RedirectStatus};
pub use domain::{
    Authority, Domain, DomainEdit, DomainId, DomainSettings, Protocol, REMOVED, Redirects,
    requested_authority,
};
pub use explanation::{Example, Explanation, Finding, Step};
pub use external_id::ExternalId;
pub use extra_path::{ExtraPath, check_templates};
pub use fallback_target::{
    check_fallback_target, check_process_target, fill_placeholders, has_safe_placeholders,
};
pub use filter::{Filter, OrderBy, OrderField, Outline, Outlined, TagsMode, grown_pieces, pieces};
pub use forward::{add_query, forward_query};
pub use idempotency::{EarlierRequest, Idempotency, quoted};
pub use import::{IMPORTED_VISITS_MAX, ImportCode, ImportItem, PickedCode};
pub use lifecycle::Refusal;
pub use limits::{
    BULK_NAMES_MAX, BULK_PAGE, BULK_PAGE_MAX, CODE_LEN_MAX, COUNTED_MAX, DESCRIPTION_BYTES, PER_PAGE,
    PER_PAGE_MAX, SCHEDULED_PER_KEY, SCHEDULED_PER_LINK, STRAY_TARGET_BYTES, TITLE_BYTES, granted_visits,
};
pub use link::{Draft, Link, NewLink};
pub use location::{ESCAPED_IN_PATHS, location, location_with_added, location_with_query};
pub use long_url::{LongUrl, LongUrlError};
pub use numbers::Invalid;
pub use other_names::{OtherName, OtherWay, is_catch_all, other_names};
pub use own_address::OwnAddress;
pub use password::PasswordHash;
pub use preview::Preview;
pub use query_template::QueryTemplate;
pub use record::{Edit, Precondition, Record, Relocation};
pub use reserved::is_given_to;
pub use rule::{
    AddressPattern, Browser, CONDITION_TYPES, CONDITIONS_MAX, Condition, ConditionError, Country, Date,
    Device, ONE_PATH_EXPECTED, PathPattern, RULES_MAX, Rule, SHARES_EXPECTED, Share, Text, excess_share,
    unmapped_network,
};
pub use schedule::{ScheduledEdit, ScheduledEditId, ScheduledFields};
pub use scheme::Schemes;
pub use search::{search_key, sort_key};
pub use slug::{Slug, is_of_service};
pub use spelling::{nfc, slug_spellings, tag_spellings};
pub use stored::StoredObject;
pub use tag::{TAGS_MAX, Tag};
pub use time::{TimeError, find_zone, read_time, stored_time};
pub use visitor::{Buckets, Facts, Tried, asks_where, choose};
