//! What creators were told, and whether it stays true.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    time::Duration,
};

use codes::LinkId;
use links::DomainId;
use tokio::time::Instant;

use super::Rng;

/// So many of the links that were changed last are looked up more often than others.
const CHANGED_LAST: usize = 30;
/// A process may show a lost link for so long after the database went back: until it hears of its restart, and while the server
/// is down.
const LINGERS: Duration = Duration::from_secs(6);

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Violation {
    /// I6: a code has one link.
    #[error("{name} was given to {first}{lost} and to {second}")]
    GivenTwice { name: Name, first: String, lost: &'static str, second: String },
    /// I6, I8: a link that was acknowledged is found.
    #[error("{name} of {url} leads to {found:?}")]
    LeadsElsewhere { name: Name, url: String, found: Option<String> },
    /// A change shows everywhere within the time that is promised.
    #[error("{name} was changed, and still leads to {found:?}")]
    Outdated { name: Name, found: Option<String> },
    /// I6: the answer leaves after COMMIT.
    #[error("{name} was acknowledged, and nothing is stored")]
    NotStored { name: Name },
    /// A reserved code is its reservation's until that is given up.
    #[error("{name} was reserved, and is another's")]
    ReservedTaken { name: Name },
    /// Every process serves every reservation.
    #[error("{name} was reserved, and is said not to be")]
    NotReserved { name: Name },
    /// I1: no two allocated blocks overlap.
    #[error("the register refused a block though no history was lost")]
    BlockRefused,
}

/// What visitors ask for, and where.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Name {
    pub(super) domain: DomainId,
    pub(super) text: String,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.domain.is_default() {
            return f.write_str(&self.text);
        }
        write!(f, "{} on domain {}", self.text, self.domain.get())
    }
}

/// A link that was acknowledged.
#[derive(Clone, Debug)]
pub(super) struct Acknowledged {
    pub(super) name: Name,
    pub(super) id: LinkId,
    pub(super) url: String,
    /// Whether a person picked the code.
    pub(super) is_picked: bool,
    /// Whether its row was lost with a history of the database.
    pub(super) is_lost: bool,
    /// Where it stands in the book.
    place: usize,
}

impl Acknowledged {
    pub(super) fn new(name: Name, id: LinkId, url: String, is_picked: bool) -> Self {
        Self { name, id, url, is_picked, is_lost: false, place: 0 }
    }
}

/// What is known of all processes together.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) links: Vec<Acknowledged>,
    by_name: HashMap<Name, usize>,
    /// Names whose rows were lost with a history of the database, also of links that nobody was told of yet.
    lost: HashSet<Name>,
    /// When the database went back to an older copy last.
    went_back: Option<Instant>,
    /// The links that were changed, the last one last.
    changed: Vec<usize>,
    broken: Option<Violation>,
}

impl Book {
    pub(super) fn fail(&mut self, violation: Violation) {
        self.broken.get_or_insert(violation);
    }

    pub(super) fn broken(&self) -> Option<Violation> {
        self.broken.clone()
    }

    /// A creator was told of a link of its own. `stored` says whether its row is there at this very moment.
    pub(super) fn acknowledge(&mut self, mut link: Acknowledged, stored: bool) {
        if let Some(before) = self.by_name.get(&link.name).map(|place| &self.links[*place]) {
            // A picked code is in no register, and who picks one does not ask what it was: only minting has
            // to keep away.
            if !(before.is_lost && (before.is_picked || link.is_picked)) {
                let lost = if before.is_lost { ", which was lost," } else { "" };
                let (first, second) = (before.url.clone(), link.url.clone());
                self.fail(Violation::GivenTwice { name: link.name.clone(), first, lost, second });
            }
        }
        // Only a row that was there when its history was lost may be missing: it was lost before its creator
        // was told.
        if !stored && !self.lost.contains(&link.name) {
            self.fail(Violation::NotStored { name: link.name.clone() });
        }
        (link.is_lost, link.place) = (!stored, self.links.len());
        self.by_name.insert(link.name.clone(), link.place);
        self.links.push(link);
    }

    /// The link of a name that was acknowledged last.
    pub(super) fn own(&self, name: &Name) -> Option<Acknowledged> {
        self.by_name.get(name).map(|place| self.links[*place].clone())
    }

    /// Whether a link of this name was acknowledged and is not lost.
    pub(super) fn is_there(&self, name: &Name) -> bool {
        self.by_name.get(name).is_some_and(|place| !self.links[*place].is_lost)
    }

    /// Somebody looked a link up that was acknowledged before; where it leads, if anywhere. Of one that was
    /// changed, `held` says whether it may still lead there.
    pub(super) fn found(&mut self, link: &Acknowledged, leads_to: Option<&str>, held: Option<bool>) {
        // Somebody may have picked a lost one since. That it is minted again is found when its creator is
        // told.
        if held.unwrap_or(leads_to == Some(link.url.as_str())) || self.links[link.place].is_lost {
            return;
        }
        if self.may_linger(&link.name, leads_to) {
            return;
        }
        let (name, found) = (link.name.clone(), leads_to.map(str::to_owned));
        self.fail(match held {
            Some(_) => Violation::Outdated { name, found },
            None => Violation::LeadsElsewhere { name, url: link.url.clone(), found },
        });
    }

    /// Whether this is a lost link that a process may still believe in.
    fn may_linger(&self, name: &Name, leads_to: Option<&str>) -> bool {
        let is_it =
            |link: &Acknowledged| link.is_lost && link.name == *name && Some(link.url.as_str()) == leads_to;
        self.went_back.is_some_and(|at| at.elapsed() < LINGERS) && self.links.iter().any(is_it)
    }

    /// The database has gone back to a copy that lacks these; how many of them somebody was told of.
    pub(super) fn lose(&mut self, names: HashSet<Name>) -> u64 {
        let mut count = 0;
        self.went_back = Some(Instant::now());
        for link in self.links.iter_mut().filter(|link| !link.is_lost && names.contains(&link.name)) {
            link.is_lost = true;
            count += 1;
        }
        self.lost.extend(names);
        count
    }

    /// Somebody is about to change a link.
    pub(super) fn change(&mut self, link: &Acknowledged) {
        self.changed.push(link.place);
    }

    /// One of the links that were changed last, or of the youngest, which somebody may not know yet, or any.
    pub(super) fn some_link(&self, rng: &mut Rng) -> Option<Acknowledged> {
        let changed = &self.changed[self.changed.len().saturating_sub(CHANGED_LAST)..];
        let place = if !changed.is_empty() && rng.permille(330) {
            changed[below(rng, changed.len())]
        } else {
            let last = self.links.len().checked_sub(1)?;
            let youngest = rng.permille(600);
            if youngest { last.saturating_sub(below(rng, 4)) } else { below(rng, last + 1) }
        };
        self.links.get(place).cloned()
    }
}

/// A place among so many.
fn below(rng: &mut Rng, count: usize) -> usize {
    usize::try_from(rng.next()).unwrap_or(0) % count
}
