//! `resolver import --verify`: requests each short link from the source and from here, without
//! following redirects, and compares the classes of the statuses and the locations.
//!
//! The requests are HEAD requests, which Shlink, Dub and this service do not count as visits. Their
//! user agent is a bot to Kutt and a desktop computer to Shlink. YOURLS counts them. This service
//! does not show the target of a link with a visit limit to HEAD requests, so only the presence of
//! these links is compared.

use std::{ops::ControlFlow, sync::Arc};

use jiff::tz::TimeZone;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use transfer::{Source, each_row};
use ureq::{
    Agent,
    http::{Request, header},
};
use url::Url;

use super::{
    live::LivePages,
    report::Report,
    source::{FEW_TRIES, SourceServer, host, patiently, send},
};
use crate::{
    Error,
    client::agent,
    table::{cut, printable},
};

/// The maximum number of links that are requested at a time.
const IN_FLIGHT: usize = 32;
/// Maximum number of differences in the summary. Further ones are only counted.
const LISTED_MAX: usize = 1_000;
const USER_AGENT: &str =
    concat!("Mozilla/5.0 (X11; Linux x86_64) resolver/", env!("CARGO_PKG_VERSION"), " (bot; --verify)");
/// The maximum width of a location in a text, in cells.
const LOCATION_CELLS: usize = 200;

/// An answer to a visitor.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    status: u16,
    /// The location, resolved against the address that was requested.
    location: Option<String>,
}

impl Seen {
    /// Returns whether the server failed, or does not answer a client with so many requests: that
    /// tells nothing of the link.
    fn is_refusal(&self) -> bool {
        self.status == 429 || self.status >= 500
    }
}

/// The relation of the two answers for a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Same,
    Different,
    /// The source has the link, and this service does not.
    Missing,
    /// One of the two servers did not answer, or refused to ([`Seen::is_refusal`]).
    Unanswered,
}

/// A link and the two answers for it.
struct Compared {
    name: Name,
    /// Whether the link has a visit limit.
    is_limited: bool,
    there: Option<Seen>,
    here: Option<Seen>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    code: String,
    /// The domain; `None` for the default domain here.
    domain: Option<String>,
}

/// The counts of a comparison, and the links that differ.
#[derive(Default)]
pub(super) struct Comparison {
    same: u64,
    different: u64,
    missing: u64,
    unanswered: u64,
    listed: Vec<Compared>,
}

/// Both servers.
struct Servers {
    source: SourceServer,
    from: Source,
    there: Agent,
    here: Agent,
    address: Url,
    /// The domains of the source that are the default domain here.
    defaults: Vec<String>,
}

/// Compares all links of the source with those of the server at this address, and records the ones
/// that differ in the file for refused links.
pub(super) async fn compare(
    (source, from): (SourceServer, Source),
    address: Url,
    defaults: Vec<String>,
    report: &mut Report,
) -> Result<Comparison, Error> {
    let failed = |_| Error::TaskFailed("comparison of links");
    let (there, here) = (agent(&source.url), agent(&address));
    let servers = Arc::new(Servers { source: source.clone(), from, there, here, address, defaults });
    let (mut compared, mut asking) = (Comparison::default(), JoinSet::new());
    let mut pages = LivePages::open_once(source).await?;
    loop {
        let (back, page) = pages.turn().await?;
        pages = back;
        let Some(items) = page else { break };
        for item in items {
            if asking.len() >= IN_FLIGHT
                && let Some(asked) = asking.join_next().await
            {
                compared.note(asked.map_err(failed)?, report)?;
            }
            let servers = Arc::clone(&servers);
            asking.spawn_blocking(move || servers.compare(&item));
        }
    }
    while let Some(asked) = asking.join_next().await {
        compared.note(asked.map_err(failed)?, report)?;
    }
    pages.bar.finish_and_clear();
    compared.listed.sort_by(|one, other| one.name.code.cmp(&other.name.code));
    Ok(compared)
}

