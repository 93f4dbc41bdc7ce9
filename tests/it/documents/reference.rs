//! `resolver/REFERENCE.md`: flags, metrics and problems, as the code defines them.

use std::fmt::Write as _;

use clap::Command;

use super::{flags, metrics};

const BEGIN: &str = "\
# Reference of the resolver

Generated from the code; [the guide](README.md) says what to use when. To bring it up to date:
`SHORTMINT_WRITE_DOCUMENTS=1 cargo test -p tests --test it documents::`.

## Flags

A flag takes precedence over its variable. Flags of the form `NAME=VALUE[,…]` may be repeated. Durations are
written as `250ms`, `5s`, `10m` or `30d`.
";

const METRICS: &str = "
## Metrics

Those that begin with `issuer_` are on the page of an issuer, and on that of a resolver with an embedded
one. Each daemon also has `build_info` with its version and `log_lines_dropped_total` (lines that standard
error did not take) after its prefix, and Prometheus' own names `process_…` for processor time, memory,
descriptors, threads and start.

";

const PROBLEMS: &str = "
## Problems

Failed calls of the REST API are answered with `application/problem+json` (RFC 9457). Types are under
`https://shlink.io/api/error/`; without one the type is `about:blank`. `GET /rest/v3/openapi.json` says
which call is answered with which.

| status | type | title | cause |
|---|---|---|---|
";

pub(super) fn text(command: &Command, sources: &[String]) -> String {
    let serve = command.find_subcommand("serve").expect("the resolver serves");
    let metrics = metrics::table(sources.iter().map(String::as_str));
    assert!(metrics.lines().count() > 70, "{metrics}");
    format!("{BEGIN}{}{METRICS}{metrics}{PROBLEMS}{}", flags::sections(serve), problems())
}

fn problems() -> String {
    let mut rows: Vec<_> = ::api::rest::problem_schemas()
        .into_iter()
        .map(|(_, schema)| {
            let fixed = |name: &str| schema["properties"][name]["const"].clone();
            let kind = fixed("type").as_str().unwrap_or_default().to_owned();
            let kind =
                kind.strip_prefix("https://shlink.io/api/error/").map(str::to_owned).unwrap_or_default();
            let (status, title) = (fixed("status").as_u64(), fixed("title"));
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().replace('|', "\\|");
            (status, kind, text(&title), text(&schema["description"]))
        })
        .collect();
    rows.sort();
    let mut table = String::new();
    for (status, kind, title, cause) in rows {
        let kind = if kind.is_empty() { kind } else { format!("`{kind}`") };
        // Writing to a string does not fail.
        let _ = writeln!(table, "| {} | {kind} | {title} | {cause} |", status.unwrap_or_default());
    }
    table
}
