//! What answers carry: bytes that are there, or that still come.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};
use tokio::sync::mpsc;

use crate::{budgets::Held, connection_timeouts::AnswerGuard};

/// A piece of a body that still comes, or the end of a body that lacks its end: the connection is closed, so that the client notices.
pub type Piece = Result<Bytes, BrokenOff>;

/// A body cannot be written to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer broke off")]
pub struct BrokenOff;

/// What a connection is given at a time: it keeps a copy until the client has taken it, and the room for it for longer.
const GIVEN: usize = 16 * 1024;

/// The body of an answer.
pub struct Body {
    /// What is there.
    bytes: Bytes,
    /// What comes behind it, until the channel is closed.
    pieces: Option<mpsc::Receiver<Piece>>,
    /// Given back when the answer has gone.
    held: Option<Held>,
    /// Dropped when all of it was given to the connection.
    guard: Option<AnswerGuard>,
}

impl Body {
    /// A body that is there.
    #[must_use]
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), pieces: None, held: None, guard: None }
    }

    /// What comes through a channel, until that is closed; with the right to be under way.
    #[must_use]
    pub fn stream(pieces: mpsc::Receiver<Piece>, under_way: Held) -> Self {
        Self { bytes: Bytes::new(), pieces: Some(pieces), held: Some(under_way), guard: None }
    }

    /// Bytes that are there.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "what still comes is not counted, so none is not empty")]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Keeps something until the answer has gone.
    pub fn hold(&mut self, held: Held) {
        self.held = Some(held);
    }

    /// Keeps its connection from resting until the answer was given to it.
    pub fn set_guard(&mut self, guard: AnswerGuard) {
        self.guard = Some(guard);
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
        while body.bytes.is_empty() {
            let Some(pieces) = &mut body.pieces else { return Poll::Ready(None) };
            match ready!(pieces.poll_recv(cx)) {
                Some(Ok(piece)) => body.bytes = piece,
                Some(Err(broken)) => return Poll::Ready(Some(Err(broken))),
                None => return Poll::Ready(None),
            }
        }
        let given = body.bytes.split_to(body.bytes.len().min(GIVEN));
        Poll::Ready(Some(Ok(Frame::data(given))))
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
