//! A tenant, whose every field has a mark.

use std::collections::BTreeSet;

use harness::Api;
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    marks::MARK,
    stage::{DOMAINS, Stage},
};
use crate::{rest_calls::call, rng::Rng};

/// One sequence in so many imports links.
const IMPORTS: usize = 8;

/// A link by its name.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) code: String,
    pub(super) domain: Option<String>,
    pub(super) is_deleted: bool,
}

impl Link {
    /// Returns the path of the link, or of a call below it.
    pub(super) fn path(&self, below: &str) -> String {
        let domain = self.domain.as_ref().map_or(String::new(), |domain| format!("?domain={domain}"));
        format!("short-urls/{}{below}{domain}", self.code)
    }
}

pub(super) struct Tenant<'a> {
    pub(super) seed: u64,
    api: &'a Api,
    is_of_domain: bool,
    rng: Rng,
    marked: u64,
    pub(super) links: Vec<Link>,
    pub(super) tags: Vec<String>,
    pub(super) reservations: Vec<String>,
    /// Names without a mark, which the intruder must not be told either.
    pub(super) secrets: BTreeSet<String>,
}

impl<'a> Tenant<'a> {
    pub(super) fn new(seed: u64, api: &'a Api, is_of_domain: bool) -> Self {
        Self {
            seed,
            api,
            is_of_domain,
            rng: Rng::new(seed),
            marked: 0,
            links: Vec::new(),
            tags: Vec::new(),
            reservations: Vec::new(),
            secrets: BTreeSet::new(),
        }
    }

    /// Returns what nobody else may be told: marks, codes, and the names of the keys.
    pub(super) fn hidden(&self) -> BTreeSet<String> {
        let own = [format!("{MARK}{}x", self.seed), format!("{MARK}-own"), format!("{MARK}-domain")];
        self.secrets.iter().cloned().chain(own).collect()
    }

    fn mark(&mut self) -> String {
        self.marked += 1;
        format!("{MARK}{}x{}", self.seed, self.marked)
    }

    fn url(&mut self) -> String {
        let mark = self.mark();
        format!("https://{mark}.example/{mark}?secret={mark}")
    }

    pub(super) async fn act(&mut self, stage: &Stage) {
        self.create().await;
        self.visit().await;
        for _ in 0..8 + self.rng.below(8) {
            match self.rng.below(14) {
                0 | 1 => self.create().await,
                2..=4 => self.visit().await,
                5 => self.edit().await,
                6 => self.set_rules().await,
                7 | 8 => self.delete().await,
                9 => self.restore().await,
                10 => self.pick_again().await,
                11 if self.is_of_domain => self.set_fallbacks().await,
                11 => self.relocate().await,
                12 => self.reserve().await,
                _ => self.visit_nothing().await,
            }
        }
        if self.is_of_domain && self.rng.one_in(IMPORTS) {
            self.import(stage).await;
        }
        // So that there is something to pick again.
        self.visit().await;
        self.delete().await;
    }

    async fn create(&mut self) {
        let slug = match self.rng.below(3) {
            0 => None,
            1 => Some(self.rng.code()),
            _ => Some(format!("{}/way", self.mark())),
        };
        self.create_as(slug).await;
    }

    async fn create_as(&mut self, slug: Option<String>) {
        let domain = match self.rng.below(24) {
            _ if self.is_of_domain => Some(DOMAINS[0].to_owned()),
            0 => Some(format!("{}.test", self.mark())),
            1..=5 => Some(DOMAINS[0].to_owned()),
            _ => None,
        };
        let (tag, url) = (self.mark(), self.url());
        let mut body =
            json!({ "longUrl": url, "title": self.mark(), "description": self.mark(), "tags": [tag] });
        body["customSlug"] = slug.map_or(Value::Null, Value::from);
        body["domain"] = domain.clone().map_or(Value::Null, Value::from);
        let request = self.api.post().header("X-Api-Key", self.api.key());
        let request = request.header("Idempotency-Key", format!("\"{tag}\"")).json(&body);
        let made = harness::Answer::to(request).await.unwrap();
        if !made.is_success() {
            // The name is taken, perhaps by an intruder's link.
            assert!(made.status == 400 && !self.links.is_empty(), "{}: {body} {made:?}", self.seed);
            return;
        }
        let code = made.json().unwrap()["shortCode"].as_str().unwrap().to_owned();
        self.secrets.insert(code.clone());
        self.tags.push(tag);
        self.links.push(Link { code, domain, is_deleted: false });
    }

    fn some(&mut self, is_deleted: bool) -> Option<usize> {
        let fits: Vec<usize> =
            (0..self.links.len()).filter(|place| self.links[*place].is_deleted == is_deleted).collect();
        self.rng.any(&fits).copied()
    }

