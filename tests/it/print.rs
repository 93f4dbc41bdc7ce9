//! Packs of QR codes for print, read by others: the archive by Python's zipfile, the sheets by the
//! PDF engine of Chromium, and the codes on them by ZXing. `tests/run` installs both.

use std::{collections::BTreeSet, path::Path};

use harness::{Api, Launch, ROOT, Scratch};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    cli::Person,
    k8s::in_venv,
    pages::Browser,
    rest_calls::{Alone, SOON, call, done, expect_problem, get},
};

const URL: &str = "https://example.com/page";

/// Makes a pack, and returns its media type and its bytes.
async fn pack(api: &Api, query: &str) -> (String, Vec<u8>) {
    let url = format!("{}/rest/v3/qr-codes?{query}", api.url());
    let answer = api.http().get(url).header("X-Api-Key", api.key()).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK, "{query}");
    let content_type = answer.headers()["content-type"].to_str().unwrap().to_owned();
    let ending = content_type.strip_prefix("application/").unwrap();
    let name = format!("attachment; filename=\"qr-codes.{ending}\"");
    assert_eq!(answer.headers()["content-disposition"], name.as_str());
    (content_type, answer.bytes().await.unwrap().to_vec())
}

/// Reads a pack with the programs of others.
async fn read(pack: &[u8]) -> Value {
    let scratch = Scratch::new().unwrap();
    let file = scratch.path().join("pack");
    std::fs::write(&file, pack).unwrap();
    let python = Launch::new(&scratch, "python", in_venv("python"));
    let python = python.arg(Path::new(ROOT).join("tests/sdk/python/read_pack.py")).arg(file);
    let finished = python.run(SOON).await.unwrap().success().unwrap();
    serde_json::from_str(&finished.stdout).unwrap()
}

