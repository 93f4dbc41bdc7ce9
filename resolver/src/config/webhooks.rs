//! The receivers that webhooks may have.

use std::sync::Arc;

use cli::Error;
use webhooks::{Policy, Roots, Sender};

use super::{Config, entries::Entries};

impl Config {
    /// Creates the sender that all attempts share.
    ///
    /// # Errors
    /// Returns [`Error::Config`] if the file of authorities cannot be read or has none.
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

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::config::Cli;

    #[test]
    fn a_file_of_authorities_is_read_at_the_start() {
        let with = |path: &str| {
            let cli = Cli::try_parse_from(["resolver", "--webhooks", &format!("ca={path}")]).unwrap();
            cli.serve.webhook_sender()
        };
        assert!(with("webhooks/testdata/authority.pem").is_ok());
        for (path, part) in [("/nowhere.pem", "No such file"), ("Cargo.toml", "certificate")] {
            let error = with(path).err().unwrap().to_string();
            assert!(error.contains("--webhooks ca=") && error.contains(part), "{error}");
        }
    }
}
