//! Requests of `resolver link`, built from its flags: bodies, queries, and the password from a
//! file.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read},
    path::Path,
};

use dto::{Flag, LinkFields, Number, Patch};
use serde_json::Value;

use super::{
    args::{LinkCreateArgs, LinkEditArgs, LinkListArgs},
    fields::LinkSetters,
};
use crate::{
    Error,
    client::{Query, maybe},
    wrong_value,
};

/// The number of links per call when all are listed.
const PER_CALL: u64 = 500;
/// The maximum length of a password file's first line in bytes. The server accepts fewer, and its
/// error says how many.
const PASSWORD_BYTES: u64 = 4_096;
/// The word for the server's default domain.
const OWN_DOMAIN: &str = "DEFAULT";

pub(super) fn list_query(args: &LinkListArgs) -> Query {
    // New links come last in this order, so that they move no other link to another page meanwhile.
    let order = args.ndjson.then(|| "dateCreated-ASC".to_owned());
    [
        maybe("searchTerm", args.search.as_ref()),
        with_tags(&args.tag, args.any_tag),
        maybe("domain", args.domain.as_ref()),
        maybe("deleted", args.deleted.then_some("true")),
        maybe("orderBy", args.order.clone().or(order)),
        maybe("page", args.page),
        maybe("itemsPerPage", args.per_page.or(args.ndjson.then_some(PER_CALL))),
        maybe("startDate", args.since.as_ref()),
        maybe("endDate", args.until.as_ref()),
    ]
    .concat()
}

/// Returns the criteria that links have all of some tags, or any.
pub(super) fn with_tags(tags: &[String], any: bool) -> Query {
    let mode = (!tags.is_empty()).then_some(if any { "any" } else { "all" });
    [all("tags[]", tags), maybe("tagsMode", mode)].concat()
}

pub(super) fn all(name: &'static str, values: &[String]) -> Query {
    values.iter().map(|value| (name, value.clone())).collect()
}

pub(super) fn create_body(args: &LinkCreateArgs, password: Option<String>) -> Value {
    sent(&LinkFields {
        long_url: Patch::Set(args.long_url.clone()),
        custom_slug: args.slug.clone().into(),
        domain: args.domain.clone().filter(|domain| domain != OWN_DOMAIN).into(),
        short_code_length: args.length.map(Number).into(),
        keyspace: args.keyspace.clone().into(),
        strategy: args.strategy.clone().into(),
        find_if_exists: args.find_if_exists.then_some(Flag(true)).into(),
        fetch_title: args.fetch_title.then_some(Flag(true)).into(),
        external_id: args.external_id.clone().into(),
        ..args.setters.fields(password)
    })
}

pub(super) fn edit_body(args: &LinkEditArgs, password: Option<String>) -> Value {
    sent(&LinkFields { custom_slug: args.slug.clone().into(), ..args.edits.fields(password) })
}

pub(super) fn sent(fields: &LinkFields) -> Value {
    // A struct of plain values always serializes to an object.
    serde_json::to_value(fields).unwrap_or_default()
}

/// Reads the password from the file of `--password-file`; `-` is the standard input.
pub(super) fn password(setters: &LinkSetters) -> Result<Option<String>, Error> {
    let Some(path) = &setters.password_file else { return Ok(None) };
    let wrong = |reason: String| wrong_value("--password-file", path.display(), reason);
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).map_err(|error| wrong(error.to_string()))?)
    };
    first_line(source).map(Some).map_err(wrong)
}

