//! The APIs that clients of other shorteners speak: YOURLS, Kutt v2 and Bitly v4.
//!
//! 1. Each API is a module, which translates between its calls and the use cases of the crate
//!    `app`. Keys, scopes and call limits are those of the REST API.
//! 2. An API is answered only if the operator has turned it on (`--compat`). Then its paths are
//!    no slugs, whichever links exist.
//! 3. A key in an address is logged by proxies, so only one that may do little is accepted there
//!    ([`yourls`]).
//!
//! Shapes are those of the programs' sources: YOURLS 1.10, Kutt 3, and Bitly's API reference.

mod bitly;
mod call;
mod failure;
mod fields;
mod kutt;
mod link;
mod yourls;

use std::{net::IpAddr, pin::Pin, sync::Arc};

use api::Api;
use daemon::traces::in_current;
use futures_util::future::BoxFuture;
use hyper::{
    Request, StatusCode,
    body::Incoming,
    header::{CACHE_CONTROL, HeaderValue, X_CONTENT_TYPE_OPTIONS},
};
use links::is_given_to;
use web::{Answer, empty, request_durations::RouteName};

use call::Call;
use failure::Failure;

codes::named_values! {
    /// An API of another shortener, by its name in `--compat`.
    pub enum Facade {
        /// YOURLS.
        Yourls => "yourls",
        /// Kutt v2.
        Kutt => "kutt",
        /// Bitly v4.
        Bitly => "bitly",
    }
}

impl Facade {
    /// Returns the path of the API without its first slash; with a slash at its end, all below it.
    /// None is a code, so that links which are cached by their codes can be answered before.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Yourls => "yourls-api.php",
            Self::Kutt => "api/v2/",
            Self::Bitly => "v4/",
        }
    }

    /// Reads the key and the body of a call. That of a call that is refused is left unread.
    async fn admit(self, call: &mut Call, mut body: Incoming) -> Result<(), Failure> {
        let key = match self {
            Self::Yourls => {
                call.read(body).await?;
                yourls::authenticate(call).await?;
                call.http.release_body();
                return Ok(());
            }
            Self::Kutt if kutt::is_open(call) => return Ok(()),
            Self::Kutt => call.header("x-api-key"),
            Self::Bitly => bitly::key(call),
        };
        if let Err(failure) = call.authenticate(key).await {
            call.http.leave_unread(&mut body).await;
            return Err(failure);
        }
        call.read(body).await
    }

    async fn answer(self, mut call: Call) -> Answer {
        let answered = match self {
            Self::Yourls => yourls::answer(&call).await,
            Self::Kutt => kutt::answer(&call).await,
            Self::Bitly => bitly::answer(&call).await,
        };
        let kept = answered.and_then(|mut answer| {
            call.http.keep(&mut answer)?;
            Ok(answer)
        });
        let answer = kept.unwrap_or_else(|failure| self.refuse(&call, &failure));
        call.http.finish(answer)
    }

    /// Answers a call that failed, in the words of the API.
    fn refuse(self, call: &Call, failure: &Failure) -> Answer {
        failure.finish(match self {
            Self::Yourls => yourls::refuse(call, failure),
            Self::Kutt => kutt::refuse(failure),
            Self::Bitly => bitly::refuse(failure),
        })
    }
}

/// Parses a name in `--compat`.
pub fn parse_facade(text: &str) -> Result<Facade, String> {
    Facade::parse(text.trim()).ok_or_else(|| format!("no such API: use {}", Facade::NAMES.join(", ")))
}

/// The APIs that are turned on.
pub struct Facades(Vec<(Facade, RouteName)>);

impl Facades {
    /// Turns APIs on.
    pub fn new(enabled: &[Facade]) -> Self {
        let named = |facade: &Facade| (*facade, RouteName::new(&format!("compat_{}", facade.as_str())));
        Self(enabled.iter().map(named).collect())
    }

    /// Returns whether a path belongs to one of them.
    pub fn takes(&self, path: &str) -> bool {
        self.find(path).is_some()
    }

    fn find(&self, path: &str) -> Option<&(Facade, RouteName)> {
        // Clients put a path with a slash behind an address that ends in one.
        let path = path.strip_prefix('/')?.trim_start_matches('/');
        self.0.iter().find(|(facade, _)| is_given_to(facade.path(), path))
    }

    /// Answers a request for a path that belongs to one of them.
    pub fn route<'a>(
        &'a self,
        api: &'a Arc<Api>,
        client: IpAddr,
        request: Request<Incoming>,
    ) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let Some((facade, name)) = self.find(head.uri.path()) else {
                return empty(StatusCode::NOT_FOUND);
            };
            let facade = *facade;
            let mut call = Call::new(api, client, head);
            let mut answer = match facade.admit(&mut call, body).await {
                Ok(()) => {
                    // Away from the listener's thread, and to its end even if the client has gone.
                    let task: Pin<Box<dyn Future<Output = Answer> + Send>> = Box::pin(facade.answer(call));
                    let answered = api.runtime.spawn(in_current(task)).await;
                    answered.unwrap_or_else(|_| empty(StatusCode::INTERNAL_SERVER_ERROR))
                }
                Err(failure) => call.http.finish(facade.refuse(&call, &failure)),
            };
            if answer.status() == StatusCode::SERVICE_UNAVAILABLE {
                api.metrics.unavailable.increment(1);
            }
            // Answers depend on a key, which shared caches do not know.
            answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            // They have texts of callers, and are on the host of the management pages.
            answer.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            answer.extensions_mut().insert(name.clone());
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_paths_of_the_apis_that_are_on_are_taken() {
        let all = Facades::new(&Facade::ALL);
        for (path, expected) in [
            ("/yourls-api.php", true),
            ("//yourls-api.php", true),
            ("//v4/shorten", true),
            ("/yourls-api.php/x", false),
            ("/api/v2/links", true),
            ("/api/v2", false),
            ("/api/v3/links", false),
            ("/v4/shorten", true),
            ("/v4", false),
            ("/v40", false),
            ("/", false),
        ] {
            assert_eq!(all.takes(path), expected, "{path}");
            assert!(!Facades::new(&[]).takes(path), "{path}");
        }
        assert!(!Facades::new(&[Facade::Bitly]).takes("/api/v2/links"));
        assert_eq!(parse_facade(" kutt "), Ok(Facade::Kutt));
        assert!(parse_facade("polr").unwrap_err().ends_with("use yourls, kutt, bitly"));
    }
}
