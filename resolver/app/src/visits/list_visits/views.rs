//! Turns rows of visits into visits: reads the texts and links that they refer to.
//!
//! 1. A row refers to texts by hash. A text that was not kept, because too many new ones arrived at
//!    once, is shown as "(other)"; one that was removed is empty.
//! 2. A redirect to the link's own target stores neither URL. The link's name on the visited domain
//!    and its long URL stand for them, the latter unless the link was edited after the visit. A
//!    link may have moved since: its present domain is not that of the visit, nor for everyone to
//!    know.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use codes::LinkId;
use jiff::Timestamp;
use links::{DomainId, Link};
use visit_store::{StoredText, TextRef};
use visits::{Day, Month, OrphanKind, Outcome, PlaceText, TextHash, Urls, VisitRow, tally::OTHER};

use super::{AppError, LinkService, VisitView};

/// Bytes of links, and of texts, from which on they are forgotten.
const BYTES_MAX: usize = 1 << 20;
/// Bytes that an entry takes beside its texts.
const ENTRY: usize = 128;

/// A link, and the domain that it was visited on.
type LinkOnDomain = (LinkId, DomainId);

#[derive(Clone, Debug, PartialEq, Eq)]
struct VisitedLink {
    short_url: Option<Arc<str>>,
    long_url: Arc<str>,
    edited_at: Option<Timestamp>,
}

#[derive(Debug, Default)]
struct Text {
    bytes: Vec<u8>,
    shown: OnceLock<Arc<str>>,
    place: OnceLock<Arc<PlaceText>>,
}

/// Links and texts of visits that were read lately; `None` for those that do not exist. Visits
/// share them, and both are forgotten when they have grown to a megabyte.
#[derive(Default)]
pub(crate) struct Known {
    links: HashMap<LinkOnDomain, Option<VisitedLink>>,
    link_bytes: usize,
    texts: HashMap<TextRef, Option<Text>>,
    text_bytes: usize,
    empty: Text,
}

impl Known {
    fn link(&self, at: LinkOnDomain) -> Option<&VisitedLink> {
        self.links.get(&at)?.as_ref()
    }

    fn add_link(&mut self, at: LinkOnDomain, link: Option<VisitedLink>) {
        let urls = link
            .as_ref()
            .map_or(0, |link| link.long_url.len() + link.short_url.as_ref().map_or(0, |url| url.len()));
        self.link_bytes += ENTRY + urls;
        self.links.insert(at, link);
    }

    fn has_text(&self, at: TextRef) -> bool {
        self.texts.contains_key(&at)
    }

    fn add_text(&mut self, at: TextRef, bytes: Option<Vec<u8>>) {
        // Shown, a byte that is no UTF-8 takes three.
        self.text_bytes += ENTRY + 4 * bytes.as_ref().map_or(0, Vec::len);
        self.texts.insert(at, bytes.map(|bytes| Text { bytes, ..Text::default() }));
    }

    fn make_room(&mut self) {
        if self.link_bytes > BYTES_MAX {
            (self.links, self.link_bytes) = Default::default();
        }
        if self.text_bytes > BYTES_MAX {
            (self.texts, self.text_bytes) = Default::default();
        }
    }

    fn text(&self, month: Month, hash: TextHash) -> Option<&Text> {
        self.texts.get(&TextRef { month, hash })?.as_ref()
    }

    /// Returns the bytes of a text; `None` if it was removed.
    fn bytes(&self, month: Month, hash: TextHash) -> Option<&[u8]> {
        self.text(month, hash).map(|text| &text.bytes[..])
    }

    fn shown(&self, month: Month, hash: TextHash) -> Arc<str> {
        if hash == TextHash::OTHER {
            return OTHER.into();
        }
        let text = self.text(month, hash).unwrap_or(&self.empty);
        Arc::clone(text.shown.get_or_init(|| String::from_utf8_lossy(&text.bytes).into()))
    }

