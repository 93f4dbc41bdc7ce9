//! What ports do in their own way on Postgres, except [`Links`](crate::Links).

use async_trait::async_trait;
use jiff::Timestamp;
use numbers::StoreEpoch;
use tokio::{sync::watch, time::Instant};

use super::{
    PostgresStore, admin,
    budget::Server,
    replica::Position,
    transaction::{self, DEADLINE},
};
use crate::{
    Lane, Register, Result, Settings, SettingsPoll, SettingsVersion, StoreError, operation::run, sql::domains,
};

#[async_trait]
impl Register for PostgresStore {
    async fn epoch(&self) -> Result<StoreEpoch> {
        self.within(async { admin::epoch(&*self.connection().await?).await }).await
    }

    fn server_start(&self) -> Option<watch::Receiver<Option<Timestamp>>> {
        Some(self.server_start.subscribe())
    }
}

#[async_trait]
impl Settings for PostgresStore {
    async fn poll_settings(&self, known: Option<&SettingsVersion>) -> Result<SettingsPoll> {
        // Every resolver polls four times a second, and the version rarely changes.
        let sent = Instant::now();
        let rows = self.settings_reader.read(DEADLINE, &[]).await?;
        self.address.observer.answered(Server::Database);
        let row =
            rows.first().ok_or_else(|| StoreError::Corrupt("table settings_version is empty".to_owned()))?;
        let row = transaction::row(row)?;
        let version = SettingsVersion { number: row.int(0)?, copy: row.text(1)?.to_owned() };
        let start = row.time(4)?;
        self.positions.note(sent, Position { start, at: row.int(3)? }, row.int(5)?);
        let started = Some(start);
        self.server_start.send_if_modified(|seen| std::mem::replace(seen, started) != started);
        let settings = match known == Some(&version) {
            true => None,
            false => {
                run(self, Lane::Read, known.cloned(), |sql, known| {
                    Box::pin(domains::shared_settings(sql, known.as_ref()))
                })
                .await?
            }
        };
        if let Some(settings) = &settings {
            self.note_subscriptions(&settings.webhooks);
        }
        Ok(SettingsPoll { now: row.time(2)?, settings })
    }
}
