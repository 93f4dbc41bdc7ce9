//! Edits or deletes many links: those of a list of names, or those that meet a filter.
//!
//! 1. A call changes one page of links, in the order of their ids, and returns the cursor of the
//!    next page. It keeps nothing: a client that was killed goes on at its last cursor.
//! 2. Each link is checked and changed as by a call of its own: by the same rules, in a version of
//!    its own, and with an entry in the audit log from which its edit can be undone. A link that
//!    cannot be changed stops no other.
//! 3. Links are read a piece at a time ([`links::grown_pieces`]), and each piece is changed in a
//!    transaction of its own ([`store::Links::change_many`]). So memory is bounded, and no lock is
//!    held for long. An edit with long fields makes small pieces, since each link gets them.
//! 4. A link that is as wished already is not written. So a page may be repeated if its answer was
//!    lost, and a dry run, which decides with the same function, predicts what a call will change.
//! 5. A key changes only links that it may see: the filter is narrowed to those as that of a list
//!    is, and each link is looked at again when it has been read. A criterion that a list would
//!    disregard matches no link here.
//!
//! Rejected: a job that the server runs to its end. It would need a table, a lease, and calls to
//! follow and to stop it, and could outlive the key that began it.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use codes::LinkId;
use futures_util::future::join_all;
use links::{
    BULK_NAMES_MAX, BULK_PAGE, BULK_PAGE_MAX, BulkChange, BulkEdit, BulkRefusal, Filter, Link, Outlined,
    Precondition, Record, Refusal, TAGS_MAX, Tag, TagsMode, api_key::Grant, scope::Scope,
};
use store::BulkBatch;
use tokio::time::Instant;

use crate::{
    Answer, AppError, Field, FieldErrors, LinkFields, LinkService,
    authorize::require,
    find_link::LinkName,
    link_fields::check_tags,
    list_links::{ListLinks, filter},
};

/// Maximum number of links that a dry run names.
const SAMPLE: usize = 20;
/// The time after which a page ends, however many links it has come to.
const PAGE_TIME: Duration = Duration::from_secs(5);
/// Maximum number of names that are looked up at a time.
const LOOKED_UP: usize = 64;

/// A page of a change of many links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeMany {
    /// The links: those that meet the criteria. Order and page do not matter.
    pub filter: Option<ListLinks>,
    /// Whether a filter may match all links.
    pub all: bool,
    /// The links by their names, in place of a filter.
    pub names: Vec<LinkName>,
    /// The fields that are set. A password can only be removed: each link would have its own hash,
    /// so that a repeated page would change it again.
    pub fields: LinkFields,
    /// Tags that each link gets beside those that it has.
    pub add_tags: Vec<String>,
    /// Tags that each link loses.
    pub remove_tags: Vec<String>,
    /// Whether the links are deleted instead.
    pub delete: bool,
    /// Whether it is only found out what the call would change.
    pub dry_run: bool,
    /// The cursor of the page; `None` for the first one.
    pub after: Option<String>,
    /// The maximum number of links of the page.
    pub limit: Option<u64>,
}

/// What became of a page of links.
#[derive(Debug, Default)]
pub struct ChangedMany {
    /// The number of links that the page had.
    pub matched: u64,
    /// The number of links that were changed, or would be.
    pub changed: u64,
    /// The number of links that were as wished already.
    pub unchanged: u64,
    /// The links that were not changed, with the reasons.
    pub failed: Vec<(LinkName, AppError)>,
    /// Some of the links that a dry run would change.
    pub sample: Vec<Record>,
    /// The cursor of the next page; `None` at the end.
    pub next: Option<String>,
}

