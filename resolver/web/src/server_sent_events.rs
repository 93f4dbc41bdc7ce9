//! Server-sent events (HTML, section 9.2): an answer that is sent event by event, for as long as
//! its client listens.
//!
//! A connection between two events counts as being answered ([`Body::set_guard`](crate::Body)), so
//! that it is neither idle nor closed to make room. One whose client reads nothing is closed as any
//! other.

use hyper::{
    StatusCode,
    body::Bytes,
    header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue},
};
use limits::Held;
use tokio::sync::mpsc;

use crate::{Answer, Body, Piece, answer};

/// The media type of server-sent events.
pub const EVENT_STREAM: &str = "text/event-stream";

/// Events and comments, as they are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    bytes: Vec<u8>,
}

impl Events {
    /// Adds an event. An event without a type is of the type `message`. Neither type nor id may
    /// have line breaks; data may have any.
    pub fn event(&mut self, kind: Option<&str>, id: Option<&str>, data: &[&[u8]]) {
        for (name, value) in [("event", kind), ("id", id)] {
            if let Some(value) = value {
                self.line(name, value);
            }
        }
        self.data(data);
        self.bytes.push(b'\n');
    }

    /// Adds the parts of data as one text. Each of its lines is a line of the event.
    fn data(&mut self, parts: &[&[u8]]) {
        const NAME: &[u8] = b"data: ";
        self.bytes.extend_from_slice(NAME);
        let mut was_return = false;
        for byte in parts.iter().flat_map(|part| part.iter().copied()) {
            match byte {
                b'\n' if was_return => {}
                b'\n' | b'\r' => {
                    self.bytes.push(b'\n');
                    self.bytes.extend_from_slice(NAME);
                }
                byte => self.bytes.push(byte),
            }
            was_return = byte == b'\r';
        }
        self.bytes.push(b'\n');
    }

    /// Adds a comment of one line, which clients ignore.
    pub fn comment(&mut self, text: &str) {
        self.line("", text);
        self.bytes.push(b'\n');
    }

    /// Adds the time in milliseconds that the client waits before it connects again.
    pub fn retry(&mut self, milliseconds: u32) {
        self.line("retry", &milliseconds.to_string());
        self.bytes.push(b'\n');
    }

    fn line(&mut self, name: &str, value: &str) {
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.extend_from_slice(if value.is_empty() { b":" } else { b": " });
        // A line break would end the line, and begin one of another name.
        self.bytes.extend(value.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')));
        self.bytes.push(b'\n');
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl From<Events> for Bytes {
    fn from(events: Events) -> Self {
        events.bytes.into()
    }
}

/// Builds an answer of events, which are pieces of its body. It holds `under_way` until it is
/// dropped.
pub fn stream(pieces: mpsc::Receiver<Piece>, under_way: Held) -> Answer {
    let mut answer = Answer::new(Body::stream(pieces, under_way));
    add_headers(&mut answer);
    answer
}

/// Builds the head of such an answer, for HEAD.
pub fn head() -> Answer {
    let mut answer = answer(StatusCode::OK, EVENT_STREAM, Bytes::new());
    add_headers(&mut answer);
    answer
}

fn add_headers(answer: &mut Answer) {
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies such as nginx would collect events before they pass them on.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Events)) -> String {
        let mut events = Events::default();
        write(&mut events);
        String::from_utf8(events.bytes).unwrap()
    }

    #[test]
    fn an_event_has_its_type_its_id_and_its_data() {
        let event = written(|events| events.event(Some("visit"), Some("12"), &[b"{\"a\":", b"1}"]));
        assert_eq!(event, "event: visit\nid: 12\ndata: {\"a\":1}\n\n");
        assert_eq!(written(|events| events.event(None, None, &[])), "data: \n\n");
    }

    #[test]
    fn a_line_break_in_data_begins_another_line_of_data() {
        let event = written(|events| events.event(None, None, &[b"a\nb\r", b"\nc\rd\n\ne"]));
        assert_eq!(event, "data: a\ndata: b\ndata: c\ndata: d\ndata: \ndata: e\n\n");
    }

    #[test]
    fn a_line_break_elsewhere_ends_no_line() {
        let event = written(|events| events.event(Some("a\ndata: x"), Some("1\r\n2"), &[b"y"]));
        assert_eq!(event, "event: adata: x\nid: 12\ndata: y\n\n");
        assert_eq!(written(|events| events.comment("a\n\nb")), ": ab\n\n");
    }

    #[test]
    fn comments_and_the_time_to_retry_are_no_events() {
        assert_eq!(written(|events| events.comment("")), ":\n\n");
        assert_eq!(written(|events| events.retry(2_000)), "retry: 2000\n\n");
    }
}
