//! The list of links of a running Shlink, Kutt, YOURLS or Dub: requests for its pages, and the
//! format of the responses. Items have the same format as in files, so the readers of files parse
//! them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::source::Source;

/// The characters to percent-encode: all but the unreserved ones of RFC 3986.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// All links of Dub, also those that are archived or in a folder.
const DUB_FILTER: &str = "showArchived=true&search=https%3A%2F%2F";

/// A system whose running server lists its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveSource {
    /// Shlink, with the oldest link first.
    Shlink,
    /// Kutt, which has the newest link first.
    Kutt,
    /// YOURLS, with the newest link first.
    Yourls,
    /// Dub, with the newest link first.
    Dub,
}

/// A page of a list of links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkPage {
    /// The links, as the system describes them.
    pub items: Vec<Value>,
    /// The number of links on all pages, as the system counts them now; `None` if pages do not have
    /// it, as those of Dub. Their list ends with an empty page.
    pub total: Option<u64>,
}

impl LiveSource {
    /// Returns the system if its running server can be read.
    pub fn new(source: Source) -> Option<Self> {
        match source {
            Source::Shlink => Some(Self::Shlink),
            Source::Kutt => Some(Self::Kutt),
            Source::Yourls => Some(Self::Yourls),
            Source::Dub => Some(Self::Dub),
            _ => None,
        }
    }

    /// Returns path and query of the next page, after this number of pages and of links on them.
    /// Kutt returns at most 50 links per page, and some servers return fewer than requested.
    ///
    /// Dub lists links in folders only in answer to a search, so this searches for what each short
    /// link contains. Its cursors could skip links: the first page, which has none, is in another
    /// order.
    pub fn page_path(self, pages: u64, links: u64) -> String {
        match self {
            Self::Shlink => {
                let page = pages + 1;
                format!("/rest/v3/short-urls?page={page}&itemsPerPage=500&orderBy=dateCreated-ASC")
            }
            Self::Kutt => format!("/api/v2/links?limit=50&skip={links}&all=true"),
            Self::Yourls => {
                format!("/yourls-api.php?action=stats&filter=last&limit=500&start={links}&format=json")
            }
            Self::Dub => format!("/links?{DUB_FILTER}&page={}&pageSize=100", pages + 1),
        }
    }

    /// Returns path and query of the number of links, if pages do not have it.
    pub fn count_path(self) -> Option<String> {
        (self == Self::Dub).then(|| format!("/links/count?{DUB_FILTER}"))
    }

    /// Reads the answer to the request for a page. Returns `None` for an answer without a list.
    pub fn read_page(self, mut answer: Value) -> Option<LinkPage> {
        let (items, total) = match self {
            Self::Shlink => ("/shortUrls/data", "/shortUrls/pagination/totalItems"),
            Self::Kutt => ("/data", "/total"),
            Self::Yourls => ("/links", "/stats/total_links"),
            Self::Dub => {
                let Value::Array(items) = answer else { return None };
                return Some(LinkPage { items, total: None });
            }
        };
        let total = match answer.pointer(total)? {
            Value::String(text) => text.parse().ok()?,
            number => number.as_u64()?,
        };
        let items = match answer.pointer_mut(items).map(Value::take) {
            Some(Value::Array(items)) => items,
            // YOURLS: `{"link_1": …, "link_2": …}`, or nothing if the page is empty.
            Some(Value::Object(items)) => items.into_iter().map(|(_, item)| item).collect(),
            None if self == Self::Yourls => Vec::new(),
            _ => return None,
        };
        Some(LinkPage { items, total: Some(total) })
    }

    /// Returns the text that identifies a link across pages: its domain and its name.
    pub fn identity(self, item: &Value) -> String {
        let (domain, name) = match self {
            Self::Shlink => (&item["domain"], &item["shortCode"]),
            Self::Kutt => (&item["domain"], &item["address"]),
            Self::Yourls => (&Value::Null, &item["shorturl"]),
            Self::Dub => (&item["domain"], &item["key"]),
        };
        if name.is_null() { item.to_string() } else { json!([domain, name]).to_string() }
    }

    /// Returns the short URL of a link.
    pub fn short_url(self, item: &Value) -> Option<&str> {
        let field = match self {
            Self::Shlink => "shortUrl",
            Self::Kutt => "link",
            Self::Yourls => "shorturl",
            Self::Dub => "shortLink",
        };
        item[field].as_str()
    }

