//! The social preview of a link, which crawlers of chats and social networks are shown in place of
//! the target's own.

use serde::{Deserialize, Serialize};

use crate::LongUrl;

/// A social preview. At least one of its parts is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Preview {
    /// Title; without it, that of the link is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// URL of a picture ([`Preview::takes`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<LongUrl>,
}

impl Preview {
    /// Returns the preview; `None` if none of its parts is set.
    pub fn some(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }

    /// Returns whether a URL may be that of a picture: one of the web, which crawlers can read.
    pub fn takes(image: &str) -> bool {
        let begins =
            |scheme: &str| image.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
        begins("http://") || begins("https://")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_has_a_part_and_pictures_are_of_the_web() {
        assert_eq!(Preview::default().some(), None);
        let titled = Preview { title: Some("T".to_owned()), ..Preview::default() };
        assert_eq!(titled.clone().some(), Some(titled));
        for (url, is_taken) in [
            ("https://e.org/a.png", true),
            ("HTTP://e.org/", true),
            ("mailto:a@e.org", false),
            ("data:image/png;base64,AAAA", false),
            ("//e.org/a.png", false),
            ("e.org/a.png", false),
            ("", false),
        ] {
            assert_eq!(Preview::takes(url), is_taken, "{url}");
        }
    }
}
