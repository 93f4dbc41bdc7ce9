//! Reads the items of JSON documents (RFC 8259) that may be larger than memory: one document, or
//! several in sequence.
//!
//! The parser reads the input as it arrives and builds one item at a time. An item of more than
//! [`ITEM_BYTES`] ends the reading, and so does text that is not JSON.

use std::{
    cell::Cell,
    fmt,
    io::{self, Read},
    ops::ControlFlow,
};

use serde::de::{
    Deserialize as _, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
    value::MapAccessDeserializer,
};
use serde_json::{Map, Value};

/// The maximum length of an item: a link with the maximum number of rules fits.
pub(super) const ITEM_BYTES: u64 = 4 * 1024 * 1024;

/// The location of the items in a document.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The keys that lead to the list, or to an object whose values are the items; spaces separate
    /// the names that a key may have. If empty, each document is an item. A document that is itself
    /// a list is always a list of items.
    pub path: &'static [&'static str],
    /// A key that marks a valid document without a list, for systems that omit an empty list.
    pub beside: Option<&'static str>,
    /// A key that marks a document that is itself an item, as in lines of JSON.
    pub alone: Option<&'static str>,
}

impl Shape {
    /// Returns the shape of documents with a list at `path`.
    pub const fn list(path: &'static [&'static str]) -> Self {
        Self { path, beside: None, alone: None }
    }
}

/// Passes each item of an input to `take` until that breaks, and `None` for a document without a
/// list of items, for example because it tells of an error. Returns the number of documents.
pub fn each_item(
    input: impl Read,
    shape: Shape,
    mut take: impl FnMut(Option<Value>) -> ControlFlow<()>,
) -> serde_json::Result<u64> {
    let left = Cell::new(ITEM_BYTES);
    let mut json = serde_json::Deserializer::from_reader(Bounded { input, left: &left });
    let mut reading = Reading { left: &left, take: &mut take, shape, has_list: false, is_over: false };
    for documents in 0.. {
        match json.end() {
            Ok(()) => return Ok(documents),
            // Another document follows.
            Err(error) if error.is_syntax() => {}
            Err(error) => return Err(error),
        }
        left.set(ITEM_BYTES);
        reading.has_list = false;
        let read = Part { path: shape.path, depth: 0, reading: &mut reading }.deserialize(&mut json);
        if !reading.is_over && read.is_ok() && !reading.has_list {
            reading.is_over = (reading.take)(None).is_break();
        }
        if reading.is_over {
            return Ok(documents + 1);
        }
        read?;
    }
    Ok(u64::MAX)
}

/// A reader of at most so many bytes.
struct Bounded<'a, R> {
    input: R,
    left: &'a Cell<u64>,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        if left == 0 {
            return Err(io::Error::other("an item has more than 4 MiB"));
        }
        let got = self.input.read(to)?;
        self.left.set(left.saturating_sub(got as u64));
        Ok(got)
    }
}

struct Reading<'a> {
    /// The bytes that the present item may still take.
    left: &'a Cell<u64>,
    take: &'a mut dyn FnMut(Option<Value>) -> ControlFlow<()>,
    shape: Shape,
    has_list: bool,
    is_over: bool,
}

impl Reading<'_> {
    fn pass<E: serde::de::Error>(&mut self, item: Value) -> Result<(), E> {
        self.is_over = (self.take)(Some(item)).is_break();
        self.left.set(ITEM_BYTES);
        if self.is_over { Err(E::custom("no more items are taken")) } else { Ok(()) }
    }
}

/// A document, or the part of it that the first keys of the path lead to.
struct Part<'a, 'b> {
    /// The keys that lead on to the list.
    path: &'static [&'static str],
    /// The number of keys that led here.
    depth: usize,
    reading: &'a mut Reading<'b>,
}

