//! `POST /rest/v3/short-urls/bulk`: up to 100,000 links in one call, as a JSON array or one object
//! per line. An addition to Shlink's API.
//!
//! 1. Links are created while the body still arrives, several batches at a time. Each result is
//!    written as soon as its batch is done: `{"results":[…]}` for an array, otherwise a line for
//!    each item, in the order of the items. `app::create_many` has the ways into the database.
//! 2. A wrong item is answered with what was expected, and fails no other. A body that cannot be
//!    read further, or that the end of the process cuts short, ends with an item that says so; what
//!    came before it is created.
//! 3. Bounds: few calls at a time, few of each key, few batches of each call, and each batch in
//!    links and in bytes. Results may wait for a client that sends its whole body before it reads
//!    any: there is room for all of them, and a call counts as under way until they are read. What
//!    is wrong with items is reported until that has taken much room; after that only that they are
//!    wrong. Links that are no batch are created few at a time (`bulk/creates.rs`).
//! 4. Each batch is a call of the key: it counts towards the key's limit, and no link is created
//!    once the key was revoked, has expired or has other limits. What was created until then stays.
//! 5. A client has to keep up a [`Pace`]: a call that trickles must not hold the place of one that
//!    does not. White space earns no time.

mod creates;

use std::{sync::Arc, time::Duration};

use app::create_link::IdempotencyKey;
use dto::BatchResult;
use futures_util::{StreamExt, stream::FuturesOrdered};
use http_body_util::BodyExt;
use hyper::{
    body::{Bytes, Incoming},
    header::{CONTENT_TYPE, HeaderValue},
};
use schemars::{SchemaGenerator, json_schema};
use store::BATCH_MAX;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};

use super::{
    create::IDEMPOTENCY_KEY,
    json::JSON,
    prelude::*,
    route::{Handler, SchemaOf, array_of},
    split::{Form, ITEM_BYTES, Splitter},
};
use crate::{Api, authenticate::is_still_granted, calls::Refused};
use creates::{Creates, Item, PASSWORDS_MAX, REVOKED, written, wrong};
use limits::{Account, Pace, TooSlow, budgets::BULK_CALLS};
use web::{Body, BrokenOff, Piece};

pub(super) const PATH: &str = "/rest/v3/short-urls/bulk";
const ITEMS_MAX: usize = 100_000;
/// Maximum number of batches of one call that are under way.
const BATCHES: usize = 4;
/// Maximum number of batches of results that wait to be written: all of a call, and its end.
const ANSWERS: usize = ITEMS_MAX / BATCH_MAX + 8;
/// The length of the items, in bytes, that make a batch, however few they are.
const BATCH_BYTES: usize = 1024 * 1024;
/// The length of a call's results, in bytes, after which no batch begins: more than a hundred
/// thousand results have without long slugs.
const RESULTS_BYTES: usize = 40 * 1024 * 1024;
/// Maximum length of a call's results, in bytes: also those of the batches under way then.
const ANSWER_BYTES: usize = RESULTS_BYTES + 8 * 1024 * 1024;
/// Maximum number of bytes that are read and discarded after an error.
const DISCARDED: usize = 64 * 1024 * 1024;
/// The time that the client may send nothing.
const GRACE: Duration = Duration::from_secs(10);
/// The least rate after that, without white space: ten links a second are enough.
const BYTES_PER_SECOND: u32 = 1_024;
const CALL_TIME: Duration = Duration::from_secs(600);
const NDJSON: &str = "application/x-ndjson";

pub(super) fn routes() -> Vec<Route> {
    let items: SchemaOf = |generator| array_of::<dto::BatchItem>(generator, ITEMS_MAX);
    let item_lines: SchemaOf =
        |_| json_schema!({ "type": "string", "description": "A BatchItem on each line." });
    let results: SchemaOf = SchemaGenerator::subschema_for::<dto::BatchResults>;
    let result_lines: SchemaOf =
        |_| json_schema!({ "type": "string", "description": "A BatchResult on each line." });
    // `BatchResult` is a component of its own, since lines have it without the list.
    let create = Route::new(Method::POST, PATH, Handler::Streamed(Scope::Create))
        .document("createShortUrls", Topic::Links, "Create many links")
        .addition()
        .text(format!(
            "Up to {ITEMS_MAX} links in one call, as a JSON array or as one object per line; the first byte that is not white space \
             decides. Links are created while the body still arrives, and their results come in the order of the items while others are \
             created: read the answer while you send. A wrong item fails no other. A body that cannot be read further ends with a result \
             for `(the body)`; what came before it is created. Every {BATCH_MAX} links count as a call of the key, and a key \
             that is revoked meanwhile or has made too many calls ends the call in the same way. An item has at most {ITEM_BYTES} bytes, and at most {PASSWORDS_MAX} items have a password. \
             Items with a password, `findIfExists`, `externalId` or `fetchTitle`, those whose code is random, from a digest or \
             behind a prefix, and all items of a call with `Idempotency-Key` are stored one by one, which is many times slower. \
             If the answer is lost, the same call with the same `Idempotency-Key` returns the same links: an item has that key together with its place in the call. \
             At most {} such calls are answered at a time; another one is refused with 503, and so is, with 429, a key that has {} of them under way.",
            BULK_CALLS.0, BULK_CALLS.1
        ))
        .header(Header::IdempotencyKey)
        .body_of(vec![(JSON, items), (NDJSON, item_lines)])
        .answers_of(
            200,
            "A result for each item, in the form of the body.",
            vec![(JSON, results), (NDJSON, result_lines)],
        );
    vec![create]
}