fn sorted(mut texts: Vec<String>) -> Value {
    texts.sort_unstable();
    json!(texts)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_has_the_code_of_each_link_under_a_name_of_its_own() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let link = |slug: &&str| json!({ "longUrl": URL, "customSlug": slug, "domain": "s.test", "tags": ["x"] });
    let mut wishes: Vec<Value> = ["abc", "ABC", "a/b", "a-b", "短い"].iter().map(link).collect();
    wishes.push(json!({ "longUrl": URL, "title": "=1+1", "tags": ["x"] }));
    for wish in &wishes {
        api.create_with(wish).await.unwrap();
    }
    let query = "tags[]=x&orderBy=dateCreated-ASC";
    let (content_type, bytes) = pack(api, query).await;
    assert_eq!(content_type, "application/zip");
    assert_eq!(pack(api, query).await.1, bytes, "the same links make the same bytes");
    let archive = read(&bytes).await;
    let table = archive["table"].as_array().unwrap();
    let links = get(api, &format!("short-urls?{query}")).await["shortUrls"]["data"].clone();
    let links = links.as_array().unwrap();
    assert_eq!((table.len(), links.len()), (wishes.len(), wishes.len()));
    for (row, link) in table.iter().zip(links) {
        assert_eq!(row["longUrl"], URL);
        // Names of other alphabets are escaped in the code.
        let code = link["shortCode"].as_str().unwrap();
        let is_ascii = code.is_ascii();
        assert_eq!(row["shortUrl"] == link["shortUrl"], is_ascii, "{row}");
        let host = link["domain"].as_str().unwrap_or_else(|| api.url().split_once("://").unwrap().1);
        let url = format!("{}/{code}/qr-code?format=svg&size=1000&margin=auto", api.url());
        let picture = api.http().get(url).header("host", host).send().await.unwrap();
        let file = row["file"].as_str().unwrap();
        assert_eq!(archive["files"][file], picture.text().await.unwrap(), "{row}");
    }
    let files: Vec<&str> = table.iter().map(|row| row["file"].as_str().unwrap()).collect();
    assert_eq!(files[..3], ["0001-s.test-abc.svg", "0002-s.test-ABC.svg", "0003-s.test-a-b.svg"]);
    let folded: BTreeSet<String> = files.iter().map(|file| file.to_lowercase()).collect();
    assert_eq!(folded.len(), wishes.len());
    assert_eq!(table[5]["title"], "'=1+1", "no cell is a formula");

    let query = "shortCodes[]=a/b&shortCodes[]=abc&shortCodes[]=a/b&domain=s.test&format=png";
    let by_name = read(&pack(api, query).await.1).await;
    let files: Vec<&Value> = by_name["table"].as_array().unwrap().iter().map(|row| &row["file"]).collect();
    assert_eq!(files, ["0001-s.test-a-b.png", "0002-s.test-abc.png"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_code_on_a_sheet_leads_to_its_link_and_is_there_to_be_typed() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let mut urls = Vec::new();
    for number in 0..23 {
        let title =
            if number % 2 == 0 { format!("Sommer für {number} €") } else { format!("夏{number}") };
        urls.push(api.create_with(&json!({ "longUrl": URL, "title": title })).await.unwrap().short_url);
    }
    let query = "format=pdf&orderBy=dateCreated-ASC";
    let (content_type, bytes) = pack(api, query).await;
    assert_eq!(content_type, "application/pdf");
    let sheets = read(&bytes).await;
    let pages = sheets["pages"].as_array().unwrap();
    assert_eq!(pages.len(), 2, "21 labels on a sheet");
    for (page, urls) in pages.iter().zip(urls.chunks(21)) {
        assert_eq!(page["codes"], sorted(urls.to_vec()));
        let text = page["text"].as_str().unwrap();
        assert!(urls.iter().all(|url| text.contains(url)), "{text}");
    }
    let text = pages[1]["text"].as_str().unwrap();
    assert!(text.contains("Sommer für 22 €") && !text.contains('夏'), "{text}");
    let small = format!("{query}&columns=6&rows=10&color=300&errorCorrection=q");
    assert_eq!(read(&pack(api, &small).await.1).await["pages"][0]["codes"], sorted(urls));

    // The command line and the pages make the same pack.
    let person = Person::at(&alone.resolver);
    let file = alone.file("codes.pdf");
    let args = ["link", "print", "--order", "dateCreated-ASC", "--out", file.to_str().unwrap()];
    assert!(person.read(&args).await.starts_with("23 QR codes written to "));
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
    person.fail(&args, 64).await;
    let archive = alone.file("codes.zip");
    person.read(&["link", "print", "--out", archive.to_str().unwrap()]).await;
    assert!(std::fs::read(&archive).unwrap().starts_with(b"PK"));
    let printed = person.read(&["link", "print", "--format", "svg", "--out", "-"]).await;
    assert!(printed.starts_with("PK"), "{printed}");
    let browser = Browser::open(api).await;
    let page = format!("/manage/qr-codes?{query}&order=dateCreated-ASC&page=7");
    assert_eq!(browser.get(&page).await.bytes().await.unwrap(), bytes);
    for (query, has_links) in [("", true), ("?tag=none", false)] {
        let sheet = browser.page(&format!("/manage/qr-sheet{query}")).await;
        assert_eq!(sheet.contains("/manage/qr-codes?format=pdf"), has_links, "{sheet}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reserved_codes_are_printed_before_they_have_links() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let reserved = done(api, Method::POST, "reservations", Some(json!({ "count": 5 }))).await;
    let (id, codes) = (reserved["id"].as_str().unwrap(), reserved["shortCodes"].as_array().unwrap());
    let urls = codes.iter().map(|code| format!("{}/{}", api.url(), code.as_str().unwrap())).collect();
    let (_, bytes) = pack(api, &format!("reservation={id}&format=pdf")).await;
    assert_eq!(read(&bytes).await["pages"][0]["codes"], sorted(urls));
    let part = read(&pack(api, &format!("reservation={id}&page=2&itemsPerPage=3")).await.1).await;
    let rows = part["table"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert!(rows[0]["file"].as_str().unwrap().starts_with("0004-"), "{part}");

    let reader = alone.with_new_key("reader", &["--scopes", "read"]).await;
    assert_eq!(call(&reader, Method::GET, &format!("qr-codes?reservation={id}"), None).await.status, 403);
    let page = Browser::open(api).await.page(&format!("/manage/reservations?id={id}")).await;
    assert!(page.contains(&format!("/manage/qr-codes?format=pdf&amp;id={id}")), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pack_has_what_its_key_sees_and_leaves_no_link_out_without_being_asked() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let code = api.create(URL).await.unwrap().code;
    let own = alone.with_new_key("own", &["--scopes", "read", "--own-links-only"]).await;
    assert_eq!(read(&pack(&own, "").await.1).await["table"], json!([]));
    assert_eq!(read(&pack(&own, "format=pdf").await.1).await["pages"][0]["codes"], json!([]));
    let foreign = call(&own, Method::GET, &format!("qr-codes?shortCodes[]={code}"), None).await;
    expect_problem(&foreign, 404, "short-url-not-found");
    let creator = alone.with_new_key("creator", &["--scopes", "create"]).await;
    assert_eq!(call(&creator, Method::GET, "qr-codes", None).await.status, 403);
    let long = "long".repeat(60);
    api.create_with(&json!({ "longUrl": URL, "customSlug": long })).await.unwrap();
    let too_small = format!("size=50&errorCorrection=h&shortCodes[]={long}");
    for (query, field) in [
        ("format=zip", "format"),
        ("logo=on", "logo"),
        ("size=40", "size"),
        (&too_small, "size"),
        ("color=fff", "bgColor"),
        ("deleted=true", "deleted"),
        ("page=0", "page"),
        ("reservation=x&shortCodes[]=a", "reservation"),
    ] {
        let refused = call(api, Method::GET, &format!("qr-codes?{query}"), None).await;
        let problem = expect_problem(&refused, 400, "invalid-data");
        assert_eq!(problem["invalidElements"], json!([field]), "{query}: {problem}");
    }

    let lines: Vec<String> =
        (0..1_000).map(|_| json!({ "longUrl": URL, "tags": ["many"] }).to_string()).collect();
    let bulk = format!("{}/rest/v3/short-urls/bulk", api.url());
    let created =
        api.http().post(bulk).header("X-Api-Key", api.key()).timeout(SOON * 4).body(lines.join("\n"));
    assert_eq!(created.send().await.unwrap().text().await.unwrap().matches("created").count(), 1_000);
    let whole = call(api, Method::GET, "qr-codes", None).await;
    assert_eq!(expect_problem(&whole, 400, "invalid-data")["invalidElements"], json!(["page"]));
    let rest = read(&pack(api, "page=2&itemsPerPage=1000").await.1).await;
    assert_eq!(rest["table"].as_array().unwrap().len(), 2);
    assert!(rest["table"][0]["file"].as_str().unwrap().starts_with("1001-"), "{rest}");
}
