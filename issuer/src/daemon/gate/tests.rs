use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

fn limits(connections: usize, per_client: usize) -> GateLimits {
    GateLimits { connections, per_client, ..GateLimits::grpc(connections) }
}

async fn gate(limits: GateLimits) -> (Gate, std::net::SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (Gate::new(listener, "test", limits), address)
}

#[tokio::test]
async fn the_idlest_connection_makes_room_and_one_that_has_spoken_stays() {
    let (mut gate, address) = gate(limits(2, 0)).await;
    let mut speaking = TcpStream::connect(address).await.unwrap();
    let mut spoken = gate.accept().await;
    speaking.write_all(&[b'x'; 24]).await.unwrap();
    spoken.read_exact(&mut [0; 24]).await.unwrap();
    let _silent = TcpStream::connect(address).await.unwrap();
    let mut unheard = gate.accept().await;
    let _newcomer = TcpStream::connect(address).await.unwrap();
    let _third = gate.accept().await;
    let cut = unheard.read_u8().await.unwrap_err();
    assert_eq!(cut.kind(), io::ErrorKind::ConnectionAborted);
    speaking.write_all(b"y").await.unwrap();
    assert_eq!(spoken.read_u8().await.unwrap(), b'y');
    drop(unheard);
    assert_eq!(gate.open.table().connections.len(), 2);
}

#[tokio::test]
async fn a_client_past_its_share_is_refused_and_exempt_peers_are_not() {
    let (mut one, address) = gate(limits(8, 1)).await;
    let mut first = TcpStream::connect(address).await.unwrap();
    let kept = one.accept().await;
    let mut second = TcpStream::connect(address).await.unwrap();
    let accepting = tokio::spawn(async move { one.accept().await });
    assert_eq!(second.read(&mut [0]).await.unwrap_or(0), 0, "closed at once");
    drop(kept);
    assert_eq!(first.read(&mut [0]).await.unwrap_or(0), 0);
    let _third = TcpStream::connect(address).await.unwrap();
    accepting.await.unwrap();

    let (many, address) = gate(limits(8, 1)).await;
    let mut many = many.exempting(Arc::new(|peer| peer.is_loopback()));
    let _streams = [TcpStream::connect(address).await.unwrap(), TcpStream::connect(address).await.unwrap()];
    let _kept = [many.accept().await, many.accept().await];
}

#[tokio::test]
async fn whoever_greets_too_late_is_ended_and_answers_to_pings_are_no_use() {
    let hasty = GateLimits { greet_within: Duration::ZERO, ..limits(8, 0) };
    let (mut gate, address) = gate(hasty).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut accepted = gate.accept().await;
    stream.write_all(&[0; 23]).await.unwrap();
    accepted.read_exact(&mut [0; 23]).await.unwrap();
    let used_at = accepted.pulse.used_at.load(Ordering::Relaxed);
    let accepting = tokio::spawn(async move { gate.accept().await });
    let cut = accepted.read_u8().await.unwrap_err();
    assert_eq!(cut.kind(), io::ErrorKind::ConnectionAborted);
    accepted.note_read(1);
    assert!(accepted.pulse.has_greeted.load(Ordering::Relaxed));
    let greeted_at = accepted.pulse.used_at.load(Ordering::Relaxed);
    assert!(greeted_at >= used_at);
    accepted.pulse.used_at.store(0, Ordering::Relaxed);
    accepted.note_read(PING_BYTES);
    assert_eq!(accepted.pulse.used_at.load(Ordering::Relaxed), 0);
    accepting.abort();
}

#[test]
fn an_ipv6_network_of_64_bits_is_one_client() {
    let ip = |text: &str| -> IpAddr { text.parse().unwrap() };
    assert_eq!(network(ip("2001:db8::1")), network(ip("2001:db8::2:1")));
    assert_ne!(network(ip("2001:db8::1")), network(ip("2001:db8:0:1::1")));
    assert_eq!(network(ip("::ffff:192.0.2.1")), ip("192.0.2.1"));
}
