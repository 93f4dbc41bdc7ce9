//! Clients behind a real proxy: each has budgets of its own, and none may name another client.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use harness::{Envoy, Resolver, Scratch};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

/// Clients behind the proxy, each with an address of its own.
const CLIENTS: u16 = 300;
/// Codes without a link that a client may ask for in a minute.
const BUDGET: usize = 20;
/// How many of them each client asks for. Of so many clients two may share a counter by chance, and
/// then have one budget.
const ASKED: usize = BUDGET / 2;
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// Returns the address of a client on the loopback, which is a whole network.
fn client(number: u16) -> IpAddr {
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(127, 77, high, low).into()
}

async fn connect(from: IpAddr, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(from, 0)).unwrap();
    socket.connect(to).await.unwrap()
}

/// Asks for codes without a link, and returns the statuses of the answers.
async fn ask(from: IpAddr, to: SocketAddr, count: usize, claims: &str) -> Vec<u16> {
    let mut statuses = Vec::new();
    for number in 0..count {
        let mut stream = connect(from, to).await;
        let request =
            format!("GET /zz{number:04} HTTP/1.1\r\nHost: sho.rt\r\n{claims}Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(ANSWER_WITHIN, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        statuses.push(answer.split(' ').nth(1).unwrap().parse().unwrap());
    }
    statuses
}

#[tokio::test(flavor = "multi_thread")]
async fn three_hundred_clients_behind_one_proxy_have_separate_budgets() {
    let scratch = Scratch::new().unwrap();
    let builder = Resolver::embedded().unwrap();
    let limit = format!("unknown-codes-per-minute={BUDGET}");
    // The address that the kernel gives to a connection of the proxy, and to none of the clients.
    let args = ["--trusted-proxies", "127.0.0.1/32", "--limit", &limit];
    let resolver = builder.args(args).start().await.unwrap();
    let proxy = Envoy::start(&scratch, resolver.addr(), None).await.unwrap();

    let spend = (0..CLIENTS).map(|number| ask(client(number), proxy.addr(), ASKED, ""));
    for statuses in futures_util::future::join_all(spend).await {
        assert_eq!(statuses, [404; ASKED]);
    }
    // A budget is spent, and the client that names another one in its own header is still itself.
    let greedy = client(7);
    for claims in ["", "X-Forwarded-For: 127.77.200.200\r\n"] {
        let statuses = ask(greedy, proxy.addr(), BUDGET, claims).await;
        assert!(statuses.contains(&429), "{claims:?}: {statuses:?}");
    }
    let statuses = ask(client(CLIENTS), proxy.addr(), ASKED, "").await;
    assert_eq!(statuses, [404; ASKED], "a new client is not held up");
}
