//! Clients and servers that may not be talked to. Each is refused with the reason on both sides.

use std::time::Duration;

use harness::{
    Authority, Finished, Launch, Load, Pair, Process, SecretFolder, binaries, certificates::self_signed,
    migrate, wait,
};
use proto::issuer::v1::{RegisterRequest, issuer_client::IssuerClient};
use tls::{ClientTls, TlsFiles, Verify};
use tokio::time::sleep;
use tonic::{Code, Status, transport::Endpoint};

use super::{HOLDER, SOON, Servers, of_server};

/// Registers a holder at the first issuer with that certificate, and over http or https.
async fn register(servers: &Servers, scheme: &str, ca: &str, pair: Option<&Pair>, holder: &str) -> Status {
    let path = servers.scratch.path().join(servers.scratch.stem("client"));
    let shown = pair.cloned().unwrap_or_else(|| of_server(&servers.authority));
    let folder = SecretFolder::create(path, ca, &shown).unwrap();
    let file = |name: &str| Some(folder.file(name).into());
    let mut files = TlsFiles { ca: file("ca.crt"), ..TlsFiles::default() };
    if pair.is_some() {
        (files.certificate, files.key) = (file("tls.crt"), file("tls.key"));
    }
    let client = ClientTls::new(files, Verify::Full).unwrap();
    let url = format!("{scheme}://{}", servers.issuers[0].listen());
    let channel = daemon::channel(&Endpoint::from_shared(url).unwrap(), Some(&client));
    let request = RegisterRequest {
        holder: holder.to_owned(),
        instance: "start".to_owned(),
        namespaces: Vec::new(),
        reserved: false,
    };
    match IssuerClient::new(channel).register(request).await {
        Ok(_) => Status::ok(""),
        Err(status) => status,
    }
}

/// Waits until a process has logged a line with all parts.
async fn logs(process: &Process, parts: &[&str]) {
    logs_after(process, 0, parts).await;
}

