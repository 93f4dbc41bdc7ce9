//! `resolver link edit-many` and `delete-many`: changes many links of a running server, page by
//! page.
//!
//! Changes are idempotent, so the command can be repeated after it was stopped or failed. `--after`
//! skips the pages that are done, which saves the time to read them.

use std::{fmt::Write as _, path::PathBuf};

use clap::Args;
use daemon::Exit;
use links::{BULK_NAMES_MAX, COUNTED_MAX};
use serde_json::{Map, Value, json};
use ureq::http::Method;

use super::{
    LINKS,
    body::{all, password, sent, with_tags},
    fields::LinkEdits,
};
use crate::{
    Error, Output,
    args::{ShowArgs, read_file},
    client::{Call, NOTHING_TO_CHANGE, Query, Server, maybe},
    json_text,
    output::{progress_bar, warn},
    table::{counted_links, printable, text},
    wrong_value,
};

/// Links of one call.
const PER_CALL: u64 = 5_000;
/// The number of names in a call: with names of the longest kind, twice as many would not fit into
/// the body.
const NAMES_PER_CALL: usize = BULK_NAMES_MAX / 2;
/// Maximum number of failed links in the output.
const FAILED_MAX: usize = 1_000;

/// The links to change.
#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = true)]
pub struct LinkChoice {
    /// Choose links whose long URL, title, tag, slug or domain contains this text.
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// Choose links with this tag; can be repeated to require several tags.
    #[arg(long, value_name = "TAG")]
    pub with_tag: Vec<String>,
    /// Require only one of the tags.
    #[arg(long, requires = "with_tag")]
    pub any_tag: bool,
    /// Leave out links with this tag; can be repeated.
    #[arg(long, value_name = "TAG")]
    pub without_tag: Vec<String>,
    /// Choose links on this domain.
    #[arg(long)]
    pub domain: Option<String>,
    /// Choose links that lead to exactly this URL.
    #[arg(long, value_name = "URL")]
    pub leading_to: Option<String>,
    /// Choose links created at this time or later: 2026-11-22T10:00:00+00:00, or a date.
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Choose links created at this time or earlier, in the same form.
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Choose all links that the API key sees.
    #[arg(long)]
    pub all: bool,
    /// Choose the links that this file lists, one per line, by short URL or by code on --domain; -
    /// for the standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "search", "with_tag", "without_tag", "leading_to", "since", "until", "all",
    ])]
    pub codes: Option<PathBuf>,
}

/// The links to change, and whether to change them.
#[derive(Clone, Debug, Args)]
pub struct BulkArgs {
    #[command(flatten)]
    pub choice: LinkChoice,
    /// Edit or delete the links, instead of only printing what would be changed.
    #[arg(long)]
    pub yes: bool,
    /// Continue after this page of an earlier run, which printed the cursor.
    #[arg(long, value_name = "CURSOR", conflicts_with = "codes")]
    pub after: Option<String>,
    #[command(flatten)]
    pub show: ShowArgs,
}

/// Arguments of `resolver link edit-many`.
#[derive(Clone, Debug, Args)]
pub struct EditManyArgs {
    #[command(flatten)]
    pub bulk: BulkArgs,
    /// Add this tag to the links; can be repeated.
    #[arg(long, value_name = "TAG")]
    pub add_tag: Vec<String>,
    /// Remove this tag from the links; can be repeated.
    #[arg(long, value_name = "TAG")]
    pub remove_tag: Vec<String>,
    #[command(flatten)]
    pub edits: LinkEdits,
}

/// The sums of all pages.
#[derive(Default)]
struct Sum {
    matched: u64,
    changed: u64,
    unchanged: u64,
    failed: u64,
    /// The first links that were not changed.
    failures: Vec<Value>,
    /// Some of the links that a dry run would change.
    sample: Vec<Value>,
}

pub(super) async fn edit(args: &EditManyArgs) -> Result<Output, Error> {
    let change = edit_of(args, password(&args.edits.setters)?);
    if change.is_empty() {
        return Err(wrong_value("--add-tag", "(none)", NOTHING_TO_CHANGE));
    }
    run(&args.bulk, change).await
}

pub(super) async fn delete(args: &BulkArgs) -> Result<Output, Error> {
    run(args, Map::from_iter([("delete".to_owned(), json!(true))])).await
}

/// Returns the members of the body that say how links are changed; none if they are not.
fn edit_of(args: &EditManyArgs, password: Option<String>) -> Map<String, Value> {
    let changes = sent(&args.edits.fields(password));
    let (added, removed) = (json!(args.add_tag), json!(args.remove_tag));
    let members = [("changes", changes), ("addTags", added), ("removeTags", removed)];
    let is_empty = |value: &Value| *value == json!({}) || *value == json!([]);
    let given = members.into_iter().filter(|(_, value)| !is_empty(value));
    given.map(|(name, value)| (name.to_owned(), value)).collect()
}

