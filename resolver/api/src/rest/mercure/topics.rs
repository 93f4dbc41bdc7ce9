//! Topics of updates, as Shlink names them.

use std::collections::BTreeSet;

use app::live::Topics;

pub(super) const TOPICS_MAX: usize = 100;

/// Reads the topics of a request. A topic without updates here is no error: another hub may have
/// them.
pub(super) fn read(selectors: impl Iterator<Item = String>) -> Result<Topics, String> {
    let mut topics = Topics { links: false, names: BTreeSet::new(), orphans: false };
    let mut count = 0;
    for selector in selectors {
        count += 1;
        if count > TOPICS_MAX {
            return Err(format!("too many parameters topic: at most {TOPICS_MAX}"));
        }
        add(&mut topics, &selector);
    }
    if count == 0 { Err("the parameter topic is missing".to_owned()) } else { Ok(topics) }
}

fn add(topics: &mut Topics, selector: &str) {
    if selector == "*" {
        (topics.links, topics.orphans) = (true, true);
        return;
    }
    match selector.strip_prefix("https://shlink.io/") {
        Some("new-visit") => topics.links = true,
        Some("new-orphan-visit") => topics.orphans = true,
        Some(other) => {
            // Clients write slugs as they are, slashes included.
            topics.names.extend(other.strip_prefix("new-visit/").map(str::to_owned));
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(selectors: &[&str]) -> Result<Topics, String> {
        read(selectors.iter().map(|selector| (*selector).to_owned()))
    }

    #[test]
    fn topics_are_those_of_shlink() {
        let none = Topics::default();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        for (selectors, expected) in [
            (&["*"][..], Topics::all()),
            (&["https://shlink.io/new-visit"], Topics { links: true, ..none.clone() }),
            (&["https://shlink.io/new-orphan-visit"], Topics { orphans: true, ..none.clone() }),
            (
                &["https://shlink.io/new-visit/abc", "https://shlink.io/new-visit/a/b"],
                Topics { names: names(&["abc", "a/b"]), ..none.clone() },
            ),
            (
                &["https://shlink.io/new-visit", "https://shlink.io/new-orphan-visit"],
                Topics { links: true, orphans: true, ..none.clone() },
            ),
            (&["https://shlink.io/new-short-url", "https://other.test/new-visit", ""], none),
        ] {
            assert_eq!(topics(selectors), Ok(expected), "{selectors:?}");
        }
    }

    #[test]
    fn a_request_has_some_topics_and_not_too_many() {
        assert_eq!(topics(&[]), Err("the parameter topic is missing".to_owned()));
        assert!(topics(&["*"; TOPICS_MAX]).is_ok());
        let refused = topics(&["*"; TOPICS_MAX + 1]).unwrap_err();
        assert!(refused.contains("too many"), "{refused}");
    }
}
