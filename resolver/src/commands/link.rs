//! `resolver link create|get|list|edit|delete`: what people and scripts ask of a running server.

mod body;
mod client;
mod problem;
mod table;

use std::io::{self, Write};

use clap::CommandFactory as _;
use clap_complete::Shell;
use serde_json::Value;
use ureq::http::Method;

use self::{
    body::{create_body, edit_body, list_query, password},
    client::{Call, Server, path_of},
};
use crate::{
    Error,
    config::{
        Cli, LinkCommand, LinkCreateArgs, LinkDeleteArgs, LinkEditArgs, LinkGetArgs, LinkListArgs, LinkName,
    },
};

pub use self::problem::ClientError;

/// Runs a subcommand; what it has to say.
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
    }
}

/// The script with which a shell completes what is typed.
pub(super) fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "resolver", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

async fn create(args: &LinkCreateArgs) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let body = create_body(args, password(&args.setters)?);
    let call = Call {
        body: Some(Value::Object(body)),
        header: args.idempotency_key.clone().map(|key| ("Idempotency-Key", key)),
        is_repeatable: args.idempotency_key.is_some(),
        ..Call::write(Method::POST, String::new(), Vec::new())
    };
    let link = server.ask(call).await?;
    let short_url = link["shortUrl"].as_str().ok_or_else(|| server.foreign())?;
    Ok(if args.json { format!("{link:#}\n") } else { format!("{short_url}\n") })
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
    if body.is_empty() {
        let reason = "expected at least one flag that says what to change".to_owned();
        return Err(Error::Config { flag: "CODE", value: args.name.code.clone(), reason });
    }
    let call = Call {
        body: Some(Value::Object(body)),
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

async fn list(args: &LinkListArgs) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let page = server.ask(Call::read(String::new(), list_query(args))).await?;
    let (links, pagination) = read_page(&server, &page)?;
    if args.json {
        return Ok(format!("{page:#}\n"));
    }
    let count = |name: &str| pagination[name].as_u64().unwrap_or_default();
    let place = format!(
        "page {} of {}, {} links in all\n",
        count("currentPage"),
        count("pagesCount"),
        count("totalItems")
    );
    let is_all = count("pagesCount") <= 1 && count("currentPage") <= 1;
    Ok(table::list(links, args.width) + if is_all { "" } else { &place })
}

/// Writes the links of all pages, each on a line. Pages are counted anew for each call: a link that is deleted meanwhile can hide another one.
async fn write_all(server: &Server, args: &LinkListArgs, out: &mut impl Write) -> Result<(), Error> {
    let query = list_query(args);
    for page in 1_u64.. {
        let query = query.iter().cloned().chain([("page", page.to_string())]).collect();
        let answer = server.ask(Call::read(String::new(), query)).await?;
        let (links, pagination) = read_page(server, &answer)?;
        let lines: String = links.iter().map(|link| format!("{link}\n")).collect();
        match out.write_all(lines.as_bytes()).and_then(|()| out.flush()) {
            // Whoever reads has seen enough.
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
    Ok(if as_json { format!("{link:#}\n") } else { table::link(link) })
}

fn of_domain(name: &LinkName) -> Vec<(&'static str, String)> {
    name.domain.iter().map(|domain| ("domain", domain.clone())).collect()
}

/// The header with which only a link of this version is changed.
fn if_match(version: Option<u64>) -> Option<(&'static str, String)> {
    version.map(|version| ("If-Match", format!("\"{version}\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_has_a_script_that_knows_the_subcommands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let script = completions(shell);
            assert!(script.contains("link") && script.contains("if-version"), "{shell}");
        }
    }
}