impl Servers {
    /// Requests a link of the source at both servers. Returns `None` for an item that is no link,
    /// which the import has refused.
    fn compare(&self, item: &Value) -> Option<Compared> {
        let (name, is_limited) = self.name(item)?;
        let short = Url::parse(self.source.source.short_url(item)?).ok()?;
        // The host of Dub's API has no short links.
        let is_elsewhere = self.from == Source::Dub;
        let mut there = if is_elsewhere { short.clone() } else { self.source.url.clone() };
        there.set_path(short.path());
        let host = Some(host(&short)).filter(|name| *name != host(&there));
        let mut here = self.address.clone();
        here.path_segments_mut().ok()?.pop_if_empty().extend(name.code.split('/'));
        let there = look(&self.there, &there, host.as_deref());
        let here = look(&self.here, &here, name.domain.as_deref());
        Some(Compared { name, is_limited, there, here })
    }

    /// Returns the name that the import gives to a link, and whether the link has a visit limit.
    fn name(&self, item: &Value) -> Option<(Name, bool)> {
        let mut read = None;
        each_row(self.from, format!("[{item}]").as_bytes(), &TimeZone::UTC, |row| {
            read = row.ok().and_then(|row| Some((row.code?, row.domain, row.max_visits.is_some())));
            ControlFlow::Break(())
        });
        let (code, domain, is_limited) = read?;
        let is_default = |name: &String| self.defaults.iter().any(|known| known.eq_ignore_ascii_case(name));
        Some((Name { code, domain: domain.filter(|name| !is_default(name)) }, is_limited))
    }
}

/// Requests a URL, with a `Host` header if the host differs from that of the URL.
fn look(agent: &Agent, url: &Url, host: Option<&str>) -> Option<Seen> {
    let answer = patiently(FEW_TRIES, || {
        let request = Request::head(url.as_str()).header(header::USER_AGENT, USER_AGENT);
        let request = match host {
            Some(host) => request.header(header::HOST, host),
            None => request,
        };
        send(agent, request.body(())?)
    });
    let answer = answer.ok()?;
    let resolved = |location: String| url.join(&location).map_or(location, String::from);
    Some(Seen { status: answer.status, location: answer.location.map(resolved) })
}

impl Compared {
    fn relation(&self) -> Relation {
        let (Some(there), Some(here)) = (&self.there, &self.here) else { return Relation::Unanswered };
        let classes = [there, here].map(|seen| seen.status / 100);
        let shows_limit = self.is_limited && here.status == 200;
        if there.is_refusal() || here.is_refusal() {
            Relation::Unanswered
        } else if shows_limit || classes[0] == classes[1] && is_same_place(there, here) {
            Relation::Same
        } else if classes[0] != 4 && matches!(here.status, 404 | 410) {
            Relation::Missing
        } else {
            Relation::Different
        }
    }

    fn text(&self) -> String {
        let Name { code, domain } = &self.name;
        let domain = domain.as_ref().map(|domain| format!("{}/", printable(domain))).unwrap_or_default();
        let shown = |seen: &Option<Seen>| {
            let Some(Seen { status, location }) = seen else { return "no answer".to_owned() };
            let location = location.as_deref().unwrap_or_default();
            format!("{status} {}", cut(&printable(location), LOCATION_CELLS)).trim_end().to_owned()
        };
        format!("{domain}{}: {} there, {} here", printable(code), shown(&self.there), shown(&self.here))
    }

    fn json(&self) -> Value {
        let seen = |seen: &Option<Seen>| {
            seen.as_ref().map(|seen| json!({ "status": seen.status, "location": seen.location }))
        };
        let Name { code, domain } = &self.name;
        json!({ "shortCode": code, "domain": domain, "there": seen(&self.there), "here": seen(&self.here) })
    }
}

/// Returns whether two answers lead to the same place. Shlink writes queries anew: a space as
/// `%20`, and parameters of one name side by side. Their order among each other counts.
fn is_same_place(there: &Seen, here: &Seen) -> bool {
    let parts = |seen: &Seen| {
        let mut url = Url::parse(seen.location.as_deref()?).ok()?;
        let mut parameters: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        parameters.sort_by(|(one, _), (other, _)| one.cmp(other));
        url.set_query(None);
        Some((url, parameters))
    };
    there.location == here.location || parts(there).is_some_and(|place| Some(place) == parts(here))
}

