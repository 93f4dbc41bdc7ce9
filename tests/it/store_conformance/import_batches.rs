//! A batch of an import gives each item the outcome that it has in a batch of its own, although
//! Postgres stores most of them together.

use codes::LinkId;
use harness::Scratch;
use jiff::Timestamp;
use links::{
    Authority, DomainId, ExternalId, ImportCode, ImportItem, PickedCode, Precondition, Record, Slug, Tag,
    api_key::ApiKeyId,
};
use store::{Exported, ImportBatch, Imported, InsertedLink, Store, sqlite::SqliteStore};

use super::{custom_link, keyspace, new_link};

const BY: ApiKeyId = ApiKeyId(7);
const ROUNDS: usize = 6;
/// The items of a round.
const ITEMS: usize = 24;
/// The names of each kind, few enough that items contend for them.
const NAMES: u64 = 8;

/// Numbers that look random, and are the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn hits(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }
}

/// One of several variants of the same items, each under names of its own.
struct Variant {
    number: u64,
    domain: DomainId,
}

impl Variant {
    /// Returns a name that no other variant has.
    fn own(&self, rest: &str) -> String {
        format!("mix{}-{rest}", self.number)
    }

    fn slug(&self, name: u64) -> PickedCode {
        let rest = if name == 0 { "ä".to_owned() } else { name.to_string() };
        PickedCode { slug: Slug::parse(&self.own(&rest)).unwrap(), mintable: None }
    }

    /// Returns a slug that is the code of a number.
    fn code(&self, name: u64) -> PickedCode {
        let number = LinkId::new(keyspace(1), 8_500 + NAMES * self.number + name);
        let slug = Slug::parse(&format!("MIX{}{name}", self.number)).unwrap();
        PickedCode { slug, mintable: Some(number) }
    }

    fn external_id(&self, which: u64) -> ExternalId {
        ExternalId::parse(&self.own(&which.to_string())).unwrap()
    }

    fn item(&self, dice: &mut Dice) -> ImportItem {
        let is_elsewhere = dice.hits(3);
        let picked = |dice: &mut Dice| {
            let (name, is_code) = (dice.roll(NAMES), dice.hits(2));
            if is_code && !is_elsewhere { self.code(name) } else { self.slug(name) }
        };
        let code = if dice.hits(4) {
            ImportCode::FirstFree { candidates: (0..3).map(|_| picked(dice)).collect(), is_all: true }
        } else {
            ImportCode::Kept(picked(dice))
        };
        let is_deleted = matches!(code, ImportCode::Kept(_)) && dice.hits(5);
        let (title, target) = (dice.roll(6), dice.roll(2));
        let mut draft = new_link(title, &format!("https://x.y/mix/{target}")).draft;
        let details = draft.details.get_or_insert_default();
        details.domain = is_elsewhere.then_some(self.domain);
        details.external_id = dice.hits(4).then(|| self.external_id(dice.roll(2)));
        details.version = dice.roll(3);
        let deleted_at = Timestamp::from_second(1_000).unwrap();
        details.deleted_at = is_deleted.then_some(deleted_at);
        let tags = ["mix-a", "mix-b", "mix-ä"].into_iter().filter(|_| dice.hits(2) && !is_deleted);
        ImportItem {
            tags: tags.map(|name| Tag::parse(name).unwrap()).collect(),
            code,
            draft,
            created_at: dice.hits(2).then_some(old()),
            minted: dice.hits(3),
            uses: 3 * dice.roll(2),
            visits: 5 * dice.roll(2),
        }
    }
}

fn old() -> Timestamp {
    Timestamp::from_second(1_577_836_800).unwrap()
}

pub(super) async fn a_batch_gives_its_items_the_outcomes_that_they_have_alone(store: &dyn Store) {
    let scratch = Scratch::new().unwrap();
    let alone = SqliteStore::open(&scratch.path().join("alone.db")).unwrap();
    let alone: &dyn Store = &alone;
    alone.migrate().await.unwrap();
    let expected = imported(alone, 0, 1).await;
    for outcome in ["stored", "AlreadyThere", "Taken"] {
        assert!(expected.iter().any(|line| line == outcome), "{outcome} is not tried: {expected:#?}");
    }
    for (number, at_once) in [(1, 1), (2, 5), (3, ITEMS)] {
        let told = imported(store, number, at_once).await;
        for (place, (told, expected)) in told.iter().zip(&expected).enumerate() {
            assert_eq!(told, expected, "line {place}, with {at_once} items at once");
        }
        assert_eq!(told.len(), expected.len());
    }
}

