//! Lists that are sent while they are still read from the store. One key has few under way, and a
//! client that takes too long for a piece or for the whole is cut off. So is one whose key is
//! revoked meanwhile.

use std::{sync::Arc, time::Duration};

use hyper::header::{CONTENT_TYPE, HeaderValue};
use limits::Account;
use links::api_key::Grant;
use serde::Serialize;
use tokio::{sync::mpsc, time::timeout};
use web::{Answer, Body, BrokenOff, Piece};

use super::{
    json::JSON,
    pagination::{Paging, pagination},
    problem::Problem,
};
use crate::{Api, Task, authenticate::is_still_granted};

const PIECE_TIME: Duration = Duration::from_secs(30);
/// The time that a client has to read a whole list. One that takes its pieces as slowly as it may
/// would keep one of few places for days.
const LIST_TIME: Duration = Duration::from_secs(3_600);

/// Answers with a list, the only member of an object, while `write` still reads it from the store.
pub(super) fn stream<W: Future<Output = Result<(), BrokenOff>> + Send + 'static>(
    api: &Arc<Api>,
    by: &Grant,
    name: &str,
    write: impl FnOnce(Pieces) -> W,
) -> Result<Answer, Problem> {
    let under_way = api.budgets.lists.take(Account::Key(by.id.0), 1)?;
    let (to, pieces) = mpsc::channel(1);
    let list = Pieces { api: Arc::clone(api), by: by.clone(), to: to.clone(), list: JsonList::new(name) };
    let task: Task<Result<(), BrokenOff>> = Box::pin(write(list));
    let writing = api.runtime.spawn(timeout(LIST_TIME, task));
    api.runtime.spawn(async move {
        // Also after a panic: an answer that only stops would look like a whole one.
        if !matches!(writing.await, Ok(Ok(Ok(())))) {
            let _ = timeout(PIECE_TIME, to.send(Err(BrokenOff))).await;
        }
    });
    let mut answer = Answer::new(Body::stream(pieces, under_way));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    Ok(answer)
}

/// A list that is sent piece by piece, each once the client has taken the one before.
pub(super) struct Pieces {
    pub(super) api: Arc<Api>,
    pub(super) by: Grant,
    to: mpsc::Sender<Piece>,
    pub(super) list: JsonList,
}

impl Pieces {
    /// Sends what was written, which the client has [`PIECE_TIME`] to take. A list whose key was
    /// revoked, has expired or has other limits by now is broken off.
    pub(super) async fn send(&mut self) -> Result<(), BrokenOff> {
        if !is_still_granted(&self.api, &self.by).await.is_ok_and(|is_granted| is_granted) {
            return Err(BrokenOff);
        }
        let text = std::mem::take(&mut self.list.text);
        let sent = timeout(PIECE_TIME, self.to.send(Ok(text.into()))).await;
        sent.map_err(|_| BrokenOff)?.map_err(|_| BrokenOff)
    }

    /// Sends the end of the list, with the position of its page.
    pub(super) async fn finish(mut self, paging: Paging, total: u64) -> Result<(), BrokenOff> {
        self.list.finish(paging, total)?;
        self.send().await
    }
}

pub(super) struct JsonList {
    /// Text that is written and not sent.
    pub(super) text: Vec<u8>,
    count: usize,
}

impl JsonList {
    fn new(name: &str) -> Self {
        Self { text: format!(r#"{{"{name}":{{"data":["#).into_bytes(), count: 0 }
    }

    pub(super) fn push(&mut self, item: &impl Serialize) -> Result<(), BrokenOff> {
        if self.count > 0 {
            self.text.push(b',');
        }
        self.count += 1;
        serde_json::to_writer(&mut self.text, item).map_err(|_| BrokenOff)
    }

    fn finish(&mut self, paging: Paging, total: u64) -> Result<(), BrokenOff> {
        self.text.extend_from_slice(br#"],"pagination":"#);
        let pagination = pagination(paging, self.count, total);
        serde_json::to_writer(&mut self.text, &pagination).map_err(|_| BrokenOff)?;
        self.text.extend_from_slice(b"}}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn items_form_one_list() {
        let mut list = JsonList::new("visits");
        ["a", "b"].iter().for_each(|item| list.push(item).unwrap());
        list.finish(Paging { page: 1, per_page: None }, 2).unwrap();
        let read: Value = serde_json::from_slice(&list.text).unwrap();
        assert_eq!(read["visits"]["data"], json!(["a", "b"]));
        assert_eq!(read["visits"]["pagination"]["itemsInCurrentPage"], 2);
    }
}