impl<'de> DeserializeSeed<'de> for Part<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object or a list of them")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        // Null in place of the list.
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let is_list = self.depth == 0 || self.path.is_empty();
        if !is_list {
            self.reading.left.set(u64::MAX);
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        self.reading.has_list = true;
        while let Some(item) = list.next_element()? {
            self.reading.pass(item)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let Self { path, depth, reading } = self;
        let Some((next, path)) = path.split_first() else {
            reading.has_list = true;
            if depth == 0 {
                let item = Map::deserialize(MapAccessDeserializer::new(fields))?;
                return reading.pass(Value::Object(item));
            }
            while let Some((_, item)) = fields.next_entry::<IgnoredAny, Value>()? {
                reading.pass(item)?;
            }
            return Ok(());
        };
        let mut own = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            if next.split(' ').any(|name| name == key) {
                fields.next_value_seed(Part { path, depth: depth + 1, reading })?;
            } else if depth == 0 && reading.shape.alone.is_some() {
                // The document may be an item, so all of this is held and bounded.
                own.insert(key, fields.next_value()?);
                continue;
            } else {
                reading.has_list |= depth == 0 && reading.shape.beside == Some(key.as_str());
                // An ignored value is not held, so it may be of any length.
                reading.left.set(u64::MAX);
                fields.next_value::<IgnoredAny>()?;
            }
            reading.left.set(ITEM_BYTES);
        }
        if !reading.has_list && reading.shape.alone.is_some_and(|mark| own.contains_key(mark)) {
            reading.has_list = true;
            return reading.pass(Value::Object(own));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const DEEP: Shape = Shape::list(&["a", "b"]);
    const FLAT: Shape = Shape { beside: Some("stats"), ..Shape::list(&["list"]) };
    const LINES: Shape = Shape::list(&[]);
    const EITHER: Shape = Shape { alone: Some("i"), ..Shape::list(&["list links"]) };

    /// Returns the items of an input as text, `none` for a document without a list, and the error.
    fn read(shape: Shape, input: impl Read) -> (Vec<String>, Option<String>) {
        let mut found = Vec::new();
        let read = each_item(input, shape, |item| {
            found.push(item.map_or_else(|| "none".to_owned(), |item| item.to_string()));
            if found.len() < 50 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        (found, read.err().map(|error| error.to_string()))
    }

    #[test]
    fn items_are_found_wherever_the_list_is_and_whatever_is_around_it() {
        let one = r#"{"i":1}"#;
        for (shape, input, items) in [
            (DEEP, "", &[][..]),
            (DEEP, r#"{"a":{"b":[]}}"#, &[]),
            (
                DEEP,
                r#" {"x":[{"b":[{}]}],"a":{"c":"\"]}","b":[ {"i":1} , 2],"d":{}},"y":1.5e3} "#,
                &[one, "2"],
            ),
            (DEEP, r#"{"a":{"b":[{"i":1}]}}{"a":{"b":[{"i":1}]}}"#, &[one, one]),
            (DEEP, "{\"a\":{\"b\":[{}]}}\r\n\r\n{\"a\":{\"b\":[{}]}}\r\n", &["{}", "{}"]),
            (DEEP, r#"[{"i":{"j":[{}]}}][{}]"#, &[r#"{"i":{"j":[{}]}}"#, "{}"]),
            (DEEP, r#"{"\u0061":{"b":[{}]}}"#, &["{}"]),
            (DEEP, r#"{"a":[{"b":[{}]}]}"#, &["none"]),
            (FLAT, r#"{"list":{"k":{"i":"}"},"l":{"i":"\\\"{"}}}"#, &[r#"{"i":"}"}"#, r#"{"i":"\\\"{"}"#]),
            (FLAT, r#"{"stats":{}}{"list":null}{"list":[{}]}"#, &["none", "{}"]),
            (
                EITHER,
                r#"{"i":1}{"x":[{}],"list":[{"i":1}]}{"links":[2],"i":3}{"x":1}"#,
                &[one, one, "2", "none"],
            ),
            (LINES, "{}\n {\"i\":1} \r\n{\"b\":\"\\n\"}{}", &["{}", one, r#"{"b":"\n"}"#, "{}"]),
        ] {
            let expected: Vec<String> = items.iter().map(|item| (*item).to_owned()).collect();
            assert_eq!(read(shape, input.as_bytes()), (expected, None), "{input}");
        }
    }

    #[test]
    fn nothing_comes_after_a_place_where_the_input_is_broken() {
        for (input, came, error) in [
            ("{", 0, "EOF"),
            (r#"{"list""#, 0, "EOF"),
            (r#"{"list":[{},{"i":""#, 1, "EOF"),
            (r#"{"list":[{}],"x":12"#, 1, "EOF"),
            ("[{}{}]", 1, "expected `,`"),
            ("[{},]", 1, "trailing comma"),
            ("[{}]x{}", 1, "expected value"),
            (r#"{"list":[{"i":[1}]}"#, 0, "expected `,`"),
            (r#"{list:[]}"#, 0, "key must be a string"),
            ("7", 0, "expected a JSON object or a list of them"),
            ("<html>", 0, "expected value"),
        ] {
            let (items, found) = read(FLAT, input.as_bytes());
            assert_eq!(items.len(), came, "{input}");
            assert!(found.as_ref().is_some_and(|found| found.contains(error)), "{input}: {found:?}");
        }
        let cut = io::Cursor::new("[{},").chain(Torn);
        assert_eq!(read(FLAT, cut), (vec!["{}".to_owned()], Some("torn at line 1 column 4".to_owned())));
    }

    struct Torn;

    impl Read for Torn {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("torn"))
        }
    }

    #[test]
    fn an_item_is_bounded_and_what_is_ignored_is_not() {
        let length = usize::try_from(ITEM_BYTES).unwrap();
        let text = |length: usize| "x".repeat(length);
        // The comma before an item and its quotes count.
        for (item, count) in [(length - 3, 3), (length - 2, 1)] {
            let input = format!(r#"{{"x":"{}","list":[{{}},"{}",1]}}"#, text(2 * length), text(item));
            let (items, error) = read(FLAT, input.as_bytes());
            assert_eq!((items.len(), error.is_none()), (count, count == 3), "{item}: {error:?}");
        }
        let long = format!(r#"{{"i":1,"x":"{}"}}"#, text(length));
        assert!(read(EITHER, long.as_bytes()).1.is_some_and(|error| error.contains("4 MiB")));
        for endless in [r#"{"list":[{},""#, r#"[{},{"i":""#, r#"{""#] {
            let (items, error) = read(FLAT, BufReader::new(endless.as_bytes().chain(io::repeat(b'x'))));
            assert!(items.len() <= 1 && error.is_some_and(|error| error.contains("4 MiB")), "{endless}");
        }
    }

    #[test]
    fn items_come_before_the_rest_of_the_input_is_read() {
        let endless = b"[{}".chain(io::repeat(b' '));
        let taken = each_item(endless, FLAT, |_| ControlFlow::Break(()));
        assert_eq!(taken.unwrap(), 1);
    }

    proptest! {
        #[test]
        fn every_object_comes_out_as_it_went_in(
            texts in proptest::collection::vec(r#"[a-zü"\\{}\[\],: \n]{0,12}"#, 0..8),
        ) {
            let objects: Vec<String> =
                texts.iter().map(|text| json!({ "a": text, "b": { "c": [text] } }).to_string()).collect();
            let page = format!("{{\"x\":{{\"list\":[{0}]}},\"list\" : [{0}] }}", objects.join(" ,\n"));
            prop_assert_eq!(read(FLAT, page.as_bytes()), (objects.clone(), None));
            prop_assert_eq!(read(LINES, objects.join("\n").as_bytes()), (objects, None));
        }

        #[test]
        fn no_input_makes_it_panic_or_go_on_without_end(input in r#"[\[\]{}",:\\a1 \n]{0,40}"#) {
            let _ = read(FLAT, input.as_bytes());
        }
    }
}