/// Imports a variant of the items, and tells their outcomes and what is stored.
async fn imported(store: &dyn Store, number: u64, at_once: usize) -> Vec<String> {
    let authority = Authority::parse(&format!("mix{number}.example")).unwrap();
    let domain = store.add_domain(&authority, u32::MAX, BY).await.unwrap().unwrap();
    let keyspaces = store.adopt_keyspaces(&[]).await.unwrap().len();
    let (variant, mut dice) = (Variant { number, domain }, Dice(39));
    let (name, mut end) = (variant.own("import"), 0);
    let (mut ids, mut told): (Vec<LinkId>, Vec<String>) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let items: Vec<ImportItem> = (0..ITEMS).map(|_| variant.item(&mut dice)).collect();
        for items in items.chunks(at_once) {
            end += items.len() as u64;
            let batch = ImportBatch { name: name.clone(), end, items: items.to_vec(), keyspaces };
            for done in store.import(&batch).await.unwrap() {
                told.push(match done {
                    Imported::Stored(id) => {
                        ids.push(id);
                        "stored".to_owned()
                    }
                    other => format!("{other:?}"),
                });
            }
        }
        told.push(format!("{:?}", store.import_position(&name).await.unwrap()));
        tell_links(store, &variant, &ids, &mut told).await;
        tell_names(store, &variant, &ids, &mut told).await;
        for id in ids.iter().step_by(2) {
            // The next round has their names. Some are deleted already.
            let _ = store.delete(*id, &Precondition::default(), BY).await.unwrap();
        }
    }
    tell_external_ids(store, &variant, &ids, &mut told).await;
    told
}

async fn tell_links(store: &dyn Store, variant: &Variant, ids: &[LinkId], told: &mut Vec<String>) {
    for id in ids {
        let before = LinkId::from_stored(id.get() - 1);
        let found = store.export(Some(before), 1).await.unwrap().pop().unwrap();
        let Exported { record: Record { link, tags }, uses, visits } = found;
        assert_eq!(link.id, *id);
        let details = link.details();
        let slug = link.slug().map_or_else(String::new, |slug| slug.as_str().to_owned());
        let slug = slug.replace(&variant.own(""), "").replace(&format!("MIX{}", variant.number), "MIX");
        let mut tags: Vec<&str> = tags.iter().map(Tag::as_str).collect();
        tags.sort_unstable();
        told.push(format!(
            "{slug:?} {} {:?} {:?} old {} version {} deleted {} minted {} {tags:?} {uses} {visits}",
            if link.domain().is_default() { "here" } else { "elsewhere" },
            link.long_url.as_str(),
            link.title,
            link.created_at == old(),
            link.version(),
            link.is_deleted(),
            details.origin.as_ref().is_some_and(|origin| origin.minted),
        ));
    }
}

/// Tells which of the links each name and number has.
async fn tell_names(store: &dyn Store, variant: &Variant, ids: &[LinkId], told: &mut Vec<String>) {
    let place = |id: Option<LinkId>| id.map(|id| ids.iter().position(|one| *one == id));
    for name in 0..NAMES {
        let (slug, PickedCode { slug: code, mintable }) = (variant.slug(name).slug, variant.code(name));
        let here = store.find_slug(DomainId::DEFAULT, &slug).await.unwrap();
        let elsewhere = store.find_slug(variant.domain, &slug).await.unwrap();
        let left = store.find_slug(DomainId::DEFAULT, &code).await.unwrap();
        told.push(format!("{:?}", [here, elsewhere, left, mintable].map(place)));
    }
}

/// Tells which of the links a create with each external id is answered with.
async fn tell_external_ids(store: &dyn Store, variant: &Variant, ids: &[LinkId], told: &mut Vec<String>) {
    for which in 0..2 {
        let slug = variant.own(&format!("new{which}"));
        let link = custom_link(store, DomainId::DEFAULT, &slug, "https://x.y/mix").await;
        let entry = variant.external_id(which).entry(BY);
        let created = store.insert_with_slug(&link, &[], Some(&entry)).await.unwrap();
        told.push(match created {
            InsertedLink::Existing(id) => format!("{:?}", ids.iter().position(|one| *one == id)),
            InsertedLink::Stored(..) => "none".to_owned(),
            other => format!("{other:?}"),
        });
    }
}
