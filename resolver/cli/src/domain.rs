//! `resolver domain list|edit|redirects|import|remove`: manages the domains of a running server.

mod import;

use std::path::{Path, PathBuf};

use clap::{
    Args, Subcommand,
    builder::{NonEmptyStringValueParser, PossibleValue},
};
use serde_json::{Map, Value, json};
use ureq::http::Method;

use crate::{
    Error,
    args::{ServerArgs, ShowArgs, TableArgs, extra_path_values, read_file},
    client::{Call, NOTHING_TO_CHANGE, Server, given, maybe, segment, wrong},
    table::{List, pairs, printable, text},
    wrong_value,
};

const DOMAINS: &str = "domains";
/// The segment in place of a name, for the call that edits fallback targets.
const REDIRECTS: &str = "redirects";
const APPLE_FLAG: &str = "--apple-app-site-association";
const ANDROID_FLAG: &str = "--asset-links";
/// The fallback targets: their names in tables, and their fields in the API.
const TARGETS: [(&str, &str); 3] = [
    ("base URL", "baseUrlRedirect"),
    ("regular 404", "regular404Redirect"),
    ("invalid short URL", "invalidShortUrlRedirect"),
];

#[derive(Debug, Subcommand)]
pub enum DomainCommand {
    /// List domains, the default one first.
    ///
    /// The default domain is the one of the server's --public-url. A domain without its own
    /// fallback targets uses those of the server's flag --fallback; --json shows
    /// them.
    List {
        /// Include domains without links and without settings.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        table: TableArgs,
    },
    /// Edit a domain's name, its protocol, whether its links redirect, which paths find them, where
    /// expired ones lead, which parameters redirects add, or which apps open them. Properties
    /// without a flag stay unchanged.
    ///
    /// A change is in effect on every resolver when this command ends. An unknown domain is not
    /// added: create a link on it, or use resolver domain redirects, to add it.
    Edit(DomainEditArgs),
    /// Edit the fallback targets of a domain, for requests that match no link. Targets without a
    /// flag stay unchanged.
    ///
    /// An unknown domain is added. In the path, the query or the fragment of a URL, {DOMAIN} is
    /// replaced by the domain and {ORIGINAL_PATH} by the requested path. For example: resolver
    /// domain redirects go.example --base https://example.com/ --invalid-short-url
    /// 'https://example.com/lost?path={ORIGINAL_PATH}'
    Redirects(DomainRedirectsArgs),
    /// Give domains the settings that another server's resolver domain list --json shows.
    ///
    /// A setting that the file does not have stays as it is, and so does a domain. An unknown
    /// domain is added if it has settings. The default domain of the file is the default one here,
    /// without its name and its protocol.
    Import(import::DomainImportArgs),
    /// Remove a domain that has no links and that no API key is limited to.
    ///
    /// Links that were deleted on it cannot be restored afterwards. Requests for its host are
    /// answered with the default domain's links from then on.
    Remove {
        /// Domain, with its port if it has one.
        #[arg(value_name = "NAME")]
        domain: String,
        #[command(flatten)]
        server: ServerArgs,
    },
}

