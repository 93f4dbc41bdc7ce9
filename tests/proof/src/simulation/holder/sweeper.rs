//! The last holder: it takes up what the others left and gives it back, so that every number can be accounted for.

use std::{collections::BTreeSet, rc::Rc};

use super::{Holder, client::Refused};
use crate::simulation::checks::Note;

/// Asks for blocks until there is none that was leaked, and returns each at once.
pub(super) async fn sweep(holder: Rc<Holder>) {
    for namespace in 0..holder.setup.namespaces.len() {
        let mut seen = BTreeSet::new();
        loop {
            if holder.state.borrow().registered.is_none() {
                holder.register().await;
            }
            match holder.allocate(namespace).await {
                Some(Ok(allocated)) => {
                    let leaked = allocated.leaked;
                    // What comes back of a leaked block goes out as leaked for ever: once around is enough.
                    let again = !seen.insert(allocated.block.span.start());
                    holder.enter(namespace, allocated).await;
                    holder.return_all().await;
                    if leaked.is_none() || again {
                        break;
                    }
                }
                // Leaked blocks come before everything else, so there is none when nothing is to be had.
                Some(Err(Refused::Exhausted | Refused::InOtherHands | Refused::Other)) => break,
                Some(Err(refused)) => holder.refused(refused).await,
                None => {}
            }
        }
    }
    holder.desk.note(Note::Swept);
}
