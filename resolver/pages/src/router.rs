//! Which page answers a request.

use std::{net::IpAddr, sync::Arc};

use app::AppError;
use futures_util::future::BoxFuture;
use hyper::{
    Method, Request, StatusCode,
    body::Incoming,
    header::{ALLOW, HeaderValue},
};
use limits::Account;
use lookup::domain_cache::PageHost;
use tokio::time::Instant;
use web::{Answer, TEXT, answer, charge};

use crate::{
    Pages, Renderer,
    addresses::{CREATE, LINKS, SIGN_IN, is_page},
    answer::redirect,
    assets, cluster,
    context::Context,
    error::{self, PageError},
    home, manage, preferences,
    request::PageRequest,
    session::Session,
    sign_in,
};

impl Renderer {
    /// Answers a request for a file, or for a choice of language or colours; `None` for others.
    /// Every process answers them.
    pub fn answer<B>(&self, request: &Request<B>, is_https: bool) -> Option<Answer> {
        let path = request.uri().path();
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return None;
        }
        if let Some(file) = path.strip_prefix(assets::PATH) {
            return Some(self.assets.serve(file));
        }
        let query = crate::form::Form::parse(request.uri().query().unwrap_or("").as_bytes());
        (path == preferences::PATH).then(|| preferences::choose(self, &query, is_https))
    }
}

impl Pages {
    /// Answers a request for the home page or a page for which [`is_page`] holds. The future is in
    /// a box, so that it is compiled here once.
    pub fn route(self: &Arc<Self>, client: IpAddr, request: Request<Incoming>) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            if let Some(answer) = self.renderer.answer(&request, self.is_https()) {
                return answer;
            }
            if !matches!(*request.method(), Method::GET | Method::HEAD | Method::POST) {
                let mut refused = answer(
                    StatusCode::METHOD_NOT_ALLOWED,
                    TEXT,
                    "method not allowed: use GET, HEAD or POST\n",
                );
                refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
                return refused;
            }
            let pages = Arc::clone(self);
            // Away from the listener's thread: pages wait for the database, and a change runs to
            // its end though its client goes away.
            let task = self.api.runtime.spawn(async move { pages.answer(client, request).await });
            task.await
                .unwrap_or_else(|_| answer(StatusCode::INTERNAL_SERVER_ERROR, TEXT, "an error occurred\n"))
        })
    }

    async fn answer(self: Arc<Self>, client: IpAddr, request: Request<Incoming>) -> Answer {
        let (head, body) = request.into_parts();
        let mut request = PageRequest::new(&self, &head, client);
        if let Some(answer) = self.other_host(&request) {
            return answer;
        }
        let begun = Instant::now();
        request.session = match Session::find(&request).await {
            Ok(session) => session,
            Err(error) => return error::show(&error, &request),
        };
        let answered = answer_form(&mut request, body, begun).await;
        let answered = answered.and_then(|mut answer| {
            let account = request.session.as_ref().map(|session| Account::Key(session.grant.id.0));
            let account = account.unwrap_or_else(|| Account::client(client));
            // A long page counts against its reader's budget until it is sent. The answer to a form
            // is sent in any case, because the form has taken effect.
            let kept = charge(&self.api.budgets, account, &mut answer);
            if request.head.method != Method::POST {
                kept.map_err(AppError::from)?;
            }
            Ok(answer)
        });
        answered.unwrap_or_else(|error| error::show(&error, &request))
    }

    /// Answers a request on another host than the public URL's: its owner could take a session
    /// there, or let another site's scripts use the pages.
    fn other_host(&self, request: &PageRequest<'_>) -> Option<Answer> {
        let public_url = &self.api.public_url;
        match self.api.domain_cache.page_host(request.host()) {
            PageHost::Own => None,
            // Only of a host that is known not to be the public one: a proxy that does not pass
            // `Host` on would lead back here without end.
            PageHost::OfDomain if request.head.method != Method::POST => {
                Some(redirect(StatusCode::FOUND, &format!("{public_url}{}", request.back())))
            }
            PageHost::OfDomain | PageHost::Unknown => {
                let body = format!(
                    "This page is at {public_url}{path}. If that is the address in your browser, the proxy in \
                     front has to pass the header Host on, with the port; or else set --public-url to the \
                     address in your browser.\n",
                    path = request.path(),
                );
                Some(answer(StatusCode::MISDIRECTED_REQUEST, TEXT, body))
            }
        }
    }
}

async fn answer_form(
    request: &mut PageRequest<'_>,
    body: Incoming,
    begun: Instant,
) -> Result<Answer, PageError> {
    let is_form = request.head.method == Method::POST;
    if is_form {
        request.check_origin()?;
    }
    let path = request.path();
    if request.session.is_none() && is_page(path) && path != CREATE && !path.starts_with("/_pages/") {
        // Before the form is read: without a session there is less room for it.
        return Err(PageError::NoSession);
    }
    if is_form {
        request.read_form(body).await?;
        // A form that trickles in does not outlive its session, nor the rights of its key.
        if begun.elapsed() >= api::AT_ONCE
            && let Some(session) = &request.session
            && Session::find(request).await?.is_none_or(|found| found.grant != session.grant)
        {
            return Err(PageError::NoSession);
        }
    }
    let request = &*request;
    match (request.path(), is_form) {
        ("/" | CREATE, false) => Ok(Box::pin(home::show(request, None)).await),
        (CREATE, true) => Box::pin(home::submit(request)).await,
        (SIGN_IN, false) => Ok(sign_in::show(request)),
        (SIGN_IN, true) => sign_in::sign_in(request).await,
        (sign_in::SIGN_OUT, true) => sign_in::sign_out(request).await,
        (path, _) if path == LINKS || path.starts_with("/manage/") => {
            manage::answer(&Context::new(request)?).await
        }
        (cluster::PATH, false) => cluster::show(&Context::new(request)?).await,
        _ => Err(PageError::NoPage),
    }
}
