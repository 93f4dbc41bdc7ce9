//! `GET|HEAD /.well-known/apple-app-site-association` and `/.well-known/assetlinks.json`: the apps
//! that open the links of a host.
//!
//! 1. Only domains with the setting have such a file. Without it the path is as any other.
//! 2. A file is no visit, and no redirect: systems take any other status than 200 for an absence.
//! 3. It is at the root of a host, which is where systems look for it, and not below a path.
//! 4. Every process answers with it, whatever its role, since proxies send paths below
//!    `/.well-known` to the API.

use hyper::{
    StatusCode,
    header::{CACHE_CONTROL, HeaderValue},
};
use links::{AppLinksFile, StoredObject as _};
use web::{Answer, answer};

use crate::Redirector;

const JSON: &str = "application/json";
/// Proxies may keep a file for this long. Apple's and Google's own caches take hours or days.
const CACHED: &str = "public,max-age=300";

/// Returns whether a path is that of a file of app links.
pub fn is_file(path: &str) -> bool {
    AppLinksFile::of_path(path).is_some()
}

/// Returns the answer with the file that a path names; `None` if the domain of the host has none,
/// or is disabled.
pub fn show(redirector: &Redirector, host: Option<&str>, path: &str) -> Option<Answer> {
    let file = AppLinksFile::of_path(path)?;
    let (visited, _) = redirector.domain_cache.place(host);
    let settings = &visited.settings;
    let contents = settings.app_links(file)?;
    if settings.disabled || settings.is_of_later_release() {
        return None;
    }
    let mut answer = answer(StatusCode::OK, JSON, contents.as_str().to_owned());
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(CACHED));
    Some(answer)
}
