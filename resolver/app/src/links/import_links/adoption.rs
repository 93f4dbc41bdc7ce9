//! Converts rows of an import to links.

use std::{collections::HashMap, sync::Arc};

use codes::Mint;
use jiff::Timestamp;
use links::{
    Block, Details, DomainId, Draft, ExternalId, IMPORTED_VISITS_MAX, ImportCode, ImportItem, LongUrl,
    LongUrlError, Origin, PasswordHash, PickedCode, Preview, Rule, Schemes, Slug, Tag,
    api_key::{ApiKeyId, OPERATOR, check_name},
    check_templates,
    targets::Targets,
};
use transfer::Row;

use crate::{
    create_link::DIGEST_LEN,
    creator::SALTS_MAX,
    link_fields::{check_extra_path, check_redirect_status, cut_title},
};

/// The maximum length of a description in bytes, that of a whole link of another system.
const DESCRIPTION_BYTES: usize = 64 * 1024;
/// The largest count that both databases can compute with.
const COUNT_MAX: u64 = i64::MAX.unsigned_abs();

/// The number of digests whose candidates a link gets at first. Each gives four.
const SALTS_FIRST: u32 = 4;

/// The policy for links whose password or other protection is not part of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unprotected {
    /// They are stored disabled: their codes are kept, and they do not redirect.
    Disable,
    /// They are refused.
    Refuse,
    /// They are published without their protection.
    Open,
}

/// The settings for the conversion of rows to links.
pub(super) struct Adoption {
    pub(super) unprotected: Unprotected,
    pub(super) keys: HashMap<String, ApiKeyId>,
    pub(super) schemes: Schemes,
    pub(super) targets: Targets,
    pub(super) codes: ImportCodes,
}

impl Adoption {
    /// Returns a link ready to be stored, and whether it is disabled because its protection is not
    /// part of the input.
    pub(super) fn adopt(&self, row: Row, domain: DomainId) -> Result<(ImportItem, bool), String> {
        let is_exposed = row.deleted_at.is_none() && row.left_out.iter().any(|left| left.is_protection());
        if is_exposed && self.unprotected == Unprotected::Refuse {
            let lost = row.left_out.iter().filter(|left| left.is_protection()).map(|left| left.as_str());
            let names = lost.collect::<Vec<_>>().join(", ");
            return Err(format!("{names} is not part of the file: choose --unprotected disable or open"));
        }
        let is_disabled = is_exposed && self.unprotected == Unprotected::Disable;
        let slug = row.code.as_deref().map(slug).transpose()?;
        // Databases differ in their earliest time.
        if let Some(time) = row.created_at.filter(|time| *time < Timestamp::UNIX_EPOCH) {
            return Err(format!("createdAt {time}: expected a time since 1970"));
        }
        let tags = tags(&row.tags)?;
        let (created_by, foreign_creator) = self.key("createdBy", row.created_by.as_deref())?;
        let mut details = self.details(&row, domain)?;
        details.disabled |= is_disabled;
        let origin = details.origin.get_or_insert_default();
        origin.created_by = foreign_creator;
        details.origin = std::mem::take(&mut **origin).boxed();
        let tags = if details.deleted_at.is_some() {
            details.deleted_tags = tags;
            Vec::new()
        } else {
            tags
        };
        let draft = Draft {
            long_url: self.long_url("long URL", &row, &row.long_url)?,
            title: text("title", row.title)?.map(|title| cut_title(&title).to_owned()),
            crawlable: row.crawlable.unwrap_or(false),
            forward_query: row.forward_query.unwrap_or(true),
            created_by,
            details: (!details.is_empty()).then(|| Box::new(details)),
        };
        let stored = draft.details();
        check_templates(stored.extra_path, Some(&draft.long_url), &stored.rules)
            .map_err(|error| format!("extraPath: {error}"))?;
        let (minted, uses) = (row.minted.unwrap_or(false), row.uses.unwrap_or(0).min(COUNT_MAX));
        let code = match slug {
            Some(slug) => self.codes.kept(slug, domain),
            None => self.codes.candidates(&draft.long_url, domain, SALTS_FIRST),
        };
        let visits = row.visits.unwrap_or(0).min(IMPORTED_VISITS_MAX);
        let item = ImportItem { code, draft, tags, created_at: row.created_at, minted, uses, visits };
        Ok((item, is_disabled))
    }