/// Answers a call whose body still arrives.
pub(super) async fn answer(call: Call, scope: Scope, body: Incoming) -> Answer {
    let created = async {
        let by = call.authorize(scope).await?;
        call.check_query(&[])?;
        let key = call.headers.get(IDEMPOTENCY_KEY).map(|key| IdempotencyKey::new(key.as_bytes(), ""));
        begin(&call.api, by, key.transpose()?, body).await
    };
    call.finish(created.await.unwrap_or_else(Problem::into_answer))
}

/// Begins the answer. The links are created while it is being sent.
async fn begin(
    api: &Arc<Api>,
    by: &Grant,
    idempotency: Option<IdempotencyKey>,
    body: Incoming,
) -> Result<Answer, Problem> {
    let call = api.budgets.bulk_calls.take(Account::Key(by.id.0), 1)?;
    let (answers, receiver) = mpsc::channel(ANSWERS);
    let mut reading = Reading {
        creates: Creates::new(api, by, idempotency, answers.downgrade()),
        batches: 0,
        body,
        splitter: Splitter::new(),
        rest: Vec::new(),
        count: 0,
        pace: Pace::new(GRACE, BYTES_PER_SECOND),
        until: Instant::now() + CALL_TIME,
        ended: false,
        trouble: None,
    };
    // The first items decide the form of the results: an array or lines.
    let first = reading.next().await;
    let form = reading.splitter.form;
    tokio::spawn(answer_all(reading, first, Writer { form, started: false, written: 0, answers }));
    let mut answer = Answer::new(Body::stream(receiver, call));
    let kind = if form == Form::Array { JSON } else { NDJSON };
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(answer)
}

/// Creates batch after batch. Returns early if the client no longer reads the results.
async fn answer_all(mut reading: Reading, first: Vec<Item>, mut writer: Writer) {
    let mut under_way = FuturesOrdered::new();
    let (mut items, mut refusal) = (first, None);
    while !items.is_empty() {
        refusal = if writer.is_full() {
            Some("the results are too long for one call: send the rest in another one".to_owned())
        } else {
            reading.refusal_of_batch().await
        };
        if refusal.is_some() {
            break;
        }
        under_way.push_back(Arc::clone(&reading.creates).create(items));
        // Batches that have ended are answered while the body is being read.
        let mut next = std::pin::pin!(reading.next());
        items = loop {
            tokio::select! {
                biased;
                Some(answers) = under_way.next() => if !writer.write(answers) { return },
                items = &mut next, if under_way.len() < BATCHES => break items,
            }
        };
    }
    while let Some(answers) = under_way.next().await {
        if !writer.write(answers) {
            return;
        }
    }
    if let Some(expected) = refusal
        && !writer.write(vec![wrong("(the body)", expected)])
    {
        return;
    }
    writer.finish();
    reading.discard().await;
}

/// Reads the body item by item.
struct Reading {
    creates: Arc<Creates>,
    batches: usize,
    body: Incoming,
    splitter: Splitter,
    /// Items that have arrived and are not in a batch yet.
    rest: Vec<Bytes>,
    /// The number of items that were read.
    count: usize,
    pace: Pace,
    until: Instant,
    ended: bool,
    trouble: Option<String>,
}

