//! Visits made of garbage: the space that they take, and whether each one that was answered counts.
//!
//! 1. Agents and referrers are random bytes, invalid UTF-8 among them, up to 8 KiB; languages,
//!    cookies and forwarded addresses are made up. None is like another.
//! 2. A third of the visits asks for a link, a third for a code that nobody minted, a third for a
//!    path that cannot be a code.
//! 3. At the end counters are compared with the answers, and the memory and the tables are
//!    measured.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use anyhow::Context as _;
use harness::{Postgres, Resolver, Scratch, procfs, resolver, secret, wait};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    task::JoinSet,
};

use super::load::Load;
use crate::{
    Report, progress,
    table::{Table, grouped},
};

/// The time within which everything is stored.
const STORED_WITHIN: Duration = Duration::from_secs(300);
/// New texts that a resolver stores in a minute, at most.
const TEXTS_A_MINUTE: i64 = 10_000;
/// The most that memory may grow, in MiB: caches of agents and places, arenas, and a batch.
const GROWTH_MIB: u64 = 256;
const MIB: u64 = 1 << 20;
/// The answer of a server that closes the connection instead.
const CLOSED: u16 = 0;

/// The flags of `bench visits garbage`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Send this many visits.
    #[arg(long, default_value_t = 500_000)]
    visits: u32,
    /// Keep this many connections open.
    #[arg(long, default_value_t = 8)]
    connections: u32,
    /// Seed of the garbage.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Counts of answers: redirects, codes without a link, and everything else.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    redirects: i64,
    not_found: i64,
    others: i64,
}

/// The measurements.
struct Measured {
    answers: Answers,
    counted: [i64; 2],
    recorded_orphans: f64,
    texts: [i64; 2],
    bytes: i64,
    resident: [u64; 2],
    seconds: f64,
    has_panicked: bool,
}

/// Starts the servers, measures and reports.
///
/// # Errors
/// Returns an error if a server does not start or ends.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let measured = crate::on_runtime(measure(args))?;
    Ok(report(args, &measured))
}

async fn measure(args: &Args) -> anyhow::Result<Measured> {
    progress::show("starting Postgres and the resolver …");
    let scratch = Scratch::new()?;
    let postgres = Postgres::builder().scratch(&scratch).start().await?;
    resolver::migrate(&scratch, &postgres.url()).await?.success()?;
    let builder = Resolver::builder(&scratch, "garbage", &secret::random_hex()?)?.database(&postgres.url());
    let flags = ["--limit", "unknown-codes-per-minute=0"];
    let resolver = builder.args(flags).start().await?;
    let code = resolver.api.create("https://example.org/garbage").await?.code;
    let pid = resolver.process.pid();
    let before = procfs::resident(pid).context("read the memory")?;
    let begun = tokio::time::Instant::now();
    let mut senders = JoinSet::new();
    for number in 0..args.connections {
        let share = args.visits / args.connections + u32::from(number < args.visits % args.connections);
        let sender = Sender::new(resolver.addr(), code.clone(), args.seed ^ u64::from(number) << 32);
        senders.spawn(sender.send(share));
    }
    let mut answers = Answers::default();
    while let Some(sent) = senders.join_next().await {
        let sent = sent??;
        answers.redirects += sent.redirects;
        answers.not_found += sent.not_found;
        answers.others += sent.others;
        progress::show(&format!("{answers:?}"));
    }
    let seconds = begun.elapsed().as_secs_f64();
    let client = postgres.client().await?;
    let number = async |query: &str| client.query_one(query, &[]).await.map(|row| row.get::<_, i64>(0));
    let links = "SELECT coalesce(sum(total), 0)::bigint FROM visit_day WHERE kind = 0";
    wait::until(STORED_WITHIN, "all visits are stored", async || {
        number(links).await.is_ok_and(|stored| stored >= answers.redirects)
            && resolver.metric("resolver_visit_blocks_waiting").await.unwrap_or(0.0) == 0.0
    })
    .await?;
    let recorded_orphans = resolver.metric("resolver_orphan_visits_total").await.unwrap_or_default();
    wait::until(STORED_WITHIN, "all orphan visits are stored", async || {
        let stored = number("SELECT count(*) FROM visit WHERE link_id = 0").await.unwrap_or(0);
        stored >= rounded(recorded_orphans)
    })
    .await?;
    let measured = Measured {
        answers,
        counted: [number(links).await?, number("SELECT count(*) FROM visit WHERE link_id <> 0").await?],
        recorded_orphans,
        texts: [
            number("SELECT count(*) FROM visit_text").await?,
            number("SELECT coalesce(max(octet_length(text)), 0)::bigint FROM visit_text").await?,
        ],
        bytes: number("SELECT pg_database_size(current_database())").await?,
        resident: [before, procfs::resident(pid).context("the resolver runs")?],
        seconds,
        has_panicked: resolver.process.logs().contains("panicked"),
    };
    progress::clear();
    Ok(measured)
}

#[expect(clippy::cast_possible_truncation, reason = "counts are far below 2^53")]
fn rounded(count: f64) -> i64 {
    count.round() as i64
}

/// A client with one connection.
struct Sender {
    server: SocketAddr,
    code: String,
    random: Load,
    stream: Option<BufReader<TcpStream>>,
}