    fn details(&self, row: &Row, domain: DomainId) -> Result<Details, String> {
        let (edited_by, foreign_editor) = self.key("editedBy", row.edited_by.as_deref())?;
        let (blocked, foreign_blocker) = self.block(row)?;
        let status = row.redirect_status.map(|status| {
            check_redirect_status(status).map_err(|error| format!("redirectStatus {status}: {error}"))
        });
        let extra_path = row
            .extra_path
            .as_deref()
            .map(|name| check_extra_path(name).map_err(|error| format!("extraPath {name:?}: {error}")));
        let expired_url = row.expired_url.as_deref().map(|url| self.long_url("expiredUrl", row, url));
        let external_id = row
            .external_id
            .as_deref()
            .map(|id| ExternalId::parse(id).map_err(|error| format!("externalId {id:?}: {error}")));
        let password = row.password_hash.as_ref().map(|hash| PasswordHash::from_phc(&hash.0)).transpose();
        if row.deleted_at.is_some() && row.code.is_none() {
            return Err("deletedAt: a deleted link needs a code".to_owned());
        }
        Ok(Details {
            domain: Some(domain).filter(|domain| !domain.is_default()),
            description: text("description", row.description.clone())?,
            valid_since: row.valid_since,
            valid_until: row.valid_until,
            max_visits: row.max_visits.map(|count| count.min(COUNT_MAX)),
            disabled: row.enabled == Some(false),
            blocked,
            status: status.transpose()?,
            extra_path: extra_path.transpose()?,
            expired_url: expired_url.transpose()?,
            preview: self.preview(row)?,
            external_id: external_id.transpose()?,
            // Without the hash, because reasons are written to files.
            password: password.map_err(|error| format!("passwordHash: {error}"))?,
            rules: row.redirect_rules.as_deref().map_or(Ok(Vec::new()), |text| self.rules(row, text))?,
            deleted_at: row.deleted_at,
            edited_at: row.edited_at,
            edited_by: row.edited_at.map(|_| edited_by),
            version: row.version.unwrap_or(0).min(COUNT_MAX),
            origin: Some(Box::new(Origin {
                edited_by: foreign_editor,
                blocked_by: foreign_blocker,
                ..Origin::default()
            })),
            ..Details::default()
        })
    }

    /// Converts a takedown. It is kept whatever the format and the flags, because only an operator
    /// may lift it.
    fn block(&self, row: &Row) -> Result<(Option<Block>, Option<Box<str>>), String> {
        if row.blocked.is_none() && row.blocked_at.is_none() && row.blocked_by.is_none() {
            return Ok((None, None));
        }
        let reason = row.blocked.clone().unwrap_or_else(|| "taken down before it was imported".to_owned());
        let fits = reason.len() <= Block::REASON_BYTES && !reason.chars().any(char::is_control);
        if !fits {
            let most = Block::REASON_BYTES;
            return Err(format!(
                "blocked: expected a reason of at most {most} bytes without control characters"
            ));
        }
        let (by, foreign) = self.key("blockedBy", row.blocked_by.as_deref())?;
        let at = row.blocked_at.unwrap_or_else(Timestamp::now);
        // The precision of stored times.
        let at = Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at);
        Ok((Some(Block { reason, by, at }), foreign))
    }

    fn long_url(&self, field: &str, row: &Row, text: &str) -> Result<LongUrl, String> {
        let url = LongUrl::parse(text, &[], &self.schemes).map_err(|error| match error {
            LongUrlError::Scheme => {
                format!(
                    "{field} {text:?}: only {} are allowed: add its scheme to these with --allowed-schemes",
                    self.schemes
                )
            }
            error => format!("{field} {text:?}: {error}"),
        })?;
        if row.deleted_at.is_none() && !self.targets.allow(url.as_str(), None) {
            return Err(format!("{field} {text:?}: a target rule denies its host"));
        }
        Ok(url)
    }

    fn preview(&self, row: &Row) -> Result<Option<Preview>, String> {
        let image = row.preview_image.as_deref().map(|url| self.long_url("previewImage", row, url));
        let image = image.transpose()?;
        if let Some(url) = image.as_ref().filter(|url| !Preview::takes(url.as_str())) {
            return Err(format!("previewImage {:?}: expected https:// or http://", url.as_str()));
        }
        let title = text("previewTitle", row.preview_title.clone())?;
        let description = text("previewDescription", row.preview_description.clone())?;
        Ok(Preview { title, description, image }.some())
    }

    fn rules(&self, row: &Row, text: &str) -> Result<Vec<Rule>, String> {
        let rules = Rule::parse_list(text).map_err(|error| format!("redirectRules: {error}"))?;
        for rule in &rules {
            self.long_url("redirectRules: long URL", row, rule.long_url.as_str())?;
        }
        Ok(rules)
    }

    /// Returns the API key of this name. If there is none, returns the operator's id and the name.
    fn key(&self, field: &str, name: Option<&str>) -> Result<(ApiKeyId, Option<Box<str>>), String> {
        let Some(name) = name else { return Ok((OPERATOR, None)) };
        check_name(name).map_err(|error| format!("{field} {name:?}: {error}"))?;
        Ok(self.keys.get(name).map_or_else(|| (OPERATOR, Some(name.into())), |id| (*id, None)))
    }
}

