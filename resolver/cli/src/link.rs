//! `resolver link create|get|list|edit|delete|restore|block|unblock`: manages the links of a
//! running server.

pub(crate) mod args;
mod body;
mod path;
mod table;

use std::io::{self, Write};

use serde_json::{Map, Value, json};
use ureq::http::Method;

pub(super) use self::path::path_of;
use self::{
    args::{LinkCommand, LinkCreateArgs, LinkEditArgs, LinkGetArgs, LinkListArgs, LinkName},
    body::{create_body, edit_body, list_query, password},
    path::LINKS,
};
use crate::{
    Error,
    args::ShowArgs,
    client::{Call, NOTHING_TO_CHANGE, Query, Server, maybe, wrong},
    json_text,
    table::text,
};

pub(super) async fn run(command: LinkCommand) -> Result<String, Error> {
    match command {
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
        LinkCommand::Edit(args) => edit(&args).await,
        LinkCommand::Delete { name, if_version, server } => {
            let call = Call::write(Method::DELETE, path_of(&name.code)?, domain_query(&name));
            Server::new(&server)?.call(Call { header: if_match(if_version), ..call }).await?;
            Ok(format!("{}: deleted\n", name.code))
        }
        LinkCommand::Restore(args) => post(&args, "restore", None).await,
        LinkCommand::Block { link, reason } => post(&link, "block", Some(json!({ "reason": reason }))).await,
        LinkCommand::Unblock(args) => post(&args, "unblock", None).await,
    }
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
    let body = edit_body(args, password(&args.setters)?);
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

/// Restores, blocks or unblocks a link, depending on `verb`.
async fn post(args: &LinkGetArgs, verb: &str, body: Option<Value>) -> Result<String, Error> {
    let path = format!("{}/{verb}", path_of(&args.name.code)?);
    let call = Call { body, ..Call::write(Method::POST, path, domain_query(&args.name)) };
    show(&args.show, call).await
}

async fn show(args: &ShowArgs, call: Call) -> Result<String, Error> {
    Server::show(args, call, "/shortUrl", table::link).await
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

fn domain_query(name: &LinkName) -> Query {
    maybe("domain", name.domain.as_ref())
}

/// Returns the header that limits a change to this version of the link.
fn if_match(version: Option<u64>) -> Option<(&'static str, String)> {
    version.map(|version| ("If-Match", format!("\"{version}\"")))
}