async fn run(args: &BulkArgs, change: Map<String, Value>) -> Result<Output, Error> {
    let server = Server::new(&args.show.server)?;
    let query = query_of(&args.choice);
    let (selections, total) = match &args.choice.codes {
        Some(file) => {
            let names = names_in(&read_file("--codes", file)?, args.choice.domain.as_deref());
            let parts = names.chunks(NAMES_PER_CALL).map(|names| json!({ "shortUrls": names }));
            (parts.collect(), Some(names.len() as u64))
        }
        None => {
            let selection = json!({ "filter": filter_of(&query), "all": args.choice.all });
            (vec![selection], count(&server, query).await)
        }
    };
    let bar = progress_bar(total, "{pos} links {msg}");
    let mut sum = Sum::default();
    for selection in selections {
        let mut body = change.clone();
        body.extend(selection.as_object().cloned().unwrap_or_default());
        body.extend([("dryRun".to_owned(), json!(!args.yes)), ("limit".to_owned(), json!(PER_CALL))]);
        let mut after = args.after.clone();
        loop {
            body.insert("after".to_owned(), json!(after));
            let call = Call::send(Method::POST, format!("{LINKS}/bulk-edit"), Value::Object(body.clone()));
            let asked = server.ask(Call { is_repeatable: true, ..call }).await;
            if let (Err(_), Some(after), None) = (&asked, &after, &args.choice.codes) {
                warn(&format!("the earlier pages are done: to continue, add --after {}", printable(after)));
            }
            let page = asked?;
            sum.add(&page).ok_or_else(|| server.foreign())?;
            bar.set_position(sum.matched);
            let Some(next) = page["next"].as_str() else { break };
            bar.set_message(format!("(--after {})", printable(next)));
            after = Some(next.to_owned());
        }
    }
    bar.finish_and_clear();
    let exit = if sum.failed == 0 { Exit::Clean } else { Exit::Refused };
    let done = if change.contains_key("delete") { "deleted" } else { "changed" };
    let mut text = if args.show.json { json_text::pretty(&sum.json()) } else { sum.text(done, args.yes) };
    if !args.yes && !args.show.json {
        // Shows a flag that sets tags where one that selects links by tag was meant.
        text.push_str(&format!("The change: {}\n", Value::Object(change)));
    }
    Ok(Output { text, exit })
}

/// Returns the criteria as the query of a list.
fn query_of(choice: &LinkChoice) -> Query {
    [
        maybe("searchTerm", choice.search.as_ref()),
        with_tags(&choice.with_tag, choice.any_tag),
        all("excludeTags[]", &choice.without_tag),
        maybe("domain", choice.domain.as_ref()),
        maybe("longUrl", choice.leading_to.as_ref()),
        maybe("startDate", choice.since.as_ref()),
        maybe("endDate", choice.until.as_ref()),
    ]
    .concat()
}

/// Returns the query of a list as the filter of a change.
fn filter_of(query: &Query) -> Value {
    let mut filter = json!({});
    for (name, value) in query {
        match name.strip_suffix("[]") {
            None => filter[name] = json!(value),
            Some(name) => match filter[name].as_array_mut() {
                Some(values) => values.push(json!(value)),
                None => filter[name] = json!([value]),
            },
        }
    }
    filter
}

/// Asks how many links a list has; `None` if that is not known, or takes too long.
async fn count(server: &Server, mut query: Query) -> Option<u64> {
    query.push(("itemsPerPage", "1".to_owned()));
    let answer = server.ask(Call::read(LINKS.to_owned(), query)).await.ok()?;
    let total = answer["shortUrls"]["pagination"]["totalItems"].as_u64();
    total.filter(|total| *total < COUNTED_MAX)
}

/// Returns the names in the lines of a file, as editors and spreadsheets save them: with a byte
/// order mark, and in quotation marks.
fn names_in(lines: &str, domain: Option<&str>) -> Vec<Value> {
    let lines = lines.trim_start_matches('\u{feff}').lines();
    let names = lines.map(|line| line.trim().trim_matches('"')).filter(|name| !name.is_empty());
    names.map(|name| name_of(name, domain)).collect()
}

/// Returns the name of a link by its code or its short URL. No code has a colon.
fn name_of(text: &str, domain: Option<&str>) -> Value {
    let url = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match url.and_then(|url| url.split_once('/')) {
        Some((host, code)) => json!({ "shortCode": code, "domain": host }),
        None => json!({ "shortCode": text, "domain": domain }),
    }
}

impl Sum {
    /// Adds a page; `None` if it is none.
    fn add(&mut self, page: &Value) -> Option<()> {
        self.matched += page["matched"].as_u64()?;
        self.changed += page["changed"].as_u64()?;
        self.unchanged += page["unchanged"].as_u64()?;
        let failed = page["failed"].as_array()?;
        self.failed += failed.len() as u64;
        let room = FAILED_MAX.saturating_sub(self.failures.len());
        self.failures.extend(failed.iter().take(room).cloned());
        if self.sample.is_empty() {
            self.sample = page["sample"].as_array()?.clone();
        }
        Some(())
    }

