//! The supported sources of links, and a streaming reader for each, whatever the size of the input.

use std::{
    fmt,
    io::{self, BufRead, BufReader, Read},
    ops::ControlFlow,
    str::FromStr,
};

use jiff::tz::TimeZone;
use links::Invalid;
use serde_json::Value;

use super::{
    bitly, csv, dub,
    encoding::decoded,
    header::{self, Mark},
    hosted,
    item::Item,
    json::{Shape, each_item},
    kutt, rebrandly,
    records::RecordError,
    row::{LAYOUT, Row, RowError},
    shlink, shortio,
    table::{self, Layout, clip},
    yourls,
};

const BUFFER_BYTES: usize = 64 * 1024;

codes::named_values! {
    /// A system that links are imported from.
    pub enum Source {
        /// Shlink: API responses, or the table of its web client.
        Shlink => "shlink",
        /// Kutt: API responses.
        Kutt => "kutt",
        /// YOURLS: API responses, or a table of its plugins or its database.
        Yourls => "yourls",
        /// Bitly: API responses, or the table of its links page.
        Bitly => "bitly",
        /// Rebrandly: API responses, or a table.
        Rebrandly => "rebrandly",
        /// Short.io: API responses, or the table that it exports.
        Shortio => "shortio",
        /// Dub: API responses, or the table that it exports.
        Dub => "dub",
        /// Any system: a table, or one JSON object per line.
        Csv => "csv",
        /// This project: an export with header and trailer.
        Shortmint => "shortmint",
    }
}

impl FromStr for Source {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::parse(text).ok_or_else(|| format!("expected one of {}", Self::NAMES.join(", ")).into())
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A function that converts an item to a row.
type Reading = fn(&Item) -> Result<Row, RowError>;

impl Source {
    fn objects(self) -> (Shape, Reading) {
        match self {
            Self::Shlink => (shlink::SHAPE, shlink::of_json),
            Self::Kutt => (kutt::SHAPE, kutt::of_json),
            Self::Yourls => (yourls::SHAPE, yourls::of_json),
            Self::Bitly => (bitly::SHAPE, |item| hosted::of_json(item, &bitly::LAYOUT)),
            Self::Rebrandly => (rebrandly::SHAPE, |item| hosted::of_json(item, &rebrandly::LAYOUT)),
            Self::Shortio => (shortio::SHAPE, |item| hosted::of_json(item, &shortio::LAYOUT)),
            Self::Dub => (dub::SHAPE, |item| hosted::of_json(item, &dub::LAYOUT)),
            Self::Csv | Self::Shortmint => (csv::SHAPE, csv::of_json),
        }
    }

    fn table(self) -> Option<(Layout, Reading)> {
        match self {
            Self::Shlink => Some((shlink::LAYOUT, shlink::of_table)),
            Self::Kutt | Self::Shortmint => None,
            Self::Yourls => Some((yourls::LAYOUT, yourls::of_table)),
            Self::Bitly => Some((bitly::LAYOUT, |item| hosted::of_table(item, &bitly::LAYOUT))),
            Self::Rebrandly => Some((rebrandly::LAYOUT, |item| hosted::of_table(item, &rebrandly::LAYOUT))),
            Self::Shortio => Some((shortio::LAYOUT, |item| hosted::of_table(item, &shortio::LAYOUT))),
            Self::Dub => Some((dub::LAYOUT, |item| hosted::of_table(item, &dub::LAYOUT))),
            Self::Csv => Some((LAYOUT, csv::of_table)),
        }
    }
}

/// Passes the links of an input to `take` until that breaks. Never much more than one link is held.
/// The first byte that is not white space decides between JSON and a table. After an error the
/// next link follows, unless [`RowError::is_final`]. A link with several names is several links.
///
/// Times without an offset are in `zone`, except where the other system always writes UTC.
pub fn each_row(
    source: Source,
    reader: impl Read,
    zone: &TimeZone,
    mut take: impl FnMut(Result<Row, RowError>) -> ControlFlow<()>,
) {
    // These two write UTC, whatever zone their server is in.
    let writes_utc = matches!(source, Source::Kutt | Source::Yourls);
    let zone = if writes_utc { TimeZone::UTC } else { zone.clone() };
    let broken = |problem: &str| Err(RowError::broken(0, problem));
    let read = match (decoded(reader).and_then(begin), source.table()) {
        (Err(cause), _) => Err(RowError::broken(0, RecordError::from(cause))),
        (Ok((None, _)), _) => broken("the input is empty"),
        (Ok((Some(b'{' | b'['), input)), _) => {
            Documents { source, zone, framing: Framing::Before, count: 0, has_listed: false }
                .read(input, &mut take)
        }
        (Ok((Some(_), input)), Some((layout, reading))) => table::each_item(input, layout, &zone, |item| {
            pass(item.and_then(|item| reading(&item)), &mut take)
        }),
        (Ok((Some(_), _)), None) => broken("the input is not JSON"),
    };
    if let Err(error) = read {
        // It is the last one, so it does not matter whether more would be taken.
        let _ = take(Err(error));
    }
}

/// Passes a link, and once more under each of its other names, without its visits. Returns how many
/// other names it has.
fn pass(
    row: Result<Row, RowError>,
    take: &mut impl FnMut(Result<Row, RowError>) -> ControlFlow<()>,
) -> ControlFlow<(), u64> {
    let mut row = match row {
        Ok(row) => row,
        Err(error) => {
            take(Err(error))?;
            return ControlFlow::Continue(0);
        }
    };
    let names = std::mem::take(&mut row.other_names).into_iter().zip(row.place + 1..);
    let again = |((domain, code), place)| {
        let code = Some(code);
        Row { place, code, domain, visits: None, uses: None, ..row.clone() }
    };
    let others: Vec<Row> = names.map(again).collect();
    take(Ok(row))?;
    let mut count = 0;
    for other in others {
        count += 1;
        take(Ok(other))?;
    }
    ControlFlow::Continue(count)
}

struct Documents {
    source: Source,
    zone: TimeZone,
    framing: Framing,
    /// The number of links so far, unreadable ones included.
    count: u64,
    /// Whether an error has listed the known fields.
    has_listed: bool,
}

/// The position in an export of our own format, which has a header and a trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Before,
    Inside,
    After,
}

