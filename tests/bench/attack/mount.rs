//! The attacks: each one holds or uses up as much as it can until it is stopped.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::named::named_values;

const MANY: &str = "/rest/v3/reservations/00000000000000000000000000000000/short-urls";
const BULK: &str = "/rest/v3/short-urls/bulk";
/// The time limit of an attacker's reads, and its pause between steps.
const WAIT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

named_values! {
    /// A kind of attack on the resolver.
    pub(super) enum Attack {
        /// Large bodies without a key, whose last byte is never sent.
        Bodies => "bodies without a key",
        /// Silent connections, more than the resolver has file descriptors.
        Connections => "silent connections",
        /// Queries of thousands of pairs for a link that forwards its query.
        Queries => "long queries",
        /// Queries that repeat one key as often as is forwarded, for a link whose URL does so too.
        Repeats => "repeated keys",
        /// Long lists whose responses are not read.
        Lists => "unread lists",
        /// Bulk calls with large items.
        Items => "large items",
        /// Bulk calls whose bodies trickle in.
        Trickles => "trickling calls",
        /// Guesses of a link's password.
        Passwords => "password guesses",
        /// Guesses of API keys.
        Keys => "key guesses",
    }
}

impl Attack {
    /// Returns the number of concurrent attackers and the number of addresses that they use.
    fn attackers(self) -> (u16, u16) {
        match self {
            Self::Bodies => (80, 1),
            Self::Connections => (1_100, 16),
            Self::Queries | Self::Repeats => (4, 1),
            Self::Lists | Self::Items => (8, 1),
            Self::Trickles => (16, 1),
            Self::Passwords => (64, 64),
            Self::Keys => (16, 1),
        }
    }
}

/// The target of the attacks, and the key and links that they need.
pub(super) struct Aim {
    address: SocketAddr,
    key: String,
    forwarding: String,
    repeating: String,
    locked: String,
    strokes: AtomicU64,
}

impl Aim {
    /// Creates an aim. `forwarding`, `repeating` and `locked` are the codes of links.
    pub(super) fn new(
        address: SocketAddr,
        key: String,
        [forwarding, repeating, locked]: [String; 3],
    ) -> Self {
        Self { address, key, forwarding, repeating, locked, strokes: AtomicU64::new(0) }
    }

    /// Returns the number of completed attacks so far.
    pub(super) fn strokes(&self) -> u64 {
        self.strokes.load(Ordering::Relaxed)
    }

    fn post(&self, path: &str, key: Option<&str>, length: usize) -> String {
        let key = key.map_or(String::new(), |key| format!("X-Api-Key: {key}\r\n"));
        let kind = "Content-Type: application/x-www-form-urlencoded";
        format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\n{kind}\r\n{key}Content-Length: {length}\r\n\r\n",
            self.address
        )
    }

    fn get(&self, path: &str, key: &str) -> String {
        format!("GET {path} HTTP/1.1\r\nHost: {}\r\nX-Api-Key: {key}\r\n\r\n", self.address)
    }
}

/// Starts attacks on a separate thread; they run until `is_over` is set.
pub(super) fn mount(
    aim: Arc<Aim>,
    attacks: Vec<Attack>,
    is_over: Arc<AtomicBool>,
) -> anyhow::Result<thread::JoinHandle<anyhow::Result<()>>> {
    let attack = move || {
        crate::on_runtime(async move {
            let mut tasks = JoinSet::new();
            for attack in attacks {
                let (count, addresses) = attack.attackers();
                for number in 0..count {
                    tasks.spawn(repeat(attack, Arc::clone(&aim), number, addresses, Arc::clone(&is_over)));
                }
            }
            while tasks.join_next().await.is_some() {}
            Ok(())
        })
    };
    Ok(thread::Builder::new().name("attackers".to_owned()).spawn(attack)?)
}

