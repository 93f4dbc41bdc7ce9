//! QR codes of short links, as images, and in packs for print ([`pack()`]).
//!
//! Query parameters and dimensions are those of older versions of Shlink, and so are the defaults,
//! which have no margin; `margin=auto` is the quiet zone that readers need. An image is
//! `size + 2 * margin` pixels square. Each module is a whole number of pixels, and leftover pixels
//! are split evenly around the modules. Unlike in Shlink, an invalid value is refused and not
//! replaced by the default.

mod logo;
mod options;
mod pack;
mod png;
mod sheets;
mod svg;

use fast_qr::{ECL, QRBuilder, QRCode};

pub use logo::Logo;
use options::{Format, QUIET_MODULES};
pub use options::{QrError, QrOptions, Rgb};
pub use pack::{Grid, Label, PackOptions, pack};

/// The format required for a logo without pixels.
const PNG_LOGO: &str = "svg: the logo is not a PNG, or too large for one";
/// The error correction required for a text that no code has room for.
const TOO_LONG: &str = "a lower one, no logo, or the text to be shorter";

/// An image of a QR code, encoded as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The bytes of the file.
    pub bytes: Vec<u8>,
    /// The media type, for the `Content-Type` header.
    pub content_type: &'static str,
}

/// Renders a text as a QR code. The text is best an ASCII URL, because readers interpret other
/// bytes differently. The logo is left out unless the options ask for it. It is an error if the
/// text or the code does not fit, or the logo cannot be part of a PNG.
pub fn render(text: &str, options: &QrOptions, logo: Option<&Logo>) -> Result<Image, QrError> {
    let logo = logo.filter(|_| options.logo);
    if options.format == Format::Png && logo.is_some_and(|logo| logo.pixels.is_none()) {
        return Err(QrError::new("format", PNG_LOGO));
    }
    let level = if logo.is_some() { ECL::H } else { options.error_correction };
    let drawing = Drawing::new(encode(text, level)?, options)?;
    Ok(match options.format {
        Format::Png => Image { bytes: png::write(&drawing, logo), content_type: "image/png" },
        Format::Svg => {
            Image { bytes: svg::write(&drawing, logo).into_bytes(), content_type: "image/svg+xml" }
        }
    })
}

fn encode(text: &str, level: ECL) -> Result<QRCode, QrError> {
    QRBuilder::new(text).ecl(level).build().map_err(|_| QrError::new("errorCorrection", TOO_LONG))
}

/// Returns the runs of dark modules within a row, from the top and from the left: the column and
/// the row of the first module, and how many there are.
fn dark_runs(code: &QRCode) -> Vec<[u16; 3]> {
    let module = |at: usize| u16::try_from(at).expect("the largest QR code has 177 modules on a side");
    let mut runs = Vec::new();
    for row in 0..code.size {
        let modules: Vec<bool> = code[row].iter().map(|module| module.value()).collect();
        let mut column = 0;
        for run in modules.chunk_by(|left, right| left == right) {
            if run[0] {
                runs.push([module(column), module(row), module(run.len())]);
            }
            column += run.len();
        }
    }
    runs
}

/// A QR code with the position of its modules in the image.
struct Drawing<'a> {
    code: QRCode,
    options: &'a QrOptions,
    modules: u16,
    /// Pixels on each side of a module.
    scale: u16,
    /// Pixels above the first row of modules, and left of the first column.
    offset: u16,
    side: u16,
}

impl<'a> Drawing<'a> {
    fn new(code: QRCode, options: &'a QrOptions) -> Result<Self, QrError> {
        let modules = u16::try_from(code.size).expect("the largest QR code has 177 modules on a side");
        let scale = options.size / modules;
        if scale == 0 {
            // A longer text and a higher error correction need more modules.
            let expected = format!("at least {modules} pixels: this code has as many modules on a side");
            return Err(QrError::new("size", &expected));
        }
        let margin = options.margin.unwrap_or(QUIET_MODULES * scale);
        let side = options.size + 2 * margin;
        // An odd pixel goes to the right and to the bottom.
        let offset = (side - scale * modules) / 2;
        Ok(Self { code, options, modules, scale, offset, side })
    }

    /// Returns the rows of modules from the top; `true` is a dark module.
    fn rows(&self) -> impl Iterator<Item = impl Iterator<Item = bool>> {
        (0..usize::from(self.modules)).map(|row| self.code[row].iter().map(|module| module.value()))
    }
}