impl Sender {
    fn new(server: SocketAddr, code: String, seed: u64) -> Self {
        Self { server, code, random: Load::new(seed), stream: None }
    }

    async fn send(mut self, count: u32) -> anyhow::Result<Answers> {
        let mut answers = Answers::default();
        for _ in 0..count {
            let request = self.request();
            match self.ask(&request).await.unwrap_or(CLOSED) {
                301 | 302 | 307 | 308 => answers.redirects += 1,
                404 => answers.not_found += 1,
                _ => answers.others += 1,
            }
        }
        Ok(answers)
    }

    /// Sends a request, and returns the status of its answer.
    async fn ask(&mut self, request: &[u8]) -> anyhow::Result<u16> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => BufReader::new(TcpStream::connect(self.server).await?),
        };
        stream.write_all(request).await?;
        let (mut status, mut length, mut goes_on) = (CLOSED, 0, true);
        loop {
            let mut line = String::new();
            anyhow::ensure!(stream.read_line(&mut line).await? > 0, "closed");
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest.get(..3).context("a status")?.parse()?;
            } else if let Some(rest) = line.strip_prefix("content-length: ") {
                length = rest.parse()?;
            } else if line == "connection: close" {
                goes_on = false;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        self.stream = goes_on.then_some(stream);
        Ok(status)
    }

    fn request(&mut self) -> Vec<u8> {
        let mut request = b"GET /".to_vec();
        let (number, query) = (self.random.below(1 << 40), self.random.below(1 << 60));
        let path = match self.random.below(3) {
            0 => self.code.clone(),
            1 => format!("{:06}", number % 1_000_000),
            _ => format!("{number:x}/%ff%00."),
        };
        request.extend_from_slice(format!("{path}?q={query:x} HTTP/1.1\r\nHost: a.example\r\n").as_bytes());
        for (name, most) in
            [("User-Agent", 600), ("Referer", 8_192), ("Accept-Language", 100), ("Cookie", 700)]
        {
            request.extend_from_slice(name.as_bytes());
            request.extend_from_slice(b": ");
            let length = self.random.below(most + 1);
            request.extend((0..length).map(|_| self.byte()));
            request.extend_from_slice(b"\r\n");
        }
        let address = Ipv4Addr::from(u32::try_from(self.random.below(1 << 32)).unwrap_or(0));
        let spoofed = format!("X-Forwarded-For: {address}, nonsense\r\nDNT: 1\r\nSec-GPC: yes\r\n\r\n");
        request.extend_from_slice(spoofed.as_bytes());
        request
    }

    /// Returns a byte that a header may have: mostly not UTF-8.
    fn byte(&mut self) -> u8 {
        let byte = u8::try_from(self.random.below(256)).unwrap_or(0);
        if byte < 0x20 || byte == 0x7f { byte | 0x80 } else { byte }
    }
}

fn report(args: &Args, measured: &Measured) -> Report {
    let Measured { answers, counted, recorded_orphans, texts, bytes, resident, seconds, has_panicked } =
        measured;
    let minutes = Duration::from_secs_f64(*seconds).as_secs().div_euclid(60) + 2;
    let texts_max = TEXTS_A_MINUTE * i64::try_from(minutes).unwrap_or(i64::MAX);
    let grown = resident[1].saturating_sub(resident[0]) / MIB;
    let mut table = Table::new(&["", "figure", "expected", ""]);
    let mut line = |name: &str, figure: String, expected: String, holds: bool| {
        table.row(vec![name.to_owned(), figure, expected, if holds { "holds" } else { "MISSED" }.to_owned()]);
    };
    let count = |count: i64| grouped(f64::from(i32::try_from(count).unwrap_or(i32::MAX)));
    line("visits in counters", count(counted[0]), count(answers.redirects), counted[0] == answers.redirects);
    line("visits in rows", count(counted[1]), count(answers.redirects), counted[1] == answers.redirects);
    let has_orphans = rounded(*recorded_orphans) >= answers.not_found;
    line(
        "orphan visits recorded",
        grouped(*recorded_orphans),
        format!("≥ {}", count(answers.not_found)),
        has_orphans,
    );
    line("stored texts", count(texts[0]), format!("≤ {}", count(texts_max)), texts[0] <= texts_max);
    line("bytes of the longest text", count(texts[1]), "≤ 4,100".to_owned(), texts[1] <= 4_100);
    line("memory grown by", format!("{grown} MiB"), format!("≤ {GROWTH_MIB} MiB"), grown <= GROWTH_MIB);
    line("panics", u8::from(*has_panicked).to_string(), "0".to_owned(), !has_panicked);
    let stored = bytes / i64::from(args.visits.max(1));
    let text = format!(
        "{} visits of garbage in {seconds:.0} s: {answers:?}.\nThe database has {stored} B for each, its empty schema included.\n\n{table}",
        grouped(f64::from(args.visits))
    );
    let json = json!({
        "bench": "visits garbage",
        "visits": args.visits,
        "redirects": answers.redirects,
        "counted": counted,
        "texts": texts[0],
        "grown_mib": grown,
        "bytes_per_visit": stored,
    });
    Report { text, json }
}
