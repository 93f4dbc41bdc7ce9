//! Changes of many links in one transaction, and walks through links.

use std::sync::Arc;

use codes::LinkId;
use jiff::Timestamp;
use links::{
    BulkChange, BulkEdit, BulkRefusal, DetailsEdit, DomainId, Edit, Filter, LongUrl, Precondition, Record,
    Refusal, ScheduledFields, Slug, Tag, TagsMode, api_key::ApiKeyId,
};
use store::{BulkBatch, InsertedLink, Scheduled, Store};

use super::{custom_link, new_link};

const BY: ApiKeyId = ApiKeyId(7);
const FIRST: u64 = 800_000;
const DONE: Result<bool, BulkRefusal> = Ok(true);
const ABSENT: Result<bool, BulkRefusal> = Err(BulkRefusal::Refused(Refusal::Absent));

fn tags(names: &str) -> Vec<Tag> {
    names.split_whitespace().map(Tag::from_stored).collect()
}

fn edit(edit: Edit, add: &str, remove: &str) -> BulkChange {
    BulkChange::Edit(Box::new(BulkEdit { edit, add_tags: tags(add), remove_tags: tags(remove) }))
}

async fn change(store: &dyn Store, ids: &[LinkId], change: BulkChange) -> Vec<Result<bool, BulkRefusal>> {
    let items = ids.iter().map(|id| (*id, Precondition::default())).collect();
    store.change_many(&BulkBatch { items, change: Arc::new(change), by: BY }).await.unwrap()
}

/// Returns the ids of all steps of a walk, each of at most so many links.
async fn walk(store: &dyn Store, filter: &Filter, most: usize) -> Vec<LinkId> {
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let step = store.walk(filter, None, after, most).await.unwrap();
        assert!(step.entries.len() <= most);
        ids.extend(step.entries.iter().map(|entry| entry.id));
        match step.next {
            Some(next) => assert!(after.replace(next).is_none_or(|before| before < next), "it goes on"),
            None => return ids,
        }
    }
}

fn shown(record: &Record) -> (u64, bool, Vec<&str>) {
    let names = record.tags.iter().map(Tag::as_str).collect();
    (record.link.version(), record.link.details().disabled, names)
}

pub(super) async fn links_are_changed_together_and_each_as_if_alone(store: &dyn Store) {
    let history = store.epoch().await.unwrap();
    let new: Vec<_> = (FIRST..FIRST + 600).map(|number| new_link(number, "https://x.y/bulk")).collect();
    let ids: Vec<LinkId> = new.iter().map(|link| link.id).collect();
    store.insert(&history, &new).await.unwrap();
    assert!(change(store, &[], edit(Edit::default(), "bulk", "")).await.is_empty());
    // The second link has some tags of its own.
    let own = Edit { tags: Some(tags("bulk-old bulk-own")), ..Edit::default() };
    assert!(store.edit(ids[1], &own, BY).await.unwrap().is_ok());

    let details = DetailsEdit { disabled: Some(true), ..DetailsEdit::default() };
    let disable = Edit { details, ..Edit::default() };
    let tagged = || edit(disable.clone(), "bulk bulk-é", "bulk-old");
    assert_eq!(change(store, &ids, tagged()).await, vec![DONE; ids.len()]);
    assert_eq!(change(store, &ids, tagged()).await, vec![Ok(false); ids.len()], "it is repeated");
    let records = store.records(&ids[..3]).await.unwrap();
    assert_eq!(shown(&records[0]), (1, true, vec!["bulk", "bulk-é"]));
    assert_eq!(shown(&records[1]).0, 2, "{:?}", records[1]);
    let mut names = shown(&records[1]).2;
    names.sort_unstable();
    assert_eq!(names, ["bulk", "bulk-own", "bulk-é"]);
    assert_eq!(records[2].link.details().edited_by, Some(BY));
    assert_eq!(records[2].link.title, new[2].draft.title, "other fields stay");

    // Outcomes are in the order of the batch.
    let absent = LinkId::from_stored(i64::MAX);
    let outcomes = change(store, &[ids[5], absent, ids[4]], edit(Edit::default(), "bulk-new", "")).await;
    assert_eq!(outcomes, [DONE, ABSENT, DONE]);
    let another = Precondition { slug: Some(Slug::parse("bulk-other").ok()), ..Precondition::default() };
    let change_another = Arc::new(edit(Edit::default(), "bulk-newer", ""));
    let batch = BulkBatch { items: vec![(ids[6], another)], change: change_another, by: BY };
    assert_eq!(store.change_many(&batch).await.unwrap(), [ABSENT], "it was for a link with that name");

    let title = Some(Some("T".to_owned()));
    let replacing = Edit { tags: Some(tags("bulk-only")), title, ..Edit::default() };
    assert_eq!(change(store, &ids[4..6], edit(replacing, "", "")).await, [DONE; 2]);
    let replaced = store.records(&ids[4..6]).await.unwrap();
    let replaced: Vec<_> = replaced.iter().map(shown).collect();
    assert_eq!(replaced, vec![(3, true, vec!["bulk-only"]); 2]);
    walks_meet_each_link_once(store, &ids).await;
}

