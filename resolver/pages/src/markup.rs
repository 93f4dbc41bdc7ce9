//! Markup that templates do not escape.

use std::fmt;

use askama::Template;

/// Markup made by this program: pictures of charts and QR codes. It never contains a text of a
/// user, except numbers and what was escaped before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Markup(String);

impl Markup {
    /// Takes the SVG of a QR code, which consists of shapes alone.
    pub(crate) fn of_qr_code(image: &qr::Image) -> Self {
        Self(String::from_utf8_lossy(&image.bytes).into_owned())
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
