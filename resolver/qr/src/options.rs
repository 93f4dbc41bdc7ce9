//! The query parameters of a QR code image, and the errors that name them.

use std::{borrow::Cow, fmt};

use fast_qr::ECL;

/// Minimum pixels on each side, without the margin.
const SIZE_MIN: u16 = 50;
/// Maximum pixels on each side, without the margin.
const SIZE_MAX: u16 = 1000;
/// Default pixels on each side, without the margin.
const SIZE_DEFAULT: u16 = 300;
/// The quiet zone that readers need around a code, in modules (ISO/IEC 18004, section 5.3.8). On a
/// dark page a code without it cannot be told from the page.
pub(super) const QUIET_MODULES: u16 = 4;
/// Maximum margin in pixels on each side. The quiet zone fits: in the smallest code 21 modules fill
/// 1000 pixels at 47 each.
const MARGIN_MAX: u16 = 200;
/// The least contrast of the two colours that readers are sure to see, as WCAG 2 computes it.
const CONTRAST_MIN: f64 = 3.0;
/// The warning for two colours that are too much alike.
const LOW_CONTRAST: &str =
    "low contrast: many readers will not see the code; use a darker color or a lighter bgColor";
/// The warning for modules that are lighter than the background.
const INVERTED: &str = "inverted: some readers expect a color that is darker than bgColor";
const COLOR: &str = "RRGGBB or RGB in hexadecimal digits, with or without a leading #";
/// The names of formats, of levels of error correction, and of whether a logo is wanted: `disable`
/// is Shlink's word.
pub(super) const FORMATS: &[(&str, Format)] = &[("png", Format::Png), ("svg", Format::Svg)];
const LEVELS: &[(&str, ECL)] = &[("l", ECL::L), ("m", ECL::M), ("q", ECL::Q), ("h", ECL::H)];
const SWITCHES: &[(&str, bool)] = &[
    ("on", true),
    ("true", true),
    ("1", true),
    ("off", false),
    ("false", false),
    ("0", false),
    ("disable", false),
];

/// An invalid parameter, or a text that does not fit, in words that name the parameter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {parameter} to be {expected}")]
pub struct QrError {
    /// The name of the parameter.
    pub parameter: String,
    /// The values that it takes.
    pub expected: String,
}

impl QrError {
    pub(super) fn new(parameter: &str, expected: &str) -> Self {
        Self { parameter: parameter.to_owned(), expected: expected.to_owned() }
    }
}

/// The appearance of a QR code. Values are within bounds, and the two colours differ.
#[derive(Clone, Debug)]
pub struct QrOptions {
    pub(super) format: Format,
    pub(super) size: u16,
    /// Pixels on each side; `None` for the quiet zone.
    pub(super) margin: Option<u16>,
    /// With L, M, Q and H, 7, 15, 25 or 30 per cent of a code can be restored.
    pub(super) error_correction: ECL,
    pub(super) color: Rgb,
    pub(super) background: Rgb,
    pub(super) logo: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Png,
    Svg,
}

/// An RGB colour with 8 bits for each of red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rgb(pub(super) [u8; 3]);

impl QrOptions {
    /// Reads options from the decoded pairs of a query. Absent parameters keep their defaults, and
    /// the last of several values counts. Unknown parameters are skipped, because links in the wild
    /// carry those of trackers. The error is that of the first invalid parameter.
    pub fn read<'a>(pairs: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>) -> Result<Self, QrError> {
        let mut options = Self {
            format: Format::Png,
            size: SIZE_DEFAULT,
            margin: Some(0),
            error_correction: ECL::L,
            color: Rgb([0x00; 3]),
            background: Rgb([0xff; 3]),
            logo: false,
        };
        for (name, value) in pairs {
            let value = value.trim();
            let wrong = |expected: &str| QrError::new(&name, expected);
            match &*name {
                "format" => options.format = choice(value, FORMATS).ok_or_else(|| wrong("png or svg"))?,
                "size" => {
                    let expected = format!("a whole number of pixels from {SIZE_MIN} to {SIZE_MAX}");
                    options.size = whole_number(value, SIZE_MIN, SIZE_MAX).ok_or_else(|| wrong(&expected))?;
                }
                "margin" if value == "auto" => options.margin = None,
                "margin" => {
                    let expected = format!(
                        "a whole number of pixels from 0 to {MARGIN_MAX}, or auto for the quiet zone"
                    );
                    options.margin =
                        Some(whole_number(value, 0, MARGIN_MAX).ok_or_else(|| wrong(&expected))?);
                }
                "errorCorrection" => {
                    options.error_correction = choice(value, LEVELS).ok_or_else(|| wrong("l, m, q or h"))?;
                }
                "color" => options.color = Rgb::parse(value).ok_or_else(|| wrong(COLOR))?,
                "logo" => options.logo = choice(value, SWITCHES).ok_or_else(|| wrong("on or off"))?,
                "bgColor" => options.background = Rgb::parse(value).ok_or_else(|| wrong(COLOR))?,
                _ => {}
            }
        }
        if options.color == options.background {
            return Err(QrError::new("bgColor", "another colour than color"));
        }
        Ok(options)
    }

    /// Returns why many readers may fail to read the code, though it can be drawn.
    pub fn warning(&self) -> Option<&'static str> {
        let (color, background) = (self.color.luminance(), self.background.luminance());
        let (dark, light) = if color < background { (color, background) } else { (background, color) };
        if (light + 0.05) / (dark + 0.05) < CONTRAST_MIN {
            return Some(LOW_CONTRAST);
        }
        (color > background).then_some(INVERTED)
    }
}

