//! `resolver import` as a script and a spreadsheet meet it: exit codes, counts and reasons, tables
//! as programs write them, and times as the server reads them.

use std::time::Duration;

use harness::{Api, Finished, Launch, Resolver, Scratch, binaries};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::call;

const SOON: Duration = Duration::from_secs(60);
/// The exit code of a command that has refused a part of its input.
const REFUSED: Option<i32> = Some(65);

/// An operator who imports files into a database of their own.
pub(crate) struct Operator {
    pub(crate) scratch: Scratch,
    database: String,
}

impl Operator {
    pub(crate) async fn new() -> Self {
        let scratch = Scratch::new().unwrap();
        let database = format!("sqlite:{}/data/links.db", scratch.path().display());
        let operator = Self { scratch, database };
        // The first start makes the database and the code key.
        drop(operator.serve("first").await);
        operator
    }

    pub(crate) async fn command(&self, args: &[&str]) -> Finished {
        self.launch(args).await.run(SOON).await.unwrap()
    }

    pub(crate) async fn launch(&self, args: &[&str]) -> Launch {
        let launch = Launch::new(&self.scratch, "command", binaries::resolver().await.unwrap());
        let launch = launch.args(args).args(["--database", &self.database]);
        launch.env("RESOLVER_TIME_ZONE", "Europe/Berlin")
    }

    /// Imports a file, and returns the exit code, the JSON and the standard error.
    async fn import(&self, from: &str, name: &str, content: &[u8]) -> (Option<i32>, Value, String) {
        let path = self.scratch.path().join(name);
        std::fs::write(&path, content).unwrap();
        let path = path.display().to_string();
        let finished = self.command(&["import", "--from", from, "--json", &path]).await;
        let told = serde_json::from_str(&finished.stdout).unwrap_or(Value::Null);
        (finished.code(), told, finished.stderr)
    }

    pub(crate) async fn serve(&self, holder: &str) -> Resolver {
        self.serve_with(holder, &[]).await
    }

    pub(crate) async fn serve_with(&self, holder: &str, args: &[&str]) -> Resolver {
        let builder = Resolver::builder(&self.scratch, holder, "0123456789abcdef0123").unwrap();
        let builder = builder.database(&self.database).env("RESOLVER_TIME_ZONE", "Europe/Berlin");
        builder.args(args.iter().copied()).start().await.unwrap()
    }
}

