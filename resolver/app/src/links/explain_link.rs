//! Explains why a short URL is answered as it is, for an example of a visitor and a moment.
//!
//! Redirects decide that. This crate does not know them; the process hands their decision over as
//! an [`Explainer`].

use std::{net::IpAddr, sync::Arc};

use futures_util::future::BoxFuture;
use jiff::tz::TimeZone;
use links::{
    DomainId, Example, Explanation, Finding, Protocol, Slug, api_key::Grant, is_of_service,
    requested_authority, scope::Scope,
};
use url::Url;

use super::{
    find_link::LinkName,
    values::{Checked, read_time},
};
use crate::{
    AppError, FieldErrors, LinkService,
    authorize::{require, require_operator},
};

/// Decides about an example as a redirect does, and tells the steps. It records nothing.
pub type Explainer = Arc<dyn Fn(Example) -> BoxFuture<'static, Explanation> + Send + Sync>;

const EXPECTED_URL: &str = "expected a short URL, or its path on the default domain";
const OF_SERVICE: &str = "expected the URL of a link: the service itself answers this path";

/// An example of a request, as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExampleFields {
    /// A short URL, with or without its scheme, or its path on the default domain; with the query.
    pub url: Option<String>,
    /// The user agent; none if absent.
    pub user_agent: Option<String>,
    /// The header `Accept-Language`; none if absent.
    pub accept_language: Option<String>,
    /// The visitor's address; the caller's if absent.
    pub ip: Option<String>,
    /// The visitor's country; that of the address if absent.
    pub country: Option<String>,
    /// The moment; now if absent.
    pub at: Option<String>,
}

impl LinkService {
    /// Explains what a visitor would get for a short URL. A key that does not see all links gets
    /// explanations of its own links only. For anything else it gets the error for a link that does
    /// not exist. `client` is the caller's address.
    pub async fn explain(
        &self,
        fields: &ExampleFields,
        wrong: FieldErrors,
        (client, zone): (IpAddr, &TimeZone),
        by: &Grant,
    ) -> Result<Explanation, AppError> {
        require(by, Scope::Read)?;
        let example = self.read_example(fields, wrong, (client, zone), by)?;
        let slug = Slug::of_path(&example.path).map(|slug| slug.to_string());
        let code = slug.unwrap_or_else(|| example.path.trim_start_matches('/').to_owned());
        let name = LinkName { code, domain: Some(example.host.clone()) };
        let mut explanation = (self.explainer)(example).await;
        // Other keys do not read the target rules either.
        if require_operator(by).is_err() {
            explanation.steps.retain(|step| step.finding != Finding::TargetPattern);
        }
        if !by.limits.hides_links() {
            return Ok(explanation);
        }
        match &explanation.link {
            Some(link) if link.is_deleted() || !by.sees(link) => return Err(self.no_link(&name)),
            Some(_) => {}
            // The key's own link may be why nothing was found: its domain is disabled.
            None => drop(self.find_link(&name, by).await?),
        }
        // Visitors see which fallback target is used. The others are the operator's, and links that
        // were passed over are those of other keys.
        let is_hidden =
            |finding: Finding| matches!(finding, Finding::FallbackUnusable | Finding::NameRefused);
        explanation.steps.retain(|step| !is_hidden(step.finding));
        for step in explanation.steps.iter_mut().filter(|step| step.finding.parts().0 == "fallback") {
            step.detail.clear();
        }
        Ok(explanation)
    }

    fn read_example(
        &self,
        fields: &ExampleFields,
        mut wrong: FieldErrors,
        (client, zone): (IpAddr, &TimeZone),
        by: &Grant,
    ) -> Result<Example, AppError> {
        let url = fields.url.as_deref().ok_or_else(|| EXPECTED_URL.to_owned());
        let url = wrong.note("url", url.and_then(|text| self.read_short_url(text, by)));
        let ip = fields.ip.as_deref().map_or(Ok(client), str::parse::<IpAddr>);
        let ip = wrong.note("ip", ip.map_err(|_| "expected an IP address, such as 192.0.2.7".to_owned()));
        let country = wrong.note("country", fields.country.as_deref().map(read_country).transpose());
        let at = wrong.note("at", fields.at.as_deref().map(|text| read_time(text, zone)).transpose());
        wrong.finish()?;
        let (url, ip) = url.zip(ip).ok_or(AppError::Internal)?;
        Ok(Example {
            scheme: Protocol::parse(url.scheme()).ok_or(AppError::Internal)?,
            host: host_of(&url),
            path: url.path().to_owned(),
            query: url.query().unwrap_or_default().to_owned(),
            user_agent: fields.user_agent.clone().unwrap_or_default(),
            accept_language: fields.accept_language.clone().unwrap_or_default(),
            ip,
            country: country.flatten(),
            at: at.flatten(),
        })
    }

    /// Reads a short URL as browsers do. The result has no path below which its host is served.
    fn read_short_url(&self, text: &str, by: &Grant) -> Checked<Url> {
        let text = text.trim();
        let begins =
            |scheme: &str| text.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme));
        let whole = if begins("http://") || begins("https://") {
            text.to_owned()
        } else if text.split_once('/').is_some_and(|(host, _)| self.is_shown_host(host, by)) {
            format!("http://{text}")
        } else {
            let path = text.strip_prefix('/').unwrap_or(text);
            format!("{}/{path}", self.domain_cache.base(DomainId::DEFAULT))
        };
        let mut url = Url::parse(&whole).map_err(|_| EXPECTED_URL.to_owned())?;
        let path = self.domain_cache.path_below(&host_of(&url), url.path()).to_owned();
        url.set_path(&path);
        let is_given = || self.check_given(path.trim_start_matches('/')).is_err();
        if is_of_service(&path) || is_given() { Err(OF_SERVICE.to_owned()) } else { Ok(url) }
    }

    /// Returns whether a text is the name of a domain. A key that does not see all links does not
    /// learn which others there are.
    fn is_shown_host(&self, text: &str, by: &Grant) -> bool {
        let is_other = || self.domain_cache.entries().named(&requested_authority(text)).is_some();
        self.domain_cache.is_default_name(text) || !by.limits.hides_links() && is_other()
    }
}

/// Returns the host of a URL, with its port if the URL has one.
fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn read_country(text: &str) -> Checked<String> {
    let is_code = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    let expected = || "expected two letters of ISO 3166-1, such as DE".to_owned();
    is_code.then(|| text.to_owned()).ok_or_else(expected)
}