impl Rgb {
    /// Returns the relative luminance, from 0 to 1 (WCAG 2.2).
    pub fn luminance(self) -> f64 {
        let linear = self.0.map(|channel| {
            let value = f64::from(channel) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    }

    /// Parses three or six hexadecimal digits, with or without a leading `#`.
    pub fn parse(text: &str) -> Option<Self> {
        let digit = |letter: char| u8::try_from(letter.to_digit(16)?).ok();
        let digits = text.strip_prefix('#').unwrap_or(text).chars().map(digit);
        match digits.collect::<Option<Vec<u8>>>()?[..] {
            // A short form stands for the long form with each digit doubled.
            [red, green, blue] => Some(Self([red, green, blue].map(|digit| 0x11 * digit))),
            [r1, r2, g1, g2, b1, b2] => Some(Self([16 * r1 + r2, 16 * g1 + g2, 16 * b1 + b2])),
            _ => None,
        }
    }
}

impl fmt::Display for Rgb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

/// Finds the value of a name, in upper or lower case.
pub(super) fn choice<T: Copy>(text: &str, names: &[(&str, T)]) -> Option<T> {
    names.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, value)| *value)
}

/// Parses a number of digits only, because `parse` would also accept a sign.
pub(super) fn whole_number(text: &str, min: u16, max: u16) -> Option<u16> {
    let is_number = text.bytes().all(|digit| digit.is_ascii_digit());
    let number = is_number.then(|| text.parse().ok()).flatten()?;
    (min..=max).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&'static str, &'static str)]) -> Result<QrOptions, QrError> {
        QrOptions::read(pairs.iter().map(|&(name, value)| (name.into(), value.into())))
    }

    #[test]
    fn what_is_not_said_stays_at_shlinks_default() {
        let defaults = read(&[]).unwrap();
        assert_eq!((defaults.size, defaults.margin), (300, Some(0)));
        assert_eq!(
            (defaults.color.to_string(), defaults.background.to_string()),
            ("#000000".into(), "#ffffff".into())
        );
        for pairs in [&[("utm_source", "x")][..], &[("Size", "7"), ("", ""), ("roundBlockSize", "maybe")]] {
            assert_eq!(format!("{:?}", read(pairs).unwrap()), format!("{defaults:?}"), "{pairs:?}");
        }
    }

    #[test]
    fn every_parameter_is_read_and_its_last_value_counts() {
        let read = read(&[
            ("size", "50"),
            ("format", " SVG"),
            ("margin", "200"),
            ("errorCorrection", "Q"),
            ("color", "#1a2B3c"),
            ("bgColor", "fEd"),
            ("size", "1000"),
        ]);
        let expected = QrOptions {
            format: Format::Svg,
            size: 1000,
            margin: Some(200),
            error_correction: ECL::Q,
            color: Rgb([0x1a, 0x2b, 0x3c]),
            background: Rgb([0xff, 0xee, 0xdd]),
            logo: false,
        };
        assert_eq!(format!("{:?}", read.unwrap()), format!("{expected:?}"));
    }

    #[test]
    fn a_value_that_cannot_be_is_refused_under_its_name() {
        let numbers = ["", " ", "-1", "+60", "6e1", "60.0", "0x40", "٦٠", "65636", "99999999999999999999"];
        let colors =
            ["", "#", "##000", "12", "1234", "12345", "1234567", "+12345", "red", "gggggg", "１２３"];
        for (name, wrong) in [
            ("format", &["", "jpg", "png,svg", "image/png"][..]),
            ("size", &numbers),
            ("size", &["0", "49", "1001"]),
            ("margin", &numbers),
            ("margin", &["201"]),
            ("errorCorrection", &["", "x", "lm", "low", "ℓ"]),
            ("color", &colors),
            ("color", &["#12345678"]),
            ("bgColor", &colors),
            ("bgColor", &["#12345678"]),
        ] {
            for &value in wrong {
                let error = read(&[(name, value)]).expect_err(value).to_string();
                assert!(error.starts_with(&format!("expected {name} to be ")), "{value}: {error}");
            }
        }
    }

    #[test]
    fn colours_that_readers_may_not_tell_apart_are_warned_of() {
        let warning =
            |color, background| read(&[("color", color), ("bgColor", background)]).unwrap().warning();
        for (color, background, expected) in [
            ("000", "fff", None),
            ("a00000", "ffe", None),
            ("00f", "ff0", None),
            ("777", "888", Some(LOW_CONTRAST)),
            ("ff0", "fff", Some(LOW_CONTRAST)),
            ("ccc", "fff", Some(LOW_CONTRAST)),
            ("fff", "eee", Some(LOW_CONTRAST)),
            ("fff", "000", Some(INVERTED)),
            ("ff0", "00f", Some(INVERTED)),
        ] {
            assert_eq!(warning(color, background), expected, "{color} on {background}");
        }
    }

    #[test]
    fn two_equal_colours_are_refused_however_they_are_written() {
        for pairs in [
            &[("color", "fff")][..],
            &[("bgColor", "#000000")],
            &[("color", "#AbC"), ("bgColor", "aabbcc")],
            &[("color", "123"), ("bgColor", "123")],
        ] {
            let error = read(pairs).unwrap_err();
            assert_eq!(error, QrError::new("bgColor", "another colour than color"), "{pairs:?}");
        }
        assert!(
            read(&[("color", "fff"), ("bgColor", "000")]).is_ok(),
            "the order of the two does not matter"
        );
    }
}
