//! Tests of a holder's end: one that is superseded acts no more, and one that stops returns all its
//! blocks, whatever was under way.

use codes::KeyspaceIndex;
use numbers::{Generation, Mark, Namespace, Span, StoreEpoch};

use super::*;
use crate::{buffer::Fate, keyspace::KeyspaceNumbers};

/// Returns a holder that does nothing yet, with its keyspace.
fn idle() -> (SupplyCore, Vec<KeyspaceNumbers>) {
    let namespace = Namespace::new("web").unwrap();
    let spec = Spec { index: KeyspaceIndex::new(1).unwrap(), namespace, capacity: 1_000 };
    (SupplyCore::new(vec![spec], SafetyRules::default()), vec![KeyspaceNumbers::new(300)])
}

fn registered() -> Answer {
    Answer::Registered(Registered {
        incarnation: Incarnation(1),
        last_seq: Seq(0),
        holder_ttl_ms: 30_000,
        ledger: Some("ledger".to_owned()),
        mark: Mark(0),
    })
}

/// Supersedes the holder, and checks that no event leads to another effect.
fn supersede(core: &mut SupplyCore, keyspaces: &mut impl Keyspaces) {
    let effects = core.supersede("a later start".to_owned(), keyspaces);
    assert!(matches!(effects.last(), Some(Effect::Lost(StopReason::Superseded(_)))), "{effects:?}");
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
    assert!(core.lost.is_some());
}

#[test]
fn a_holder_that_is_superseded_acts_no_more_during_a_store_call_or_after_one_that_failed() {
    for has_failed in [false, true] {
        let (mut core, mut keyspaces) = idle();
        core.step(Millis(0), Event::Woken, &mut keyspaces);
        let effects = core.step(Millis(0), Event::Answered(Ok(registered())), &mut keyspaces);
        assert!(matches!(effects.last(), Some(Effect::Store(StoreCall::AdoptLedger(_)))), "{effects:?}");
        if has_failed {
            let effects = core.step(Millis(0), Event::Stored(None), &mut keyspaces);
            assert!(matches!(effects.last(), Some(Effect::Wait { .. })), "{effects:?}");
        }
        supersede(&mut core, &mut keyspaces);
    }
}

/// An issuer and a database that accept every call, with a count of allocated and returned numbers.
#[derive(Default)]
struct Peers {
    allocated: u64,
    returned: u64,
}

impl Peers {
    fn block(&mut self) -> Answer {
        let span = Span::new(self.allocated, 10).unwrap();
        self.allocated += 10;
        let namespace = Namespace::new("web").unwrap();
        let block = Block { namespace, span, generation: Generation(self.allocated) };
        Answer::Allocated { block, leaked: None, store: None }
    }

    fn answer(&mut self, effect: Option<Effect>) -> Option<Event> {
        let call = match effect? {
            Effect::Done => return None,
            Effect::Wait { .. } => return Some(Event::Woken),
            Effect::Store(call) => {
                return Some(Event::Stored(Some(match call {
                    StoreCall::AdoptLedger(ledger) => StoreAnswer::Ledger(ledger),
                    StoreCall::RaiseMark(_) => StoreAnswer::Raised(true),
                    StoreCall::Epoch => StoreAnswer::Epoch(StoreEpoch::new("7001:1").unwrap()),
                    StoreCall::Register(_) => StoreAnswer::Entered,
                    StoreCall::Release(..) => StoreAnswer::Released,
                    other => panic!("{other:?}"),
                })));
            }
            Effect::Call(call) => call,
            other => panic!("{other:?}"),
        };
        Some(Event::Answered(Ok(match call {
            Call::Register(_) => registered(),
            Call::Allocate { .. } => self.block(),
            Call::Return { closed, .. } => {
                self.returned += closed.block.span.len();
                Answer::Returned
            }
        })))
    }
}

#[test]
fn a_holder_that_stops_returns_every_block_whatever_was_under_way() {
    let mut during_a_sweep = 0;
    for stop_at in 0..100 {
        let (mut core, mut keyspaces) = idle();
        let (mut peers, mut event, mut now) = (Peers::default(), Event::Woken, 0);
        for step in 0.. {
            assert!(step < 1_000, "stopped at {stop_at}, and never done");
            if event == Event::Woken {
                now += 1_000;
            }
            if step < stop_at {
                // Creates use up a block at a time.
                while let Ok(Some(claim)) = keyspaces[0].claim() {
                    keyspaces[0].buffer.settle(claim, Fate::Used);
                }
            } else if step == stop_at {
                let sweeps = matches!(core.stage, Stage::Releasing(..) | Stage::GivingBack(..));
                during_a_sweep += u32::from(sweeps && keyspaces[0].buffer.in_hand() > 0);
                if event == Event::Woken {
                    event = Event::Stop;
                } else {
                    assert!(core.step(Millis(now), Event::Stop, &mut keyspaces).is_empty());
                }
            }
            let effect = core.step(Millis(now), event, &mut keyspaces).pop();
            let Some(next) = peers.answer(effect) else { break };
            event = next;
        }
        assert_eq!(peers.returned, peers.allocated, "stopped at {stop_at}");
    }
    assert!(during_a_sweep > 0);
}
