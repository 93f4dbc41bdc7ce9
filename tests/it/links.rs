//! Creates, reads, edits, lists and deletes links in Shlink's shapes, on the embedded form's SQLite
//! store.

use cli::code_key_file;
use codes::Mint;
use harness::{Answer, Resolver, Scratch};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::{Alone, call, done, expect_problem, get, listed, plus};

const SOON: std::time::Duration = std::time::Duration::from_secs(10);
const URL: &str = "https://example.com/page";

async fn start() -> Resolver {
    Resolver::embedded().unwrap().start().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hand_picked_code_redirects_whatever_it_is_made_of_and_a_taken_one_is_a_clear_error() {
    let resolver = start().await;
    for (slug, kept, path) in [
        ("promo", "promo", "promo"),
        ("abc123", "abc123", "abc123"),
        (" /summer sale/2026/ ", "summer-sale/2026", "summer-sale/2026"),
        ("über", "über", "%C3%BCber"),
        ("短い", "短い", "短い"),
        ("a.b_c~d-e!", "a.b_c~d-e!", "a.b_c~d-e!"),
        ("much-longer-than-a-code", "much-longer-than-a-code", "much-longer-than-a-code"),
    ] {
        let url = format!("{URL}?of={}", kept.len());
        let request = json!({ "longUrl": url, "customSlug": slug });
        let created = resolver.api.create_with(&request).await.unwrap();
        assert_eq!(created.code, kept);
        assert_eq!(created.short_url, format!("{}/{kept}", resolver.api.url()));
        assert_eq!(resolver.api.follow(path).await.unwrap(), (302, Some(url)), "{slug}");
        assert_eq!(get(&resolver.api, &format!("short-urls/{path}")).await, created.json);

        let taken = resolver.api.try_create_with(&request).await.unwrap();
        let problem = expect_problem(&taken, 400, "non-unique-slug");
        assert_eq!(problem["title"], "Invalid custom slug");
        assert_eq!(problem["detail"], format!("Provided slug \"{kept}\" is already in use."));
        assert_eq!(problem["customSlug"], kept);
    }
    for path in ["promo/", "promo/x", "Promo", "summer-sale", "%C3%9Cber"] {
        assert_eq!(resolver.api.follow(path).await.unwrap().0, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_changes_what_it_names_and_null_takes_a_time_or_a_title_away() {
    let resolver = start().await;
    let request = json!({
        "longUrl": URL, "title": "One", "tags": ["b", "A b"], "crawlable": true,
        "validSince": "2020-01-01T00:00:00+00:00", "validUntil": "2090-01-01T02:00:00+02:00",
    });
    let created = resolver.api.create_with(&request).await.unwrap();
    assert_eq!(created.json["tags"], json!(["b", "a-b"]), "as they were given");
    let path = format!("short-urls/{}", created.code);
    let shown = get(&resolver.api, &path).await;
    assert_eq!(shown["tags"], json!(["a-b", "b"]));
    assert_eq!(shown["meta"]["validUntil"], "2090-01-01T00:00:00+00:00");
    assert_eq!(resolver.api.follow(&created.code).await.unwrap(), (302, Some(URL.to_owned())));

    let other = "https://example.org/other";
    let edit =
        json!({ "longUrl": other, "title": null, "tags": ["c"], "validSince": null, "crawlable": null });
    let edited = done(&resolver.api, Method::PATCH, &path, Some(edit)).await;
    let mut expected = shown.clone();
    expected["version"] = json!(1);
    expected["editedAt"] = edited["editedAt"].clone();
    assert!(expected["editedAt"].is_string());
    expected["editedBy"] = json!("initial");
    expected["longUrl"] = json!(other);
    expected["title"] = Value::Null;
    expected["tags"] = json!(["c"]);
    expected["meta"]["validSince"] = Value::Null;
    assert_eq!(edited, expected);
    assert_eq!(get(&resolver.api, &path).await, expected);
    assert_eq!(resolver.api.follow(&created.code).await.unwrap(), (302, Some(other.to_owned())));
    let nothing = done(&resolver.api, Method::PATCH, &path, Some(json!({}))).await;
    assert_eq!(nothing, expected, "an edit of nothing is none");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_an_older_version_overwrites_nothing() {
    let resolver = start().await;
    let created = resolver.api.create(URL).await.unwrap();
    let path = format!("short-urls/{}", created.code);
    let edit = async |title: &str, tag: &str| {
        let url = format!("{}/rest/v3/{path}", resolver.api.url());
        let request = resolver.api.http().patch(url).header("X-Api-Key", resolver.api.key());
        Answer::to(request.header("If-Match", tag).json(&json!({ "title": title }))).await.unwrap()
    };
    let tag = call(&resolver.api, Method::GET, &path, None).await.header("etag").unwrap().to_owned();
    let first = edit("mine", &tag).await.success().unwrap();
    assert_ne!(first.header("etag"), Some(tag.as_str()));
    assert_eq!(edit("theirs", &tag).await.status, 412);
    assert_eq!(edit("theirs", "no tag").await.status, 412);
    let url = format!("{}/rest/v3/{path}", resolver.api.url());
    let delete = resolver.api.http().delete(url).header("X-Api-Key", resolver.api.key());
    assert_eq!(Answer::to(delete.header("If-Match", &tag)).await.unwrap().status, 412);
    let either = format!("\"77\", {}", first.header("etag").unwrap());
    assert_eq!(get(&resolver.api, &path).await["title"], "mine");
    edit("theirs", &either).await.success().unwrap();
    assert_eq!(get(&resolver.api, &path).await["title"], "theirs");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_redirects_only_while_it_is_valid_and_is_shown_all_the_same() {
    let resolver = start().await;
    for (field, time) in [("validSince", "2090-01-01"), ("validUntil", "2020-01-01T00:00:00Z")] {
        let created = resolver.api.create_with(&json!({ "longUrl": URL, field: time })).await.unwrap();
        let path = format!("short-urls/{}", created.code);
        assert_eq!(resolver.api.follow(&created.code).await.unwrap().0, 404, "{field}");
        get(&resolver.api, &path).await;
        call(&resolver.api, Method::PATCH, &path, Some(json!({ field: null }))).await.success().unwrap();
        assert_eq!(resolver.api.follow(&created.code).await.unwrap().0, 302, "{field}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_may_be_seconds_since_1970_and_no_milliseconds() {
    let resolver = start().await;
    for (time, is_taken) in [
        (json!(3_786_912_000_u64), true),
        (json!("3786912000"), true),
        (json!(3_786_912_000_000_u64), false),
        (json!("3786912000000"), false),
        (json!(-3_786_912_000_i64), false),
    ] {
        let wish = json!({ "longUrl": URL, "validUntil": time });
        let answer = resolver.api.try_create_with(&wish).await.unwrap();
        if is_taken {
            let link = answer.success().unwrap().json().unwrap();
            assert_eq!(link["meta"]["validUntil"], "2090-01-01T00:00:00+00:00", "{time}");
        } else {
            let problem = expect_problem(&answer, 400, "invalid-data");
            assert_eq!(problem["invalidElements"], json!(["validUntil"]), "{time}");
        }
    }
    let listed = async |query: &str| {
        let list = get(&resolver.api, &format!("short-urls?{query}")).await;
        list["shortUrls"]["pagination"]["totalItems"].clone()
    };
    assert_eq!(listed("startDate=1767225600").await, 2);
    assert_eq!(listed("endDate=1767225600").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_digest_gives_the_first_free_of_its_candidates_and_others_when_all_are_taken() {
    let scratch = Scratch::new().unwrap();
    let file = scratch.path().join("secret");
    // Digests need no keyspace.
    let mint = Mint::new(&code_key_file::create(&file).unwrap(), []);
    let resolver = Resolver::embedded().unwrap().code_key_file(&file).start().await.unwrap();
    let expected: Vec<String> = (0..3).flat_map(|salt| mint.candidates(URL, salt, 8)).collect();
    for (n, code) in expected.iter().enumerate() {
        if n == 1 {
            // Another link takes the second candidate.
            let rival = json!({ "longUrl": "https://rival.example/", "customSlug": code });
            resolver.api.create_with(&rival).await.unwrap();
            continue;
        }
        let created = resolver.api.create_with(&json!({ "longUrl": URL, "strategy": "hash" })).await.unwrap();
        assert_eq!(created.code, *code);
        assert_eq!(resolver.api.follow(code).await.unwrap(), (302, Some(URL.to_owned())));
    }
    let wish = json!({ "longUrl": URL, "strategy": "hash", "findIfExists": true });
    let found = resolver.api.create_with(&wish).await.unwrap();
    assert_eq!(resolver.api.create_with(&wish).await.unwrap(), found);
    // A digest with the length of a keyspace's codes could also have been minted.
    let other = format!("{URL}?other");
    let wish = json!({ "longUrl": other, "strategy": "hash", "shortCodeLength": 6, "findIfExists": true });
    let found = resolver.api.create_with(&wish).await.unwrap();
    assert_eq!(found.code, mint.candidates(&other, 0, 6)[0]);
    assert_eq!(resolver.api.create_with(&wish).await.unwrap(), found);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_has_as_many_characters_as_are_asked_for_and_a_class_for_its_first() {
    let keyspaces = "web=6:A-Z,mobile=6:a-z,short=4:0-9";
    let resolver = Resolver::embedded().unwrap().keyspaces(keyspaces).start().await.unwrap();
    for len in 1..=8 {
        let wish = json!({ "longUrl": URL, "shortCodeLength": len });
        let code = resolver.api.create_with(&wish).await.unwrap().code;
        assert_eq!(code.len(), len);
        assert_eq!(resolver.api.follow(&code).await.unwrap().0, 302, "{code}");
    }
    for (keyspace, class) in [("web", 'A'..='Z'), ("mobile", 'a'..='z'), ("short", '0'..='9')] {
        for _ in 0..20 {
            let wish = json!({ "longUrl": URL, "keyspace": keyspace, "tags": ["t"] });
            let code = resolver.api.create_with(&wish).await.unwrap().code;
            assert!(code.starts_with(|first| class.contains(&first)), "{keyspace}: {code}");
            assert_eq!(resolver.api.follow(&code).await.unwrap().0, 302, "{code}");
        }
    }
    let wrong = json!({ "longUrl": URL, "keyspace": "web", "shortCodeLength": 4 });
    let problem = expect_problem(&resolver.api.try_create_with(&wrong).await.unwrap(), 400, "invalid-data");
    assert_eq!(
        problem["expected"],
        json!({ "shortCodeLength": "expected 6, the length of this keyspace's codes, or no value" })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn all_sixty_two_codes_of_one_character_are_found_by_digest_before_it_says_that_none_is_left() {
    let resolver = start().await;
    let wish = json!({ "longUrl": URL, "strategy": "hash", "shortCodeLength": 1 });
    for _ in 0..62 {
        resolver.api.create_with(&wish).await.unwrap();
    }
    assert_eq!(resolver.api.try_create_with(&wish).await.unwrap().status, 507);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_picked_is_not_reserved_and_what_is_reserved_cannot_be_picked() {
    let alone = Alone::start(&["--keyspaces", "small=3:0-9"]).await;
    let api = alone.api();
    let reserve = async |count: usize| {
        let reserved = done(api, Method::POST, "reservations", Some(json!({ "count": count }))).await;
        reserved["shortCodes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|code| code.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let picked: Vec<String> = (0..200).map(|n| format!("{n:03}")).collect();
    for slug in &picked {
        api.create_with(&json!({ "longUrl": URL, "customSlug": slug })).await.unwrap();
    }
    let reserved = reserve(9_000).await;
    assert_eq!(reserved.len(), 9_000);
    let both: Vec<&String> = reserved.iter().filter(|code| picked.contains(code)).collect();
    assert!(both.is_empty(), "{both:?}");
    let other = alone.with_new_key("other", &["--scopes", "create,reserve"]).await;
    for slug in &reserved[..20] {
        let refused = other.try_create_with(&json!({ "longUrl": URL, "customSlug": slug })).await.unwrap();
        expect_problem(&refused, 400, "non-unique-slug");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_with_a_limit_redirects_so_often_and_again_when_the_limit_is_raised() {
    let resolver = start().await;
    let created = resolver.api.create_with(&json!({ "longUrl": URL, "maxVisits": 2 })).await.unwrap();
    assert_eq!(created.json["meta"]["maxVisits"], 2);
    let follow = async || resolver.api.follow(&created.code).await.unwrap().0;
    assert_eq!([follow().await, follow().await, follow().await, follow().await], [302, 302, 404, 404]);
    let path = format!("short-urls/{}", created.code);
    assert_eq!(listed(&resolver.api, "").await.len(), 1);
    assert_eq!(listed(&resolver.api, "excludeMaxVisitsReached=true").await.len(), 0);
    for (limit, expected) in [(json!(3), vec![302, 404]), (Value::Null, vec![302, 302, 302])] {
        call(&resolver.api, Method::PATCH, &path, Some(json!({ "maxVisits": limit })))
            .await
            .success()
            .unwrap();
        assert_eq!(listed(&resolver.api, "excludeMaxVisitsReached=true").await.len(), 1);
        // The resolver may remember for a moment that the limit was reached.
        harness::wait::until(SOON, "the new limit counts", async || follow().await == 302).await.unwrap();
        for status in &expected[1..] {
            assert_eq!(follow().await, *status, "{limit}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_an_existing_link_gets_the_one_that_was_made_for_the_same_wish() {
    let resolver = start().await;
    let wish = |more: Value| plus(json!({ "longUrl": URL, "findIfExists": true }), &more);
    let find = async |more: Value| resolver.api.create_with(&wish(more)).await.unwrap();
    let first = find(json!({ "title": "One" })).await;
    assert_eq!(find(json!({ "title": "Two", "crawlable": true })).await, first, "the title does not count");
    let plain = resolver.api.create(URL).await.unwrap();
    assert_ne!(plain.code, first.code, "who does not ask gets a new link");
    let tagged = find(json!({ "tags": ["b", "a"] })).await;
    let limited = find(json!({ "maxVisits": 5 })).await;
    let timed = find(json!({ "validUntil": "2090-01-01" })).await;
    let codes = [&first, &tagged, &limited, &timed].map(|link| link.code.clone());
    assert_eq!(codes.iter().collect::<std::collections::HashSet<_>>().len(), 4, "{codes:?}");
    assert_eq!(find(json!({ "tags": ["a", "B"] })).await.code, tagged.code);
    assert_eq!(find(json!({ "validUntil": "2090-01-01T00:00:00Z" })).await.code, timed.code);

    let path = format!("short-urls/{}", tagged.code);
    call(&resolver.api, Method::PATCH, &path, Some(json!({ "longUrl": "https://x.y/" })))
        .await
        .success()
        .unwrap();
    assert_ne!(find(json!({ "tags": ["a", "b"] })).await.code, tagged.code, "an edited link leads elsewhere");
    call(&resolver.api, Method::DELETE, &format!("short-urls/{}", first.code), None).await.success().unwrap();
    assert_ne!(find(json!({})).await.code, first.code, "a deleted link is given to nobody");

    let picked = find(json!({ "customSlug": "mine" })).await;
    assert_eq!(find(json!({ "customSlug": "mine" })).await, picked);
    let other = json!({ "longUrl": "https://other.example/", "customSlug": "mine", "findIfExists": true });
    let other = resolver.api.try_create_with(&other);
    expect_problem(&other.await.unwrap(), 400, "non-unique-slug");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_link_is_gone_and_only_a_hand_picked_code_can_be_picked_again() {
    let resolver = start().await;
    let minted = resolver.api.create(URL).await.unwrap().code;
    for slug in [minted.as_str(), "abc123", "promo/2026"] {
        if slug != minted {
            let request = json!({ "longUrl": URL, "customSlug": slug, "tags": ["old"] });
            resolver.api.create_with(&request).await.unwrap();
        }
        assert_eq!(resolver.api.follow(slug).await.unwrap().0, 302);
        let pick = json!({ "longUrl": format!("{URL}?again"), "customSlug": slug });
        let pick = async || resolver.api.try_create_with(&pick).await.unwrap();
        expect_problem(&pick().await, 400, "non-unique-slug");
        let path = format!("short-urls/{slug}");
        let deleted = call(&resolver.api, Method::DELETE, &path, None).await;
        assert_eq!((deleted.status, deleted.body.as_str()), (204, ""));
        assert_eq!(resolver.api.follow(slug).await.unwrap().0, 404, "{slug}");
        for method in [Method::GET, Method::DELETE] {
            let problem =
                expect_problem(&call(&resolver.api, method, &path, None).await, 404, "short-url-not-found");
            assert_eq!(problem["shortCode"], slug);
        }
        let again = pick().await;
        if slug == minted {
            expect_problem(&again, 400, "non-unique-slug");
        } else {
            let again = again.success().unwrap().json().unwrap();
            assert_eq!(again["tags"], json!([]), "nothing of the old link is left");
            assert_eq!(resolver.api.follow(slug).await.unwrap(), (302, Some(format!("{URL}?again"))));
        }
    }
    assert_eq!(listed(&resolver.api, "").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_filtered_ordered_and_paged_as_shlink_does() {
    let resolver = start().await;
    for (slug, title, tags, until) in [
        ("one", json!("Zebra"), json!(["x", "y"]), Value::Null),
        ("two", json!("apple 50%"), json!(["x"]), json!("2020-01-01")),
        ("three", Value::Null, json!(["y", "z"]), Value::Null),
        ("four", json!("Mango Übermut"), json!([]), Value::Null),
    ] {
        let url = format!("https://{slug}.example.com/{slug}");
        let request =
            json!({ "longUrl": url, "customSlug": slug, "title": title, "tags": tags, "validUntil": until });
        resolver.api.create_with(&request).await.unwrap();
    }
    let minted = resolver.api.create("https://minted.example.com/").await.unwrap().code;
    let all = [minted.as_str(), "four", "three", "two", "one"];
    let as_inserted = ["one", "two", "three", "four", &minted];
    for (query, expected) in [
        ("", &all[..]),
        ("orderBy=visits", &as_inserted),
        ("orderBy=nonBotVisits-DESC", &as_inserted),
        ("orderBy=lastVisit", &as_inserted),
        ("orderBy=lastVisit-DESC", &as_inserted),
        ("orderBy=dateCreated-ASC&page=1&itemsPerPage=2", &["one", "two"]),
        ("orderBy=dateCreated&page=2&itemsPerPage=2", &["three", "four"]),
        ("orderBy=longUrl-DESC&itemsPerPage=-1", &["two", "three", "one", &minted, "four"]),
        ("orderBy=title-ASC&tags%5B%5D=x", &["two", "one"]),
        ("tags[]=x&tags[]=z", &["three", "two", "one"]),
        ("tags[]=X&tags[]=x&tags[]=y&tagsMode=all", &["one"]),
        ("excludeTags[]=x", &[&minted, "four", "three"]),
        ("excludeTags[]=x&excludeTags[]=y&excludeTagsMode=all", &[&minted, "four", "three", "two"]),
        ("tags[]=nowhere", &[]),
        ("searchTerm=ZEBRA", &["one"]),
        ("searchTerm=50%25", &["two"]),
        ("searchTerm=0_", &[]),
        ("searchTerm=hree", &["three"]),
        ("searchTerm=%C3%9Cber", &["four"]),
        ("searchTerm=z", &["three", "one"]),
        (&format!("searchTerm={minted}"), &[&minted]),
        ("excludePastValidUntil=true", &[&minted, "four", "three", "one"]),
        ("startDate=2090-01-01", &[]),
        ("endDate=2020-01-01T00:00:00%2B00:00", &[]),
        ("startDate=2020-01-01&endDate=2090-01-01", &all),
        ("page=3&itemsPerPage=2", &["one"]),
        ("page=9", &[]),
    ] {
        assert_eq!(listed(&resolver.api, query).await, expected, "{query}");
    }

    let page = get(&resolver.api, "short-urls?page=2&itemsPerPage=2").await;
    let expected = json!({ "currentPage": 2, "pagesCount": 3, "itemsPerPage": 2, "itemsInCurrentPage": 2, "totalItems": 5 });
    assert_eq!(page["shortUrls"]["pagination"], expected);
    let shown = get(&resolver.api, "short-urls/three").await;
    assert_eq!(page["shortUrls"]["data"][0], shown, "an item is what a look at the link by itself shows");
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_are_counted_renamed_and_taken_away() {
    let resolver = start().await;
    for (slug, tags) in [("one", json!(["foo", "bar"])), ("two", json!(["foo", "foo", "Foo"]))] {
        resolver.api.create_with(&json!({ "longUrl": URL, "customSlug": slug, "tags": tags })).await.unwrap();
    }
    let tags = async |query: &str| get(&resolver.api, query).await["tags"].clone();
    let pagination = |items: u64| json!({ "currentPage": 1, "pagesCount": 1, "itemsPerPage": items.max(1), "itemsInCurrentPage": items, "totalItems": items });
    assert_eq!(tags("tags").await, json!({ "data": ["bar", "foo"], "pagination": pagination(2) }));
    let stat = |tag: &str, links: u64| json!({ "tag": tag, "shortUrlsCount": links, "visitsSummary": { "total": 0, "nonBots": 0, "bots": 0 } });
    assert_eq!(
        tags("tags/stats?orderBy=shortUrlsCount-DESC").await["data"],
        json!([stat("foo", 2), stat("bar", 1)])
    );
    assert_eq!(tags("tags?searchTerm=O").await["data"], json!(["foo"]));
    assert_eq!(tags("tags?itemsPerPage=1&page=2").await["data"], json!(["foo"]));

    let rename = async |old: &str, new: &str| {
        call(&resolver.api, Method::PUT, "tags", Some(json!({ "oldName": old, "newName": new }))).await
    };
    let conflict = expect_problem(&rename("foo", "bar").await, 409, "tag-conflict");
    assert_eq!((&conflict["oldName"], &conflict["newName"]), (&json!("foo"), &json!("bar")));
    assert_eq!(expect_problem(&rename("none", "x").await, 404, "tag-not-found")["tag"], "none");
    assert_eq!(rename("foo", "foo").await.status, 204);
    assert_eq!(rename("foo", "New Name").await.status, 204);
    assert_eq!(get(&resolver.api, "short-urls/one").await["tags"], json!(["New Name", "bar"]));

    assert_eq!(call(&resolver.api, Method::DELETE, "tags?tags[]=bar&tags[]=none", None).await.status, 204);
    assert_eq!(get(&resolver.api, "short-urls/one").await["tags"], json!(["New Name"]));
    assert_eq!(call(&resolver.api, Method::DELETE, "short-urls/two", None).await.status, 204);
    assert_eq!(tags("tags/stats").await["data"], json!([stat("New Name", 1)]));
}