#[derive(Clone, Debug, Args)]
pub struct DomainEditArgs {
    /// Domain, with its port if it has one; DEFAULT for the domain of the server's --public-url.
    #[arg(value_name = "NAME")]
    pub domain: String,
    /// New name of the domain. Its links move with it. The name of the default domain is that of
    /// --public-url.
    #[arg(long = "name", value_name = "NEW")]
    pub new_name: Option<String>,
    /// Let the domain's links redirect again.
    #[arg(long)]
    pub enable: bool,
    /// Stop redirects on the domain. Its links are kept, and those of the default domain do not
    /// replace them.
    #[arg(long, conflicts_with = "enable")]
    pub disable: bool,
    /// Protocol of the domain's short URLs in answers of the API.
    #[arg(long, value_parser = [
        PossibleValue::new("http").help("HTTP"),
        PossibleValue::new("https").help("HTTPS"),
        PossibleValue::new("default").help("The protocol of the server's --public-url"),
    ])]
    pub protocol: Option<String>,
    /// Let a path in capitals find a link in small letters. New slugs are kept in small letters.
    #[arg(long)]
    pub ignore_case: bool,
    /// Tell capitals and small letters apart.
    #[arg(long, conflicts_with = "ignore_case")]
    pub no_ignore_case: bool,
    /// Let a path find a link if a slash or a punctuation mark follows the name.
    #[arg(long)]
    pub ignore_trailing: bool,
    /// Refuse slashes and punctuation marks that follow a name.
    #[arg(long, conflicts_with = "ignore_trailing")]
    pub no_ignore_trailing: bool,
    /// Let the link named * answer every path that no other link has.
    #[arg(long)]
    pub catch_all: bool,
    /// Answer paths without a link as unknown.
    #[arg(long, conflicts_with = "catch_all")]
    pub no_catch_all: bool,
    /// Let scripts of pages on other origins follow links.
    #[arg(long)]
    pub cross_origin: bool,
    /// Keep scripts of pages on other origins from following links.
    #[arg(long, conflicts_with = "cross_origin")]
    pub no_cross_origin: bool,
    /// Let search engines list all links, and not only those that say so.
    #[arg(long)]
    pub crawlable: bool,
    /// Let search engines list only links that say so.
    #[arg(long, conflicts_with = "crawlable")]
    pub no_crawlable: bool,
    /// Let visitors of links with a visit limit confirm that they want to go on.
    #[arg(long)]
    pub confirm_limited: bool,
    /// Lead visitors of links with a visit limit on at once.
    #[arg(long, conflicts_with = "confirm_limited")]
    pub no_confirm_limited: bool,
    /// What a path behind a link's name does, unless the link says so.
    #[arg(long, value_name = "WHAT", value_parser = extra_path_of_domain())]
    pub extra_path: Option<String>,
    /// URL for visitors of links that have expired or whose visits are used up, unless the link has
    /// its own.
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub expired_url: Option<String>,
    /// Remove this URL, so that such links are answered like codes without a live link.
    #[arg(long, conflicts_with = "expired_url")]
    pub no_expired_url: bool,
    /// Query parameters that redirects on the domain add, unless the destination has them:
    /// 'utm_source={domain}&utm_campaign={code}'. {code} is the code or slug of the link.
    #[arg(long, value_name = "PARAMETERS", value_parser = NonEmptyStringValueParser::new())]
    pub query_template: Option<String>,
    /// Remove these parameters, so that redirects add none.
    #[arg(long, conflicts_with = "query_template")]
    pub no_query_template: bool,
    /// JSON file with the Apple apps that open links, to serve at
    /// /.well-known/apple-app-site-association; - for the standard input.
    #[arg(long, value_name = "FILE")]
    pub apple_app_site_association: Option<PathBuf>,
    /// Remove this file, so that no Apple app opens links.
    #[arg(long, conflicts_with = "apple_app_site_association")]
    pub no_apple_app_site_association: bool,
    /// JSON file with the Android apps that open links, to serve at
    /// /.well-known/assetlinks.json; - for the standard input.
    #[arg(long, value_name = "FILE")]
    pub asset_links: Option<PathBuf>,
    /// Remove this file, so that no Android app opens links.
    #[arg(long, conflicts_with = "asset_links")]
    pub no_asset_links: bool,
    #[command(flatten)]
    pub show: ShowArgs,
}

#[derive(Clone, Debug, Args)]
pub struct DomainRedirectsArgs {
    /// Domain, with its port if it has one; DEFAULT for the domain of the server's --public-url.
    #[arg(value_name = "NAME")]
    pub domain: String,
    /// Fallback target for the domain itself.
    // An empty variable in a script must not remove the target: that is the purpose of the other
    // flag.
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub base: Option<String>,
    /// Remove the target, so that the server's --fallback base-url applies.
    #[arg(long, conflicts_with = "base")]
    pub no_base: bool,
    /// Fallback target for paths that cannot be a code.
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub regular_404: Option<String>,
    /// Remove the target, so that the server's --fallback regular-404 applies.
    #[arg(long, conflicts_with = "regular_404")]
    pub no_regular_404: bool,
    /// Fallback target for codes without a live link.
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub invalid_short_url: Option<String>,
    /// Remove the target, so that the server's --fallback invalid-short-url applies.
    #[arg(long, conflicts_with = "invalid_short_url")]
    pub no_invalid_short_url: bool,
    #[command(flatten)]
    pub show: ShowArgs,
}

