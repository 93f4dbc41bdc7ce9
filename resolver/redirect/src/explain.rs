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
use links::{Example, Explanation, Finding, Link, Step};
use lookup::metrics::Metrics;
use web::{
    Answer,
    client_limits::{ClientLimits, Clients},
    visitor_page::VisitorPage,
};

use crate::{
    Redirector,
    asked::{Asked, Trace},
    fallback_page::{Unmatched, ask_password, fallback_redirect},
    follow::{Decision, check_visits_left, decide, redirect, status_of, target},
    qr_code::QrCodeLimits,
    robots::Robots,
    steps::domain_step,
    visit::Refusal,
};

/// The steps of a decision, as they are told.
#[derive(Default)]
struct Told {
    steps: Vec<Step>,
    link: Option<Arc<Link>>,
}

impl Trace for Told {
    fn step(&mut self, step: impl FnOnce() -> (Finding, String)) {
        let (finding, detail) = step();
        self.steps.push(Step { finding, detail });
    }

    fn found(&mut self, link: &Arc<Link>) {
        self.link = Some(Arc::clone(link));
    }
}

impl Redirector {
    /// Returns a redirector that decides as this one does. It has metrics that nobody reads, and no
    /// budget of unknown codes.
    #[must_use]
    pub fn for_examples(&self) -> Self {
        let metrics = Metrics::new(&Recorder::new());
        let limits = ClientLimits { unknown_codes: 0, ..self.clients.limits.clone() };
        Self {
            lookup: Arc::clone(&self.lookup),
            domain_cache: Arc::clone(&self.domain_cache),
            passwords: Arc::clone(&self.passwords),
            visit_limiter: Arc::clone(&self.visit_limiter),
            visits: Arc::clone(&self.visits),
            catalog: Arc::clone(&self.catalog),
            clients: Arc::new(Clients::new(limits, metrics.clients_unread.clone())),
            budgets: Arc::clone(&self.budgets),
            metrics,
            geoip: self.geoip.clone(),
            fallbacks: self.fallbacks.clone(),
            tells_gone: self.tells_gone,
            status: self.status,
            qr_codes: QrCodeLimits::default(),
            logo: self.logo.clone(),
            robots: Robots::default(),
            runtime: self.runtime.clone(),
        }
    }

    /// Explains the answer to an example of a GET request. Its path is not one that the service
    /// itself answers ([`links::is_of_service`]). Call it on [`Redirector::for_examples`].
    pub async fn explain(&self, example: &Example) -> Explanation {
        let asked = Asked {
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
        };
        let mut told = Told::default();
        let answer = match asked.path {
            "/" => home(self, &asked, &mut told),
            _ => answer(self, &asked, &mut told).await.unwrap_or_else(|refusal| *refusal.answer),
        };
        let location = answer.headers().get(LOCATION).map(HeaderValue::as_bytes);
        Explanation {
            steps: told.steps,
            link: told.link,
            status: answer.status().as_u16(),
            location: location.map(|location| String::from_utf8_lossy(location).into_owned()),
            page: answer.extensions().get::<VisitorPage>().map(VisitorPage::name),
        }
    }
}

async fn answer(redirector: &Redirector, asked: &Asked<'_>, told: &mut Told) -> Result<Answer, Refusal> {
    match decide(redirector, asked, told).await? {
        Decision::Show(answer) => Ok(answer),
        Decision::AskPassword(found, now) => {
            // For the steps: whoever knows the password is led on.
            let _ = target(redirector, asked, now, &found, told);
            Ok(ask_password(false))
        }
        Decision::Lead(found, now) => {
            let to = target(redirector, asked, now, &found, told)?;
            check_visits_left(redirector, &found, asked.path, told).await?;
            Ok(redirect(status_of(redirector, &found.link), to.location))
        }
    }
}

fn home(redirector: &Redirector, asked: &Asked<'_>, told: &mut Told) -> Answer {
    let (visited, _) = redirector.domain_cache.place(asked.host);
    told.step(|| domain_step(redirector, asked, &visited));
    told.step(|| (Finding::NameRoot, String::new()));
    fallback_redirect(redirector, &visited, &Unmatched::Base, asked.path, told)
        .unwrap_or_else(|| VisitorPage::Home.answer(StatusCode::OK))
}
