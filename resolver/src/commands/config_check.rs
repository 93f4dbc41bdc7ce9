//! `resolver config check`

use std::fmt::Write as _;

use crate::{Error, config::Config};

pub(super) fn run(config: &Config) -> Result<String, Error> {
    let settings = config.settings()?;
    let issuer = if config.issuer.is_empty() { "embedded".to_owned() } else { config.issuer.join(",") };
    let mut text = String::new();
    for (name, value) in [
        ("listen", config.listen.to_string()),
        ("admin-listen", config.admin_listen.to_string()),
        ("issuer", issuer),
        ("database", config.database.database.to_string()),
        ("holder-id", settings.holder.to_string()),
        ("public-url", settings.public_url),
        ("redirect-status", settings.redirect_status.as_u16().to_string()),
        ("code-key-file", settings.code_key_file.display().to_string()),
        ("default-keyspace", settings.default_keyspace.to_string()),
        ("drain-delay", format!("{:?}", config.drain_delay)),
        ("threads", settings.threads.to_string()),
    ] {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<18}{value}");
    }
    for keyspace in &settings.keyspaces {
        let _ = writeln!(text, "{:<18}{keyspace} ({} codes)", "keyspace", keyspace.capacity());
    }
    Ok(text)
}
