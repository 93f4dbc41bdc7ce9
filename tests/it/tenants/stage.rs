//! The resolver that the sequences share, its keys, and the pairs of tenants and intruders.

use std::{net::SocketAddr, time::Duration};

use harness::{Api, Launch, Postgres, Resolver, Scratch, binaries, migrate, net::free_addr, secret, wait};
use reqwest::Method;
use serde_json::json;

use super::marks::MARK;
use crate::rest_calls::{SOON, done, get};

/// The domains that keys are limited to: the tenant's, and the intruder's.
pub(super) const DOMAINS: [&str; 2] = ["tenant.test", "intruder.test"];
/// All scopes but that of an administrator.
const OWN: &[&str] = &["--scopes", "create,read,edit,delete,visits,reserve,domains", "--own-links-only"];
/// A key that changes all links and reads none.
const WRITER: &[&str] = &["--scopes", "create,edit,delete,reserve,domains"];

/// A tenant's key and another one.
pub(super) struct Pair {
    pub(super) tenant: Api,
    /// Whether the tenant's key is limited to a domain, and not to its own links.
    pub(super) is_of_domain: bool,
    pub(super) intruder: Api,
}

pub(super) struct Stage {
    pub(super) resolver: Resolver,
    scratch: Scratch,
    postgres: Option<Postgres>,
    grpc: SocketAddr,
}

impl Stage {
    pub(super) async fn on_sqlite() -> Self {
        Self::start(None).await
    }

    pub(super) async fn on_postgres() -> Self {
        Self::start(Some(Postgres::start().await.unwrap())).await
    }

    async fn start(postgres: Option<Postgres>) -> Self {
        let (scratch, grpc) = (Scratch::new().unwrap(), free_addr().unwrap());
        let mut builder = Resolver::builder(&scratch, "resolver-0", &secret::random_hex().unwrap())
            .unwrap()
            .args(["--grpc-listen", &grpc.to_string(), "--limit", "unknown-codes-per-minute=0"]);
        if let Some(postgres) = &postgres {
            migrate(&scratch, &postgres.url()).await.unwrap().success().unwrap();
            builder = builder.database(&postgres.url());
        }
        Self { resolver: builder.start().await.unwrap(), scratch, postgres, grpc }
    }

    pub(super) fn grpc(&self) -> SocketAddr {
        self.grpc
    }

    /// Runs a command on the resolver's database.
    async fn run(&self, args: &[&str]) -> String {
        let mut launch =
            Launch::new(&self.scratch, "command", binaries::resolver().await.unwrap()).args(args);
        if let Some(postgres) = &self.postgres {
            launch = launch.args(["--database", &postgres.url()]);
        }
        launch.run(SOON).await.unwrap().success().unwrap().stdout.trim().to_owned()
    }

    async fn key(&self, name: &str, args: &[&str]) -> Api {
        let key = self.run(&[&["api-key", "create", "--name", name], args].concat()).await;
        self.resolver.api.with_key(&key)
    }

    /// Creates the keys. Each kind of tenant meets each kind of intruder that must not see it.
    pub(super) async fn pairs(&self) -> Vec<Pair> {
        for domain in DOMAINS {
            let edit = json!({ "domain": domain, "baseUrlRedirect": "https://example.org/" });
            done(&self.resolver.api, Method::PATCH, "domains/redirects", Some(edit)).await;
        }
        let of = |domain| ["--scopes", "admin", "--domain", domain];
        let tenant = self.key(&format!("{MARK}-own"), OWN).await;
        let domains = self.key(&format!("{MARK}-domain"), &of(DOMAINS[0])).await;
        let [own, other, writer] = [
            self.key("intruder-own", OWN).await,
            self.key("intruder-domain", &of(DOMAINS[1])).await,
            self.key("intruder-writer", WRITER).await,
        ];
        let pair = |tenant: &Api, is_of_domain, intruder: &Api| Pair {
            tenant: tenant.with_key(tenant.key()),
            is_of_domain,
            intruder: intruder.with_key(intruder.key()),
        };
        vec![
            pair(&tenant, false, &own),
            pair(&domains, true, &other),
            pair(&tenant, false, &other),
            pair(&tenant, false, &writer),
            pair(&domains, true, &own),
            pair(&domains, true, &writer),
        ]
    }

    /// Imports deleted and live links of the tenant's domain. Only Postgres has another process
    /// beside its resolver.
    pub(super) async fn import(&self, table: &str) -> bool {
        if self.postgres.is_none() {
            return false;
        }
        let file = self.scratch.file("import.csv", table).unwrap();
        self.run(&["import", "--from", "csv", "--json", &file.display().to_string()]).await;
        true
    }

    /// Waits until all visits so far are stored. Each listener's thread has a buffer of its own, so
    /// the last visit of each is older than that of this function, which is repeated.
    pub(super) async fn wait_for_visits(&self) {
        let api = &self.resolver.api;
        for _ in 0..2 {
            let code = api.create("https://example.org/").await.unwrap().code;
            api.follow(&code).await.unwrap();
            let path = format!("short-urls/{code}");
            let is_counted = async || get(api, &path).await["visitsSummary"]["total"] != 0;
            wait::until(Duration::from_secs(60), "the visits are stored", is_counted).await.unwrap();
        }
    }
}
