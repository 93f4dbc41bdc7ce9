//! Reads items from JSON documents (RFC 8259) that may be larger than memory: one document, or
//! several in sequence.
//!
//! Only the path to the list and the boundaries of its items are found here; the content of an item
//! is left to the JSON parser. At most [`Shape::item_bytes`] of an item are held in memory, and
//! nothing of the rest.

use std::io::BufRead;

use jiff::tz::TimeZone;

use super::{
    item::Item,
    row::{ITEM_BYTES, OWN_ITEM_BYTES, RowError},
    scan::{Scan, Step, fill},
};

/// The location of the items in a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// The keys that lead to the list. If empty, each document is an item. A document that is
    /// itself a list is always a list of items.
    pub(super) path: &'static [&'static str],
    /// The path as one text, for error messages.
    pub(super) name: &'static str,
    /// A key that marks a valid document without a list, for systems that omit an empty list.
    pub(super) beside: Option<&'static str>,
    /// Maximum length of an item in bytes, and the same in words for error messages.
    pub(super) item_bytes: (usize, &'static str),
}

impl Shape {
    /// The maximum length of an item of another system.
    pub(super) const FOREIGN_ITEM: (usize, &'static str) = (ITEM_BYTES, "at most 64 KiB");
    /// The maximum length of a link in our own format.
    pub(super) const OWN_ITEM: (usize, &'static str) = (OWN_ITEM_BYTES, "at most 4 MiB");
}

/// The position of the next byte in the structure of the input.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Between two documents.
    Between,
    /// In an object on the path to the list, `depth` levels below the document; `first` before its
    /// first member.
    Members { depth: usize, first: bool },
    /// In the list, with `depth` objects around it.
    Items { depth: usize, closer: u8, first: bool },
    /// The input has ended.
    End,
}

/// Iterator over the items of an input, in input order.
pub(super) struct Objects<R> {
    input: R,
    shape: Shape,
    zone: TimeZone,
    place: Place,
    /// The number of items so far.
    count: u64,
    /// Whether the current document has a list.
    found: bool,
    /// The last value read, or its beginning.
    held: Vec<u8>,
}

impl<R: BufRead> Objects<R> {
    pub(super) fn new(input: R, shape: Shape, zone: TimeZone) -> Self {
        Self { input, shape, zone, place: Place::Between, count: 0, found: false, held: Vec::new() }
    }

    /// Returns the number of items so far.
    pub(super) fn item_count(&self) -> u64 {
        self.count
    }

    /// Removes the last item from the count, because it was a header or trailer.
    pub(super) fn uncount(&mut self) {
        self.count = self.count.saturating_sub(1);
    }

    /// Reads until the next item is complete; returns `None` at the end.
    fn advance(&mut self) -> Result<Option<Item>, RowError> {
        loop {
            match self.place {
                Place::End => return Ok(None),
                Place::Between => match self.peek()? {
                    None => self.place = Place::End,
                    Some(b'[') => {
                        self.input.consume(1);
                        self.found = true;
                        self.place = Place::Items { depth: 0, closer: b']', first: true };
                    }
                    Some(b'{') if self.shape.path.is_empty() => return self.item().map(Some),
                    Some(b'{') => {
                        self.input.consume(1);
                        self.found = false;
                        self.place = Place::Members { depth: 0, first: true };
                    }
                    Some(_) => return Err(self.broken("a JSON object or a list of them")),
                },
                Place::Members { depth, first } => self.member(depth, first)?,
                Place::Items { depth, closer, first } => {
                    if self.begins_next(closer, first)? {
                        self.place = Place::Items { depth, closer, first: false };
                        if closer == b'}' {
                            self.key()?;
                        }
                        return self.item().map(Some);
                    }
                    self.leave(depth)?;
                }
            }
        }
    }

