//! The links of a running source, page by page, as the JSON documents that a file would have.
//!
//! 1. The list changes while it is read: a deletion moves later links to an earlier page, and Kutt,
//!    YOURLS and Dub put new ones on the first. So the list is read again until a pass brings no
//!    link that is new. Each link is passed on once.
//! 2. Memory holds one page, and a 64-bit hash of each link that was read.
//! 3. There is no position to resume from, because pages are not stable between runs. After a kill,
//!    the next run starts at the first page and skips what is stored. A position given by hand
//!    would save nothing: the second pass reads the pages before it.

use std::{
    collections::HashSet,
    hash::{BuildHasher as _, RandomState},
    io::{self, Cursor, Read},
};

use indicatif::ProgressBar;
use serde_json::Value;
use transfer::LinkPage;

use super::source::{SourceError, SourceServer, apart};
use crate::{Error, output::progress_bar};

/// The maximum number of times that the list is read.
const PASSES_MAX: u32 = 5;

/// The links of a running source. As a reader, with their redirect rules.
pub(super) struct LivePages {
    server: SourceServer,
    pub(super) bar: ProgressBar,
    /// The first page, until it is passed on.
    first: Option<LinkPage>,
    seen: HashSet<u64>,
    hasher: RandomState,
    /// The pages and links that this pass has read.
    read: (u64, u64),
    has_new_links: bool,
    passes_left: u32,
    ready: Cursor<Vec<u8>>,
}

impl LivePages {
    /// Requests the first page of a list that is read until a pass finds nothing new.
    pub(super) async fn open(server: SourceServer) -> Result<Self, Error> {
        Self::open_for(server, PASSES_MAX).await
    }

    /// Requests the first page of a list that is read once.
    pub(super) async fn open_once(server: SourceServer) -> Result<Self, Error> {
        Self::open_for(server, 1).await
    }

    async fn open_for(server: SourceServer, passes_left: u32) -> Result<Self, Error> {
        let (server, first, total) = apart(move || {
            let first = server.page((0, 0))?;
            let total = first.total.map_or_else(|| server.count(), Ok)?;
            Ok((server, first, total))
        })
        .await?;
        Ok(Self {
            server,
            bar: progress_bar(Some(total), "{pos}/{len} links"),
            first: Some(first),
            seen: HashSet::new(),
            hasher: RandomState::new(),
            read: (0, 0),
            has_new_links: false,
            passes_left,
            ready: Cursor::default(),
        })
    }

    /// Returns the new links of the next page; `None` after the last pass.
    pub(super) async fn turn(mut self) -> Result<(Self, Option<Vec<Value>>), Error> {
        apart(move || self.next_page().map(|page| (self, page))).await
    }

    fn next_page(&mut self) -> Result<Option<Vec<Value>>, SourceError> {
        if self.passes_left == 0 {
            return Ok(None);
        }
        let LinkPage { mut items, total } = match self.first.take() {
            Some(page) => page,
            None => self.server.page(self.read)?,
        };
        let (pages, links) = (self.read.0 + 1, self.read.1 + items.len() as u64);
        let is_last = items.is_empty() || total.is_some_and(|total| links >= total);
        if let Some(total) = total {
            self.bar.set_length(total);
        }
        self.bar.set_position(links);
        items.retain(|item| {
            let identity = self.server.source.identity(item);
            self.seen.insert(self.hasher.hash_one(identity))
        });
        self.has_new_links |= !items.is_empty();
        self.read = (pages, links);
        if is_last {
            self.passes_left = if self.has_new_links { self.passes_left - 1 } else { 0 };
            (self.read, self.has_new_links) = ((0, 0), false);
        }
        Ok(Some(items))
    }
}

impl Read for LivePages {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.ready.read(to)?;
            if count > 0 || to.is_empty() {
                return Ok(count);
            }
            let Some(mut items) = self.next_page()? else { return Ok(0) };
            for item in &mut items {
                self.server.add_rules(item)?;
            }
            self.ready = Cursor::new(Value::Array(items).to_string().into_bytes());
        }
    }
}
