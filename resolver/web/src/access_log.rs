//! The access log: an event for a share of requests.
//!
//! The address of the client and the path are personal data, and a path may be all that protects a
//! link. So the log is off by default. Headers and queries are never logged: API keys and passwords
//! are in them.

use std::{net::IpAddr, time::Duration};

use hyper::{Method, StatusCode};

/// The fields of a request in the access log.
#[derive(Debug)]
pub struct Access<'a> {
    /// The id that the answer has; empty if it has none.
    pub request_id: &'a str,
    /// The client.
    pub client: IpAddr,
    /// The method.
    pub method: &'a Method,
    /// The path, as requested.
    pub path: &'a str,
    /// The route.
    pub route: &'a str,
    /// The status of the answer.
    pub status: StatusCode,
    /// The time to the head of the answer.
    pub duration: Duration,
}

impl Access<'_> {
    /// Logs the request.
    pub fn write(&self) {
        let Self { request_id, client, method, path, route, status, duration } = self;
        tracing::info!(
            target: "access",
            request_id,
            %client,
            %method,
            path,
            route,
            status = status.as_u16(),
            seconds = duration.as_secs_f64(),
            "request"
        );
    }
}