    async fn change(&self, method: Method, path: &str, body: Option<Value>) -> bool {
        call(self.api, method, path, body).await.is_success()
    }

    async fn visit(&mut self) {
        let Some(place) = self.some(false) else { return };
        let link = self.links[place].clone();
        let query = self.mark();
        self.open(&format!("{}?utm={query}", link.code), link.domain).await;
    }

    async fn visit_nothing(&mut self) {
        let path = format!("{0}/{0}?q={0}", self.mark());
        self.open(&path, Some(DOMAINS[0].to_owned())).await;
    }

    async fn open(&mut self, path: &str, domain: Option<String>) {
        let request = self.api.http().get(format!("{}/{path}", self.api.url()));
        let request = request.header("Referer", self.url());
        let request =
            request.header("User-Agent", format!("Mozilla/5.0 (X11) Firefox/145.0 {}", self.mark()));
        let request = match domain {
            Some(host) => request.header("Host", host),
            None => request,
        };
        request.send().await.unwrap();
    }

    async fn edit(&mut self) {
        let Some(place) = self.some(false) else { return };
        let (tag, url) = (self.mark(), self.url());
        let body = json!({ "title": self.mark(), "longUrl": url, "tags": [tag] });
        if self.change(Method::PATCH, &self.links[place].path(""), Some(body)).await {
            self.tags.push(tag);
        }
    }

    async fn set_rules(&mut self) {
        let Some(place) = self.some(false) else { return };
        let mark = self.mark();
        let condition = json!({ "type": "query-param", "matchKey": mark, "matchValue": mark });
        let rules = json!({ "redirectRules": [{ "longUrl": self.url(), "conditions": [condition] }] });
        self.change(Method::POST, &self.links[place].path("/redirect-rules"), Some(rules)).await;
    }

    async fn delete(&mut self) {
        let Some(place) = self.some(false) else { return };
        let is_done = self.change(Method::DELETE, &self.links[place].path(""), None).await;
        self.links[place].is_deleted |= is_done;
    }

    async fn restore(&mut self) {
        let Some(place) = self.some(true) else { return };
        let is_done = self.change(Method::POST, &self.links[place].path("/restore"), None).await;
        self.links[place].is_deleted &= !is_done;
    }

    /// Picks the name of a link that was deleted.
    async fn pick_again(&mut self) {
        let Some(place) = self.some(true) else { return };
        let slug = self.links[place].code.clone();
        self.create_as(Some(slug)).await;
    }

    async fn relocate(&mut self) {
        let Some(place) = self.some(false) else { return };
        let to = if self.links[place].domain.is_some() { None } else { Some(DOMAINS[0].to_owned()) };
        let body = json!({ "domain": to.as_deref().unwrap_or("DEFAULT") });
        if self.change(Method::POST, &self.links[place].path("/move"), Some(body)).await {
            self.links[place].domain = to;
        }
    }

    async fn set_fallbacks(&mut self) {
        let body = json!({
            "domain": DOMAINS[0], "baseUrlRedirect": self.url(), "regular404Redirect": self.url(),
            "invalidShortUrlRedirect": self.url(),
        });
        self.change(Method::PATCH, "domains/redirects", Some(body)).await;
    }

    async fn reserve(&mut self) {
        let made = call(self.api, Method::POST, "reservations", Some(json!({ "count": 2 }))).await;
        if !made.is_success() {
            return;
        }
        let made = made.json().unwrap();
        let id = made["id"].as_str().unwrap().to_owned();
        let codes = made["shortCodes"].as_array().unwrap();
        self.secrets.extend(codes.iter().map(|code| code.as_str().unwrap().to_owned()));
        let item = json!([{ "shortCode": codes[0], "longUrl": self.url(), "title": self.mark() }]);
        if self.change(Method::POST, &format!("reservations/{id}/short-urls"), Some(item)).await {
            let code = codes[0].as_str().unwrap().to_owned();
            self.links.push(Link { code, domain: None, is_deleted: false });
        }
        self.secrets.insert(id.clone());
        self.reservations.push(id);
    }

    async fn import(&mut self, stage: &Stage) {
        let (code, url, title, tag) = (self.mark(), self.url(), self.mark(), self.mark());
        let domain = DOMAINS[0];
        let table = format!("shortCode,longUrl,title,tags,domain\n{code},{url},{title},{tag},{domain}\n");
        if stage.import(&table).await {
            self.tags.push(tag);
            self.links.push(Link { code, domain: Some(domain.to_owned()), is_deleted: false });
        }
    }
}
