//! Sheets of labels as PDF: A4 pages with a grid, whose cells have a QR code of shapes, the short
//! URL below it, and the title if Latin letters are enough for it.
//!
//! The text is in Courier, which every reader of PDF has, so that nothing is embedded. All its
//! letters have one width, and those that look alike in other fonts differ: the URL may be typed.

use std::io::Write as _;

use flate2::{Compression, write::ZlibEncoder};
use pdf_writer::{Content, Filter, Name, Pdf, Rect, Ref, Str};

use crate::{
    QUIET_MODULES, dark_runs, encode,
    options::{QrError, QrOptions, Rgb},
    pack::{Grid, Label, check_len, of},
};

// Lengths are in tenths of a point, of which an inch has 720.
/// The width and the height of A4.
const PAGE: [u16; 2] = [5_953, 8_419];
/// The margin of a page: a centimetre, which printers leave blank.
const BORDER: u16 = 284;
/// The space around the contents of a label: two millimetres.
const PADDING: u16 = 57;
const FONT_SIZE: u16 = 70;
const LINE_HEIGHT: u16 = 85;
/// The width of a letter: 0.6 of the font's size.
const LETTER: u16 = 42;
/// The maximum number of lines that a short URL takes. What does not fit is in the code alone.
const URL_LINES: usize = 3;

const FONT: Name<'static> = Name(b"F");
const CUT: &[u8] = b"...";

/// Writes as many pages as the labels need; an empty one without labels.
pub(super) fn write(labels: &[Label], grid: Grid, options: &QrOptions) -> Result<Vec<u8>, QrError> {
    let layout = Layout::new(labels, grid);
    let (catalog, tree, font) = (Ref::new(1), Ref::new(2), Ref::new(3));
    let mut next = Ref::new(4);
    let mut pdf = Pdf::new();
    let (mut pages, mut bytes) = (Vec::new(), 0);
    let sheets = labels.chunks(usize::from(grid.columns) * usize::from(grid.rows));
    for sheet in sheets.chain(labels.is_empty().then_some(labels)) {
        let drawn = deflated(&layout.draw(sheet, options)?);
        bytes += drawn.len();
        check_len(bytes)?;
        let (page, contents) = (next.bump(), next.bump());
        pdf.stream(contents, &drawn).filter(Filter::FlateDecode);
        let [width, height] = PAGE.map(points);
        let mut written = pdf.page(page);
        written.media_box(Rect::new(0.0, 0.0, width, height)).parent(tree).contents(contents);
        written.resources().fonts().pair(FONT, font);
        pages.push(page);
    }
    pdf.catalog(catalog).pages(tree);
    let count = i32::try_from(pages.len()).expect("a list has fewer links");
    pdf.pages(tree).kids(pages).count(count);
    pdf.type1_font(font).base_font(Name(b"Courier")).encoding_predefined(Name(b"WinAnsiEncoding"));
    Ok(pdf.finish())
}

fn points(tenths: u16) -> f32 {
    f32::from(tenths) / 10.0
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.expect("memory takes all that is written")
}

/// The measures that all labels of a pack have.
struct Layout {
    columns: u16,
    width: u16,
    height: u16,
    /// The side of a code with its quiet zone.
    side: u16,
    /// Letters on a line.
    letters: usize,
}

impl Layout {
    fn new(labels: &[Label], Grid { columns, rows }: Grid) -> Self {
        let [width, height] = [(PAGE[0] - 2 * BORDER) / columns, (PAGE[1] - 2 * BORDER) / rows];
        let inner = width - 2 * PADDING;
        let letters = usize::from(inner / LETTER);
        // All codes have the size of the smallest one.
        let most = labels.iter().map(|label| lines(label, letters).len()).max().unwrap_or(1);
        let text = LINE_HEIGHT * u16::try_from(most).expect("a label has at most four lines");
        let side = inner.min(height - 2 * PADDING - text);
        Self { columns, width, height, side, letters }
    }

    fn draw(&self, sheet: &[Label], options: &QrOptions) -> Result<Vec<u8>, QrError> {
        let mut content = Content::new();
        for (index, label) in (0_u16..).zip(sheet) {
            let left = BORDER + index % self.columns * self.width;
            let top = PAGE[1] - BORDER - index / self.columns * self.height - PADDING;
            let (x, y) = (left + (self.width - self.side) / 2, top - self.side);
            self.draw_code(&mut content, (x, y), label, options)?;
            content.begin_text().set_font(FONT, points(FONT_SIZE));
            for (number, line) in (1_u16..).zip(lines(label, self.letters)) {
                let width = LETTER * u16::try_from(line.len()).expect("a line fits into its label");
                let (x, y) = (left + (self.width - width) / 2, y - number * LINE_HEIGHT);
                content.set_text_matrix([1.0, 0.0, 0.0, 1.0, points(x), points(y)]).show(Str(&line));
            }
            content.end_text();
        }
        Ok(content.finish().into_vec())
    }

