//! Slots and spools.

use std::collections::BTreeSet;

use visit_store::{SpoolId, Standing, VisitStore, VisitStoreError, WriteError};
use visits::Slot;

use super::{Visit, batch, noon, register, store_all, store_batch};

pub(crate) async fn each_of_128_spools_has_a_slot_and_one_more_has_none(store: &dyn VisitStore) {
    let count = u128::from(Slot::COUNT);
    let mut slots = BTreeSet::new();
    for spool in 0..count {
        let producer = register(store, spool << 64 | spool).await;
        assert!(slots.insert(producer.slot), "{:?} has a spool already", producer.slot);
    }
    let refused = store.register(SpoolId(u128::MAX), "one too many").await;
    assert!(matches!(refused, Err(VisitStoreError::NoSlot)), "{refused:?}");
    let again = register(store, 5 << 64 | 5).await;
    assert_eq!(again.incarnation, 2, "a spool that has a slot keeps it");
    store.release(&again).await.unwrap();
    assert_eq!(register(store, u128::MAX).await.slot, again.slot);
}

pub(crate) async fn a_spool_that_comes_back_goes_on_at_its_position(store: &dyn VisitStore) {
    let mut first = register(store, 1).await;
    let visits: Vec<Visit> = (0..4).map(|visit| Visit::of(1, noon(0) + visit)).collect();
    store_all(store, &mut first, &visits[..1]).await;
    store_all(store, &mut first, &visits[1..2]).await;
    store.release(&first).await.unwrap();
    let late = store_batch(store, &first, &batch(&first, &visits[2..3]), 0).await;
    assert!(matches!(late, Err(WriteError::Fenced)), "{late:?}");
    assert_eq!(store.standing(&first).await.unwrap(), Standing::Unregistered);
    let other = register(store, 2).await;
    assert_eq!(other.slot, first.slot, "the slot was given back");
    let mut back = register(store, 1).await;
    assert_ne!(back.slot, other.slot);
    assert_eq!(back.position, 2);
    assert!(back.incarnation > first.incarnation);
    store_all(store, &mut back, &visits[2..3]).await;
    // A spool with visits that are not stored keeps its slot: the position is another one.
    let stale = visit_store::Producer { position: 2, ..back };
    store.release(&stale).await.unwrap();
    assert_eq!(store.standing(&back).await.unwrap(), Standing::At(3));
    // A process that was replaced gives nothing back.
    let next = register(store, 1).await;
    store.release(&back).await.unwrap();
    assert_eq!(store.standing(&next).await.unwrap(), Standing::At(3));
    // In an older copy of the database a registration is missing, or is an earlier one.
    let lost = visit_store::Producer { incarnation: next.incarnation + 3, ..next };
    assert_eq!(store.standing(&lost).await.unwrap(), Standing::Unregistered);
    let unknown = visit_store::Producer { spool: SpoolId(77), ..next };
    assert_eq!(store.standing(&unknown).await.unwrap(), Standing::Unregistered);
}
