//! `resolver visits list|stats|export|delete`: shows the visits of a running server.

pub(crate) mod args;
mod export;
mod table;

use std::io::{IsTerminal as _, stdout};

use ureq::http::Method;

use self::args::{VisitsCommand, VisitsDeleteArgs, VisitsListArgs, VisitsOf, VisitsStatsArgs};
use crate::{
    Error,
    client::{Call, Query, Server, maybe, segment, wrong},
    link::path_of,
};

pub(super) async fn run(command: VisitsCommand) -> Result<String, Error> {
    match command {
        VisitsCommand::List(args) => list(&args).await,
        VisitsCommand::Stats(args) => stats(&args).await,
        VisitsCommand::Export(args) => export::run(*args).await,
        VisitsCommand::Delete(args) => delete(&args).await,
    }
}

async fn list(args: &VisitsListArgs) -> Result<String, Error> {
    let (path, mut query) = list_call(&args.of)?;
    query.extend([("page", args.page.to_string()), ("itemsPerPage", args.limit.to_string())]);
    Server::list(&args.table, Call::read(path, query), &table::LIST).await
}

fn list_call(of: &VisitsOf) -> Result<(String, Query), Error> {
    let query = || maybe("domain", of.domain.as_ref());
    let (path, mut query) = match (&of.code, &of.tag, &of.domain) {
        (Some(code), _, _) => (format!("{}/visits", path_of(code)?), query()),
        (None, Some(tag), _) => (format!("tags/{}/visits", part("--tag", tag)?), query()),
        (None, None, _) if of.orphans => ("visits/orphan".to_owned(), query()),
        (None, None, Some(domain)) => (format!("domains/{}/visits", part("--domain", domain)?), Query::new()),
        (None, None, None) => ("visits/non-orphan".to_owned(), Query::new()),
    };
    query.extend(of.kind.as_ref().map(|kind| ("type", kind.replace('-', "_"))));
    query.extend(range(of));
    Ok((path, query))
}

fn part(flag: &'static str, name: &str) -> Result<String, Error> {
    segment(name).ok_or_else(|| wrong(flag, name, "expected a name as the list shows it"))
}

/// Returns the parameters that lists and statistics share.
fn range(of: &VisitsOf) -> Query {
    let from = maybe("startDate", of.from.as_ref());
    let bots = maybe("excludeBots", of.no_bots.then_some(true));
    [from, maybe("endDate", of.until.as_ref()), bots].concat()
}

async fn stats(args: &VisitsStatsArgs) -> Result<String, Error> {
    let call = Call::read("stats".to_owned(), stats_query(args));
    let table = |answer: &_| table::stats(answer, args.table.width, stdout().is_terminal());
    Server::show(&args.table.show, call, "/visits/total", table).await
}

fn stats_query(args: &VisitsStatsArgs) -> Query {
    let of = &args.of;
    let orphan = of.kind.as_ref().map(|kind| kind.replace('-', "_")).or(of.orphans.then(|| "all".to_owned()));
    let given = [
        ("shortCode", of.code.clone()),
        ("domain", of.domain.clone()),
        ("tag", of.tag.clone()),
        ("orphan", orphan),
        ("interval", args.by.clone()),
        ("timeZone", args.time_zone.clone()),
        ("top", Some(args.top.to_string())),
    ];
    let given = given.into_iter().filter_map(|(name, value)| Some((name, value?)));
    given.chain(range(of)).collect()
}

async fn delete(args: &VisitsDeleteArgs) -> Result<String, Error> {
    let path = match &args.code {
        Some(code) => format!("{}/visits", path_of(code)?),
        None => "visits/orphan".to_owned(),
    };
    let call = Call::write(Method::DELETE, path, maybe("domain", args.domain.as_ref()));
    Server::show(&args.show, call, "/deletedVisits", |answer| {
        let deleted = answer["deletedVisits"].as_u64().unwrap_or_default();
        let visits = if deleted == 1 { "visit" } else { "visits" };
        format!("{}: {deleted} {visits} deleted\n", args.code.as_deref().unwrap_or("orphans"))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, command_line};

    fn call(flags: &[&str]) -> Result<(String, String), Error> {
        let list = match command_line::parse(&[&["visits", "list"], flags].concat()) {
            Ok(Command::Visits(VisitsCommand::List(args))) => args,
            other => panic!("{other:?}"),
        };
        let (path, query) = list_call(&list.of)?;
        let query: Vec<_> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Ok((path, query.join("&")))
    }

    #[test]
    fn each_choice_of_visits_has_its_path() {
        for (flags, path, query) in [
            ("", "visits/non-orphan", ""),
            ("a/b --domain d", "short-urls/a/b/visits", "domain=d"),
            ("--tag ü --domain d", "tags/%C3%BC/visits", "domain=d"),
            ("--domain DEFAULT", "domains/DEFAULT/visits", ""),
            ("--orphans --type regular-404", "visits/orphan", "type=regular_404"),
            (
                "--from 2026-01-01 --until 2026-02-01 --no-bots",
                "visits/non-orphan",
                "startDate=2026-01-01&endDate=2026-02-01&excludeBots=true",
            ),
        ] {
            let flags: Vec<&str> = flags.split_whitespace().collect();
            assert_eq!(call(&flags).unwrap(), (path.to_owned(), query.to_owned()));
        }
        let empty = call(&["--tag", ""]).unwrap_err();
        assert!(matches!(empty, Error::Config { flag: "--tag", .. }), "{empty}");
    }
}