async fn walks_meet_each_link_once(store: &dyn Store, ids: &[LinkId]) {
    let by_tags = |names: &str, tags_mode: TagsMode| Filter {
        tags: tags(names),
        tags_mode,
        sees_all: true,
        ..Filter::default()
    };
    let tagged: Vec<LinkId> = ids.iter().filter(|id| ![ids[4], ids[5]].contains(id)).copied().collect();
    for most in [7, 598, 10_000] {
        assert_eq!(walk(store, &by_tags("bulk", TagsMode::Any), most).await, tagged, "{most}");
    }
    for sees_all in [true, false] {
        let two = Filter { sees_all, ..by_tags("bulk-own bulk-only", TagsMode::Any) };
        assert_eq!(walk(store, &two, 2).await, [ids[1], ids[4], ids[5]]);
    }
    assert_eq!(walk(store, &by_tags("bulk bulk-own", TagsMode::All), 10).await, [ids[1]]);
    assert!(walk(store, &by_tags("bulk-no-such", TagsMode::Any), 10).await.is_empty());
    let others = Filter { exclude_tags: tags("bulk"), ..by_tags("bulk-é bulk-only", TagsMode::Any) };
    assert_eq!(walk(store, &others, 10).await, [ids[4], ids[5]]);
    let by_url = Filter { long_url: Some(LongUrl::from_stored("https://x.y/bulk")), ..Filter::default() };
    assert_eq!(walk(store, &by_url, 100).await, ids);
}

pub(super) async fn many_links_are_deleted_and_their_slugs_are_free(store: &dyn Store) {
    let mut ids = Vec::new();
    for name in ["bulk/one", "bulk/two", "bulk/three"] {
        let link = custom_link(store, DomainId::DEFAULT, name, "https://x.y/bulk-slugs").await;
        let stored = store.insert_with_slug(&link, &tags("bulk-gone"), None).await.unwrap();
        let InsertedLink::Stored(id, ..) = stored else { panic!("{stored:?}") };
        ids.push(id);
    }
    let block = Edit { block: Some(Some("phishing".to_owned())), ..Edit::default() };
    assert!(store.edit(ids[1], &block, BY).await.unwrap().is_ok());
    let later = Timestamp::from_second(4_000_000_000).unwrap();
    let retitle = ScheduledFields::of(&Edit { title: Some(None), ..Edit::default() });
    for id in &ids {
        let scheduled = store.schedule_edit(*id, later, &retitle, BY).await.unwrap();
        assert!(matches!(scheduled, Scheduled::Stored(_)), "{scheduled:?}");
    }
    let outcomes = change(store, &ids, BulkChange::Delete).await;
    assert_eq!(outcomes, [DONE, Err(BulkRefusal::Refused(Refusal::Blocked)), DONE]);
    for (name, id) in [("bulk/one", None), ("bulk/two", Some(ids[1])), ("bulk/three", None)] {
        let slug = Slug::parse(name).unwrap();
        assert_eq!(store.find_slug(DomainId::DEFAULT, &slug).await.unwrap(), id, "{name}");
    }
    for (id, left) in ids.iter().zip([0, 1, 0]) {
        assert_eq!(store.scheduled_edits(*id).await.unwrap().len(), left, "a deletion ends them");
    }
    let Ok(back) = store.restore(ids[0], &Precondition::default(), 0, BY).await.unwrap() else {
        panic!("expected the link back");
    };
    assert_eq!((back.tags, back.link.version()), (tags("bulk-gone"), 2));
}
