//! Values derived from a recorded visit: agent, place, language, visitor.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    net::IpAddr,
    sync::Arc,
};

use agents::{Agent, Cache};
use geoip::{CountryCode, GeoIp, Place};
use links::DomainId;
use url::Url;
use visit_store::Erasure;
use visits::{
    AddressMode, AddressSecret, Day, DaySecret, Event, Language, PlaceText, TextKey, VisitId,
    tally::Dimension,
};

/// Places remembered; the table is emptied when it is full.
const PLACES: usize = 50_000;

/// Retention options of visits.
#[derive(Clone, Debug)]
pub struct Options {
    /// How much of an address is kept.
    pub addresses: AddressMode,
    /// Days for which rows are kept; 0 for none.
    pub keep_days: i32,
}

/// What another system has told of a visit that it recorded.
#[derive(Clone, Copy, Debug)]
pub struct Imported<'a> {
    /// The place.
    pub place: &'a PlaceText,
    /// Whether a bot made the visit; `None` if the system does not tell.
    pub is_bot: Option<bool>,
}

/// Derives what is stored of a visit.
pub struct Enricher {
    /// The parser and its cache, built with the first visit: it takes tens of megabytes.
    agents: Option<Cache>,
    places: GeoIp,
    /// Forgotten from time to time, because the files of places may have changed.
    pub(crate) places_by_address: HashMap<(IpAddr, Option<[u8; 2]>), Arc<Located>>,
    addresses: AddressSecret,
    options: Options,
    pub(crate) untracked: HashSet<DomainId>,
    /// Erasures of visits that may still be in the spool.
    erasures: Vec<Erasure>,
}

/// A place, in the forms in which it is stored and counted.
#[derive(Debug, Default)]
pub(crate) struct Located {
    /// All that is known, as rows refer to it.
    pub(crate) text: Vec<u8>,
    /// The country: two letters, or empty.
    pub(crate) country: String,
    /// Country and region, such as `DE/Bayern`, or empty.
    pub(crate) region: String,
    /// Country, region and city, or empty.
    pub(crate) city: String,
}

pub(crate) struct Derived {
    pub(crate) agent: Arc<Agent>,
    pub(crate) located: Arc<Located>,
    pub(crate) language: Language,
    /// Empty for none.
    pub(crate) referrer_host: String,
    pub(crate) is_bot: bool,
    /// Whether the visit gets a row.
    pub(crate) is_listed: bool,
    /// The key of the visitor on this day.
    pub(crate) visitor: Option<u64>,
    /// The address, as far as it is kept.
    pub(crate) kept: Option<IpAddr>,
    /// The key of that address.
    pub(crate) address: Option<u64>,
    /// Whether another system has recorded the visit.
    pub(crate) is_imported: bool,
}

impl Derived {
    /// Returns the value that a visit counts under in a dimension; empty if it is unknown.
    pub(crate) fn value(&self, event: &Event<'_>, dimension: Dimension) -> Cow<'_, str> {
        let value: &str = match dimension {
            Dimension::Referrer => &self.referrer_host,
            Dimension::Browser => &self.agent.browser,
            Dimension::Os => &self.agent.os,
            Dimension::Device => self.agent.device,
            Dimension::Country => &self.located.country,
            Dimension::Region => &self.located.region,
            Dimension::City => &self.located.city,
            Dimension::Language => return self.language.tag().into(),
            Dimension::Outcome => event.outcome.as_str(),
            Dimension::Rule if event.rule == 0 => "",
            Dimension::Rule => return event.rule.to_string().into(),
        };
        value.into()
    }
}

impl Enricher {
    /// Creates an enricher that has seen nothing yet.
    pub fn new(options: Options, places: GeoIp, addresses: AddressSecret) -> Self {
        Self {
            agents: None,
            places,
            places_by_address: HashMap::new(),
            addresses,
            options,
            untracked: HashSet::new(),
            erasures: Vec::new(),
        }
    }

    /// Replaces the erasures that visits of the spool are subject to. An erased visit is counted
    /// like one whose visitor asked not to be tracked.
    pub(crate) fn set_erasures(&mut self, mut erasures: Vec<Erasure>) {
        // The latest first: most visits are later than all.
        erasures.sort_unstable_by_key(|erasure| std::cmp::Reverse(erasure.before));
        self.erasures = erasures;
    }

    fn is_erased(&self, event: &Event<'_>, kept: IpAddr) -> bool {
        // An erasure begins with a microsecond, so the low bits of the visit's id do not matter.
        let id = VisitId::floor(event.at);
        let mut later = self.erasures.iter().take_while(|erasure| id < erasure.before);
        later.any(|erasure| erasure.network.contains(kept))
    }

