//! Receivers on the loopback interface.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        mpsc::{self, SyncSender},
    },
    thread,
    time::Duration,
};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};

/// The receiver's certificate for 127.0.0.1 and localhost, valid until 2126, and its key.
const CERTIFICATE: &[u8] = include_bytes!("../../testdata/receiver.der");
const KEY: &[u8] = include_bytes!("../../testdata/receiver.key.der");

/// A connection as the answering code of a test sees it.
pub(super) trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

pub(super) struct Request {
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// Returns the value of a header, whose name is given in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut pairs = self.head.lines().filter_map(|line| line.split_once(": "));
        pairs.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

pub(super) struct Receiver {
    pub(super) address: SocketAddr,
    requests: mpsc::Receiver<Request>,
}

impl Receiver {
    /// Starts a receiver that reads one request and leaves the rest to `answer`.
    pub(super) fn new(answer: impl FnOnce(&mut dyn Stream) + Send + 'static) -> Self {
        Self::start(|stream, seen| serve(stream, seen, answer))
    }

    /// Starts a receiver that does so over TLS.
    pub(super) fn with_tls(answer: impl FnOnce(&mut dyn Stream) + Send + 'static) -> Self {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KEY));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![CERTIFICATE.into()], key)
            .unwrap();
        let connection = ServerConnection::new(Arc::new(config)).unwrap();
        Self::start(|stream, seen| serve(StreamOwned::new(connection, stream), seen, answer))
    }

    /// Starts a receiver that leaves everything to `handle`.
    pub(super) fn raw(handle: impl FnOnce(TcpStream) + Send + 'static) -> Self {
        Self::start(|stream, _| {
            handle(stream);
            Ok(())
        })
    }

    fn start(
        handle: impl FnOnce(TcpStream, &SyncSender<Request>) -> io::Result<()> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, requests) = mpsc::sync_channel(1);
        thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            // The sender ends the connection of many tests.
            handle(stream, &seen).ok();
        });
        Self { address, requests }
    }

    pub(super) fn request(&self) -> Request {
        self.requests.recv_timeout(Duration::from_secs(60)).unwrap()
    }
}

/// Finds another address for a name at each lookup, as a host does that rebinds it: 127.0.0.1,
/// 127.0.0.2, and so on.
pub(super) fn rebinds(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    static LOOKUPS: Mutex<BTreeMap<String, u8>> = Mutex::new(BTreeMap::new());
    let mut lookups = LOOKUPS.lock().unwrap();
    let number = lookups.entry(name.to_owned()).or_default();
    *number += 1;
    Ok(vec![([127, 0, 0, *number], port).into()])
}

fn serve<S: Stream>(
    mut stream: S,
    seen: &SyncSender<Request>,
    answer: impl FnOnce(&mut dyn Stream),
) -> io::Result<()> {
    seen.send(read(&mut stream)?).map_err(io::Error::other)?;
    answer(&mut stream);
    Ok(())
}

fn read(stream: &mut impl Read) -> io::Result<Request> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let mut request = Request { head: String::from_utf8(head).unwrap(), body: Vec::new() };
    let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    request.body.resize(length, 0);
    stream.read_exact(&mut request.body)?;
    Ok(request)
}

pub(super) fn sends(answer: &'static str) -> impl FnOnce(&mut dyn Stream) + Send + 'static {
    move |stream| {
        stream.write_all(answer.as_bytes()).ok();
    }
}

/// Sends the beginning of an answer, then one byte at a time until the sender hangs up.
pub(super) fn drips(beginning: &'static str) -> impl FnOnce(&mut dyn Stream) + Send + 'static {
    move |stream| {
        let mut sent = stream.write_all(beginning.as_bytes());
        while sent.is_ok() {
            thread::sleep(Duration::from_millis(5));
            sent = stream.write_all(b"a").and_then(|()| stream.flush());
        }
    }
}

/// Returns code that sends the beginning of an answer, then as much as the sender takes.
pub(super) fn floods(beginning: &'static str) -> impl FnOnce(&mut dyn Stream) + Send + 'static {
    move |stream| {
        let mut sent = stream.write_all(beginning.as_bytes());
        while sent.is_ok() {
            sent = stream.write_all(&[b'a'; 1 << 14]);
        }
    }
}

/// Reads a little at a time until the sender closes the connection.
pub(super) fn sips(stream: &mut dyn Stream) {
    while stream.read(&mut [0; 256]).is_ok_and(|read| read > 0) {
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the sender closes the connection.
pub(super) fn hangs(stream: &mut dyn Stream) {
    while stream.read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
}