fn first_line(source: impl Read) -> Result<String, String> {
    let mut line = Vec::new();
    let mut source = BufReader::new(source.take(PASSWORD_BYTES));
    source.read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
    let is_whole =
        line.last() == Some(&b'\n') || line.len() < usize::try_from(PASSWORD_BYTES).unwrap_or(usize::MAX);
    let text = String::from_utf8(line).ok().filter(|_| is_whole);
    let text =
        text.ok_or_else(|| format!("expected a first line of fewer than {PASSWORD_BYTES} bytes of UTF-8"))?;
    let password = text.strip_suffix('\n').unwrap_or(&text);
    let password = password.strip_suffix('\r').unwrap_or(password);
    if password.is_empty() {
        Err("expected a password in the first line".to_owned())
    } else {
        Ok(password.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::args::LinkCommand, *};
    use crate::{Command, command_line};

    fn parse(args: &[&str]) -> LinkCommand {
        match command_line::parse(&[&["link"], args].concat()) {
            Ok(Command::Link(command)) => command,
            other => panic!("{other:?}"),
        }
    }

    fn body(args: &[&str], password: Option<&str>) -> Value {
        let password = password.map(str::to_owned);
        match parse(args) {
            LinkCommand::Create(args) => create_body(&args, password),
            LinkCommand::Edit(args) => edit_body(&args, password),
            other => panic!("{other:?}"),
        }
    }

    /// Flags, without those whose values have spaces or are empty.
    const SETTERS: &str = "--tag a --title T --valid-since 2026-01-01 --valid-until=2027-01-01T00:00:00+00:00 \
                           --max-visits 18446744073709551615 --redirect-status 308 \
                           --extra-path append --expired-url v --preview-title P --preview-image i \
                           --crawlable --no-forward-query --json";

    fn all_setters() -> Vec<&'static str> {
        SETTERS.split_whitespace().chain(["--tag", "b c", "--description", ""]).collect()
    }

    fn all_set() -> Value {
        json!({
            "tags": ["a", "b c"], "title": "T", "description": "", "validSince": "2026-01-01",
            "validUntil": "2027-01-01T00:00:00+00:00", "maxVisits": u64::MAX, "redirectStatus": 308,
            "extraPath": "append", "expiredUrl": "v", "preview": { "title": "P", "image": "i" },
            "crawlable": true, "forwardQuery": false, "password": "p",
        })
    }

    #[test]
    fn a_create_sends_what_was_said_and_nothing_else() {
        assert_eq!(body(&["create", "u"], None), json!({ "longUrl": "u" }));
        assert_eq!(body(&["create", "u", "--domain", "DEFAULT"], None), json!({ "longUrl": "u" }));
        assert_eq!(
            body(&["create", "u", "--fetch-title"], None),
            json!({ "longUrl": "u", "fetchTitle": true })
        );
        assert_eq!(
            body(&["create", "u", "--external-id", "sku 1"], None),
            json!({ "longUrl": "u", "externalId": "sku 1" })
        );
        let own = "create https://example.com/ü --slug 短い/x --domain sho.rt --length 0 --keyspace web \
                   --strategy hash --find-if-exists --idempotency-key k";
        let own: Vec<&str> = own.split_whitespace().collect();
        let mut expected = json!({
            "longUrl": "https://example.com/ü", "customSlug": "短い/x", "domain": "sho.rt", "shortCodeLength": 0,
            "keyspace": "web", "strategy": "hash", "findIfExists": true,
        });
        expected.as_object_mut().unwrap().extend(all_set().as_object().unwrap().clone());
        assert_eq!(body(&[own, all_setters()].concat(), Some("p")), expected);
    }

    #[test]
    fn an_edit_sends_null_for_what_is_taken_away_and_nothing_for_what_stays() {
        assert_eq!(body(&["edit", "abc"], None), json!({}));
        let mut expected = all_set();
        (expected["longUrl"], expected["customSlug"]) = (json!("u"), json!("s"));
        let set = [&["edit", "abc", "--long-url", "u", "--slug", "s"], &all_setters()[..]].concat();
        assert_eq!(body(&set, Some("p")), expected);
        for (flag, expected) in [
            ("--no-tags", json!({ "tags": [] })),
            ("--no-title", json!({ "title": null })),
            ("--no-description", json!({ "description": null })),
            ("--no-valid-since", json!({ "validSince": null })),
            ("--no-valid-until", json!({ "validUntil": null })),
            ("--no-max-visits", json!({ "maxVisits": null })),
            ("--no-redirect-status", json!({ "redirectStatus": null })),
            ("--no-extra-path", json!({ "extraPath": null })),
            ("--no-expired-url", json!({ "expiredUrl": null })),
            ("--no-preview", json!({ "preview": null })),
            ("--no-password", json!({ "password": null })),
            ("--no-crawlable", json!({ "crawlable": false })),
            ("--crawlable", json!({ "crawlable": true })),
            ("--forward-query", json!({ "forwardQuery": true })),
            ("--no-forward-query", json!({ "forwardQuery": false })),
            ("--enable", json!({ "enabled": true })),
            ("--disable", json!({ "enabled": false })),
        ] {
            assert_eq!(body(&["edit", "abc", flag], None), expected, "{flag}");
        }
    }

    #[test]
    fn a_list_asks_for_all_tags_unless_one_is_enough_and_for_all_pages_from_the_oldest_on() {
        for (args, expected) in [
            (&[][..], ""),
            (&["--tag", "a b", "--tag", "ü"], "tags[]=a b&tags[]=ü&tagsMode=all"),
            (&["--any-tag", "--tag", "a"], "tags[]=a&tagsMode=any"),
            (&["--ndjson"], "orderBy=dateCreated-ASC&itemsPerPage=500"),
            (&["--ndjson", "--order", "title-DESC", "--per-page", "7"], "orderBy=title-DESC&itemsPerPage=7"),
            (
                &"--search x --domain d --page 2 --since 2026-01-01 --until 2026-01-02"
                    .split(' ')
                    .collect::<Vec<_>>()[..],
                "searchTerm=x&domain=d&page=2&startDate=2026-01-01&endDate=2026-01-02",
            ),
        ] {
            let LinkCommand::List(args) = parse(&[&["list"], args].concat()) else { panic!("{args:?}") };
            let pairs: Vec<_> =
                list_query(&args).iter().map(|(name, value)| format!("{name}={value}")).collect();
            assert_eq!(pairs.join("&"), expected);
        }
    }

    #[test]
    fn a_password_is_the_first_line_of_a_file_without_its_end() {
        let long = vec![b'a'; 4_096];
        for (bytes, password) in [
            (&b"secret"[..], Some("secret")),
            (b"secret\n", Some("secret")),
            (b" sec ret \r\nmore\n", Some(" sec ret ")),
            ("pässword\n\u{ff}".as_bytes(), Some("pässword")),
            (b"", None),
            (b"\nsecret\n", None),
            (b"\r\n", None),
            (b"\xff\n", None),
            (&long, None),
        ] {
            assert_eq!(first_line(bytes).ok().as_deref(), password);
        }
        assert!(first_line(&long[1..]).is_ok());
    }
}
