//! Names as people type them: one link for all spellings of a slug, emoji, joiners, names that are
//! reserved, tags, and searches regardless of case.

use harness::{Answer, Api, Cluster, Launch, Resolver, Scratch, binaries, secret};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::{
    Place, SOON, call, done, expect_problem, get, leads_to, listed, on_either_store, visit,
};

const URL: &str = "https://example.com/page";

async fn pick(api: &Api, slug: &str, domain: Option<&str>) -> Answer {
    api.try_create_with(&json!({ "longUrl": URL, "customSlug": slug, "domain": domain })).await.unwrap()
}

/// Returns the code of a link that is created.
async fn picked(api: &Api, slug: &str) -> String {
    let answer = pick(api, slug, None).await.success().unwrap();
    answer.json().unwrap()["shortCode"].as_str().unwrap().to_owned()
}

on_either_store!(names_are_read_as_people_type_them);

async fn names_are_read_as_people_type_them(place: Place) {
    let [api, _] = &place.apis();
    every_spelling_of_a_slug_is_one_link(api).await;
    emoji_and_joined_letters_are_names(api).await;
    every_spelling_of_a_tag_is_one_tag(api).await;
    searches_find_letters_in_any_case(api).await;
    names_with_a_meaning_are_refused(api).await;
    if let Place::Postgres(cluster) = &place {
        names_of_earlier_versions_stay(cluster).await;
    }
}

async fn every_spelling_of_a_slug_is_one_link(api: &Api) {
    assert_eq!(picked(api, "cafe\u{301}").await, "caf\u{e9}");
    for slug in ["caf\u{e9}", "cafe\u{301}"] {
        expect_problem(&pick(api, slug, None).await, 400, "non-unique-slug");
        assert_eq!(api.follow(slug).await.unwrap(), leads_to(URL), "{slug:?}");
        assert_eq!(get(api, &format!("short-urls/{slug}")).await["shortCode"], "caf\u{e9}");
        assert_eq!(api.get(&format!("{slug}/qr-code")).await.unwrap().status, 200, "{slug:?}");
    }
    // Not on another domain, where it is a link of its own.
    let url = "https://example.com/other";
    let other = json!({ "longUrl": url, "customSlug": "cafe\u{301}", "domain": "two.test" });
    api.create_with(&other).await.unwrap();
    expect_problem(&pick(api, "caf\u{e9}", Some("two.test")).await, 400, "non-unique-slug");
    for slug in ["caf%C3%A9", "cafe%CC%81"] {
        assert_eq!(visit(api, "two.test", slug).await, leads_to(url), "{slug}");
    }
    let found = json!({ "longUrl": URL, "customSlug": "cafe\u{301}", "findIfExists": true });
    assert_eq!(api.create_with(&found).await.unwrap().code, "caf\u{e9}");
    assert_eq!(call(api, Method::DELETE, "short-urls/cafe\u{301}", None).await.status, 204);
    assert_eq!(api.follow("caf\u{e9}").await.unwrap().0, 404);
    done(api, Method::POST, "short-urls/cafe\u{301}/restore", None).await;
    assert_eq!(api.follow("cafe\u{301}").await.unwrap(), leads_to(URL));
    let circle = json!({ "longUrl": "https://s.test/cafe\u{301}" });
    call(api, Method::PATCH, "short-urls/caf\u{e9}", Some(circle)).await;
}

async fn emoji_and_joined_letters_are_names(api: &Api) {
    assert_eq!(picked(api, "\u{2764}\u{fe0f}").await, "\u{2764}");
    expect_problem(&pick(api, "\u{2764}", None).await, 400, "non-unique-slug");
    for slug in ["\u{2764}", "\u{2764}\u{fe0f}"] {
        assert_eq!(api.follow(slug).await.unwrap(), leads_to(URL), "{slug:?}");
    }
    for slug in [
        "\u{1f469}\u{200d}\u{1f680}",
        "\u{1f468}\u{1f3fd}\u{200d}\u{1f4bb}",
        "\u{1f3f3}\u{fe0f}\u{200d}\u{1f308}",
        "\u{1f1e9}\u{1f1ea}",
        "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
        "sale-1\u{fe0f}\u{20e3}",
        "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}",
        "\u{915}\u{94d}\u{200d}\u{937}",
    ] {
        let code = picked(api, slug).await;
        assert_eq!(code, slug.replace('\u{fe0f}', ""));
        assert_eq!(api.follow(slug).await.unwrap(), leads_to(URL), "{slug:?}");
    }
    for (slug, named) in [
        ("pro\u{200b}mo", "U+200B"),
        ("pro\u{200d}mo", "U+200D"),
        ("promo\u{fe0f}", "U+FE0F"),
        ("\u{1f680}\u{200d}\u{1f680}", "U+200D"),
    ] {
        let refused = pick(api, slug, None).await;
        let problem = expect_problem(&refused, 400, "invalid-data");
        assert!(problem.to_string().contains(named), "{problem}");
    }
}