const LIST: List = List {
    at: "/domains/data",
    empty: "no domains",
    fields: &[
        ("domain", true, |domain| text(&domain["domain"])),
        ("default", true, |domain| if domain["isDefault"] == true { "yes" } else { "" }.to_owned()),
        ("state", true, |domain| if domain["enabled"] == false { "disabled" } else { "" }.to_owned()),
        ("protocol", true, |domain| text(&domain["protocol"])),
        (TARGETS[0].0, false, |domain| text(&domain["redirects"][TARGETS[0].1])),
        (TARGETS[1].0, false, |domain| text(&domain["redirects"][TARGETS[1].1])),
        (TARGETS[2].0, false, |domain| text(&domain["redirects"][TARGETS[2].1])),
    ],
    below: |_| String::new(),
};

pub(super) async fn run(command: DomainCommand) -> Result<String, Error> {
    match command {
        DomainCommand::List { all, table } => {
            let call = Call::read(DOMAINS.to_owned(), maybe("all", all.then_some(true)));
            Server::list(&table, call, &LIST).await
        }
        DomainCommand::Edit(args) => edit(&args).await,
        DomainCommand::Redirects(args) => redirects(&args).await,
        DomainCommand::Import(args) => import::run(&args).await,
        DomainCommand::Remove { domain, server } => {
            let call = Call::write(Method::DELETE, path_of(&domain)?, Vec::new());
            Server::new(&server)?.call(call).await?;
            Ok(format!("{domain}: removed\n"))
        }
    }
}

async fn edit(args: &DomainEditArgs) -> Result<String, Error> {
    let path = path_of(&args.domain)?;
    let body = edit_body(args)?;
    if body.is_empty() {
        return Err(wrong("NAME", &args.domain, NOTHING_TO_CHANGE));
    }
    let call = Call::send(Method::PATCH, path, Value::Object(body));
    Server::show(&args.show, call, "/domain", domain).await
}

async fn redirects(args: &DomainRedirectsArgs) -> Result<String, Error> {
    let mut body = redirects_body(args);
    if body.is_empty() {
        return Err(wrong("NAME", &args.domain, NOTHING_TO_CHANGE));
    }
    body.insert("domain".to_owned(), json!(args.domain));
    let call = Call::send(Method::PATCH, format!("{DOMAINS}/{REDIRECTS}"), Value::Object(body));
    let table = |answer: &Value| targets(vec![("domain", printable(&args.domain))], answer);
    Server::show(&args.show, call, "/baseUrlRedirect", table).await
}

fn path_of(name: &str) -> Result<String, Error> {
    // A domain of this name would address the other call, which adds the domain in its body.
    let segment = segment(name).filter(|_| name != REDIRECTS);
    let expected = "expected a domain as the list shows it, or DEFAULT";
    Ok(format!("{DOMAINS}/{}", segment.ok_or_else(|| wrong("NAME", name, expected))?))
}

/// Returns what a path behind a link's name may do by a domain's choice: all but to fill.
fn extra_path_of_domain() -> [PossibleValue; 3] {
    let [refuse, ignore, append, _fill] = extra_path_values();
    [refuse, ignore, append]
}

/// Builds the body of an edit. Fields without a flag are absent, and so unchanged.
fn edit_body(args: &DomainEditArgs) -> Result<Map<String, Value>, Error> {
    let protocol = |name: &String| if name == "default" { Value::Null } else { json!(name) };
    let switch = |on: bool, off: bool| (on || off).then_some(json!(on));
    let association = args.apple_app_site_association.as_deref();
    let association = file_or_null(APPLE_FLAG, association, args.no_apple_app_site_association)?;
    let asset_links = file_or_null(ANDROID_FLAG, args.asset_links.as_deref(), args.no_asset_links)?;
    Ok(given([
        ("domain", args.new_name.as_ref().map(|name| json!(name))),
        ("enabled", switch(args.enable, args.disable)),
        ("protocol", args.protocol.as_ref().map(protocol)),
        ("ignoreCase", switch(args.ignore_case, args.no_ignore_case)),
        ("ignoreTrailing", switch(args.ignore_trailing, args.no_ignore_trailing)),
        ("catchAll", switch(args.catch_all, args.no_catch_all)),
        ("extraPath", args.extra_path.as_ref().map(|what| json!(what))),
        ("expiredUrl", text_or_null(args.expired_url.as_ref(), args.no_expired_url)),
        ("queryTemplate", text_or_null(args.query_template.as_ref(), args.no_query_template)),
        ("crossOrigin", switch(args.cross_origin, args.no_cross_origin)),
        ("crawlable", switch(args.crawlable, args.no_crawlable)),
        ("confirmLimited", switch(args.confirm_limited, args.no_confirm_limited)),
        ("appleAppSiteAssociation", association),
        ("assetLinks", asset_links),
    ]))
}

