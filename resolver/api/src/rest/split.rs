//! Splits a body that is still arriving into its items: a JSON array of objects, or one object per
//! line (NDJSON).
//!
//! It finds only the boundaries of items, and looks at each byte once. The JSON parser reads the
//! rest.
//!
//! Rejected: the stream of serde_json, which reads values that follow each other, but neither the
//! elements of an array nor a body that has not arrived yet.

use hyper::body::Bytes;

use super::problem::Problem;

/// Maximum length of an item, in bytes: that of a single create.
pub(super) const ITEM_BYTES: usize = 64 * 1024;

/// The reason why a body cannot be split any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SplitError {
    #[error("expected a JSON array of objects, or one object per line")]
    Malformed,
    #[error("expected items of at most {ITEM_BYTES} bytes")]
    TooLong,
    #[error("the body ended inside the array")]
    Unfinished,
}

impl From<SplitError> for Problem {
    fn from(error: SplitError) -> Self {
        match error {
            SplitError::TooLong => Self::invalid("(the array)", error.to_string()),
            SplitError::Malformed | SplitError::Unfinished => Self::MalformedBody,
        }
    }
}

/// Splits a complete array, a piece at a time, so that few of its items are copied at once.
pub(super) fn each_of_array(
    body: &[u8],
    mut each: impl FnMut(&[u8]) -> Result<(), Problem>,
) -> Result<(), Problem> {
    if body.trim_ascii_start().first() != Some(&b'[') {
        return Err(SplitError::Malformed.into());
    }
    let (mut splitter, mut items) = (Splitter::new(), Vec::new());
    for piece in body.chunks(ITEM_BYTES) {
        splitter.push(piece, &mut items)?;
        items.drain(..).try_for_each(|item: Bytes| each(&item))?;
    }
    Ok(splitter.finish(&mut items)?)
}

/// The separation of items. The first byte of the body decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Array,
    Lines,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Only white space has arrived.
    Start,
    /// After the bracket: an item, or the end.
    First,
    /// After a comma: an item.
    Next,
    /// In an item, at this depth of braces.
    Item { depth: u32, quoted: bool, escaped: bool },
    /// After an item: a comma, or the end.
    After,
    /// After the closing bracket.
    End,
}

/// Splits a body that arrives in pieces.
pub(super) struct Splitter {
    /// Bytes that are not a complete item yet.
    held: Vec<u8>,
    /// The number of these bytes that were examined.
    seen: usize,
    place: Place,
    /// The separation of items; meaningful once the first has arrived.
    pub(super) form: Form,
}

impl Splitter {
    pub(super) fn new() -> Self {
        Self { held: Vec::new(), seen: 0, place: Place::Start, form: Form::Lines }
    }

    /// Adds a piece. Items that it completes go to `items`, also those in front of an error.
    pub(super) fn push(&mut self, piece: &[u8], items: &mut Vec<Bytes>) -> Result<(), SplitError> {
        self.held.extend_from_slice(piece);
        let mut start = 0;
        while self.seen < self.held.len() {
            let byte = self.held[self.seen];
            if self.place == Place::Start {
                self.begin(byte);
            }
            match self.form {
                Form::Lines => {
                    if byte == b'\n' {
                        self.line(start, items);
                        start = self.seen + 1;
                    }
                }
                Form::Array => {
                    let before = self.place;
                    self.place = step(before, byte).ok_or(SplitError::Malformed)?;
                    match (matches!(before, Place::Item { .. }), self.place) {
                        (false, Place::Item { .. }) => start = self.seen,
                        (true, Place::After) => {
                            items.push(Bytes::copy_from_slice(&self.held[start..=self.seen]));
                            start = self.seen + 1;
                        }
                        (false, _) => start = self.seen + 1,
                        (true, _) => {}
                    }
                }
            }
            self.seen += 1;
            if self.seen - start > ITEM_BYTES {
                return Err(SplitError::TooLong);
            }
        }
        self.held.drain(..start);
        self.seen -= start;
        Ok(())
    }

    /// Ends the body. The last line needs no line feed.
    pub(super) fn finish(&mut self, items: &mut Vec<Bytes>) -> Result<(), SplitError> {
        match (self.form, self.place) {
            (Form::Array, Place::End) => Ok(()),
            (Form::Array, _) => Err(SplitError::Unfinished),
            (Form::Lines, _) => {
                self.seen = self.held.len();
                self.line(0, items);
                Ok(())
            }
        }
    }

