//! Edits a link.

use codes::LinkId;
use links::{
    DetailsEdit, Edit, Link, Precondition, Record, Refusal,
    api_key::{ApiKeyId, Grant},
    check_templates,
    scope::Scope,
};

use crate::{
    Answer, AppError, Field, FieldErrors, LinkFields, LinkService, authorize::require, find_link::LinkName,
    link_fields,
};

/// How often a link is looked up by its name if the one that was found is gone.
pub(crate) const LOOKUPS: usize = 2;

/// The link that a change is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The link's name.
    pub name: LinkName,
    /// The acceptable versions of the link; `None` for any.
    pub versions: Option<Vec<u64>>,
}

impl LinkService {
    /// Edits a link. As in Shlink, all fields are checked before the link is looked up.
    pub fn edit_link<'a>(
        &'a self,
        target: &'a Target,
        fields: LinkFields,
        wrong: FieldErrors,
        by: &'a Grant,
    ) -> Answer<'a, Record> {
        Box::pin(async move {
            require(by, Scope::Edit)?;
            let edit = self.prepare_edit(fields, wrong, by).await?;
            self.change_found(target, |link| self.check_against(link, &edit), by).await
        })
    }

    /// Checks the fields of an edit, and hashes the password.
    pub(crate) async fn prepare_edit(
        &self,
        mut fields: LinkFields,
        mut wrong: FieldErrors,
        by: &Grant,
    ) -> Result<Edit, AppError> {
        let password = fields.password.take();
        let mut edit = self.check_fields(fields, &mut wrong);
        wrong.finish()?;
        if let Some(password) = password {
            edit.details.password = Some(match password {
                Some(password) => Some(self.hash_password(password, by).await?),
                None => None,
            });
        }
        Ok(edit)
    }

    /// Changes the target link by the edit that is made for the link found. It is looked up up to
    /// [`LOOKUPS`] times: another resolver may have deleted the link that was found, and another
    /// link may have its name since.
    pub(crate) async fn change_found(
        &self,
        target: &Target,
        edit_for: impl Fn(&Link) -> Result<Edit, AppError>,
        by: &Grant,
    ) -> Result<Record, AppError> {
        for _ in 0..LOOKUPS {
            let link = self.find_link(&target.name, by).await?;
            let precondition = Precondition { versions: target.versions.clone(), ..Precondition::of(&link) };
            let edit = Edit { precondition, ..edit_for(&link)? };
            match self.store_edit(link.id, &edit, by.id).await? {
                Ok(record) => return Ok(record),
                Err(Refusal::Absent) => {}
                Err(Refusal::Superseded) => return Err(AppError::Superseded),
                Err(Refusal::Blocked) => return Err(AppError::Blocked),
                Err(Refusal::Taken) => {
                    let to = edit.relocation.as_ref().map(|to| (to.name.as_str(), to.domain));
                    let (name, domain) = to.unwrap_or((target.name.code.as_str(), link.domain()));
                    return Err(self.slug_taken(name, domain));
                }
            }
        }
        Err(self.no_link(&target.name))
    }

    /// Stores an edit and invalidates the caches.
    pub(crate) async fn store_edit(
        &self,
        link: LinkId,
        edit: &Edit,
        by: ApiKeyId,
    ) -> Result<Result<Record, Refusal>, AppError> {
        let turn = self.turns.writes.take(by).await?;
        let edited = self.store.edit(link, edit, by).await?;
        drop(turn);
        self.lookup.changed(link);
        Ok(edited)
    }

    /// Returns an edit that fits the link. Rejects one with times that contradict those of the
    /// link, one after which a path could not fill its long URLs, one that would make it redirect
    /// to itself, or one that would enable it although its long URLs are denied. Two concurrent
    /// edits may each agree with the earlier values. Then the link does not redirect, which is
    /// shown, or a path behind its name is not filled in, until one of them is undone.
    pub(crate) fn check_against(&self, link: &Link, edit: &Edit) -> Result<Edit, AppError> {
        let DetailsEdit { valid_since, valid_until, .. } = &edit.details;
        if valid_since.is_some() || valid_until.is_some() {
            let (has, mut wrong) = (link.details(), FieldErrors::default());
            let since = valid_since.unwrap_or(has.valid_since);
            link_fields::check_window(since, valid_until.unwrap_or(has.valid_until), &mut wrong);
            wrong.finish()?;
        }
        check_templates_after(link, edit)?;
        let rules = edit.details.rules.iter().flatten().map(|rule| &rule.long_url);
        if edit.details.disabled == Some(false) {
            // The new long URLs were checked when they were read. Those that the link keeps may be
            // denied by now.
            let long_url = Some(&link.long_url).filter(|_| edit.long_url.is_none());
            let kept_rules = if edit.details.rules.is_none() { link.rules() } else { &[] };
            let kept = long_url.into_iter().chain(kept_rules.iter().map(|rule| &rule.long_url));
            self.check_targets(Field::Enabled.name(), kept)?;
        }
        if let Some(own) = self.lookup.name_of(link) {
            self.refuse_circle(Field::LongUrl, edit.long_url.iter().chain(rules), link.domain(), &own)?;
            let expired_url = edit.details.expired_url.iter().flatten();
            self.refuse_circle(Field::ExpiredUrl, expired_url, link.domain(), &own)?;
        }
        Ok(edit.clone())
    }
}

/// Checks that a path can fill the long URLs that the link has after the edit, if the edit changes
/// them or what a path does.
fn check_templates_after(link: &Link, edit: &Edit) -> Result<(), AppError> {
    let DetailsEdit { extra_path, rules, .. } = &edit.details;
    if extra_path.is_none() && edit.long_url.is_none() && rules.is_none() {
        return Ok(());
    }
    let long_url = edit.long_url.as_ref().unwrap_or(&link.long_url);
    let rules = rules.as_deref().unwrap_or(link.rules());
    let extra_path = extra_path.unwrap_or(link.details().extra_path);
    let checked = check_templates(extra_path, Some(long_url), rules);
    checked.map_err(|error| AppError::invalid(Field::ExtraPath.name(), error.to_string()))
}
