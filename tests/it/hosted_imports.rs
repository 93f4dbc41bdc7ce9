//! Imports of the files of hosted services (`resolver/testdata/imports`), which have the traps of
//! real ones: what is stored, refused and reported, and that a repetition changes nothing.

use std::{path::Path, time::Duration};

use harness::{Api, wait};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    imports::{Operator, counts},
    rest_calls::call,
};

const SOON: Duration = Duration::from_secs(60);

/// A file, and what an import of it says.
struct Case {
    service: &'static str,
    file: &'static str,
    /// How many links are read, stored, there already, and refused.
    counts: [u64; 4],
    left_out: Value,
    /// Parts of the reasons for refusals.
    reasons: &'static [&'static str],
}

fn case(
    service: &'static str,
    file: &'static str,
    counts: [u64; 4],
    left_out: Value,
    reasons: &'static [&'static str],
) -> Case {
    Case { service, file, counts, left_out, reasons }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "bitly",
            "bitly.csv",
            [6, 3, 1, 2],
            json!({ "limits": 5 }),
            &["item 4: longUrl: expected a text", "item 6: \"bcGone\": the code leads elsewhere here"],
        ),
        case("bitly", "bitly.json", [3, 3, 0, 0], json!({ "redirect-rules": 1 }), &[]),
        case(
            "rebrandly",
            "rebrandly.csv",
            [4, 3, 0, 1],
            json!({ "limits": 4 }),
            &["item 4: long URL \"ftp://example.com/\""],
        ),
        case("rebrandly", "rebrandly.json", [2, 1, 0, 1], json!({}), &["item 2: longUrl: expected a text"]),
        case("shortio", "shortio.csv", [3, 2, 0, 1], json!({ "limits": 2 }), &["item 3: shortUrl: "]),
        case("shortio", "shortio.json", [2, 2, 0, 0], json!({ "password": 1 }), &[]),
        case("dub", "dub.csv", [2, 2, 0, 0], json!({ "limits": 2 }), &[]),
        case(
            "dub",
            "dub.ndjson",
            [3, 2, 0, 1],
            json!({ "password": 1 }),
            &["item 3: \"djShop\": the code leads elsewhere here"],
        ),
    ]
}