#[cfg(test)]
mod tests {
    use std::{borrow::Cow, io::Cursor};

    use ::png::{BitDepth, ColorType, Decoder, Transformations};
    use proptest::prelude::*;

    use super::*;

    /// 20 bytes, which fit into the second smallest code with the lowest error correction.
    const LINK: &str = "https://s.test/aB3-x";

    type Rgb = [u8; 3];

    #[derive(PartialEq, Eq)]
    struct Pixels {
        side: usize,
        colors: Vec<Rgb>,
    }

    impl Pixels {
        /// Decodes a PNG, and returns how its pixels are stored too.
        fn decode(image: &Image) -> (Self, (ColorType, BitDepth)) {
            assert_eq!(image.content_type, "image/png");
            let mut decoder = Decoder::new(Cursor::new(&image.bytes));
            decoder.set_transformations(Transformations::EXPAND);
            let mut reader = decoder.read_info().unwrap();
            let info = reader.info();
            assert_eq!(info.width, info.height);
            let (side, kind) = (usize::try_from(info.width).unwrap(), (info.color_type, info.bit_depth));
            let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
            reader.next_frame(&mut bytes).unwrap();
            let colors = bytes.chunks_exact(3).map(|rgb| rgb.try_into().unwrap()).collect();
            (Self { side, colors }, kind)
        }

        fn of_png(image: &Image) -> Self {
            let (pixels, kind) = Self::decode(image);
            assert_eq!(kind, (ColorType::Indexed, BitDepth::One));
            pixels
        }

        fn of_svg(image: &Image) -> Self {
            assert_eq!(image.content_type, "image/svg+xml");
            let document = roxmltree::Document::parse(str::from_utf8(&image.bytes).unwrap()).unwrap();
            let root = document.root_element();
            let side: usize = root.attribute("width").unwrap().parse().unwrap();
            assert_eq!(root.attribute("height"), root.attribute("width"));
            assert_eq!(root.attribute("viewBox"), Some(format!("0 0 {side} {side}").as_str()));
            assert_eq!(root.attribute("shape-rendering"), Some("crispEdges"));
            let [rect, path] = root.children().collect::<Vec<_>>()[..] else { panic!("two shapes") };
            assert_eq!((rect.tag_name().name(), path.tag_name().name()), ("rect", "path"));
            let mut colors = vec![color(rect.attribute("fill").unwrap()); side * side];
            let dark = color(path.attribute("fill").unwrap());
            let [left, top, scale] = numbers(path.attribute("transform").unwrap())[..] else { panic!("3") };
            for run in path.attribute("d").unwrap().split_terminator('z') {
                let [x, y, width, 1, back] = numbers(run)[..] else { panic!("{run}") };
                assert_eq!(x, back, "{run}");
                for row in top + y * scale..top + (y + 1) * scale {
                    let start = row * side + left + x * scale;
                    colors[start..start + width * scale].fill(dark);
                }
            }
            Self { side, colors }
        }

        /// Scans the image as a camera would on a white page, and returns the text.
        fn scan(&self) -> String {
            self.scan_on(255).unwrap()
        }

        /// Scans the image on a page of this grey. Returns `None` if no code is found.
        fn scan_on(&self, page: u8) -> Option<String> {
            const PAGE: usize = 40;
            // The reader has difficulty with modules of one pixel, and overflows on large images.
            let zoom = (1000 / (self.side + 2 * PAGE)).max(1);
            let side = zoom * (self.side + 2 * PAGE);
            let on_picture = |at: usize| (at / zoom).checked_sub(PAGE).filter(|at| *at < self.side);
            let mut photo = rqrr::PreparedImage::prepare_from_greyscale(side, side, |x, y| {
                let Some((x, y)) = on_picture(x).zip(on_picture(y)) else { return page };
                let sum: u16 = self.colors[y * self.side + x].iter().copied().map(u16::from).sum();
                u8::try_from(sum / 3).unwrap()
            });
            let codes = photo.detect_grids();
            codes.first().and_then(|code| code.decode().ok()).map(|(_, text)| text)
        }

        /// Returns the first and the last column and row with a dark pixel.
        fn bounds(&self, dark: Rgb) -> [usize; 4] {
            let dark = || (0..self.colors.len()).filter(|at| self.colors[*at] == dark);
            let (columns, rows) = (|| dark().map(|at| at % self.side), || dark().map(|at| at / self.side));
            [columns().min(), columns().max(), rows().min(), rows().max()].map(Option::unwrap)
        }
    }

