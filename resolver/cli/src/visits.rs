//! `resolver visits list|stats|export|delete`: shows the visits of a running server.

mod export;
mod sparkline;
mod table;

use std::io::{IsTerminal as _, stdout};

use ureq::http::Method;

use super::{
    client::{Call, Server, segment, wrong},
    json_text,
    link::path_of,
};
use crate::{
    Error,
    args::{
        Interval, OrphanType, VisitsCommand, VisitsDeleteArgs, VisitsListArgs, VisitsOf, VisitsStatsArgs,
    },
};

/// A query.
type Query = Vec<(&'static str, String)>;

/// Runs a subcommand, and returns its output.
pub(super) async fn run(command: VisitsCommand) -> Result<String, Error> {
    match command {
        VisitsCommand::List(args) => list(&args).await,
        VisitsCommand::Stats(args) => stats(&args).await,
        VisitsCommand::Export(args) => export::run(*args).await,
        VisitsCommand::Delete(args) => delete(&args).await,
    }
}

async fn list(args: &VisitsListArgs) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let (path, mut query) = list_call(&args.of)?;
    query.extend([("page", args.page.to_string()), ("itemsPerPage", args.limit.to_string())]);
    let answer = server.ask(Call::read(path, query)).await?;
    let page = &answer["visits"];
    let visits = page["data"].as_array().ok_or_else(|| server.foreign())?;
    if args.json {
        return Ok(json_text::pretty(&answer));
    }
    Ok(table::list(visits, &page["pagination"], args.table.width))
}

/// Returns the path and the query of a list.
fn list_call(of: &VisitsOf) -> Result<(String, Query), Error> {
    let of_domain = |path: String, domain: &Option<String>| {
        (path, domain.iter().map(|domain| ("domain", domain.clone())).collect::<Query>())
    };
    let (path, mut query) = match (&of.code, &of.tag, &of.domain) {
        (Some(code), _, domain) => of_domain(format!("{}/visits", path_of(code)?), domain),
        (None, Some(tag), domain) => of_domain(format!("tags/{}/visits", part("--tag", tag)?), domain),
        (None, None, domain) if of.orphans => of_domain("visits/orphan".to_owned(), domain),
        (None, None, Some(domain)) => (format!("domains/{}/visits", part("--domain", domain)?), Query::new()),
        (None, None, None) => ("visits/non-orphan".to_owned(), Query::new()),
    };
    query.extend(of.kind.map(|kind| ("type", type_name(kind).to_owned())));
    query.extend(range(of));
    Ok((path, query))
}

fn part(flag: &'static str, name: &str) -> Result<String, Error> {
    segment(name).ok_or_else(|| wrong(flag, name, "expected a name as the list shows it"))
}

/// Returns the parameters that lists and statistics share.
fn range(of: &VisitsOf) -> Query {
    let time =
        |name, time: &Option<String>| time.iter().map(move |time| (name, time.clone())).collect::<Query>();
    let mut query = [time("startDate", &of.from), time("endDate", &of.until)].concat();
    if of.no_bots {
        query.push(("excludeBots", "true".to_owned()));
    }
    query
}

fn type_name(kind: OrphanType) -> &'static str {
    match kind {
        OrphanType::BaseUrl => "base_url",
        OrphanType::InvalidShortUrl => "invalid_short_url",
        OrphanType::Regular404 => "regular_404",
    }
}

async fn stats(args: &VisitsStatsArgs) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let answer = server.ask(Call::read("stats".to_owned(), stats_query(args))).await?;
    if !answer["visits"]["total"].is_u64() {
        return Err(server.foreign().into());
    }
    if args.json {
        return Ok(json_text::pretty(&answer));
    }
    Ok(table::stats(&answer, args.table.width, stdout().is_terminal()))
}

fn stats_query(args: &VisitsStatsArgs) -> Query {
    let of = &args.of;
    let orphan = of.kind.map(type_name).or(of.orphans.then_some("all"));
    let given = [
        ("shortCode", of.code.clone()),
        ("domain", of.domain.clone()),
        ("tag", of.tag.clone()),
        ("orphan", orphan.map(str::to_owned)),
        ("interval", args.by.map(|interval| interval_name(interval).to_owned())),
        ("timeZone", args.time_zone.clone()),
        ("top", Some(args.top.to_string())),
    ];
    let given = given.into_iter().filter_map(|(name, value)| Some((name, value?)));
    given.chain(range(of)).collect()
}

fn interval_name(interval: Interval) -> &'static str {
    match interval {
        Interval::Quarter => "15min",
        Interval::Hour => "hour",
        Interval::Day => "day",
        Interval::Week => "week",
        Interval::Month => "month",
    }
}

async fn delete(args: &VisitsDeleteArgs) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let path = match &args.code {
        Some(code) => format!("{}/visits", path_of(code)?),
        None => "visits/orphan".to_owned(),
    };
    let query = args.domain.iter().map(|domain| ("domain", domain.clone())).collect();
    let answer = server.ask(Call::write(Method::DELETE, path, query)).await?;
    let deleted = answer["deletedVisits"].as_u64().ok_or_else(|| server.foreign())?;
    if args.json {
        return Ok(json_text::pretty(&answer));
    }
    let visits = if deleted == 1 { "visit" } else { "visits" };
    Ok(format!("{}: {deleted} {visits} deleted\n", args.code.as_deref().unwrap_or("orphans")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(of: VisitsOf) -> (String, String) {
        let (path, query) = list_call(&of).unwrap();
        (path, query.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&"))
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn each_choice_of_visits_has_its_path() {
        let all = VisitsOf::default();
        for (of, path, query) in [
            (all.clone(), "visits/non-orphan", ""),
            (
                VisitsOf { code: some("a/b"), domain: some("d"), ..all.clone() },
                "short-urls/a/b/visits",
                "domain=d",
            ),
            (VisitsOf { tag: some("ü"), domain: some("d"), ..all.clone() }, "tags/%C3%BC/visits", "domain=d"),
            (VisitsOf { domain: some("DEFAULT"), ..all.clone() }, "domains/DEFAULT/visits", ""),
            (
                VisitsOf { orphans: true, kind: Some(OrphanType::Regular404), ..all.clone() },
                "visits/orphan",
                "type=regular_404",
            ),
            (
                VisitsOf {
                    from: some("2026-01-01"),
                    until: some("2026-02-01"),
                    no_bots: true,
                    ..all.clone()
                },
                "visits/non-orphan",
                "startDate=2026-01-01&endDate=2026-02-01&excludeBots=true",
            ),
        ] {
            assert_eq!(call(of), (path.to_owned(), query.to_owned()));
        }
        let empty = list_call(&VisitsOf { tag: some(""), ..all }).unwrap_err();
        assert!(matches!(empty, Error::Config { flag: "--tag", .. }), "{empty}");
    }
}
