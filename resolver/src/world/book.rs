//! What creators were told, and whether it stays true.

use std::collections::{HashMap, HashSet};

use crate::codes::LinkId;

/// A link that was acknowledged.
#[derive(Clone, Debug)]
pub(super) struct Acknowledged {
    pub(super) name: String,
    pub(super) id: LinkId,
    pub(super) url: String,
    /// Whether a person picked the code.
    pub(super) is_picked: bool,
}

/// What is known of all processes together.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) links: Vec<Acknowledged>,
    by_name: HashMap<String, usize>,
    /// Lost with a history of the database.
    lost: HashSet<String>,
    broken: Option<String>,
}

impl Book {
    pub(super) fn fail(&mut self, what: String) {
        self.broken.get_or_insert(what);
    }

    pub(super) fn broken(&self) -> Option<String> {
        self.broken.clone()
    }

    /// A creator was told of a link of its own. `stored` says whether its row is there at this very moment.
    pub(super) fn acknowledge(&mut self, link: Acknowledged, stored: bool, lossy: bool) {
        if let Some(before) = self.by_name.get(&link.name).map(|place| &self.links[*place]) {
            let is_lost = self.lost.contains(&link.name);
            // A picked code is in no register, and who picks one does not ask what it was: only minting has to keep away.
            if !(is_lost && (before.is_picked || link.is_picked)) {
                let lost = if is_lost { ", which was lost," } else { "" };
                self.fail(format!("{} was given to {}{lost} and to {}", link.name, before.url, link.url));
            }
        }
        if !stored {
            if !lossy {
                self.fail(format!("{} was acknowledged, and nothing is stored", link.name));
            }
            self.lost.insert(link.name.clone());
        }
        self.by_name.insert(link.name.clone(), self.links.len());
        self.links.push(link);
    }

    /// Somebody looked a link up that was acknowledged before; where it leads, if anywhere.
    pub(super) fn found(&mut self, link: &Acknowledged, leads_to: Option<&str>) {
        match leads_to {
            Some(url) if url == link.url => {}
            // Somebody may have picked it since. That it is minted again is found when its creator is told.
            _ if self.lost.contains(&link.name) => {}
            other => self.fail(format!("{} of {} leads to {other:?}", link.name, link.url)),
        }
    }

    /// The database has gone back to a copy that lacks what is not `stored`.
    pub(super) fn lose(&mut self, stored: impl Fn(LinkId) -> bool) -> u64 {
        let missing = self.links.iter().filter(|link| !stored(link.id)).map(|link| link.name.clone());
        let missing: Vec<_> = missing.filter(|name| !self.lost.contains(name)).collect();
        let count = missing.len() as u64;
        self.lost.extend(missing);
        count
    }
}