/// Returns the counts that a summary has of items: read, stored, there already, of earlier runs,
/// and refused.
pub(crate) fn counts(told: &Value) -> [u64; 5] {
    ["read", "stored", "alreadyThere", "earlierRuns", "refused"]
        .map(|name| told[name].as_u64().unwrap_or_else(|| panic!("no {name} in {told}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_learns_from_the_exit_code_whether_every_row_of_a_file_is_there() {
    let operator = Operator::new().await;
    let good = "code,url\na,https://example.com/a\nb,https://example.com/b\n";
    let (code, told, _) = operator.import("csv", "good.csv", good.as_bytes()).await;
    assert_eq!((code, counts(&told)), (Some(0), [2, 2, 0, 0, 0]), "{told}");
    let (code, told, _) = operator.import("csv", "good.csv", good.as_bytes()).await;
    assert_eq!((code, counts(&told)), (Some(0), [2, 0, 0, 2, 0]), "a repetition: {told}");

    let two_bad =
        "code,url\nc,https://example.com/c\nd?,https://example.com/d\na,https://example.com/other\n";
    let (code, told, stderr) = operator.import("csv", "bad.csv", two_bad.as_bytes()).await;
    assert_eq!((code, counts(&told)), (REFUSED, [3, 1, 0, 0, 2]), "{told} {stderr}");
    assert_eq!(told["complete"], true, "{told}");
    let reasons = told["reasons"].to_string();
    assert!(reasons.contains("item 2") && reasons.contains("item 3"), "{reasons}");
    let (code, told, _) = operator.import("csv", "bad.csv", two_bad.as_bytes()).await;
    assert_eq!(
        (code, told["refusedEarlier"].as_u64()),
        (REFUSED, Some(2)),
        "it is still not all there: {told}"
    );

    let cut = b"code,url\ne,https://example.com/e\nf,\"https://example.com/f";
    let (code, told, _) = operator.import("csv", "cut.csv", cut).await;
    assert_eq!((code, &told["complete"], &told["stored"]), (REFUSED, &json!(false), &json!(1)), "{told}");
    for (from, name, content) in [
        ("csv", "empty.csv", &b""[..]),
        ("csv", "head.csv", b"code,url\n"),
        ("csv", "words.csv", b"hello world\n"),
        ("shlink", "error.json", br#"{"title":"Invalid API key","status":401}"#),
        ("shlink", "none.json", br#"{"shortUrls":{"data":[]}}"#),
        ("shortmint", "foreign.json", br#"{"longUrl":"https://example.com"}"#),
        ("kutt", "table.csv", b"address,target\na,b\n"),
    ] {
        let (code, told, stderr) = operator.import(from, name, content).await;
        assert_eq!((code, &told["stored"]), (REFUSED, &json!(0)), "{name}: {told} {stderr}");
        assert_ne!(told["reasons"], json!([]), "{name}: {told}");
    }
    let missing = operator.command(&["import", "--from", "csv", "/nowhere/links.csv"]).await;
    assert_eq!((missing.code(), missing.stdout.as_str()), (Some(64), ""), "{}", missing.stderr);
    let help = operator.command(&["import", "--help"]).await.stdout;
    assert!(help.contains("65"), "{help}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_is_tried_again_for_another_system_or_under_another_name() {
    let operator = Operator::new().await;
    let two = b"longUrl,alias\nhttps://example.com/1,n-1\nhttps://example.com/2,n-2\n";
    let runs = [("bitly", [2, 0, 0, 0, 2]), ("csv", [2, 2, 0, 0, 0]), ("bitly", [2, 0, 0, 2, 0])];
    for (from, expected) in runs {
        let (_, told, stderr) = operator.import(from, "two.csv", two).await;
        assert_eq!(counts(&told), expected, "{from}: {told} {stderr}");
    }

    let one_bad = b"longUrl,code\nhttps://example.com/other,n-1\nhttps://example.com/3,n-3\n";
    let (_, told, _) = operator.import("csv", "one-bad.csv", one_bad).await;
    assert_eq!(counts(&told), [2, 1, 0, 0, 1], "{told}");
    let path = operator.scratch.path().join("one-bad.csv").display().to_string();
    let again = operator.command(&["import", "--from", "csv", &path]).await.stdout;
    assert!(again.contains("1 of the earlier ones were refused then") && again.contains("--name"), "{again}");
    let named = operator.command(&["import", "--from", "csv", "--json", "--name", "again", &path]).await;
    assert_eq!(counts(&serde_json::from_str(&named.stdout).unwrap()), [2, 0, 1, 0, 1], "{named:?}");

    // An import that a former release has begun, under the digest alone, of a link without a code.
    let former = "a4c09847dc88954f7595174b00a50f92714082e76ce96a6949d18a9c05e7381c";
    let path = operator.scratch.file("former.csv", "longUrl\nhttps://example.com/former\n").unwrap();
    let path = path.display().to_string();
    for (name, expected) in [(&["--name", former][..], [1, 1, 0, 0, 0]), (&[], [1, 0, 0, 1, 0])] {
        let args = [&["import", "--from", "csv", "--json", path.as_str()], name].concat();
        let told = operator.command(&args).await;
        assert_eq!(counts(&serde_json::from_str(&told.stdout).unwrap()), expected, "{told:?}");
    }
}

/// Returns the text in UTF-16 with its byte order mark, as spreadsheets write "Unicode text".
fn utf16(text: &str, is_big: bool) -> Vec<u8> {
    let units = std::iter::once(0xfeff).chain(text.encode_utf16());
    units.flat_map(|unit: u16| if is_big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_read_as_spreadsheets_and_other_systems_write_them() {
    let operator = Operator::new().await;
    let commas = "shortCode,longUrl,title,tags\n{n}-a,https://example.com/a?x=1;2,\"Ä, b\",\"x,y|z\"\n{n}-b,https://example.com/b,,\n";
    let tables: Vec<(&str, Vec<u8>)> = vec![
        ("commas", commas.into()),
        ("semicolons", b"shortCode;longUrl;title;tags\n{n}-a;\"https://example.com/a?x=1;2\";\xc3\x84, b;x,y|z\n{n}-b;https://example.com/b;;\n".into()),
        ("tabs", "shortCode\tlongUrl\ttitle\ttags\r\n{n}-a\thttps://example.com/a?x=1;2\tÄ, b\tx|y, z\r\n{n}-b\thttps://example.com/b\r\n".into()),
        ("sep", "\u{feff}sep=;\r\nLONGURL;ShortCode;Title;TAGS;;\r\n\"https://example.com/a?x=1;2\";{n}-a;\"Ä, b\";x,y,z;;\r\nhttps://example.com/b;{n}-b;;;;\r\n;;;;;\r\n\r\n".into()),
        ("padded", " shortCode , longUrl , title , tags \n {n}-a , https://example.com/a?x=1;2 , \"Ä, b\" , \"x|y|z\" \n\n {n}-b , https://example.com/b\n".into()),
        ("old-mac", commas.replace('\n', "\r").into()),
        ("utf16le", utf16(&commas.replace(',', "\t").replace("\"Ä\t b\"", "Ä, b").replace("\"x\ty|z\"", "x|y|z").replace("{n}", "utf16le"), false)),
        ("utf16be", utf16(&commas.replace("{n}", "utf16be"), true)),
        ("shlink-import", b"Long URL;Short code;Title;Tags;Domain\n\"https://example.com/a?x=1;2\";{n}-a;\xc3\x84, b;x|y|z;\nhttps://example.com/b;{n}-b;;;\n".into()),
        ("short-urls", "Short URL,Long URL,Title,Tags\nhttps://DEFAULT/{n}-a,https://example.com/a?x=1;2,\"Ä, b\",x|y|z\nhttps://DEFAULT/{n}-b,https://example.com/b,,\n".into()),
        ("yourls", "keyword,url,title,timestamp,ip,tags,clicks\n{n}-a,https://example.com/a?x=1;2,\"Ä, b\",2024-02-01 10:00:00,192.0.2.1,x|y|z,7\n{n}-b,https://example.com/b,,2024-02-01 10:00:00,,,0\n".into()),
        ("rebrandly", "id,slashtag,destination,title,tags,createdAt,domain.fullName\n5f,{n}-a,https://example.com/a?x=1;2,\"Ä, b\",x|y|z,2024-02-01T10:00:00.000Z,old.example\n60,{n}-b,https://example.com/b,,,2024-02-01T10:00:00.000Z,old.example\n".into()),
        ("bitly", "bitlink,long_url,title,tags\nold.example/{n}-a,\u{feff}https://example.com/a?x=1;2\u{a0},\"Ä, b\",x|y|z\nold.example/{n}-b,https://example.com/b,,\n".into()),
    ];
    let mut failed = Vec::new();
    for (name, content) in &tables {
        let content = String::from_utf8(content.clone()).map_or(content.clone(), |text| {
            text.replace("{n}", name).replace("https://DEFAULT/", "https://old.example/").into_bytes()
        });
        for from in ["csv", "shlink"] {
            if from == "shlink" && !name.starts_with("sh") {
                continue;
            }
            let path = operator.scratch.path().join(format!("{name}-{from}"));
            std::fs::write(&path, &content).unwrap();
            let (path, input) = (path.display().to_string(), format!("{name}-{from}"));
            let args =
                ["import", "--from", from, "--json", "--default-domain", "old.example", "--name", &input];
            let finished = operator.command(&[&args[..], &[&path]].concat()).await;
            let told: Value = serde_json::from_str(&finished.stdout).unwrap_or(Value::Null);
            let there = told["stored"].as_u64().unwrap_or(0) + told["alreadyThere"].as_u64().unwrap_or(0);
            if finished.code() != Some(0) || there != 2 {
                failed.push(format!("{name} {from}: {:?} {told} {}", finished.code(), finished.stderr));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let server = operator.serve("tables").await;
    for (name, _) in &tables {
        let link = get(&server.api, &format!("short-urls/{name}-a")).await;
        assert_eq!(
            (&link["longUrl"], &link["title"], &link["tags"]),
            (&json!("https://example.com/a?x=1;2"), &json!("Ä, b"), &json!(["x", "y", "z"])),
            "{name}: {link}"
        );
    }
    let windows = operator.import("csv", "windows.csv", b"longUrl;title\nhttps://example.com/w;\xc4\n").await;
    assert_eq!(windows.0, REFUSED);
    assert!(windows.1["reasons"][0].as_str().unwrap().contains("item 1: title: "), "{}", windows.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn times_mean_the_same_in_an_import_as_in_a_call() {
    let operator = Operator::new().await;
    let times = [
        ("2030-07-01 12:00:00", "2030-07-01T10:00:00+00:00"),
        ("2030-01-01T12:00", "2030-01-01T11:00:00+00:00"),
        ("2030-07-01", "2030-06-30T22:00:00+00:00"),
        ("2030-05-13T00:07:19[Asia/Tokyo]", "2030-05-12T15:07:19+00:00"),
        ("2030-05-13T00:07:19+02:00[Europe/Paris]", "2030-05-12T22:07:19+00:00"),
        ("2030-07-01T12:00:00-04:00", "2030-07-01T16:00:00+00:00"),
        ("2030-03-31 02:30:00", "2030-03-31T01:30:00+00:00"),
        ("1893456000", "2030-01-01T00:00:00+00:00"),
    ];
    let refused = [
        "2030-05-13T00:07:19+01:00[Europe/Paris]",
        "2030-05-13T00:07:19[Europe/Atlantis]",
        "2030-05-13T00:07:19Z[!u-ca=hebrew]",
        "1893456000000",
    ];
    let mut table = "shortCode,longUrl,validUntil\n".to_owned();
    let mut lines = String::new();
    for (number, time) in times.iter().map(|(time, _)| *time).chain(refused).enumerate() {
        table.push_str(&format!("csv-{number},https://example.com/,{time}\n"));
        lines.push_str(&format!(
            "{}\n",
            json!({ "shortCode": format!("json-{number}"), "longUrl": "https://example.com/", "validUntil": time,
                "redirectRules": [{ "longUrl": "https://example.com/rule",
                    "conditions": [{ "type": "before-date", "matchKey": null, "matchValue": time }] }] })
        ));
    }
    for (name, content) in [("times.csv", &table), ("times.ndjson", &lines)] {
        let (code, told, stderr) = operator.import("csv", name, content.as_bytes()).await;
        assert_eq!((code, told["stored"].as_u64()), (REFUSED, Some(times.len() as u64)), "{told} {stderr}");
        assert_eq!(told["refused"].as_u64(), Some(refused.len() as u64), "{told}");
    }
    let server = operator.serve("times").await;
    let api = &server.api;
    for (number, (time, expected)) in times.iter().enumerate() {
        for kind in ["csv", "json"] {
            let link = get(api, &format!("short-urls/{kind}-{number}")).await;
            assert_eq!(link["meta"]["validUntil"], **expected, "{kind} {time}");
        }
        let body = json!({ "longUrl": "https://example.com/", "validUntil": time });
        let created: Value = call(api, Method::POST, "short-urls", Some(body)).await.json().unwrap();
        assert_eq!(created["meta"]["validUntil"], **expected, "{time}: {created}");
        let rules = json!({ "redirectRules": [{ "longUrl": "https://example.com/rule",
            "conditions": [{ "type": "before-date", "matchKey": null, "matchValue": time }] }] });
        let path = format!("short-urls/{}/redirect-rules", created["shortCode"].as_str().unwrap());
        let set: Value = call(api, Method::POST, &path, Some(rules)).await.json().unwrap();
        for rules in [set, get(api, &format!("short-urls/json-{number}/redirect-rules")).await] {
            let stored =
                rules["redirectRules"][0]["conditions"][0]["matchValue"].as_str().unwrap_or_default();
            let moment = |text: &str| text.parse::<jiff::Timestamp>();
            assert_eq!(moment(stored).ok(), moment(expected).ok(), "{time}: {rules}");
        }
    }
    for time in refused {
        let body = json!({ "longUrl": "https://example.com/", "validUntil": time });
        assert_eq!(call(api, Method::POST, "short-urls", Some(body)).await.status, 400, "{time}");
        let query = time.replace('+', "%2B").replace('[', "%5B").replace(']', "%5D");
        for path in ["short-urls", "visits/non-orphan", "stats"] {
            let answer = call(api, Method::GET, &format!("{path}?startDate={query}"), None).await;
            assert_eq!(answer.status, 400, "{path} {time}");
        }
    }
}

async fn get(api: &Api, path: &str) -> Value {
    call(api, Method::GET, path, None).await.json().unwrap()
}