    fn begin(&mut self, byte: u8) {
        if !byte.is_ascii_whitespace() {
            self.form = if byte == b'[' { Form::Array } else { Form::Lines };
            self.place = if byte == b'[' { Place::Start } else { Place::First };
        }
    }

    fn line(&self, start: usize, items: &mut Vec<Bytes>) {
        let line = self.held[start..self.seen].trim_ascii();
        if !line.is_empty() {
            items.push(Bytes::copy_from_slice(line));
        }
    }
}

/// Returns the place after one more byte of an array; `None` if the byte is not allowed there.
fn step(place: Place, byte: u8) -> Option<Place> {
    let item = Place::Item { depth: 1, quoted: false, escaped: false };
    Some(match (place, byte) {
        (Place::Item { depth, quoted: true, escaped }, _) => {
            let ends = byte == b'"' && !escaped;
            Place::Item { depth, quoted: !ends, escaped: byte == b'\\' && !escaped }
        }
        (Place::Item { depth, .. }, b'"') => Place::Item { depth, quoted: true, escaped: false },
        (Place::Item { depth, quoted, escaped }, b'{') => {
            Place::Item { depth: depth.checked_add(1)?, quoted, escaped }
        }
        (Place::Item { depth: 1, .. }, b'}') => Place::After,
        (Place::Item { depth, quoted, escaped }, b'}') => Place::Item { depth: depth - 1, quoted, escaped },
        (Place::Item { .. }, _) => place,
        (_, byte) if byte.is_ascii_whitespace() => place,
        (Place::Start, b'[') => Place::First,
        (Place::First | Place::Next, b'{') => item,
        (Place::After, b',') => Place::Next,
        (Place::First | Place::After, b']') => Place::End,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The items of a body that arrives in pieces of this many bytes.
    fn split(body: &str, piece: usize) -> (Vec<String>, Result<(), SplitError>) {
        let (mut splitter, mut items) = (Splitter::new(), Vec::new());
        let mut pushed = Ok(());
        for piece in body.as_bytes().chunks(piece) {
            pushed = splitter.push(piece, &mut items);
            if pushed.is_err() {
                break;
            }
        }
        let ended = pushed.and_then(|()| splitter.finish(&mut items));
        (items.iter().map(|item| String::from_utf8(item.to_vec()).unwrap()).collect(), ended)
    }

    #[test]
    fn what_is_neither_an_array_nor_lines_is_refused_after_what_came_before_it() {
        for (body, items, ended) in [
            ("[]", 0, Ok(())),
            (" [ {} , {} ] ", 2, Ok(())),
            ("", 0, Ok(())),
            ("{}\n\n {} \r\n{}", 3, Ok(())),
            ("[{}", 1, Err(SplitError::Unfinished)),
            ("[{}{}]", 1, Err(SplitError::Malformed)),
            ("[{},]", 1, Err(SplitError::Malformed)),
            ("[{}]x", 1, Err(SplitError::Malformed)),
            ("[1]", 0, Err(SplitError::Malformed)),
            ("[,{}]", 0, Err(SplitError::Malformed)),
        ] {
            let (got, end) = split(body, 1);
            assert_eq!((got.len(), end), (items, ended), "{body:?}");
        }
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(ITEM_BYTES));
        assert_eq!(split(&long, 1_000), (vec![], Err(SplitError::TooLong)));
        assert_eq!(split(&format!("[{long}]"), 1_000), (vec![], Err(SplitError::TooLong)));
    }

    proptest! {
        #[test]
        fn every_object_comes_out_as_it_went_in_however_the_body_is_cut(
            texts in proptest::collection::vec(r#"[a-z"\\{}\[\],: \n]{0,12}"#, 0..8),
            piece in 1..40_usize,
        ) {
            let objects: Vec<String> =
                texts.iter().map(|text| serde_json::json!({ "a": text, "b": { "c": [text] } }).to_string()).collect();
            let array = format!("[{}]", objects.join(" ,\n"));
            prop_assert_eq!(split(&array, piece), (objects.clone(), Ok(())));
            prop_assert_eq!(split(&objects.join("\n"), piece), (objects, Ok(())));
        }
    }
}