    fn color(text: &str) -> Rgb {
        let digits = text.strip_prefix('#').unwrap();
        [0, 2, 4].map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
    }

    fn numbers(text: &str) -> Vec<usize> {
        let words = text.split(|one: char| !one.is_ascii_digit()).filter(|word| !word.is_empty());
        words.map(|word| word.parse().unwrap()).collect()
    }

    fn read(query: &str) -> Result<QrOptions, QrError> {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        QrOptions::read(pairs.map(|(name, value)| (name.into(), value.into())))
    }

    fn draw(text: &str, query: &str) -> Result<Image, QrError> {
        render(text, &read(query)?, None)
    }

    #[test]
    fn what_is_drawn_is_read_back_and_both_formats_show_the_same_pixels() {
        let long = format!("https://s.test/{}", "%E7%9F%AD".repeat(60));
        for text in [LINK, "HTTPS://S.TEST/123", "8", "", &long] {
            for (query, side) in [
                ("", 300),
                ("errorCorrection=m&size=150&margin=13", 176),
                ("errorCorrection=Q&size=1000&margin=200", 1400),
                ("errorCorrection=h&size=333&margin=1&color=a00000&bgColor=ffe", 335),
            ] {
                let png = Pixels::of_png(&draw(text, query).unwrap());
                let svg = Pixels::of_svg(&draw(text, &format!("{query}&format=svg")).unwrap());
                assert_eq!((png.side, svg.side), (side, side), "{query}");
                assert_eq!(png.scan(), text, "{query}");
                assert!(png == svg, "{text} {query}");
            }
        }
    }

    #[test]
    fn with_the_quiet_zone_a_code_is_read_on_a_dark_page() {
        for (text, query) in [LINK, "HTTPS://S.TEST/123", "https://s.test/a-longer-slug-of-a-campaign"]
            .into_iter()
            .flat_map(|text| {
                ["size=300", "size=50", "size=999&errorCorrection=h", "size=240&color=a00000"]
                    .map(|query| (text, query))
            })
        {
            let quiet = Pixels::of_png(&draw(text, &format!("{query}&margin=auto")).unwrap());
            assert_eq!(quiet.scan_on(0).as_deref(), Some(text), "{query}");
            let svg = Pixels::of_svg(&draw(text, &format!("{query}&margin=auto&format=svg")).unwrap());
            assert!(quiet == svg, "{text} {query}");
        }
        assert_eq!(Pixels::of_png(&draw(LINK, "").unwrap()).scan_on(0), None, "without it");
        // 25 modules of 12 pixels, and 4 more on each side.
        assert_eq!(Pixels::of_png(&draw(LINK, "size=300&margin=auto").unwrap()).side, 300 + 2 * 4 * 12);
    }

    #[test]
    fn modules_are_whole_pixels_and_the_rest_lies_around_them() {
        // 25 modules on a side, and 29 with the highest error correction.
        for (query, first, last, side) in [
            ("", 0, 299, 300),
            ("size=50", 0, 49, 50),
            ("size=51&color=abc", 0, 49, 51),
            ("size=74", 12, 61, 74),
            ("size=74&margin=200", 212, 261, 474),
            ("size=75&margin=1", 1, 75, 77),
            ("size=319&errorCorrection=H", 0, 318, 319),
            ("size=318&errorCorrection=h", 14, 303, 318),
        ] {
            let picture = Pixels::of_png(&draw(LINK, query).unwrap());
            let dark = read(query).unwrap().color.0;
            assert_eq!((picture.side, picture.bounds(dark)), (side, [first, last, first, last]), "{query}");
        }
    }

    #[test]
    fn a_picture_has_the_two_colours_that_were_asked_for() {
        for (query, color, background) in [
            ("", [0; 3], [255; 3]),
            ("color=fff&bgColor=000000", [255; 3], [0; 3]),
            ("color=#123&bgColor=fedcba", [0x11, 0x22, 0x33], [0xfe, 0xdc, 0xba]),
        ] {
            let mut colors = Pixels::of_png(&draw(LINK, &format!("{query}&margin=1")).unwrap()).colors;
            assert_eq!(colors[0], background, "{query}");
            colors.sort_unstable();
            colors.dedup();
            assert!(colors.len() == 2 && colors.contains(&color), "{query}: {colors:?}");
        }
    }

