//! Status that is not in the ledger, for `GetStatus`: reports of holders, forecasts, and reclaimed
//! numbers.
//!
//! Nothing is decided by it, and it is lost with the process. The beats of a term replace the
//! reports of the term before; reclaimed numbers count from the start of the process, in all its
//! terms.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use numbers::{HolderId, Namespace};
use proto::issuer::v1 as pb;

/// The notes of one issuer. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Board(Arc<Mutex<Notes>>);

#[derive(Debug, Default)]
struct Notes {
    /// The last report of each holder that the ledger knows: an unknown one gets no answer.
    supplies: BTreeMap<HolderId, Vec<pb::Supply>>,
    /// How long each namespace lasts at the rate of the last hours, in seconds.
    exhaustion_seconds: BTreeMap<Namespace, f64>,
    /// Numbers of leaked blocks that were allocated again. A block whose caller went away before
    /// its answer is not counted.
    reclaimed: BTreeMap<Namespace, u64>,
}

impl Board {
    /// Notes what a holder has in hand, as its beat says.
    pub(crate) fn note_beat(&self, holder: HolderId, supplies: Vec<pb::Supply>) {
        self.notes().supplies.insert(holder, supplies);
    }

    /// Notes how long a namespace lasts, in seconds; infinite if nothing is consumed.
    pub(crate) fn note_outlook(&self, namespace: &Namespace, seconds: f64) {
        self.notes().exhaustion_seconds.insert(namespace.clone(), seconds);
    }

    /// Notes that a leaked block was allocated again.
    pub(crate) fn note_reclaimed(&self, namespace: &Namespace, numbers: u64) {
        let mut notes = self.notes();
        let count = notes.reclaimed.entry(namespace.clone()).or_default();
        *count = count.saturating_add(numbers);
    }

    /// Forgets holders that the ledger has forgotten.
    pub(crate) fn retain(&self, known: impl Fn(&HolderId) -> bool) {
        self.notes().supplies.retain(|holder, _| known(holder));
    }

    pub(crate) fn complete(&self, mut answer: pb::GetStatusResponse) -> pb::GetStatusResponse {
        let notes = self.notes();
        for holder in answer.holders.iter_mut().filter(|holder| holder.alive) {
            let noted = HolderId::new(holder.id.clone()).ok().and_then(|id| notes.supplies.get(&id));
            holder.supplies = noted.cloned().unwrap_or_default();
        }
        for namespace in &mut answer.namespaces {
            let Ok(name) = Namespace::new(namespace.name.clone()) else { continue };
            let seconds = notes.exhaustion_seconds.get(&name).copied();
            namespace.exhaustion_seconds = seconds.filter(|seconds| seconds.is_finite());
            namespace.reclaimed = notes.reclaimed.get(&name).copied().unwrap_or_default();
        }
        answer
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().expect("no code panics while it holds this lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(id: &str, alive: bool) -> pb::HolderStatus {
        pb::HolderStatus { id: id.to_owned(), alive, ..pb::HolderStatus::default() }
    }

    #[test]
    fn notes_are_shown_with_what_the_ledger_knows() {
        let (board, web) = (Board::default(), Namespace::new("web".to_owned()).unwrap());
        let supply = pb::Supply { namespace: "web".to_owned(), in_hand: 7, lasts_ms: Some(60_000) };
        for id in ["a", "b", "gone"] {
            board.note_beat(HolderId::new(id.to_owned()).unwrap(), vec![supply.clone()]);
        }
        board.note_outlook(&web, 86_400.0);
        board.note_reclaimed(&web, 5);
        board.note_reclaimed(&web, 6);
        let namespace = |name: &str| pb::NamespaceStatus { name: name.to_owned(), ..Default::default() };
        let answer = pb::GetStatusResponse {
            namespaces: vec![namespace("app"), namespace("web")],
            holders: vec![holder("a", true), holder("b", false), holder("new", true)],
            ..pb::GetStatusResponse::default()
        };
        let shown = board.complete(answer);
        assert_eq!(shown.holders[0].supplies, [supply]);
        assert!(shown.holders[1..].iter().all(|holder| holder.supplies.is_empty()), "silent, or unheard of");
        let told = |at: usize| (shown.namespaces[at].exhaustion_seconds, shown.namespaces[at].reclaimed);
        assert_eq!([told(0), told(1)], [(None, 0), (Some(86_400.0), 11)]);
        board.retain(|holder| holder.as_str() != "gone");
        assert_eq!(board.notes().supplies.len(), 2);
        board.note_outlook(&web, f64::INFINITY);
        let answer = pb::GetStatusResponse { namespaces: vec![namespace("web")], ..Default::default() };
        assert_eq!(board.complete(answer).namespaces[0].exhaustion_seconds, None);
    }
}