    /// Derives what is stored of a visit. `secret` is that of its day, and `today` the current day.
    pub(crate) fn derive(&mut self, event: &Event<'_>, secret: Option<&DaySecret>, today: Day) -> Derived {
        let agent = self.agent(event);
        let kept = self.options.addresses.keep(event.client);
        // Visitors who ask not to be tracked are counted without a row and a visitor key. Where the
        // operator does not respect that, it is not recorded.
        let is_private = event.is_opted_out
            || self.untracked.contains(&event.domain)
            || kept.is_some_and(|kept| self.is_erased(event, kept));
        let kept = kept.filter(|_| !is_private);
        Derived {
            located: self.locate(event),
            language: Language::preferred(event.languages),
            referrer_host: referrer_host(event.referrer),
            is_bot: agent.bot,
            is_listed: self.is_kept(event, today) && !is_private,
            visitor: secret
                .filter(|_| !is_private)
                .map(|secret| secret.visitor(event.client, event.user_agent)),
            address: kept.map(|address| self.addresses.key(address)),
            kept,
            agent,
            is_imported: false,
        }
    }

    /// Derives what is stored of a visit that another system has recorded. Without its address, a
    /// visitor is told by day, user agent and place.
    pub(crate) fn derive_imported(
        &mut self,
        event: &Event<'_>,
        imported: Imported<'_>,
        texts: &TextKey,
        today: Day,
    ) -> Derived {
        let whole = with_whole_country(imported.place);
        let (agent, located) = (self.agent(event), located_at(whole.as_ref().unwrap_or(imported.place)));
        let is_private = self.untracked.contains(&event.domain);
        let day = Day::of(event.at).get().to_le_bytes();
        let visitor = [&day[..], event.user_agent, &located.text[..]].join(&b'\n');
        Derived {
            located: Arc::new(located),
            language: Language::preferred(event.languages),
            referrer_host: referrer_host(event.referrer),
            is_bot: imported.is_bot.unwrap_or(agent.bot),
            is_listed: self.is_kept(event, today) && !is_private,
            visitor: (!is_private).then(|| texts.hash(&visitor).get().cast_unsigned()),
            kept: None,
            address: None,
            agent,
            is_imported: true,
        }
    }

    fn agent(&mut self, event: &Event<'_>) -> Arc<Agent> {
        let agents = self.agents.get_or_insert_with(|| Cache::new(Cache::BYTES_MAX));
        agents.agent(event.user_agent)
    }

    /// Returns whether rows of the day of a visit are kept.
    fn is_kept(&self, event: &Event<'_>, today: Day) -> bool {
        let keep_days = self.options.keep_days;
        keep_days > 0 && Day::of(event.at) > today.minus(keep_days)
    }

    /// Locates an address. The country that a trusted proxy names takes precedence.
    fn locate(&mut self, event: &Event<'_>) -> Arc<Located> {
        let key = (event.client.to_canonical(), event.country);
        if let Some(located) = self.places_by_address.get(&key) {
            return Arc::clone(located);
        }
        if self.places_by_address.len() >= PLACES {
            self.places_by_address.clear();
        }
        let place = self.places.place(key.0);
        let located = Arc::new(located(&place, event.country));
        self.places_by_address.insert(key, Arc::clone(&located));
        located
    }
}

fn located(place: &Place, told: Option<[u8; 2]>) -> Located {
    let told = told.and_then(|letters| CountryCode::parse(std::str::from_utf8(&letters).ok()?));
    if let Some(told) = told.filter(|told| place.country != Some(*told)) {
        // The rest of the record is of another country.
        let (country, name) = (told.as_str().to_owned(), told.name().unwrap_or_default());
        let text =
            PlaceText { country: country.clone(), country_name: name.to_owned(), ..PlaceText::default() };
        return Located { text: text.join(), country, ..Located::default() };
    }
    let country = place.country.map(|country| country.as_str().to_owned()).unwrap_or_default();
    let name = |name: Option<&str>| name.unwrap_or_default().to_owned();
    let (region, city) = (name(place.region.as_deref()), name(place.city.as_deref()));
    let coordinates = place.coordinates;
    located_at(&PlaceText {
        country,
        country_name: name(place.country_name.as_deref()),
        region,
        city,
        latitude: coordinates.map_or(0.0, |it| it.latitude),
        longitude: coordinates.map_or(0.0, |it| it.longitude),
        time_zone: name(place.time_zone.as_deref()),
    })
}

/// Adds the code of a country to its name, or the name to the code: some systems have only one of
/// them. Returns `None` if nothing can be added.
fn with_whole_country(place: &PlaceText) -> Option<PlaceText> {
    let code = match (&*place.country, &*place.country_name) {
        ("", name) => CountryCode::named(name)?,
        (code, "") => CountryCode::parse(code)?,
        _ => return None,
    };
    let country_name = Some(&place.country_name).filter(|name| !name.is_empty());
    let country_name = country_name.cloned().or_else(|| code.name().map(str::to_owned))?;
    Some(PlaceText { country: code.as_str().to_owned(), country_name, ..place.clone() })
}

fn located_at(place: &PlaceText) -> Located {
    let PlaceText { country, region, city, .. } = place;
    Located {
        text: place.join(),
        region: joined(&[country, region]),
        city: joined(&[country, region, city]),
        country: country.clone(),
    }
}

/// Joins the parts of a value such as `DE/Bayern/München`; empty if its last part is unknown.
fn joined(parts: &[&str]) -> String {
    if parts.last().is_none_or(|last| last.is_empty()) { String::new() } else { parts.join("/") }
}

/// Returns the host of a referrer, in lower case and without `www.`; empty for none. A referrer
/// that is no URL with a host, such as `android-app://…`, counts by its beginning, which counters
/// cut.
fn referrer_host(referrer: &[u8]) -> String {
    let text = String::from_utf8_lossy(referrer);
    let text = text.trim();
    if text.is_empty() {
        return String::new();
    }
    let host = Url::parse(text).ok().and_then(|url| url.host_str().map(str::to_ascii_lowercase));
    let host = host.unwrap_or_else(|| text.split(['/', '?', '#']).next().unwrap_or_default().to_owned());
    let host = host.strip_prefix("www.").unwrap_or(&host);
    host.chars().filter(|character| !character.is_control()).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::net::IpAddr;

    use visits::{AddressNetwork, Outcome};

    use super::*;

    const NOON: i64 = 1_795_608_000_000_000;

    pub(crate) fn event(client: &str, at: i64) -> Event<'static> {
        Event {
            at,
            outcome: Outcome::Redirected,
            link: None,
            domain: DomainId::DEFAULT,
            rule: 0,
            client: client.parse::<IpAddr>().unwrap(),
            country: None,
            is_opted_out: false,
            user_agent: b"curl/8",
            referrer: b"",
            languages: b"",
            request: b"",
            target: b"",
        }
    }