    #[test]
    fn files_are_small() {
        for (query, most) in [("", 450), ("format=svg", 2_700), ("size=1000&margin=200", 1_350)] {
            let bytes = draw(LINK, query).unwrap().bytes.len();
            assert!(bytes <= most, "{query}: {bytes} bytes");
        }
    }

    #[test]
    fn a_code_needs_as_many_pixels_as_modules_and_a_text_that_fits() {
        let of = |bytes: usize, query: &str| {
            draw(&"x".repeat(bytes), query).map(|image| Pixels::of_png(&image).scan().len())
        };
        // The capacities in bytes of the eighth, the ninth and the largest code (ISO/IEC 18004,
        // table 7).
        assert_eq!(of(192, "size=50"), Ok(192));
        assert_eq!(
            of(193, "size=50"),
            Err(QrError::new("size", "at least 53 pixels: this code has as many modules on a side"))
        );
        assert_eq!(of(193, "size=53"), Ok(193));
        for (level, most) in [("l", 2953), ("M", 2331), ("q", 1663), ("H", 1273)] {
            let query = format!("size=708&errorCorrection={level}");
            assert_eq!(of(most, &query), Ok(most), "{level}");
            assert_eq!(of(most + 1, &query), Err(QrError::new("errorCorrection", TOO_LONG)), "{level}");
        }
    }

    fn red_logo() -> Logo {
        let mut file = Vec::new();
        let mut encoder = ::png::Encoder::new(&mut file, 40, 20);
        encoder.set_color(ColorType::Rgba);
        encoder.set_depth(BitDepth::Eight);
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(&[255, 0, 0, 255].repeat(800)).unwrap();
        writer.finish().unwrap();
        Logo::new("data:image/png;base64,AA==".to_owned(), Some(&file))
    }

    #[test]
    fn a_code_with_a_logo_is_still_read() {
        let logo = red_logo();
        for text in [LINK, &format!("https://s.test/{}", "%E7%9F%AD".repeat(40))] {
            for size in [200, 333, 1000] {
                let with = |query: &str| {
                    let options = read(&format!("size={size}&margin=8&logo=on{query}")).unwrap();
                    render(text, &options, Some(&logo)).unwrap()
                };
                let image = with("");
                let (Pixels { side, colors }, _) = Pixels::decode(&image);
                assert_eq!(colors[side * (side / 2) + side / 2], [255, 0, 0], "{size}");
                let red = colors.iter().filter(|color| **color == [255, 0, 0]).count();
                assert!(red * 200 > side * side, "{size}: {red} pixels");
                assert_eq!(Pixels { side, colors }.scan(), text, "{size}");
                let svg = String::from_utf8(with("&format=svg").bytes).unwrap();
                assert!(
                    roxmltree::Document::parse(&svg).is_ok() && svg.contains("<image href=\"data:"),
                    "{svg}"
                );
            }
        }
    }

    #[test]
    fn a_logo_is_drawn_only_if_it_is_asked_for_and_known() {
        let (logo, plain) = (red_logo(), draw(LINK, "").unwrap());
        for query in ["", "logo=off", "logo=disable"] {
            assert_eq!(render(LINK, &read(query).unwrap(), Some(&logo)).unwrap(), plain, "{query}");
        }
        assert_eq!(draw(LINK, "logo=on").unwrap(), plain, "there is none");
        assert_eq!(draw(LINK, "logo=x"), Err(QrError::new("logo", "on or off")));
        let vector = Logo::new("data:image/svg+xml;base64,AA==".to_owned(), None);
        let asked = |query: &str| render(LINK, &read(query).unwrap(), Some(&vector)).map(drop);
        assert_eq!(asked("logo=on"), Err(QrError::new("format", PNG_LOGO)));
        assert_eq!(asked("logo=on&format=svg"), Ok(()));
        assert!(Logo::new(String::new(), Some(b"GIF89a")).pixels.is_none());
    }

    proptest! {
        #[test]
        fn no_query_and_no_text_leads_to_a_panic(
            text in any::<String>(),
            name in "format|size|margin|errorCorrection|color|bgColor|logo",
            value in "[#+-]?[0-9a-fA-F]{0,8}|[lmqhLMQH]|png|svg|\\PC*",
        ) {
            let pairs = [(Cow::Owned(name), Cow::Owned(value))];
            if let Ok(options) = QrOptions::read(pairs.into_iter()) {
                prop_assert!(!matches!(render(&text, &options, None), Ok(image) if image.bytes.is_empty()));
            }
        }
    }
}
