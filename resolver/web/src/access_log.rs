//! The access log: an event for a share of requests.
//!
//! The address of the client and the path are personal data, and a path may be all that protects a
//! link. So the log is off by default. Headers and queries are never logged: API keys and passwords
//! are in them.

use std::{net::IpAddr, time::Duration};

use hyper::{Method, StatusCode};

/// Which requests are logged.
#[derive(Clone, Copy, Debug, Default)]
pub struct AccessLog {
    /// The part of requests, of 2³² − 1.
    threshold: u32,
}

/// What is logged of a request.
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

impl AccessLog {
    /// Logs this share of requests, from 0 to 1.
    #[must_use]
    pub fn of(share: f64) -> Self {
        // The product is between zero and the largest number, so nothing is cut off.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
        let threshold = (share.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u32;
        Self { threshold }
    }

    /// Returns whether to log the next request.
    #[inline]
    #[must_use]
    pub fn takes_next(self) -> bool {
        match self.threshold {
            0 => false,
            u32::MAX => true,
            threshold => getrandom::u32().is_ok_and(|drawn| drawn < threshold),
        }
    }

    /// Logs a request.
    pub fn write(access: &Access<'_>) {
        let Access { request_id, client, method, path, route, status, duration } = access;
        tracing::info!(
            target: "access",
            request_id,
            %client,
            %method,
            // Quoted: a path may contain whatever a client sends.
            ?path,
            route,
            status = status.as_u16(),
            seconds = duration.as_secs_f64(),
            "request"
        );
    }
}