    /// Draws the code of a label in a square, whose lower left corner is given. Its unit is a
    /// module, and its rows begin at the bottom.
    fn draw_code(
        &self,
        content: &mut Content,
        (x, y): (u16, u16),
        label: &Label,
        options: &QrOptions,
    ) -> Result<(), QrError> {
        let code = encode(&label.short_url, options.error_correction).map_err(|error| of(error, label))?;
        let modules = u16::try_from(code.size).expect("the largest QR code has 177 modules on a side");
        let side = modules + 2 * QUIET_MODULES;
        let scale = points(self.side) / f32::from(side);
        content.save_state().transform([scale, 0.0, 0.0, scale, points(x), points(y)]);
        fill_with(content, options.background);
        content.rect(0.0, 0.0, f32::from(side), f32::from(side)).fill_nonzero();
        fill_with(content, options.color);
        for [column, row, len] in dark_runs(&code) {
            let [x, y] = [QUIET_MODULES + column, side - QUIET_MODULES - row - 1].map(f32::from);
            content.rect(x, y, f32::from(len), 1.0);
        }
        content.fill_nonzero().restore_state();
        Ok(())
    }
}

fn fill_with(content: &mut Content, Rgb(color): Rgb) {
    let [red, green, blue] = color.map(|channel| f32::from(channel) / 255.0);
    content.set_fill_rgb(red, green, blue);
}

/// Returns the lines of text of a label, in the encoding of the font.
fn lines(label: &Label, letters: usize) -> Vec<Vec<u8>> {
    let cut = |text: &[u8], room: usize| {
        if text.len() <= room { text.to_vec() } else { [&text[..room - CUT.len()], CUT].concat() }
    };
    let url = cut(label.short_url.as_bytes(), URL_LINES * letters);
    let title = label.title.as_deref().and_then(latin).map(|title| cut(&title, letters));
    url.chunks(letters).map(<[u8]>::to_vec).chain(title).collect()
}

