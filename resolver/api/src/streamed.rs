//! Answers that are sent while they are still read from the store. One key has few under way, and a
//! client that takes too long for a piece or for the whole is cut off. So is one whose key is
//! revoked meanwhile.

use std::{sync::Arc, time::Duration};

use hyper::header::{CONTENT_TYPE, HeaderValue};
use limits::{Account, ExceededShare};
use links::api_key::Grant;
use tokio::{sync::mpsc, time::timeout};
use web::{Answer, Body, BrokenOff, Piece};

use crate::{Api, Task, is_still_granted};

const PIECE_TIME: Duration = Duration::from_secs(30);
/// The time that a client has to read a whole answer. One that takes its pieces as slowly as it may
/// would keep one of few places for days.
const ANSWER_TIME: Duration = Duration::from_secs(3_600);

/// The sender of an answer's pieces, each once the client has taken the one before.
pub struct Sender {
    /// The API.
    pub api: Arc<Api>,
    /// The key that the answer is for.
    pub by: Grant,
    to: mpsc::Sender<Piece>,
}

/// Answers with the pieces that `write` sends while it still reads them from the store.
pub fn stream<W: Future<Output = Result<(), BrokenOff>> + Send + 'static>(
    api: &Arc<Api>,
    by: &Grant,
    content_type: &'static str,
    write: impl FnOnce(Sender) -> W,
) -> Result<Answer, ExceededShare> {
    let under_way = api.budgets.lists.take(Account::Key(by.id.0), 1)?;
    let (to, pieces) = mpsc::channel(1);
    let sender = Sender { api: Arc::clone(api), by: by.clone(), to: to.clone() };
    let task: Task<Result<(), BrokenOff>> = Box::pin(write(sender));
    let writing = api.runtime.spawn(timeout(ANSWER_TIME, task));
    api.runtime.spawn(async move {
        // Also after a panic: an answer that only stops would look like a whole one.
        if !matches!(writing.await, Ok(Ok(Ok(())))) {
            let _ = timeout(PIECE_TIME, to.send(Err(BrokenOff))).await;
        }
    });
    let mut answer = Answer::new(Body::stream(pieces, under_way));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    Ok(answer)
}

impl Sender {
    /// Sends a piece, which the client has [`PIECE_TIME`] to take. An answer whose key was revoked,
    /// has expired or has other limits by now is broken off.
    pub async fn send(&self, piece: Vec<u8>) -> Result<(), BrokenOff> {
        if !is_still_granted(&self.api, &self.by).await.is_ok_and(|is_granted| is_granted) {
            return Err(BrokenOff);
        }
        let sent = timeout(PIECE_TIME, self.to.send(Ok(piece.into()))).await;
        sent.map_err(|_| BrokenOff)?.map_err(|_| BrokenOff)
    }
}
