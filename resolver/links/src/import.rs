//! Links of an import: the codes that they may have, and what is stored of them.

use std::sync::Arc;

use codes::LinkId;
use jiff::Timestamp;

use crate::{Draft, Link, Slug, Tag};

/// A code that is chosen and not minted, as hand-picked ones are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PickedCode {
    /// The code, as a slug.
    pub slug: Slug,
    /// The id whose minted code the slug is, if it is mintable.
    pub mintable: Option<LinkId>,
}

/// The code that an imported link is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportCode {
    /// The code that the link had in its former system.
    Kept(PickedCode),
    /// The first free one of several, for a link that had none.
    FirstFree {
        /// The candidates in the order of their trial. Items with one long URL share them.
        candidates: Arc<[PickedCode]>,
        /// Whether no further candidates can be had.
        is_all: bool,
    },
}

/// The maximum number of imported visits of a link. Databases add up those of millions.
pub const IMPORTED_VISITS_MAX: u64 = 1_000_000_000_000;

/// A link of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportItem {
    /// The code that the link is to have.
    pub code: ImportCode,
    /// The other fields of the link.
    pub draft: Draft,
    /// The link's tags.
    pub tags: Vec<Tag>,
    /// When the link was created in its former system.
    pub created_at: Option<Timestamp>,
    /// Whether its former system minted the code. If the code is mintable here too, it stays one
    /// that no custom slug can take over.
    pub minted: bool,
    /// How many visits of its limit are used up.
    pub uses: u64,
    /// How often the link was visited in its former system, at most [`IMPORTED_VISITS_MAX`].
    pub visits: u64,
}

impl ImportItem {
    /// Returns the draft to store under a code. A mintable code that its former system minted
    /// belongs to its number, as if it had been minted here; any other code is a custom slug.
    pub fn draft_under(&self, code: &PickedCode) -> Draft {
        let mut draft = self.draft.clone();
        if self.minted && code.mintable.is_some() {
            return draft;
        }
        let details = draft.details.get_or_insert_default();
        details.slug = Some(code.slug.clone());
        if self.minted {
            details.origin.get_or_insert_default().minted = true;
        }
        draft
    }

    /// Returns `true` if this link, which has the item's code, leads to the item's target already.
    /// An earlier import may have stored it, perhaps under another name.
    pub fn is_there_as(&self, link: &Link) -> bool {
        let leads_there = link.domain() == self.draft.domain() && link.long_url == self.draft.long_url;
        !link.is_deleted() && leads_there
    }

    /// Returns `true` if this deleted link is the item, which was deleted in its former system.
    pub fn is_there_deleted_as(&self, link: &Link) -> bool {
        let is_same_time = link.details().deleted_at == self.draft.details().deleted_at;
        link.long_url == self.draft.long_url && is_same_time
    }
}

#[cfg(test)]
mod tests {
    use codes::KeyspaceIndex;

    use super::*;
    use crate::{Details, DomainId, LongUrl};

    fn item(details: Details, minted: bool) -> ImportItem {
        ImportItem {
            code: ImportCode::Kept(code(None)),
            draft: Draft::sample(details),
            tags: Vec::new(),
            created_at: None,
            minted,
            uses: 0,
            visits: 0,
        }
    }

    fn code(mintable: Option<LinkId>) -> PickedCode {
        PickedCode { slug: Slug::parse("Abc").unwrap(), mintable }
    }

    fn mintable() -> PickedCode {
        code(Some(LinkId::new(KeyspaceIndex::new(1).unwrap(), 5)))
    }

    fn deleted(at: i64) -> Details {
        Details { deleted_at: Some(Timestamp::from_second(at).unwrap()), ..Details::default() }
    }

    fn stored(item: &ImportItem) -> Link {
        Link::stored(LinkId::from_stored(1), item.draft.clone(), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_code_is_a_slug_unless_it_was_minted_there_and_is_mintable_here() {
        let of = |minted, code: &PickedCode| {
            let details = item(Details::default(), minted).draft_under(code).details;
            details.map(|details| (details.slug.is_some(), details.origin.is_some_and(|from| from.minted)))
        };
        assert_eq!(of(true, &mintable()), None);
        assert_eq!(of(true, &code(None)), Some((true, true)), "an export tells that it was minted");
        assert_eq!(of(false, &mintable()), Some((true, false)));
        assert_eq!(of(false, &code(None)), Some((true, false)));
    }

    #[test]
    fn a_link_is_there_already_with_its_target_and_domain_or_its_time_of_deletion() {
        let (live, gone) = (item(Details::default(), false), item(deleted(1), false));
        let elsewhere = Details { domain: Some(DomainId::from_stored(2)), ..Details::default() };
        let other = |item| Link { long_url: LongUrl::from_stored("https://z/"), ..stored(item) };
        for (link, is_live, is_gone) in [
            (stored(&live), true, false),
            (other(&live), false, false),
            (stored(&item(elsewhere, false)), false, false),
            (stored(&gone), false, true),
            (other(&gone), false, false),
            (stored(&item(deleted(2), false)), false, false),
        ] {
            assert_eq!(
                (live.is_there_as(&link), gone.is_there_deleted_as(&link)),
                (is_live, is_gone),
                "{link:?}"
            );
        }
    }
}