impl Documents {
    fn read(
        mut self,
        input: impl Read,
        take: &mut impl FnMut(Result<Row, RowError>) -> ControlFlow<()>,
    ) -> Result<(), RowError> {
        let (shape, reading) = self.source.objects();
        let mut is_over = false;
        let read = each_item(input, shape, |found| {
            let row = match found {
                Some(value) => self.row(value, reading).transpose(),
                None => Some(Err(RowError::document(self.count, &shape.path.join(".")))),
            };
            let is_final = matches!(&row, Some(Err(error)) if error.is_final);
            let passed = row.map_or(ControlFlow::Continue(0), |row| pass(row, take));
            self.count += passed.continue_value().unwrap_or_default();
            is_over = passed.is_break() || is_final;
            if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match read {
            Err(error) if error.is_io() => {
                Err(RowError::broken(self.count, RecordError::from(io::Error::from(error))))
            }
            Err(error) => Err(RowError::broken(self.count, error)),
            Ok(_) if !is_over && self.is_framed() && self.framing == Framing::Inside => {
                let problem = "the export ends without its last line: it may have been cut off";
                Err(RowError::broken(self.count, problem))
            }
            Ok(_) => Ok(()),
        }
    }

    /// Converts an item. Returns `None` for a header or trailer.
    fn row(&mut self, value: Value, reading: Reading) -> Result<Option<Row>, RowError> {
        let place = self.count + 1;
        let Value::Object(fields) = value else {
            self.count = place;
            return Err(RowError::item(place, "expected a JSON object"));
        };
        let item = Item { place, fields, zone: self.zone.clone() };
        let is_ours = matches!(self.source, Source::Csv | Source::Shortmint);
        if let Some(mark) = if is_ours { header::mark(&item)? } else { None } {
            self.pass(mark)?;
            return Ok(None);
        }
        let problem = match self.framing {
            Framing::Before if self.is_framed() => {
                "the first line of an export is missing; lines without it are read with --from csv"
            }
            Framing::After if self.is_framed() => "more follows after the last line of the export",
            _ => {
                self.count = place;
                let unknown = if is_ours { csv::unknown_field(&item) } else { None };
                let Some(name) = unknown.filter(|_| !std::mem::replace(&mut self.has_listed, true)) else {
                    return reading(&item).map(Some);
                };
                let hint = source_hint(item.fields.keys().map(String::as_str));
                let (name, known) = (clip(name), LAYOUT.known());
                let problem = format!("{name:?} is no known field{hint}; known are {known}");
                return Err(RowError::item(place, problem));
            }
        };
        Err(RowError::broken(self.count, problem))
    }

    fn pass(&mut self, mark: Mark) -> Result<(), RowError> {
        match mark {
            Mark::Begin => self.framing = Framing::Inside,
            Mark::End(told) if told != self.count && self.is_framed() => {
                let problem = format!("the last line says that there are {told} links");
                return Err(RowError::broken(self.count, problem));
            }
            Mark::End(_) => self.framing = Framing::After,
        }
        Ok(())
    }

    /// Returns whether an export needs its header and its trailer.
    fn is_framed(&self) -> bool {
        self.source == Source::Shortmint
    }
}

/// Returns a hint to the system whose columns these are, if it has more of them than our own
/// formats; else an empty text.
pub(super) fn source_hint<'a>(names: impl Iterator<Item = &'a str> + Clone) -> String {
    let known = |layout: &Layout| names.clone().filter(|name| layout.column(name).is_some()).count();
    let others = Source::ALL.into_iter().filter(|source| !matches!(source, Source::Csv | Source::Shortmint));
    let others = others.filter_map(|source| Some((known(&source.table()?.0), source)));
    match others.max_by_key(|(count, _)| *count) {
        Some((count, source)) if count > known(&LAYOUT) => {
            format!(" (is this a file of {source}? Use --from {source})")
        }
        _ => String::new(),
    }
}

/// Returns the first byte that is not white space. What is before it in its buffer stays: tabs may
/// separate empty cells, and line breaks are counted.
pub(super) fn begin<R: Read>(reader: R) -> io::Result<(Option<u8>, BufReader<R>)> {
    let mut input = BufReader::with_capacity(BUFFER_BYTES, reader);
    loop {
        let bytes = match input.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let first = bytes.iter().position(|byte| !byte.is_ascii_whitespace());
        let is_end = bytes.is_empty();
        let Some(first) = first else {
            let blank = bytes.len();
            input.consume(blank);
            if is_end {
                return Ok((None, input));
            }
            continue;
        };
        return Ok((Some(bytes[first]), input));
    }
}

/// Reads a whole input into its links and its errors.
#[cfg(test)]
pub(super) fn read(source: Source, input: &str) -> (Vec<Row>, Vec<String>) {
    let (mut links, mut errors) = (Vec::new(), Vec::new());
    each_row(source, input.as_bytes(), &TimeZone::UTC, |row| {
        match row {
            Ok(row) => links.push(row),
            Err(error) => errors.push(error.to_string()),
        }
        if links.len() + errors.len() < 1_000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    (links, errors)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn sources_are_named_as_they_are_shown() {
        for source in Source::ALL {
            assert_eq!(source.to_string().parse(), Ok(source));
        }
        let error = "Shlink".parse::<Source>().unwrap_err();
        let expected = "expected one of shlink, kutt, yourls, bitly, rebrandly, shortio, dub, csv, shortmint";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn the_first_byte_tells_the_form_after_a_byte_order_mark_and_white_space() {
        let json = r#"{"longUrl":"https://example.com/ü"}"#;
        let table = "longUrl\nhttps://example.com/ü\n";
        for form in [json, table] {
            for before in ["", "\u{feff}", " \r\n", "\u{feff}\n"] {
                let (links, errors) = read(Source::Csv, &format!("{before}{form}"));
                assert!(errors.is_empty(), "{errors:?}");
                assert_eq!(links.len(), 1, "{before:?}");
                assert_eq!(links[0].long_url, "https://example.com/ü");
            }
        }
    }

    #[test]
    fn an_input_without_anything_and_one_in_another_form_are_refused() {
        for source in Source::ALL {
            for empty in ["", " \n", "\u{feff}"] {
                let (links, errors) = read(source, empty);
                assert_eq!(links, []);
                assert_eq!(errors, ["after item 0: the input is empty"]);
            }
        }
        let (_, errors) = read(Source::Kutt, "address,target\na,b\n");
        assert_eq!(errors, ["after item 0: the input is not JSON"]);
    }

    /// An endless input that counts the bytes taken from it.
    struct Endless<'a>(&'static [u8], &'static [u8], &'a AtomicUsize);

    impl Read for Endless<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                self.0 = self.1;
            }
            let got = self.0.read(to)?;
            self.2.fetch_add(got, Ordering::Relaxed);
            Ok(got)
        }
    }

    #[test]
    fn links_come_before_the_rest_of_the_input_is_read() {
        let forms: [(Source, &[u8], &[u8]); 3] = [
            (Source::Kutt, b"{\"data\":[", br#"{"address":"a","target":"b"},"#),
            (Source::Csv, b"longUrl\n", b"b\n"),
            (Source::Csv, b" ", b"{\"longUrl\":\"b\"}"),
        ];
        for (source, first, again) in forms {
            let taken = AtomicUsize::new(0);
            let mut links = 0;
            each_row(source, Endless(first, again, &taken), &TimeZone::UTC, |row| {
                links += u32::from(row.is_ok());
                if links < 10_000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            assert!(taken.load(Ordering::Relaxed) < 10_000 * again.len() + 2 * BUFFER_BYTES, "{source}");
        }
    }
}
