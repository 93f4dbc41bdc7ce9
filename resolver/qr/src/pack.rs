//! Packs of QR codes for print: an archive with an image for each link and a table of them, or
//! sheets of labels as PDF. The same links and options make the same bytes.

use std::{
    borrow::Cow,
    io::{Cursor, Write as _},
};

use zip::{CompressionMethod, ZipWriter, result::ZipResult, write::SimpleFileOptions};

use crate::{
    options::{FORMATS, Format, QrError, QrOptions, choice, whole_number},
    render, sheets,
};

/// The name of the table in an archive.
const TABLE: &str = "links.csv";
/// Maximum length of the images of an archive, and of the pages of sheets, in bytes. A thousand
/// ordinary codes take three million.
const PACK_BYTES: usize = 12 << 20;
/// Maximum length of the domain and of the name of a link within the name of a file, in characters.
const NAME_CHARS: usize = 80;
const COLUMNS_MAX: u16 = 6;
const ROWS_MAX: u16 = 10;
/// Options as they are on paper if nothing else is said.
const DEFAULTS: [(&str, &str); 3] = [("format", "svg"), ("size", "1000"), ("margin", "auto")];

/// A link of a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The text of the QR code: an ASCII URL.
    pub(super) short_url: String,
    /// The title of the link.
    pub(super) title: Option<String>,
    stem: String,
}

impl Label {
    /// Makes the label of a link with its number in the list, its domain and its name.
    pub fn new(number: u64, (domain, name): (&str, &str), short_url: String, title: Option<String>) -> Self {
        // The number keeps names apart that differ only in case or in replaced characters, and a
        // name that begins with it means nothing else to any system, as `..` or `con` would.
        let stem = format!("{number:04}-{}-{}", plain(domain), plain(name));
        Self { short_url, title, stem }
    }

    /// Returns the name of the link's image in an archive; `None` for sheets, which have no files.
    pub fn file(&self, options: &PackOptions) -> Option<String> {
        let PackOptions::Images(options) = options else { return None };
        let ending = match options.format {
            Format::Png => "png",
            Format::Svg => "svg",
        };
        Some(format!("{}.{ending}", self.stem))
    }
}

/// Returns a text as a part of a file's name that every file system takes.
fn plain(text: &str) -> String {
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    text.chars().take(NAME_CHARS).map(|letter| if is_plain(&letter) { letter } else { '-' }).collect()
}

/// The labels on a sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    pub(super) columns: u16,
    pub(super) rows: u16,
}

/// The form of a pack.
#[derive(Clone, Debug)]
pub enum PackOptions {
    /// An archive of images.
    Images(QrOptions),
    /// Sheets of labels.
    Sheets(QrOptions, Grid),
}

impl PackOptions {
    /// Reads options from the decoded pairs of a query, as [`QrOptions::read`] does. The format may
    /// be `pdf` too. Packs have no logos.
    pub fn read<'a>(pairs: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>) -> Result<Self, QrError> {
        let mut codes: Vec<(Cow<'a, str>, Cow<'a, str>)> =
            DEFAULTS.iter().map(|&(name, value)| (name.into(), value.into())).collect();
        let (mut is_sheets, mut grid) = (false, Grid { columns: 3, rows: 7 });
        for (name, value) in pairs {
            match &*name {
                "format" => {
                    is_sheets = value.trim().eq_ignore_ascii_case("pdf");
                    if choice(value.trim(), FORMATS).is_some() {
                        codes.push((name, value));
                    } else if !is_sheets {
                        return Err(QrError::new("format", "svg, png or pdf"));
                    }
                }
                "columns" => grid.columns = count("columns", &value, COLUMNS_MAX)?,
                "rows" => grid.rows = count("rows", &value, ROWS_MAX)?,
                "logo" => {}
                _ => codes.push((name, value)),
            }
        }
        let options = QrOptions::read(codes.into_iter())?;
        Ok(if is_sheets { Self::Sheets(options, grid) } else { Self::Images(options) })
    }

    /// Returns the ending of the file's name.
    pub fn ending(&self) -> &'static str {
        match self {
            Self::Images(_) => "zip",
            Self::Sheets(..) => "pdf",
        }
    }

    /// Returns the media type, for the `Content-Type` header.
    pub fn content_type(&self) -> &'static str {
        match self {
            Self::Images(_) => "application/zip",
            Self::Sheets(..) => "application/pdf",
        }
    }
}

fn count(name: &str, value: &str, most: u16) -> Result<u16, QrError> {
    let expected = || QrError::new(name, &format!("a whole number from 1 to {most}"));
    whole_number(value.trim(), 1, most).ok_or_else(expected)
}

/// Makes a pack of these links; an archive has the table too. It is an error if the URL of a link
/// or its code does not fit, or if all of them take too much space.
pub fn pack(labels: &[Label], options: &PackOptions, table: &[u8]) -> Result<Vec<u8>, QrError> {
    let codes = match options {
        PackOptions::Images(codes) => codes,
        PackOptions::Sheets(codes, grid) => return sheets::write(labels, *grid, codes),
    };
    let mut images = Vec::with_capacity(labels.len());
    let mut bytes = 0;
    for label in labels {
        let image = render(&label.short_url, codes, None).map_err(|error| of(error, label))?;
        bytes += image.bytes.len();
        check_len(bytes)?;
        images.push((label.file(options).unwrap_or_default(), image.bytes));
    }
    let images = images.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
    let archive = archive([(TABLE, table)].into_iter().chain(images));
    Ok(archive.expect("memory takes all that is written, and each name has another number"))
}

