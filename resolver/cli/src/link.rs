//! `resolver link create|get|list|edit|delete|restore|block|unblock`: manages the links of a
//! running server.

mod body;
mod path;
mod table;

use std::io::{self, Write};

use serde_json::{Map, Value, json};
use ureq::http::Method;

pub(super) use self::path::path_of;
use self::{
    body::{create_body, edit_body, list_query, password},
    path::LINKS,
};
use super::{
    client::{Call, NOTHING_TO_CHANGE, Server, wrong},
    json_text,
};
use crate::{
    Error,
    args::{
        LinkBlockArgs, LinkCommand, LinkCreateArgs, LinkDeleteArgs, LinkEditArgs, LinkGetArgs, LinkListArgs,
        LinkName,
    },
};

/// Runs a subcommand, and returns its output.
pub(super) async fn run(command: LinkCommand) -> Result<String, Error> {
    match command {
        LinkCommand::Create(args) => create(&args).await,
        LinkCommand::Get(args) => get(&args).await,
        LinkCommand::List(args) if args.ndjson => {
            let server = Server::new(&args.server)?;
            write_all(&server, &args, &mut io::stdout()).await.map(|()| String::new())
        }
        LinkCommand::List(args) => list(&args).await,
        LinkCommand::Edit(args) => edit(&args).await,
        LinkCommand::Delete(args) => delete(&args).await,
        LinkCommand::Restore(args) => turn(&args, "restore").await,
        LinkCommand::Block(args) => block(&args).await,
        LinkCommand::Unblock(args) => turn(&args, "unblock").await,
    }
}

async fn create(args: &LinkCreateArgs) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let body = create_body(args, password(&args.setters)?);
    let call = Call {
        body: Some(body),
        header: args.idempotency_key.clone().map(|key| ("Idempotency-Key", key)),
        is_repeatable: args.idempotency_key.is_some(),
        ..Call::write(Method::POST, LINKS.to_owned(), Vec::new())
    };
    let link = server.ask(call).await?;
    let short_url = link["shortUrl"].as_str().ok_or_else(|| server.foreign())?;
    Ok(if args.json { json_text::pretty(&link) } else { format!("{short_url}\n") })
}

async fn get(args: &LinkGetArgs) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let call = Call::read(path_of(&args.name.code)?, of_domain(&args.name));
    shown(&server, &server.ask(call).await?, args.json)
}

async fn edit(args: &LinkEditArgs) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let path = path_of(&args.name.code)?;
    let body = edit_body(args, password(&args.setters)?);
    if body.as_object().is_none_or(Map::is_empty) {
        return Err(wrong("CODE", &args.name.code, NOTHING_TO_CHANGE));
    }
    let call = Call {
        body: Some(body),
        header: if_match(args.if_version),
        ..Call::write(Method::PATCH, path, of_domain(&args.name))
    };
    shown(&server, &server.ask(call).await?, args.json)
}

async fn delete(args: &LinkDeleteArgs) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let path = path_of(&args.name.code)?;
    let header = if_match(args.if_version);
    server.call(Call { header, ..Call::write(Method::DELETE, path, of_domain(&args.name)) }).await?;
    Ok(format!("{}: deleted\n", args.name.code))
}

async fn block(args: &LinkBlockArgs) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let path = format!("{}/block", path_of(&args.name.code)?);
    let body = Some(json!({ "reason": args.reason }));
    let call = Call { body, ..Call::write(Method::POST, path, of_domain(&args.name)) };
    shown(&server, &server.ask(call).await?, args.json)
}

/// Restores or unblocks a link, depending on `verb`.
async fn turn(args: &LinkGetArgs, verb: &str) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let path = format!("{}/{verb}", path_of(&args.name.code)?);
    let link = server.ask(Call::write(Method::POST, path, of_domain(&args.name))).await?;
    shown(&server, &link, args.json)
}

async fn list(args: &LinkListArgs) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let page = server.ask(Call::read(LINKS.to_owned(), list_query(args))).await?;
    let (links, pagination) = read_page(&server, &page)?;
    if args.json {
        return Ok(json_text::pretty(&page));
    }
    let count = |name: &str| pagination[name].as_u64().unwrap_or_default();
    let place = format!(
        "page {} of {}, {} links in all\n",
        count("currentPage"),
        count("pagesCount"),
        count("totalItems")
    );
    let is_all = count("pagesCount") <= 1 && count("currentPage") <= 1;
    Ok(table::list(links, args.table.width) + if is_all { "" } else { &place })
}

/// Writes the links of all pages as lines of JSON. Each call counts pages anew, so a link that is
/// deleted meanwhile can hide another one.
async fn write_all(server: &Server, args: &LinkListArgs, out: &mut impl Write) -> Result<(), Error> {
    let query = list_query(args);
    for page in 1_u64.. {
        let query = query.iter().cloned().chain([("page", page.to_string())]).collect();
        let answer = server.ask(Call::read(LINKS.to_owned(), query)).await?;
        let (links, pagination) = read_page(server, &answer)?;
        let lines: String = links.iter().map(json_text::line).collect();
        match out.write_all(lines.as_bytes()).and_then(|()| out.flush()) {
            // The reader has closed the pipe.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            written => written?,
        }
        if links.is_empty() || page >= pagination["pagesCount"].as_u64().unwrap_or_default() {
            break;
        }
    }
    Ok(())
}

fn read_page<'a>(server: &Server, answer: &'a Value) -> Result<(&'a [Value], &'a Value), Error> {
    let page = &answer["shortUrls"];
    let links = page["data"].as_array().ok_or_else(|| server.foreign())?;
    Ok((links, &page["pagination"]))
}

fn shown(server: &Server, link: &Value, as_json: bool) -> Result<String, Error> {
    if !link["shortUrl"].is_string() {
        return Err(server.foreign().into());
    }
    Ok(if as_json { json_text::pretty(link) } else { table::link(link) })
}

fn of_domain(name: &LinkName) -> Vec<(&'static str, String)> {
    name.domain.iter().map(|domain| ("domain", domain.clone())).collect()
}

/// Returns the header that limits a change to this version of the link.
fn if_match(version: Option<u64>) -> Option<(&'static str, String)> {
    version.map(|version| ("If-Match", format!("\"{version}\"")))
}
