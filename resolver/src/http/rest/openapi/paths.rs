//! Every call of the API: the table of contents of the router, in its order.

use app::{
    audit,
    reservation::{COUNT_MAX, FILL_MAX},
};
use hyper::Method;
use links::scope::Scope;
use serde_json::{Map, Value, json};
use store::{PER_PAGE_MAX, RESERVATIONS_MAX};

use super::{
    super::{BULK, access, bulk, split},
    operation::{Operation, Topic, reference},
    problems::Kind,
};
use crate::http::budgets::BULK_CALLS;

const LINKS: &str = "/rest/v3/short-urls";
const LINK: &str = "/rest/v3/short-urls/{shortCodeInPath}";

/// All paths with their calls.
pub(super) fn all() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations() {
        let (path, method) = operation.key();
        // A parameter's key among the components says where it stands; its name does not.
        let path = path.replace("InPath}", "}");
        let item = paths.entry(path).or_insert_with(|| json!({}));
        item[method] = operation.describe();
    }
    Value::Object(paths)
}

fn operations() -> Vec<Operation> {
    let groups = [
        service(),
        links(),
        link(),
        rules(),
        tags(),
        domains(),
        visits(),
        reservations(),
        filling(),
        targets(),
    ];
    groups.into_iter().flatten().collect()
}

fn service() -> Vec<Operation> {
    let health = |path, id| {
        let content = json!({ "application/health+json": { "schema": reference("Health") } });
        let answer = |description: &str| json!({ "description": description, "content": content });
        Operation::new(Method::GET, path, id, "Whether the database answers")
            .text("`version` is the level of Shlink's API that clients may expect; they choose by it what they offer. Answered with 503 and `\"status\": \"fail\"` when the database does not answer.")
            .tells_any(200, answer("It answers."))
            .tells_any(503, answer("It does not answer."))
    };
    vec![
        health("/rest/health", "healthOfAnyVersion"),
        health("/rest/v3/health", "health"),
        Operation::new(Method::GET, "/rest/v3/openapi.json", "describe", "This document")
            .ours()
            .tells("The API in OpenAPI 3.1.", "OpenApi"),
        Operation::new(Method::GET, "/rest/v3/mercure-info", "mercureInfo", "Where updates are sent")
            .of(Topic::Service, Scope::Read)
            .text("Shlink tells of a Mercure hub here. This service has none, and says so as Shlink does without one.")
            .fails(&[Kind::NoMercure]),
        Operation::new(Method::GET, "/rest/v3/audit", "listAudit", "Who wrote what, and when")
            .of(Topic::Service, Scope::Admin)
            .ours()
            .text(format!(
                "The latest entry first, {} on a page. `before` of the answer leads to the next page; null ends the list.",
                audit::PER_PAGE
            ))
            .takes(&["before"])
            .tells("Entries of the log.", "AuditPage")
            .fails(&[Kind::InvalidData]),
    ]
}

fn links() -> Vec<Operation> {
    vec![
        Operation::new(Method::GET, LINKS, "listShortUrls", "List links")
            .of(Topic::Links, Scope::Read)
            .text(format!(
                "Keys of one domain, or of links of their own only, see no others. A page has at most {PER_PAGE_MAX} links. \
                A domain or an API key that does not exist has no links, which is no error."
            ))
            .takes(&["page", "linksPerPage", "searchTerm", "longUrl", "domain", "tags", "tagsMode", "excludeTags", "excludeTagsMode"])
            .takes(&["startDate", "endDate", "excludePastValidUntil", "excludeMaxVisitsReached", "apiKeyName", "deleted", "orderBy"])
            .tells("A page of links.", "ShortUrlPage")
            .fails(&[Kind::InvalidData]),
        Operation::new(Method::POST, LINKS, "createShortUrl", "Create a link")
            .of(Topic::Links, Scope::Create)
            .text("Without a wish for its code the link gets the next one of the default keyspace. As with Shlink the answer is 200, and not 201. When an answer is lost, the same call with the same `Idempotency-Key`, or with `findIfExists`, tells of the same link again.")
            .takes(&["IdempotencyKey"])
            .sends("NewShortUrl")
            .tells("The link: a new one, or the one that was made for the same wish before.", "ShortUrl")
            .with_etag()
            .fails(&[Kind::MalformedBody, Kind::InvalidData, Kind::SlugTaken, Kind::TooManyDomains, Kind::IdempotencyKeyReused, Kind::Exhausted]),
        create_many(),
    ]
}