    fn enricher(addresses: AddressMode) -> Enricher {
        let options = Options { addresses, keep_days: 90 };
        Enricher::new(options, GeoIp::default(), AddressSecret::new([1; 16]))
    }

    #[test]
    fn a_country_that_a_proxy_named_is_that_of_one_visit() {
        let mut enricher = enricher(AddressMode::Full);
        for country in [None, Some(*b"SG"), None, Some(*b"AT"), Some(*b"SG"), None] {
            let event = Event { country, ..event("192.0.2.77", NOON) };
            let derived = enricher.derive(&event, None, Day::of(NOON));
            assert_eq!(derived.located.country.as_bytes(), country.as_ref().map_or(&b""[..], |told| told));
        }
    }

    /// Returns whether a visit is counted without a row, a visitor and an address.
    fn is_erased(mode: AddressMode, client: &str, at: i64) -> bool {
        let mut enricher = enricher(mode);
        let erasure = |network, before| {
            let network = AddressNetwork::parse(network).unwrap();
            Erasure { network, before: VisitId::floor(before) }
        };
        let erasures = [("198.51.100.7", NOON + 1), ("192.0.2.77", NOON + 9), ("2001:db8::/32", NOON + 5)];
        enricher.set_erasures(erasures.map(|(network, before)| erasure(network, before)).to_vec());
        let event = event(client, at);
        let derived = enricher.derive(&event, Some(&DaySecret::new([3; 16])), Day::of(NOON));
        let is_private = derived.visitor.is_none();
        assert_eq!(derived.is_listed, !is_private);
        assert!(!is_private || derived.kept.is_none() && derived.address.is_none());
        is_private
    }

    #[test]
    fn visits_of_the_spool_are_erased_by_the_address_that_would_be_kept() {
        for (mode, client, at, expected) in [
            (AddressMode::Full, "192.0.2.77", NOON + 8, true),
            (AddressMode::Full, "::ffff:192.0.2.77", NOON + 8, true),
            (AddressMode::Full, "192.0.2.77", NOON + 9, false),
            (AddressMode::Full, "192.0.2.78", NOON, false),
            (AddressMode::Cut, "192.0.2.78", NOON, true),
            (AddressMode::Full, "198.51.100.7", NOON, true),
            (AddressMode::Full, "198.51.100.7", NOON + 1, false),
            (AddressMode::Full, "2001:db8:ffff::1", NOON + 4, true),
            (AddressMode::Full, "2001:db8:ffff::1", NOON + 5, false),
            (AddressMode::None, "192.0.2.77", NOON, false),
        ] {
            assert_eq!(is_erased(mode, client, at), expected, "{mode:?} {client} {at}");
        }
    }

    #[test]
    fn referrers_count_by_their_host() {
        for (referrer, expected) in [
            ("", ""),
            ("https://www.Example.com/a?b", "example.com"),
            ("http://example.com:8080/", "example.com"),
            ("android-app://com.slack/", "com.slack"),
            ("example.org/a", "example.org"),
            ("\u{1}\n", ""),
            ("http://[2001:db8::1]/", "[2001:db8::1]"),
        ] {
            assert_eq!(referrer_host(referrer.as_bytes()), expected, "{referrer}");
        }
        assert_eq!(referrer_host(&[0xff, 0xfe]), "\u{fffd}\u{fffd}");
    }
}
