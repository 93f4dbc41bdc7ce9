//! TLS between servers: mutual between resolver and issuer, to etcd and to Postgres, with
//! certificates that change while the servers run.

mod refusals;

use std::{sync::Arc, time::Duration};

use harness::{
    Authority, EtcdCluster, Issuer, Load, Pair, Postgres, Resolver, Scratch, SecretFolder, migrate, net, wait,
};
use tls::{Certificate, ClientTls, TlsFiles, Verify};
use tokio::{net::TcpStream, time::sleep};

const SOON: Duration = Duration::from_secs(30);
/// The holder of the tests' resolver, and the name in its certificate.
const HOLDER: &str = "resolver-0";

/// Returns the certificate of a server on this process's address.
fn of_server(authority: &Authority) -> Pair {
    authority.issue(&[&net::address().to_string()]).unwrap()
}

/// Two issuers, etcd and Postgres, all with certificates of one authority.
struct Servers {
    scratch: Scratch,
    authority: Arc<Authority>,
    etcd: EtcdCluster,
    issuers: Vec<Issuer>,
    postgres: Postgres,
    of_etcd: SecretFolder,
    /// The certificates of the issuers, as servers and to etcd.
    of_issuers: SecretFolder,
    of_resolver: SecretFolder,
}

impl Servers {
    async fn start() -> Self {
        let scratch = Scratch::new().unwrap();
        let authority = Arc::new(Authority::new("first authority").unwrap());
        let folder = |name: &str, pair: &Pair| {
            SecretFolder::create(scratch.path().join(name), authority.pem(), pair).unwrap()
        };
        let of_etcd = folder("of-etcd", &of_server(&authority));
        let of_issuers = folder("of-issuers", &of_server(&authority));
        let of_resolver = folder("of-resolver", &authority.issue(&[HOLDER]).unwrap());
        let etcd = EtcdCluster::builder(3).scratch(&scratch).tls(&of_etcd).start().await.unwrap();
        let mut issuers = Vec::new();
        for name in ["issuer-0", "issuer-1"] {
            let issuer = Issuer::builder(&scratch, name, &etcd.secure_endpoints()).unwrap();
            let url = format!("https://{}", issuer.listen());
            let issuer = issuer.advertise(&url).args(of_issuers.args("etcd-ca", "etcd-"));
            // Short blocks, so that the resolver asks often.
            let issuer = issuer.args(["--block-min", "100", "--block-max", "100"]);
            let issuer = issuer.args(["--tls-client-names", HOLDER]);
            issuers.push(issuer.args(of_issuers.args("tls-client-ca", "tls-")).start().await.unwrap());
        }
        let postgres =
            Postgres::builder().scratch(&scratch).tls(authority.pem(), &of_server(&authority)).start();
        let postgres = postgres.await.unwrap();
        let sql = postgres.client().await.unwrap();
        sql.batch_execute("CREATE ROLE app LOGIN SUPERUSER").await.unwrap();
        postgres.set_password("app", "first").await.unwrap();
        postgres.authenticate("hostssl all app all scram-sha-256\nhost all app all reject").await.unwrap();
        Self { scratch, authority, etcd, issuers, postgres, of_etcd, of_issuers, of_resolver }
    }

    /// Returns the URL of the database for the role that has to use TLS, with more parameters.
    fn database(&self, parameters: &str) -> String {
        let url = format!("postgres://app@{}/shortmint?{parameters}", self.postgres.addr());
        format!("{url}&passfile={}/pgpass", self.scratch.path().display())
    }

    fn set_password(&self, password: &str) {
        std::fs::write(self.scratch.path().join("pgpass"), format!("*:*:*:app:{password}\n")).unwrap();
    }

    async fn resolver(&self) -> Resolver {
        let ca = self.of_resolver.file("ca.crt");
        let database = self.database(&format!("sslmode=verify-full&sslrootcert={ca}"));
        migrate(&self.scratch, &database).await.unwrap().success().unwrap();
        let key = self.scratch.secret("code.key", &"5a".repeat(32)).unwrap();
        let urls = self.issuers.iter().map(|issuer| format!("https://{}", issuer.listen()));
        let resolver = Resolver::builder(&self.scratch, HOLDER, "a-key-of-the-tests-of-tls").unwrap();
        let resolver = resolver.issuers(urls).database(&database);
        let resolver = resolver
            .code_key_file(&key)
            .args(["--issuer-tls", &self.of_resolver.entries(&["ca", "cert", "key"])]);
        resolver.start().await.unwrap()
    }

    /// Replaces the files of the issuers and of the resolver, and the certificates of Postgres.
    async fn renew(&mut self, ca: &str, authority: &Authority) {
        self.of_etcd.replace(ca, &of_server(authority)).unwrap();
        self.of_issuers.replace(ca, &of_server(authority)).unwrap();
        self.of_resolver.replace(ca, &authority.issue(&[HOLDER]).unwrap()).unwrap();
        self.postgres.renew(ca, &of_server(authority)).await.unwrap();
    }