    fn place(&self, month: Month, hash: TextHash) -> Option<Arc<PlaceText>> {
        let text = self.text(month, hash)?;
        Some(Arc::clone(text.place.get_or_init(|| Arc::new(PlaceText::split(&text.bytes)))))
    }
}

impl LinkService {
    /// Returns the visits of rows, at most [`VISITS_READ`](super::VISITS_READ).
    pub(crate) async fn views(
        &self,
        rows: &[VisitRow],
        known: &mut Known,
    ) -> Result<Vec<VisitView>, AppError> {
        known.make_room();
        let mut texts = references(rows);
        texts.retain(|text| !known.has_text(*text));
        let mut links: Vec<LinkOnDomain> = rows.iter().filter_map(link_on_domain).collect();
        links.retain(|at| !known.links.contains_key(at));
        links.sort_unstable();
        links.dedup();
        let mut ids: Vec<LinkId> = links.iter().map(|(id, _)| *id).collect();
        ids.dedup();
        // Both at once: a long page waits for little else.
        let (found_texts, found_links) = tokio::try_join!(self.read_texts(&texts), self.read_links(&ids))?;
        let mut found: HashMap<TextRef, Vec<u8>> =
            found_texts.into_iter().map(|StoredText { at, text }| (at, text)).collect();
        texts.into_iter().for_each(|at| known.add_text(at, found.remove(&at)));
        let found: HashMap<LinkId, &Link> = found_links.iter().map(|link| (link.id, link)).collect();
        for (id, domain) in links {
            known.add_link((id, domain), found.get(&id).map(|link| self.visited(link, domain)));
        }
        let view = |row: &VisitRow| {
            let link = link_on_domain(row).and_then(|at| known.link(at));
            view(row, known, || self.domain_cache.base(row.domain), link)
        };
        Ok(rows.iter().map(view).collect())
    }

    async fn read_texts(&self, texts: &[TextRef]) -> Result<Vec<StoredText>, AppError> {
        if texts.is_empty() { Ok(Vec::new()) } else { Ok(self.visits.texts(texts).await?) }
    }

    /// Reads links, but not by the way of redirects, which these would hold up.
    async fn read_links(&self, ids: &[LinkId]) -> Result<Vec<Link>, AppError> {
        if ids.is_empty() { Ok(Vec::new()) } else { Ok(self.store.plain_links(ids).await?) }
    }

    fn visited(&self, link: &Link, domain: DomainId) -> VisitedLink {
        let name = self.lookup.name_of(link);
        VisitedLink {
            short_url: name.map(|name| format!("{}/{name}", self.domain_cache.base(domain)).into()),
            long_url: link.long_url.as_str().into(),
            edited_at: link.details.as_ref().and_then(|details| details.edited_at),
        }
    }
}

/// Returns the texts that rows refer to, each once.
fn references(rows: &[VisitRow]) -> Vec<TextRef> {
    let of_row = |row: &VisitRow| {
        let month = month(row);
        let hashes = [row.user_agent, row.referrer, row.urls, row.place];
        hashes.map(|hash| TextRef { month, hash })
    };
    let is_stored = |text: &TextRef| !matches!(text.hash, TextHash::EMPTY | TextHash::OTHER);
    let mut texts: Vec<TextRef> = rows.iter().flat_map(of_row).filter(is_stored).collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}

fn link_on_domain(row: &VisitRow) -> Option<LinkOnDomain> {
    Some((row.link?, row.domain))
}

fn month(row: &VisitRow) -> Month {
    Day::of(row.id.micros()).month()
}

