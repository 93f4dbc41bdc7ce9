//! How long ago each server last answered, which shows an outage while nothing is asked.

use daemon::{Contact, Recorder};
use metrics::{Unit, describe_gauge, gauge};

/// Publishes the age of the last success of each server. Called when a metrics page is requested.
pub fn show_contacts<'a>(recorder: &Recorder, contacts: impl IntoIterator<Item = &'a Contact>) {
    recorder.with(|| {
        describe_gauge!(
            "resolver_last_success_age_seconds",
            Unit::Seconds,
            "Time since a server last did what it was asked for, or an issuer refused it, or since the start: issuer, \
             database, replica, clickhouse, each asked at least every ten seconds. Receivers of webhooks: since their \
             first failure after the last success, 0 without one."
        );
        for contact in contacts {
            let server = contact.server;
            gauge!("resolver_last_success_age_seconds", "server" => server).set(contact.age().as_secs_f64());
        }
    });
}