/// Waits until a process has logged such a line after this many bytes.
async fn logs_after(process: &Process, after: usize, parts: &[&str]) {
    let what = format!("a line of the log has {parts:?}");
    let logged = async || {
        let log = process.logs();
        log[after.min(log.len())..].lines().any(|line| parts.iter().all(|part| line.contains(part)))
    };
    wait::until(SOON, &what, logged).await.unwrap_or_else(|error| panic!("{error:#}\n{}", process.logs()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_may_not_act_as_a_holder_is_refused_with_the_reason_on_both_sides() {
    let servers = Servers::start().await;
    let (ours, stranger) = (&servers.authority, Authority::new("stranger").unwrap());
    let ca = ours.pem();
    let own = ours.issue(&[HOLDER]).unwrap();
    // The first issuer need not lead to refuse, and a follower refuses as well.
    let asked = register(&servers, "https", ca, Some(&own), HOLDER).await;
    assert!(matches!(asked.code(), Code::Ok | Code::FailedPrecondition), "{asked:?}");
    let below = register(&servers, "https", ca, Some(&own), "resolver-0.pod").await;
    assert!(matches!(below.code(), Code::Ok | Code::FailedPrecondition), "{below:?}");

    let issuer = &servers.issuers[0].process;
    let other = register(&servers, "https", ca, Some(&own), "resolver-1").await;
    assert_eq!(other.code(), Code::Unauthenticated);
    assert!(other.message().contains("resolver-0") && other.message().contains("resolver-1"), "{other:?}");
    logs(issuer, &["call of another holder refused", "resolver-1", "resolver-0"]).await;

    let etcd = ours.issue(&["etcd"]).unwrap();
    for holder in ["etcd", "reservation-0"] {
        assert_eq!(register(&servers, "https", ca, Some(&etcd), holder).await.code(), Code::Unauthenticated);
    }
    let reservation = register(&servers, "https", ca, Some(&own), "reservation-0").await;
    assert!(matches!(reservation.code(), Code::Ok | Code::FailedPrecondition), "{reservation:?}");

    let refused = [
        (Some(ours.issue_expired(&[HOLDER]).unwrap()), "certificate expired", "CertificateExpired"),
        (Some(self_signed(&[HOLDER]).unwrap()), "UnknownIssuer", "UnknownCA"),
        (Some(stranger.issue(&[HOLDER]).unwrap()), "UnknownIssuer", "UnknownCA"),
        (None, "peer sent no certificates", "CertificateRequired"),
    ];
    for (pair, logged, told) in refused {
        let before = issuer.logs().len();
        let status = register(&servers, "https", ca, pair.as_ref(), HOLDER).await;
        let reason = daemon::reasons(&status);
        assert!(!matches!(status.code(), Code::Ok | Code::FailedPrecondition), "{reason}");
        assert!(reason.to_lowercase().contains(&told.to_lowercase()), "{told}: {reason}");
        assert!(!reason.contains('\n'), "{reason}");
        logs_after(issuer, before, &["TLS handshake failed", logged]).await;
        // The log has one line a second for each kind of event.
        sleep(Duration::from_millis(1_100)).await;
    }
    let plaintext = register(&servers, "http", ca, None, HOLDER).await;
    assert!(!matches!(plaintext.code(), Code::Ok | Code::FailedPrecondition), "{plaintext:?}");
    logs(issuer, &["TLS handshake failed", "corrupt message"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resolver_does_not_trust_an_issuer_of_another_authority_and_says_so() {
    let mut servers = Servers::start().await;
    servers.set_password("first");
    let resolver = servers.resolver().await;
    resolver.api.create("https://example.com/").await.unwrap();
    let stranger = Authority::new("stranger").unwrap();
    servers.of_resolver.replace(stranger.pem(), &servers.authority.issue(&[HOLDER]).unwrap()).unwrap();
    sleep(Duration::from_secs(3)).await;
    servers.roll_issuers().await;
    logs(&resolver.process, &["no connection to the issuer", "UnknownIssuer"]).await;
    // A file that does not fit changes nothing.
    let half = Pair { certificate: "none".to_owned(), ..servers.authority.issue(&[HOLDER]).unwrap() };
    servers.of_resolver.replace(servers.authority.pem(), &half).unwrap();
    logs(&resolver.process, &["the former ones stay in use", "tls.crt", "expected a certificate in PEM"])
        .await;
    servers
        .of_resolver
        .replace(servers.authority.pem(), &servers.authority.issue(&[HOLDER]).unwrap())
        .unwrap();
    // More than all blocks in hand, so that the issuer must have been asked.
    Load::on([&resolver]).creates(500).retries_unavailable().run().await.unwrap();
}

async fn migrate_within_a_second(servers: &Servers, url: &str) -> Finished {
    let launch = Launch::new(&servers.scratch, "migrate", binaries::resolver().await.unwrap());
    launch.args(["migrate", "--start-deadline", "1s", "--database", url]).run(SOON).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_cannot_prove_who_it_is_is_refused_with_the_reason() {
    let servers = Servers::start().await;
    servers.set_password("first");
    let ca = servers.of_resolver.file("ca.crt");
    let stranger = servers.scratch.file("stranger.crt", Authority::new("stranger").unwrap().pem()).unwrap();
    let of = |mode: &str, ca: &str| servers.database(&format!("sslmode={mode}&sslrootcert={ca}"));
    let stranger = stranger.display().to_string();
    let refused = async |url: &str, parts: [&str; 2]| {
        let ended = migrate_within_a_second(&servers, url).await;
        let line = ended.stderr.lines().last().unwrap_or_default().to_owned();
        assert!(matches!(ended.code(), Some(64 | 69)), "{url}: {ended:?}");
        assert!(parts.iter().all(|part| line.contains(part)), "{url}: {line}");
    };
    for (url, parts) in [
        (of("verify-full", &stranger), ["invalid peer certificate", "UnknownIssuer"]),
        (of("verify-ca", &stranger), ["invalid peer certificate", "UnknownIssuer"]),
        (of("verify-full", "/nowhere.crt"), ["/nowhere.crt", "No such file"]),
        (servers.database("sslmode=disable"), ["pg_hba.conf rejects", "no encryption"]),
    ] {
        refused(&url, parts).await;
    }
    // Any name is fine with verify-ca, and any certificate with require.
    for url in [of("verify-ca", &ca), servers.database("sslmode=require"), of("verify-full", &ca)] {
        migrate(&servers.scratch, &url).await.unwrap().success().unwrap();
    }
    // A certificate for another name.
    let elsewhere = servers.authority.issue(&["elsewhere.example"]).unwrap();
    servers.postgres.renew(servers.authority.pem(), &elsewhere).await.unwrap();
    let by_name = of("verify-full", &ca);
    wait::until(SOON, "Postgres has its new certificate", async || {
        !migrate_within_a_second(&servers, &by_name).await.status.success()
    })
    .await
    .unwrap();
    refused(&of("verify-full", &ca), ["not valid for name", "elsewhere.example"]).await;
    migrate(&servers.scratch, &of("verify-ca", &ca)).await.unwrap().success().unwrap();
}
