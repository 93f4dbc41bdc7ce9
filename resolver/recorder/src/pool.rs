//! Arenas that are not in use.
//!
//! The latest arena is taken first, because parts of it are still in a core's cache. A channel
//! would hand out the one that has rested longest.

use std::sync::{Mutex, MutexGuard};

use visits::Arena;

/// Spare arenas, and how many more may be allocated. Arenas are taken and given back every few
/// hundred visits, so its lock is hardly ever contended.
pub(super) struct ArenaPool(Mutex<Spares>);

struct Spares {
    arenas: Vec<Arena>,
    left: usize,
}

impl ArenaPool {
    /// Allocates `ready` arenas. There are never more than `most`, including those taken.
    pub(super) fn new(ready: usize, most: usize) -> Self {
        let mut arenas = Vec::with_capacity(most);
        arenas.extend((0..ready.min(most)).map(|_| Arena::default()));
        let left = most - arenas.len();
        Self(Mutex::new(Spares { arenas, left }))
    }

    /// Returns a spare arena, or a new one as long as there are fewer than allowed.
    pub(super) fn take(&self) -> Option<Arena> {
        let mut spares = self.spares();
        if spares.arenas.is_empty() && spares.left > 0 {
            spares.left -= 1;
            return Some(Arena::default());
        }
        spares.arenas.pop()
    }

    pub(super) fn give(&self, arena: Arena) {
        self.spares().arenas.push(arena);
    }

    /// Returns the number of arenas that may still be allocated.
    #[cfg(test)]
    pub(super) fn left(&self) -> usize {
        self.spares().left
    }

    fn spares(&self) -> MutexGuard<'_, Spares> {
        self.0.lock().expect("no code panics while it holds this lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arenas_are_made_as_needed_up_to_the_bound_and_used_again() {
        let pool = ArenaPool::new(1, 3);
        let taken: Vec<Arena> = (0..3).map_while(|_| pool.take()).collect();
        assert_eq!((taken.len(), pool.left()), (3, 0));
        assert!(pool.take().is_none());
        taken.into_iter().for_each(|arena| pool.give(arena));
        assert!((0..3).all(|_| pool.take().is_some()) && pool.take().is_none());
    }
}
