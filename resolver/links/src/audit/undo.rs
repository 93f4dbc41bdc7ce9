//! Undo of an edit of a link, by its entry in the log.
//!
//! 1. Each field that the edit changed gets the value that it had before. The others stay.
//! 2. If one of them was changed again since, nothing is undone: no later change gets lost.
//! 3. A password comes back by its hash. Entries of releases that kept no hashes are not undone if
//!    they are about a password, because the link would be left open or closed by guess.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{
    Action, Entry,
    state::{CHANGED, PASSWORD, hashes, named, texts},
};
use crate::{Edit, Record, Rule};

const TAGS: &str = "tags";

/// Why an edit is not undone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotUndone {
    /// The log has no such edit of the link.
    #[error("The log has no such change of this link; old entries may have been removed.")]
    NoEntry,
    /// The change is none that an undo knows.
    #[error("Only edits can be undone. Restore a deleted link; only an operator unblocks one.")]
    NotAnEdit,
    /// These fields have another value than after the edit.
    #[error(
        "These fields were changed again since: {}. Undo the later change first, or edit the link.",
        .0.join(", ")
    )]
    ChangedAgain(Vec<String>),
    /// No undo brings the former value of these fields back.
    #[error(
        "No undo brings these fields back: {}. Move or rename the link, or set its password again.",
        .0.join(", ")
    )]
    Irrevocable(Vec<String>),
}

impl Entry {
    /// Returns the edit of a link that undoes the one that the entry is about.
    pub fn undo(&self, Record { link, tags }: &Record) -> Result<Edit, NotUndone> {
        let details = self.details.as_ref().filter(|_| self.action == Action::EditLink.as_str());
        let details = details.ok_or(NotUndone::NotAnEdit)?;
        let changed = details[CHANGED].as_object().ok_or(NotUndone::NotAnEdit)?;
        let mut present: Map<String, Value> = named(link.logged());
        present.insert(TAGS.to_owned(), json!(texts(tags)));
        let (mut edit, mut changed_again, mut irrevocable) = (Edit::default(), Vec::new(), Vec::new());
        for (name, change) in changed {
            match (&**name, present.get(name)) {
                ("version", _) => {}
                ("hasPassword" | PASSWORD, _) => match hashes(details) {
                    Some([_, after]) if after.as_ref() != link.password() => {
                        changed_again.push(PASSWORD.to_owned());
                    }
                    Some([before, _]) => edit.details.password = Some(before),
                    None => irrevocable.push(PASSWORD.to_owned()),
                },
                (_, Some(value)) if !is_same(name, value, &change["to"]) => changed_again.push(name.clone()),
                _ if set(&mut edit, name, &change["from"]).is_none() => irrevocable.push(name.clone()),
                _ => {}
            }
        }
        match (changed_again.is_empty(), irrevocable.is_empty()) {
            (true, true) => Ok(edit),
            (true, false) => Err(NotUndone::Irrevocable(irrevocable)),
            (false, _) => Err(NotUndone::ChangedAgain(changed_again)),
        }
    }
}

/// Returns whether a field has the value that the log says. Times are stored in milliseconds, and
/// the log may have fractions of them. Tags have no order.
fn is_same(name: &str, value: &Value, logged: &Value) -> bool {
    let time = |value| read::<Timestamp>(value).map(Timestamp::as_millisecond);
    let tags = |value| {
        let mut tags: Vec<String> = read(value).unwrap_or_default();
        tags.sort_unstable();
        tags
    };
    match name {
        "validSince" | "validUntil" => time(value) == time(logged),
        TAGS => tags(value) == tags(logged),
        _ => value == logged,
    }
}

/// Sets a field to a value of the log. Returns `None` if no edit sets it, or not to this value.
pub(crate) fn set(edit: &mut Edit, name: &str, value: &Value) -> Option<()> {
    let Edit { long_url, title, crawlable, forward_query, details, tags, .. } = edit;
    match name {
        "longUrl" => *long_url = Some(read(value)?),
        "title" => *title = Some(read(value)?),
        "crawlable" => *crawlable = Some(read(value)?),
        "forwardQuery" => *forward_query = Some(read(value)?),
        TAGS => *tags = Some(read(value)?),
        "description" => details.description = Some(read(value)?),
        "enabled" => details.disabled = Some(!read::<bool>(value)?),
        "redirectStatus" => details.status = Some(read(value)?),
        "extraPath" => details.extra_path = Some(read(value)?),
        "expiredUrl" => details.expired_url = Some(read(value)?),
        "preview" => details.preview = Some(read(value)?),
        "validSince" => details.valid_since = Some(read(value)?),
        "validUntil" => details.valid_until = Some(read(value)?),
        "maxVisits" => details.max_visits = Some(read(value)?),
        "redirectRules" => details.rules = Some(read::<Option<Vec<Rule>>>(value)?.unwrap_or_default()),
        _ => return None,
    }
    Some(())
}

fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Condition, Details, ExtraPath, Link, LongUrl, PasswordHash, Preview, RedirectStatus, Tag,
        api_key::{ApiKeyId, OPERATOR},
        audit::change,
    };

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn entry(before: &Record, after: &Record) -> Entry {
        Entry {
            id: 1,
            at: NOW,
            by: OPERATOR,
            by_name: None,
            action: Action::EditLink.as_str().to_owned(),
            subject: "5".to_owned(),
            details: Some(change(&before.link, &after.link, Some((&*before.tags, &*after.tags)))),
        }
    }

    fn tagged(link: Link, tags: &[&str]) -> Record {
        Record { link, tags: tags.iter().copied().map(Tag::from_stored).collect() }
    }

    /// Returns two states of a link that differ in every field that an edit sets.
    fn states() -> [Record; 2] {
        let url = |path: &str| LongUrl::from_stored(format!("https://e.test/{path}"));
        let at = |second| Timestamp::from_second(second).ok();
        let condition = Condition::parse("device", None, Some("android")).unwrap();
        let details = Details {
            description: Some("D".to_owned()),
            disabled: true,
            password: PasswordHash::of("hush").ok(),
            status: RedirectStatus::try_from(308).ok(),
            extra_path: Some(ExtraPath::Append),
            expired_url: Some(url("over")),
            preview: Some(Preview { image: Some(url("a.png")), ..Preview::default() }),
            valid_since: at(1),
            valid_until: at(9),
            max_visits: Some(3),
            rules: vec![Rule::new(url("android"), vec![condition])],
            version: 1,
            ..Details::default()
        };
        let link = Link { long_url: url("other"), title: Some("T".to_owned()), ..Link::sample(details) };
        let other = Link { crawlable: !link.crawlable, forward_query: !link.forward_query, ..link };
        [tagged(Link::sample(Details::default()), &["a"]), tagged(other, &["b", "c"])]
    }

    #[test]
    fn every_field_of_the_log_comes_back_in_either_direction() {
        let [plain, full] = states();
        for (before, after) in [(&plain, &full), (&full, &plain)] {
            let entry = entry(before, after);
            let changed = &entry.details.as_ref().unwrap()[CHANGED];
            for (name, _) in after.link.logged() {
                // Others than an edit set these two. A new field belongs into `states`.
                assert!(matches!(name, "blocked" | "deletedAt") || !changed[name].is_null(), "{name}");
            }
            let undo = entry.undo(after).unwrap();
            let back = undo.apply(after.link.clone(), NOW, ApiKeyId(7));
            let fields = |link: &Link| {
                let mut fields = named(link.logged());
                fields.remove("version");
                fields
            };
            assert_eq!(fields(&back), fields(&before.link));
            assert_eq!(back.password(), before.link.password());
            assert_eq!(undo.tags.as_ref(), Some(&before.tags));
        }
    }

    #[test]
    fn what_was_changed_again_is_named_and_other_fields_do_not_matter() {
        let [before, after] = states();
        let edit = entry(&before, &after);
        let with = |change: fn(&mut Record)| {
            let mut record = after.clone();
            change(&mut record);
            edit.undo(&record)
        };
        let again = |name: &str| Err(NotUndone::ChangedAgain(vec![name.to_owned()]));
        assert_eq!(with(|record| record.link.title = None), again("title"));
        assert_eq!(with(|record| record.tags.push(Tag::from_stored("d"))), again("tags"));
        let another = |record: &mut Record| {
            record.link.details.as_mut().unwrap().password = PasswordHash::of("hush").ok();
        };
        assert_eq!(with(another), again("password"), "the same password, set again");
        assert!(with(|record| record.tags.reverse()).is_ok(), "tags have no order");
        let mut retitled = before.clone();
        retitled.link.title = Some("T".to_owned());
        let edit = entry(&before, &retitled);
        let mut described = retitled;
        described.link.details = Some(Box::new(Details { max_visits: Some(9), ..Details::default() }));
        let undo = edit.undo(&described).unwrap();
        assert_eq!(undo, Edit { title: Some(None), ..Edit::default() });
    }

    #[test]
    fn what_an_undo_cannot_bring_back_is_refused() {
        let [before, after] = states();
        let record = after.clone();
        let refused = |changed: Value| {
            let details = Some(json!({ "title": "T", CHANGED: changed }));
            Entry { details, ..entry(&before, &after) }.undo(&record)
        };
        let irrevocable = |name: &str| Err(NotUndone::Irrevocable(vec![name.to_owned()]));
        let domain = json!({ "domain": { "from": "a.test", "to": "b.test" } });
        assert_eq!(refused(domain), irrevocable("domain"));
        let name = json!({ "shortCode": { "from": "a", "to": "b" } });
        assert_eq!(refused(name), irrevocable("shortCode"));
        let no_hash = json!({ "hasPassword": { "from": false, "to": true } });
        assert_eq!(refused(no_hash), irrevocable("password"), "of an earlier release");
        assert_eq!(refused(json!({ "later": { "from": 1, "to": 2 } })), irrevocable("later"));
        let blocked = Entry { action: Action::BlockLink.as_str().to_owned(), ..entry(&before, &after) };
        assert_eq!(blocked.undo(&record), Err(NotUndone::NotAnEdit));
        let bare = Entry { details: None, ..entry(&before, &after) };
        assert_eq!(bare.undo(&record), Err(NotUndone::NotAnEdit));
    }
}
