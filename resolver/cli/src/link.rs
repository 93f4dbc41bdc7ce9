//! `resolver link …`: manages the links of a running server, one by one (`create`, `get`, `edit`,
//! …), listed (`list`, `print`), or many at once (`edit-many` and `delete-many`, in `bulk`).

pub(crate) mod args;
mod body;
mod bulk;
mod fields;
mod print;
mod schedule;
mod table;

use std::io::{self, Write};

use serde_json::{Map, Value, json};
use ureq::http::Method;

use self::{
    args::{LinkCommand, LinkCreateArgs, LinkEditArgs, LinkExplainArgs, LinkGetArgs, LinkListArgs, LinkName},
    body::{create_body, edit_body, list_query, password},
};
use crate::{
    Error, Output,
    args::ShowArgs,
    audit::HISTORY,
    client::{Call, NAME_BYTES, NOTHING_TO_CHANGE, Query, Server, maybe, segment, wrong},
    json_text,
    table::text,
};

const LINKS: &str = "short-urls";

pub(super) async fn run(command: LinkCommand) -> Result<Output, Error> {
    let text = match command {
        LinkCommand::EditMany(args) => return bulk::edit(&args).await,
        LinkCommand::DeleteMany(args) => return bulk::delete(&args).await,
        LinkCommand::Create(args) => create(&args).await,
        LinkCommand::Get(args) => {
            let call = Call::read(path_of(&args.name.code)?, domain_query(&args.name));
            show(&args.show, call).await
        }
        LinkCommand::List(args) if args.ndjson => {
            let server = Server::new(&args.table.show.server)?;
            write_all(&server, &args, &mut io::stdout()).await.map(|()| String::new())
        }
        LinkCommand::List(args) => {
            let call = Call::read(LINKS.to_owned(), list_query(&args));
            Server::list(&args.table, call, &table::LIST).await
        }
        LinkCommand::Print(args) => print::run(*args).await,
        LinkCommand::Edit(args) => edit(&args).await,
        LinkCommand::Schedule(command) => schedule::run(command).await,
        LinkCommand::History { name, before, table } => {
            let code = vec![("shortCode", name.code.clone())];
            let query = [code, domain_query(&name), maybe("before", before)].concat();
            Server::list(&table, Call::read("history".to_owned(), query), &HISTORY).await
        }
        LinkCommand::Undo { link, entry } => {
            post(&link, "undo", entry.map(|entry| json!({ "entry": entry }))).await
        }
        LinkCommand::Delete { name, if_version, server } => {
            let call = Call::write(Method::DELETE, path_of(&name.code)?, domain_query(&name));
            Server::new(&server)?.call(Call { header: if_match(if_version), ..call }).await?;
            Ok(format!("{}: deleted\n", name.code))
        }
        LinkCommand::Restore(args) => post(&args, "restore", None).await,
        LinkCommand::Block { link, reason } => post(&link, "block", Some(json!({ "reason": reason }))).await,
        LinkCommand::Unblock(args) => post(&args, "unblock", None).await,
        LinkCommand::Explain(args) => {
            let call = Call::read("explain".to_owned(), explain_query(&args));
            Server::list(&args.table, call, &table::EXPLANATION).await
        }
    };
    text.map(Output::from)
}

async fn create(args: &LinkCreateArgs) -> Result<String, Error> {
    let call = Call {
        header: args.idempotency_key.clone().map(|key| ("Idempotency-Key", key)),
        is_repeatable: args.idempotency_key.is_some(),
        ..Call::send(Method::POST, LINKS.to_owned(), create_body(args, password(&args.setters)?))
    };
    Server::show(&args.show, call, "/shortUrl", |link| format!("{}\n", text(&link["shortUrl"]))).await
}

async fn edit(args: &LinkEditArgs) -> Result<String, Error> {
    let path = path_of(&args.name.code)?;
    let body = edit_body(args, password(&args.edits.setters)?);
    if body.as_object().is_none_or(Map::is_empty) {
        return Err(wrong("CODE", &args.name.code, NOTHING_TO_CHANGE));
    }
    let call = Call {
        query: domain_query(&args.name),
        header: if_match(args.if_version),
        ..Call::send(Method::PATCH, path, body)
    };
    show(&args.show, call).await
}