/// Works out codes for imported links, with the mint of their deployment: their own, or candidates
/// from digests of the long URL.
///
/// They are worked out before a batch is stored, because the store does not know the code key. A
/// link without a code gets few candidates at first: hardly ever are all of them taken, and each
/// costs a part of a digest and a permutation. It gets all if the store finds these taken.
pub(super) struct ImportCodes(pub(super) Arc<Mint>);

impl ImportCodes {
    pub(super) fn kept(&self, slug: Slug, domain: DomainId) -> ImportCode {
        ImportCode::Kept(self.picked(slug, domain))
    }

    /// Gives all candidates to an item whose candidates are all taken, and to the other items with
    /// its long URL, which have the same ones.
    pub(super) fn add_candidates(&self, items: &mut [ImportItem], taken: usize) {
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
        let slug = slug.as_minted(&self.0);
        let mintable = slug.code_on(domain).and_then(|code| self.0.read(&code));
        PickedCode { slug, mintable }
    }
}

fn slug(code: &str) -> Result<Slug, String> {
    let slug = Slug::parse(code).map_err(|error| format!("code {code:?}: {error}"))?;
    if slug.as_str() != code {
        return Err(format!("code {code:?}: it would be stored as {:?}", slug.as_str()));
    }
    // Visitors find it in each of its spellings.
    slug.kept().map_err(|error| format!("code {code:?}: {error}"))
}

