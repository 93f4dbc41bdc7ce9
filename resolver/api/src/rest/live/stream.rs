//! A stream of live visits to one client, as server-sent events (HTML, section 9.2).
//!
//! 1. Its task runs on the daemon's runtime, and hands one piece at a time to the connection. A
//!    connection without events takes no time of its listener's thread but for a comment now and
//!    then.
//! 2. The key is looked up again every few seconds, as for a call. The stream ends when the key was
//!    revoked, has expired or has other limits.
//! 3. It ends when the process begins to stop, so that a rolling update does not wait for it, and
//!    when its client does not take a piece in time.
//! 4. A connection between two events counts as being answered ([`Body::guard`]), so that it is
//!    neither idle nor closed to make room.

use std::{sync::Arc, time::Duration};

use app::live::{LiveEvent, LiveFilter, LiveVisits, Refusal, Start, Subscription};
use hyper::{
    StatusCode,
    body::Bytes,
    header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue},
};
use links::api_key::Grant;
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout},
};

use super::{
    super::{call::Call, problem::Problem},
    message::{self, Dialect},
};
use crate::{Api, authenticate::is_still_granted};
use app::AppError;
use web::{Answer, Body, Piece, empty};

pub(in super::super) const EVENT_STREAM: &str = "text/event-stream";
/// The pause after which a comment is sent, so that proxies and clients do not take the stream for
/// dead. Shlink's older clients wait 45 s.
pub(in super::super) const HEARTBEAT: Duration = Duration::from_secs(15);
pub(in super::super) const LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// The time that a client waits before it connects again, in milliseconds.
pub(in super::super) const RETRY_MS: u32 = 2_000;
const PIECE_TIME: Duration = Duration::from_secs(30);
/// The time in which Shlink's web client ends a stream because of the first event that it was sent,
/// to begin another one: a page with a hundred thousand visits draws them all before, which takes
/// two seconds. An event that it is sent meanwhile would be lost.
const RECONNECTS_WITHIN: Duration = Duration::from_secs(5);
/// The pause between single events to a client that has not done so.
const BETWEEN_EVENTS: Duration = Duration::from_millis(200);
/// The interval at which the key is looked up. It is also looked up before events are sent.
const KEY_CHECK: Duration = Duration::from_secs(1);
/// Lookups of a key that may fail in a row: a database that does not answer stores no visits
/// either.
const LOOKUPS_FAILED_MAX: u32 = 60;

/// Answers a call with a stream, for at most `open_for`. Returns as well whether it surely
/// continues after the visit that it was to continue after.
pub(in super::super) fn open(
    call: &Call,
    live: &Arc<LiveVisits>,
    dialect: Dialect,
    filter: LiveFilter,
    start: Start,
    open_for: Duration,
) -> Result<(Answer, bool), Problem> {
    let by = filter.by.clone();
    let (subscription, held) = live.subscribe(call.client, filter, start)?;
    let is_complete = subscription.is_complete;
    let (to, pieces) = mpsc::channel(1);
    let stream = Stream {
        api: Arc::clone(&call.api),
        dialect,
        by,
        subscription,
        until: Instant::now() + open_for.min(LONGEST),
        quiet_until: Instant::now(),
        paused_until: Instant::now(),
        has_stayed: false,
        lookups_failed: 0,
        to,
    };
    call.api.runtime.spawn(stream.run());
    let mut answer = head();
    *answer.body_mut() = Body::stream(pieces, held);
    Ok((answer, is_complete))
}

/// Builds the head of a stream, which is the answer to HEAD.
pub(in super::super) fn head() -> Answer {
    let mut answer = empty(StatusCode::OK);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies such as nginx would collect events before they pass them on.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    answer
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Full(share) => share.into(),
            Refusal::Closing => Self::App(AppError::Unavailable),
        }
    }
}

struct Stream {
    api: Arc<Api>,
    dialect: Dialect,
    /// The key as it was when the stream began.
    by: Grant,
    subscription: Subscription,
    until: Instant,
    /// When a comment is due if nothing was sent before.
    quiet_until: Instant,
    /// When the next events are sent at the earliest.
    paused_until: Instant,
    /// Whether the client has been sent an event before.
    has_stayed: bool,
    lookups_failed: u32,
    to: mpsc::Sender<Piece>,
}

impl Stream {
    /// Sends events until the stream has to end.
    async fn run(mut self) {
        let mut goes_on = self.send(format!("retry: {RETRY_MS}\n\n")).await;
        let mut key_checks = interval_at(Instant::now() + KEY_CHECK, KEY_CHECK);
        key_checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while goes_on {
            goes_on = tokio::select! {
                biased;
                () = self.to.closed() => false,
                () = sleep_until(self.until) => false,
                _ = key_checks.tick() => self.has_its_key().await,
                events = next_events(&mut self.subscription, self.paused_until) => match events {
                    Some(events) => self.send_events(&events).await,
                    None => false,
                },
                () = sleep_until(self.quiet_until) => self.send(":\n\n").await,
            };
        }
    }

    async fn send_events(&mut self, events: &[LiveEvent]) -> bool {
        let mut written = Vec::new();
        let has_links = self.by.may_read();
        for event in events {
            message::write(&self.api, self.dialect, has_links, event, &mut written);
        }
        if self.dialect == Dialect::Mercure && events.len() == 1 {
            let is_first = !std::mem::replace(&mut self.has_stayed, true);
            let pause = if is_first { RECONNECTS_WITHIN } else { BETWEEN_EVENTS };
            self.paused_until = Instant::now() + pause;
        }
        self.has_its_key().await && self.send(written).await
    }

    /// Hands a piece to the connection, and returns whether that took it in time.
    async fn send(&mut self, events: impl Into<Bytes>) -> bool {
        self.quiet_until = Instant::now() + HEARTBEAT;
        matches!(timeout(PIECE_TIME, self.to.send(Ok(events.into()))).await, Ok(Ok(())))
    }

    async fn has_its_key(&mut self) -> bool {
        match is_still_granted(&self.api, &self.by).await {
            Ok(is_granted) => {
                self.lookups_failed = 0;
                is_granted
            }
            Err(_) => {
                self.lookups_failed += 1;
                self.lookups_failed <= LOOKUPS_FAILED_MAX
            }
        }
    }
}

/// Waits for the next events until after the pause. A call that is dropped has taken none.
async fn next_events(subscription: &mut Subscription, paused_until: Instant) -> Option<Vec<LiveEvent>> {
    sleep_until(paused_until).await;
    subscription.next().await
}