fn archive<'a>(files: impl Iterator<Item = (&'a str, &'a [u8])>) -> ZipResult<Vec<u8>> {
    // Without the time of now.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(zip::DateTime::default());
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        archive.start_file(name, options)?;
        archive.write_all(bytes)?;
    }
    Ok(archive.finish()?.into_inner())
}

/// Names the link that an error is about.
pub(super) fn of(QrError { parameter, expected }: QrError, label: &Label) -> QrError {
    QrError { parameter, expected: format!("{expected} (for {})", label.short_url) }
}

/// Requires that a pack does not take too much space.
pub(super) fn check_len(bytes: usize) -> Result<(), QrError> {
    if bytes <= PACK_BYTES {
        return Ok(());
    }
    let expected = format!("a smaller number, because the codes have more than {} MiB", PACK_BYTES >> 20);
    Err(QrError::new("itemsPerPage", &expected))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, io::Read as _};

    use zip::ZipArchive;

    use super::*;

    fn read(query: &[(&'static str, &'static str)]) -> Result<PackOptions, QrError> {
        PackOptions::read(query.iter().map(|&(name, value)| (name.into(), value.into())))
    }

    fn labels(names: &[&str]) -> Vec<Label> {
        let label = |(number, name): (u64, &&str)| {
            Label::new(number, ("s.test:8080", *name), format!("https://s.test:8080/{number}"), None)
        };
        (1..).zip(names).map(label).collect()
    }

    #[test]
    fn an_archive_has_the_image_of_each_link_and_the_table() {
        for (format, beginning) in [("svg", &b"<svg "[..]), ("PNG", b"\x89PNG")] {
            let options = read(&[("format", format)]).unwrap();
            let labels = labels(&["a", "b"]);
            let bytes = pack(&labels, &options, b"the table").unwrap();
            assert_eq!(bytes, pack(&labels, &options, b"the table").unwrap());
            assert_eq!((options.content_type(), options.ending()), ("application/zip", "zip"));
            let mut archive = ZipArchive::new(Cursor::new(bytes)).unwrap();
            let mut file = |name: &str| {
                let mut bytes = Vec::new();
                archive.by_name(name).unwrap().read_to_end(&mut bytes).unwrap();
                bytes
            };
            assert_eq!(file(TABLE), b"the table");
            for label in &labels {
                let PackOptions::Images(codes) = &options else { panic!("{options:?}") };
                let image = file(&label.file(&options).unwrap());
                assert!(image.starts_with(beginning));
                assert_eq!(image, render(&label.short_url, codes, None).unwrap().bytes);
            }
            assert_eq!(archive.len(), 3);
        }
        let empty = pack(&[], &read(&[]).unwrap(), b"").unwrap();
        assert_eq!(ZipArchive::new(Cursor::new(empty)).unwrap().len(), 1);
    }

    #[test]
    fn no_name_of_a_file_leads_elsewhere_or_is_that_of_another_one() {
        let options = read(&[]).unwrap();
        let long = "x".repeat(1_000);
        let names = [
            "abc",
            "ABC",
            "a/b",
            "a-b",
            "../../etc/passwd",
            "..",
            "*",
            "con",
            "短い",
            "ー",
            "a\\b",
            "a:b",
            &long,
        ];
        let files: Vec<String> = labels(&names).iter().map(|label| label.file(&options).unwrap()).collect();
        assert_eq!(files[0], "0001-s.test-8080-abc.svg");
        assert_eq!(files[4], "0005-s.test-8080-..-..-etc-passwd.svg");
        let is_safe = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        for file in &files {
            assert!(file.len() < 200 && file.starts_with('0') && file.chars().all(is_safe), "{file}");
        }
        let folded: BTreeSet<String> = files.iter().map(|file| file.to_lowercase()).collect();
        assert_eq!(folded.len(), names.len());
    }

    #[test]
    fn options_are_those_of_codes_and_the_grid_of_sheets() {
        let PackOptions::Images(codes) = read(&[("logo", "on")]).unwrap() else { panic!("images") };
        assert_eq!((codes.format, codes.size, codes.margin, codes.logo), (Format::Svg, 1000, None, false));
        let pairs = [("format", " PDF"), ("columns", "2"), ("rows", "5"), ("color", "a00")];
        let PackOptions::Sheets(codes, grid) = read(&pairs).unwrap() else { panic!("sheets") };
        assert_eq!((grid, codes.color.to_string()), (Grid { columns: 2, rows: 5 }, "#aa0000".to_owned()));
        for (name, value) in [
            ("format", "zip"),
            ("columns", "0"),
            ("columns", "7"),
            ("rows", "11"),
            ("rows", "+3"),
            ("size", "49"),
            ("bgColor", "000"),
        ] {
            let error = read(&[(name, value)]).unwrap_err();
            assert_eq!(error.parameter, name, "{value}: {error}");
        }
    }

    #[test]
    fn a_link_that_fits_into_no_code_is_named_and_a_pack_is_bounded() {
        let mut long = labels(&["a"]);
        long[0].short_url = "x".repeat(3_000);
        for format in ["svg", "pdf"] {
            let error = pack(&long, &read(&[("format", format)]).unwrap(), b"").unwrap_err();
            assert!(error.parameter == "errorCorrection" && error.expected.contains("(for xxx"), "{error}");
        }
        assert!(check_len(PACK_BYTES).is_ok());
        assert_eq!(check_len(PACK_BYTES + 1).unwrap_err().parameter, "itemsPerPage");
    }
}
