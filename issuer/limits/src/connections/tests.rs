use std::{
    future::poll_fn,
    io,
    net::{Ipv4Addr, SocketAddr},
    pin::Pin,
    task::Poll,
};

use tokio::io::{AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _};

use super::*;
use crate::TimedStream;

/// A listener for connections that begin with the 24 bytes of a client of HTTP/2.
struct Site {
    listener: TcpListener,
    connections: Arc<Connections>,
    address: SocketAddr,
}

/// Both ends of a connection: the client's and the server's.
type Ends = (TcpStream, TimedStream<TcpStream>);

impl Site {
    async fn new(connections: usize, per_client: usize) -> Self {
        let limits = ListenerLimits { per_client, ..ListenerLimits::grpc(connections) };
        let connections = Connections::new("test", limits);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self { listener, connections: Arc::new(connections), address }
    }

    async fn accept(&self) -> TimedStream<TcpStream> {
        let (stream, open) = self.connections.accept(&self.listener).await;
        let mut stream = TimedStream::of_socket(stream, open);
        stream.expect_greeting(24);
        stream
    }

    async fn connect(&self) -> Ends {
        (TcpStream::connect(self.address).await.unwrap(), self.accept().await)
    }

    async fn greeted(&self) -> Ends {
        let (mut far, mut near) = self.connect().await;
        far.write_all(&[b'x'; 24]).await.unwrap();
        near.read_exact(&mut [0; 24]).await.unwrap();
        (far, near)
    }
}

async fn is_closed(near: &mut TimedStream<TcpStream>) -> bool {
    near.read_u8().await.unwrap_err().kind() == io::ErrorKind::ConnectionAborted
}

async fn is_open((far, near): &mut Ends) -> bool {
    far.write_all(b"y").await.unwrap();
    near.read_u8().await.unwrap() == b'y'
}

#[tokio::test]
async fn the_idlest_connection_makes_room_and_one_that_has_spoken_stays() {
    let site = Site::new(2, 0).await;
    let mut spoken = site.greeted().await;
    let mut silent = site.connect().await;
    let _newcomer = site.connect().await;
    assert!(is_closed(&mut silent.1).await && is_open(&mut spoken).await);
    drop(silent);
    assert_eq!(site.connections.table().connections.len(), 2);
}

#[tokio::test]
async fn connections_that_are_closed_but_not_gone_hold_newcomers_back() {
    let site = Site::new(2, 0).await;
    let mut held = Vec::new();
    for _ in 0..2 + CLOSING {
        held.push(site.connect().await);
    }
    let _newcomer = TcpStream::connect(site.address).await.unwrap();
    {
        let accepted = std::pin::pin!(site.accept());
        assert!(futures_util::poll!(accepted).is_pending(), "every descriptor is taken");
    }
    held.pop();
    site.accept().await;
}

#[tokio::test]
async fn a_client_past_its_share_gets_the_place_of_its_own_idlest() {
    let site = Site::new(8, 2).await;
    let neighbour = site.connections.admit([192, 0, 2, 1].into(), None).unwrap();
    let mut kept = site.greeted().await;
    let call = kept.1.connection().mark_serving();
    let mut silent = site.connect().await;

    let mut second = site.greeted().await;
    assert!(is_closed(&mut silent.1).await);
    let mut third = site.greeted().await;
    assert!(is_closed(&mut second.1).await);
    drop(call);
    site.connections.clock.seconds.fetch_add(1, Ordering::Relaxed);
    let _call = kept.1.connection().mark_serving();
    let _fourth = site.greeted().await;
    assert!(is_closed(&mut third.1).await && is_open(&mut kept).await);
    assert!(!neighbour.connection().is_closed(), "another client's stays");
}

#[tokio::test]
async fn a_clients_calls_stay_and_those_of_all_make_room() {
    let site = Site::new(2, 1).await;
    let mut kept = site.greeted().await;
    let _call = kept.1.connection().mark_serving();
    let [client, other, third] = [[127, 0, 0, 1], [192, 0, 2, 1], [192, 0, 2, 2]].map(IpAddr::from);
    let admit = |peer| site.connections.admit(peer, None);
    assert!(admit(client).is_none());
    site.connections.clock.seconds.fetch_add(1, Ordering::Relaxed);
    let others = admit(other).unwrap();
    let _watch = others.connection().mark_serving();
    assert!(admit(client).is_none(), "nor in another's place");
    assert!(is_open(&mut kept).await);

    let _third = admit(third).unwrap();
    assert!(is_closed(&mut kept.1).await && !others.connection().is_closed());
}

