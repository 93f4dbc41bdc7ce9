//! Pages of the list of links among many: the time to the first byte.
//!
//! Each question goes to a resolver on Postgres over HTTP on one connection, one at a time, with
//! the session of a browser or an API key. The whole page is read, so that one answer does not
//! delay the next. The API counts what it lists, the pages only whether there is more.

use std::time::Duration;

use anyhow::Context as _;
use harness::{Resolver, Scratch, resolver, secret};
use reqwest::{
    Client, RequestBuilder, StatusCode,
    header::{COOKIE, SET_COOKIE},
    redirect::Policy,
};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    Report, create, links, progress,
    stats::Latencies,
    table::{Table, grouped},
};

/// The targets for the 99th percentile of each page, in milliseconds: among a million links, and
/// among more.
const P99_MS_MAX: [f64; 2] = [50.0, 150.0];
/// Links of a bulk call.
const CHUNK: u32 = 50_000;
/// The pages that are asked for: names and queries.
const QUESTIONS: [(&str, &str); 19] = [
    ("newest", "/manage?count=100"),
    ("page 2", "/manage?count=100&page=2"),
    ("oldest", "/manage?count=100&order=dateCreated-ASC"),
    ("most visited", "/manage?count=100&order=visits-DESC"),
    ("page 5,000", "/manage?count=100&page=5000"),
    ("one tag of 100", "/manage?count=100&tag=tag-7"),
    ("one tag of 100, visits of 30 days", "/manage?count=100&tag=tag-7&visits=30d&order=visits-DESC"),
    ("search: one link", "/manage?count=100&search=unique-title-777777"),
    ("search: part of a word", "/manage?count=100&search=tle-77777"),
    ("search: no link", "/manage?count=100&search=nowhere"),
    ("search: a tenth of the links", "/manage?count=100&search=where%2F7"),
    ("API: newest", "/rest/v3/short-urls?itemsPerPage=100"),
    ("API: one tag of 100", "/rest/v3/short-urls?itemsPerPage=100&tags[]=tag-7"),
    ("API: without one tag of 100", "/rest/v3/short-urls?itemsPerPage=100&excludeTags[]=tag-7"),
    ("API: most visited", "/rest/v3/short-urls?itemsPerPage=100&orderBy=visits-DESC"),
    ("API: a few of a key", "/rest/v3/short-urls?itemsPerPage=100&apiKeyName=few"),
    ("API: a few of a domain", "/rest/v3/short-urls?itemsPerPage=100&domain=few.example"),
    ("API: search: one link", "/rest/v3/short-urls?itemsPerPage=100&searchTerm=unique-title-777777"),
    ("API: search: a tenth of the links", "/rest/v3/short-urls?itemsPerPage=100&searchTerm=where%2F7"),
];
/// What a bulk call would make one by one: tags; and a key and a domain with the fifty oldest links
/// each.
const OTHERS: &str = "
    INSERT INTO tag (name) SELECT 'tag-' || n FROM generate_series(0, 99) n;
    INSERT INTO link_tag (link_id, tag_id) SELECT link.id, tag.id FROM link
    JOIN tag ON tag.name = 'tag-' || substring(link.long_url from '[0-9]+$')::integer % 100;
    INSERT INTO api_key (name, hash) VALUES ('few', '');
    UPDATE link SET created_by = (SELECT id FROM api_key WHERE name = 'few')
    WHERE id IN (SELECT id FROM link ORDER BY created_at, id LIMIT 50);
    UPDATE link SET details = jsonb_build_object('domain', (SELECT id FROM domain WHERE authority = 'few.example'))
    WHERE id IN (SELECT id FROM link ORDER BY created_at, id LIMIT 50 OFFSET 50)";
/// What tasks in the background and autovacuum do within minutes or hours, so that it does not
/// change the figures on the way: visits of most links, few of them with many; the index of texts;
/// statistics.
const SETTLE: [&str; 3] = [
    "INSERT INTO link_seen (link_id, seen_at, total, bots)
     SELECT id, now(), ceil(1 / (0.00001 + random()))::bigint, 0 FROM link WHERE random() < 0.8
     ON CONFLICT (link_id) DO UPDATE SET total = excluded.total",
    "WITH noted AS (INSERT INTO link_text
         SELECT id, link_search_text(long_url, title, details) FROM link ON CONFLICT DO NOTHING)
     UPDATE link_text_state SET (indexed_until, after_id) =
         (SELECT created_at, id FROM link ORDER BY created_at DESC, id DESC LIMIT 1)",
    "VACUUM ANALYZE",
];

/// What a link takes of disk: tables with their indexes.
const TABLES: [(&str, &str); 4] = [
    ("the link", "link"),
    ("its index of long URLs", "long_url_index"),
    ("its index of texts", "link_text"),
    ("its counts of visits", "link_seen"),
];

/// The flags of `bench list`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Store this many links.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1_000..=100_000_000))]
    links: u32,
    /// Ask for each page this many times.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    requests: u32,
    /// Give Postgres buffers of this size.
    #[arg(long, default_value = "128MB", value_name = "SIZE")]
    shared_buffers: String,
}

/// The figures of a page.
struct Row {
    name: &'static str,
    status: StatusCode,
    cold: Duration,
    latencies: Latencies,
    bytes: usize,
}

/// Starts the servers, measures and reports.
///
/// # Errors
/// Returns an error if a server does not start, or does not answer with a page.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let (rows, sizes) = crate::on_runtime(measure(args))?;
    Ok(report(args, &rows, sizes))
}