/// Builds the body of an edit of fallback targets, apart from the domain: null removes a target,
/// and an absent field stays unchanged.
fn redirects_body(args: &DomainRedirectsArgs) -> Map<String, Value> {
    let invalid_short_url = text_or_null(args.invalid_short_url.as_ref(), args.no_invalid_short_url);
    given([
        ("baseUrlRedirect", text_or_null(args.base.as_ref(), args.no_base)),
        ("regular404Redirect", text_or_null(args.regular_404.as_ref(), args.no_regular_404)),
        ("invalidShortUrlRedirect", invalid_short_url),
    ])
}

fn text_or_null(text: Option<&String>, is_taken_away: bool) -> Option<Value> {
    text.map(|text| json!(text)).or(is_taken_away.then_some(Value::Null))
}

/// Returns the JSON of a flag's file, null to remove it, or `None` without the flags.
fn file_or_null(
    flag: &'static str,
    file: Option<&Path>,
    is_taken_away: bool,
) -> Result<Option<Value>, Error> {
    let Some(path) = file else { return Ok(is_taken_away.then_some(Value::Null)) };
    // Editors and spreadsheets of Windows begin a file with a byte order mark.
    let value = serde_json::from_str(read_file(flag, path)?.trim_start_matches('\u{feff}'));
    let wrong = |error| format!("expected JSON, which has no comments: {error}");
    value.map(Some).map_err(|error| wrong_value(flag, path.display(), wrong(error)))
}

/// Formats a domain as a table of two columns. Fields without a value are left out.
fn domain(domain: &Value) -> String {
    // The file itself would be too long.
    let has = |field: &str| if domain[field].is_null() { String::new() } else { text(&json!(true)) };
    let rows = vec![
        ("domain", text(&domain["domain"])),
        ("default", text(&domain["isDefault"])),
        ("enabled", text(&domain["enabled"])),
        ("protocol", text(&domain["protocol"])),
        ("ignores case", text(&domain["ignoreCase"])),
        ("ignores trailing", text(&domain["ignoreTrailing"])),
        ("catches all", text(&domain["catchAll"])),
        ("extra path", text(&domain["extraPath"])),
        ("expired URL", text(&domain["expiredUrl"])),
        ("query template", text(&domain["queryTemplate"])),
        ("cross origin", text(&domain["crossOrigin"])),
        ("crawlable", text(&domain["crawlable"])),
        ("confirm limited", text(&domain["confirmLimited"])),
        ("Apple app links", has("appleAppSiteAssociation")),
        ("Android app links", has("assetLinks")),
    ];
    targets(rows, &domain["redirects"])
}

