//! The supported sources of links, and a streaming reader for each, whatever the size of the input.

use std::{
    fmt,
    io::{self, BufRead, BufReader, Read},
    str::FromStr,
};

use jiff::tz::TimeZone;

use super::{
    csv,
    encoding::Decoded,
    header::{self, Mark},
    item::Item,
    kutt,
    objects::{Objects, Shape},
    row::{Row, RowError},
    shlink,
    table::{Layout, Table},
    yourls,
};

/// The size of the read buffer, in bytes.
const BUFFER_BYTES: usize = 64 * 1024;

/// A system that links are imported from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Shlink: API responses, or the table of its web client.
    Shlink,
    /// Kutt: API responses.
    Kutt,
    /// YOURLS: API responses, or a table of its plugins or its database.
    Yourls,
    /// Any system: a table, or one JSON object per line.
    Csv,
    /// This project: an export with header and trailer.
    Shortmint,
}

impl Source {
    /// All sources.
    pub const ALL: [Self; 5] = [Self::Shlink, Self::Kutt, Self::Yourls, Self::Csv, Self::Shortmint];
}

/// The error for a word that names no source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected shortmint, shlink, kutt, yourls or csv")]
pub struct SourceError;

impl FromStr for Source {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        match text {
            "shlink" => Ok(Self::Shlink),
            "kutt" => Ok(Self::Kutt),
            "yourls" => Ok(Self::Yourls),
            "csv" => Ok(Self::Csv),
            "shortmint" => Ok(Self::Shortmint),
            _ => Err(SourceError),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shlink => "shlink",
            Self::Kutt => "kutt",
            Self::Yourls => "yourls",
            Self::Csv => "csv",
            Self::Shortmint => "shortmint",
        })
    }
}

/// A function that converts an item to a row.
type Reading = fn(&Item) -> Result<Row, RowError>;

impl Source {
    /// Returns whether the JSON form of this source is our own.
    fn is_ours(self) -> bool {
        matches!(self, Self::Csv | Self::Shortmint)
    }

    /// Returns whether times without an offset are in UTC in what this system writes, whatever zone
    /// its server is in.
    fn writes_utc(self) -> bool {
        matches!(self, Self::Kutt | Self::Yourls)
    }

    fn objects(self) -> (Shape, Reading) {
        match self {
            Self::Shlink => (shlink::SHAPE, shlink::of_json),
            Self::Kutt => (kutt::SHAPE, kutt::of_json),
            Self::Yourls => (yourls::SHAPE, yourls::of_json),
            Self::Csv | Self::Shortmint => (csv::SHAPE, csv::of_json),
        }
    }

    fn table(self) -> Option<(Layout, Reading)> {
        match self {
            Self::Shlink => Some((shlink::LAYOUT, shlink::of_table)),
            Self::Kutt | Self::Shortmint => None,
            Self::Yourls => Some((yourls::LAYOUT, yourls::of_table)),
            Self::Csv => Some((csv::LAYOUT, csv::of_table)),
        }
    }
}

/// Reads the links of an input. Nothing is read before the first call of `next`, and never much
/// more than one link is held. The first byte that is not white space decides between JSON and a
/// table. After an error the iterator continues with the next link, unless [`RowError::is_final`].
///
/// Times without an offset are in `zone`, except where the other system always writes UTC.
pub fn rows<R: Read>(source: Source, reader: R, zone: &TimeZone) -> Rows<R> {
    let zone = if source.writes_utc() { TimeZone::UTC } else { zone.clone() };
    Rows { source, zone, state: State::New(reader), framing: Framing::Before }
}

/// Iterator over the links of an input, in input order.
pub struct Rows<R> {
    source: Source,
    zone: TimeZone,
    state: State<R>,
    framing: Framing,
}

/// The position in an export of our own format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// Before the header.
    Before,
    /// Between header and trailer.
    Inside,
    /// After the trailer.
    After,
}

/// A buffered input as UTF-8, without its byte order mark.
type Input<R> = BufReader<Decoded<R>>;

enum State<R> {
    /// Nothing has been read.
    New(R),
    /// The input is JSON.
    Objects(Box<Objects<Input<R>>>, Reading),
    /// The input is a table.
    Table(Box<Table<Input<R>>>, Reading),
    /// The input has ended.
    End,
}

impl<R: Read> Rows<R> {
    fn open(&self, reader: R) -> Result<State<R>, RowError> {
        let unreadable = |cause| RowError::Read { after: 0, cause };
        let (first, input) = Decoded::new(reader).and_then(begin).map_err(unreadable)?;
        let broken = |expected| RowError::Broken { after: 0, expected };
        match (first, self.source.table()) {
            (None, _) => Err(broken("links, and not the end of the input")),
            (Some(b'{' | b'['), _) => {
                let (shape, reading) = self.source.objects();
                Ok(State::Objects(Box::new(Objects::new(input, shape, self.zone.clone())), reading))
            }
            (Some(_), Some((layout, reading))) => {
                Ok(State::Table(Box::new(Table::new(input, layout, self.zone.clone())), reading))
            }
            (Some(_), None) => Err(broken("a JSON object or a list of them")),
        }
    }
}

