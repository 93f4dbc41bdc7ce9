//! Import of links from other systems, and export of all links.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use harness::{Cluster, Launch, Resolver, Scratch, binaries, wait};
use serde_json::Value;

const RUN_WITHIN: Duration = Duration::from_secs(300);

/// Returns a CSV table of links. Every tenth has a tag, every hundredth a mintable code, and every
/// thousandth another domain.
fn table(links: usize) -> String {
    let mut text = "shortCode,longUrl,title,tags,domain,createdAt\n".to_owned();
    for number in 0..links {
        let (code, url) = (code(number), url(number));
        let tag = if number % 10 == 0 { "imported|tenth" } else { "" };
        let domain = if number % 1_000 == 7 { "old.example" } else { "" };
        writeln!(text, "{code},{url},Title {number},{tag},{domain},2020-01-02T03:04:05Z").unwrap();
    }
    text
}

fn code(number: usize) -> String {
    if number % 100 == 50 { format!("z{number:05}") } else { format!("link-{number}") }
}

fn url(number: usize) -> String {
    format!("https://example.com/page/{number}?from=import")
}

#[tokio::test(flavor = "multi_thread")]
async fn links_are_there_once_although_their_import_is_killed_in_the_middle() {
    import_is_killed(40_000).await;
}

mod long {
    #[tokio::test(flavor = "multi_thread")]
    async fn a_hundred_thousand_links_are_there_once_although_their_import_is_killed_in_the_middle() {
        super::import_is_killed(100_000).await;
    }
}

async fn import_is_killed(links: usize) {
    let cluster = Cluster::builder().start().await.unwrap();
    let scratch = Scratch::new().unwrap();
    let file = scratch.file("links.csv", &table(links)).unwrap();
    let client = cluster.postgres.client().await.unwrap();
    let count = async || {
        let row = client.query_one("SELECT count(*) FROM link", &[]).await.unwrap();
        usize::try_from(row.get::<_, i64>(0)).unwrap()
    };

    let mut killed = import(&scratch, "killed", &cluster, &file).await.spawn().unwrap();
    wait::until(RUN_WITHIN, "a third of the links are there", async || count().await >= links / 3)
        .await
        .unwrap();
    killed.kill_now().unwrap();
    let before = count().await;
    assert!(before < links, "it was killed in the middle");

    let finished = import(&scratch, "again", &cluster, &file).await.run(RUN_WITHIN).await.unwrap();
    let finished = finished.success().unwrap();
    let told: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(told["refused"], 0, "{told}");
    // The links that the killed import had committed when they were counted, and perhaps one more
    // batch.
    assert!(told["earlierRuns"].as_u64().unwrap() >= before as u64, "{told}");
    let stored = told["stored"].as_u64().unwrap() + told["earlierRuns"].as_u64().unwrap();
    assert_eq!(stored, links as u64, "{told}");
    assert_eq!(count().await, links, "nothing doubled and nothing lost");
    let distinct = client.query_one("SELECT count(DISTINCT long_url) FROM link", &[]).await.unwrap();
    assert_eq!(distinct.get::<_, i64>(0), i64::try_from(links).unwrap());

    let api = &cluster.resolvers[0].api;
    for number in (0..links).step_by(997).chain([50, 150, 5_050]) {
        let expected = (302, Some(url(number)));
        if number % 1_000 == 7 {
            continue;
        }
        assert_eq!(api.follow(&code(number)).await.unwrap(), expected, "{number}");
    }
    let tagged = api.http().get(format!("{}/rest/v3/tags/stats", api.url())).header("X-Api-Key", api.key());
    let tags: Value = tagged.send().await.unwrap().json().await.unwrap();
    assert_eq!(tags["tags"]["data"][0]["shortUrlsCount"], links / 10, "{tags}");

    let third = import(&scratch, "third", &cluster, &file).await.run(RUN_WITHIN).await.unwrap();
    let told: Value = serde_json::from_str(&third.success().unwrap().stdout).unwrap();
    assert_eq!((&told["stored"], &told["earlierRuns"]), (&0.into(), &links.into()), "{told}");
    assert_eq!(count().await, links);
}

