//! Finds the route of a call.
//!
//! 1. There is one tree of paths for each method: `POST …/short-urls/bulk` is the bulk call, and
//!    `GET …/short-urls/bulk` shows a link with the slug `bulk`. A path that other methods have is
//!    unknown (404), as in Shlink, and not 405.
//! 2. Clients send the slashes of a slug unescaped. So `…/short-urls/a/b/visits` is first looked up
//!    as it is, then as the visits of `a%2Fb`, and then as the link `a%2Fb%2Fvisits`; not so with
//!    another method, because what GET shows below a link is never part of a slug.
//!
//! Rejected: axum. Its router takes the path before the method, so that a slug could not be called
//! `bulk`, and its bodies would have to be unwrapped again to put them on the memory accounts of
//! keys. This uses axum's own path tree (matchit).

use std::{collections::HashMap, sync::Arc};

use hyper::Method;

use super::route::{Handler, LINKS, Route};

/// All routes, by method and path.
pub struct Router {
    pub(super) routes: Vec<Arc<Route>>,
    paths: HashMap<Method, matchit::Router<Arc<Route>>>,
}

impl Router {
    pub(super) fn new(routes: Vec<Route>) -> Self {
        let mut paths: HashMap<Method, matchit::Router<Arc<Route>>> = HashMap::new();
        let mut insert = |method: Method, route: &Arc<Route>| {
            let inserted = paths.entry(method).or_default().insert(route.path, Arc::clone(route));
            inserted.expect("no two routes have the same method and path");
        };
        let routes: Vec<_> = routes.into_iter().map(Arc::new).collect();
        for route in &routes {
            insert(route.method.clone(), route);
            // The create with its key in the URL answers GET only: a HEAD must not create a link.
            if route.method == Method::GET && !matches!(route.handler, Handler::KeyInQuery(..)) {
                insert(Method::HEAD, route);
            }
        }
        Self { routes, paths }
    }

    /// Returns the route of a call, and the first and the last parameter of its path.
    pub(super) fn find(&self, method: &Method, path: &str) -> Option<(Arc<Route>, [String; 2])> {
        let paths = self.paths.get(method)?;
        let look = |path: &str| {
            let found = paths.at(path).ok()?;
            let parameters = [found.params.iter().next(), found.params.iter().last()];
            let parameters = parameters.map(|named| named.map_or("", |(_, value)| value).to_owned());
            Some((Arc::clone(found.value), parameters))
        };
        if let Some(found) = look(path) {
            return Some(found);
        }
        let slug = path.strip_prefix(LINKS)?.strip_prefix('/')?;
        let folded = |slug: &str| format!("{LINKS}/{}", slug.replace('/', "%2F"));
        if let Some((slug, last)) = slug.rsplit_once('/') {
            let below = format!("{}/{last}", folded(slug));
            if let Some(found) = look(&below) {
                return Some(found);
            }
            if self.paths.get(&Method::GET).is_some_and(|paths| paths.at(&below).is_ok()) {
                return None;
            }
        }
        look(&folded(slug))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_have_several_segments_and_actions_are_of_one_method() {
        let router = crate::rest::router(true);
        let found = |method: Method, path: &str| {
            router.find(&method, path).map(|(route, [parameter, _])| (route.path, parameter))
        };
        const LINK: &str = "/rest/v3/short-urls/{shortCode}";
        const VISITS: &str = "/rest/v3/short-urls/{shortCode}/visits";
        const RESTORE: &str = "/rest/v3/short-urls/{shortCode}/restore";
        for (method, path, expected) in [
            (Method::GET, "/rest/v3/short-urls", Some((LINKS, ""))),
            (Method::GET, "/rest/v3/short-urls/a", Some((LINK, "a"))),
            (Method::HEAD, "/rest/v3/short-urls/a", Some((LINK, "a"))),
            (Method::GET, "/rest/v3/short-urls/a/b", Some((LINK, "a%2Fb"))),
            (Method::GET, "/rest/v3/short-urls/a%2Fb/c", Some((LINK, "a%2Fb%2Fc"))),
            (Method::GET, "/rest/v3/short-urls/a/visits", Some((VISITS, "a"))),
            (Method::GET, "/rest/v3/short-urls/a/b/visits", Some((VISITS, "a%2Fb"))),
            (Method::PATCH, "/rest/v3/short-urls/a/visits", None),
            (Method::PATCH, "/rest/v3/short-urls/a/b", Some((LINK, "a%2Fb"))),
            (Method::DELETE, "/rest/v3/short-urls/a/restore", Some((LINK, "a%2Frestore"))),
            (Method::GET, "/rest/v3/short-urls/visits", Some((LINK, "visits"))),
            (Method::POST, "/rest/v3/short-urls/a/b/restore", Some((RESTORE, "a%2Fb"))),
            (Method::GET, "/rest/v3/short-urls/a/restore", Some((LINK, "a%2Frestore"))),
            (Method::GET, "/rest/v3/short-urls/bulk", Some((LINK, "bulk"))),
            (Method::POST, "/rest/v3/short-urls/bulk", Some(("/rest/v3/short-urls/bulk", ""))),
            (Method::GET, "/rest/v3/short-urls/shorten", Some(("/rest/v3/short-urls/shorten", ""))),
            (Method::HEAD, "/rest/v3/short-urls/shorten", Some((LINK, "shorten"))),
            (Method::POST, "/rest/v3/short-urls/a", None),
            (Method::PUT, "/rest/v3/short-urls", None),
            (Method::DELETE, "/rest/v3/tags/a", None),
            (Method::GET, "/rest/v3/tags/a/visits", Some(("/rest/v3/tags/{tag}/visits", "a"))),
            (Method::DELETE, "/rest/v3/domains/redirects", Some(("/rest/v3/domains/{domain}", "redirects"))),
            (Method::GET, "/rest/v4/tags", None),
        ] {
            let expected = expected.map(|(path, parameter)| (path, parameter.to_owned()));
            assert_eq!(found(method.clone(), path), expected, "{method} {path}");
        }
        let router = crate::rest::router(false);
        let (shorten, [parameter, _]) = router.find(&Method::GET, "/rest/v3/short-urls/shorten").unwrap();
        assert_eq!((shorten.path, &*parameter), (LINK, "shorten"));
    }
}