impl<R: Read> Rows<R> {
    /// Returns the next item with the function that converts it; `None` at the end.
    fn next_item(&mut self) -> Result<Option<(Item, Reading)>, RowError> {
        loop {
            return match &mut self.state {
                State::Objects(objects, reading) => {
                    let Some(item) = objects.next().transpose()? else { break };
                    let mark = if self.source.is_ours() { header::mark(&item)? } else { None };
                    if let Some(mark) = mark {
                        objects.uncount();
                        let links = objects.item_count();
                        self.pass(mark, links)?;
                        continue;
                    }
                    Ok(Some((item, *reading)))
                }
                State::Table(table, reading) => Ok(table.next().transpose()?.map(|item| (item, *reading))),
                State::End => return Ok(None),
                State::New(_) => {
                    if let State::New(reader) = std::mem::replace(&mut self.state, State::End) {
                        self.state = self.open(reader)?;
                    }
                    continue;
                }
            };
        }
        self.end()
    }

    /// Handles a header or trailer.
    fn pass(&mut self, mark: Mark, links: u64) -> Result<(), RowError> {
        let is_counted = self.source == Source::Shortmint;
        match mark {
            Mark::Begin => self.framing = Framing::Inside,
            Mark::End(told) if told != links && is_counted => {
                return Err(RowError::Broken {
                    after: links,
                    expected: "as many links as the last line says",
                });
            }
            Mark::End(_) => self.framing = Framing::After,
        }
        Ok(())
    }

    /// Ends the reading. Fails if an export ends before its trailer.
    fn end(&mut self) -> Result<Option<(Item, Reading)>, RowError> {
        let after = match &self.state {
            State::Objects(objects, _) => objects.item_count(),
            _ => 0,
        };
        self.state = State::End;
        if self.source == Source::Shortmint && self.framing == Framing::Inside {
            let expected = "the last line of an export, and not the end of the input";
            return Err(RowError::Broken { after, expected });
        }
        Ok(None)
    }

    /// Fails if a link of an export is not between header and trailer.
    fn framed(&self, place: u64) -> Result<(), RowError> {
        let after = place.saturating_sub(1);
        let expected = match self.framing {
            _ if self.source != Source::Shortmint => return Ok(()),
            Framing::Inside => return Ok(()),
            Framing::Before => {
                "a first line {\"format\":\"shortmint-links\",\"version\":1}; lines without it are read with --from csv"
            }
            Framing::After => "nothing after the last line of an export",
        };
        Err(RowError::Broken { after, expected })
    }
}

impl<R: Read> Iterator for Rows<R> {
    type Item = Result<Row, RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.next_item().transpose()?.and_then(|(item, reading)| {
            self.framed(item.place)?;
            reading(&item)
        });
        if row.as_ref().is_err_and(RowError::is_final) {
            self.state = State::End;
        }
        Some(row)
    }
}

/// Returns the first byte that is not white space. What is before it in its buffer stays: tabs may
/// separate empty cells, and line breaks are counted.
fn begin<R: Read>(reader: Decoded<R>) -> io::Result<(Option<u8>, Input<R>)> {
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
    for row in rows(source, input.as_bytes(), &TimeZone::UTC).take(1_000) {
        match row {
            Ok(row) => links.push(row),
            Err(error) => errors.push(error.to_string()),
        }
    }
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
        assert_eq!("Shlink".parse::<Source>(), Err(SourceError));
        assert_eq!(SourceError.to_string(), "expected shortmint, shlink, kutt, yourls or csv");
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
                assert_eq!(errors, ["after item 0: expected links, and not the end of the input"]);
            }
        }
        let (_, errors) = read(Source::Kutt, "address,target\na,b\n");
        assert_eq!(errors, ["after item 0: expected a JSON object or a list of them"]);
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
            let links = rows(source, Endless(first, again, &taken), &TimeZone::UTC).take(10_000);
            assert_eq!(links.filter(Result::is_ok).count(), 10_000);
            assert!(taken.load(Ordering::Relaxed) < 10_000 * again.len() + 2 * BUFFER_BYTES, "{source}");
        }
    }

    #[test]
    fn rows_may_go_to_another_thread_when_their_input_may() {
        fn goes<T: Send>(_: &T) {}
        goes(&rows(Source::Csv, io::empty(), &TimeZone::UTC));
    }
}