fn create_many() -> Operation {
    let lines = |what: &str| json!({ "schema": { "type": "string", "description": what } });
    let create = Operation::new(Method::POST, BULK, "createShortUrls", "Create many links")
        .of(Topic::Links, Scope::Create)
        .ours()
        .text(format!(
            "Up to {} links in one call, as a JSON array or as one object per line; the first byte that is no white space says which. \
            Links are created while the body still arrives, and their results are told in the order of the items while others are created: \
            read the answer while you send. A bad item fails no other. A body that cannot be read on ends with a result for `(the body)`; \
            what came before it is created. An item has at most {} bytes. At most {} such calls are answered at a time; another one is told to \
            come again (503), and so is a key that has {} of them under way (429).",
            bulk::ITEMS_MAX,
            split::ITEM_BYTES,
            BULK_CALLS.0,
            BULK_CALLS.1
        ))
        .sends_any(json!({
            "application/json": { "schema": { "type": "array", "items": reference("BatchItem"), "maxItems": bulk::ITEMS_MAX } },
            "application/x-ndjson": lines("A BatchItem on each line."),
        }))
        .tells_any(
            200,
            json!({
                "description": "A result for each item, in the form of the body.",
                "content": {
                    "application/json": { "schema": reference("BatchResults") },
                    "application/x-ndjson": lines("A BatchResult on each line."),
                },
            }),
        )
        .fails(&[Kind::OneDomainOnly]);
    // No body at all has no items, which is no error.
    create.body_is_optional()
}

fn link() -> Vec<Operation> {
    let of_link = ["shortCodeInPath", "domain"];
    vec![
        Operation::new(Method::GET, LINK, "getShortUrl", "Show a link")
            .of(Topic::Links, Scope::Read)
            .text("Also one that does not redirect at the moment.")
            .takes(&of_link)
            .tells("The link.", "ShortUrl")
            .with_etag()
            .fails(&[Kind::NoShortUrl]),
        Operation::new(Method::PATCH, LINK, "editShortUrl", "Change a link")
            .of(Topic::Links, Scope::Edit)
            .text("What is left out stays as it is. Null takes a time, a limit, a title, a description, a status or a password away, and leaves all else as it is. Code and domain of a link never change.")
            .takes(&of_link)
            .takes(&["IfMatch"])
            .may_send("ShortUrlEdit")
            .tells("The link as it is now.", "ShortUrl")
            .with_etag()
            .fails(&[Kind::MalformedBody, Kind::InvalidData, Kind::NoShortUrl, Kind::Superseded]),
        Operation::new(Method::DELETE, LINK, "deleteShortUrl", "Delete a link")
            .of(Topic::Links, Scope::Delete)
            .text("A code that was minted is never given to another link. A slug that a person picked can be picked again.")
            .takes(&of_link)
            .takes(&["IfMatch"])
            .done("It is deleted.")
            .fails(&[Kind::NoShortUrl, Kind::Superseded, Kind::Blocked]),
        Operation::new(Method::POST, "/rest/v3/short-urls/{shortCodeInPath}/restore", "restoreShortUrl", "Bring a deleted link back")
            .of(Topic::Links, Scope::Delete)
            .ours()
            .text("The one that was deleted last under this code or slug, with its tags and limits, in a new version. A slug that somebody has picked since is taken.")
            .takes(&of_link)
            .tells("The link as it is now.", "ShortUrl")
            .with_etag()
            .fails(&[Kind::InvalidData, Kind::NoShortUrl, Kind::SlugTaken]),
        Operation::new(Method::POST, "/rest/v3/short-urls/{shortCodeInPath}/block", "blockShortUrl", "Take a link down")
            .of(Topic::Links, Scope::Admin)
            .ours()
            .text("Visitors are told that it was taken down (410), on every resolver within a second. Only this call's counterpart brings it back, whatever its owner edits or restores, and until then it cannot be deleted. A link that was deleted last under this name can be taken down too. The key has no limits.")
            .takes(&of_link)
            .sends("NewTakedown")
            .tells("The link as it is now.", "ShortUrl")
            .with_etag()
            .fails(&[Kind::MalformedBody, Kind::InvalidData, Kind::NoShortUrl]),
        Operation::new(Method::POST, "/rest/v3/short-urls/{shortCodeInPath}/unblock", "unblockShortUrl", "Bring a link back that was taken down")
            .of(Topic::Links, Scope::Admin)
            .ours()
            .text("What else is said of the link stays as it is. The key has no limits.")
            .takes(&of_link)
            .tells("The link as it is now.", "ShortUrl")
            .with_etag()
            .fails(&[Kind::NoShortUrl]),
    ]
}

