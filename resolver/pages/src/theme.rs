//! The operator's theme: name, logo, accent colour and footer.

use qr::Rgb;
use url::Url;

const NAME: &str = "Shortmint";
const NAME_BYTES: usize = 60;
const FOOTER_BYTES: usize = 300;

/// How the pages present the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theme {
    pub(crate) name: String,
    pub(crate) logo: Option<String>,
    accent: Option<Rgb>,
    /// The text at the end of each page.
    pub(crate) footer: Option<String>,
}

/// Why a part of a theme was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThemeError {
    /// The name is empty, too long or has control characters.
    #[error("the name must have 1 to {NAME_BYTES} bytes, without control characters")]
    Name,
    /// The footer is too long or has control characters.
    #[error("the footer must have at most {FOOTER_BYTES} bytes, without control characters")]
    Footer,
    /// The logo is not a file that can be shown.
    #[error("the logo must be an SVG, PNG, WebP or JPEG file of at most 8 KiB")]
    Logo,
    /// Not a colour.
    #[error("not a colour: write one such as #0a7f5a")]
    Colour,
    /// White text on the colour, or the colour on white, would be hard to read.
    #[error("too light: white on it has a contrast of less than 4.5 to 1 (WCAG 2.2, 1.4.3)")]
    Contrast,
}

impl Default for Theme {
    fn default() -> Self {
        Self { name: NAME.to_owned(), logo: None, accent: None, footer: None }
    }
}

impl Theme {
    /// Checks the parts of a theme. The logo is the content of an image file, as a `data:` URL.
    pub fn new(
        name: Option<String>,
        logo: Option<String>,
        accent: Option<Rgb>,
        footer: Option<String>,
    ) -> Result<Self, ThemeError> {
        let fits = |text: &str, most| text.len() <= most && !text.chars().any(char::is_control);
        let name = name.unwrap_or_else(|| NAME.to_owned());
        if name.trim().is_empty() || !fits(&name, NAME_BYTES) {
            return Err(ThemeError::Name);
        }
        if footer.as_deref().is_some_and(|footer| !fits(footer, FOOTER_BYTES)) {
            return Err(ThemeError::Footer);
        }
        let is_picture = |url: &String| {
            Url::parse(url).is_ok_and(|url| url.scheme() == "data" && url.path().starts_with("image/"))
        };
        if logo.as_ref().is_some_and(|logo| !is_picture(logo)) {
            return Err(ThemeError::Logo);
        }
        Ok(Self { name, logo, accent, footer })
    }

    /// Reads an accent colour: six hexadecimal digits behind a `#`, dark enough for white on it.
    pub fn accent(text: &str) -> Result<Rgb, ThemeError> {
        let is_whole = text.len() == "#0a7f5a".len() && text.starts_with('#');
        let accent = is_whole.then(|| Rgb::parse(text)).flatten().ok_or(ThemeError::Colour)?;
        if 1.05 / (accent.luminance() + 0.05) < 4.5 { Err(ThemeError::Contrast) } else { Ok(accent) }
    }

    pub(crate) fn style(&self) -> String {
        // A dark page needs the colour lighter; the style sheet mixes it with white there.
        self.accent.map_or_else(String::new, |accent| format!(":root {{ --accent: {accent}; }}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_read_and_have_to_be_dark_enough() {
        assert_eq!(Theme::accent("#0a7f5a").unwrap().to_string(), "#0a7f5a");
        for text in ["", "0a7f5a", "#0a7f5", "#0a7f5ag", "#+a7f5a", "#ä7f5a", "red", "#0a7f5a;}"] {
            assert_eq!(Theme::accent(text), Err(ThemeError::Colour), "{text}");
        }
        assert_eq!(Theme::accent("#7fffd4"), Err(ThemeError::Contrast));
        // The lightest grey that WCAG allows on white.
        assert!(Theme::accent("#767676").is_ok());
        assert_eq!(Theme::accent("#777777"), Err(ThemeError::Contrast));
    }

    #[test]
    fn a_theme_names_what_it_refuses() {
        let theme = |name: &str, logo: Option<&str>, footer: &str| {
            Theme::new(Some(name.to_owned()), logo.map(str::to_owned), None, Some(footer.to_owned()))
                .map(drop)
        };
        assert_eq!(theme("Ours", Some("data:image/png;base64,AAAA"), "© us"), Ok(()));
        assert_eq!(theme(" ", None, ""), Err(ThemeError::Name));
        assert_eq!(theme("a\nb", None, ""), Err(ThemeError::Name));
        assert_eq!(theme("Ours", None, &"x".repeat(301)), Err(ThemeError::Footer));
        assert_eq!(theme("Ours", Some("https://example.org/logo.png"), ""), Err(ThemeError::Logo));
        assert_eq!(theme("Ours", Some("data:text/html,x"), ""), Err(ThemeError::Logo));
    }
}
