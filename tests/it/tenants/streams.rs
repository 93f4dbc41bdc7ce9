//! The streams of the intruders, open for as long as a run.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use reqwest::RequestBuilder;

use super::{
    marks::{MARK, leak},
    stage::Pair,
};
use crate::rest_calls::call;

pub(super) struct Streams(Vec<Arc<Mutex<String>>>);

impl Streams {
    /// Opens the streams that each intruder may open: that of its key, and the hub's with all
    /// topics.
    pub(super) async fn open(pairs: &[Pair]) -> Self {
        let (mut streams, mut keys) = (Vec::new(), BTreeSet::new());
        for Pair { intruder, .. } in pairs {
            if !keys.insert(intruder.key().to_owned()) {
                continue;
            }
            let live = format!("{}/rest/v3/live/visits", intruder.url());
            streams.push(read(intruder.http().get(live).header("X-Api-Key", intruder.key())).await);
            let info = call(intruder, reqwest::Method::GET, "mercure-info", None).await;
            let Some((url, token)) = info.json().ok().and_then(|info| {
                Some((info["mercureHubUrl"].as_str()?.to_owned(), info["token"].as_str()?.to_owned()))
            }) else {
                continue;
            };
            let topics =
                ["new-visit", "new-orphan-visit"].map(|topic| format!("topic=https://shlink.io/{topic}"));
            let hub = intruder.http().get(format!("{url}?{}", topics.join("&"))).bearer_auth(token);
            streams.push(read(hub).await);
        }
        Self(streams)
    }

    /// Checks what has come since the last call. Nobody visits the links of intruders.
    pub(super) fn check(&self) {
        let mark = BTreeSet::from([MARK.to_owned()]);
        for stream in &self.0 {
            let text = std::mem::take(&mut *stream.lock().unwrap());
            if let Some(found) = leak(&text, &mark, &BTreeSet::new()) {
                panic!("a stream told another tenant's visit: {found}");
            }
        }
    }
}

/// Reads an answer without an end in the background.
async fn read(request: RequestBuilder) -> Arc<Mutex<String>> {
    let text = Arc::new(Mutex::new(String::new()));
    let (mut answer, all) = (request.send().await.unwrap(), Arc::clone(&text));
    tokio::spawn(async move {
        while let Ok(Some(piece)) = answer.chunk().await {
            all.lock().unwrap().push_str(&String::from_utf8_lossy(&piece));
        }
    });
    text
}