    fn json(&self) -> Value {
        let Self { matched, changed, unchanged, failed, failures, sample } = self;
        json!({
            "matched": matched, "changed": changed, "unchanged": unchanged, "failed": failed,
            "failures": failures, "sample": sample,
        })
    }

    /// Formats the sums; `done` is what was done to links, in a word.
    fn text(&self, done: &str, is_done: bool) -> String {
        // `matched` lacks the names that no link has, which failed too.
        let Self { changed, unchanged, failed, failures, sample, .. } = self;
        let all = counted_links(changed + unchanged + failed);
        let would = if is_done { "" } else { "would be " };
        let need = if *unchanged == 1 { "needs" } else { "need" };
        let mut lines =
            format!("{all}: {changed} {would}{done}, {unchanged} {need} no change, {failed} failed\n");
        for link in sample {
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "  {}", text(&link["shortUrl"]));
        }
        for failure in failures {
            let (code, problem) = (text(&failure["shortCode"]), text(&failure["problem"]));
            let _ = writeln!(lines, "  {code}: {problem}");
        }
        if !is_done {
            lines.push_str("Nothing was changed. To apply the change, add --yes.\n");
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::{super::args::LinkCommand, *};
    use crate::{Command, command_line};

    fn parse(line: &str) -> Option<LinkCommand> {
        match command_line::parse(&["link"].into_iter().chain(line.split(' ')).collect::<Vec<_>>()) {
            Ok(Command::Link(command)) => Some(command),
            _ => None,
        }
    }

    #[test]
    fn criteria_are_a_filter_and_flags_a_change() {
        let line = "edit-many --search x --with-tag a --with-tag b --without-tag c --domain d --leading-to u \
                    --since 2026-01-01 --add-tag t --remove-tag s --no-title --disable --long-url v";
        let Some(LinkCommand::EditMany(args)) = parse(line) else { panic!("{line}") };
        let filter = json!({
            "searchTerm": "x", "tags": ["a", "b"], "tagsMode": "all", "excludeTags": ["c"], "domain": "d",
            "longUrl": "u", "startDate": "2026-01-01",
        });
        assert_eq!(filter_of(&query_of(&args.bulk.choice)), filter);
        let change = json!({
            "changes": { "longUrl": "v", "title": null, "enabled": false },
            "addTags": ["t"], "removeTags": ["s"],
        });
        assert_eq!(Value::Object(edit_of(&args, None)), change);
        let Some(LinkCommand::EditMany(args)) = parse("edit-many --all") else { panic!("no command") };
        assert!(edit_of(&args, None).is_empty() && !args.bulk.yes);
    }

    #[test]
    fn links_are_chosen_by_a_criterion_or_by_codes() {
        for (line, is_one) in [
            ("delete-many", false),
            ("delete-many --yes", false),
            ("delete-many --any-tag", false),
            ("delete-many --all --yes", true),
            ("delete-many --codes f --domain d", true),
            ("delete-many --codes f --search x", false),
            ("delete-many --codes f --after 7", false),
            ("delete-many --until 2026-01-01 --after 7", true),
        ] {
            assert_eq!(parse(line).is_some(), is_one, "{line}");
        }
        let named = ["a", "b/c"].map(|code| json!({ "shortCode": code, "domain": "d" }));
        assert_eq!(names_in("a\n\n b/c \r\n", Some("d")), named);
        assert_eq!(names_in("\u{feff}\"a\"\r\nb/c\r\n", Some("d")), named);
        assert_eq!(names_in("https://d/a\nhttp://d/b/c", None), named);
    }

    #[test]
    fn pages_are_added_up() {
        let mut sum = Sum::default();
        let failure = json!({ "shortCode": "c", "domain": null, "problem": "The link was taken down." });
        let page = json!({ "matched": 3, "changed": 1, "unchanged": 1, "failed": [failure], "sample": [] });
        assert!(sum.add(&page).is_some() && sum.add(&page).is_some());
        assert!(sum.add(&json!({ "matched": 1 })).is_none());
        let mut sum = Sum::default();
        sum.add(&page).unwrap();
        let expected = "3 links: 1 changed, 1 needs no change, 1 failed\n  c: The link was taken down.\n";
        assert_eq!(sum.text("changed", true), expected);
        let said = sum.text("deleted", false);
        assert!(said.starts_with("3 links: 1 would be deleted,") && said.contains("add --yes"), "{said}");
        assert_eq!((&sum.json()["failed"], &sum.json()["failures"]), (&json!(1), &json!([failure])));
        let page = json!({ "matched": 0, "changed": 0, "unchanged": 0, "failed": [failure], "sample": [] });
        let mut sum = Sum::default();
        sum.add(&page).unwrap();
        assert!(sum.text("deleted", true).starts_with("1 link: 0 deleted, 0 need no change, 1 failed\n"));
    }
}
