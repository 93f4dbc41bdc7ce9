//! The first steps of a key that may create links, above its list: make a link, share it, see its
//! visits.
//!
//! Existing links and visits tick them off, so no progress is stored. They disappear with the
//! second link.

use super::shown::ShownLink;
use crate::addresses::{link_page, link_statistics};

pub(super) struct Step {
    /// The name of the step's text.
    pub(super) text: &'static str,
    /// The page that the step is done on; `None` for one that is done on the list, or not yet.
    pub(super) to: Option<String>,
    pub(super) is_done: bool,
}

/// Returns the steps for a list with all links that the key sees; none if there are several.
pub(super) fn steps(links: &[ShownLink], total: u64, may_count: bool) -> Vec<Step> {
    if total > 1 {
        return Vec::new();
    }
    let first = links.first();
    let mut steps = vec![
        Step { text: "tour-create", to: None, is_done: first.is_some() },
        Step {
            text: "tour-share",
            to: first.map(|link| link_page(&link.name)),
            is_done: first.is_some_and(|link| link.visits > 0),
        },
    ];
    if may_count {
        let to = first.map(|link| link_statistics(&link.name));
        steps.push(Step { text: "tour-visits", to, is_done: false });
    }
    steps
}

#[cfg(test)]
mod tests {
    use app::find_link::LinkName;

    use super::*;
    use crate::locale::english;

    fn link(visits: u64) -> ShownLink {
        ShownLink {
            short_url: String::new(),
            long_url: String::new(),
            name: LinkName { code: "aB3x9Q".to_owned(), domain: None },
            title: None,
            tags: Vec::new(),
            created: String::new(),
            visits,
            state: "live",
            state_text: String::new(),
        }
    }

    #[test]
    fn steps_are_ticked_off_by_what_exists() {
        let done = |links: &[ShownLink], total| {
            steps(links, total, true).iter().map(|step| step.is_done).collect::<Vec<_>>()
        };
        assert_eq!(done(&[], 0), [false, false, false]);
        assert_eq!(done(&[link(0)], 1), [true, false, false]);
        assert_eq!(done(&[link(1)], 1), [true, true, false]);
        assert!(done(&[link(1)], 2).is_empty());
    }

    #[test]
    fn steps_lead_to_the_pages_of_the_link() {
        let steps = steps(&[link(0)], 1, true);
        let to: Vec<_> = steps.iter().map(|step| step.to.as_deref()).collect();
        let expected = [None, Some("/manage/link/aB3x9Q"), Some("/manage/statistics?of=link&code=aB3x9Q")];
        assert_eq!(to, expected);
        assert!(steps.iter().all(|step| english().try_text(step.text).is_some()));
    }

    #[test]
    fn a_key_that_reads_no_visits_has_two_steps() {
        assert_eq!(steps(&[], 0, false).len(), 2);
    }
}