async fn every_spelling_of_a_tag_is_one_tag(api: &Api) {
    for tag in ["The\u{301}", "th\u{e9}"] {
        let link = api.create_with(&json!({ "longUrl": URL, "tags": [tag] })).await.unwrap().json;
        assert_eq!(link["tags"], json!(["th\u{e9}"]));
    }
    for tag in ["th\u{e9}", "the\u{301}"] {
        assert_eq!(listed(api, &format!("tags[]={tag}")).await.len(), 2, "{tag:?}");
        assert_eq!(get(api, &format!("tags/{tag}/visits")).await["visits"]["data"], json!([]));
    }
    let rename = json!({ "oldName": "the\u{301}", "newName": "mate\u{301}" });
    assert_eq!(call(api, Method::PUT, "tags", Some(rename)).await.status, 204);
    assert_eq!(listed(api, "tags[]=mat\u{e9}").await.len(), 2);
    let taken = json!({ "oldName": "mat\u{e9}", "newName": "mate\u{301}" });
    assert_eq!(call(api, Method::PUT, "tags", Some(taken)).await.status, 204, "it is the same name");
    assert_eq!(get(api, "tags?searchTerm=MATE\u{301}").await["tags"]["data"], json!(["mat\u{e9}"]));
    assert_eq!(call(api, Method::DELETE, "tags?tags[]=mate\u{301}", None).await.status, 204);
    assert_eq!(listed(api, "tags[]=mat\u{e9}").await.len(), 0);
}

