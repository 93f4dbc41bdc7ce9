//! The last holder: it takes up what the others left and gives it back, so that every number can be accounted for.

use std::rc::Rc;

use super::{Holder, client::Refused};
use crate::simulation::checks::Note;

/// Asks for blocks until there is none that was leaked, and returns each at once.
pub(super) async fn sweep(holder: Rc<Holder>) {
    for namespace in 0..holder.setup.namespaces.len() {
        loop {
            if holder.state.borrow().registered.is_none() {
                holder.register().await;
            }
            match holder.allocate(namespace).await {
                Some(Ok((block, leaked))) => {
                    holder.enter(namespace, block, leaked).await;
                    holder.return_all().await;
                    if leaked.is_none() {
                        break;
                    }
                }
                // Leaked blocks come before everything else, so there is none when nothing is to be had.
                Some(Err(Refused::Exhausted | Refused::Other)) => break,
                Some(Err(refused)) => holder.refused(refused).await,
                None => {}
            }
        }
    }
    holder.desk.note(Note::Swept);
}