impl Reading {
    /// Returns the next batch of items: a whole one unless it is the last, because a large batch
    /// costs less for each link. It is empty at the end. An error of the body is the last item.
    async fn next(&mut self) -> Vec<Item> {
        let mut raw = std::mem::take(&mut self.rest);
        let mut bytes: usize = raw.iter().map(Bytes::len).sum();
        while raw.len() < BATCH_MAX && bytes < BATCH_BYTES && !self.ended {
            let frame = timeout_at(self.until, self.pace.wait(self.body.frame()));
            let frame = tokio::select! {
                biased;
                () = self.creates.api.stop.cancelled() => {
                    self.end("the server is stopping: send this item and those after it again");
                    break;
                }
                frame = frame => frame.unwrap_or(Err(TooSlow)),
            };
            let piece = match frame {
                Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
                Ok(None) => {
                    self.ended = true;
                    self.trouble = self.splitter.finish(&mut raw).err().map(|error| error.to_string());
                    break;
                }
                Ok(Some(Err(_))) => {
                    self.end("expected the rest of the body");
                    break;
                }
                Err(_) => {
                    self.end("expected the rest of the body in time");
                    break;
                }
            };
            self.pace.received(piece.iter().filter(|byte| !byte.is_ascii_whitespace()).count());
            let before = raw.len();
            if let Err(error) = self.splitter.push(&piece, &mut raw) {
                self.end(&error.to_string());
            }
            bytes += raw[before..].iter().map(Bytes::len).sum::<usize>();
        }
        let left = ITEMS_MAX - self.count;
        if raw.len() > left {
            raw.truncate(left);
            self.end(&format!("expected at most {ITEMS_MAX} links"));
        }
        if raw.len() > BATCH_MAX {
            self.rest = raw.split_off(BATCH_MAX);
        }
        let trouble = if self.rest.is_empty() { self.trouble.take() } else { None };
        let items: Vec<Item> = raw.into_iter().map(|item| self.check(&item)).collect();
        items.into_iter().chain(trouble.map(|expected| Err(wrong("(the body)", expected)))).collect()
    }

    /// Counts the next batch as a call of the key, and returns why the key may not create it, if
    /// so. The call itself was counted when it began, with its first batch.
    async fn refusal_of_batch(&mut self) -> Option<String> {
        let Creates { api, by, .. } = &*self.creates;
        match is_still_granted(api, by).await {
            Ok(true) => {}
            Ok(false) => return Some(REVOKED.to_owned()),
            Err(_) => return Some("the API key could not be checked: send the rest again later".to_owned()),
        }
        self.batches += 1;
        if self.batches == 1 {
            return None;
        }
        let spent = api.calls.spend_of_key(by);
        spent.err().map(|Refused { wait, .. }| {
            let seconds = wait.as_secs() + 1;
            format!("the API key has made too many calls: send the rest again in {seconds} s")
        })
    }

    fn check(&mut self, item: &[u8]) -> Item {
        let place = self.count;
        self.count += 1;
        self.creates.check(item, place)
    }

    fn end(&mut self, trouble: &str) {
        (self.ended, self.trouble) = (true, Some(trouble.to_owned()));
    }

    /// Discards what the client sends after an error: closing the connection meanwhile would lose
    /// the results.
    async fn discard(&mut self) {
        let mut left = DISCARDED;
        // The pace applies here too.
        while let Ok(Ok(Some(Ok(frame)))) = timeout_at(self.until, self.pace.wait(self.body.frame())).await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                return;
            }
        }
    }
}

/// Writes results in the form of the body.
struct Writer {
    form: Form,
    started: bool,
    written: usize,
    answers: mpsc::Sender<Piece>,
}

impl Writer {
    /// Queues results. Returns false if the client no longer reads, or if there is no more room for
    /// results that it has not read.
    fn write(&mut self, results: Vec<BatchResult>) -> bool {
        let mut bytes = Vec::new();
        for result in &results {
            bytes.extend_from_slice(self.before_item());
            bytes.extend(written(result));
            if self.form == Form::Lines {
                bytes.push(b'\n');
            }
        }
        self.written += bytes.len();
        let has_room = self.written <= ANSWER_BYTES;
        let piece = if has_room { Ok(bytes.into()) } else { Err(BrokenOff) };
        self.answers.try_send(piece).is_ok() && has_room
    }

    /// Returns whether there is no room for the results of another batch.
    fn is_full(&self) -> bool {
        self.written > RESULTS_BYTES
    }

    fn before_item(&mut self) -> &'static [u8] {
        match (self.form, std::mem::replace(&mut self.started, true)) {
            (Form::Lines, _) => b"",
            (Form::Array, false) => b"{\"results\":[",
            (Form::Array, true) => b",\n",
        }
    }

    fn finish(self) {
        let end: &[u8] = match (self.form, self.started) {
            (Form::Lines, _) => b"",
            (Form::Array, false) => b"{\"results\":[]}",
            (Form::Array, true) => b"]}",
        };
        let _ = self.answers.try_send(Ok(Bytes::from_static(end)));
    }
}
