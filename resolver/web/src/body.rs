//! Bodies of answers: bytes in memory, or a stream of pieces.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};
use limits::{Held, Serving};
use tokio::sync::mpsc;

/// A piece of a streamed body. An error closes the connection before the body's end, so that the
/// client notices.
pub type Piece = Result<Bytes, BrokenOff>;

/// The error for a body that cannot be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer ended before its last piece")]
pub struct BrokenOff;

/// The maximum number of bytes given to a connection at a time. The connection keeps a copy until
/// the client has read it, and keeps the allocated space for longer.
const GIVEN: usize = 16 * 1024;

/// The body of an answer.
pub struct Body {
    /// Bytes in memory that were not sent yet.
    bytes: Bytes,
    /// The pieces that follow, until the channel is closed.
    pieces: Option<mpsc::Receiver<Piece>>,
    /// A reservation in a [`Pool`](limits::Pool), released when the body is dropped.
    pub held: Option<Held>,
    /// The guard that keeps the connection from counting as idle, dropped with the body.
    pub guard: Option<Serving>,
}

impl Body {
    /// Creates a body from bytes in memory.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), pieces: None, held: None, guard: None }
    }

    /// Creates a body from a channel of pieces. It holds `under_way` until it is dropped.
    pub fn stream(pieces: mpsc::Receiver<Piece>, under_way: Held) -> Self {
        Self { bytes: Bytes::new(), pieces: Some(pieces), held: Some(under_way), guard: None }
    }

    /// Returns the number of unsent bytes in memory; the pieces of a stream do not count.
    #[expect(clippy::len_without_is_empty, reason = "a stream with a length of 0 is not empty")]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Replaces the bytes in memory that were not sent yet.
    pub fn replace(&mut self, change: impl FnOnce(&[u8]) -> Bytes) {
        self.bytes = change(&self.bytes);
    }

    #[inline]
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        while self.bytes.is_empty() {
            let Some(pieces) = &mut self.pieces else { return Poll::Ready(None) };
            match ready!(pieces.poll_recv(cx)) {
                Some(Ok(piece)) => self.bytes = piece,
                Some(Err(broken)) => return Poll::Ready(Some(Err(broken))),
                None => return Poll::Ready(None),
            }
        }
        let given = self.bytes.split_to(self.bytes.len().min(GIVEN));
        Poll::Ready(Some(Ok(Frame::data(given))))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BrokenOff;

    #[inline]
    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let body = self.get_mut();
        let polled = body.poll_piece(cx);
        match (&body.guard, &polled) {
            (Some(guard), Poll::Pending) => guard.note_wait(),
            (Some(guard), Poll::Ready(_)) => guard.note_piece(),
            (None, _) => {}
        }
        polled
    }

    #[inline]
    fn is_end_stream(&self) -> bool {
        self.pieces.is_none() && self.bytes.is_empty()
    }

    #[inline]
    fn size_hint(&self) -> SizeHint {
        match self.pieces {
            None => SizeHint::with_exact(self.bytes.len() as u64),
            Some(_) => SizeHint::default(),
        }
    }
}
