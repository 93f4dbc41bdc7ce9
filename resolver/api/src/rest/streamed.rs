//! Lists as JSON that are sent while they are still read from the store (`streamed.rs`).

use std::sync::Arc;

use links::api_key::Grant;
use serde::Serialize;
use web::{Answer, BrokenOff};

use super::{
    json::JSON,
    pagination::{Paging, pagination},
    problem::Problem,
};
use crate::{
    Api,
    streamed::{self, Sender},
};

/// Answers with a list, the only member of an object, while `write` still reads it from the store.
pub(super) fn stream<W: Future<Output = Result<(), BrokenOff>> + Send + 'static>(
    api: &Arc<Api>,
    by: &Grant,
    name: &str,
    write: impl FnOnce(Pieces) -> W,
) -> Result<Answer, Problem> {
    let list = JsonList::new(name);
    Ok(streamed::stream(api, by, JSON, |sender| write(Pieces { sender, list }))?)
}

/// A list that is sent piece by piece.
pub(super) struct Pieces {
    pub(super) sender: Sender,
    pub(super) list: JsonList,
}

impl Pieces {
    /// Sends what was written.
    pub(super) async fn send(&mut self) -> Result<(), BrokenOff> {
        self.sender.send(std::mem::take(&mut self.list.text)).await
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
