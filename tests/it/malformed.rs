//! Malformed calls to a real issuer (fault 23): each is refused with the name of its field, nothing
//! panics, and nothing is allocated.

use std::net::SocketAddr;
use std::time::Duration;

use harness::{Cluster, Issuer, checks};
use proto::issuer::v1::issuer_client::IssuerClient;
use proto::issuer::v1::{
    AllocateBlockRequest, Block, KeepAliveRequest, NamespaceSpec, Progress, Range, RegisterRequest,
    ReturnBlocksRequest, ReturnedBlock,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Code, Status};

const SOON: Duration = Duration::from_secs(30);

/// The issuer's limit for a message, in bytes.
const MESSAGE_MAX: usize = 16 * 1024;

type Client = IssuerClient<Channel>;

#[tokio::test(flavor = "multi_thread")]
async fn every_malformed_call_is_refused_by_the_name_of_its_field_and_the_next_call_is_served() {
    let mut cluster = Cluster::builder().resolvers(0).start().await.unwrap();
    cluster.wait_leader(SOON).await.unwrap();
    let mut client = IssuerClient::connect(cluster.issuers[0].url()).await.unwrap();
    let incarnation = client.register(register()).await.unwrap().into_inner().incarnation;
    let block = client.allocate_block(allocate(incarnation, 1)).await.unwrap().into_inner().block.unwrap();
    let before = cluster.status().await.unwrap();

    for (field, request) in registrations() {
        let status = client.register(request.clone()).await.expect_err(&format!("{request:?}"));
        expect_named(&status, field, &request);
    }
    for (field, request) in allocations(incarnation) {
        let status = client.allocate_block(request.clone()).await.expect_err(&format!("{request:?}"));
        expect_named(&status, field, &request);
    }
    for (field, request) in returns(incarnation, &block) {
        let status = client.return_blocks(request.clone()).await.expect_err(&format!("{request:?}"));
        expect_named(&status, field, &request);
    }
    for (field, request) in beats(incarnation) {
        let sent = client.keep_alive(tokio_stream::once(request.clone())).await;
        expect_named(&sent.err().unwrap(), field, &request);
    }
    let after = cluster.status().await.unwrap();
    assert_eq!(after.namespaces, before.namespaces, "a refused call changed the account");
    checks::account_balances(&after).unwrap();
    expect_alive(&mut cluster.issuers[0], &mut client, incarnation).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_fit_no_order_or_no_size_are_refused_and_change_nothing() {
    let mut cluster = Cluster::builder().resolvers(0).start().await.unwrap();
    cluster.wait_leader(SOON).await.unwrap();
    let mut client = IssuerClient::connect(cluster.issuers[0].url()).await.unwrap();
    let incarnation = client.register(register()).await.unwrap().into_inner().incarnation;
    let before = cluster.status().await.unwrap();

    let code = |answer: Result<_, Status>| answer.map(drop).expect_err("it must be refused").code();
    assert_eq!(code(client.allocate_block(allocate(incarnation, 7)).await), Code::OutOfRange);
    assert_eq!(code(client.allocate_block(allocate(incarnation + 1, 1)).await), Code::FailedPrecondition);
    let large = "x".repeat(2 * MESSAGE_MAX);
    let too_large = AllocateBlockRequest { store_epoch: large, ..allocate(incarnation, 1) };
    let refused = client.allocate_block(too_large).await.expect_err("it must be refused");
    assert!(matches!(refused.code(), Code::OutOfRange | Code::ResourceExhausted), "{refused:?}");

    let mut stranger =
        tonic::client::Grpc::new(Channel::from_shared(cluster.issuers[0].url()).unwrap().connect_lazy());
    stranger.ready().await.unwrap();
    let path = "/shortmint.issuer.v1.Issuer/Nonsense".parse().unwrap();
    let codec = tonic_prost::ProstCodec::<RegisterRequest, RegisterRequest>::default();
    let refused = stranger.unary(tonic::Request::new(register()), path, codec).await;
    assert_eq!(refused.expect_err("there is no such method").code(), Code::Unimplemented);

    assert_eq!(
        cluster.status().await.unwrap().namespaces,
        before.namespaces,
        "a refused call changed the account"
    );
    expect_alive(&mut cluster.issuers[0], &mut client, incarnation).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_grpc_are_answered_or_hung_up_on_and_harm_nobody() {
    let mut cluster = Cluster::builder().resolvers(0).start().await.unwrap();
    cluster.wait_leader(SOON).await.unwrap();
    let mut client = IssuerClient::connect(cluster.issuers[0].url()).await.unwrap();
    let incarnation = client.register(register()).await.unwrap().into_inner().incarnation;
    let addr: SocketAddr = cluster.issuers[0].url().strip_prefix("http://").unwrap().parse().unwrap();

    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let frame_of_16_megabytes = [preface.clone(), vec![0xff; 64]].concat();
    // A DATA frame on a stream that was never opened.
    let stray_frame =
        [preface, b"\0\0\0\x04\0\0\0\0\0".to_vec(), b"\0\0\x01\0\0\0\0\0\x05x".to_vec()].concat();
    let garbage: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let http1 = b"GET /metrics HTTP/1.1\r\nHost: issuer\r\n\r\n".to_vec();
    let tls_hello = b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03".to_vec();
    for bytes in [garbage, http1, tls_hello, frame_of_16_megabytes, stray_frame] {
        expect_hang_up(addr, &bytes).await;
    }
    // The client hangs up in the middle of the preface.
    drop(TcpStream::connect(addr).await.unwrap().write_all(b"PRI * HT").await);
    expect_alive(&mut cluster.issuers[0], &mut client, incarnation).await;
}

fn register() -> RegisterRequest {
    let namespaces = vec![NamespaceSpec { name: "web".to_owned(), capacity: 1_000_000 }];
    RegisterRequest {
        holder: "probe".to_owned(),
        instance: "instance-1".to_owned(),
        namespaces,
        reserved: false,
    }
}

fn allocate(incarnation: u64, seq: u64) -> AllocateBlockRequest {
    AllocateBlockRequest {
        holder: "probe".to_owned(),
        incarnation,
        seq,
        namespace: "web".to_owned(),
        wanted_len: 1,
        store_epoch: "store".to_owned(),
    }
}

/// Returns names that could escape from their ledger key or overflow it.
fn wrong_names(len_max: usize) -> Vec<String> {
    let wrong = ["", "a/b", "a b", "ü", "\0"].map(str::to_owned).into_iter();
    wrong.chain(["x".repeat(len_max + 1), "x".repeat(8_000)]).collect()
}

fn registrations() -> Vec<(&'static str, RegisterRequest)> {
    let spec = |name: &str, capacity| NamespaceSpec { name: name.to_owned(), capacity };
    let with = |namespaces| RegisterRequest { namespaces, ..register() };
    let mut cases = vec![
        ("namespaces.capacity", with(vec![spec("web", 0)])),
        ("namespaces.capacity", with(vec![spec("web", (1 << 48) + 1)])),
        ("namespaces.capacity", with(vec![spec("web", u64::MAX)])),
        ("namespaces", with((0..65).map(|n| spec(&format!("n{n}"), 1)).collect())),
    ];
    cases.extend(
        wrong_names(128).into_iter().map(|holder| ("holder", RegisterRequest { holder, ..register() })),
    );
    let instances = wrong_names(64).into_iter();
    cases.extend(instances.map(|instance| ("instance", RegisterRequest { instance, ..register() })));
    cases.extend(wrong_names(64).into_iter().map(|name| ("namespace", with(vec![spec(&name, 1)]))));
    cases
}

fn allocations(incarnation: u64) -> Vec<(&'static str, AllocateBlockRequest)> {
    let right = || allocate(incarnation, 2);
    let mut cases = vec![
        ("wanted_len", AllocateBlockRequest { wanted_len: 0, ..right() }),
        ("wanted_len", AllocateBlockRequest { wanted_len: u64::MAX, ..right() }),
        ("wanted_len", AllocateBlockRequest { wanted_len: (1 << 48) + 1, ..right() }),
        ("seq", AllocateBlockRequest { seq: 0, ..right() }),
        ("seq", AllocateBlockRequest { seq: u64::MAX, ..right() }),
        ("incarnation", AllocateBlockRequest { incarnation: 0, ..right() }),
        ("incarnation", AllocateBlockRequest { incarnation: u64::MAX, ..right() }),
    ];
    cases.extend(
        wrong_names(128).into_iter().map(|holder| ("holder", AllocateBlockRequest { holder, ..right() })),
    );
    let namespaces = wrong_names(64).into_iter();
    cases.extend(namespaces.map(|namespace| ("namespace", AllocateBlockRequest { namespace, ..right() })));
    let epochs = wrong_names(128).into_iter();
    cases.extend(epochs.map(|store_epoch| ("store_epoch", AllocateBlockRequest { store_epoch, ..right() })));
    cases
}

fn returns(incarnation: u64, block: &Block) -> Vec<(&'static str, ReturnBlocksRequest)> {
    let whole = ReturnedBlock { block: Some(block.clone()), used: block.len, ..ReturnedBlock::default() };
    let call = |blocks| ReturnBlocksRequest { holder: "probe".to_owned(), incarnation, blocks };
    let with_span = |start, len| {
        let block = Some(Block { start, len, ..block.clone() });
        call(vec![ReturnedBlock { block, used: len, ..ReturnedBlock::default() }])
    };
    let with_unused = |used, ranges: &[(u64, u64)]| {
        let unused = ranges.iter().map(|(start, len)| Range { start: *start, len: *len }).collect();
        call(vec![ReturnedBlock { used, unused, ..whole.clone() }])
    };
    let (start, len) = (block.start, block.len);
    let mut cases = vec![
        ("range", with_span(start, 0)),
        ("range", with_span(start, u64::MAX)),
        ("range", with_span(u64::MAX, 1)),
        ("range", with_span(1, u64::MAX)),
        ("range", with_span(1 << 48, 1)),
        ("range", with_unused(len, &[(start, 0)])),
        ("range", with_unused(0, &[(start, u64::MAX)])),
        ("blocks.unused", with_unused(0, &[(start, len + 1)])),
        ("blocks.unused", with_unused(len - 2, &[(start + 1, 1), (start, 1)])),
        ("blocks.unused", with_unused(len - 2, &[(start, 1), (start, 1)])),
        ("blocks.unused", with_unused(0, &[(start, 1); 33])),
        ("blocks.used", with_unused(len, &[(start, 1)])),
        ("blocks.used", call(vec![ReturnedBlock { used: u64::MAX, burned: u64::MAX, ..whole.clone() }])),
        ("blocks.block", call(vec![ReturnedBlock { block: None, ..whole.clone() }])),
        ("blocks.registered_end", call(vec![ReturnedBlock { registered_end: u64::MAX, ..whole.clone() }])),
        ("blocks", call(vec![whole.clone(); 65])),
        ("incarnation", ReturnBlocksRequest { incarnation: 0, ..call(vec![whole.clone()]) }),
    ];
    let holders = wrong_names(128).into_iter();
    cases.extend(
        holders.map(|holder| ("holder", ReturnBlocksRequest { holder, ..call(vec![whole.clone()]) })),
    );
    cases
}

fn beats(incarnation: u64) -> Vec<(&'static str, KeepAliveRequest)> {
    let beat = |progress| KeepAliveRequest {
        holder: "probe".to_owned(),
        incarnation,
        progress,
        last_seq: 0,
        mark: 0,
    };
    let progress =
        |namespace: &str, in_hand| Progress { namespace: namespace.to_owned(), in_hand, lasts_ms: None };
    vec![
        ("incarnation", KeepAliveRequest { incarnation: 0, ..beat(Vec::new()) }),
        ("incarnation", KeepAliveRequest { incarnation: u64::MAX, ..beat(Vec::new()) }),
        ("mark", KeepAliveRequest { mark: (1 << 62) + 1, ..beat(Vec::new()) }),
        ("holder", KeepAliveRequest { holder: "a/b".to_owned(), ..beat(Vec::new()) }),
        ("namespace", beat(vec![progress("a/b", 1)])),
        ("progress.in_hand", beat(vec![progress("web", u64::MAX)])),
        ("progress", beat(vec![progress("web", 1); 65])),
    ]
}

fn expect_named(status: &Status, field: &str, request: &impl std::fmt::Debug) {
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?} to {request:?}");
    let named = status.message().split(':').next();
    assert_eq!(named, Some(field), "{:?} to {request:?}", status.message());
}

/// Asserts that the server closes the connection by itself. It may send a response first.
async fn expect_hang_up(addr: SocketAddr, bytes: &[u8]) {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    // A server may hang up before all bytes are written.
    drop(stream.write_all(bytes).await);
    let mut answer = Vec::new();
    let ended = timeout(SOON, stream.read_to_end(&mut answer)).await;
    assert!(ended.is_ok(), "still connected after {} bytes: {bytes:.20?}", bytes.len());
}

/// Asserts that the same process still serves the next call, on the connection that was open all
/// the time.
async fn expect_alive(issuer: &mut Issuer, client: &mut Client, incarnation: u64) {
    assert!(issuer.process.is_running());
    assert!(!issuer.process.logs().contains("panicked"), "{}", issuer.process.tail());
    // Repeats the test's first allocation, or makes it if the test made none.
    let answer = client.allocate_block(allocate(incarnation, 1)).await.unwrap().into_inner();
    assert!(answer.block.unwrap().len > 0);
}