impl LinkService {
    /// Changes a page of links.
    pub fn change_many<'a>(
        &'a self,
        mut request: ChangeMany,
        mut wrong: FieldErrors,
        by: &'a Grant,
    ) -> Answer<'a, ChangedMany> {
        Box::pin(async move {
            require(by, if request.delete { Scope::Delete } else { Scope::Edit })?;
            let change = Arc::new(self.read_change(&mut request, &mut wrong));
            let after = wrong.note("after", self.read_cursor(request.after.as_deref())).flatten();
            let limit = wrong.note("limit", read_limit(request.limit)).unwrap_or(BULK_PAGE);
            check_names(&request, &mut wrong);
            wrong.finish()?;
            if request.dry_run || request.names.is_empty() {
                // Counts, and the links of a dry run, tell what links there are. Without a trace, a
                // dry run of a change of named links would tell what they have.
                require(by, Scope::Read)?;
            }
            let until = Instant::now() + PAGE_TIME;
            let done = ChangedMany::default();
            let mut page = Page { service: self, change, dry_run: request.dry_run, by, until, done };
            if request.names.is_empty() {
                page.walk(request.filter.unwrap_or_default(), request.all, after, limit).await?;
            } else {
                page.change_named(&request.names, after).await?;
            }
            Ok(page.done)
        })
    }

    /// Reads the change that a request makes to each link.
    fn read_change(&self, request: &mut ChangeMany, wrong: &mut FieldErrors) -> BulkChange {
        let fields = std::mem::take(&mut request.fields);
        let sets_tags = !request.add_tags.is_empty() || !request.remove_tags.is_empty();
        let has_change = fields != LinkFields::default() || sets_tags;
        if request.delete {
            if has_change {
                wrong.add("delete", "expected no changes of links that are deleted");
            }
            return BulkChange::Delete;
        }
        if !has_change && wrong.is_empty() {
            wrong.add("changes", "expected something to change");
        }
        if sets_tags && matches!(fields.tags, Some(Some(_))) {
            wrong.add("addTags", "expected either all tags of the links, or some to add or remove");
        }
        let mut of_fields = FieldErrors::default();
        let password = fields.password.clone();
        if matches!(password, Some(Some(_))) {
            of_fields.add(Field::Password.name(), "expected null: each link needs a password of its own");
        }
        let mut edit = self.check_fields(fields, &mut of_fields);
        edit.details.password = password.map(|_| None);
        wrong.note_below("changes", of_fields);
        let add_tags = wrong.note("addTags", check_tags(&request.add_tags)).unwrap_or_default();
        let remove_tags = removed_tags(&request.remove_tags);
        if request.remove_tags.len() > TAGS_MAX {
            wrong.add("removeTags", Field::Tags.expected());
        }
        if remove_tags.iter().any(|tag| add_tags.contains(tag)) {
            wrong.add("removeTags", "expected no tag that is added as well");
        }
        BulkChange::Edit(Box::new(BulkEdit { edit, add_tags, remove_tags }))
    }

    fn read_cursor(&self, text: Option<&str>) -> Result<Option<LinkId>, String> {
        let read =
            |text| self.lookup.mint.read_cursor(text).ok_or("expected the cursor that a page ended with");
        Ok(text.map(read).transpose()?)
    }
}

/// Checks that a request has either names or a filter.
fn check_names(request: &ChangeMany, wrong: &mut FieldErrors) {
    let ChangeMany { filter, all, names, .. } = request;
    if names.len() > BULK_NAMES_MAX {
        let expected = format!("expected at most {BULK_NAMES_MAX} links: send the others in another call");
        wrong.add("shortUrls", expected);
    } else if !names.is_empty() && (*all || filter.is_some()) {
        wrong.add("shortUrls", "expected either these links, or a filter");
    }
}

/// Returns whether a filter has no criterion, so that all links meet it.
fn is_of_all(filter: &Filter) -> bool {
    let any = TagsMode::Any;
    let without_modes = Filter { tags_mode: any, exclude_tags_mode: any, ..filter.clone() };
    without_modes == filter.of_all()
}

/// Returns tags as links may have them: a tag that was renamed is as it was written.
fn removed_tags(names: &[String]) -> Vec<Tag> {
    let both = |name: &String| [Tag::exactly(name), Tag::parse(name)];
    let tags: BTreeSet<Tag> = names.iter().flat_map(both).filter_map(Result::ok).collect();
    tags.into_iter().collect()
}

fn read_limit(limit: Option<u64>) -> Result<u64, String> {
    let limit = limit.unwrap_or(BULK_PAGE);
    let expected = || format!("expected 1 to {BULK_PAGE_MAX}");
    if (1..=BULK_PAGE_MAX).contains(&limit) { Ok(limit) } else { Err(expected()) }
}

/// A page while it is being changed.
struct Page<'a> {
    service: &'a LinkService,
    change: Arc<BulkChange>,
    dry_run: bool,
    by: &'a Grant,
    until: Instant,
    done: ChangedMany,
}

