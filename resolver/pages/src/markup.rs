//! Markup that templates do not escape.

use std::fmt;

use askama::Template;
use url::form_urlencoded;

/// The options of QR codes, as the address of one has them. The margin is the quiet zone that
/// readers need on dark pages.
const QR_OPTIONS: &str = "size=240&margin=auto&format=svg";

/// Markup made by this program: pictures of charts and QR codes. It never contains a text of a
/// user, except numbers and what was escaped before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Markup(String);

impl Markup {
    /// Draws the QR code of a short URL, which consists of shapes alone. The picture is empty if
    /// the URL is too long for any code.
    pub(crate) fn qr_code(short_url: &str) -> Self {
        let options = qr::QrOptions::read(form_urlencoded::parse(QR_OPTIONS.as_bytes()));
        let image = options.and_then(|options| qr::render(short_url, &options, None));
        image.map(|image| Self(String::from_utf8_lossy(&image.bytes).into_owned())).unwrap_or_default()
    }

    /// Takes the SVG of a template, which escapes its texts.
    pub(crate) fn of(picture: &impl Template) -> Self {
        // Templates write to memory, which does not fail.
        Self(picture.render().unwrap_or_default())
    }
}

impl fmt::Display for Markup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl askama::filters::HtmlSafe for Markup {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_is_too_long_for_a_code_has_no_picture() {
        let Markup(picture) = Markup::qr_code("https://s.example/aB3x9Q");
        assert!(picture.starts_with("<svg") && picture.ends_with("</svg>"), "{picture}");
        assert_eq!(Markup::qr_code(&"x".repeat(3000)).0, "");
    }
}