    /// Reads one member of an object on the path to the list, or the end of that object.
    fn member(&mut self, depth: usize, first: bool) -> Result<(), RowError> {
        if !self.begins_next(b'}', first)? {
            return self.leave(depth);
        }
        self.place = Place::Members { depth, first: false };
        let key = self.key()?;
        if depth == 0 && self.shape.beside == Some(key.as_str()) {
            self.found = true;
        }
        let is_on_path = self.shape.path.get(depth) == Some(&key.as_str());
        let is_last = depth + 1 == self.shape.path.len();
        match self.peek()? {
            Some(opener @ (b'[' | b'{')) if is_on_path && is_last => {
                self.input.consume(1);
                self.found = true;
                let closer = if opener == b'[' { b']' } else { b'}' };
                self.place = Place::Items { depth: depth + 1, closer, first: true };
            }
            Some(b'{') if is_on_path => {
                self.input.consume(1);
                self.place = Place::Members { depth: depth + 1, first: true };
            }
            _ => {
                self.value(false)?;
            }
        }
        Ok(())
    }

    /// Leaves an object or a list that has `depth` objects around it.
    fn leave(&mut self, depth: usize) -> Result<(), RowError> {
        self.place = match depth.checked_sub(1) {
            Some(depth) => Place::Members { depth, first: false },
            None => Place::Between,
        };
        if depth == 0 && !self.found {
            return Err(RowError::Document { after: self.count, path: self.shape.name });
        }
        Ok(())
    }

    /// Consumes the separator before the next element of a list or an object, or the closing
    /// bracket. Returns whether an element follows.
    fn begins_next(&mut self, closer: u8, first: bool) -> Result<bool, RowError> {
        match self.peek()? {
            Some(byte) if byte == closer => {
                self.input.consume(1);
                Ok(false)
            }
            Some(b',') if !first => {
                self.input.consume(1);
                self.peek()?;
                Ok(true)
            }
            Some(_) if first => Ok(true),
            Some(_) => Err(self.broken("a comma or the end of the list")),
            None => Err(self.unfinished()),
        }
    }

    /// Reads a key and the colon after it.
    fn key(&mut self) -> Result<String, RowError> {
        if self.peek()?.is_some_and(|byte| byte != b'"') {
            return Err(self.broken("a key in quotes"));
        }
        let length = self.value(true)?;
        let key =
            if length <= self.shape.item_bytes.0 { serde_json::from_slice(&self.held).ok() } else { None };
        let key = key.ok_or_else(|| self.broken("a key in quotes"))?;
        match self.peek()? {
            Some(b':') => self.input.consume(1),
            Some(_) => return Err(self.broken("a colon after the key")),
            None => return Err(self.unfinished()),
        }
        self.peek()?;
        Ok(key)
    }

    /// Reads an item.
    fn item(&mut self) -> Result<Item, RowError> {
        let length = self.value(true)?;
        self.count += 1;
        let place = self.count;
        let (most, expected) = self.shape.item_bytes;
        if length > most {
            return Err(RowError::Item { place, expected });
        }
        let fields = serde_json::from_slice(&self.held).map_err(|cause| RowError::Json { place, cause })?;
        Ok(Item { place, fields, zone: self.zone.clone() })
    }

    /// Reads a value to its end and returns its length in bytes. With `keeps`, `held` has the whole
    /// value if it is within the item limit.
    fn value(&mut self, keeps: bool) -> Result<usize, RowError> {
        let (mut scan, mut length) = (Scan::default(), 0_usize);
        self.held.clear();
        loop {
            let bytes = fill(&mut self.input).map_err(|cause| RowError::Read { after: self.count, cause })?;
            if bytes.is_empty() {
                return Err(self.unfinished());
            }
            let (mut taken, mut ended) = (0, None);
            for byte in bytes {
                let step = scan.step(*byte);
                taken += usize::from(matches!(step, Step::Inside | Step::Last));
                if step != Step::Inside {
                    ended = Some(step);
                    break;
                }
            }
            length = length.saturating_add(taken);
            if keeps && length <= self.shape.item_bytes.0 {
                self.held.extend_from_slice(&bytes[..taken]);
            }
            self.input.consume(taken);
            match ended {
                None => {}
                Some(Step::Wrong) => return Err(self.broken("brackets that match, at most 128 deep")),
                Some(_) if length == 0 => return Err(self.broken("a value")),
                Some(_) => return Ok(length),
            }
        }
    }

    /// Returns the next byte that is not white space, without consuming it.
    fn peek(&mut self) -> Result<Option<u8>, RowError> {
        loop {
            let bytes = fill(&mut self.input).map_err(|cause| RowError::Read { after: self.count, cause })?;
            let spaces = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let next = bytes.get(spaces).copied();
            let is_end = bytes.is_empty();
            self.input.consume(spaces);
            if next.is_some() || is_end {
                return Ok(next);
            }
        }
    }