/// Links by their paths below `short-urls/`, and some of their members by JSON pointer.
fn links() -> Vec<(&'static str, Value)> {
    vec![
        (
            "bcSpring",
            json!({ "/longUrl": "https://example.com/spring?x=1;2",
                "/title": "Spring, \"big\" sale", "/dateCreated": "2024-03-01T09:00:00+00:00",
                "/visitsSummary/total": 1_234, "/domain": null }),
        ),
        ("bcHash", json!({ "/longUrl": "https://example.com/spring?x=1;2", "/visitsSummary/total": 0 })),
        ("bcGone", json!({ "/enabled": false, "/dateCreated": "2023-01-02T03:04:05+00:00" })),
        ("bjHash", json!({ "/tags": ["Help Center", "archived", "print"], "/enabled": true })),
        ("bjDocs?domain=shop.example", json!({ "/longUrl": "https://example.com/docs" })),
        (
            "rcMenu",
            json!({ "/longUrl": "https://example.com/menu?a=1,2", "/title": "Menu; \"day\"",
                "/tags": ["food", "lunch"], "/visitsSummary/total": 42 }),
        ),
        ("rcOld", json!({ "/enabled": false, "/dateCreated": "2024-03-02T09:00:00+00:00" })),
        ("rcBare?domain=shop.example", json!({ "/dateCreated": "2024-03-02T01:00:00+00:00" })),
        ("rjDocs", json!({ "/tags": ["Print"], "/forwardQuery": false, "/visitsSummary/total": 3 })),
        (
            "scLaunch",
            json!({ "/title": "Launch, day", "/tags": ["launch", "marketing"],
                "/meta/validUntil": "2090-05-01T08:00:00+00:00", "/visitsSummary/total": 245 }),
        ),
        (
            "sjGuard",
            json!({ "/longUrl": "https://example.com/guard?utm_source=mail#top", "/enabled": false,
                "/meta/maxVisits": 100, "/meta/validUntil": "2090-05-01T08:00:00+00:00",
                "/redirectStatus": 307, "/hasRedirectRules": true }),
        ),
        ("sjOld", json!({ "/tags": ["archived"], "/enabled": true })),
        ("dcHome", json!({ "/tags": ["a", "b"], "/visitsSummary/total": 7 })),
        ("dcOld", json!({ "/tags": ["archived"], "/enabled": true })),
        (
            "djShop",
            json!({ "/longUrl": "https://example.com/shop?utm_source=dub&utm_medium=print",
                "/description": "for the fair", "/tags": ["Sale"], "/crawlable": true,
                "/hasRedirectRules": true, "/visitsSummary/total": 12,
                "/expiredUrl": "https://example.com/over" }),
        ),
        ("djLock", json!({ "/enabled": false })),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_hosted_services_are_imported_once_and_every_loss_is_told() {
    let operator = Operator::new().await;
    for case in cases() {
        let Case { service, file, counts: [read, stored, there, refused], left_out, reasons } = case;
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../resolver/testdata/imports").join(file);
        // As a spreadsheet or an editor of another system saves it again: with a byte order mark
        // and CRLF, or without them if it has them.
        let text = std::fs::read_to_string(&path).unwrap();
        let plain = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        let marked = format!("\u{feff}{}", plain.replace('\n', "\r\n"));
        assert_eq!(text == marked, file == "dub.csv", "{file}");
        let saved = if text == plain { marked } else { plain };
        let saved = operator.scratch.file(file, &saved).unwrap();
        let code = Some(if refused == 0 { 0 } else { 65 });
        for (path, expected) in [
            (&path, [read, stored, there, 0, refused]),
            (&path, [read, 0, 0, read, 0]),
            (&saved, [read, 0, stored + there, 0, refused]),
        ] {
            let path = path.display().to_string();
            let args = ["import", "--from", service, "--json", "--default-domain", "go.example", &path];
            let finished = operator.command(&args).await;
            let told: Value = serde_json::from_str(&finished.stdout).unwrap_or_default();
            let outcome = (finished.code(), counts(&told));
            assert_eq!(outcome, (code, expected), "{file}: {told} {}", finished.stderr);
            if expected[3] == 0 {
                assert_eq!(told["leftOut"], left_out, "{file}: {told}");
                let said = told["reasons"].as_array().unwrap();
                assert_eq!(said.len(), reasons.len(), "{file}: {told}");
                for (said, part) in said.iter().zip(reasons) {
                    assert!(said.as_str().unwrap().starts_with(part), "{file}: {said}");
                }
            }
        }
    }
    let server = operator.serve("hosted").await;
    for (path, members) in links() {
        for (pointer, expected) in members.as_object().unwrap() {
            expect(&server.api, path, pointer, expected).await;
        }
    }
    assert_eq!(server.api.follow("sjGuard").await.unwrap().0, 404, "its password did not come along");
}

/// Waits for visits, which are added up after the import, and compares other members at once. The
/// order of tags does not count.
async fn expect(api: &Api, path: &str, pointer: &str, expected: &Value) {
    let member = async || {
        let answer = call(api, Method::GET, &format!("short-urls/{path}"), None).await;
        let link: Value = answer.json().unwrap();
        let mut member = link.pointer(pointer).cloned().unwrap_or_else(|| panic!("{path}: {link}"));
        if let Value::Array(tags) = &mut member {
            tags.sort_by_key(ToString::to_string);
        }
        member
    };
    if pointer.starts_with("/visitsSummary") {
        wait::until(SOON, "the visits are added up", async || member().await == *expected).await.unwrap();
    }
    assert_eq!(member().await, *expected, "{path}: {pointer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_help_of_imports_names_every_service() {
    let operator = Operator::new().await;
    let help = operator.command(&["import", "--help"]).await.stdout;
    for service in ["bitly", "rebrandly", "shortio", "dub"] {
        assert!(help.contains(service), "{service}: {help}");
    }
    let wrong = operator.command(&["import", "--from", "bit.ly", "links.csv"]).await;
    assert!(wrong.stderr.contains("bitly, rebrandly, shortio, dub"), "{}", wrong.stderr);
}
