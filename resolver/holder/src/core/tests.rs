//! Tests of a holder that is superseded: it acts no more, whatever was under way.

use codes::KeyspaceIndex;
use numbers::{Mark, Namespace};

use super::*;
use crate::keyspace::KeyspaceNumbers;

/// Returns a holder that has sent its first store call, with its keyspace.
fn asking_the_store() -> (SupplyCore, Vec<KeyspaceNumbers>) {
    let namespace = Namespace::new("web").unwrap();
    let spec = Spec { index: KeyspaceIndex::new(1).unwrap(), namespace, capacity: 1_000 };
    let (mut core, mut keyspaces) =
        (SupplyCore::new(vec![spec], Rules::default()), vec![KeyspaceNumbers::new(300)]);
    core.step(Millis(0), Event::Woken, &mut keyspaces);
    let registered = Registered {
        incarnation: Incarnation(1),
        last_seq: Seq(0),
        holder_ttl_ms: 30_000,
        ledger: Some("ledger".to_owned()),
        mark: Mark(0),
    };
    let answer = Event::Answered(Ok(Answer::Registered(registered)));
    let effects = core.step(Millis(0), answer, &mut keyspaces);
    assert!(matches!(effects.last(), Some(Effect::Store(StoreCall::AdoptLedger(_)))), "{effects:?}");
    (core, keyspaces)
}

/// Supersedes the holder, and checks that no event leads to another effect.
fn supersede(core: &mut SupplyCore, keyspaces: &mut impl Keyspaces) {
    let effects = core.supersede("a later start".to_owned(), keyspaces);
    assert!(matches!(effects.last(), Some(Effect::Lost(Lost::Superseded(_)))), "{effects:?}");
    assert_eq!((&core.asked, core.retry_at), (&None, None), "no timer is kept");
    for event in [
        Event::Stored(None),
        Event::Stored(Some(StoreAnswer::Ledger("ledger".to_owned()))),
        Event::Answered(Err(Refused::Superseded("a later start".to_owned()))),
        Event::Woken,
        Event::Stop,
        Event::Woken,
    ] {
        let effects = core.step(Millis(1_000_000), event.clone(), keyspaces);
        assert!(effects.is_empty(), "{event:?}: {effects:?}");
        assert!(!core.is_waiting(), "{event:?}");
    }
    assert!(core.lost().is_some());
}

#[test]
fn a_holder_that_is_superseded_during_a_store_call_acts_no_more() {
    let (mut core, mut keyspaces) = asking_the_store();
    supersede(&mut core, &mut keyspaces);
}

#[test]
fn a_holder_that_is_superseded_does_not_repeat_a_store_call_that_failed() {
    let (mut core, mut keyspaces) = asking_the_store();
    let effects = core.step(Millis(0), Event::Stored(None), &mut keyspaces);
    assert!(matches!(effects.last(), Some(Effect::Wait { .. })), "{effects:?}");
    supersede(&mut core, &mut keyspaces);
}
