//! What answers carry: bytes that are there, or that still come.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use http_body_util::Full;
use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};
use tokio::sync::mpsc;

use super::budgets::Held;

/// A piece of a body that still comes, or the end of a body that lacks its end: the connection is closed, so that the client notices.
pub(crate) type Piece = Result<Bytes, BrokenOff>;

/// A body cannot be written to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer broke off")]
pub(crate) struct BrokenOff;

/// The body of an answer.
pub(crate) enum Body {
    /// All of it.
    Whole(Full<Bytes>),
    /// What comes through a channel, until that is closed; with the right to be under way.
    Stream(
        mpsc::Receiver<Piece>,
        #[expect(dead_code, reason = "it is held, and given back when the answer has gone")] Held,
    ),
}

impl Body {
    /// A body that is there.
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(Full::new(bytes.into()))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Pin::new(bytes).poll_frame(cx).map_err(|never| match never {}),
            Self::Stream(pieces, _) => {
                pieces.poll_recv(cx).map(|piece| piece.map(|piece| piece.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_end_stream(),
            Self::Stream(..) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => bytes.size_hint(),
            Self::Stream(..) => SizeHint::default(),
        }
    }
}