/// Undoes an edit of a link, restores, blocks or unblocks it, depending on `verb`.
async fn post(args: &LinkGetArgs, verb: &str, body: Option<Value>) -> Result<String, Error> {
    let path = format!("{}/{verb}", path_of(&args.name.code)?);
    let call = Call { body, ..Call::write(Method::POST, path, domain_query(&args.name)) };
    show(&args.show, call).await
}

/// Makes a call that is answered with a link, and shows it.
async fn show(args: &ShowArgs, call: Call) -> Result<String, Error> {
    Server::show(args, call, "/shortUrl", fields::shown).await
}

/// Writes the links of all pages as lines of JSON. Each call counts pages anew, so a link that is
/// deleted meanwhile can hide another one.
async fn write_all(server: &Server, args: &LinkListArgs, out: &mut impl Write) -> Result<(), Error> {
    let query = list_query(args);
    for page in 1_u64.. {
        let query = query.iter().cloned().chain([("page", page.to_string())]).collect();
        let answer = server.ask(Call::read(LINKS.to_owned(), query)).await?;
        let page_of_links = &answer["shortUrls"];
        let links = page_of_links["data"].as_array().ok_or_else(|| server.foreign())?;
        let lines: String = links.iter().map(json_text::line).collect();
        match out.write_all(lines.as_bytes()).and_then(|()| out.flush()) {
            // The reader has closed the pipe.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            written => written?,
        }
        if links.is_empty() || page >= page_of_links["pagination"]["pagesCount"].as_u64().unwrap_or_default()
        {
            break;
        }
    }
    Ok(())
}

fn explain_query(args: &LinkExplainArgs) -> Query {
    let optional = [
        ("userAgent", &args.user_agent),
        ("acceptLanguage", &args.accept_language),
        ("ip", &args.ip),
        ("country", &args.country),
        ("at", &args.at),
    ];
    let given = optional.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
    [("url", args.url.clone())].into_iter().chain(given).collect()
}

fn domain_query(name: &LinkName) -> Query {
    maybe("domain", name.domain.as_ref())
}

/// Returns the header that limits a change to this version of the link.
fn if_match(version: Option<u64>) -> Option<(&'static str, String)> {
    version.map(|version| ("If-Match", format!("\"{version}\"")))
}

/// Returns the path of a link. Each segment of its code is percent-encoded by itself.
pub(crate) fn path_of(code: &str) -> Result<String, Error> {
    let names: Vec<&str> = code.split('/').collect();
    // As the last segment, these two would address a resource below the link.
    let is_other = names.len() > 1 && matches!(names.last(), Some(&("visits" | "redirect-rules")));
    let segments: Option<Vec<String>> = names.into_iter().map(segment).collect();
    let segments = segments.filter(|_| code.len() <= NAME_BYTES && !is_other).ok_or_else(|| {
        wrong("CODE", code, "expected a code as links show it, without the domain and a slash before it")
    })?;
    Ok(format!("{LINKS}/{}", segments.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_segment_of_a_code_is_escaped_by_itself() {
        for (code, path) in [
            ("abc123", "short-urls/abc123"),
            ("summer-sale/2026", "short-urls/summer-sale/2026"),
            ("über/短い", "short-urls/%C3%BCber/%E7%9F%AD%E3%81%84"),
            ("a.b_c~d-e!", "short-urls/a.b_c~d-e%21"),
            ("a?b#c%2F", "short-urls/a%3Fb%23c%252F"),
            ("visits", "short-urls/visits"),
            ("visits/x", "short-urls/visits/x"),
        ] {
            assert_eq!(path_of(code).unwrap(), path);
        }
        let (long, deep) = ("a".repeat(1_025), "a/".repeat(600) + "a");
        let wrong = "/ /abc abc/ a//b . .. a/../b abc/visits a/redirect-rules".split(' ');
        for code in wrong.chain(["", &long, &deep]) {
            let error = path_of(code).unwrap_err();
            assert!(matches!(error, Error::Config { flag: "CODE", .. }), "{code}: {error}");
        }
    }
}