/// Returns a title in Windows-1252, which has Latin letters only; `None` if it has others.
fn latin(title: &str) -> Option<Vec<u8>> {
    let byte = |letter| match letter {
        ' '..='~' | '\u{a0}'..='\u{ff}' => u8::try_from(letter).ok(),
        '€' => Some(0x80),
        '…' => Some(0x85),
        '‘' => Some(0x91),
        '’' => Some(0x92),
        '“' => Some(0x93),
        '”' => Some(0x94),
        '–' => Some(0x96),
        '—' => Some(0x97),
        _ => None,
    };
    title.chars().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::ZlibDecoder;

    use super::*;
    use crate::pack::{PackOptions, pack};

    fn make(labels: &[Label], pairs: &[(&'static str, &'static str)]) -> Vec<u8> {
        let format = [("format", "pdf")];
        let pairs = format.iter().chain(pairs);
        let options = PackOptions::read(pairs.map(|&(name, value)| (name.into(), value.into()))).unwrap();
        assert_eq!(options.content_type(), "application/pdf");
        pack(labels, &options, b"").unwrap()
    }

    fn labels(count: u64, title: Option<&str>) -> Vec<Label> {
        let label = |number| {
            let url = format!("https://s.test/{number}");
            Label::new(number, ("s.test", "x"), url, title.map(str::to_owned))
        };
        (1..=count).map(label).collect()
    }

    /// Returns the contents of the pages, inflated.
    fn contents(pdf: &[u8]) -> Vec<String> {
        let find = |from: usize, word: &[u8]| {
            pdf[from..].windows(word.len()).position(|part| part == word).map(|at| from + at)
        };
        let (mut pages, mut from) = (Vec::new(), 0);
        while let Some(start) = find(from, b"stream\n") {
            let end = find(start, b"endstream").unwrap();
            let mut page = String::new();
            ZlibDecoder::new(&pdf[start + 7..end]).read_to_string(&mut page).unwrap();
            pages.push(page);
            from = end + b"endstream\n".len();
        }
        pages
    }

    /// A code of a page: its scale, the position of its corner, and its dark modules.
    struct Drawn {
        corner: [f32; 2],
        scale: f32,
        side: f32,
        runs: Vec<[f32; 4]>,
    }

    impl Drawn {
        /// Paints the code with eight pixels for each module, and reads it.
        fn scan(&self) -> String {
            const ZOOM: f32 = 8.0;
            let rows = (1..).take_while(|rows| f32::from(*rows) <= self.side).last().unwrap_or(0_u16);
            let pixels = usize::from(rows) * 8;
            let mut photo = rqrr::PreparedImage::prepare_from_greyscale(pixels, pixels, |x, y| {
                let at = |pixel: usize| (f32::from(u16::try_from(pixel).unwrap()) + 0.5) / ZOOM;
                let (x, y) = (at(x), self.side - at(y));
                let covers = |[left, low, width, height]: &[f32; 4]| {
                    (*left..left + width).contains(&x) && (*low..low + height).contains(&y)
                };
                if self.runs.iter().any(covers) { 0 } else { 255 }
            });
            photo.detect_grids()[0].decode().unwrap().1
        }
    }

    fn codes(page: &str) -> Vec<Drawn> {
        let mut codes: Vec<Drawn> = Vec::new();
        let mut numbers: Vec<f32> = Vec::new();
        for word in page.split_whitespace() {
            if let Ok(number) = word.parse() {
                numbers.push(number);
                continue;
            }
            let operands = std::mem::take(&mut numbers);
            match (word, &operands[..]) {
                ("cm", &[scale, .., x, y]) => {
                    codes.push(Drawn { corner: [x, y], scale, side: 0.0, runs: Vec::new() });
                }
                ("re", &[x, y, width, height]) => {
                    let code = codes.last_mut().unwrap();
                    // The first one is the background.
                    if code.side == 0.0 {
                        code.side = width;
                    } else {
                        code.runs.push([x, y, width, height]);
                    }
                }
                _ => {}
            }
        }
        codes
    }

    #[test]
    fn every_code_is_on_its_page_within_its_label_and_is_read_back() {
        let (width, height) = (points(PAGE[0]), points(PAGE[1]));
        for (count, pairs, per_page) in [
            (23, &[][..], vec![21, 2]),
            (60, &[("columns", "6"), ("rows", "10")], vec![60]),
            (2, &[("columns", "1"), ("rows", "1"), ("errorCorrection", "h")], vec![1, 1]),
            (0, &[], vec![0]),
        ] {
            let labels = labels(count, Some("A title"));
            let pdf = make(&labels, pairs);
            assert!(pdf.starts_with(b"%PDF-1.7\n") && pdf == make(&labels, pairs));
            let pages: Vec<Vec<Drawn>> = contents(&pdf).iter().map(|page| codes(page)).collect();
            assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), per_page);
            for (code, label) in pages.iter().flatten().zip(&labels) {
                assert_eq!(code.scan(), label.short_url);
                let [x, y] = code.corner;
                let side = code.side * code.scale;
                assert!(x > 28.0 && y > 28.0 && x + side < width - 28.0 && y + side < height - 28.0);
                assert!(side > 28.0, "a centimetre: {side}");
            }
        }
    }

    #[test]
    fn the_url_is_below_the_code_and_a_title_if_the_font_has_its_letters() {
        for (title, expected) in [
            (None, None),
            (Some("Summer (sale)"), Some("(Summer (sale)) Tj")),
            (Some("短い"), None),
            // Not ASCII, and so in hexadecimal digits.
            (Some("Grüße – 5 €"), Some("<4772fcdf65209620352080> Tj")),
        ] {
            let page = contents(&make(&labels(1, title), &[])).remove(0).replace('\n', " ");
            assert!(page.contains("(https://s.test/1) Tj"), "{page}");
            assert_eq!(page.matches("Tj").count(), 1 + usize::from(expected.is_some()), "{page}");
            let page = page.to_lowercase();
            assert!(expected.is_none_or(|text| page.contains(&text.to_lowercase())), "{page}");
        }
    }

    #[test]
    fn a_long_url_takes_three_lines_and_a_long_title_one() {
        let label = |url: usize, title: usize| {
            Label::new(1, ("s.test", "x"), "u".repeat(url), Some("t".repeat(title)))
        };
        let len = |label: &Label| lines(label, 10).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(len(&label(10, 10)), [10, 10]);
        assert_eq!(len(&label(30, 11)), [10, 10, 10, 10]);
        assert_eq!(len(&label(31, 1)), [10, 10, 10, 1]);
        assert!(lines(&label(31, 99), 10)[2..].iter().all(|line| line.ends_with(CUT)));
        assert_eq!(lines(&label(30, 10), 10)[2], b"uuuuuuuuuu");
    }
}
