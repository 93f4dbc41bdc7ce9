//! Flags of webhooks.

use std::{path::PathBuf, sync::Arc};

use clap::{Args, ValueEnum};
use cli::Error;
use ipnet::IpNet;
use webhooks::{Policy, Roots, Sender};

use super::network::parse_network;

/// Flags of webhooks.
#[derive(Clone, Debug, Default, Args)]
pub struct WebhookConfig {
    /// Networks that webhooks may reach although they are not public, such as 10.0.0.0/8. Other
    /// addresses that are not public are refused, so that a webhook cannot call servers of the
    /// operator.
    #[arg(long, env = "RESOLVER_WEBHOOK_NETWORKS", value_parser = parse_network, value_name = "CIDR[,CIDR…]", value_delimiter = ',')]
    pub webhook_networks: Vec<IpNet>,
    /// Allow webhooks with http, whose events can be read on the way.
    #[arg(long, env = "RESOLVER_WEBHOOK_HTTP", value_enum, default_value_t = WebhookHttp::Off)]
    pub webhook_http: WebhookHttp,
    /// File with the certificate authorities of webhooks in PEM, in place of Mozilla's list. For an
    /// authority of your own beside the public ones, the file needs both.
    #[arg(long, env = "RESOLVER_WEBHOOK_CA", value_name = "FILE")]
    pub webhook_ca: Option<PathBuf>,
}

/// Whether webhooks may use http.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum WebhookHttp {
    /// http and https.
    On,
    /// https only.
    #[default]
    Off,
}

impl WebhookConfig {
    /// Creates the sender that all attempts share.
    ///
    /// # Errors
    /// Returns [`Error::Config`] if the file of authorities cannot be read or has none.
    pub fn sender(&self) -> Result<Arc<Sender>, Error> {
        let policy = Policy {
            allowed_networks: self.webhook_networks.clone(),
            allow_http: self.webhook_http == WebhookHttp::On,
        };
        Ok(Arc::new(Sender::new(policy, self.roots()?)))
    }

    fn roots(&self) -> Result<Roots, Error> {
        let Some(path) = &self.webhook_ca else { return Ok(Roots::mozilla()) };
        let wrong = |reason: String| Error::Config {
            flag: "--webhook-ca",
            value: path.display().to_string(),
            reason,
        };
        let pem = std::fs::read(path).map_err(|error| wrong(format!("expected a file: {error}")))?;
        Roots::from_pem(&pem).map_err(|error| wrong(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_authorities_is_read_at_the_start() {
        let with = |path: &str| WebhookConfig { webhook_ca: Some(path.into()), ..WebhookConfig::default() };
        assert!(WebhookConfig::default().sender().is_ok());
        let authority = concat!(env!("CARGO_MANIFEST_DIR"), "/webhooks/testdata/authority.pem");
        assert!(with(authority).sender().is_ok());
        for (path, part) in [("/nowhere.pem", "expected a file"), (file!(), "certificate")] {
            let path =
                if path == file!() { concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml") } else { path };
            let error = with(path).sender().unwrap_err().to_string();
            assert!(error.contains("--webhook-ca") && error.contains(part), "{error}");
        }
    }
}