/// Runs one attacker, which reconnects whenever its connection ends.
async fn repeat(attack: Attack, aim: Arc<Aim>, number: u16, addresses: u16, is_over: Arc<AtomicBool>) {
    while !is_over.load(Ordering::Relaxed) {
        let from = Ipv4Addr::from(0x7fc8_0000 | u32::from(number % addresses) | (attack as u32) << 8);
        if let Ok(stream) = connect(from, aim.address).await {
            // An attack that the server cuts off is not an error.
            let _ = strike(attack, &aim, stream, number, &is_over).await;
        }
        sleep(PAUSE).await;
    }
}

async fn connect(from: Ipv4Addr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    socket.connect(to).await
}

async fn strike(
    attack: Attack,
    aim: &Aim,
    mut stream: TcpStream,
    number: u16,
    is_over: &AtomicBool,
) -> std::io::Result<()> {
    let key = Some(aim.key.as_str());
    match attack {
        Attack::Bodies => {
            stream.write_all(aim.post(MANY, None, 4 << 20).as_bytes()).await?;
            stream.write_all(&vec![b' '; (4 << 20) - 1]).await?;
            hold(aim, &mut stream, is_over).await
        }
        Attack::Connections => hold(aim, &mut stream, is_over).await,
        Attack::Queries => {
            let query = "b&".repeat(7_900);
            let path = format!("/{}?{query}", aim.forwarding);
            ask(aim, &mut stream, || aim.get(&path, ""), is_over).await
        }
        Attack::Repeats => {
            let path = format!("/{}?{}", aim.repeating, "a&".repeat(999));
            ask(aim, &mut stream, || aim.get(&path, ""), is_over).await
        }
        Attack::Lists => {
            stream.write_all(aim.get("/rest/v3/short-urls?itemsPerPage=-1", &aim.key).as_bytes()).await?;
            stream.readable().await?;
            while !is_over.load(Ordering::Relaxed) {
                sleep(WAIT).await;
            }
            aim.strokes.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
        Attack::Items => {
            let item = format!("{{\"longUrl\":\"x{}\"}}\n", "x".repeat(60_000));
            let body = item.repeat(1_000);
            stream.write_all(aim.post(BULK, key, body.len()).as_bytes()).await?;
            stream.write_all(body.as_bytes()).await?;
            hold(aim, &mut stream, is_over).await
        }
        Attack::Trickles => {
            stream.write_all(format!("{}[", aim.post(BULK, key, 1_000)).as_bytes()).await?;
            while !is_over.load(Ordering::Relaxed) {
                stream.write_all(b" ").await?;
                sleep(WAIT).await;
            }
            Ok(())
        }
        Attack::Passwords => {
            let (path, form) = (format!("/{}", aim.locked), "password=wrong");
            ask(aim, &mut stream, || format!("{}{form}", aim.post(&path, None, form.len())), is_over).await
        }
        Attack::Keys => {
            let wrong = || format!("{:016x}{number:016x}", aim.strokes());
            ask(aim, &mut stream, || aim.get("/rest/v3/tags", &wrong()), is_over).await
        }
    }
}

/// Holds a connection open until the server closes it or the attack is over.
async fn hold(aim: &Aim, stream: &mut TcpStream, is_over: &AtomicBool) -> std::io::Result<()> {
    aim.strokes.fetch_add(1, Ordering::Relaxed);
    let mut answer = [0; 4_096];
    while !is_over.load(Ordering::Relaxed) {
        if let Ok(read) = timeout(WAIT, stream.read(&mut answer)).await
            && read? == 0
        {
            return Ok(());
        }
    }
    Ok(())
}

/// Sends the request repeatedly until the server closes the connection or the attack is over.
async fn ask(
    aim: &Aim,
    stream: &mut TcpStream,
    request: impl Fn() -> String,
    is_over: &AtomicBool,
) -> std::io::Result<()> {
    let mut answer = vec![0; 64 * 1_024];
    while !is_over.load(Ordering::Relaxed) {
        stream.write_all(request().as_bytes()).await?;
        if stream.read(&mut answer).await? == 0 {
            return Ok(());
        }
        aim.strokes.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
