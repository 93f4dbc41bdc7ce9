//! A key that must not see what is another tenant's: it calls everything with that one's names.

use std::{collections::BTreeSet, net::SocketAddr};

use harness::{Answer, Api};
use proto::links::v1::{
    CreateLinkRequest, EditLinkRequest, GetLinkRequest, ListLinksRequest, Tags, links_client::LinksClient,
};
use reqwest::Method;
use serde_json::{Value, json};
use tonic::Request;

use super::{
    marks::leak,
    tenant::{Link, Tenant},
};
use crate::{rest_calls::call, rng::Rng};

/// The call whose answer does not end; `streams` makes it.
const STREAM: &str = "/rest/v3/live/visits";

/// The methods in the order in which they are called: deletions last, so that something is left to
/// be read.
static METHODS: [Method; 6] =
    [Method::GET, Method::HEAD, Method::POST, Method::PATCH, Method::PUT, Method::DELETE];

/// An operation of the document.
pub(super) struct Operation {
    method: Method,
    path: String,
    parameters: Vec<String>,
}

/// Reads the operations from the running resolver's document.
pub(super) async fn operations(api: &Api) -> Vec<Operation> {
    let document = api.get("rest/v3/openapi.json").await.unwrap().json().unwrap();
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let Some(method) = METHODS.iter().find(|known| known.as_str().eq_ignore_ascii_case(method))
            else {
                continue;
            };
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let names = parameters.filter_map(|parameter| {
                let name = parameter["name"].as_str().map(str::to_owned);
                name.or_else(|| Some(parameter["$ref"].as_str()?.rsplit('/').next()?.to_owned()))
            });
            let parameters = names.collect();
            if path.starts_with("/rest") && path != STREAM {
                all.push(Operation { method: method.clone(), path: path.clone(), parameters });
            }
        }
    }
    all.sort_by_key(|operation| METHODS.iter().position(|method| *method == operation.method));
    assert!(all.len() > 30, "the document has every route");
    all
}

pub(super) struct Intruder<'a> {
    api: &'a Api,
    grpc: SocketAddr,
    rng: Rng,
    /// The texts that this key has sent in the calls of the sequence.
    sent: BTreeSet<String>,
    calls: u64,
}

impl<'a> Intruder<'a> {
    pub(super) fn new(api: &'a Api, grpc: SocketAddr, rng: Rng) -> Self {
        Self { api, grpc, rng, sent: BTreeSet::new(), calls: 0 }
    }

    /// Picks the names of deleted links. Returns how many.
    pub(super) async fn pick_what_was_left(&mut self, tenant: &Tenant<'_>) -> u64 {
        let mut picked = 0;
        for link in tenant.links.iter().filter(|link| link.is_deleted) {
            if self.rng.one_in(5) {
                continue;
            }
            let mut body = json!({ "longUrl": "https://intruder.example/", "customSlug": link.code });
            body["domain"] = link.domain.clone().map_or(Value::Null, Value::from);
            self.sent.extend(link.domain.clone());
            self.sent.insert(link.code.clone());
            picked += u64::from(call(self.api, Method::POST, "short-urls", Some(body)).await.is_success());
        }
        picked
    }

    /// Makes each call of the document, and of gRPC, with some of the tenant's names. Returns how
    /// many.
    pub(super) async fn call_everything(&mut self, document: &[Operation], tenant: &Tenant<'_>) -> u64 {
        for operation in document {
            let links = 1 + usize::from(operation.path.contains("{shortCode}"));
            for _ in 0..links {
                self.call(operation, tenant).await;
            }
        }
        self.call_grpc(tenant).await;
        self.calls
    }

    fn send(&mut self, text: &str) -> String {
        self.sent.insert(text.to_owned());
        text.to_owned()
    }

    /// Returns a link of the tenant, which this key names from now on.
    fn some_link(&mut self, tenant: &Tenant<'_>) -> Link {
        let link = self.rng.any(&tenant.links).expect("a tenant has links").clone();
        self.send(&link.code);
        self.sent.extend(link.domain.clone());
        link
    }

    fn some_tag(&mut self, tenant: &Tenant<'_>) -> String {
        let tag = self.rng.any(&tenant.tags).cloned().unwrap_or_default();
        self.send(&tag)
    }

    async fn call(&mut self, operation: &Operation, tenant: &Tenant<'_>) {
        let link = self.some_link(tenant);
        let mut path = operation.path.replace("{shortCode}", &link.code);
        if path.contains("{tag}") {
            path = path.replace("{tag}", &self.some_tag(tenant));
        }
        path = path.replace("{domain}", link.domain.as_deref().unwrap_or("DEFAULT"));
        if path.contains("reservations/{id}") {
            let id = self.rng.any(&tenant.reservations).cloned();
            let id = id.map_or_else(|| "1".to_owned(), |id| self.send(&id));
            path = path.replace("{id}", &id);
        }
        while let (Some(start), Some(end)) = (path.find('{'), path.find('}')) {
            path.replace_range(start..=end, "1");
        }
        let query = self.query(operation, &link, tenant);
        let url = format!("{}{path}{query}", self.api.url());
        let request = self.api.http().request(operation.method.clone(), url);
        let mut request = request.header("X-Api-Key", self.api.key());
        if matches!(operation.method, Method::POST | Method::PATCH | Method::PUT) {
            request = request.json(&self.body(operation, &link, tenant));
            if operation.path.ends_with("/short-urls") && !tenant.tags.is_empty() {
                request = request.header("Idempotency-Key", format!("\"{}\"", self.some_tag(tenant)));
            }
        }
        let answer = Answer::to(request).await.unwrap();
        let text = format!("{:?} {}", answer.headers, answer.body);
        self.check(&format!("{} {path}{query}", operation.method), &text, tenant);
    }

