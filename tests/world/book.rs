//! The record of all acknowledgements, and the check that they remain true.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    time::Duration,
};

use codes::LinkId;
use links::DomainId;
use tokio::time::Instant;

use super::rng::Rng;

/// Number of the most recently changed links that are looked up more often than others.
const CHANGED_LAST: usize = 30;
/// How long a process may show a lost link after the database was restored from an older copy:
/// until it hears of the restart, and while the server is down.
const LINGERS: Duration = Duration::from_secs(6);

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Violation {
    /// I6: a code belongs to one link.
    #[error("{name} was given to {first}{lost} and to {second}")]
    GivenTwice { name: Name, first: String, lost: &'static str, second: String },
    /// I6, I8: an acknowledged link is found.
    #[error("{name} of {url} leads to {found:?}")]
    LeadsElsewhere { name: Name, url: String, found: Option<String> },
    /// A change is visible everywhere within the promised time.
    #[error("{name} was changed, and still leads to {found:?}")]
    Outdated { name: Name, found: Option<String> },
    /// I6: a create is answered after COMMIT.
    #[error("{name} was acknowledged, and nothing is stored")]
    NotStored { name: Name },
    /// A reserved code belongs to its reservation until that is given up.
    #[error("{name} was reserved, and is another's")]
    ReservedTaken { name: Name },
    /// Every process serves every reservation.
    #[error("{name} was reserved, and is said not to be")]
    NotReserved { name: Name },
    /// I1: no two allocated blocks overlap.
    #[error("the register refused a block though no history was lost")]
    BlockRefused,
}

/// A code or slug, on a domain.
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

/// An acknowledged link.
#[derive(Clone, Debug)]
pub(super) struct Acknowledged {
    pub(super) name: Name,
    pub(super) id: LinkId,
    pub(super) url: String,
    /// Whether the code was taken as a custom slug.
    pub(super) is_picked: bool,
    /// Whether its row was lost with a history of the database.
    pub(super) is_lost: bool,
    /// The link's index in the book.
    place: usize,
}

impl Acknowledged {
    pub(super) fn new(name: Name, id: LinkId, url: String, is_picked: bool) -> Self {
        Self { name, id, url, is_picked, is_lost: false, place: 0 }
    }
}

/// The record of all links that any process has acknowledged.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) links: Vec<Acknowledged>,
    by_name: HashMap<Name, usize>,
    /// Names whose rows were lost with a history of the database, including links not acknowledged
    /// yet.
    lost: HashSet<Name>,
    /// When the database was last restored from an older copy.
    went_back: Option<Instant>,
    /// Indexes of the changed links, the latest last.
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

    /// Records that a create was acknowledged. `stored` says whether the link's row exists at this
    /// moment.
    pub(super) fn acknowledge(&mut self, mut link: Acknowledged, stored: bool) {
        if let Some(before) = self.by_name.get(&link.name).map(|place| &self.links[*place]) {
            // Custom slugs are in no register, and their creators do not ask for earlier links.
            // Only minting has to avoid lost names.
            if !(before.is_lost && (before.is_picked || link.is_picked)) {
                let lost = if before.is_lost { ", which was lost," } else { "" };
                let (first, second) = (before.url.clone(), link.url.clone());
                self.fail(Violation::GivenTwice { name: link.name.clone(), first, lost, second });
            }
        }
        // A row may be missing only if it was lost with its history before the create was
        // acknowledged.
        if !stored && !self.lost.contains(&link.name) {
            self.fail(Violation::NotStored { name: link.name.clone() });
        }
        (link.is_lost, link.place) = (!stored, self.links.len());
        self.by_name.insert(link.name.clone(), link.place);
        self.links.push(link);
    }

    /// Returns the most recently acknowledged link of a name.
    pub(super) fn own(&self, name: &Name) -> Option<Acknowledged> {
        self.by_name.get(name).map(|place| self.links[*place].clone())
    }

    /// Returns whether an acknowledged link of this name exists and is not lost.
    pub(super) fn is_there(&self, name: &Name) -> bool {
        self.by_name.get(name).is_some_and(|place| !self.links[*place].is_lost)
    }

    /// Checks the result of a lookup of an acknowledged link. `leads_to` is where the link leads,
    /// if anywhere. For a changed link, `held` says whether that answer is still permitted.
    pub(super) fn found(&mut self, link: &Acknowledged, leads_to: Option<&str>, held: Option<bool>) {
        // A lost name may have been taken as a custom slug since. If it is minted again,
        // `acknowledge` notices that.
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

    /// Returns whether this is a lost link that a process may still serve.
    fn may_linger(&self, name: &Name, leads_to: Option<&str>) -> bool {
        let is_it =
            |link: &Acknowledged| link.is_lost && link.name == *name && Some(link.url.as_str()) == leads_to;
        self.went_back.is_some_and(|at| at.elapsed() < LINGERS) && self.links.iter().any(is_it)
    }

    /// Records that the database was restored from a copy that lacks these names. Returns how many
    /// of them were acknowledged.
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

    /// Records that a client is about to change a link.
    pub(super) fn change(&mut self, link: &Acknowledged) {
        self.changed.push(link.place);
    }

    /// Returns a random link: one of the most recently changed, one of the youngest, which some
    /// process may not know yet, or any.
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

/// Returns a random index below `count`.
fn below(rng: &mut Rng, count: usize) -> usize {
    usize::try_from(rng.next()).unwrap_or(0) % count
}
