//! What visitors do: they ask every process for links that were acknowledged.

use std::sync::Arc;

use codes::LinkId;
use links::DomainId;
use tokio::time::Instant;

use super::{
    book::{Acknowledged, Name},
    clients::Shared,
    node::{DEFAULT_HOST, Ends},
};

impl Shared {
    /// Looks a link up that was acknowledged before; whether the process could say.
    pub(super) async fn look(&self, ends: &Ends, link: &Acknowledged) -> bool {
        self.look_from(ends, link, None).await
    }

    /// The same by a visitor who knows what was in force from then on.
    pub(super) async fn look_from(&self, ends: &Ends, link: &Acknowledged, from: Option<Instant>) -> bool {
        // Its domain was lost with it, before anybody heard of the domain's name: there is no host to ask.
        if link.is_lost && self.host_of(link.name.domain).is_none() {
            return true;
        }
        let began = Instant::now();
        let Some(found) = self.find(ends, &link.name).await else { return false };
        self.count(|outcome| outcome.looked_up += 1);
        let held = self.held(ends, link.id, found.as_deref(), (began, from));
        self.book().found(link, found.as_deref(), held);
        true
    }

    /// Asks for the code of the next link and does not wait: the read may be under way when the
    /// link is stored.
    pub(super) fn ask_ahead(self: &Arc<Self>, ends: &Ends, link: &Acknowledged, by: u64) {
        let number = link.id.unpack().map(|(keyspace, number)| LinkId::new(keyspace, number + by));
        let Some(code) = number.and_then(|id| ends.mint.code_of(id)) else { return };
        let name = Name { domain: DomainId::DEFAULT, text: code.to_string() };
        let (shared, ends) = (Arc::clone(self), ends.clone());
        tokio::spawn(async move { shared.find(&ends, &name).await });
    }

    /// Asks another domain for a link of the default one. The domain's own link goes first; if it
    /// has none, it gives this one.
    pub(super) async fn look_elsewhere(&self, ends: &Ends, link: &Acknowledged, domain: DomainId) {
        let name = Name { domain, text: link.name.text.clone() };
        let own = self.book().own(&name);
        let Some(found) = self.find(ends, &name).await else { return };
        match own {
            Some(own) => self.book().found(&own, found.as_deref(), None),
            None if found.is_none() => self.book().found(link, None, None),
            // The default domain's, or one that was picked a moment ago.
            None => {}
        }
    }

    /// Where a name leads, as a visitor of its host is told; none when the process cannot say.
    async fn find(&self, ends: &Ends, name: &Name) -> Option<Option<String>> {
        let host = self.host_of(name.domain)?;
        let question = ends.directory.question(Some(&host), &format!("/{}", name.text));
        let domain = question.place.domain.id;
        let found = match &question.wanted {
            Some(wanted) => ends.lookup.find_on(domain, wanted).await.ok()?,
            None => None,
        };
        let found = found.filter(|found| !found.is_deleted());
        // A process that cannot know the host leads its visitors to the default domain's links.
        if domain != name.domain && !question.place.is_sure {
            return None;
        }
        if found.is_none() && !ends.directory.may_deny(&question) {
            return None;
        }
        Some(found.map(|found| found.long_url.as_str().to_owned()))
    }

    /// The name of a domain, as far as the world has heard of it.
    fn host_of(&self, domain: DomainId) -> Option<String> {
        if domain.is_default() {
            return Some(DEFAULT_HOST.to_owned());
        }
        self.hosts.lock().expect("no code panics while it holds this lock").get(&domain).cloned()
    }
}