    fn query(&mut self, operation: &Operation, link: &Link, tenant: &Tenant<'_>) -> String {
        let mut query = Vec::new();
        for parameter in &operation.parameters {
            let value = match parameter.as_str() {
                "domain" => match &link.domain {
                    Some(domain) => domain.clone(),
                    None => continue,
                },
                _ if self.rng.one_in(2) => continue,
                "tag" | "tags[]" | "excludeTags[]" => self.some_tag(tenant),
                "shortCode" => link.code.clone(),
                "itemsPerPage" => "-1".to_owned(),
                "deleted" | "all" | "withStats" => "true".to_owned(),
                "searchTerm" => link.code.clone(),
                _ => continue,
            };
            query.push(format!("{parameter}={value}"));
        }
        if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) }
    }

    fn body(&mut self, operation: &Operation, link: &Link, tenant: &Tenant<'_>) -> Value {
        let mine = "https://intruder.example/";
        match operation.path.trim_start_matches("/rest/v3/") {
            "short-urls" => {
                let tag = self.some_tag(tenant);
                json!({ "longUrl": mine, "customSlug": link.code, "domain": link.domain, "findIfExists": true, "tags": [tag] })
            }
            "short-urls/bulk" => {
                let tag = self.some_tag(tenant);
                let named = json!({ "longUrl": mine, "customSlug": link.code, "domain": link.domain, "findIfExists": true, "tags": [tag] });
                json!([{ "longUrl": mine }, named])
            }
            "short-urls/bulk-edit" => {
                let (tags, dry_run) = ([self.some_tag(tenant)], self.rng.one_in(2));
                match self.rng.one_in(2) {
                    true => json!({ "filter": { "tags": tags }, "addTags": ["intruder"], "dryRun": dry_run }),
                    false => json!({
                        "shortUrls": [{ "shortCode": link.code, "domain": link.domain }],
                        "removeTags": tags, "dryRun": dry_run,
                    }),
                }
            }
            "domains/redirects" => json!({ "domain": link.domain.as_deref().unwrap_or("DEFAULT") }),
            "tags" => json!({ "oldName": self.some_tag(tenant), "newName": "intruder" }),
            "webhooks" => {
                json!({ "url": "https://intruder.example/", "events": ["link.created", "visits.recorded"] })
            }
            "reservations" => json!({ "count": 1 }),
            path if path.ends_with("/move") => json!({ "domain": "DEFAULT" }),
            path if path.ends_with("/redirect-rules") => json!({ "redirectRules": [] }),
            path if path.starts_with("reservations/") => json!([{ "shortCode": link.code, "longUrl": mine }]),
            path if path.ends_with("/block") => json!({ "reason": "intruder" }),
            _ if self.rng.one_in(2) => json!({}),
            _ => json!({ "title": "intruder" }),
        }
    }

    async fn call_grpc(&mut self, tenant: &Tenant<'_>) {
        let mut client = LinksClient::connect(format!("http://{}", self.grpc)).await.unwrap();
        let link = self.some_link(tenant);
        let (short_code, domain) = (link.code.clone(), link.domain.clone());
        let tags = vec![self.some_tag(tenant)];
        let get = GetLinkRequest { short_code: short_code.clone(), domain: domain.clone() };
        let create = CreateLinkRequest {
            long_url: "https://intruder.example/".to_owned(),
            custom_slug: Some(short_code.clone()),
            domain: domain.clone(),
            find_if_exists: true,
            ..CreateLinkRequest::default()
        };
        let edit = EditLinkRequest {
            short_code,
            domain,
            tags: self.rng.one_in(2).then(|| Tags { tags: tags.clone() }),
            ..EditLinkRequest::default()
        };
        let list = ListLinksRequest { items_per_page: 1_000, ..ListLinksRequest::default() };
        let tagged = ListLinksRequest { tags, ..list.clone() };
        let answers = [
            format!("{:?}", client.get_link(self.with_key(get)).await),
            format!("{:?}", client.create_link(self.with_key(create)).await),
            format!("{:?}", client.edit_link(self.with_key(edit)).await),
            format!("{:?}", client.list_links(self.with_key(list)).await),
            format!("{:?}", client.list_links(self.with_key(tagged)).await),
        ];
        for answer in answers {
            self.check("gRPC", &answer, tenant);
        }
    }

    fn with_key<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("x-api-key", self.api.key().parse().unwrap());
        request
    }

    fn check(&mut self, asked: &str, text: &str, tenant: &Tenant<'_>) {
        self.calls += 1;
        if let Some(found) = leak(text, &tenant.hidden(), &self.sent) {
            panic!("sequence {}: {asked} by {} told: {found}", tenant.seed, self.api.key());
        }
    }
}
