//! Admits a call, and answers it with the handler of its route.
//!
//! The key and its scope are checked first, then the body is read, within the limit of its route. A
//! client without a key, or with one that may not make the call, holds no memory but that of a
//! head. (Shlink reads the body first: there a malformed body is reported before a missing key,
//! here after it.)

use std::sync::Arc;

use hyper::body::{Body as _, Incoming};

use super::{
    call::Call,
    problem::Problem,
    query::Query,
    route::{Handler, Route},
};
use web::Answer;

impl Call {
    /// Reads the body of a call with a key. That of a call that is refused is left unread.
    pub(super) async fn admit(&mut self, route: &Route, mut body: Incoming) -> Result<(), Problem> {
        if body.is_end_stream() {
            return Ok(());
        }
        let Handler::Keyed(scope, _) = route.handler else {
            self.leave_unread(&mut body).await;
            return Ok(());
        };
        if let Err(problem) = self.authorize(scope).await {
            self.leave_unread(&mut body).await;
            return Err(problem);
        }
        self.read_body(body, route.body_bytes).await
    }

    pub(super) async fn answer(mut self, route: Arc<Route>) -> Answer {
        let executed = self.execute(&route).await;
        let kept = executed.and_then(|mut answer| self.keep(&mut answer).map(|()| answer));
        self.finish(kept.unwrap_or_else(Problem::into_answer))
    }

    /// Refuses a query with a parameter that the call does not have. A caller without a key does
    /// not come here: what is open to all has no parameters, and health checks may add some.
    pub(super) fn check_query(&self, known: &[String]) -> Result<(), Problem> {
        if self.uri.query().is_none() { Ok(()) } else { Query::of(&self.uri).check_names(known) }
    }

    async fn execute(&self, route: &Route) -> Result<Answer, Problem> {
        let known = &route.parameters;
        match route.handler {
            Handler::Open(handler) => handler(self).await,
            Handler::Keyed(scope, handler) => {
                let by = self.authorize(scope).await?;
                self.check_query(known)?;
                handler(self, by).await
            }
            Handler::KeyInQuery(scope, handler) => {
                let query = Query::of(&self.uri);
                let key = query.text("apiKey").ok_or(Problem::NoKeyInQuery)?;
                let by = self.authorize_key(Some(key.as_bytes()), scope).await?;
                query.check_names(known)?;
                handler(self, by).await
            }
            // The router hands these on before their bodies are read.
            Handler::Streamed(_) => Err(Problem::INTERNAL),
        }
    }
}