impl Page<'_> {
    /// Changes links that meet the criteria, at most `limit` of them, behind the cursor.
    async fn walk(
        &mut self,
        list: ListLinks,
        all: bool,
        mut after: Option<LinkId>,
        limit: u64,
    ) -> Result<(), AppError> {
        let (service, by) = (self.service, self.by);
        let names = (list.domain.clone(), list.api_key_name.clone());
        let mut filter = Filter { deleted: false, ..filter(list, FieldErrors::default())? };
        filter.search = filter.search.filter(|text| !text.trim().is_empty());
        if !all && names == (None, None) && is_of_all(&filter) {
            let expected = "expected a criterion: to change all links, say so with \"all\": true";
            return Err(AppError::invalid("filter", expected));
        }
        // `narrow` disregards the name of another key, and all links of this one would be left.
        let is_of_other = names.1.as_deref().is_some_and(|name| name != &*by.name);
        if by.limits.hides_links() && is_of_other || !service.narrow(names, by, &mut filter).await? {
            return Ok(());
        }
        let code = service.resolve_search(&mut filter);
        let mut left = usize::try_from(limit).unwrap_or(usize::MAX);
        loop {
            let turn = service.turns.queries.take(by.id).await?;
            let walked = service.store.walk(&filter, code, after, left).await?;
            drop(turn);
            if self.change_each(&walked.entries).await? {
                return Ok(());
            }
            left -= walked.entries.len();
            after = walked.next;
            if after.is_none() || left == 0 || self.is_late() {
                self.done.next = after.map(|id| service.lookup.mint.cursor_of(id));
                return Ok(());
            }
        }
    }

    /// Changes the links with these names whose ids are behind the cursor.
    async fn change_named(&mut self, names: &[LinkName], after: Option<LinkId>) -> Result<(), AppError> {
        let (service, by) = (self.service, self.by);
        let mut ids = BTreeSet::new();
        for names in names.chunks(LOOKED_UP) {
            let mut finds = Vec::with_capacity(names.len());
            for name in names {
                finds.push(service.find_link(name, by));
            }
            for (name, found) in names.iter().zip(join_all(finds).await) {
                match found {
                    Ok(link) => {
                        ids.insert(link.id);
                    }
                    // Those of a later page were reported with the first one.
                    Err(AppError::NoLink(_)) if after.is_some() => {}
                    Err(error @ AppError::NoLink(_)) => self.done.failed.push((name.clone(), error)),
                    Err(error) => return Err(error),
                }
            }
        }
        let ids: Vec<LinkId> = ids.into_iter().filter(|id| after.is_none_or(|after| *id > after)).collect();
        let turn = service.turns.queries.take(by.id).await?;
        let entries = service.store.outlines_of(&ids).await?;
        drop(turn);
        self.change_each(&entries).await.map(drop)
    }

    fn is_late(&self) -> bool {
        Instant::now() > self.until
    }

    /// Changes links piece by piece. Returns whether that took too long, so that it ended with a
    /// cursor.
    async fn change_each(&mut self, entries: &[Outlined]) -> Result<bool, AppError> {
        for piece in links::grown_pieces(entries, self.change.growth()) {
            if self.is_late() && self.done.next.is_some() {
                return Ok(true);
            }
            self.change_piece(piece).await?;
            self.done.next = piece.last().map(|entry| self.service.lookup.mint.cursor_of(entry.id));
        }
        self.done.next = None;
        Ok(false)
    }

    async fn change_piece(&mut self, entries: &[Outlined]) -> Result<(), AppError> {
        let (service, by) = (self.service, self.by);
        let ids: Vec<LinkId> = entries.iter().map(|entry| entry.id).collect();
        let turn = service.turns.queries.take(by.id).await?;
        let records = service.store.records(&ids).await?;
        drop(turn);
        let mut checked = Vec::with_capacity(records.len());
        for record in records {
            // It was deleted or moved since the walk came to it.
            if record.link.is_deleted() || !by.sees(&record.link) {
                continue;
            }
            self.done.matched += 1;
            let fits = match &*self.change {
                BulkChange::Edit(change) => service.check_against(&record.link, &change.edit).map(drop),
                BulkChange::Delete => Ok(()),
            };
            match fits {
                Ok(()) => checked.push(record),
                Err(error) => self.fail(&record.link, error),
            }
        }
        if self.dry_run {
            self.predict(checked);
        } else if !checked.is_empty() {
            self.store(&checked).await?;
        }
        Ok(())
    }

    fn predict(&mut self, records: Vec<Record>) {
        let at = (self.service.domain_cache.now(), self.by.id);
        for record in records {
            let Record { link, tags } = &record;
            match self.change.apply(link, tags, &Precondition::of(link), at) {
                Ok(None) => self.done.unchanged += 1,
                Ok(Some(_)) => {
                    self.done.changed += 1;
                    if self.done.sample.len() < SAMPLE {
                        self.done.sample.push(record);
                    }
                }
                Err(refusal) => self.refuse(link, refusal),
            }
        }
    }

    /// Stores the change of links, and evicts them from the caches.
    async fn store(&mut self, records: &[Record]) -> Result<(), AppError> {
        let (service, by) = (self.service, self.by);
        let items = records.iter().map(|record| (record.link.id, Precondition::of(&record.link))).collect();
        let batch = BulkBatch { items, change: Arc::clone(&self.change), by: by.id };
        let turn = service.turns.writes.take(by.id).await?;
        let outcomes = service.store.change_many(&batch).await;
        drop(turn);
        // Also after an error, which does not prove that nothing was stored.
        for (place, record) in records.iter().enumerate() {
            let is_as_before =
                outcomes.as_ref().is_ok_and(|outcomes| !matches!(outcomes.get(place), Some(Ok(true))));
            if !is_as_before {
                service.lookup.changed(record.link.id);
            }
        }
        for (record, outcome) in records.iter().zip(outcomes?) {
            match outcome {
                Ok(true) => self.done.changed += 1,
                Ok(false) => self.done.unchanged += 1,
                Err(refusal) => self.refuse(&record.link, refusal),
            }
        }
        Ok(())
    }

    fn refuse(&mut self, link: &Link, refusal: BulkRefusal) {
        let error = match refusal {
            BulkRefusal::Refused(Refusal::Absent) => self.service.no_link(&self.name_of(link)),
            BulkRefusal::Refused(Refusal::Superseded) => AppError::Superseded,
            BulkRefusal::Refused(Refusal::Blocked) => AppError::Blocked,
            // Neither needs a name.
            BulkRefusal::Refused(Refusal::Taken) => AppError::Internal,
            BulkRefusal::LaterRelease => AppError::LaterRelease,
            BulkRefusal::TooManyTags => {
                let expected = format!("expected at most {TAGS_MAX} tags with those added");
                AppError::invalid(Field::Tags.name(), expected)
            }
        };
        self.fail(link, error);
    }

    fn fail(&mut self, link: &Link, error: AppError) {
        self.done.failed.push((self.name_of(link), error));
    }

    fn name_of(&self, link: &Link) -> LinkName {
        let service = self.service;
        let code = service.lookup.name_of(link).unwrap_or_default();
        LinkName { code, domain: service.domain_cache.shown_name(link.domain()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_bounded_number_of_links() {
        for (limit, read) in [
            (None, Some(BULK_PAGE)),
            (Some(1), Some(1)),
            (Some(BULK_PAGE_MAX), Some(BULK_PAGE_MAX)),
            (Some(0), None),
            (Some(BULK_PAGE_MAX + 1), None),
        ] {
            assert_eq!(read_limit(limit).ok(), read);
        }
    }

    #[test]
    fn a_filter_without_a_criterion_is_known_whatever_its_modes() {
        let modes = Filter { tags_mode: TagsMode::All, per_page: Some(9), ..Filter::default() };
        assert!(is_of_all(&modes));
        let tags = vec![Tag::from_stored("a")];
        assert!(!is_of_all(&Filter { tags, ..modes.clone() }));
        assert!(!is_of_all(&Filter { exclude_past: true, ..modes }));
    }

    #[test]
    fn a_removed_tag_is_meant_as_it_is_written_and_as_links_get_it() {
        let names = |written: &[&str]| {
            let written: Vec<String> = written.iter().map(|name| (*name).to_owned()).collect();
            removed_tags(&written).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(names(&["Summer Sale", "news"]), ["Summer Sale", "news", "summer-sale"]);
        assert_eq!(names(&["", "\u{7}"]), [""; 0]);
    }
}
