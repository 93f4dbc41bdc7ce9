//! Effects of an edit, a deletion or a restoration on a link, and which links they apply to; and
//! which link leaves its code to the next one.
//!
//! 1. A store reads the link and locks it, decides with these functions, and writes the result in
//!    the same transaction.
//! 2. A deleted link keeps its row (I7). A minted code stays with its number for ever. A custom
//!    slug is free again after the deletion, unless an operator has blocked the link.
//! 3. On the default domain, a code belongs to the link whose id packs its number, also if it was
//!    picked as a slug. Any other name has an entry of its own, which the link claims and releases.
//!    When a link that was picked is deleted, its code is left to the next link that is picked
//!    there. That link has an id of its own and an entry, because visits, tags and the audit log
//!    belong to an id: what happened to one link is never another's.
//! 4. A link that moves to another domain keeps its name, and one that is renamed its domain. Where
//!    it was, its custom slug is free; a code stays with its number on every domain that it was on,
//!    because it may be in print there. Under a former name nothing is found. The next link of the
//!    slug continues its versions.

use codes::{Code, Mint};
use jiff::Timestamp;

use crate::{DomainId, Edit, Link, Precondition, Slug, Tag, api_key::ApiKeyId};

/// Why a change does not apply to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The link that the change is for does not exist any more: it was deleted, or another link has
    /// its code. For a restoration: it is not deleted.
    Absent,
    /// The link is no longer at the version that the caller expects.
    Superseded,
    /// An operator has blocked the link. It keeps its name until the block is lifted.
    Blocked,
    /// The link was to move, be renamed or be restored, and another link has its name there; or it
    /// was to move to a domain that was removed.
    Taken,
}

impl Precondition {
    fn check(&self, link: &Link) -> Result<(), Refusal> {
        if !self.is_of(link) {
            return Err(Refusal::Absent);
        }
        let is_accepted = self.versions.as_ref().is_none_or(|versions| versions.contains(&link.version()));
        if is_accepted { Ok(()) } else { Err(Refusal::Superseded) }
    }
}

impl Edit {
    /// Checks that the edit applies to a link. A deleted link can be blocked, so that it cannot be
    /// restored, and no other edit applies to it. Only another domain or name of a blocked link is
    /// [refused](Refusal::Blocked) as such.
    pub fn check(&self, link: &Link) -> Result<(), Refusal> {
        if link.is_deleted() && self.block.is_none() {
            return Err(Refusal::Absent);
        }
        self.precondition.check(link)?;
        if self.relocation.is_some() && link.is_blocked() { Err(Refusal::Blocked) } else { Ok(()) }
    }
}

impl Link {
    /// Checks that a link may be deleted.
    pub fn check_deletion(&self, precondition: &Precondition) -> Result<(), Refusal> {
        if self.is_deleted() {
            return Err(Refusal::Absent);
        }
        precondition.check(self)?;
        if self.is_blocked() { Err(Refusal::Blocked) } else { Ok(()) }
    }

    /// Deletes the link in a new version. It keeps all its fields, and the names of its tags.
    #[must_use]
    pub fn deleted(self, tags: Vec<Tag>, now: Timestamp, by: ApiKeyId) -> Self {
        let mut link = Edit::default().apply(self, now, by);
        let details = link.details.get_or_insert_default();
        (details.deleted_at, details.deleted_tags) = (Some(now), tags);
        link
    }

    /// Checks that a link may be restored.
    pub fn check_restoration(&self, precondition: &Precondition) -> Result<(), Refusal> {
        if self.is_deleted() { precondition.check(self) } else { Err(Refusal::Absent) }
    }

    /// Restores a deleted link in a new version. Returns it with the tags that it had.
    #[must_use]
    pub fn restored(self, now: Timestamp, by: ApiKeyId) -> (Self, Vec<Tag>) {
        let mut link = Edit::default().apply(self, now, by);
        let details = link.details.get_or_insert_default();
        details.deleted_at = None;
        let tags = std::mem::take(&mut details.deleted_tags);
        (link, tags)
    }

    /// Returns the slug that has an entry of its own. The slug of a link whose id packs a number
    /// has none, because the code belongs to that number, unless the link was renamed.
    pub fn claimed_slug(&self) -> Option<&Slug> {
        self.slug().filter(|_| self.id.unpack().is_none() || self.is_renamed())
    }

    /// Returns whether the link's name follows from its id on its domain, so that it has no entry.
    pub fn is_named_by_id(&self) -> bool {
        self.domain().is_default() && self.id.unpack().is_some() && !self.is_renamed()
    }

    /// Returns `true` if the link's code is left to the next link that is picked under it: the link
    /// is deleted, not blocked, and was itself picked under this slug.
    ///
    /// A minted code stays with its link, and a blocked link keeps its name from others.
    pub fn leaves_code(&self, slug: &Slug) -> bool {
        self.is_deleted() && !self.is_blocked() && self.is_named_by_id() && self.slug() == Some(slug)
    }
}

