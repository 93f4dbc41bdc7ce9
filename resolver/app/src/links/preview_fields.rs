//! The social preview of a link, as a caller sets it, and its check.

use links::{DESCRIPTION_BYTES, LongUrl, Preview, TITLE_BYTES};

use crate::{LinkService, values::Checked};

/// The parts of a social preview, unchecked. An empty one is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreviewFields {
    /// The title.
    pub title: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The URL of a picture.
    pub image: Option<String>,
}

impl LinkService {
    /// Checks a preview. One without any part is none.
    pub(crate) fn check_preview(&self, fields: PreviewFields) -> Checked<Option<Preview>> {
        let PreviewFields { title, description, image } = fields;
        let image = image.as_deref().map(str::trim).filter(|url| !url.is_empty());
        let preview = Preview {
            title: check_text("title", title, TITLE_BYTES)?,
            description: check_text("description", description, DESCRIPTION_BYTES)?,
            image: image.map(|url| self.check_image(url)).transpose()?,
        };
        Ok(preview.some())
    }

    fn check_image(&self, url: &str) -> Checked<LongUrl> {
        if !Preview::takes(url) {
            return Err("image: expected a URL that begins with https:// or http://".to_owned());
        }
        self.check_long_url(url).map_err(|problem| format!("image: {problem}"))
    }
}

fn check_text(name: &str, text: Option<String>, bytes_max: usize) -> Checked<Option<String>> {
    let text = text.unwrap_or_default();
    let text = text.trim();
    if text.len() > bytes_max || text.contains('\0') {
        return Err(format!("{name}: expected a string of at most {bytes_max} bytes without NUL, or null"));
    }
    Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_trimmed_and_limited() {
        let check = |text: &str| check_text("title", Some(text.to_owned()), 3);
        assert_eq!(check(" abc "), Ok(Some("abc".to_owned())));
        assert_eq!([check(" "), check_text("title", None, 3)], [Ok(None), Ok(None)]);
        for text in ["abcd", "a\0"] {
            let expected = "title: expected a string of at most 3 bytes without NUL, or null";
            assert_eq!(check(text), Err(expected.to_owned()));
        }
    }
}