fn rules() -> Vec<Operation> {
    const PATH: &str = "/rest/v3/short-urls/{shortCodeInPath}/redirect-rules";
    vec![
        Operation::new(Method::GET, PATH, "getRedirectRules", "Show the rules of a link")
            .of(Topic::Rules, Scope::Read)
            .takes(&["shortCodeInPath", "domain"])
            .tells("The rules, in the order in which they are tried.", "RedirectRules")
            .fails(&[Kind::NoShortUrl]),
        Operation::new(Method::POST, PATH, "setRedirectRules", "Replace the rules of a link")
            .of(Topic::Rules, Scope::Edit)
            .text("All rules are replaced at once; an empty array takes all of them away. Their priority is their place. That there is no such link is told before anything is said of the body.")
            .takes(&["shortCodeInPath", "domain", "IfMatch"])
            .sends("NewRedirectRules")
            .tells("The rules as they are now.", "RedirectRules")
            .fails(&[Kind::MalformedBody, Kind::InvalidData, Kind::NoShortUrl, Kind::Superseded]),
    ]
}

fn tags() -> Vec<Operation> {
    let listing = ["page", "itemsPerPage", "searchTerm", "tagsOrderBy"];
    let list = |path, id, summary| {
        let list = Operation::new(Method::GET, path, id, summary).of(Topic::Tags, Scope::Read);
        list.takes(&listing).fails(&[Kind::InvalidData])
    };
    vec![
        list("/rest/v3/tags", "listTags", "List tags").tells("Names of tags.", "TagPage"),
        list("/rest/v3/tags/stats", "tagsStats", "List tags with their counts")
            .tells("Tags with the number of their links.", "TagStatsPage"),
        Operation::new(Method::PUT, "/rest/v3/tags", "renameTag", "Rename a tag")
            .of(Topic::Tags, Scope::Edit)
            .text("All links that have it have the new one.")
            .sends("TagRenaming")
            .done("It is renamed, or was called so already.")
            .fails(&[
                Kind::MalformedBody,
                Kind::InvalidData,
                Kind::ForbiddenTags,
                Kind::NoTag,
                Kind::TagConflict,
            ]),
        Operation::new(Method::DELETE, "/rest/v3/tags", "deleteTags", "Delete tags")
            .of(Topic::Tags, Scope::Delete)
            .text("They are taken from all links. Tags that do not exist are no error.")
            .takes(&["tags"])
            .done("None of them exists any more.")
            .fails(&[Kind::ForbiddenTags]),
    ]
}