impl Slug {
    /// Returns the slug as a code that a keyspace may have. On a domain other than the default one,
    /// no code belongs to its number alone.
    pub fn code_on(&self, domain: DomainId) -> Option<Code> {
        Code::parse(self.as_str()).ok().filter(|_| domain.is_default())
    }

    /// Returns the slug as new links keep it: a code of a keyspace in the spelling that is minted.
    /// Otherwise a slug could take the visitors who spell another link's code like it.
    #[must_use]
    pub fn as_minted(self, mint: &Mint) -> Self {
        let minted = Code::parse(self.as_str()).map(|code| mint.as_minted(&code));
        minted.ok().and_then(|code| Self::parse(code.as_str()).ok()).unwrap_or(self)
    }
}

#[cfg(test)]
mod tests {
    use codes::{CodeKey, Keyspace, KeyspaceIndex, LinkId};

    use super::*;
    use crate::{Details, Relocation};

    const BY: ApiKeyId = ApiKeyId(7);
    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn slug(text: &str) -> Slug {
        Slug::parse(text).unwrap()
    }

    fn minted() -> LinkId {
        LinkId::new(KeyspaceIndex::new(1).unwrap(), 5)
    }

    fn link(id: LinkId, text: Option<&str>) -> Link {
        Link { id, ..Link::sample(Details { slug: text.map(slug), ..Details::default() }) }
    }

    fn named(text: &str) -> Link {
        link(LinkId::from_stored(5), Some(text))
    }

    fn relocation(domain: DomainId, name: &str, number: Option<LinkId>) -> Edit {
        let (name, former) = (slug(name), slug("former"));
        let relocation = Relocation { domain, name, former, number, keyspaces: 1 };
        Edit { relocation: Some(relocation), ..Edit::default() }
    }

    fn blocked(link: Link) -> Link {
        let block = Edit { block: Some(Some("phishing".to_owned())), ..Edit::default() };
        block.apply(link, NOW, BY)
    }

    fn deleted(link: Link) -> Link {
        link.deleted(Vec::new(), NOW, BY)
    }

    #[test]
    fn a_change_applies_to_the_link_and_the_versions_that_it_is_for() {
        let link = link(minted(), None);
        let of = |created_at, versions| Precondition { created_at, versions, ..Precondition::default() };
        let later = Some(NOW + jiff::SignedDuration::from_secs(1));
        for (precondition, checked) in [
            (of(None, None), Ok(())),
            (of(Some(NOW), Some(vec![0, 1])), Ok(())),
            (of(later, None), Err(Refusal::Absent)),
            (of(later, Some(vec![3])), Err(Refusal::Absent)),
            (of(Some(NOW), Some(vec![3])), Err(Refusal::Superseded)),
        ] {
            assert_eq!(link.check_deletion(&precondition), checked, "{precondition:?}");
            assert_eq!(deleted(link.clone()).check_restoration(&precondition), checked, "{precondition:?}");
            let edit = Edit { precondition, ..Edit::default() };
            assert_eq!(edit.check(&link), checked, "{edit:?}");
        }
    }

    #[test]
    fn a_deleted_link_can_only_be_blocked_and_restored_and_a_blocked_one_not_deleted() {
        let (live, any) = (link(minted(), None), Precondition::default());
        let gone = deleted(live.clone());
        assert_eq!(Edit::default().check(&gone), Err(Refusal::Absent));
        for reason in [Some("phishing".to_owned()), None] {
            assert_eq!(Edit { block: Some(reason), ..Edit::default() }.check(&gone), Ok(()));
        }
        assert_eq!(gone.check_deletion(&any), Err(Refusal::Absent));
        assert_eq!(live.check_restoration(&any), Err(Refusal::Absent));
        assert_eq!(blocked(live.clone()).check_deletion(&any), Err(Refusal::Blocked));
        let another = Precondition { versions: Some(vec![9]), ..Precondition::default() };
        assert_eq!(blocked(live).check_deletion(&another), Err(Refusal::Superseded));
    }

    #[test]
    fn a_moved_link_is_on_its_new_domain_in_a_new_version_and_a_blocked_one_stays() {
        let edit = |domain| relocation(domain, "my-slug", None);
        let away = edit(DomainId::from_stored(3)).apply(named("my-slug"), NOW, BY);
        assert_eq!((away.domain(), away.version()), (DomainId::from_stored(3), 1));
        let back = edit(DomainId::DEFAULT).apply(away, NOW, BY);
        assert_eq!(back.details.unwrap().domain, None);
        assert_eq!(edit(DomainId::DEFAULT).check(&named("my-slug")), Ok(()));
        let for_former = Edit { precondition: Precondition::of(&named("my-slug")), ..Edit::default() };
        let away = edit(DomainId::from_stored(3)).apply(named("my-slug"), NOW, BY);
        assert_eq!(for_former.check(&away), Err(Refusal::Absent), "it was for its former address");
        assert_eq!(edit(DomainId::DEFAULT).check(&blocked(named("my-slug"))), Err(Refusal::Blocked));
        assert_eq!(edit(DomainId::DEFAULT).check(&deleted(named("my-slug"))), Err(Refusal::Absent));
    }