async fn searches_find_letters_in_any_case(api: &Api) {
    let titles = ["zebra", "ÜBER uns", "apfel", "Straße", "Äpfel", "İzmir ısı", "ΟΔΟΣ", "Zoo", "ПРИВІТ"];
    for title in titles {
        api.create_with(&json!({ "longUrl": URL, "title": title, "tags": ["titled"] })).await.unwrap();
    }
    let found = async |query: &str| {
        let answer = get(api, &format!("short-urls?tags[]=titled&{query}")).await;
        let links = answer["shortUrls"]["data"].as_array().unwrap().clone();
        links.iter().map(|link| link["title"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (text, title) in [
        ("über", "ÜBER uns"),
        ("U\u{308}BER", "ÜBER uns"),
        ("STRASSE", "Straße"),
        ("straße", "Straße"),
        ("äpfel", "Äpfel"),
        ("izmir", "İzmir ısı"),
        ("ISI", "İzmir ısı"),
        ("οδος", "ΟΔΟΣ"),
        ("привіт", "ПРИВІТ"),
        ("ZEBR", "zebra"),
    ] {
        assert_eq!(found(&format!("searchTerm={text}")).await, [title], "{text}");
    }
    assert_eq!(found("searchTerm=100%25_").await, [""; 0]);
    let sorted = ["Äpfel", "apfel", "İzmir ısı", "Straße", "ÜBER uns", "zebra", "Zoo", "ΟΔΟΣ", "ПРИВІТ"];
    let ascending = found("orderBy=title-ASC").await;
    assert_eq!(ascending[2..], sorted[2..]);
    assert!(ascending[..2].contains(&"Äpfel".to_owned()), "{ascending:?}");
    let descending = found("orderBy=title-DESC").await;
    // Titles that differ by an accent alone are in the order of their creation, both ways.
    assert!(ascending[2..].iter().rev().eq(&descending[..7]), "{descending:?}");
    assert_eq!(descending[7..], ascending[..2]);
}

async fn names_with_a_meaning_are_refused(api: &Api) {
    for slug in ["ads.txt", "Security.TXT", "sitemap.xml", "apple-app-site-association", "wpad.dat", "Rest"] {
        for domain in [None, Some("two.test")] {
            expect_problem(&pick(api, slug, domain).await, 400, "invalid-data");
        }
        let path = format!("{slug}/x");
        expect_problem(&pick(api, &path, None).await, 400, "invalid-data");
    }
    let prefixed = json!({ "longUrl": URL, "customSlug": "txt", "pathPrefix": "ads." });
    let prefixed = api.try_create_with(&prefixed).await.unwrap();
    expect_problem(&prefixed, 400, "invalid-data");
    let prefixed = json!({ "longUrl": URL, "pathPrefix": "ads.txt/" });
    expect_problem(&api.try_create_with(&prefixed).await.unwrap(), 400, "invalid-data");
    let bulk = api.http().post(format!("{}/rest/v3/short-urls/bulk", api.url()));
    let body = json!({ "longUrl": URL, "customSlug": "ads.txt" }).to_string();
    let bulk = Answer::to(bulk.header("X-Api-Key", api.key()).body(body)).await.unwrap();
    let result: Value = serde_json::from_str(bulk.body.lines().next().unwrap()).unwrap();
    assert_eq!(result["result"], "invalid", "{result}");
    assert_eq!(api.follow("ads.txt").await.unwrap().0, 404);
}

/// Links that an earlier version stored keep redirecting, and no new one is made beside them.
async fn names_of_earlier_versions_stay(cluster: &Cluster) {
    let api = &cluster.resolvers[0].api;
    let sql = cluster.postgres.client().await.unwrap();
    for (number, stored) in ["ads.txt", "crema\u{300}", "x\u{2600}\u{fe0f}"].into_iter().enumerate() {
        let slug = format!("earlier-{number}");
        picked(api, &slug).await;
        let respell = "WITH moved AS (UPDATE slug SET slug = $2 WHERE slug = $1 RETURNING link_id)
                       UPDATE link SET details = jsonb_set(details, '{slug}', to_jsonb($2::text))
                       FROM moved WHERE link.id = moved.link_id";
        assert_eq!(sql.execute(respell, &[&slug, &stored]).await.unwrap(), 1);
        assert_eq!(api.follow(stored).await.unwrap(), leads_to(URL), "{stored:?}");
    }
    for slug in ["crem\u{e0}", "crema\u{300}", "x\u{2600}", "x\u{2600}\u{fe0f}"] {
        assert_eq!(api.follow(slug).await.unwrap(), leads_to(URL), "{slug:?}");
        expect_problem(&pick(api, slug, None).await, 400, "non-unique-slug");
    }
    let to = Some(json!({ "domain": "two.test" }));
    let moved = call(api, Method::POST, "short-urls/ads.txt/move", to).await;
    expect_problem(&moved, 400, "invalid-data");
    assert_eq!(call(api, Method::DELETE, "short-urls/ads.txt", None).await.status, 204);
    let restored = call(api, Method::POST, "short-urls/ads.txt/restore", None).await;
    expect_problem(&restored, 400, "invalid-data");

    sql.execute("INSERT INTO tag (name) VALUES ($1)", &[&"ole\u{301}"]).await.unwrap();
    let created = api.create_with(&json!({ "longUrl": URL, "tags": ["ol\u{e9}"] })).await.unwrap();
    assert_eq!(created.json["tags"], json!(["ol\u{e9}"]));
    assert_eq!(get(api, "tags?searchTerm=ol\u{e9}").await["tags"]["data"], json!(["ol\u{e9}"]));
    // Where two spellings were links of their own, each keeps its own.
    picked(api, "two-1").await;
    let other = json!({ "longUrl": "https://example.com/other", "customSlug": "r\u{e9}" });
    api.create_with(&other).await.unwrap();
    let beside = "UPDATE slug SET slug = $1 WHERE slug = 'two-1'";
    sql.execute(beside, &[&"re\u{301}"]).await.unwrap();
    let details = "UPDATE link SET details = jsonb_set(details, '{slug}', to_jsonb($1::text))
                   WHERE details->>'slug' = 'two-1'";
    sql.execute(details, &[&"re\u{301}"]).await.unwrap();
    assert_eq!(api.follow("re\u{301}").await.unwrap(), leads_to(URL));
    assert_eq!(api.follow("r\u{e9}").await.unwrap(), leads_to("https://example.com/other"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_refuses_names_with_a_meaning_and_keeps_one_spelling() {
    let scratch = Scratch::new().unwrap();
    let builder = Resolver::builder(&scratch, "resolver-0", &secret::random_hex().unwrap()).unwrap();
    let resolver = builder.start().await.unwrap();
    let table =
        format!("shortCode,longUrl,tags\nads.txt,{URL},\ncafe\u{301},{URL},the\u{301}\ncaf\u{e9},{URL}2,\n");
    let file = scratch.file("links.csv", &table).unwrap().display().to_string();
    let rejects = scratch.path().join("rejects.txt").display().to_string();
    let launch = Launch::new(&scratch, "import", binaries::resolver().await.unwrap());
    launch.args(["import", "--from", "csv", "--rejects", &rejects, &file]).run(SOON).await.unwrap();
    let refused = std::fs::read_to_string(&rejects).unwrap();
    let lines: Vec<&str> = refused.lines().collect();
    assert_eq!(lines.len(), 2, "{refused}");
    assert!(lines[0].contains("\"ads.txt\"") && lines[0].contains("a meaning of its own"), "{refused}");
    assert!(lines[1].contains("leads elsewhere here"), "{refused}");
    for slug in ["caf\u{e9}", "cafe\u{301}"] {
        assert_eq!(resolver.api.follow(slug).await.unwrap(), leads_to(URL), "{slug:?}");
    }
    assert_eq!(listed(&resolver.api, "tags[]=th\u{e9}").await, ["caf\u{e9}"]);
}
