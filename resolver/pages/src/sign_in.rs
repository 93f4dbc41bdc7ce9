//! Signing in with an API key, and signing out.

use askama::Template;
use hyper::StatusCode;
use links::scope::Scope;
use web::{Answer, hold_back};

use crate::{
    addresses::{CREATE, LINKS, is_page, is_same_site},
    answer::{page, redirect},
    error::PageError,
    frame::Frame,
    request::PageRequest,
    session::Session,
};

pub(crate) const SIGN_OUT: &str = "/_pages/sign-out";

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage<'a> {
    frame: Frame<'a>,
    to: &'a str,
    is_wrong: bool,
}

pub(crate) fn show(request: &PageRequest<'_>) -> Answer {
    let form = SignInPage { frame: Frame::new(request, ""), to: to(request), is_wrong: false };
    page(&request.pages.renderer, StatusCode::OK, &form)
}

pub(crate) async fn sign_in(request: &PageRequest<'_>) -> Result<Answer, PageError> {
    let pages = request.pages;
    let key = request.form.value("apiKey").trim().to_owned();
    match api::sign_in(&pages.api, request.client, key.as_bytes()).await {
        Ok(grant) => {
            // A key that reads no links has nothing to manage.
            let is_lost = !grant.scopes.allow(Scope::Read) && to(request) == LINKS;
            let to = if is_lost { CREATE } else { to(request) };
            let mut answer = redirect(StatusCode::SEE_OTHER, to);
            if let Some(session) = &request.session {
                session.end(pages, &mut answer).await?;
            }
            Session::open(pages, &grant, &mut answer).await?;
            Ok(answer)
        }
        Err(api::AuthError::NoKey | api::AuthError::WrongKey) => {
            let form = SignInPage { frame: Frame::new(request, ""), to: to(request), is_wrong: true };
            Ok(hold_back(page(&pages.renderer, StatusCode::FORBIDDEN, &form)))
        }
        Err(error) => Err(error.into()),
    }
}

pub(crate) async fn sign_out(request: &PageRequest<'_>) -> Result<Answer, PageError> {
    let mut answer = redirect(StatusCode::SEE_OTHER, "/");
    if let Some(session) = &request.session {
        session.end(request.pages, &mut answer).await?;
    }
    Ok(answer)
}

fn to<'a>(request: &'a PageRequest<'_>) -> &'a str {
    let asked = request.form.get("to").or_else(|| request.query.get("to"));
    // Another path may be a short link, which leads to another site.
    let is_ours = |to: &&str| {
        let path = to.split('?').next().unwrap_or(to);
        is_same_site(to) && (path == "/" || is_page(path) && !path.starts_with("/_pages/"))
    };
    asked.filter(is_ours).unwrap_or(LINKS)
}
