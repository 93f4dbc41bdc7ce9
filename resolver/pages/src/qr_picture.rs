//! QR codes as pictures within pages.

use url::form_urlencoded;

use crate::markup::Markup;

/// The options of the pictures, as the address of a QR code has them. The margin is the quiet zone
/// that readers need on dark pages.
const OPTIONS: &str = "size=240&margin=auto&format=svg";

/// Draws the QR code of a short URL. The picture is empty if the URL is too long for any code.
pub(crate) fn qr_picture(short_url: &str) -> Markup {
    let options = qr::QrOptions::read(form_urlencoded::parse(OPTIONS.as_bytes()));
    let image = options.and_then(|options| qr::render(short_url, &options, None));
    image.map(|image| Markup::of_qr_code(&image)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_is_too_long_for_a_code_has_no_picture() {
        let picture = qr_picture("https://s.example/aB3x9Q").to_string();
        assert!(picture.starts_with("<svg") && picture.ends_with("</svg>"), "{picture}");
        assert_eq!(qr_picture(&"x".repeat(3000)).to_string(), "");
    }
}
