//! `resolver domain list|edit|redirects|remove`: manages the domains of a running server.

mod table;

use serde_json::{Map, Value, json};
use ureq::http::Method;

use super::{
    client::{Call, NOTHING_TO_CHANGE, Server, segment, wrong},
    json_text,
};
use crate::{
    Error,
    args::{
        DomainCommand, DomainEditArgs, DomainListArgs, DomainProtocol, DomainRedirectsArgs, DomainRemoveArgs,
    },
};

/// The path of all domains.
const DOMAINS: &str = "domains";
/// The segment in place of a name, for the call that edits fallback targets.
const REDIRECTS: &str = "redirects";

/// Runs a subcommand, and returns its output.
pub(super) async fn run(command: DomainCommand) -> Result<String, Error> {
    match command {
        DomainCommand::List(args) => list(&args).await,
        DomainCommand::Edit(args) => edit(&args).await,
        DomainCommand::Redirects(args) => redirects(&args).await,
        DomainCommand::Remove(args) => remove(&args).await,
    }
}

async fn list(args: &DomainListArgs) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let query = if args.all { vec![("all", "true".to_owned())] } else { Vec::new() };
    let answer = server.ask(Call::read(DOMAINS.to_owned(), query)).await?;
    let domains = answer["domains"]["data"].as_array().ok_or_else(|| server.foreign())?;
    Ok(if args.json { json_text::pretty(&answer) } else { table::list(domains, args.table.width) })
}

async fn edit(args: &DomainEditArgs) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let path = path_of(&args.domain)?;
    let body = edit_body(args);
    if body.is_empty() {
        return Err(wrong("NAME", &args.domain, NOTHING_TO_CHANGE));
    }
    let call = Call { body: Some(Value::Object(body)), ..Call::write(Method::PATCH, path, Vec::new()) };
    let domain = server.ask(call).await?;
    if !domain["domain"].is_string() {
        return Err(server.foreign().into());
    }
    Ok(if args.json { json_text::pretty(&domain) } else { table::domain(&domain) })
}

async fn redirects(args: &DomainRedirectsArgs) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let mut body = redirects_body(args);
    if body.is_empty() {
        return Err(wrong("NAME", &args.domain, NOTHING_TO_CHANGE));
    }
    body.insert("domain".to_owned(), json!(args.domain));
    let path = format!("{DOMAINS}/{REDIRECTS}");
    let call = Call { body: Some(Value::Object(body)), ..Call::write(Method::PATCH, path, Vec::new()) };
    let redirects = server.ask(call).await?;
    if redirects.get("baseUrlRedirect").is_none() {
        return Err(server.foreign().into());
    }
    Ok(if args.json { json_text::pretty(&redirects) } else { table::redirects(&args.domain, &redirects) })
}

async fn remove(args: &DomainRemoveArgs) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    server.call(Call::write(Method::DELETE, path_of(&args.domain)?, Vec::new())).await?;
    Ok(format!("{}: removed\n", args.domain))
}

/// Returns the path of a domain.
fn path_of(name: &str) -> Result<String, Error> {
    // A domain of this name would address the other call, which adds the domain in its body.
    let segment = segment(name).filter(|_| name != REDIRECTS);
    let expected = "expected a domain as the list shows it, or DEFAULT";
    Ok(format!("{DOMAINS}/{}", segment.ok_or_else(|| wrong("NAME", name, expected))?))
}

/// Builds the body of an edit. Fields without a flag are absent, and so unchanged.
fn edit_body(args: &DomainEditArgs) -> Map<String, Value> {
    let protocol = args.protocol.map(|protocol| match protocol {
        DomainProtocol::Http => json!("http"),
        DomainProtocol::Https => json!("https"),
        DomainProtocol::Default => Value::Null,
    });
    said([
        ("domain", args.new_name.as_ref().map(|name| json!(name))),
        ("enabled", (args.enable || args.disable).then_some(json!(args.enable))),
        ("protocol", protocol),
    ])
}

