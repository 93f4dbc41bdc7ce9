//! `POST /rest/v3/short-urls/bulk`: up to 100,000 links in one call, as a JSON array or one object per line. An addition of ours.
//!
//! 1. Links are created while the body still arrives, some batches at a time, and each answer is written as soon as its batch is
//!    committed: `{"results":[…]}` for an array, a line for each item otherwise, in the order of the items.
//! 2. A bad item is answered with what was expected, and fails no other. A body that cannot be read on ends with an item that says so;
//!    what came before it is created.
//! 3. Bounded: a few calls at a time, a few of each key, a few batches of each call, and each batch in links and in bytes. Answers may wait
//!    for a client that sends its whole body before it reads any: there is room for all of them, and a call counts as under way until
//!    they are read. What is wrong with items is told until that has taken much room; after that only that they are.
//! 4. A client has to keep up a [`Pace`]: a call that trickles must not hold the place of one that does not. White space earns no time.

use std::{sync::Arc, time::Duration};

use app::{
    AppError,
    authorize::require,
    creator::{CreateError, Created},
    error::FIELDS_TOLD,
};
use futures_util::{StreamExt, stream::FuturesOrdered};
use http_body_util::BodyExt;
use hyper::{
    StatusCode,
    body::{Bytes, Incoming},
    header::{CONTENT_TYPE, HeaderValue},
};
use links::{
    Draft,
    api_key::{ApiKeyId, Grant},
    scope::Scope,
};
use serde_json::{Map, Value, json};
use store::BATCH_MAX;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};

use super::{
    JSON,
    create::draft,
    problem::Problem,
    split::{Form, SplitError, Splitter},
};
use crate::http::{
    Answer, App, Body, BrokenOff, Piece,
    budgets::{Holder, Pace, TooSlow},
};

/// Items of one call.
pub(super) const ITEMS_MAX: usize = 100_000;
/// Batches of one call that are under way.
const BATCHES: usize = 4;
/// Answers that wait to be written, in batches: all of a call, and its last words.
const ANSWERS: usize = ITEMS_MAX / BATCH_MAX + 8;
/// Bytes of items that make a batch, however few they are.
const BATCH_BYTES: usize = 1024 * 1024;
/// Bytes of an invalid item's answer.
const INVALID_BYTES: usize = 512;
/// Bytes of a call's invalid items that say what was expected.
const EXPECTED_BYTES: usize = 2 * 1024 * 1024;
/// Bytes of a call's answers: more than a hundred thousand answers can have.
const ANSWER_BYTES: usize = 40 * 1024 * 1024;
/// Bytes that are still read after trouble, and thrown away.
const DISCARDED: usize = 64 * 1024 * 1024;
/// How long the client may send nothing at all.
const GRACE: Duration = Duration::from_secs(10);
/// What it has to send in a second after that, white space aside: a source of ten links a second is quick enough.
const BYTES_PER_SECOND: u32 = 1_024;
/// And for all of it.
const CALL_TIME: Duration = Duration::from_secs(600);
const NDJSON: &str = "application/x-ndjson";

/// What became of an item: the answer, or a link that may be created.
type Item = Result<Draft, Value>;

/// Answers a call, and goes on behind the answer's first byte.
pub(super) async fn create(app: &Arc<App>, by: &Grant, body: Incoming) -> Result<Answer, Problem> {
    require(by, Scope::Create)?;
    if by.limits.domain.is_some_and(|domain| !domain.is_default()) {
        // Links of one domain have a way of their own into the database.
        return Err(AppError::OneDomainOnly.into());
    }
    let call = app.budgets.bulk_calls.take(Holder::Key(by.id), 1)?;
    let mut reading = Reading {
        app: Arc::clone(app),
        key: by.id,
        body,
        splitter: Splitter::new(),
        rest: Vec::new(),
        count: 0,
        told: 0,
        pace: Pace::new(GRACE, BYTES_PER_SECOND),
        until: Instant::now() + CALL_TIME,
        ended: false,
        trouble: None,
    };
    // The first items say in which form the answers are.
    let first = reading.next().await;
    let form = reading.splitter.form();
    let (answers, receiver) = mpsc::channel(ANSWERS);
    tokio::spawn(answer_all(reading, first, Writer { form, started: false, written: 0, answers }));
    let mut answer = Answer::new(Body::stream(receiver, call));
    *answer.status_mut() = StatusCode::OK;
    let kind = if form == Form::Array { JSON } else { NDJSON };
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(answer)
}