/// Formats rows and the fallback targets below them.
fn targets(mut rows: Vec<(&'static str, String)>, redirects: &Value) -> String {
    rows.extend(TARGETS.map(|(name, field)| (name, text(&redirects[field]))));
    pairs(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, command_line::parse};

    #[test]
    fn a_change_sends_what_was_said_null_for_what_is_taken_away_and_nothing_else() {
        for (line, expected) in [
            ("edit sho.rt", json!({})),
            ("edit sho.rt --name münchen.de:8080", json!({ "domain": "münchen.de:8080" })),
            ("edit sho.rt --enable", json!({ "enabled": true })),
            ("edit sho.rt --disable", json!({ "enabled": false })),
            ("edit sho.rt --protocol http", json!({ "protocol": "http" })),
            ("edit sho.rt --protocol default --json", json!({ "protocol": null })),
            ("edit sho.rt --ignore-case", json!({ "ignoreCase": true })),
            ("edit sho.rt --no-ignore-case", json!({ "ignoreCase": false })),
            (
                "edit sho.rt --ignore-trailing --extra-path append",
                json!({ "ignoreTrailing": true, "extraPath": "append" }),
            ),
            ("edit sho.rt --no-ignore-trailing", json!({ "ignoreTrailing": false })),
            ("edit sho.rt --cross-origin", json!({ "crossOrigin": true })),
            ("edit sho.rt --no-cross-origin", json!({ "crossOrigin": false })),
            ("edit sho.rt --crawlable", json!({ "crawlable": true })),
            ("edit sho.rt --no-crawlable", json!({ "crawlable": false })),
            ("edit sho.rt --confirm-limited", json!({ "confirmLimited": true })),
            ("edit sho.rt --no-confirm-limited", json!({ "confirmLimited": false })),
            ("edit sho.rt --expired-url u", json!({ "expiredUrl": "u" })),
            ("edit sho.rt --no-expired-url", json!({ "expiredUrl": null })),
            ("edit sho.rt --query-template a={code}", json!({ "queryTemplate": "a={code}" })),
            ("edit sho.rt --no-query-template", json!({ "queryTemplate": null })),
            (
                "edit sho.rt --no-apple-app-site-association --no-asset-links",
                json!({ "appleAppSiteAssociation": null, "assetLinks": null }),
            ),
            ("edit sho.rt --catch-all", json!({ "catchAll": true })),
            ("edit sho.rt --no-catch-all", json!({ "catchAll": false })),
            (
                "edit sho.rt --name a.b --disable --protocol https",
                json!({ "domain": "a.b", "enabled": false, "protocol": "https" }),
            ),
            ("redirects sho.rt", json!({})),
            ("redirects sho.rt --base https://a.b/ü", json!({ "baseUrlRedirect": "https://a.b/ü" })),
            ("redirects sho.rt --no-base", json!({ "baseUrlRedirect": null })),
            ("redirects sho.rt --regular-404 u", json!({ "regular404Redirect": "u" })),
            ("redirects sho.rt --no-regular-404", json!({ "regular404Redirect": null })),
            ("redirects sho.rt --invalid-short-url u", json!({ "invalidShortUrlRedirect": "u" })),
            ("redirects sho.rt --no-invalid-short-url", json!({ "invalidShortUrlRedirect": null })),
            (
                "redirects sho.rt --base u --no-regular-404 --invalid-short-url v --json",
                json!({ "baseUrlRedirect": "u", "regular404Redirect": null, "invalidShortUrlRedirect": "v" }),
            ),
        ] {
            let words: Vec<&str> = ["domain"].into_iter().chain(line.split(' ')).collect();
            let body = match parse(&words) {
                Ok(Command::Domain(DomainCommand::Edit(args))) => edit_body(&args).unwrap(),
                Ok(Command::Domain(DomainCommand::Redirects(args))) => redirects_body(&args),
                other => panic!("{other:?}"),
            };
            assert_eq!(Value::Object(body), expected, "{line}");
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

    #[test]
    fn a_list_says_what_is_set_of_each_domain() {
        let table = |domains: Value| LIST.format(&json!({ "domains": { "data": domains } }), 100);
        let none =
            json!({ "baseUrlRedirect": null, "regular404Redirect": null, "invalidShortUrlRedirect": null });
        let plain = json!([
            { "domain": "sho.rt", "isDefault": true, "redirects": none, "enabled": true, "protocol": null },
            { "domain": "go.example", "isDefault": false, "redirects": none, "enabled": true, "protocol": null },
        ]);
        assert_eq!(table(plain), "domain      default\nsho.rt      yes\ngo.example\n");
        let redirects = json!({ "baseUrlRedirect": "短".repeat(2_000), "invalidShortUrlRedirect": "/lost" });
        let full =
            table(json!([{ "domain": "xn--mnchen-3ya.example:8080", "isDefault": false, "enabled": false,
            "protocol": "https", "redirects": redirects }]));
        for part in ["xn--mnchen-3ya.example:8080  ", "  disabled  https  ", "/lost", "…"] {
            assert!(full.contains(part), "{full}");
        }
    }
}