    /// Returns path and query of the redirect rules of a link that has some. The answer is for
    /// [`add_rules`](Self::add_rules).
    pub fn rules_path(self, item: &Value) -> Option<String> {
        if self != Self::Shlink || item["hasRedirectRules"] != true {
            return None;
        }
        let escaped = |text| utf8_percent_encode(text, ESCAPED);
        let path = format!("/rest/v3/short-urls/{}/redirect-rules", escaped(item["shortCode"].as_str()?));
        let domain = item["domain"].as_str().map(|domain| format!("?domain={}", escaped(domain)));
        Some(path + &domain.unwrap_or_default())
    }

    /// Adds the redirect rules of an answer to their link. Returns whether the answer has a list of
    /// them.
    pub fn add_rules(item: &mut Value, mut answer: Value) -> bool {
        let rules = answer.get_mut("redirectRules").and_then(Value::as_array_mut);
        let Some(rules) = rules else { return false };
        for rule in rules.iter_mut().filter_map(Value::as_object_mut) {
            // The order of the list expresses it.
            rule.remove("priority");
        }
        item["redirectRules"] = answer["redirectRules"].take();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_each_system_have_their_links_and_the_number_of_all() {
        let one = || json!({ "x": 1 });
        for (source, answer, count, total) in [
            (
                LiveSource::Shlink,
                json!({ "shortUrls": { "data": [one(), one()], "pagination": { "totalItems": 7 } } }),
                2,
                7,
            ),
            (LiveSource::Kutt, json!({ "total": 3, "limit": 50, "skip": 0, "data": [one()] }), 1, 3),
            (
                LiveSource::Yourls,
                json!({ "links": { "link_1": one(), "link_2": one() }, "stats": { "total_links": "9" } }),
                2,
                9,
            ),
            (LiveSource::Yourls, json!({ "stats": { "total_links": 9 } }), 0, 9),
            (LiveSource::Yourls, json!({ "links": [], "stats": { "total_links": "0" } }), 0, 0),
        ] {
            let page = source.read_page(answer.clone()).unwrap();
            assert_eq!((page.items.len(), page.total), (count, Some(total)), "{answer}");
        }
        let page = LiveSource::Dub.read_page(json!([one(), one()])).unwrap();
        assert_eq!((page.items.len(), page.total), (2, None));
        for source in [LiveSource::Shlink, LiveSource::Kutt, LiveSource::Yourls] {
            for answer in [json!({}), json!([one()]), json!({ "error": "no", "total": 1 }), json!("x")] {
                assert_eq!(source.read_page(answer.clone()), None, "{source:?} {answer}");
            }
        }
        assert_eq!(LiveSource::Dub.read_page(json!({ "error": { "code": "unauthorized" } })), None);
    }

    #[test]
    fn a_link_is_known_again_by_its_domain_and_name_alone() {
        let link = |domain: Value, visits| json!({ "domain": domain, "shortCode": "a", "visits": visits });
        let identity = |item: &Value| LiveSource::Shlink.identity(item);
        assert_eq!(identity(&link(Value::Null, 1)), identity(&link(Value::Null, 2)));
        assert_ne!(identity(&link(Value::Null, 1)), identity(&link(json!("d.test"), 1)));
        assert_ne!(identity(&json!({ "x": 1 })), identity(&json!({ "x": 2 })), "items without a name");
    }

    #[test]
    fn rules_are_asked_for_where_there_are_some() {
        let item = json!({ "shortCode": "a/ü", "domain": "d.test:8080", "hasRedirectRules": true });
        let path = "/rest/v3/short-urls/a%2F%C3%BC/redirect-rules?domain=d.test%3A8080";
        assert_eq!(LiveSource::Shlink.rules_path(&item).as_deref(), Some(path));
        assert_eq!(LiveSource::Kutt.rules_path(&item), None);
        let mut without = json!({ "shortCode": "a", "hasRedirectRules": false });
        assert_eq!(LiveSource::Shlink.rules_path(&without), None);
        let rules = json!({ "redirectRules": [{ "longUrl": "u", "priority": 1, "conditions": [] }] });
        assert!(LiveSource::add_rules(&mut without, rules));
        assert_eq!(without["redirectRules"], json!([{ "longUrl": "u", "conditions": [] }]));
        assert!(!LiveSource::add_rules(&mut without, json!({ "title": "x" })));
    }
}