fn tags(texts: &[String]) -> Result<Vec<Tag>, String> {
    let mut tags: Vec<Tag> = Vec::new();
    for text in texts {
        // Not normalized, because a renamed tag may have capitals and spaces.
        let tag = Tag::exactly(text).map_err(|error| format!("tag {text:?}: {error}"))?;
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    Ok(tags)
}

/// Checks a text. Postgres stores no NUL, and no text of a link here is longer than
/// [`DESCRIPTION_BYTES`].
fn text(field: &str, text: Option<String>) -> Result<Option<String>, String> {
    match text {
        Some(text) if text.contains('\0') => Err(format!("{field}: must not contain NUL")),
        Some(text) if text.len() > DESCRIPTION_BYTES => {
            Err(format!("{field}: expected at most {DESCRIPTION_BYTES} bytes"))
        }
        text => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use codes::{CodeKey, Keyspace, KeyspaceIndex};
    use links::{LinkState, RULES_MAX, targets::TargetRule};
    use transfer::{LeftOut, Secret};

    use super::*;

    fn adopt(unprotected: Unprotected, row: Row) -> Result<(ImportItem, bool), String> {
        adopt_to("https://e.test/", unprotected, row)
    }

    fn adopt_to(long_url: &str, unprotected: Unprotected, row: Row) -> Result<(ImportItem, bool), String> {
        let row = Row { long_url: long_url.to_owned(), code: Some("x".to_owned()), ..row };
        adoption(unprotected).adopt(row, DomainId::DEFAULT)
    }

    fn adoption(unprotected: Unprotected) -> Adoption {
        let keys = HashMap::from([("ci".to_owned(), ApiKeyId(7))]);
        let targets = Targets::new(&[TargetRule::parse("denied.test", false).unwrap()]);
        Adoption { unprotected, keys, schemes: Schemes::default(), targets, codes: codes() }
    }

    #[test]
    fn target_rules_apply_to_links_that_redirect_at_once() {
        let error = adopt_to("https://DENIED.test./x", Unprotected::Open, Row::default()).err();
        let expected = "long URL \"https://DENIED.test./x\": a target rule denies its host";
        assert_eq!(error.as_deref(), Some(expected));
        let rules = r#"[{"longUrl":"https://denied.test/","conditions":[]}]"#;
        let row = Row { redirect_rules: Some(rules.to_owned()), ..Row::default() };
        let error = adopt(Unprotected::Open, row).err().unwrap();
        assert!(error.starts_with("redirectRules: long URL \"https://denied.test/\""), "{error}");
        let deleted = Row { deleted_at: Some(Timestamp::UNIX_EPOCH), ..Row::default() };
        assert!(adopt_to("https://denied.test/", Unprotected::Open, deleted).is_ok());
    }

    fn is_live(item: &ImportItem) -> bool {
        item.draft.details().state(Timestamp::now()) == LinkState::Live
    }

    #[test]
    fn a_link_that_loses_its_protection_is_disabled_unless_the_operator_says_otherwise() {
        for left in LeftOut::ALL {
            let row = || Row { left_out: vec![left], ..Row::default() };
            let (item, is_disabled) = adopt(Unprotected::Disable, row()).unwrap();
            assert_eq!([is_disabled, !is_live(&item)], [left.is_protection(); 2]);
            assert_eq!(adopt(Unprotected::Refuse, row()).is_err(), left.is_protection());
            let (item, is_disabled) = adopt(Unprotected::Open, row()).unwrap();
            assert!(!is_disabled && is_live(&item));
        }
        let row = Row { left_out: vec![LeftOut::Password], enabled: Some(false), ..Row::default() };
        assert!(!is_live(&adopt(Unprotected::Open, row).unwrap().0), "it was disabled there");
    }

    #[test]
    fn a_field_that_cannot_be_kept_is_named_and_no_secret_is_told() {
        let hush = Secret("$hush$".to_owned());
        let rule = r#"{"longUrl":"https://e.test/","conditions":[]}"#;
        let many = format!("[{}]", vec![rule; RULES_MAX + 1].join(","));
        let rules = |text: &str| Row { redirect_rules: Some(text.to_owned()), ..Row::default() };
        let path = |name: &str| Row { extra_path: Some(name.to_owned()), ..Row::default() };
        let picture = |url: &str| Row { preview_image: Some(url.to_owned()), ..Row::default() };
        let over = |url: &str| Row { expired_url: Some(url.to_owned()), ..Row::default() };
        for (row, part) in [
            (Row { password_hash: Some(hush), ..Row::default() }, "passwordHash: expected an Argon2 hash"),
            (rules("[7]"), "redirectRules: "),
            (
                rules(r#"[{"longUrl":"javascript:1","conditions":[]}]"#),
                "redirectRules: long URL \"javascript:1\"",
            ),
            (
                rules(r#"[{"longUrl":"https://e.test/","conditions":[{"type":"moon"}]}]"#),
                "redirectRules: a rule has a condition",
            ),
            (rules(&many), "redirectRules: expected at most 100 rules"),
            (Row { redirect_status: Some(200), ..Row::default() }, "redirectStatus 200: expected 301"),
            (path("up"), "extraPath \"up\": expected refuse, ignore"),
            (path("fill"), "extraPath: fill needs {1} to {9} or {rest}"),
            (over("javascript:1"), "expiredUrl \"javascript:1\": only "),
            (over("https://denied.test/"), "expiredUrl \"https://denied.test/\": a target rule denies"),
            (picture("mailto:a@e.test"), "previewImage \"mailto:a@e.test\": expected https://"),
            (
                picture("https://denied.test/a.png"),
                "previewImage \"https://denied.test/a.png\": a target rule",
            ),
            (Row { title: Some("a\0".to_owned()), ..Row::default() }, "title: must not contain NUL"),
            (Row { created_by: Some("a b".to_owned()), ..Row::default() }, "createdBy \"a b\": expected"),
            (Row { created_at: Some(Timestamp::MIN), ..Row::default() }, "expected a time since 1970"),
        ] {
            let error = adopt(Unprotected::Disable, row).err().unwrap();
            assert!(error.contains(part) && !error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn a_takedown_comes_along_whatever_the_flags_say() {
        for row in [
            Row { blocked: Some("malware".to_owned()), ..Row::default() },
            Row { blocked_at: Some(Timestamp::UNIX_EPOCH), ..Row::default() },
            Row { blocked_by: Some("elsewhere".to_owned()), enabled: Some(true), ..Row::default() },
        ] {
            let (item, _) = adopt(Unprotected::Open, row).unwrap();
            assert!(!is_live(&item) && item.draft.details().blocked.is_some());
        }
        let row = Row { blocked: Some("two\nlines".to_owned()), ..Row::default() };
        assert!(adopt(Unprotected::Open, row).err().unwrap().starts_with("blocked: expected a reason"));
    }

    #[test]
    fn visits_come_along_up_to_a_number_that_databases_can_add_up() {
        for (visits, expected) in [(None, 0), (Some(3), 3), (Some(u64::MAX), IMPORTED_VISITS_MAX)] {
            let row = Row { visits, ..Row::default() };
            assert_eq!(adopt(Unprotected::Disable, row).unwrap().0.visits, expected);
        }
    }

    #[test]
    fn the_creator_is_a_key_of_that_name_or_a_name() {
        let of = |name: &str| {
            let row = Row { created_by: Some(name.to_owned()), ..Row::default() };
            let draft = adopt(Unprotected::Disable, row).unwrap().0.draft;
            let origin = draft.details.and_then(|details| details.origin);
            (draft.created_by, origin.and_then(|origin| origin.created_by))
        };
        assert_eq!(of("ci"), (ApiKeyId(7), None));
        assert_eq!(of("elsewhere"), (OPERATOR, Some("elsewhere".into())));
    }

    fn codes() -> ImportCodes {
        let keyspace = |index, text| (KeyspaceIndex::new(index).unwrap(), Keyspace::parse(text).unwrap());
        let keyspaces = [keyspace(1, "web=3:A-Z"), keyspace(2, "long=8:0-9A-Za-z")];
        ImportCodes(Arc::new(Mint::new(&CodeKey::parse(&"5a".repeat(32)).unwrap(), keyspaces)))
    }

    fn item(url: &str, code: Option<&str>, domain: i64) -> ImportItem {
        let row = Row { long_url: url.to_owned(), code: code.map(str::to_owned), ..Row::default() };
        adoption(Unprotected::Open).adopt(row, DomainId::from_stored(domain)).unwrap().0
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
        let mut items = vec![
            item("https://e.test/", None, 0),
            item("https://e.test/other", None, 0),
            item("https://e.test/", None, 0),
            item("https://e.test/", Some("Abc"), 0),
            item("https://e.test/", None, 2),
        ];
        let first = candidates(&items[0]).0.to_vec();
        assert!(first.iter().all(|code| code.mintable.is_some()), "{first:?}");
        assert!(!candidates(&items[0]).1);
        codes.add_candidates(&mut items, 2);
        assert_eq!(candidates(&items[0]).0[..first.len()], first);
        assert_eq!(items[0], items[2]);
        assert_eq!((first.len(), candidates(&items[0]).0.len(), candidates(&items[0]).1), (16, 1_000, true));
        assert_eq!((candidates(&items[1]).0.len(), candidates(&items[4]).0.len()), (16, 16));
        assert_eq!(items[3].code, codes.kept(Slug::parse("Abc").unwrap(), DomainId::DEFAULT));
    }
}