fn domains() -> Vec<Operation> {
    vec![
        Operation::new(Method::GET, "/rest/v3/domains", "listDomains", "List domains")
            .of(Topic::Domains, Scope::Read)
            .text("The default one first, which the operator names with `--public-url`, then the others by name. A key of one domain sees that one only, and a key of its own links those that they are on. A domain without links of which nothing is said is left out.")
            .takes(&["all"])
            .tells("All domains.", "DomainList")
            .fails(&[Kind::InvalidData]),
        Operation::new(Method::PATCH, "/rest/v3/domains/redirects", "editDomainRedirects", "Change where a domain's stray visitors go")
            .of(Topic::Domains, Scope::Admin)
            .text("Visitors of the domain itself, of paths that cannot be codes, and of codes that lead nowhere. A domain that is not known is added. What is left out stays as it is; null takes it away.")
            .sends("DomainRedirectsEdit")
            .tells("Where they go now.", "DomainRedirects")
            .fails(&[Kind::MalformedBody, Kind::InvalidData, Kind::NoDomain, Kind::TooManyDomains]),
        Operation::new(Method::PATCH, "/rest/v3/domains/{domainInPath}", "editDomain", "Change a domain")
            .of(Topic::Domains, Scope::Admin)
            .ours()
            .text("Another name, which its links follow; whether its links lead anywhere; and the protocol that its short URLs are shown with. Name and protocol of the default domain are those of `--public-url` and cannot be changed here.")
            .takes(&["domainInPath"])
            .may_send("DomainEdit")
            .tells("The domain as it is now.", "Domain")
            .fails(&[Kind::MalformedBody, Kind::InvalidData, Kind::NoDomain, Kind::DomainTaken]),
        Operation::new(Method::DELETE, "/rest/v3/domains/{domainInPath}", "removeDomain", "Remove a domain")
            .of(Topic::Domains, Scope::Admin)
            .ours()
            .text("Only one that has no links and that no key is limited to. Links that were deleted on it cannot be brought back.")
            .takes(&["domainInPath"])
            .done("It is removed.")
            .fails(&[Kind::NoDomain, Kind::DomainInUse]),
    ]
}

fn visits() -> Vec<Operation> {
    let get =
        |path, id, summary| Operation::new(Method::GET, path, id, summary).of(Topic::Visits, Scope::Visits);
    let page = ["page", "itemsPerPage", "startDate", "endDate", "excludeBots"];
    let list = |path, id, summary| {
        get(path, id, summary)
            .takes(&page)
            .tells("A page of visits.", "VisitPage")
            .fails(&[Kind::InvalidData])
    };
    let delete = |path, id, summary| {
        let delete = Operation::new(Method::DELETE, path, id, summary).of(Topic::Visits, Scope::Delete);
        delete.tells("How many there were.", "DeletedVisits")
    };
    const OF_LINK: &str = "/rest/v3/short-urls/{shortCodeInPath}/visits";
    let of_link = ["shortCodeInPath", "domain"];
    vec![
        get("/rest/v3/visits", "getVisitsOverview", "Count all visits").tells("Counts.", "VisitsOverview"),
        list("/rest/v3/visits/orphan", "getOrphanVisits", "List visits that no link has led on")
            .takes(&["domain", "type"]),
        list("/rest/v3/visits/non-orphan", "getNonOrphanVisits", "List visits that links have led on")
            .takes(&["domain"]),
        list(OF_LINK, "getShortUrlVisits", "List visits of a link")
            .takes(&of_link)
            .fails(&[Kind::NoShortUrl]),
        list("/rest/v3/tags/{tagInPath}/visits", "getTagVisits", "List visits of the links with a tag")
            .takes(&["tagInPath", "domain"])
            .fails(&[Kind::NoTag]),
        list("/rest/v3/domains/{domainInPath}/visits", "getDomainVisits", "List visits of a domain")
            .takes(&["domainInPath"])
            .fails(&[Kind::NoDomain]),
        delete("/rest/v3/visits/orphan", "deleteOrphanVisits", "Delete visits that no link has led on"),
        delete(OF_LINK, "deleteShortUrlVisits", "Delete the visits of a link")
            .takes(&of_link)
            .fails(&[Kind::NoShortUrl]),
    ]
}