/// Returns the visit of a row. `base` returns the beginning of the visited domain's URLs, which few
/// rows need.
fn view(
    row: &VisitRow,
    known: &Known,
    base: impl FnOnce() -> String,
    link: Option<&VisitedLink>,
) -> VisitView {
    let month = month(row);
    let urls = match row.urls {
        TextHash::EMPTY => Some(Urls::default()),
        hash => known.bytes(month, hash).map(Urls::split),
    };
    VisitView {
        referrer: known.shown(month, row.referrer),
        at: row.id.at(),
        user_agent: known.shown(month, row.user_agent),
        place: known.place(month, row.place),
        is_bot: row.flags.is_bot(),
        visited_url: urls.and_then(|urls| visited_url(row, urls.request, base, link)),
        redirect_url: urls.and_then(|urls| redirect_url(row, urls.target, link)),
        orphan: row.flags.outcome().orphan(),
    }
}

fn visited_url(
    row: &VisitRow,
    request: &[u8],
    base: impl FnOnce() -> String,
    link: Option<&VisitedLink>,
) -> Option<Arc<str>> {
    if !request.is_empty() {
        return Some(format!("{}{}", base(), String::from_utf8_lossy(request)).into());
    }
    match row.flags.outcome().orphan() {
        None => link?.short_url.clone(),
        Some(OrphanKind::BaseUrl) => Some(format!("{}/", base()).into()),
        Some(_) => None,
    }
}

fn redirect_url(row: &VisitRow, target: &[u8], link: Option<&VisitedLink>) -> Option<Arc<str>> {
    if !target.is_empty() {
        return Some(String::from_utf8_lossy(target).into());
    }
    let link = link.filter(|_| row.flags.outcome() == Outcome::Redirected)?;
    let is_unchanged = link.edited_at.is_none_or(|edited_at| edited_at <= row.id.at());
    is_unchanged.then(|| Arc::clone(&link.long_url))
}

#[cfg(test)]
mod tests {
    use visits::Flags;

    use super::*;
    use crate::visits::visit_memory::{START, bot, row};

    fn base() -> String {
        "https://s.test".to_owned()
    }

    fn texts(texts: &[(i64, &[u8])]) -> Known {
        let (month, mut known) = (Day::of(START).month(), Known::default());
        for (hash, text) in texts {
            known.add_text(TextRef { month, hash: TextHash::from_stored(*hash) }, Some(text.to_vec()));
        }
        known
    }

    fn link(edited_at: Option<i64>) -> VisitedLink {
        VisitedLink {
            short_url: Some("https://s.test/abc".into()),
            long_url: "https://a.b/".into(),
            edited_at: edited_at.map(|at| Timestamp::from_microsecond(at).unwrap()),
        }
    }

    fn urls(view: &VisitView) -> [Option<&str>; 2] {
        [view.visited_url.as_deref(), view.redirect_url.as_deref()]
    }

    #[test]
    fn a_plain_visit_has_the_urls_of_its_link_unless_that_was_edited_since() {
        let plain = row(START, 1);
        let view = |link: Option<&VisitedLink>| view(&plain, &Known::default(), base, link);
        let (short, long) = (Some("https://s.test/abc"), Some("https://a.b/"));
        assert_eq!(urls(&view(Some(&link(None)))), [short, long]);
        assert_eq!(urls(&view(Some(&link(Some(START))))), [short, long]);
        assert_eq!(urls(&view(Some(&link(Some(START + 1))))), [short, None]);
        assert_eq!(urls(&view(None)), [None, None]);
        let view = view(None);
        assert_eq!((view.orphan, view.is_bot, view.place.is_some()), (None, false, false));
        assert_eq!((&*view.referrer, &*view.user_agent), ("", ""));
    }

