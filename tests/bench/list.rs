//! Pages of the list of links among a million: the time to the first byte.
//!
//! Each question goes to a resolver on Postgres over HTTP on one connection, one at a time, with
//! the session of a browser. The whole page is read, so that one answer does not delay the next.

use std::time::Duration;

use anyhow::Context as _;
use harness::{Resolver, Scratch, secret};
use reqwest::{
    Client, StatusCode,
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

/// The target of the first pages in the order of creation: the 99th percentile in milliseconds.
const P99_MS_MAX: f64 = 50.0;
/// Links of a bulk call.
const CHUNK: u32 = 50_000;
/// The pages that are asked for: names, queries, and whether the target is for them.
const QUESTIONS: [(&str, &str, bool); 9] = [
    ("newest", "", true),
    ("page 2", "&page=2", true),
    ("oldest", "&order=dateCreated-ASC", true),
    ("most visited", "&order=visits-DESC", false),
    ("page 5,000", "&page=5000", false),
    ("one tag of 100", "&tag=tag-7", false),
    ("one tag of 100, visits of 30 days", "&tag=tag-7&visits=30d&order=visits-DESC", false),
    ("search: one link", "&search=unique-title-777777", false),
    ("search: a tenth of the links", "&search=where%2F7", false),
];

/// The flags of `bench list`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Store this many links.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1_000..=20_000_000))]
    links: u32,
    /// Ask for each page that has a target this many times, and for the others a tenth as often.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    requests: u32,
}

/// The figures of a page.
struct Row {
    name: &'static str,
    has_target: bool,
    cold: Duration,
    latencies: Latencies,
    bytes: usize,
}

/// Starts the servers, measures and reports.
///
/// # Errors
/// Returns an error if a server does not start, or does not answer with a page.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let rows = crate::on_runtime(measure(args))?;
    Ok(report(args, &rows))
}

async fn measure(args: &Args) -> anyhow::Result<Vec<Row>> {
    progress::show("building the resolver and starting the servers …");
    let scratch = Scratch::new()?;
    let postgres = create::database(&scratch, 0).await?;
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
    progress::show("tags");
    // A call for many links takes no tags.
    let tags = "INSERT INTO tag (name) SELECT 'tag-' || n FROM generate_series(0, 99) n;
                INSERT INTO link_tag (link_id, tag_id) SELECT link.id, tag.id FROM link
                JOIN tag ON tag.name = 'tag-' || substring(link.long_url from '[0-9]+$')::integer % 100";
    let sql = postgres.client().await?;
    // As autovacuum does within minutes, so that it does not change the figures on the way.
    for statements in [tags, "VACUUM ANALYZE"] {
        sql.batch_execute(statements).await.context(statements)?;
    }
    let http = Client::builder().redirect(Policy::none()).build()?;
    let cookie = sign_in(&http, &resolver).await?;
    let mut rows = Vec::new();
    for (name, query, has_target) in QUESTIONS {
        progress::show(name);
        let url = format!("{}/manage?count=100{query}", resolver.api.url());
        let requests = if has_target { args.requests } else { args.requests.div_ceil(10) };
        rows.push(ask(&http, (&url, &cookie), requests, (name, has_target)).await?);
    }
    progress::clear();
    Ok(rows)
}

/// Signs in, and returns the session's cookie.
async fn sign_in(http: &Client, resolver: &Resolver) -> anyhow::Result<String> {
    let request = http.post(format!("{}/_pages/sign-in", resolver.api.url()));
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let answer = request.body(format!("apiKey={}", resolver.api.key())).send().await?;
    let cookie = answer.headers().get(SET_COOKIE).context("no session")?.to_str()?;
    Ok(cookie.split(';').next().unwrap_or_default().to_owned())
}

async fn ask(
    http: &Client,
    (url, cookie): (&str, &str),
    requests: u32,
    (name, has_target): (&'static str, bool),
) -> anyhow::Result<Row> {
    let answer = async || {
        let begun = Instant::now();
        let answer = http.get(url).header(COOKIE, cookie).send().await?;
        let took = begun.elapsed();
        anyhow::ensure!(answer.status() == StatusCode::OK, "{url}: {}", answer.status());
        Ok::<_, anyhow::Error>((took, answer.bytes().await?.len()))
    };
    let (cold, bytes) = answer().await?;
    let mut times = Vec::new();
    for _ in 0..requests {
        times.push(answer().await?.0);
    }
    Ok(Row { name, has_target, cold, latencies: Latencies::new(times), bytes })
}

fn report(args: &Args, rows: &[Row]) -> Report {
    let mut table = Table::new(&["page", "p50 ms", "p99 ms", "first ms", "kB", ""]);
    let mut told = Vec::new();
    for Row { name, has_target, cold, latencies, bytes } in rows {
        let [p50, p99] = [50, 99].map(|percent| latencies.percentile_ms(percent));
        let holds = if p99 <= P99_MS_MAX { "holds" } else { "TOO SLOW" };
        table.row(vec![
            (*name).to_owned(),
            format!("{p50:.1}"),
            format!("{p99:.1}"),
            format!("{:.1}", cold.as_secs_f64() * 1e3),
            (bytes / 1000).to_string(),
            if *has_target { format!("at most {P99_MS_MAX}: {holds}") } else { String::new() },
        ]);
        told.push(json!({ "page": name, "p50_ms": p50, "p99_ms": p99, "bytes": bytes }));
    }
    let text = format!(
        "The first byte of pages of 100 links among {}, each asked for {} times (those without \
         a target {} times).\n\n{table}",
        grouped(args.links.into()),
        args.requests,
        args.requests.div_ceil(10),
    );
    Report { text, json: json!({ "bench": "list", "links": args.links, "pages": told }) }
}
