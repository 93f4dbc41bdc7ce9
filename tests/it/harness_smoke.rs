//! The harness itself: the servers start, die and restart as requested, and the proxy applies its
//! flows.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use harness::{Direction, EtcdCluster, Flow, Postgres, Proxy, wait};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

/// Long enough to conclude that nothing arrives; also the proxy's delay.
const SILENCE: Duration = Duration::from_millis(200);
const SOON: Duration = Duration::from_secs(5);

#[tokio::test]
async fn postgres_keeps_what_was_committed_over_a_kill_and_a_stop() {
    let mut postgres = Postgres::builder().setting("max_connections", "20").start().await.unwrap();
    let client = postgres.client().await.unwrap();
    client.batch_execute("CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)").await.unwrap();
    // A busy backend must not survive its server.
    let busy = tokio::spawn(async move { client.batch_execute("SELECT pg_sleep(600)").await });

    postgres.kill_now().await.unwrap();
    assert!(busy.await.unwrap().is_err());
    assert!(postgres.client().await.is_err());
    postgres.restart().await.unwrap();
    postgres.restart().await.unwrap();

    let proxy = Proxy::start(postgres.addr()).await.unwrap();
    let (client, connection) =
        tokio_postgres::connect(&postgres.url_via(&proxy), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    assert_eq!(client.query_one("SELECT n FROM kept", &[]).await.unwrap().get::<_, i32>(0), 1);
    let limit = client.query_one("SHOW max_connections", &[]).await.unwrap();
    assert_eq!(limit.get::<_, String>(0), "20");
}

#[tokio::test]
async fn etcd_outlives_its_leader_and_forgets_what_a_backup_lacks() {
    let mut etcd = EtcdCluster::start(3).await.unwrap();
    etcd.put("/smoke/a", "1").await.unwrap();
    etcd.put("/smoke/b", "").await.unwrap();
    let backup = etcd.save_snapshot().await.unwrap();

    let leader = etcd.leader_index().await.unwrap();
    etcd.members_mut()[leader].pause().await.unwrap();
    etcd.put("/smoke/c", "3").await.unwrap();
    etcd.members_mut()[leader].resume().unwrap();
    etcd.members_mut()[leader].kill_now().unwrap();
    etcd.delete("/smoke/a").await.unwrap();
    etcd.members_mut()[leader].restart().unwrap();
    etcd.wait_ready().await.unwrap();
    let pairs = etcd.get_prefix("/smoke/").await.unwrap();
    assert_eq!(pairs, [("/smoke/b".into(), String::new()), ("/smoke/c".into(), "3".into())]);

    etcd.restore_snapshot(&backup).await.unwrap();
    let pairs = etcd.get_prefix("/smoke/").await.unwrap();
    assert_eq!(pairs, [("/smoke/a".into(), "1".into()), ("/smoke/b".into(), String::new())]);
}

#[tokio::test]
async fn etcd_leases_are_listed_and_revoked() {
    let etcd = EtcdCluster::start(1).await.unwrap();
    let granted = etcd.call("/v3/lease/grant", &serde_json::json!({ "TTL": 60 })).await.unwrap();
    let id: i64 = granted["ID"].as_str().unwrap().parse().unwrap();
    assert_eq!(etcd.leases().await.unwrap(), [id]);
    etcd.revoke_lease(id).await.unwrap();
    assert!(etcd.leases().await.unwrap().is_empty());
    assert!(etcd.revoke_lease(id).await.is_err());
}

#[tokio::test]
async fn a_proxy_delays_and_stalls_without_losing_bytes() {
    let proxy = Proxy::start(echo_server().await).await.unwrap();
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    echo(&mut stream, b"pass").await;

    proxy.set(Direction::ToServer, Flow::Delay(SILENCE));
    let asked = Instant::now();
    echo(&mut stream, b"late").await;
    assert!(asked.elapsed() >= SILENCE);

    proxy.set_both(Flow::Stall);
    stream.write_all(b"held").await.unwrap();
    expect_silence(&mut stream).await;
    proxy.set_both(Flow::Pass);
    expect(&mut stream, b"held").await;
}

#[tokio::test]
async fn a_delay_does_not_lower_the_rate() {
    let proxy = Proxy::start(echo_server().await).await.unwrap();
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    proxy.set(Direction::ToClient, Flow::Delay(SILENCE));
    let asked = Instant::now();
    for _ in 0..10 {
        stream.write_all(b"tick").await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    expect(&mut stream, &b"tick".repeat(10)).await;
    assert!(asked.elapsed() < 3 * SILENCE, "{:?}", asked.elapsed());
}

#[tokio::test]
async fn a_cut_is_silent_and_ends_in_a_reset_never_in_a_hole() {
    let proxy = Proxy::start(echo_server().await).await.unwrap();
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    echo(&mut stream, b"pass").await;

    proxy.set(Direction::ToServer, Flow::Cut);
    stream.write_all(b"lost").await.unwrap();
    expect_silence(&mut stream).await;
    proxy.set(Direction::ToServer, Flow::Pass);
    expect_reset(&mut stream).await;
}

#[tokio::test]
async fn a_proxy_resets_and_refuses_and_accepts_again() {
    let proxy = Proxy::start(echo_server().await).await.unwrap();
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    echo(&mut stream, b"pass").await;

    proxy.refuse().await;
    let refused = TcpStream::connect(proxy.addr()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    echo(&mut stream, b"open connections go on").await;
    proxy.reset_all();
    expect_reset(&mut stream).await;

    proxy.accept().await.unwrap();
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    echo(&mut stream, b"again").await;
    drop(proxy);
    expect_reset(&mut stream).await;
}

#[tokio::test]
async fn a_stranded_connection_is_silent_for_good_and_a_new_one_passes() {
    let proxy = Proxy::start(echo_server().await).await.unwrap();
    let mut stranded = TcpStream::connect(proxy.addr()).await.unwrap();
    echo(&mut stranded, b"pass").await;

    proxy.strand_all();
    // The connection's task may notice the change only after it has forwarded this byte.
    let deaf = wait::until(SOON, "the connection is deaf", async || {
        stranded.write_all(b"?").await.unwrap();
        timeout(SILENCE, stranded.read(&mut [0])).await.is_err()
    });
    deaf.await.unwrap();
    let mut fresh = TcpStream::connect(proxy.addr()).await.unwrap();
    echo(&mut fresh, b"fresh").await;
    proxy.set_both(Flow::Stall);
    proxy.set_both(Flow::Pass);
    stranded.write_all(b"lost").await.unwrap();
    expect_silence(&mut stranded).await;
    echo(&mut fresh, b"still").await;
}

#[tokio::test]
async fn a_stalled_proxy_holds_a_bounded_amount() {
    let proxy = Proxy::start(echo_server().await).await.unwrap();
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    proxy.set_both(Flow::Stall);
    let flood = vec![0; 64 << 20];
    assert!(timeout(Duration::from_secs(1), stream.write_all(&flood)).await.is_err());
}

/// Starts a server that echoes its input for as long as the test's runtime lives.
async fn echo_server() -> SocketAddr {
    let listener = TcpListener::bind((harness::net::address(), 0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                drop(tokio::io::copy(&mut from, &mut to).await);
            });
        }
    });
    addr
}

async fn echo(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).await.unwrap();
    expect(stream, bytes).await;
}

async fn expect(stream: &mut TcpStream, bytes: &[u8]) {
    let mut got = vec![0; bytes.len()];
    timeout(SOON, stream.read_exact(&mut got)).await.unwrap().unwrap();
    assert_eq!(got, bytes);
}

async fn expect_silence(stream: &mut TcpStream) {
    // Waiting for readiness alone would not do, because tokio remembers it from the read before.
    let came = timeout(SILENCE, stream.peek(&mut [0])).await;
    assert!(came.is_err(), "{came:?}");
}

async fn expect_reset(stream: &mut TcpStream) {
    let read = timeout(SOON, stream.read(&mut [0])).await.unwrap();
    assert_eq!(read.unwrap_err().kind(), ErrorKind::ConnectionReset);
}