/// Creates batch after batch. Returns early when nobody reads the answers any more.
async fn answer_all(mut reading: Reading, first: Vec<Item>, mut writer: Writer) {
    let mut under_way = FuturesOrdered::new();
    let mut items = first;
    while !items.is_empty() {
        under_way.push_back(create_batch(Arc::clone(&reading.app), items));
        // While the body is being read, batches that have ended are answered.
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
    writer.finish();
    reading.discard().await;
}

/// The body, item by item.
struct Reading {
    app: Arc<App>,
    key: ApiKeyId,
    body: Incoming,
    splitter: Splitter,
    /// Items that have come and are not in a batch yet.
    rest: Vec<Bytes>,
    count: usize,
    /// Bytes in which it was told what is wrong with items.
    told: usize,
    pace: Pace,
    until: Instant,
    ended: bool,
    /// Why it ended before its end.
    trouble: Option<String>,
}

impl Reading {
    /// The next batch of items, a whole one unless it is the last: a large batch costs less for each link. None at the end. What cannot be read
    /// is the last item.
    async fn next(&mut self) -> Vec<Item> {
        let mut raw = std::mem::take(&mut self.rest);
        let mut bytes: usize = raw.iter().map(Bytes::len).sum();
        while raw.len() < BATCH_MAX && bytes < BATCH_BYTES && !self.ended {
            let frame = timeout_at(self.until, self.pace.wait(self.body.frame()));
            let piece = match frame.await.unwrap_or(Err(TooSlow)) {
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
                self.end(&SplitError::to_string(&error));
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
        self.count += raw.len();
        let trouble = if self.rest.is_empty() { self.trouble.take() } else { None };
        let items: Vec<Item> = raw.into_iter().map(|item| self.read_or_tell(&item)).collect();
        items.into_iter().chain(trouble.map(|expected| Err(invalid(&[("(the body)", &expected)])))).collect()
    }

    /// An item, or what is wrong with it: in as many words as are left.
    fn read_or_tell(&mut self, item: &[u8]) -> Item {
        self.read(item).map_err(|invalid| {
            self.told += invalid.to_string().len();
            if self.told <= EXPECTED_BYTES { invalid } else { json!({ "result": "invalid" }) }
        })
    }

    fn end(&mut self, trouble: &str) {
        (self.ended, self.trouble) = (true, Some(trouble.to_owned()));
    }

    /// Lets the client finish what it sends after trouble: a close in the middle of it would take the answers with it.
    async fn discard(&mut self) {
        let mut left = DISCARDED;
        // Nor may it trickle on.
        while let Ok(Ok(Some(Ok(frame)))) = timeout_at(self.until, self.pace.wait(self.body.frame())).await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                return;
            }
        }
    }

    fn read(&self, item: &[u8]) -> Item {
        let fields: Map<String, Value> =
            serde_json::from_slice(item).map_err(|_| invalid(&[("(the item)", "expected a JSON object")]))?;
        draft(&self.app, fields, self.key).map_err(|problem| match problem {
            Problem::App(AppError::Invalid(fields)) => {
                let fields: Vec<_> =
                    fields.iter().map(|one| (one.field.as_str(), one.expected.as_str())).collect();
                invalid(&fields)
            }
            _ => invalid(&[]),
        })
    }
}

/// What was expected, field by field; of an item with very much wrong in it only that it is.
fn invalid(fields: &[(&str, &str)]) -> Value {
    let expected: Map<_, _> =
        fields.iter().map(|(field, expected)| ((*field).to_owned(), json!(expected))).collect();
    let told = json!({ "result": "invalid", "expected": expected });
    if fields.len() <= FIELDS_TOLD && told.to_string().len() <= INVALID_BYTES {
        return told;
    }
    json!({ "result": "invalid", "expected": { "(the item)": "expected fewer wrong fields, and shorter ones" } })
}

/// Creates what can be created; the answers in the order of the items.
async fn create_batch(app: Arc<App>, items: Vec<Item>) -> Vec<Vec<u8>> {
    let mut drafts = Vec::with_capacity(items.len());
    let mut refused = |item: Item| match item {
        Ok(draft) => {
            drafts.push(draft);
            None
        }
        Err(invalid) => Some(invalid.to_string().into_bytes()),
    };
    let refused: Vec<Option<Vec<u8>>> = items.into_iter().map(&mut refused).collect();
    let mut created = app.links.creator.create_many(drafts).await.into_iter();
    let answer = |refused: Option<Vec<u8>>| match refused {
        None => created.next().map(|created| words(&app, created)),
        refused => refused,
    };
    refused.into_iter().filter_map(answer).collect()
}

/// Neither codes nor the public URL need an escape in JSON.
fn words(app: &App, created: Result<Created, CreateError>) -> Vec<u8> {
    let result = match created {
        Ok(Created { code, .. }) => {
            let url = &app.public_url;
            return format!(r#"{{"result":"created","shortCode":"{code}","shortUrl":"{url}/{code}"}}"#)
                .into_bytes();
        }
        Err(CreateError::Exhausted) => "exhausted",
        // No item picks its code or comes with a key; it would be told like this.
        Err(CreateError::Taken | CreateError::KeyReused) => "taken",
        Err(
            CreateError::NoNumber
            | CreateError::NoStore
            | CreateError::Overloaded
            | CreateError::NoTurn(_)
            | CreateError::NoDomain,
        ) => "unavailable",
    };
    json!({ "result": result }).to_string().into_bytes()
}

/// Writes answers in the form of the questions.
struct Writer {
    form: Form,
    started: bool,
    /// Bytes so far.
    written: usize,
    answers: mpsc::Sender<Piece>,
}

impl Writer {
    /// Whether there is still somebody to read, and room for what is not read yet.
    fn write(&mut self, answers: Vec<Vec<u8>>) -> bool {
        let mut bytes = Vec::new();
        for answer in answers {
            bytes.extend_from_slice(self.before_item());
            bytes.extend(answer);
            if self.form == Form::Lines {
                bytes.push(b'\n');
            }
        }
        self.written += bytes.len();
        let has_room = self.written <= ANSWER_BYTES;
        let piece = if has_room { Ok(bytes.into()) } else { Err(BrokenOff) };
        self.answers.try_send(piece).is_ok() && has_room
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
