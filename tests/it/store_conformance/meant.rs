//! A change applies only to the link that its caller found, even if another link has its code
//! since.

use std::time::Duration;

use links::{DetailsEdit, Edit, Link, Precondition, Slug, api_key::ApiKeyId};
use store::{Deleted, Edited, InsertedNamed, NamedLink, Restored, Source, Store};

use super::new_link;

pub(super) async fn a_change_leaves_the_next_link_of_the_same_code_alone(store: &dyn Store) {
    let by = ApiKeyId(1);
    let (slug, new) = (Slug::parse("again").unwrap(), new_link(8_201, "https://x.y/again"));
    let mut draft = new.draft;
    draft.details.get_or_insert_default().slug = Some(slug.clone());
    let keyspaces = store.adopt_keyspaces(&[]).await.unwrap().len();
    let picked = NamedLink { slug, mintable: Some(new.id), keyspaces, draft };
    let pick = async || -> Link {
        let stored = store.insert_named(&picked, &[], None).await.unwrap();
        assert!(matches!(stored, InsertedNamed::Stored(id, ..) if id == new.id), "{stored:?}");
        store.read(&[new.id], Source::Primary).await.unwrap().links.remove(0)
    };
    let first = Precondition::of(&pick().await);
    assert_eq!(store.delete(new.id, &first, by).await.unwrap(), Deleted::Done);
    // Stored times have a resolution of at least a millisecond.
    tokio::time::sleep(Duration::from_millis(5)).await;
    let second = Precondition::of(&pick().await);
    let edit = |precondition: &Precondition| Edit {
        details: DetailsEdit { disabled: Some(true), ..DetailsEdit::default() },
        precondition: precondition.clone(),
        ..Edit::default()
    };
    assert_eq!(store.edit(new.id, &edit(&first), by).await.unwrap(), Edited::Absent);
    assert_eq!(store.delete(new.id, &first, by).await.unwrap(), Deleted::Absent);
    assert!(matches!(store.edit(new.id, &edit(&second), by).await.unwrap(), Edited::Done(_)));
    assert_eq!(store.delete(new.id, &second, by).await.unwrap(), Deleted::Done);
    assert_eq!(store.restore(new.id, &first, keyspaces, by).await.unwrap(), Restored::Absent);
    assert!(matches!(store.restore(new.id, &second, keyspaces, by).await.unwrap(), Restored::Done(_)));
}
