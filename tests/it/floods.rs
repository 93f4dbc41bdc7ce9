//! Floods of idle connections that exceed the file descriptors.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use harness::{Answer, Connection, Resolver, net::free_addr, wait};
use proto::links::v1::{ListLinksRequest, links_client::LinksClient};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpSocket, TcpStream},
};
use tonic::{Code, Request, transport::Channel};

/// The limit of file descriptors, so low that a flood soon exceeds it.
const DESCRIPTORS: u32 = 160;
const SOON: Duration = Duration::from_secs(30);

/// Opens `count` connections from loopback addresses, `of_each` from each.
async fn flood(to: SocketAddr, count: u16, of_each: u16) -> Vec<TcpStream> {
    let address = |number: u16| {
        let [high, low] = (number / of_each).to_be_bytes();
        Ipv4Addr::new(127, 200, high, low)
    };
    flood_from((0..count).map(address), to).await
}

async fn flood_from(addresses: impl Iterator<Item = Ipv4Addr>, to: SocketAddr) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for address in addresses {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((address, 0).into()).unwrap();
        // A refused connection serves the purpose too, so the flood continues.
        if let Ok(stream) = socket.connect(to).await {
            streams.push(stream);
        }
    }
    streams
}

async fn is_served(resolver: &Resolver) -> bool {
    let Ok(mut connection) = Connection::open(resolver.addr()).await else { return false };
    connection.get("/robots.txt").await.is_ok_and(|answer| answer.status == 200)
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_beyond_the_limit_keep_no_new_client_out() {
    let resolver = Resolver::embedded().unwrap().descriptors(DESCRIPTORS).start().await.unwrap();
    for of_each in [400, 1] {
        let silent = flood(resolver.addr(), 400, of_each).await;
        assert!(silent.len() > 300, "{}", silent.len());
        let served = wait::until(SOON, "a new client is served", async || is_served(&resolver).await);
        served.await.unwrap();
        let live = Answer::to(resolver.http().get(format!("{}/livez", resolver.admin_url()))).await.unwrap();
        assert_eq!(live.status, 200, "the admin listener has descriptors of its own");
        let created = resolver.api.create("https://example.com/page").await.unwrap();
        assert_eq!(resolver.api.follow(&created.code).await.unwrap().0, 302, "and so has the database");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_were_used_outlive_silent_ones() {
    let resolver = Resolver::embedded().unwrap().descriptors(DESCRIPTORS).start().await.unwrap();
    let mut used = Vec::new();
    for _ in 0..4 {
        let mut connection = Connection::open(resolver.addr()).await.unwrap();
        assert_eq!(connection.get("/robots.txt").await.unwrap().status, 200);
        used.push(connection);
    }
    let _silent = flood(resolver.addr(), 300, 1).await;
    for connection in &mut used {
        assert_eq!(connection.get("/robots.txt").await.unwrap().status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_to_the_admin_listener_keep_no_probe_out() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let admin: SocketAddr = resolver.admin_url().trim_start_matches("http://").parse().unwrap();
    let _silent = flood(admin, 200, 200).await;
    for path in ["/livez", "/readyz", "/metrics"] {
        let mut probe = Connection::open(admin).await.unwrap();
        assert_eq!(probe.get(path).await.unwrap().status, 200, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_to_the_links_api_are_limited_and_keep_no_caller_out() {
    let address = free_addr().unwrap();
    let builder = Resolver::embedded().unwrap().args(["--grpc-listen", &address.to_string()]);
    let resolver = builder.descriptors(DESCRIPTORS).start().await.unwrap();
    for of_each in [400, 1] {
        let _silent = flood(address, 400, of_each).await;
        let called = wait::until(SOON, "a caller is served", async || {
            let Ok(mut client) = LinksClient::connect(format!("http://{address}")).await else {
                return false;
            };
            let mut request = Request::new(ListLinksRequest::default());
            request.metadata_mut().insert("x-api-key", resolver.api.key().parse().unwrap());
            request.set_timeout(Duration::from_secs(5));
            client.list_links(request).await.is_ok()
        });
        called.await.unwrap();
        assert!(is_served(&resolver).await, "the public listener has its own");
    }
}

/// The client shares its address with the flood, like a neighbour behind the same router.
#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_of_an_address_keep_no_neighbour_behind_it_out() {
    let address = free_addr().unwrap();
    let builder = Resolver::embedded().unwrap().args(["--grpc-listen", &address.to_string()]);
    let resolver = builder.descriptors(DESCRIPTORS).start().await.unwrap();
    let ours = || std::iter::repeat_n(Ipv4Addr::LOCALHOST, 100);
    let mut used = Connection::open(resolver.addr()).await.unwrap();
    assert_eq!(used.get("/robots.txt").await.unwrap().status, 200);
    let _silent = flood_from(ours(), resolver.addr()).await;
    assert!(is_served(&resolver).await, "a new one");
    assert_eq!(used.get("/robots.txt").await.unwrap().status, 200, "and one that was used");

    let mut greeted = flood_from(ours(), address).await;
    for stream in &mut greeted {
        // After the HTTP/2 preface the connection may stay idle for long. The server may have
        // closed it already.
        let _ = stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    }
    let mut client = LinksClient::connect(format!("http://{address}")).await.unwrap();
    let mut request = Request::new(ListLinksRequest::default());
    request.metadata_mut().insert("x-api-key", resolver.api.key().parse().unwrap());
    client.list_links(request).await.unwrap();
}

/// Health watches need no API key and last as long as their client wants.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_watches_for_health_a_few_times_and_checks_it_beside_that() {
    let address = free_addr().unwrap();
    let builder = Resolver::embedded().unwrap().args(["--grpc-listen", &address.to_string()]);
    let _resolver = builder.start().await.unwrap();
    let channel = Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
    let watch = async || {
        let mut client = tonic::client::Grpc::new(channel.clone());
        client.ready().await.unwrap();
        let path = "/grpc.health.v1.Health/Watch".parse().unwrap();
        // A message without fields asks for the health of the whole server.
        let codec = tonic_prost::ProstCodec::<(), ()>::default();
        let answers = client.server_streaming(Request::new(()), path, codec).await;
        answers.map(tonic::Response::into_inner).map_err(|status| status.code())
    };
    let mut watching = Vec::new();
    for _ in 0..32 {
        watching.push(watch().await.unwrap());
    }
    assert_eq!(watch().await.err(), Some(Code::ResourceExhausted));
    let mut client = tonic::client::Grpc::new(channel.clone());
    client.ready().await.unwrap();
    let path = "/grpc.health.v1.Health/Check".parse().unwrap();
    let codec = tonic_prost::ProstCodec::<(), ()>::default();
    client.unary(Request::new(()), path, codec).await.expect("a check is answered");
    watching.pop();
    let again = wait::until(SOON, "its place is free", async || watch().await.is_ok());
    again.await.unwrap();
}
