//! Explanations: what the answer to an example of a request would be, and why.
//!
//! 1. The functions that decide about requests decide about the example too. Only what follows a
//!    decision is left out: no visit is recorded or taken from a limit, and nothing is counted.
//! 2. A process for the API alone explains what its own flags say.

use std::sync::Arc;

use daemon::Recorder;
use hyper::{
    StatusCode,
    header::{HeaderValue, LOCATION},
};
use links::{Example, Explanation, Finding};
use lookup::metrics::Metrics;
use web::{
    Answer,
    client_limits::{ClientLimits, Clients},
    visitor_page::VisitorPage,
};

use crate::{
    Redirector,
    asked::{Asked, Noted, StepLog},
    fallback_page::{Unmatched, ask_password, catches_root, fallback_redirect},
    follow::{Decision, check_visits_left, decide, redirect, status_of, target},
    social_preview::social_preview,
    steps::domain_step,
    visit::Refusal,
};

impl Redirector {
    /// Returns a redirector that decides as this one does. Its metrics are not exported, and it has
    /// no budget of unknown codes.
    #[must_use]
    pub fn for_examples(&self) -> Self {
        let metrics = Metrics::new(&Recorder::new());
        let limits = ClientLimits { unknown_codes: 0, ..self.clients.limits.clone() };
        let clients = Arc::new(Clients::new(limits, metrics.clients_unread.clone()));
        Self { clients, metrics, ..self.clone() }
    }

    /// Explains the answer to an example of a GET request. Its path is not one that the service
    /// itself answers ([`links::is_of_service`]). Call it on [`Redirector::for_examples`].
    pub async fn explain(&self, example: &Example) -> Explanation {
        let log = StepLog::default();
        let asked = Asked {
            scheme: example.scheme,
            client: example.ip,
            host: Some(&example.host),
            path: &example.path,
            query: &example.query,
            user_agent: example.user_agent.as_bytes(),
            languages: example.accept_language.as_bytes(),
            country: example.country.as_deref(),
            is_head: false,
            is_deliberate: false,
            at: example.at,
            log: Some(&log),
        };
        let answer = match asked.path {
            "/" if !catches_root(self, asked.host) => home(self, &asked),
            _ => answer(self, &asked).await.unwrap_or_else(|refusal| *refusal.answer),
        };
        let Noted { steps, link } = log.into_noted();
        let location = answer.headers().get(LOCATION).map(HeaderValue::as_bytes);
        Explanation {
            steps,
            link,
            status: answer.status().as_u16(),
            location: location.map(|location| String::from_utf8_lossy(location).into_owned()),
            page: answer.extensions().get::<VisitorPage>().map(VisitorPage::name),
        }
    }
}

async fn answer(redirector: &Redirector, asked: &Asked<'_>) -> Result<Answer, Refusal> {
    match decide(redirector, asked).await? {
        Decision::Show(answer) => Ok(answer),
        Decision::AskPassword(found, now) => {
            // For the steps of a visitor with the password.
            let _ = target(redirector, asked, now, &found);
            Ok(ask_password(false))
        }
        Decision::Lead(found, now) => {
            let to = target(redirector, asked, now, &found)?;
            if asked.unfurls(&found.link) {
                return Ok(social_preview(redirector, asked, &found.link));
            }
            check_visits_left(redirector, &found, asked).await?;
            Ok(redirect(status_of(redirector, &found.link), to.location))
        }
    }
}

fn home(redirector: &Redirector, asked: &Asked<'_>) -> Answer {
    let (visited, _) = redirector.domain_cache.place(asked.host);
    asked.step(|| domain_step(redirector, asked, &visited));
    asked.step(|| (Finding::NameRoot, String::new()));
    fallback_redirect(redirector, &visited, &Unmatched::Base, asked)
        .unwrap_or_else(|| VisitorPage::Home.answer(StatusCode::OK))
}
