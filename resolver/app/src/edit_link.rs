//! Edits a link, or replaces its redirect rules.

use codes::LinkId;
use jiff::Timestamp;
use links::{Edit, Link, Precondition, Record, Rule, api_key::Grant, scope::Scope};
use store::Edited;

use super::{AppError, Field, FieldErrors, LinkService, authorize::require, find_link::LinkName, values};

/// How often a link is looked up under its name if the one that was found is gone.
pub(super) const LOOKUPS: usize = 2;

/// The link that a change means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its name.
    pub name: LinkName,
    /// The versions that the caller knows; `None` for any.
    pub versions: Option<Vec<u64>>,
}

/// A partial update. `None` leaves a field unchanged, `Some(None)` clears it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditLink {
    /// Where the link leads: an absolute URL.
    pub long_url: Option<String>,
    /// A name for people.
    pub title: Option<Option<String>>,
    /// A text for people.
    pub description: Option<Option<String>>,
    /// Tags, at most a hundred.
    pub tags: Option<Vec<String>>,
    /// The link does not redirect before this time.
    pub valid_since: Option<Option<Timestamp>>,
    /// The link does not redirect from this time on.
    pub valid_until: Option<Option<Timestamp>>,
    /// How many visits the link redirects.
    pub max_visits: Option<Option<u64>>,
    /// Whether robots may follow the link.
    pub crawlable: Option<bool>,
    /// Whether the visitor's query goes along.
    pub forward_query: Option<bool>,
    /// Whether the link redirects.
    pub enabled: Option<bool>,
    /// The status of redirects: 301, 302, 307 or 308.
    pub redirect_status: Option<Option<u64>>,
    /// The password that visitors are asked for.
    pub password: Option<Option<String>>,
}

impl LinkService {
    /// Edits a link. `wrong` holds the fields that the adapter could not read: as in Shlink, all
    /// fields are checked before the link is looked up.
    pub async fn edit_link(
        &self,
        target: &Target,
        mut request: EditLink,
        wrong: FieldErrors,
        by: &Grant,
    ) -> Result<Record, AppError> {
        require(by, Scope::Edit)?;
        let password = request.password.take();
        let mut edit = self.check_edit(request, wrong)?;
        if let Some(password) = password {
            edit.password = Some(match password {
                Some(password) => Some(self.hash_password(password, by).await?),
                None => None,
            });
        }
        self.check_window(target, &edit, by).await?;
        self.change_link(target, edit, by).await
    }

    /// Replaces all redirect rules of a link, whose priority is their place.
    pub async fn set_redirect_rules(
        &self,
        target: &Target,
        rules: Vec<Rule>,
        by: &Grant,
    ) -> Result<Record, AppError> {
        require(by, Scope::Edit)?;
        self.change_link(target, Edit { rules: Some(rules), ..Edit::default() }, by).await
    }

    /// Changes the link that is meant. The link is looked up twice: another resolver may have
    /// deleted the one that was found, and another link may have its name since.
    async fn change_link(&self, target: &Target, mut edit: Edit, by: &Grant) -> Result<Record, AppError> {
        for _ in 0..LOOKUPS {
            let link = self.find_link(&target.name, by).await?;
            self.check_against(&link, &edit)?;
            edit.precondition = Precondition { versions: target.versions.clone(), ..Precondition::of(&link) };
            match self.store_edit(link.id, &edit, by).await? {
                Edited::Done(record) => return Ok(*record),
                Edited::Absent => {}
                Edited::Superseded => return Err(AppError::Superseded),
            }
        }
        Err(self.no_link(&target.name))
    }

    /// Stores an edit and invalidates the caches.
    pub(super) async fn store_edit(&self, link: LinkId, edit: &Edit, by: &Grant) -> Result<Edited, AppError> {
        let turn = self.turns.write(by.id).await?;
        let edited = self.links.edit(link, edit, by.id).await?;
        drop(turn);
        self.lookup.changed(link);
        Ok(edited)
    }

    fn check_edit(&self, request: EditLink, mut wrong: FieldErrors) -> Result<Edit, AppError> {
        let mut edit = Edit {
            crawlable: request.crawlable,
            forward_query: request.forward_query,
            disabled: request.enabled.map(|enabled| !enabled),
            valid_since: request.valid_since,
            valid_until: request.valid_until,
            ..Edit::default()
        };
        if let Some(url) = request.long_url {
            edit.long_url = wrong.check(Field::LongUrl, self.check_long_url(&url));
        }
        if let Some(title) = request.title {
            edit.title = Some(check_some(&mut wrong, Field::Title, title.as_deref(), values::title));
        }
        if let Some(text) = request.description {
            let read = values::description;
            edit.description = Some(check_some(&mut wrong, Field::Description, text.as_deref(), read));
        }
        if let Some(tags) = request.tags {
            edit.tags = wrong.check(Field::Tags, values::tags(&tags));
        }
        if let Some(count) = request.max_visits {
            let read = |count| values::max_visits(count).map(Some);
            edit.max_visits = Some(check_some(&mut wrong, Field::MaxVisits, count, read));
        }
        if let Some(status) = request.redirect_status {
            let read = |status| values::redirect_status(status).map(Some);
            edit.status = Some(check_some(&mut wrong, Field::RedirectStatus, status, read));
        }
        wrong.finish().map(|()| edit)
    }

    /// Refuses times that contradict those of the link. Two concurrent edits may each agree with
    /// the earlier state; then the link does not redirect, which is shown, until one is undone.
    async fn check_window(&self, target: &Target, edit: &Edit, by: &Grant) -> Result<(), AppError> {
        if edit.valid_since.is_none() && edit.valid_until.is_none() {
            return Ok(());
        }
        let link = self.find_link(&target.name, by).await?;
        let details = link.details.as_deref();
        let has = details.map(|details| (details.valid_since, details.valid_until)).unwrap_or_default();
        let mut wrong = FieldErrors::default();
        values::window(edit.valid_since.unwrap_or(has.0), edit.valid_until.unwrap_or(has.1), &mut wrong);
        wrong.finish()
    }

    /// Refuses an edit that would make a link redirect to itself, or that would enable a link whose
    /// targets are denied.
    fn check_against(&self, link: &Link, edit: &Edit) -> Result<(), AppError> {
        let rules = edit.rules.iter().flatten().map(|rule| &rule.long_url);
        if edit.disabled == Some(false) {
            // The new targets were checked when they were read; those that the link keeps may be
            // denied by now.
            let long_url = Some(&link.long_url).filter(|_| edit.long_url.is_none());
            let kept_rules = if edit.rules.is_none() { link.rules() } else { &[] };
            let kept = long_url.into_iter().chain(kept_rules.iter().map(|rule| &rule.long_url));
            self.check_targets(Field::Enabled, kept)?;
        }
        match self.lookup.name_of(link) {
            Some(own) => self.refuse_circle(edit.long_url.iter().chain(rules), link.domain(), &own),
            None => Ok(()),
        }
    }
}

/// Checks a value that may be cleared; `None` too if the value is wrong, which is noted.
fn check_some<T, R>(
    wrong: &mut FieldErrors,
    field: Field,
    value: Option<T>,
    read: impl FnOnce(T) -> values::Checked<Option<R>>,
) -> Option<R> {
    value.and_then(|value| wrong.check(field, read(value)).flatten())
}