async fn import(scratch: &Scratch, name: &str, cluster: &Cluster, file: &Path) -> Launch {
    let launch = Launch::new(scratch, name, binaries::resolver().await.unwrap());
    let launch = launch.args(["import", "--from", "csv", "--json", "--database", &cluster.database_url()]);
    launch.arg("--code-key-file").arg(&cluster.code_key_file).arg(file)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_exported_can_be_imported_and_what_cannot_be_kept_is_told() {
    let scratch = Scratch::new().unwrap();
    let (from, to) = (start(&scratch, "from").await, start(&scratch, "to").await);
    for request in [
        serde_json::json!({ "longUrl": "https://example.com/minted" }),
        serde_json::json!({ "longUrl": "https://example.com/a,b?\"c\"", "customSlug": "über/uns", "title": "Zeile \"eins\"",
            "tags": ["b|c", "a"], "validUntil": "2090-01-01T00:00:00+00:00", "maxVisits": 9, "crawlable": true,
            "forwardQuery": false, "description": "two\nlines" }),
        serde_json::json!({ "longUrl": "https://example.com/elsewhere", "customSlug": "same", "domain": "other.example" }),
        serde_json::json!({ "longUrl": "https://example.com/here", "customSlug": "same" }),
    ] {
        from.api.create_with(&request).await.unwrap();
    }
    for (form, name) in [("csv", "links.csv"), ("ndjson", "links.ndjson")] {
        let file = scratch.path().join(name);
        let out = file.display().to_string();
        let exported = command(&scratch, "from", &["export", "--format", form, "--out", &out]).await;
        assert!(exported.success().unwrap().stdout.contains("4 links"));
        let refused = command(&scratch, "from", &["export", "--format", form, "--out", &out]).await;
        assert_eq!(refused.code(), Some(64), "an export overwrites nothing: {}", refused.stderr);
        let printed = command(&scratch, "from", &["export", "--format", form, "--out", "-"]).await;
        assert_eq!(printed.success().unwrap().stdout, std::fs::read_to_string(&file).unwrap());
        let imported =
            command(&scratch, "to", &["import", "--from", "csv", "--json", &out]).await.success().unwrap();
        let told: Value = serde_json::from_str(&imported.stdout).unwrap();
        assert_eq!(told["refused"], 0, "{told}");
        let key = if form == "csv" { "stored" } else { "alreadyThere" };
        assert_eq!(told[key], 4, "{told}");
    }
    let list = |resolver: &Resolver| {
        let api = resolver.api.clone();
        async move {
            let url = format!("{}/rest/v3/short-urls?orderBy=longUrl-ASC", api.url());
            let answer = api.http().get(url).header("X-Api-Key", api.key()).send().await.unwrap();
            let mut links: Value = answer.json().await.unwrap();
            for link in links["shortUrls"]["data"].as_array_mut().unwrap() {
                link["shortUrl"] = Value::Null;
            }
            links["shortUrls"]["data"].clone()
        }
    };
    assert_eq!(list(&from).await, list(&to).await);

    let bad = scratch.file("bad.csv", "code,url\nok,https://example.com/1\na?b,https://example.com/2\nc,javascript:1\nsame,https://example.com/3\n,https://example.com/4\n");
    let rejects = scratch.path().join("rejects.txt").display().to_string();
    let bad = bad.unwrap().display().to_string();
    let imported = command(&scratch, "to", &["import", "--from", "csv", "--rejects", &rejects, &bad]).await;
    assert_eq!(imported.code(), Some(65), "{}", imported.stderr);
    let said = imported.stdout;
    assert!(said.contains("2 links stored") && said.contains("3 refused"), "{said}");
    let reasons = std::fs::read_to_string(rejects).unwrap();
    for part in [
        "item 2: code \"a?b\"",
        "item 3: long URL \"javascript:1\"",
        " --allowed-schemes (link \"c\")",
        "item 4: \"same\": the code leads elsewhere here",
    ] {
        assert!(reasons.contains(part), "{reasons}");
    }
    assert_eq!(to.api.follow("ok").await.unwrap(), (302, Some("https://example.com/1".to_owned())));
    assert_eq!(
        to.api.follow("same").await.unwrap(),
        (302, Some("https://example.com/here".to_owned())),
        "left as it was"
    );
}

async fn start(scratch: &Scratch, name: &str) -> Resolver {
    let builder = Resolver::builder(scratch, name, "0123456789abcdef0123").unwrap();
    builder.database(&database(scratch, name)).start().await.unwrap()
}

/// Returns the URL of a database in a folder of its own, because the code key is stored beside the
/// file.
fn database(scratch: &Scratch, name: &str) -> String {
    format!("sqlite:{}/data-{name}/links.db", scratch.path().display())
}

async fn command(scratch: &Scratch, name: &str, args: &[&str]) -> harness::Finished {
    let launch = Launch::new(scratch, "command", binaries::resolver().await.unwrap());
    launch.args(args).args(["--database", &database(scratch, name)]).run(RUN_WITHIN).await.unwrap()
}