/// Returns the figures of the pages, and the bytes of [`TABLES`].
async fn measure(args: &Args) -> anyhow::Result<(Vec<Row>, [i64; TABLES.len()])> {
    progress::show("building the resolver and starting the servers …");
    let scratch = Scratch::new()?;
    let postgres = create::configured(&scratch, 0).setting("shared_buffers", &args.shared_buffers);
    // The disk has to hold the links as well.
    let postgres = postgres.setting("max_wal_size", "4GB").start().await?;
    resolver::migrate(&scratch, &postgres.url()).await?.success()?;
    let builder = Resolver::builder(&scratch, "resolver", &secret::random_hex()?)?.database(&postgres.url());
    let resolver = builder.start().await?;
    for first in (0..args.links).step_by(usize::try_from(CHUNK)?) {
        progress::show(&format!("creating {} links: {first} are stored", args.links));
        let numbers = first..args.links.min(first + CHUNK);
        let expected = numbers.len();
        let line = |number: u32| {
            let link = json!({
                "longUrl": format!("https://example.org/some/where/{number}"),
                "title": format!("unique-title-{number}"),
            });
            format!("{link}\n")
        };
        let created = links::bulk(&resolver, numbers.map(line).collect()).await?.len();
        anyhow::ensure!(created == expected, "a link was not created");
    }
    progress::show("tags, a key and a domain");
    let http = Client::builder().redirect(Policy::none()).build()?;
    let domain = http.patch(format!("{}/rest/v3/domains/redirects", resolver.api.url()));
    let domain = domain.header("x-api-key", resolver.api.key()).json(&json!({ "domain": "few.example" }));
    domain.send().await?.error_for_status().context("make a domain")?;
    let sql = postgres.client().await?;
    for statements in std::iter::once(OTHERS).chain(SETTLE) {
        progress::show(statements.split_whitespace().next().unwrap_or_default());
        sql.batch_execute(statements).await.context(statements)?;
    }
    let cookie = sign_in(&http, &resolver).await?;
    let mut rows = Vec::new();
    for (name, query) in QUESTIONS {
        progress::show(name);
        let request = http.get(format!("{}{query}", resolver.api.url()));
        let request = request.header(COOKIE, &cookie).header("x-api-key", resolver.api.key());
        rows.push(ask(request, args.requests, name).await?);
    }
    progress::clear();
    let mut sizes = [0; TABLES.len()];
    for ((_, table), bytes) in TABLES.into_iter().zip(&mut sizes) {
        let size = format!("SELECT pg_total_relation_size('{table}')");
        *bytes = sql.query_one(&size, &[]).await.context("measure a table")?.get(0);
    }
    Ok((rows, sizes))
}

/// Signs in, and returns the session's cookie.
async fn sign_in(http: &Client, resolver: &Resolver) -> anyhow::Result<String> {
    let request = http.post(format!("{}/_pages/sign-in", resolver.api.url()));
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let answer = request.body(format!("apiKey={}", resolver.api.key())).send().await?;
    let cookie = answer.headers().get(SET_COOKIE).context("no session")?.to_str()?;
    Ok(cookie.split(';').next().unwrap_or_default().to_owned())
}

/// Sends a request several times after a first one. A question that is refused is not repeated.
async fn ask(request: RequestBuilder, requests: u32, name: &'static str) -> anyhow::Result<Row> {
    let answer = async || {
        let begun = Instant::now();
        let answer = request.try_clone().context("a request with a body")?.send().await?;
        let (took, status) = (begun.elapsed(), answer.status());
        Ok::<_, anyhow::Error>((took, status, answer.bytes().await?.len()))
    };
    let (cold, status, bytes) = answer().await?;
    let mut times = Vec::new();
    if status == StatusCode::OK {
        for _ in 0..requests {
            let (took, status, _) = answer().await?;
            anyhow::ensure!(status == StatusCode::OK, "{name}: {status}");
            times.push(took);
        }
    } else {
        times.push(cold);
    }
    Ok(Row { name, status, cold, latencies: Latencies::new(times), bytes })
}

fn report(args: &Args, rows: &[Row], sizes: [i64; TABLES.len()]) -> Report {
    let mut table = Table::new(&["page", "p50 ms", "p99 ms", "first ms", "kB", ""]);
    let mut told = Vec::new();
    let p99_max = P99_MS_MAX[usize::from(args.links > 1_000_000)];
    for Row { name, status, cold, latencies, bytes } in rows {
        let [p50, p99] = [50, 99].map(|percent| latencies.percentile_ms(percent));
        let holds = match *status {
            StatusCode::OK if p99 <= p99_max => format!("at most {p99_max}: holds"),
            StatusCode::OK => format!("at most {p99_max}: TOO SLOW"),
            status => format!("REFUSED: {status}"),
        };
        table.row(vec![
            (*name).to_owned(),
            format!("{p50:.1}"),
            format!("{p99:.1}"),
            format!("{:.1}", cold.as_secs_f64() * 1e3),
            (bytes / 1000).to_string(),
            holds,
        ]);
        told.push(
            json!({ "page": name, "status": status.as_u16(), "p50_ms": p50, "p99_ms": p99, "bytes": bytes }),
        );
    }
    let each = sizes.map(|bytes| bytes / i64::from(args.links));
    let taken: Vec<String> =
        TABLES.iter().zip(each).map(|((what, _), bytes)| format!("{what} {bytes} B")).collect();
    let text = format!(
        "The first byte of pages of 100 links among {}, each asked for {} times.\n\n{table}\nOn disk: {}.\n",
        grouped(args.links.into()),
        args.requests,
        taken.join(", "),
    );
    let bytes: serde_json::Map<_, _> =
        TABLES.iter().zip(each).map(|((_, table), bytes)| ((*table).to_owned(), json!(bytes))).collect();
    Report { text, json: json!({ "bench": "list", "links": args.links, "pages": told, "bytes": bytes }) }
}