    #[test]
    fn stored_texts_take_the_place_of_the_links() {
        let place = PlaceText { country: "DE".to_owned(), ..PlaceText::default() };
        let texts = texts(&[
            (10, b"curl"),
            (11, b"/abc?x=\xff\nhttps://c.d/"),
            (12, &place.join()),
            (13, b"/abc?x\n"),
        ]);
        let hash = TextHash::from_stored;
        let full = VisitRow {
            user_agent: hash(10),
            referrer: TextHash::OTHER,
            urls: hash(11),
            place: hash(12),
            ..bot(row(START, 1))
        };
        let shown = view(&full, &texts, base, Some(&link(None)));
        assert_eq!(urls(&shown), [Some("https://s.test/abc?x=\u{fffd}"), Some("https://c.d/")]);
        assert_eq!((&*shown.user_agent, &*shown.referrer, shown.is_bot), ("curl", "(other)", true));
        assert_eq!(shown.place.as_deref(), Some(&place));
        let own_target = view(&VisitRow { urls: hash(13), ..full }, &texts, base, Some(&link(None)));
        assert_eq!(urls(&own_target), [Some("https://s.test/abc?x"), Some("https://a.b/")]);
        let removed =
            view(&VisitRow { urls: hash(99), user_agent: hash(99), ..full }, &texts, base, Some(&link(None)));
        assert_eq!((urls(&removed), &*removed.user_agent), ([None, None], ""));
    }

    #[test]
    fn orphan_visits_have_what_was_requested_and_no_link() {
        let texts = texts(&[(11, b"/nope\n"), (12, b"/nope\nhttps://fallback.test/")]);
        let orphan = |outcome, urls| {
            let flags = Flags::new(outcome, false);
            let row = VisitRow { link: None, flags, urls: TextHash::from_stored(urls), ..row(START, 1) };
            view(&row, &texts, base, None)
        };
        let unknown = orphan(Outcome::UnknownCode, 11);
        assert_eq!(unknown.orphan, Some(OrphanKind::InvalidShortUrl));
        assert_eq!(urls(&unknown), [Some("https://s.test/nope"), None]);
        let sent_on = orphan(Outcome::InvalidPath, 12);
        assert_eq!(urls(&sent_on), [Some("https://s.test/nope"), Some("https://fallback.test/")]);
        assert_eq!(urls(&orphan(Outcome::BaseUrl, 0)), [Some("https://s.test/"), None]);
        assert_eq!(urls(&orphan(Outcome::UnknownCode, 0)), [None, None]);
    }

    #[test]
    fn each_text_is_asked_for_once_and_only_if_there_is_one() {
        let one =
            VisitRow { user_agent: TextHash::from_stored(10), referrer: TextHash::OTHER, ..row(START, 1) };
        let texts = references(&[one, one, row(START, 2)]);
        let month = Day::of(START).month();
        assert_eq!(texts, [TextRef { month, hash: TextHash::from_stored(10) }]);
    }

    fn text_ref(hash: i64) -> TextRef {
        TextRef { month: Month::from_stored(1), hash: TextHash::from_stored(hash) }
    }

    #[test]
    fn what_was_read_is_shared_until_it_has_grown_to_a_megabyte() {
        let mut known = Known::default();
        known.add_text(text_ref(10), Some(b"curl".to_vec()));
        known.add_text(text_ref(11), None);
        let link = (LinkId::from_stored(7), DomainId::DEFAULT);
        known.add_link(link, None);
        let shown = |known: &Known, hash| known.shown(text_ref(hash).month, text_ref(hash).hash);
        assert!(Arc::ptr_eq(&shown(&known, 10), &shown(&known, 10)));
        assert_eq!((&*shown(&known, 10), &*shown(&known, 11), &*shown(&known, 12)), ("curl", "", ""));
        assert!(known.has_text(text_ref(11)) && !known.has_text(text_ref(12)));
        let has_link = |known: &Known| known.links.contains_key(&link);
        assert!(has_link(&known));
        for number in 0..10_000 {
            known.make_room();
            known.add_text(text_ref(100 + number), Some(vec![b'x'; 1_000]));
            assert!(known.texts.len() <= BYTES_MAX / (4_000 + ENTRY) + 4, "{number}");
        }
        assert!(has_link(&known), "links have a bound of their own");
    }
}
