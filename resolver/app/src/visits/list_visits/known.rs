//! What the rows of a list refer to, as far as it was read before: links and texts. Visits share
//! it, and both are forgotten when they have grown to a megabyte.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use codes::LinkId;
use jiff::Timestamp;
use visit_store::TextRef;
use visits::{Month, PlaceText, TextHash, tally::OTHER};

/// Bytes of links, and of texts, from which on they are forgotten.
const BYTES_MAX: usize = 1 << 20;
/// Bytes that an entry takes beside its texts.
const ENTRY: usize = 128;

/// A link as far as its visits show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VisitedLink {
    pub(super) name: Option<Box<str>>,
    pub(super) long_url: Arc<str>,
    pub(super) edited_at: Option<Timestamp>,
}

/// A text, and what it is shown as.
#[derive(Debug, Default)]
struct Text {
    bytes: Vec<u8>,
    shown: OnceLock<Arc<str>>,
    place: OnceLock<Arc<PlaceText>>,
}

/// Links and texts of visits that were read lately; `None` for those that do not exist.
#[derive(Default)]
pub(crate) struct Known {
    pub(super) links: HashMap<LinkId, Option<VisitedLink>>,
    link_bytes: usize,
    texts: HashMap<TextRef, Option<Text>>,
    text_bytes: usize,
    empty: Text,
}

impl Known {
    pub(super) fn link(&self, id: LinkId) -> Option<&VisitedLink> {
        self.links.get(&id)?.as_ref()
    }

    pub(super) fn add_link(&mut self, id: LinkId, link: Option<VisitedLink>) {
        let urls = link
            .as_ref()
            .map_or(0, |link| link.long_url.len() + link.name.as_ref().map_or(0, |name| name.len()));
        self.link_bytes += ENTRY + urls;
        self.links.insert(id, link);
    }

    pub(super) fn has_text(&self, at: TextRef) -> bool {
        self.texts.contains_key(&at)
    }

    pub(super) fn add_text(&mut self, at: TextRef, bytes: Option<Vec<u8>>) {
        // Shown, a byte that is no UTF-8 takes three.
        self.text_bytes += ENTRY + 4 * bytes.as_ref().map_or(0, Vec::len);
        self.texts.insert(at, bytes.map(|bytes| Text { bytes, ..Text::default() }));
    }

    /// Makes room for what is about to be read.
    pub(super) fn make_room(&mut self) {
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
    pub(super) fn bytes(&self, month: Month, hash: TextHash) -> Option<&[u8]> {
        self.text(month, hash).map(|text| &text.bytes[..])
    }

    /// Returns a text that is shown as it is.
    pub(super) fn shown(&self, month: Month, hash: TextHash) -> Arc<str> {
        if hash == TextHash::OTHER {
            return OTHER.into();
        }
        let text = self.text(month, hash).unwrap_or(&self.empty);
        Arc::clone(text.shown.get_or_init(|| String::from_utf8_lossy(&text.bytes).into()))
    }

    /// Returns the place that a text is of.
    pub(super) fn place(&self, month: Month, hash: TextHash) -> Option<Arc<PlaceText>> {
        let text = self.text(month, hash)?;
        Some(Arc::clone(text.place.get_or_init(|| Arc::new(PlaceText::split(&text.bytes)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hash: i64) -> TextRef {
        TextRef { month: Month::from_stored(1), hash: TextHash::from_stored(hash) }
    }

    #[test]
    fn what_was_read_is_shared_until_it_has_grown_to_a_megabyte() {
        let mut known = Known::default();
        known.add_text(at(10), Some(b"curl".to_vec()));
        known.add_text(at(11), None);
        known.add_link(LinkId::from_stored(7), None);
        let shown = |known: &Known, hash| known.shown(at(hash).month, at(hash).hash);
        assert!(Arc::ptr_eq(&shown(&known, 10), &shown(&known, 10)));
        assert_eq!((&*shown(&known, 10), &*shown(&known, 11), &*shown(&known, 12)), ("curl", "", ""));
        assert!(known.has_text(at(11)) && !known.has_text(at(12)));
        let has_link = |known: &Known| known.links.contains_key(&LinkId::from_stored(7));
        assert!(has_link(&known));
        for number in 0..10_000 {
            known.make_room();
            known.add_text(at(100 + number), Some(vec![b'x'; 1_000]));
            assert!(known.texts.len() <= BYTES_MAX / (4_000 + ENTRY) + 4, "{number}");
        }
        assert!(has_link(&known), "links have a bound of their own");
    }
}
