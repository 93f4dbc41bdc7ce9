use std::{pin::Pin, sync::atomic::Ordering, task::Poll};

use tokio::io::{AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _};
use tonic::transport::server::Connected as _;

use super::{guarded::PING_BYTES, *};

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
async fn connections_that_are_ended_but_not_closed_hold_newcomers_back() {
    let (mut gate, address) = gate(limits(2, 0)).await;
    let mut held = Vec::new();
    for _ in 0..2 + CLOSING {
        held.push(connect(&mut gate, address).await);
    }
    let _newcomer = TcpStream::connect(address).await.unwrap();
    {
        let accepted = std::pin::pin!(gate.accept());
        assert!(futures_util::poll!(accepted).is_pending(), "every descriptor is taken");
    }
    held.pop();
    gate.accept().await;
}

/// Connects, and has the gate accept the connection.
async fn connect(gate: &mut Gate, address: std::net::SocketAddr) -> (TcpStream, Guarded) {
    let stream = TcpStream::connect(address).await.unwrap();
    (stream, gate.accept().await)
}

async fn speak(far: &mut TcpStream, near: &mut Guarded) {
    far.write_all(&[b'x'; 24]).await.unwrap();
    near.read_exact(&mut [0; 24]).await.unwrap();
}

#[tokio::test]
async fn a_client_past_its_share_gets_the_place_of_its_own_idlest() {
    let (mut gate, address) = gate(limits(8, 2)).await;
    let neighbour = Arc::new(Pulse::new(u64::MAX, Some([192, 0, 2, 1].into()), Duration::ZERO));
    gate.open.table().connections.insert(neighbour.id, Arc::clone(&neighbour));
    let (mut calling, mut kept) = connect(&mut gate, address).await;
    speak(&mut calling, &mut kept).await;
    let call = kept.connect_info().call();
    let (_silent, mut unheard) = connect(&mut gate, address).await;

    let (mut speaking, mut newcomer) = connect(&mut gate, address).await;
    assert_eq!(unheard.read_u8().await.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    speak(&mut speaking, &mut newcomer).await;
    newcomer.pulse.used_at.store(u64::MAX, Ordering::Relaxed);
    let (_second, mut second) = connect(&mut gate, address).await;
    assert_eq!(newcomer.read_u8().await.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    drop(call);
    speak(&mut TcpStream::connect(address).await.unwrap(), &mut gate.accept().await).await;
    assert_eq!(second.read_u8().await.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    calling.write_all(b"y").await.unwrap();
    assert_eq!(kept.read_u8().await.unwrap(), b'y');
    assert!(gate.open.table().connections.contains_key(&neighbour.id), "another client's stays");
}

#[tokio::test]
async fn a_clients_calls_stay_and_those_of_all_make_room() {
    let (mut gate, address) = gate(limits(2, 1)).await;
    let (mut calling, mut kept) = connect(&mut gate, address).await;
    speak(&mut calling, &mut kept).await;
    let call = kept.connect_info().call();
    let client = Some(network(address.ip()));
    let [other, third] = [1, 2].map(|host| Some(IpAddr::from([192, 0, 2, host])));
    assert!(matches!(gate.open.admit(client, &gate.limits), Admitted::Refused));
    let Admitted::Free(others) = gate.open.admit(other, &gate.limits) else { panic!("there is a place") };
    let _watch = others.call();
    others.used_at.store(u64::MAX, Ordering::Relaxed);
    others.has_greeted.store(true, Ordering::Relaxed);
    assert!(matches!(gate.open.admit(client, &gate.limits), Admitted::Refused), "nor in another's place");
    calling.write_all(b"y").await.unwrap();
    assert_eq!(kept.read_u8().await.unwrap(), b'y');

    assert!(matches!(gate.open.admit(third, &gate.limits), Admitted::InPlaceOfAnother(_)));
    assert_eq!(kept.read_u8().await.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    drop(call);
}

#[tokio::test]
async fn exempt_peers_have_any_number_of_connections() {
    let (many, address) = gate(limits(8, 1)).await;
    let mut many = many.exempting(Arc::new(|peer| peer.is_loopback()));
    let mut first = connect(&mut many, address).await;
    let _second = connect(&mut many, address).await;
    speak(&mut first.0, &mut first.1).await;
}

#[tokio::test]
async fn a_connection_is_closed_though_its_client_takes_nothing() {
    let (mut gate, address) = gate(limits(1, 0)).await;
    let (mut deaf, mut blocked) = connect(&mut gate, address).await;
    speak(&mut deaf, &mut blocked).await;
    let (tell, is_blocked) = tokio::sync::oneshot::channel();
    let mut tell = Some(tell);
    let writing = tokio::spawn(std::future::poll_fn(move |cx| {
        loop {
            match Pin::new(&mut blocked).poll_write(cx, &[0; 65_536]) {
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(error.kind()),
                Poll::Pending => {
                    tell.take().map(|tell| tell.send(()));
                    return Poll::Pending;
                }
            }
        }
    }));
    is_blocked.await.unwrap();
    let _newcomer = connect(&mut gate, address).await;
    let ended = tokio::time::timeout(Duration::from_secs(30), writing).await;
    assert_eq!(ended.expect("it ends").unwrap(), io::ErrorKind::ConnectionAborted);
    let mut rest = Vec::new();
    let reset = deaf.read_to_end(&mut rest).await;
    assert!(reset.is_err(), "the kernel does not go on offering what is left");
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
