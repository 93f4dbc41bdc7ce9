//! The receivers that webhooks may have.

use std::sync::Arc;

use cli::Error;
use webhooks::{Policy, Roots, Sender};

use super::{Config, entries::Entries};

impl Config {
    pub(super) fn webhook_sender(&self) -> Result<Arc<Sender>, Error> {
        let given = Entries::of("--webhooks", &["http", "network", "ca"], &self.webhooks)?;
        let policy = Policy { allowed_networks: given.networks("network")?, allow_http: given.has("http")? };
        let roots = given.parse("ca", |path| {
            let pem = std::fs::read(path).map_err(|error| error.to_string())?;
            Roots::from_pem(&pem).map_err(|error| error.to_string())
        })?;
        Ok(Arc::new(Sender::new(policy, roots.unwrap_or_else(Roots::mozilla))))
    }
}