#[tokio::test]
async fn requests_that_end_are_not_cut_for_another_client() {
    let connections = Arc::new(Connections::new("test", ListenerLimits::http(1, 1)));
    let [one, other] = [1, 2].map(|last| IpAddr::from([192, 0, 2, last]));
    let busy = connections.admit(one, None).unwrap();
    let serving = busy.connection().mark_serving();
    for client in [one, other] {
        assert!(connections.admit(client, None).is_none());
    }
    drop(serving);
    assert!(connections.admit(other, None).is_some() && busy.connection().is_closed());
}

#[tokio::test]
async fn a_connection_is_closed_though_its_client_takes_nothing() {
    let site = Site::new(1, 0).await;
    let (mut deaf, mut blocked) = site.connect().await;
    deaf.write_all(&[b'x'; 24]).await.unwrap();
    let (tell, is_blocked) = tokio::sync::oneshot::channel();
    let mut tell = Some(tell);
    let writing = tokio::spawn(async move {
        blocked.read_exact(&mut [0; 24]).await.unwrap();
        poll_fn(move |cx| {
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
        })
        .await
    });
    is_blocked.await.unwrap();
    let _newcomer = site.connect().await;
    let ended = tokio::time::timeout(Duration::from_secs(30), writing).await;
    assert_eq!(ended.expect("it ends").unwrap(), io::ErrorKind::ConnectionAborted);
    let reset = deaf.read_to_end(&mut Vec::new()).await;
    assert!(reset.is_err(), "the kernel does not go on offering what is left");
}

#[tokio::test]
async fn a_client_that_greets_too_late_is_cut_and_pings_are_no_use() {
    let site = Site::new(8, 0).await;
    let (mut late, mut greeted) = (site.connect().await, site.greeted().await);
    late.0.write_all(&[0; 23]).await.unwrap();
    late.1.read_exact(&mut [0; 23]).await.unwrap();
    (0..11).for_each(|_| site.connections.tick());
    assert!(is_closed(&mut late.1).await && is_open(&mut greeted).await);
    let call = greeted.1.connection().mark_serving();
    (0..2_000).for_each(|_| site.connections.tick());
    assert!(is_open(&mut greeted).await, "a call is in progress");
    drop(call);
    for _ in 0..900 {
        assert!(is_open(&mut greeted).await);
        site.connections.tick();
    }
    site.connections.tick();
    assert!(is_closed(&mut greeted.1).await);
}

#[tokio::test]
async fn a_call_whose_client_sends_more_outlives_one_whose_client_is_silent() {
    let site = Site::new(2, 0).await;
    let (mut sending, mut silent) = (site.greeted().await, site.greeted().await);
    let _calls = [&sending, &silent].map(|(_, near)| near.connection().mark_serving());
    site.connections.clock.seconds.fetch_add(1, Ordering::Relaxed);
    sending.0.write_all(&[b'x'; 18]).await.unwrap();
    sending.1.read_exact(&mut [0; 18]).await.unwrap();
    let _newcomer = site.connect().await;
    assert!(is_closed(&mut silent.1).await && is_open(&mut sending).await);
}

#[tokio::test(start_paused = true)]
async fn clients_have_a_rate_of_handshakes_each_and_together_over_grpc() {
    let shaking = |limits| Arc::new(Connections::new("test", limits).with_handshakes(true));
    let own = shaking(ListenerLimits::http(10_000, 0));
    let admitted = (0..2_000).filter(|_| own.admit([192, 0, 2, 1].into(), None).is_some()).count();
    assert_eq!(u32::try_from(admitted).unwrap(), HANDSHAKES_PER_MINUTE);
    assert!(own.admit([192, 0, 2, 2].into(), None).is_some());
    let together = shaking(ListenerLimits::grpc(8));
    let clients = (0..20_000).map(|number| IpAddr::from(Ipv4Addr::from_bits(number)));
    let admitted = clients.filter(|client| together.admit(*client, None).is_some()).count();
    assert_eq!(u32::try_from(admitted).unwrap(), GRPC_HANDSHAKES_PER_MINUTE);
}

#[test]
fn connections_are_counted_by_network_and_come_back() {
    let mut connections = Connections::new("test", ListenerLimits::http(99, 2));
    connections.is_exempt = Box::new(|peer: IpAddr| peer == IpAddr::from([10, 1, 2, 3]));
    let connections = Arc::new(connections);
    let connect = |peer: &str| connections.admit(peer.parse().unwrap(), None);
    let ours = ["2001:db8::1", "2001:db8::2:1"].map(|peer| connect(peer).unwrap());
    let _serving = ours.each_ref().map(|open| open.connection().mark_serving());
    assert!(connect("2001:db8::3").is_none(), "one /64 is one client");
    assert!(connect("2001:db8:0:1::3").is_some());
    let proxied: Vec<_> = (0..9).map(|_| connect("10.1.2.3").unwrap()).collect();
    assert!(proxied.iter().all(|open| !open.connection().is_closed()), "an exempt client has no limit");
    drop((ours, proxied));
    assert!(connections.table().connections.is_empty());
}