    /// Restarts the members of etcd, one after the other: they read authorities at start only.
    async fn roll_etcd(&mut self) {
        for index in 0..3 {
            self.etcd.members_mut()[index].restart().unwrap();
            self.etcd.wait_ready().await.unwrap();
        }
    }

    /// Returns the serial number of the certificate that an issuer serves with now; `None` if the
    /// handshake fails.
    async fn serial(&self, issuer: usize) -> Option<String> {
        let file = |name: &str| Some(self.of_resolver.file(name).into());
        let files = TlsFiles { ca: file("ca.crt"), certificate: file("tls.crt"), key: file("tls.key") };
        let client = ClientTls::new(files, Verify::Full).unwrap();
        let stream = TcpStream::connect(self.issuers[issuer].listen()).await.unwrap();
        let connected = client.connect(&net::address().to_string(), stream).await.ok()?;
        let shown = connected.get_ref().get_ref().1.peer_certificates().unwrap();
        Some(Certificate::read(&shown[0]).serial)
    }

    /// Stops and starts all issuers, one after the other, so that all connections are new.
    async fn roll_issuers(&mut self) {
        for issuer in &mut self.issuers {
            issuer.stop(SOON).await.unwrap();
            issuer.restart().await.unwrap();
        }
    }

    /// Ends the resolver's connections to Postgres that are in no transaction, which loses no call.
    async fn cut_idle_database(&self) {
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE usename = 'app' AND state = 'idle' AND state_change < now() - interval '1 s'";
        self.on_database(cut).await;
    }

    /// Ends the resolver's connections to Postgres.
    async fn cut_database(&self) {
        self.on_database("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'")
            .await;
    }

    /// Returns whether no connection of the role is in plaintext.
    async fn database_is_secure(&self) -> bool {
        let in_plaintext = "SELECT pid FROM pg_stat_activity JOIN pg_stat_ssl USING (pid)
             WHERE usename = 'app' AND NOT ssl";
        self.on_database(in_plaintext).await == 0
    }

    /// Runs a statement on Postgres, and on its nodes. Returns how many rows it has in all.
    async fn on_database(&self, sql: &str) -> usize {
        let mut rows = 0;
        for server in self.postgres.servers() {
            rows += server.client().await.unwrap().query(sql, &[]).await.unwrap().len();
        }
        rows
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_and_authorities_change_under_load_and_no_create_fails() {
    let mut servers = Servers::start().await;
    servers.set_password("first");
    let resolver = servers.resolver().await;
    let mut load = Load::on([&resolver]).clients(8).creates(1_000_000).per_second(200).start();
    load.reaches(200, SOON).await.unwrap();

    assert!(servers.database_is_secure().await);

    // A renewal by the same authority, then another authority in three steps: trusted, used, alone.
    let (first, second) = (Arc::clone(&servers.authority), Authority::new("second authority").unwrap());
    let both = format!("{}{}", first.pem(), second.pem());
    let mut serial = servers.serial(0).await.unwrap();
    for (ca, by_second) in [(first.pem(), false), (&both, false), (&both, true), (second.pem(), true)] {
        servers.renew(ca, if by_second { &second } else { &first }).await;
        wait::until(SOON, "the issuers serve with their new certificate", async || {
            let served = [servers.serial(0).await, servers.serial(1).await];
            served.iter().all(|served| served.as_ref().is_some_and(|served| *served != serial))
        })
        .await
        .unwrap();
        serial = servers.serial(0).await.unwrap();
        // The resolver reads its files as often as the issuers do.
        sleep(Duration::from_secs(3)).await;
        // Each side needs new connections for what comes after: more than the blocks in hand.
        servers.roll_etcd().await;
        load.reaches(load.acknowledged() + 600, SOON).await.unwrap();
        servers.roll_issuers().await;
        load.reaches(load.acknowledged() + 600, SOON).await.unwrap();
        servers.cut_idle_database().await;
    }

    load.wind_down();
    let links = load.finish().await.unwrap();

    // Without load: a connection that is opened between the two has the old password.
    servers.postgres.set_password("app", "second").await.unwrap();
    servers.set_password("second");
    // Connections that are cut may take calls with them, and new ones have the new password.
    servers.cut_database().await;
    wait::until(SOON, "a create succeeds with the new password", async || {
        resolver.api.try_create("https://example.com/second").await.is_ok_and(|answer| answer.status == 200)
    })
    .await
    .unwrap();
    assert!(servers.database_is_secure().await);
    for link in &links {
        assert_eq!(resolver.api.follow(&link.code).await.unwrap().1.as_ref(), Some(&link.long_url));
    }
    let expiry = "certificate_expiry_timestamp_seconds";
    for label in ["server", "etcd"] {
        let label = format!("certificate=\"{label}\"");
        let end = servers.issuers[0].metric_where(&format!("issuer_{expiry}"), &label).await;
        assert!(end.unwrap() > 4_000_000_000.0, "{label}");
    }
    assert!(resolver.metric(&format!("resolver_{expiry}")).await.unwrap() > 4_000_000_000.0);
}