/// Builds the body of an edit of fallback targets, apart from the domain: null removes a target,
/// and an absent field stays unchanged.
fn redirects_body(args: &DomainRedirectsArgs) -> Map<String, Value> {
    let target = |url: &Option<String>, is_taken_away: bool| {
        url.as_ref().map(|url| json!(url)).or(is_taken_away.then_some(Value::Null))
    };
    said([
        ("baseUrlRedirect", target(&args.base, args.no_base)),
        ("regular404Redirect", target(&args.regular_404, args.no_regular_404)),
        ("invalidShortUrlRedirect", target(&args.invalid_short_url, args.no_invalid_short_url)),
    ])
}

/// Returns the fields that have a value.
fn said<const COUNT: usize>(fields: [(&str, Option<Value>); COUNT]) -> Map<String, Value> {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::{Command, CommandLine};

    fn body(args: &[&str]) -> Value {
        let args = [&["resolver", "domain"], args, &["--api-key", "k"]].concat();
        Value::Object(match CommandLine::try_parse_from(args).unwrap().command {
            Some(Command::Domain(DomainCommand::Edit(args))) => edit_body(&args),
            Some(Command::Domain(DomainCommand::Redirects(args))) => redirects_body(&args),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn an_edit_sends_what_was_said_and_nothing_else() {
        for (flags, expected) in [
            (&[][..], json!({})),
            (&["--name", "münchen.de:8080"], json!({ "domain": "münchen.de:8080" })),
            (&["--enable"], json!({ "enabled": true })),
            (&["--disable"], json!({ "enabled": false })),
            (&["--protocol", "http"], json!({ "protocol": "http" })),
            (&["--protocol", "default", "--json"], json!({ "protocol": null })),
            (
                &["--name", "a.b", "--disable", "--protocol", "https"],
                json!({ "domain": "a.b", "enabled": false, "protocol": "https" }),
            ),
        ] {
            assert_eq!(body(&[&["edit", "sho.rt"], flags].concat()), expected, "{flags:?}");
        }
    }

    #[test]
    fn a_change_of_redirects_sends_null_for_what_is_taken_away_and_nothing_for_what_stays() {
        for (flags, expected) in [
            (&[][..], json!({})),
            (&["--base", "https://a.b/ü"], json!({ "baseUrlRedirect": "https://a.b/ü" })),
            (&["--no-base"], json!({ "baseUrlRedirect": null })),
            (&["--regular-404", "u"], json!({ "regular404Redirect": "u" })),
            (&["--no-regular-404"], json!({ "regular404Redirect": null })),
            (&["--invalid-short-url", "u"], json!({ "invalidShortUrlRedirect": "u" })),
            (&["--no-invalid-short-url"], json!({ "invalidShortUrlRedirect": null })),
            (
                &["--base", "u", "--no-regular-404", "--invalid-short-url", "v", "--json"],
                json!({ "baseUrlRedirect": "u", "regular404Redirect": null, "invalidShortUrlRedirect": "v" }),
            ),
        ] {
            assert_eq!(body(&[&["redirects", "sho.rt"], flags].concat()), expected, "{flags:?}");
        }
    }

    #[test]
    fn a_domain_is_one_segment_of_the_path_and_never_the_other_call() {
        for (name, path) in [
            ("sho.rt", "domains/sho.rt"),
            ("DEFAULT", "domains/DEFAULT"),
            ("sho.rt:8080", "domains/sho.rt%3A8080"),
            ("münchen.de", "domains/m%C3%BCnchen.de"),
            ("a/visits", "domains/a%2Fvisits"),
            ("Redirects", "domains/Redirects"),
        ] {
            assert_eq!(path_of(name).unwrap(), path);
        }
        for name in ["", ".", "..", "redirects"] {
            let error = path_of(name).unwrap_err();
            assert!(matches!(error, Error::Config { flag: "NAME", .. }), "{name}: {error}");
        }
    }
}