    fn broken(&self, expected: &'static str) -> RowError {
        RowError::Broken { after: self.count, expected }
    }

    fn unfinished(&self) -> RowError {
        self.broken("the end of the document, and not of the input")
    }
}

impl<R: BufRead> Iterator for Objects<R> {
    type Item = Result<Item, RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let result = self.advance();
        if result.as_ref().is_err_and(RowError::is_final) {
            self.place = Place::End;
        }
        result.transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, BufReader};

    use proptest::prelude::*;

    use super::*;

    const DEEP: Shape =
        Shape { path: &["a", "b"], name: "a.b", beside: None, item_bytes: Shape::FOREIGN_ITEM };
    const FLAT: Shape =
        Shape { path: &["list"], name: "list", beside: Some("stats"), item_bytes: Shape::FOREIGN_ITEM };
    const LINES: Shape = Shape { path: &[], name: "", beside: None, item_bytes: Shape::FOREIGN_ITEM };

    /// Reads an input in pieces of `piece` bytes, and returns its items and errors as text.
    fn read(shape: Shape, input: &str, piece: usize) -> Vec<String> {
        let input = BufReader::with_capacity(piece, input.as_bytes());
        let shown = |result: Result<Item, RowError>| match result {
            Ok(item) => format!("{} {}", item.place, serde_json::Value::Object(item.fields)),
            Err(error) => error.to_string(),
        };
        Objects::new(input, shape, TimeZone::UTC).take(50).map(shown).collect()
    }

