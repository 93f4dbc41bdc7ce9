//! The codes that imported links may have: their own, or candidates from digests of the long URL.
//!
//! They are worked out before a batch is stored, because the store does not know the code key. A
//! link without a code gets few candidates at first: hardly ever are all of them taken, and each
//! costs a part of a digest and a permutation. It gets all if the store finds these taken.

use std::sync::Arc;

use codes::Mint;
use links::{DomainId, ImportCode, ImportItem, LongUrl, PickedCode, Slug};

use crate::{create_link::DIGEST_LEN, creator::SALTS_MAX};

/// The number of digests whose candidates a link gets at first. Each gives four.
const SALTS_FIRST: u32 = 4;

/// Works out codes for imported links, with the mint of their deployment.
pub(crate) struct ImportCodes(pub(crate) Arc<Mint>);

impl ImportCodes {
    pub(crate) fn kept(&self, slug: Slug, domain: DomainId) -> ImportCode {
        ImportCode::Kept(self.picked(slug, domain))
    }

    /// Returns the first candidates for a link that had no code.
    pub(crate) fn derived(&self, long_url: &LongUrl, domain: DomainId) -> ImportCode {
        self.candidates(long_url, domain, SALTS_FIRST)
    }

    /// Gives all candidates to an item whose candidates are all taken, and to the other items with
    /// its long URL, which have the same ones.
    pub(crate) fn add_candidates(&self, items: &mut [ImportItem], taken: usize) {
        let Some(ImportItem { draft, .. }) = items.get(taken) else { return };
        let (long_url, domain) = (draft.long_url.clone(), draft.domain());
        let all = self.candidates(&long_url, domain, SALTS_MAX);
        for item in items {
            let is_derived = matches!(item.code, ImportCode::FirstFree { .. });
            if is_derived && item.draft.long_url == long_url && item.draft.domain() == domain {
                item.code = all.clone();
            }
        }
    }

    fn candidates(&self, long_url: &LongUrl, domain: DomainId, salts: u32) -> ImportCode {
        let texts = (0..salts).flat_map(|salt| self.0.candidates(long_url.as_str(), salt, DIGEST_LEN));
        let slugs = texts.filter_map(|text| Slug::parse(&text).ok());
        let candidates = slugs.map(|slug| self.picked(slug, domain)).collect();
        ImportCode::FirstFree { candidates, is_all: salts >= SALTS_MAX }
    }

    fn picked(&self, slug: Slug, domain: DomainId) -> PickedCode {
        let mintable = slug.code_on(domain).and_then(|code| self.0.read(&code));
        PickedCode { slug, mintable }
    }
}

#[cfg(test)]
mod tests {
    use codes::{CodeKey, Keyspace, KeyspaceIndex};
    use links::{Details, Draft, api_key::ApiKeyId};

    use super::*;

    fn codes() -> ImportCodes {
        let keyspace = |index, text| (KeyspaceIndex::new(index).unwrap(), Keyspace::parse(text).unwrap());
        let keyspaces = [keyspace(1, "web=3:A-Z"), keyspace(2, "long=8:0-9A-Za-z")];
        ImportCodes(Arc::new(Mint::new(&CodeKey::parse(&"5a".repeat(32)).unwrap(), keyspaces)))
    }

    fn item(codes: &ImportCodes, url: &str, code: Option<ImportCode>) -> ImportItem {
        let long_url = LongUrl::from_stored(url);
        ImportItem {
            code: code.unwrap_or_else(|| codes.derived(&long_url, DomainId::DEFAULT)),
            draft: Draft {
                long_url,
                title: None,
                crawlable: false,
                forward_query: true,
                created_by: ApiKeyId(1),
                details: None,
            },
            tags: Vec::new(),
            created_at: None,
            minted: false,
            uses: 0,
            visits: 0,
        }
    }

    fn candidates(item: &ImportItem) -> (&[PickedCode], bool) {
        match &item.code {
            ImportCode::FirstFree { candidates, is_all } => (candidates, *is_all),
            ImportCode::Kept(code) => panic!("{code:?} is its own"),
        }
    }

    #[test]
    fn a_code_is_mintable_on_the_default_domain_if_a_keyspace_has_it() {
        let codes = codes();
        let is_mintable = |text: &str, domain: DomainId| match codes.kept(Slug::parse(text).unwrap(), domain)
        {
            ImportCode::Kept(code) => code.mintable.is_some(),
            ImportCode::FirstFree { .. } => panic!("it has a code"),
        };
        assert!(is_mintable("Abc", DomainId::DEFAULT));
        assert!(!is_mintable("abc", DomainId::DEFAULT) && !is_mintable("Ab/c", DomainId::DEFAULT));
        assert!(!is_mintable("Abc", DomainId::from_stored(3)));
        assert_eq!(codes.0.keyspaces(), 2);
    }

    #[test]
    fn all_items_of_a_url_get_all_candidates_which_begin_alike() {
        let codes = codes();
        let kept = codes.kept(Slug::parse("Abc").unwrap(), DomainId::DEFAULT);
        let mut elsewhere = item(&codes, "https://x.y/", None);
        elsewhere.draft.details =
            Some(Box::new(Details { domain: Some(DomainId::from_stored(2)), ..Details::default() }));
        let mut items = vec![
            item(&codes, "https://x.y/", None),
            item(&codes, "https://x.y/other", None),
            item(&codes, "https://x.y/", None),
            item(&codes, "https://x.y/", Some(kept.clone())),
            elsewhere,
        ];
        let first = candidates(&items[0]).0.to_vec();
        assert!(first.iter().all(|code| code.mintable.is_some()), "{first:?}");
        assert!(!candidates(&items[0]).1);
        codes.add_candidates(&mut items, 2);
        assert_eq!(candidates(&items[0]).0[..first.len()], first);
        assert_eq!(items[0], items[2]);
        assert_eq!((first.len(), candidates(&items[0]).0.len(), candidates(&items[0]).1), (16, 1_000, true));
        assert_eq!((candidates(&items[1]).0.len(), candidates(&items[4]).0.len()), (16, 16));
        assert_eq!(items[3].code, kept);
    }
}