impl Comparison {
    fn note(&mut self, compared: Option<Compared>, report: &mut Report) -> Result<(), Error> {
        let Some(compared) = compared else { return Ok(()) };
        let count = match compared.relation() {
            Relation::Same => {
                self.same += 1;
                return Ok(());
            }
            Relation::Different => &mut self.different,
            Relation::Missing => &mut self.missing,
            Relation::Unanswered => &mut self.unanswered,
        };
        *count += 1;
        report.write_reject(&compared.text())?;
        if self.listed.len() < LISTED_MAX {
            self.listed.push(compared);
        }
        Ok(())
    }

    fn left_out(&self) -> u64 {
        (self.different + self.missing + self.unanswered).saturating_sub(self.listed.len() as u64)
    }

    /// Returns whether each link leads to the same place.
    pub(super) fn is_clean(&self) -> bool {
        self.different + self.missing + self.unanswered == 0
    }

    pub(super) fn text(&self) -> String {
        let Self { same, different, missing, unanswered, listed } = self;
        let mut text = format!(
            "compared with the source: {same} the same, {different} different, {missing} missing here, \
             {unanswered} without an answer\n"
        );
        for compared in listed {
            text.push_str(&format!("  {}\n", compared.text()));
        }
        if self.left_out() > 0 {
            text.push_str(&format!("  … and {} more: --rejects FILE keeps them all\n", self.left_out()));
        }
        text
    }

    pub(super) fn json(&self) -> Value {
        let Self { same, different, missing, unanswered, listed } = self;
        json!({
            "same": same, "different": different, "missing": missing, "unanswered": unanswered,
            "differences": listed.iter().map(Compared::json).collect::<Vec<_>>(),
            "differencesLeftOut": self.left_out(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_the_same_if_they_lead_to_the_same_place() {
        let seen = |status, location: &str| {
            let location = Some(location.to_owned()).filter(|location| !location.is_empty());
            Some(Seen { status, location })
        };
        let to = |status| seen(status, "https://a.test/");
        let with = |query: &str| seen(302, &format!("https://a.test/?{query}"));
        for (there, here, relation) in [
            (to(302), to(302), Relation::Same),
            (to(301), to(302), Relation::Same),
            (seen(404, ""), seen(410, ""), Relation::Same),
            (with("a=1&a=3&b=%20"), with("a=1&b=+&a=3"), Relation::Same),
            (with("a=1&a=3"), with("a=3&a=1"), Relation::Different),
            (with("a=1#b"), with("a=1"), Relation::Different),
            (to(302), seen(302, "https://b.test/"), Relation::Different),
            (to(302), seen(200, ""), Relation::Different),
            (seen(404, ""), to(302), Relation::Different),
            (to(302), seen(404, ""), Relation::Missing),
            (seen(200, ""), seen(404, ""), Relation::Missing),
            (None, to(302), Relation::Unanswered),
            (to(302), None, Relation::Unanswered),
            (seen(429, ""), to(302), Relation::Unanswered),
            (seen(500, ""), seen(404, ""), Relation::Unanswered),
            (seen(502, ""), seen(503, ""), Relation::Unanswered),
        ] {
            let name = Name { code: "a".to_owned(), domain: None };
            let compared = Compared { name, is_limited: false, there, here };
            assert_eq!(compared.relation(), relation, "{}", compared.text());
        }
        let name = Name { code: "a\u{1b}".to_owned(), domain: Some("b\u{1b}]0;".to_owned()) };
        let foreign = Compared { name, is_limited: false, there: to(302), here: seen(302, "\u{1b}") };
        assert!(!foreign.text().contains('\u{1b}'), "{:?}", foreign.text());
        let name = Name { code: "a".to_owned(), domain: None };
        let limited = Compared { name, is_limited: true, there: to(302), here: seen(200, "") };
        assert_eq!(limited.relation(), Relation::Same);
    }
}