    #[test]
    fn items_are_found_wherever_the_list_is_and_whatever_is_around_it() {
        for (shape, input, items) in [
            (DEEP, "", &[][..]),
            (DEEP, r#"{"a":{"b":[]}}"#, &[]),
            (
                DEEP,
                r#" {"x":[{"b":[{}]}],"a":{"c":"\"]}","b":[ {"i":1} , {"i":2}],"d":{}},"y":1.5e3} "#,
                &[r#"1 {"i":1}"#, r#"2 {"i":2}"#],
            ),
            (DEEP, r#"{"a":{"b":[{"i":1}]}}{"a":{"b":[{"i":2}]}}"#, &[r#"1 {"i":1}"#, r#"2 {"i":2}"#]),
            (DEEP, "{\"a\":{\"b\":[{}]}}\r\n\r\n{\"a\":{\"b\":[{}]}}\r\n", &["1 {}", "2 {}"]),
            (DEEP, r#"[{"i":{"j":[{}]}}][{}]"#, &[r#"1 {"i":{"j":[{}]}}"#, "2 {}"]),
            (DEEP, r#"{"\u0061":{"b":[{}]}}"#, &["1 {}"]),
            (
                FLAT,
                r#"{"list":{"k":{"i":"}"},"l":{"i":"\\\"{"}},"stats":{}}"#,
                &[r#"1 {"i":"}"}"#, r#"2 {"i":"\\\"{"}"#],
            ),
            (FLAT, r#"{"stats":{}}{"list":[{}]}"#, &["1 {}"]),
            (
                LINES,
                "{}\n {\"a\":1} \r\n{\"b\":\"\\n\"}{}",
                &["1 {}", r#"2 {"a":1}"#, r#"3 {"b":"\n"}"#, "4 {}"],
            ),
        ] {
            for piece in [1, 2, 7, 1_000] {
                assert_eq!(read(shape, input, piece), items, "{input} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn a_bad_item_or_document_is_told_and_the_next_one_comes() {
        let huge = format!(r#"[{{"i":"{}"}},{{}}]"#, "x".repeat(3 * ITEM_BYTES));
        for (input, error, next) in [
            (r#"{"list":[{"i":},{}]}"#, "item 1: expected a JSON object: expected value at", "2 {}"),
            ("[7,{}]", "item 1: expected a JSON object: invalid type: integer `7`", "2 {}"),
            (r#"{"list":["x",{}]}"#, "item 1: expected a JSON object: invalid type: string", "2 {}"),
            (r#"{"list":null}{"list":[{}]}"#, "after item 0: expected a document with a list", "1 {}"),
            (&huge, "item 1: expected at most 64 KiB", "2 {}"),
        ] {
            let read = read(FLAT, input, 1_000);
            assert!(read[0].starts_with(error), "{input:.60}: {read:?}");
            assert_eq!(read[1..], [next], "{input:.60}");
        }
        let largest = format!(r#"[{{"i":"{}"}}]"#, "x".repeat(ITEM_BYTES - 8));
        assert!(read(FLAT, &largest, 1_000)[0].starts_with("1 "));
        let larger = largest.replace("\"i\"", "\"ii\"");
        assert_eq!(read(FLAT, &larger, 1_000), ["item 1: expected at most 64 KiB"]);
    }

    #[test]
    fn nothing_comes_after_a_place_where_the_input_is_broken() {
        let cut = "the end of the document, and not of the input";
        for (input, came, expected) in [
            ("{", 0, cut),
            ("[", 0, cut),
            (r#"{"li"#, 0, cut),
            (r#"{"list""#, 0, cut),
            (r#"{"list":"#, 0, cut),
            (r#"{"list":[{}"#, 1, cut),
            (r#"{"list":[{},"#, 1, cut),
            (r#"{"list":[{},{"i":""#, 1, cut),
            (r#"{"list":[{}]"#, 1, cut),
            (r#"{"list":[{}],"x":{"y":"#, 1, cut),
            (r#"{"list":[{}],"x":12"#, 1, cut),
            ("[{}{}]", 1, "a comma or the end of the list"),
            ("[{},]", 1, "a value"),
            ("[,{}]", 0, "a value"),
            ("[{}]x{}", 1, "a JSON object or a list of them"),
            (r#"{"list":[{"i":[1}]}"#, 0, "brackets that match, at most 128 deep"),
            (r#"{list:[]}"#, 0, "a key in quotes"),
            (r#"{"x":1,}"#, 0, "a key in quotes"),
            (r#"{"x" 1}"#, 0, "a colon after the key"),
            (r#"{"x":,"list":[]}"#, 0, "a value"),
            ("<html>", 0, "a JSON object or a list of them"),
        ] {
            for piece in [1, 1_000] {
                let read = read(FLAT, input, piece);
                assert_eq!(read.len(), came + 1, "{input}: {read:?}");
                assert_eq!(read[came], format!("after item {came}: expected {expected}"), "{input}");
            }
        }
    }

    #[test]
    fn an_input_that_cannot_be_read_says_so_once() {
        struct Torn(bool);
        impl io::Read for Torn {
            fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
                if std::mem::replace(&mut self.0, true) {
                    return Err(io::Error::other("torn"));
                }
                to[..4].copy_from_slice(b"[{},");
                Ok(4)
            }
        }
        let all: Vec<String> = Objects::new(BufReader::new(Torn(false)), FLAT, TimeZone::UTC)
            .take(10)
            .map(|result| result.map_or_else(|error| error.to_string(), |item| item.place.to_string()))
            .collect();
        assert_eq!(all, ["1", "after item 1: expected more to read: torn"]);
    }

    proptest! {
        #[test]
        fn every_object_comes_out_as_it_went_in_however_the_input_is_cut(
            texts in proptest::collection::vec(r#"[a-zü"\\{}\[\],: \n]{0,12}"#, 0..8),
            piece in 1..40_usize,
        ) {
            let objects: Vec<String> =
                texts.iter().map(|text| serde_json::json!({ "a": text, "b": { "c": [text] } }).to_string()).collect();
            let page = format!("{{\"x\":{{\"list\":[{0}]}},\"list\" : [{0}] }}", objects.join(" ,\n"));
            let expected: Vec<String> =
                objects.iter().enumerate().map(|(index, object)| format!("{} {object}", index + 1)).collect();
            prop_assert_eq!(&read(FLAT, &page, piece), &expected);
            prop_assert_eq!(&read(LINES, &objects.join("\n"), piece), &expected);
        }

        #[test]
        fn no_input_makes_it_panic_or_go_on_without_end(input in r#"[\[\]{}",:\\a1 \n]{0,40}"#) {
            prop_assert!(read(FLAT, &input, 3).len() < 50);
        }
    }
}