const RESERVATIONS: &str = "/rest/v3/reservations";
const RESERVATION: &str = "/rest/v3/reservations/{idInPath}";

fn reservations() -> Vec<Operation> {
    let of = |method, path, id, summary| {
        Operation::new(method, path, id, summary).of(Topic::Reservations, Scope::Reserve).ours()
    };
    vec![
        of(Method::POST, RESERVATIONS, "reserve", "Reserve codes")
            .text(format!("Up to {COUNT_MAX} codes of one keyspace. No other link gets one of them, for as long as the reservation is not given up."))
            .sends("NewReservation")
            .tells("The reservation with its codes.", "Reservation")
            .fails(&[Kind::MalformedBody, Kind::InvalidData, Kind::OneDomainOnly, Kind::TooManyReserved, Kind::Exhausted]),
        of(Method::GET, RESERVATIONS, "listReservations", "List reservations")
            .text(format!("Those of the key, and all for an admin: the latest {RESERVATIONS_MAX} of them, without their codes."))
            .tells("Reservations.", "ReservationList"),
        of(Method::GET, RESERVATION, "getReservation", "Show a reservation")
            .text("With its codes: whoever lost the answer to the first call gets them again.")
            .takes(&["idInPath"])
            .tells("The reservation with its codes.", "Reservation")
            .fails(&[Kind::NoReservation]),
        of(Method::DELETE, RESERVATION, "giveUpReservation", "Give up what is not filled")
            .text("Links that were filled in stay. Codes that were not can become those of other links. The call may be repeated.")
            .takes(&["idInPath"])
            .done("It is given up.")
            .fails(&[Kind::NoReservation]),
    ]
}

fn filling() -> Vec<Operation> {
    let limit = access::of(&Method::POST, &format!("{RESERVATIONS}/x/short-urls")).bytes;
    vec![
        Operation::new(Method::POST, "/rest/v3/reservations/{idInPath}/short-urls", "fillReservation", "Create links under reserved codes")
            .of(Topic::Reservations, Scope::Reserve)
            .ours()
            .text(format!(
                "Up to {FILL_MAX} links in at most {limit} bytes. Each has a result of its own, and a bad one fails no other. \
                A fill may be repeated: what is stored already is told as `stored` again if it is the same link, and as `conflict` if it is another."
            ))
            .takes(&["idInPath"])
            .sends_any(json!({
                "application/json": { "schema": { "type": "array", "items": reference("FillItem"), "maxItems": FILL_MAX } },
            }))
            .tells("A result for each item, in their order.", "FillResults")
            .fails(&[Kind::MalformedBody, Kind::InvalidData, Kind::OneDomainOnly, Kind::NoReservation, Kind::ReservationClosed]),
    ]
}

fn targets() -> Vec<Operation> {
    const PATH: &str = "/rest/v3/targets";
    let of = |method, path, id, summary| {
        Operation::new(method, path, id, summary).of(Topic::Targets, Scope::Admin).ours()
    };
    vec![
        of(Method::GET, PATH, "listTargets", "List rules about targets").tells("All rules.", "TargetList"),
        of(Method::PUT, PATH, "setTarget", "Add or change a rule about targets")
            .text("The longest pattern that fits a host decides. Hosts that no pattern fits are allowed as long as no rule allows anything: the first rule that does makes it a list of what is allowed. Links to a host that is denied lead nowhere from then on, on every resolver within a second, until the rule is taken away; unless the operator has said that rules are for new links only (`--check-targets creation`).")
            .sends("Target")
            .tells("The rule, its pattern as it is kept.", "Target")
            .fails(&[Kind::MalformedBody, Kind::InvalidData]),
        of(Method::DELETE, "/rest/v3/targets/{patternInPath}", "removeTarget", "Take a rule about targets away")
            .takes(&["patternInPath"])
            .done("It is gone.")
            .fails(&[Kind::NoTarget]),
    ]
}
