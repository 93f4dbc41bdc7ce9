//! Single visits of a file.
//!
//! Refused items count as taken, since the position in a file is the number of its items. So a file
//! is not begun if most of its first visits are of missing links and none is of an existing one:
//! its links have to be imported first, or their domain has another name here.

use std::{io, ops::ControlFlow, path::Path};

use ingest::import::{BATCH, ImportedVisit};
use tokio::{sync::mpsc, task::spawn_blocking};
use transfer::{RowError, SingleVisit, each_visit};
use visit_store::Producer;

use super::{Input, Session, failed, imported, source_id};
use crate::{
    Error,
    import::{PIECE_BYTES, PIECES},
    wrong_value,
};

/// Some consecutive items, at most [`BATCH`] and about [`PIECE_BYTES`] bytes.
type Piece = Vec<Result<SingleVisit, RowError>>;

impl Session {
    /// Imports the visits of a file, whose name is the digest of its content.
    pub(super) async fn import_file(
        &mut self,
        path: &Path,
        Input { name, reader, bar }: Input,
    ) -> Result<(), Error> {
        let source = source_id(&["visits of a file", &name]);
        let mut producer = self.import.open(source).await.map_err(failed)?;
        self.bar = bar;
        let (sender, received) = mpsc::channel(PIECES);
        // Reading and parsing wait for the disk, so they run on a thread of their own.
        let reading = spawn_blocking(move || send_pieces(reader, &sender));
        let taken = self.take_pieces(path, received, &mut producer).await;
        let closed = self.import.close(&producer).await;
        taken?;
        closed.map_err(failed)?;
        reading.await.map_err(|_| Error::TaskFailed("reader of the import"))
    }

    async fn take_pieces(
        &mut self,
        file: &Path,
        mut received: mpsc::Receiver<Piece>,
        producer: &mut Producer,
    ) -> Result<(), Error> {
        let mut is_empty = true;
        while let Some(piece) = received.recv().await {
            is_empty &= piece.is_empty();
            self.take_piece(file, piece, producer).await?;
        }
        if is_empty {
            self.report.cut_off = Some("the file has no visits".to_owned());
        }
        Ok(())
    }

    async fn take_piece(&mut self, file: &Path, piece: Piece, producer: &mut Producer) -> Result<(), Error> {
        let (begin, count) = (producer.position, piece.len());
        let (mut to, mut visits, mut unknown) = (begin, Vec::new(), 0);
        for item in piece {
            let place = match &item {
                Ok(visit) => Some(visit.place),
                Err(error) => error.place,
            };
            let Some(place) = place else {
                self.report.cut_off = item.err().map(|error| error.to_string());
                continue;
            };
            if place <= begin {
                self.report.before += 1;
                continue;
            }
            to = place;
            match item {
                Ok(visit) => match self.with_link(visit).await? {
                    Some(visit) => visits.push(visit),
                    None => unknown += 1,
                },
                Err(error) => self.report.refuse(1, &error.to_string()),
            }
        }
        if begin == 0 && visits.is_empty() && unknown * 2 > count {
            let first = self.report.first_reason().unwrap_or_default();
            let reason = format!(
                "{first}, and so for all of its first {count} visits. Import the links first, and name \
                 domains that are the default one here in --default-domain"
            );
            return Err(wrong_value("FILE", file.display(), reason));
        }
        if to > begin {
            self.store(producer, &visits, to, |place| format!("item {place}")).await?;
        }
        Ok(())
    }

    /// Returns a visit with its link here, or refuses it.
    async fn with_link(&mut self, visit: SingleVisit) -> Result<Option<ImportedVisit>, Error> {
        let place = visit.place;
        let Some(code) = visit.code.clone() else {
            self.report.refuse(1, &format!("item {place}: expected a shortCode or a visitedUrl"));
            return Ok(None);
        };
        match self.links.find(visit.domain.as_deref(), &code).await? {
            Some(link) => Ok(Some(imported(visit, link))),
            None => {
                let domain = visit.domain.as_deref().unwrap_or("the default domain");
                self.report.refuse(1, &format!("item {place}: no link {code:?} on {domain} here"));
                Ok(None)
            }
        }
    }
}

/// Reads visits and sends them in pieces, until the input ends or the receiver is gone.
fn send_pieces(reader: impl io::Read, to: &mpsc::Sender<Piece>) {
    let (mut piece, mut bytes) = (Vec::new(), 0);
    each_visit(reader, |visit| {
        bytes += visit.as_ref().map_or(0, SingleVisit::weight);
        piece.push(visit);
        if piece.len() >= BATCH || bytes >= PIECE_BYTES {
            bytes = 0;
            if to.blocking_send(std::mem::take(&mut piece)).is_err() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    });
    // The importer may have stopped.
    let _ = to.blocking_send(piece);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_piece_ends_by_visits_and_by_bytes() {
        let lens = |user_agents: &[usize]| {
            let line = |length: &usize| json!({ "date": "2026-11-25", "userAgent": "x".repeat(*length) });
            let lines: Vec<String> = user_agents.iter().map(|length| line(length).to_string()).collect();
            let (sender, mut received) = mpsc::channel(10);
            send_pieces(lines.join("\n").as_bytes(), &sender);
            drop(sender);
            std::iter::from_fn(|| received.blocking_recv()).map(|piece| piece.len()).collect::<Vec<_>>()
        };
        assert_eq!(lens(&[1; BATCH + 1]), [BATCH, 1]);
        assert_eq!(lens(&[PIECE_BYTES / 2; 3]), [2, 1]);
    }
}
