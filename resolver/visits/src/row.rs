//! Rows: visits as they are stored one by one.

use codes::LinkId;
use links::DomainId;

use crate::{Outcome, StoredAddress, TextHash, VisitId};

/// A stored visit. Texts are referred to by their hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisitRow {
    /// The link that redirected; `None` for an orphan visit.
    pub link: Option<LinkId>,
    /// The id, which holds the time.
    pub id: VisitId,
    /// A part of the visitor's key of that day; 0 for none.
    pub visitor: i32,
    /// The user agent.
    pub user_agent: TextHash,
    /// The referrer.
    pub referrer: TextHash,
    /// The requested URL and the target, of visits that differ from the link's own
    /// ([`Urls`](crate::Urls)).
    pub urls: TextHash,
    /// The place ([`PlaceText`](crate::PlaceText)).
    pub place: TextHash,
    /// The address, as far as it is kept.
    pub address: StoredAddress,
    /// The domain that was visited.
    pub domain: DomainId,
    /// The preferred language.
    pub language: Language,
    /// Outcome of the visit, and whether a bot made it.
    pub flags: Flags,
    /// The redirect rule that matched, counted from 1; 0 for none.
    pub rule: u8,
}

impl VisitRow {
    /// The names of the columns that rows are stored in, in the order of
    /// [`numbers`](Self::numbers).
    pub const COLUMNS: &str =
        "link_id, id, user_agent, referrer, urls, place, address, visitor, domain, language, flags, rule";

    /// Returns the numbers that are stored, by column.
    pub fn numbers(&self) -> [i64; 12] {
        [
            self.link.map_or(0, LinkId::get),
            self.id.get(),
            self.user_agent.get(),
            self.referrer.get(),
            self.urls.get(),
            self.place.get(),
            self.address.get(),
            self.visitor.into(),
            self.domain.get(),
            self.language.get().into(),
            self.flags.get().into(),
            self.rule.into(),
        ]
    }

    /// Reads stored numbers. Returns `None` if one is out of its range.
    pub fn from_numbers(numbers: [i64; 12]) -> Option<Self> {
        let [link, id, texts @ .., address, visitor, domain, language, flags, rule] = numbers;
        let [user_agent, referrer, urls, place] = texts.map(TextHash::from_stored);
        Some(Self {
            link: (link != 0).then(|| LinkId::from_stored(link)),
            id: VisitId::from_stored(id),
            visitor: visitor.try_into().ok()?,
            user_agent,
            referrer,
            urls,
            place,
            address: StoredAddress::from_stored(address),
            domain: DomainId::from_stored(domain),
            language: Language::from_stored(language.try_into().ok()?),
            flags: Flags::from_stored(flags.try_into().ok()?),
            // A later release may count further.
            rule: rule.try_into().unwrap_or(u8::MAX),
        })
    }
}

codes::stored_number! {
    /// The outcome of a visit and whether a bot made it, in one stored number.
    pub struct Flags(i16);
}

/// The bit of bots.
pub const BOT: i16 = 1;

impl Flags {
    /// Combines an outcome with whether a bot made the visit.
    pub fn new(outcome: Outcome, is_bot: bool) -> Self {
        Self(i16::from(outcome.number()) << 1 | i16::from(is_bot))
    }

    /// Returns whether a bot made the visit.
    pub fn is_bot(self) -> bool {
        self.0 & BOT != 0
    }

    /// Returns the outcome; an unknown number of a later release counts as an unknown code.
    pub fn outcome(self) -> Outcome {
        u8::try_from(self.0 >> 1).ok().and_then(Outcome::from_stored).unwrap_or(Outcome::UnknownCode)
    }
}

codes::stored_number! {
    /// A language such as `de` or `pt-BR`, in one number: letters of five bits each, the language
    /// first.
    #[derive(Default)]
    pub struct Language(i32);
}

/// Places of letters: three of the language and two of the country.
const LETTERS: usize = 5;

impl Language {
    /// No language.
    pub const NONE: Self = Self(0);

    /// Parses the first entry of `Accept-Language`: browsers put the preferred language first.
    pub fn preferred(header: &[u8]) -> Self {
        let end = header.iter().position(|byte| matches!(byte, b',' | b';')).unwrap_or(header.len());
        let mut subtags = header[..end].trim_ascii().split(|byte| matches!(byte, b'-' | b'_'));
        let is_of =
            |tag: &[u8], lens: &[usize]| lens.contains(&tag.len()) && tag.iter().all(u8::is_ascii_alphabetic);
        let Some(language) = subtags.next().filter(|tag| is_of(tag, &[2, 3])) else { return Self::NONE };
        let country = subtags.find(|tag| is_of(tag, &[2])).unwrap_or_default();
        let mut letters = [0_u8; LETTERS];
        let (first, last) = letters.split_at_mut(3);
        first.iter_mut().zip(language).chain(last.iter_mut().zip(country)).for_each(|(place, letter)| {
            *place = letter.to_ascii_lowercase() - b'a' + 1;
        });
        Self(letters.iter().fold(0, |all, letter| all << 5 | i32::from(*letter)))
    }

    /// Returns the tag; empty for none.
    pub fn tag(self) -> String {
        let letter = |place: usize| {
            let shift = 5 * (LETTERS - 1 - place);
            u8::try_from(self.0 >> shift & 0x1f).ok().filter(|bits| (1..=26).contains(bits))
        };
        let language = (0..3).filter_map(letter).map(|bits| char::from(bits - 1 + b'a'));
        let country: String = (3..5).filter_map(letter).map(|bits| char::from(bits - 1 + b'A')).collect();
        let language: String = language.collect();
        if country.is_empty() { language } else { format!("{language}-{country}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_read_from_the_front_of_the_header() {
        for (header, tag) in [
            ("de", "de"),
            ("pt-BR,pt;q=0.9", "pt-BR"),
            ("zh-Hant-tw;q=0.8, en", "zh-TW"),
            ("EN_us", "en-US"),
            ("haw", "haw"),
            ("*", ""),
            ("", ""),
            ("x", ""),
            ("english", ""),
            ("d3-US", ""),
            ("\u{fc}", ""),
        ] {
            let language = Language::preferred(header.as_bytes());
            assert_eq!(Language::from_stored(language.get()).tag(), tag, "{header}");
        }
        assert_eq!(Language::from_stored(i32::MIN).tag(), "");
    }

    #[test]
    fn flags_hold_outcome_and_bot() {
        for outcome in Outcome::ALL {
            for is_bot in [false, true] {
                let flags = Flags::from_stored(Flags::new(outcome, is_bot).get());
                assert_eq!((flags.outcome(), flags.is_bot()), (outcome, is_bot));
            }
        }
        assert_eq!(Flags::from_stored(-1).outcome(), Outcome::UnknownCode);
    }
}
