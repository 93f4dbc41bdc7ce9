//! Turns rows of visits into visits: reads the texts and links that they refer to.
//!
//! 1. A row refers to texts by hash. A text that was not kept, because too many new ones arrived at
//!    once, is shown as "(other)"; one that was removed is empty.
//! 2. A redirect to the link's own target stores neither URL. The link's short URL and long URL
//!    stand for them, the latter unless the link was edited after the visit.

use std::{collections::HashMap, sync::Arc};

use codes::LinkId;
use jiff::Timestamp;
use links::Link;
use visit_store::{StoredText, TextRef};
use visits::{Day, Month, OrphanKind, Outcome, PlaceText, TextHash, Urls, VisitRow, tally::OTHER};

use super::{AppError, LinkService, VisitView};

/// A link as far as its visits show it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct VisitedLink {
    short_url: Option<Arc<str>>,
    long_url: Arc<str>,
    edited_at: Option<Timestamp>,
}

/// Bytes of links from which on they are forgotten.
const KNOWN_BYTES: usize = 1 << 20;
/// Bytes that a link takes beside its URLs.
const LINK_BYTES: usize = 128;

/// Links of visits that were read lately; `None` for one that does not exist.
#[derive(Default)]
pub(crate) struct KnownLinks {
    links: HashMap<LinkId, Option<VisitedLink>>,
    bytes: usize,
}

impl KnownLinks {
    fn get(&self, id: LinkId) -> Option<&VisitedLink> {
        self.links.get(&id)?.as_ref()
    }

    fn add(&mut self, id: LinkId, link: Option<VisitedLink>) {
        let urls = link.as_ref().map_or(0, |link| {
            link.long_url.len() + link.short_url.as_ref().map_or(0, |short_url| short_url.len())
        });
        self.bytes += LINK_BYTES + urls;
        self.links.insert(id, link);
    }

    /// Makes room for links that are about to be read.
    fn make_room(&mut self) {
        if self.bytes > KNOWN_BYTES {
            *self = Self::default();
        }
    }
}

/// The texts that rows refer to.
#[derive(Default)]
struct Texts(HashMap<TextRef, Vec<u8>>);

impl LinkService {
    /// Returns the visits of rows, at most [`VISITS_READ`](super::VISITS_READ).
    pub(crate) async fn views(
        &self,
        rows: &[VisitRow],
        known: &mut KnownLinks,
    ) -> Result<Vec<VisitView>, AppError> {
        // Both at once: a long page waits for little else.
        let references = references(rows);
        let texts = async { self.visits.texts(&references).await.map_err(AppError::from) };
        let (texts, ()) = tokio::try_join!(texts, self.read_links(rows, known))?;
        let texts = Texts(texts.into_iter().map(|StoredText { at, text }| (at, text)).collect());
        let view = |row: &VisitRow| {
            let link = row.link.and_then(|id| known.get(id));
            view(row, &texts, &self.domain_cache.base(row.domain), link)
        };
        Ok(rows.iter().map(view).collect())
    }

    /// Reads the links of rows that are not known yet.
    async fn read_links(&self, rows: &[VisitRow], known: &mut KnownLinks) -> Result<(), AppError> {
        known.make_room();
        let mut unknown: Vec<LinkId> = rows.iter().filter_map(|row| row.link).collect();
        unknown.retain(|id| !known.links.contains_key(id));
        unknown.sort_unstable();
        unknown.dedup();
        if unknown.is_empty() {
            return Ok(());
        }
        // Not by the way of redirects, which these would hold up.
        let links = self.catalog.plain_links(&unknown).await?;
        let mut found: HashMap<LinkId, VisitedLink> =
            links.iter().map(|link| (link.id, self.visited(link))).collect();
        unknown.iter().for_each(|id| known.add(*id, found.remove(id)));
        Ok(())
    }

