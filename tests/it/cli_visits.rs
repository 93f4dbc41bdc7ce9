//! `resolver visits`, run against a real server.

use std::time::Duration;

use harness::{Resolver, wait};
use serde_json::{Value, json};

use crate::cli::{Person, row};

const SOON: Duration = Duration::from_secs(60);
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0";
const BOT: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";

#[tokio::test(flavor = "multi_thread")]
async fn visits_are_listed_counted_and_deleted_from_the_command_line() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let (api, person) = (&resolver.api, Person::at(&resolver));
    let wish = json!({ "longUrl": "https://example.com/", "customSlug": "sale/2026", "tags": ["news"] });
    let code = api.create_with(&wish).await.unwrap().code;
    assert_eq!(person.read(&["visits", "list", &code]).await, "no visits\n");
    for agent in [FIREFOX, FIREFOX, BOT] {
        for path in [&code, "no-such-code"] {
            api.http().get(format!("{}/{path}", api.url())).header("User-Agent", agent).send().await.unwrap();
        }
    }
    for args in [&["visits", "stats", &code, "--json"][..], &["visits", "stats", "--tag", "news", "--json"]] {
        let counted = async || person.read_json(args).await["visits"]["total"] == 3;
        wait::until(SOON, "three visits", counted).await.unwrap();
    }
    let listed = person.read(&["visits", "list", &code, "--limit", "2"]).await;
    assert!(listed.ends_with("page 1 of 2, 3 visits\n") && listed.contains("  bot  "), "{listed}");
    let people = person.read_json(&["visits", "list", "--tag", "news", "--no-bots", "--json"]).await;
    assert_eq!(people["visits"]["pagination"]["totalItems"], 2);
    let orphans =
        person.read(&["visits", "list", "--orphans", "--type", "invalid-short-url", "--width", "300"]).await;
    assert!(orphans.contains("/no-such-code") && orphans.ends_with("page 1 of 1, 3 visits\n"), "{orphans}");
    let none = ["visits", "list", "--from", "2020-01-01", "--until", "2020-12-31"];
    assert_eq!(person.read(&none).await, "no visits\n");

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("visits.csv");
    let export = ["visits", "export", &code, "--out", file.to_str().unwrap()];
    assert!(person.read(&export).await.starts_with("3 visits written to "));
    let table = std::fs::read_to_string(&file).unwrap();
    assert!(
        table.starts_with("date,type,visitedUrl,") && table.matches(",https://example.com/,").count() == 3
    );
    let refused = person.fail(&export, 64).await;
    assert!(refused.contains("there is such a file"), "{refused}");
    let lines = person.read(&["visits", "export", "--orphans", "--format", "ndjson"]).await;
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().filter(|line| line["potentialBot"] == true).count(), 1, "{lines:?}");
    assert_eq!(lines.len(), 3);

    let stats = person.read(&["visits", "stats", &code, "--by", "hour", "--from", "2026-01-01"]).await;
    assert!(stats.contains("Firefox") && stats.contains("66.7 %"), "{stats}");
    assert_eq!((row(&stats, "visits"), row(&stats, "of bots")), (Some("3"), Some("1")), "{stats}");
    let wrong = person.fail(&["visits", "list", "--from", "yesterday"], 64).await;
    assert!(wrong.contains("startDate"), "{wrong}");
    person.fail(&["visits", "list", "nobody"], 66).await;

    assert_eq!(person.read(&["visits", "delete", &code]).await, "sale/2026: 3 visits deleted\n");
    assert_eq!(person.read(&["visits", "list", &code]).await, "no visits\n");
    assert_eq!(person.read(&["visits", "delete", "--orphans"]).await, "orphans: 3 visits deleted\n");
}