    #[test]
    fn a_renamed_link_has_its_new_name_alone_and_may_get_the_code_of_its_number_back() {
        let here = DomainId::DEFAULT;
        let to = |name, number| relocation(here, name, number);
        let is_done = |edit: &Edit, link: &Link| edit.relocation.as_ref().unwrap().is_done(link);
        for before in [link(minted(), None), link(minted(), Some("Abc"))] {
            let (away, back) = (to("summer", None), to("Abc", Some(minted())));
            assert!(!is_done(&away, &before) && is_done(&back, &before), "{before:?}");
            let renamed = away.apply(before.clone(), NOW, BY);
            assert!(is_done(&away, &renamed) && !is_done(&back, &renamed), "{renamed:?}");
            assert_eq!(renamed.claimed_slug(), Some(&slug("summer")));
            assert!(!renamed.is_named_by_id() && !renamed.details().is_simple());
            assert!(!deleted(renamed.clone()).leaves_code(&slug("summer")), "its entry says who has it");
            let for_former = Edit { precondition: Precondition::of(&before), ..Edit::default() };
            assert_eq!(for_former.check(&renamed), Err(Refusal::Absent), "it was for its former name");
            let again = back.apply(renamed, NOW, BY);
            assert_eq!((again.slug(), again.is_named_by_id(), again.is_renamed()), (None, true, false));
        }
        let renamed = to("Abd", Some(LinkId::from_stored(9))).apply(named("my-slug"), NOW, BY);
        assert_eq!((renamed.claimed_slug(), renamed.is_renamed()), (Some(&slug("Abd")), false));
        assert_eq!(to("summer", None).check(&blocked(named("my-slug"))), Err(Refusal::Blocked));
    }

    #[test]
    fn a_restored_link_has_what_it_had_in_a_new_version() {
        let (live, tags) = (named("my-slug"), vec![Tag::parse("b").unwrap(), Tag::parse("a").unwrap()]);
        let gone = live.clone().deleted(tags.clone(), NOW, BY);
        assert_eq!((gone.is_deleted(), gone.version(), gone.slug()), (true, 1, live.slug()));
        let (again, had) = gone.restored(NOW, ApiKeyId(8));
        assert_eq!((again.is_deleted(), again.version(), again.slug()), (false, 2, live.slug()));
        let details = again.details.unwrap();
        assert_eq!((had, details.deleted_tags), (tags, Vec::new()));
        assert_eq!(details.edited_by, Some(ApiKeyId(8)));
    }

    #[test]
    fn a_slug_has_an_entry_of_its_own_unless_its_link_has_a_number() {
        assert_eq!(named("my/slug").claimed_slug(), Some(&slug("my/slug")));
        assert_eq!(link(minted(), Some("Abc")).claimed_slug(), None);
        let moved = relocation(DomainId::from_stored(3), "Abc", Some(minted()));
        let elsewhere = moved.apply(link(minted(), Some("Abc")), NOW, BY);
        assert_eq!(elsewhere.slug(), None, "its name follows from its number");
        assert_eq!(link(minted(), None).claimed_slug(), None);
    }

    #[test]
    fn a_slug_that_is_a_code_is_kept_as_it_would_be_minted() {
        let keyspace = Keyspace::parse("spoken=7:a-z:crockford").unwrap();
        let key = CodeKey::parse(&"5a".repeat(32)).unwrap();
        let mint = Mint::new(&key, [(KeyspaceIndex::new(1).unwrap(), keyspace)]);
        for (text, kept) in [
            ("Website", "webs1te"),
            ("WEBSLTE", "webs1te"),
            ("Summary", "Summary"),
            ("2WEBSIT", "2WEBSIT"),
            ("Web/Sit", "Web/Sit"),
        ] {
            assert_eq!(slug(text).as_minted(&mint), slug(kept));
        }
    }

    #[test]
    fn a_code_is_left_after_a_deletion_if_it_was_a_slug_and_its_link_is_not_blocked() {
        let (abc, old) = (slug("Abc"), link(minted(), Some("Abc")));
        assert!(deleted(old.clone()).leaves_code(&abc));
        assert!(!old.leaves_code(&abc), "it is not deleted");
        assert!(!blocked(deleted(old)).leaves_code(&abc));
        assert!(!deleted(link(minted(), None)).leaves_code(&abc), "it was minted");
        assert!(!deleted(link(minted(), Some("Abd"))).leaves_code(&abc));
        assert!(!deleted(named("Abc")).leaves_code(&abc), "its entry says who has the slug");
        let mut elsewhere = deleted(link(minted(), Some("Abc")));
        elsewhere.details.as_mut().unwrap().domain = Some(DomainId::from_stored(3));
        assert!(!elsewhere.leaves_code(&abc), "it may be restored there");
    }
}