    fn visited(&self, link: &Link) -> VisitedLink {
        let name = self.lookup.name_of(link);
        VisitedLink {
            short_url: name.map(|name| format!("{}/{name}", self.domain_cache.base(link.domain())).into()),
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

fn month(row: &VisitRow) -> Month {
    Day::of(row.id.micros()).month()
}

impl Texts {
    fn get(&self, month: Month, hash: TextHash) -> Option<&[u8]> {
        self.0.get(&TextRef { month, hash }).map(Vec::as_slice)
    }

    /// Returns a text that is shown as it is.
    fn shown(&self, month: Month, hash: TextHash) -> String {
        if hash == TextHash::OTHER {
            return OTHER.to_owned();
        }
        self.get(month, hash).map_or_else(String::new, |text| String::from_utf8_lossy(text).into_owned())
    }
}

/// Returns the visit of a row. `base` is the beginning of the visited domain's URLs.
fn view(row: &VisitRow, texts: &Texts, base: &str, link: Option<&VisitedLink>) -> VisitView {
    let month = month(row);
    let urls = match row.urls {
        TextHash::EMPTY => Some(Urls::default()),
        hash => texts.get(month, hash).map(Urls::split),
    };
    let place = texts.get(month, row.place).map(PlaceText::split);
    VisitView {
        referrer: texts.shown(month, row.referrer),
        at: row.id.at(),
        user_agent: texts.shown(month, row.user_agent),
        place,
        is_bot: row.flags.is_bot(),
        visited_url: urls.and_then(|urls| visited_url(row, urls.request, base, link)),
        redirect_url: urls.and_then(|urls| redirect_url(row, urls.target, link)),
        orphan: row.flags.outcome().orphan(),
    }
}

fn visited_url(row: &VisitRow, request: &[u8], base: &str, link: Option<&VisitedLink>) -> Option<Arc<str>> {
    if !request.is_empty() {
        return Some(format!("{base}{}", String::from_utf8_lossy(request)).into());
    }
    match row.flags.outcome().orphan() {
        None => link?.short_url.clone(),
        Some(OrphanKind::BaseUrl) => Some(format!("{base}/").into()),
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
    use crate::visit_memory::{bot, row};

    const AT: i64 = 1_764_028_800_000_000; // 2025-11-25T00:00:00Z
    const BASE: &str = "https://s.test";

    fn texts(texts: &[(i64, &[u8])]) -> Texts {
        let month = Day::of(AT).month();
        let text = |(hash, text): &(i64, &[u8])| {
            (TextRef { month, hash: TextHash::from_stored(*hash) }, text.to_vec())
        };
        Texts(texts.iter().map(text).collect())
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
        let plain = row(AT, 1);
        let view = |link: Option<&VisitedLink>| view(&plain, &Texts::default(), BASE, link);
        let (short, long) = (Some("https://s.test/abc"), Some("https://a.b/"));
        assert_eq!(urls(&view(Some(&link(None)))), [short, long]);
        assert_eq!(urls(&view(Some(&link(Some(AT))))), [short, long]);
        assert_eq!(urls(&view(Some(&link(Some(AT + 1))))), [short, None]);
        assert_eq!(urls(&view(None)), [None, None]);
        let view = view(None);
        assert_eq!((view.orphan, view.is_bot, view.place.is_some()), (None, false, false));
        assert_eq!((view.referrer.as_str(), view.user_agent.as_str()), ("", ""));
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
            ..bot(row(AT, 1))
        };
        let shown = view(&full, &texts, BASE, Some(&link(None)));
        assert_eq!(urls(&shown), [Some("https://s.test/abc?x=\u{fffd}"), Some("https://c.d/")]);
        assert_eq!(
            (shown.user_agent.as_str(), shown.referrer.as_str(), shown.is_bot),
            ("curl", "(other)", true)
        );
        assert_eq!(shown.place, Some(place));
        let own_target = view(&VisitRow { urls: hash(13), ..full }, &texts, BASE, Some(&link(None)));
        assert_eq!(urls(&own_target), [Some("https://s.test/abc?x"), Some("https://a.b/")]);
        let removed =
            view(&VisitRow { urls: hash(99), user_agent: hash(99), ..full }, &texts, BASE, Some(&link(None)));
        assert_eq!((urls(&removed), removed.user_agent.as_str()), ([None, None], ""));
    }

    #[test]
    fn orphan_visits_have_what_was_requested_and_no_link() {
        let texts = texts(&[(11, b"/nope\n"), (12, b"/nope\nhttps://fallback.test/")]);
        let orphan = |outcome, urls| {
            let flags = Flags::new(outcome, false);
            let row = VisitRow { link: None, flags, urls: TextHash::from_stored(urls), ..row(AT, 1) };
            view(&row, &texts, BASE, None)
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
        let one = VisitRow { user_agent: TextHash::from_stored(10), referrer: TextHash::OTHER, ..row(AT, 1) };
        let texts = references(&[one, one, row(AT, 2)]);
        let month = Day::of(AT).month();
        assert_eq!(texts, [TextRef { month, hash: TextHash::from_stored(10) }]);
    }
}
