//! The operator's theme: name, logo, accent colour and footer.

use qr::Rgb;

const NAME_BYTES: usize = 60;
const FOOTER_BYTES: usize = 300;
const NO_COLOUR: &str = "not a colour: write one such as #0a7f5a";
/// White text on the colour, or the colour on white, would be hard to read.
const TOO_LIGHT: &str = "too light: white on it has a contrast of less than 4.5 to 1 (WCAG 2.2, 1.4.3)";

/// How the pages present the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theme {
    /// The name of the service.
    pub name: String,
    /// The logo as a `data:` URL.
    pub logo: Option<String>,
    /// The colour of links and buttons.
    pub accent: Option<Rgb>,
    /// The text at the end of each page.
    pub footer: Option<String>,
}

impl Default for Theme {
    fn default() -> Self {
        Self { name: "Shortmint".to_owned(), logo: None, accent: None, footer: None }
    }
}

impl Theme {
    /// Checks a name.
    pub fn check_name(text: &str) -> Result<String, String> {
        let name = checked(text, NAME_BYTES).filter(|name| !name.trim().is_empty());
        name.ok_or_else(|| format!("the name must have 1 to {NAME_BYTES} bytes, without control characters"))
    }

    /// Checks a footer.
    pub fn check_footer(text: &str) -> Result<String, String> {
        let expected =
            || format!("the footer must have at most {FOOTER_BYTES} bytes, without control characters");
        checked(text, FOOTER_BYTES).ok_or_else(expected)
    }

    /// Reads an accent colour: six hexadecimal digits behind a `#`, dark enough for white on it.
    pub fn read_accent(text: &str) -> Result<Rgb, &'static str> {
        let is_whole = text.len() == "#0a7f5a".len() && text.starts_with('#');
        let accent = is_whole.then(|| Rgb::parse(text)).flatten().ok_or(NO_COLOUR)?;
        if 1.05 / (accent.luminance() + 0.05) < 4.5 { Err(TOO_LIGHT) } else { Ok(accent) }
    }

    /// Returns the style sheet that follows `assets/style.css`.
    pub(crate) fn style(&self) -> String {
        // A dark page needs the colour lighter; the style sheet mixes it with white there.
        self.accent.map_or_else(String::new, |accent| format!(":root {{ --accent: {accent}; }}\n"))
    }
}

fn checked(text: &str, bytes_max: usize) -> Option<String> {
    let fits = text.len() <= bytes_max && !text.chars().any(char::is_control);
    fits.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_read_and_have_to_be_dark_enough() {
        assert_eq!(Theme::read_accent("#0a7f5a").unwrap().to_string(), "#0a7f5a");
        for text in ["", "0a7f5a", "#0a7f5", "#0a7f5ag", "#+a7f5a", "#ä7f5a", "red", "#0a7f5a;}"] {
            assert_eq!(Theme::read_accent(text), Err(NO_COLOUR), "{text}");
        }
        assert_eq!(Theme::read_accent("#7fffd4"), Err(TOO_LIGHT));
        // The lightest grey that WCAG allows on white.
        assert!(Theme::read_accent("#767676").is_ok());
        assert_eq!(Theme::read_accent("#777777"), Err(TOO_LIGHT));
    }

    #[test]
    fn texts_have_bounds_and_no_control_characters() {
        for (name, is_right) in [("Ours", true), (" ", false), ("a\nb", false), (&*"x".repeat(61), false)] {
            assert_eq!(Theme::check_name(name).is_ok(), is_right, "{name}");
        }
        assert_eq!(Theme::check_footer("© us").unwrap(), "© us");
        assert!(Theme::check_footer("").is_ok() && Theme::check_footer(&"x".repeat(301)).is_err());
    }
}
