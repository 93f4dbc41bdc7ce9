//! Simulated visitors: they ask every process for acknowledged links.

use std::sync::Arc;

use codes::LinkId;
use links::{DomainId, Link, OtherName};
use tokio::time::Instant;

use super::{
    book::{Acknowledged, Name},
    node::{DEFAULT_HOST, Ends},
    shared::Shared,
};

impl Shared {
    /// Looks up an acknowledged link and checks the answer. Returns whether the process could
    /// answer.
    pub(super) async fn look(&self, ends: &Ends, link: &Acknowledged) -> bool {
        self.look_from(ends, link, None).await
    }

    /// Looks up an acknowledged link by a path that continues its name, and checks the answer.
    pub(super) async fn look_behind(&self, ends: &Ends, link: &Acknowledged) -> bool {
        self.look_at(ends, link, "/behind", None).await
    }

    /// Like [`Shared::look`], for a visitor who knows the link's state from an instant on.
    pub(super) async fn look_from(&self, ends: &Ends, link: &Acknowledged, from: Option<Instant>) -> bool {
        self.look_at(ends, link, "", from).await
    }

    async fn look_at(&self, ends: &Ends, link: &Acknowledged, behind: &str, from: Option<Instant>) -> bool {
        // The link's domain was lost with it before its name was recorded, so there is no host to
        // ask for.
        if link.is_lost && self.host_of(link.name.domain).is_none() {
            return true;
        }
        let began = Instant::now();
        let Some(found) = self.find(ends, &link.name, behind).await else { return false };
        self.count(|outcome| outcome.looked_up += 1);
        let held = self.held(ends, link.id, found.as_deref(), (began, from));
        self.book().found(link, found.as_deref(), held);
        true
    }

    /// Starts a lookup of a later code and does not wait for it. Its read may be in flight when the
    /// link is stored.
    pub(super) fn ask_ahead(self: &Arc<Self>, ends: &Ends, link: &Acknowledged, by: u64) {
        let number = link.id.unpack().map(|(keyspace, number)| LinkId::new(keyspace, number + by));
        let Some(code) = number.and_then(|id| ends.mint.code_of(id)) else { return };
        let name = Name { domain: DomainId::DEFAULT, text: code.to_string() };
        let (shared, ends) = (Arc::clone(self), ends.clone());
        tokio::spawn(async move { shared.find(&ends, &name, "").await });
    }

    /// Looks up a link of the default domain on another domain. The domain's own link takes
    /// precedence; if it has none, it serves this one.
    pub(super) async fn look_elsewhere(&self, ends: &Ends, link: &Acknowledged, domain: DomainId) {
        let name = Name { domain, text: link.name.text.clone() };
        let own = self.book().own(&name);
        let Some(found) = self.find(ends, &name, "").await else { return };
        match own {
            Some(own) => self.book().found(&own, found.as_deref(), None),
            None if found.is_none() => self.book().found(link, None, None),
            // The answer is the default domain's link, or one that has just been created on this
            // domain.
            None => {}
        }
    }

    /// Looks up a link under the name that it was just given. It is found, unless it was changed
    /// again meanwhile.
    pub(super) async fn look_renamed(&self, ends: &Ends, link: &Acknowledged, text: String) {
        let database = &self.common.database;
        let version = database.renamed(link.id).await;
        let name = Name { domain: DomainId::DEFAULT, text };
        let Some(found) = self.find(ends, &name, "").await else { return };
        let is_same = version.is_some() && database.renamed(link.id).await == version;
        if is_same && found.is_none() {
            self.book().found(link, None, Some(false));
        }
    }

    /// Looks up a name as a visitor of its host whose path may continue `behind` it, and returns
    /// where it leads. The outer `None` means that the process cannot say.
    async fn find(&self, ends: &Ends, name: &Name, behind: &str) -> Option<Option<String>> {
        let (host, path) = (self.host_of(name.domain)?, format!("/{}{behind}", name.text));
        let question = ends.domain_cache.question(Some(&host), &path);
        let others = ends.domain_cache.other_names(&question, &path);
        let domain = question.domain.id;
        let named = match &question.wanted {
            Some(wanted) => ends.lookup.find_on(domain, wanted).await.ok()?,
            None => None,
        };
        let named = named.filter(|named| !named.is_deleted());
        let has_named = named.is_some();
        let found = if has_named || others.is_empty() {
            named
        } else {
            let means = |_: &OtherName<'_>, link: &Link| !link.is_deleted();
            ends.lookup.find_other(domain, &others, means).await.ok()?.map(|(_, link)| link)
        };
        // A process that cannot know the host yet serves the default domain's links there.
        if domain != name.domain && !question.is_sure {
            return None;
        }
        if !has_named && !ends.domain_cache.may_deny(&question, &others) {
            return None;
        }
        Some(found.map(|found| found.long_url.as_str().to_owned()))
    }

    /// Returns the name of a domain, as far as the simulation knows it.
    fn host_of(&self, domain: DomainId) -> Option<String> {
        if domain.is_default() {
            return Some(DEFAULT_HOST.to_owned());
        }
        self.hosts.lock().expect("no code panics while it holds this lock").get(&domain).cloned()
    }
}
