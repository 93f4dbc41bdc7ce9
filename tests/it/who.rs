//! Attribution by key names: who created and edited a link, who made a change in the audit log, and
//! the list of API keys. Also the output of `config check`.

use harness::{Launch, Resolver, Scratch, binaries, wait};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    cli::{Person, row},
    rest_calls::{Alone, SOON, call, done, get},
};

const URL: &str = "https://example.com/page";

#[tokio::test(flavor = "multi_thread")]
async fn a_link_says_by_the_names_of_keys_who_created_it_and_who_edited_it_last() {
    let alone = Alone::start(&[]).await;
    let author = alone.with_new_key("author", &["--scopes", "create,read"]).await;
    let editor = alone.with_new_key("editor", &["--scopes", "read,edit"]).await;
    let creator = alone.with_new_key("creator", &["--scopes", "create"]).await;
    let wish = json!({ "longUrl": URL, "customSlug": "x", "findIfExists": true });
    let made = author.create_with(&wish).await.unwrap().json;
    assert_eq!((&made["createdBy"], &made["editedBy"]), (&json!("author"), &Value::Null), "{made}");
    let edited = done(&editor, Method::PATCH, "short-urls/x", Some(json!({ "title": "T" }))).await;
    assert_eq!((&edited["createdBy"], &edited["editedBy"]), (&json!("author"), &json!("editor")));
    // A key without the scope `read` is given only its own links, and only their names.
    assert_eq!(call(&creator, Method::POST, "short-urls", Some(wish.clone())).await.status, 400);
    let wish = json!({ "longUrl": URL, "customSlug": "y", "findIfExists": true });
    done(&creator, Method::POST, "short-urls", Some(wish.clone())).await;
    done(&editor, Method::PATCH, "short-urls/y", Some(json!({ "title": "T" }))).await;
    let found = done(&creator, Method::POST, "short-urls", Some(wish)).await;
    assert_eq!((&found["shortCode"], found.as_object().unwrap().len()), (&json!("y"), 2), "{found}");
    alone.api().create(URL).await.unwrap();
    let list = get(&editor, "short-urls?orderBy=dateCreated-ASC").await;
    let who = |link: &Value| (link["createdBy"].clone(), link["editedBy"].clone(), link["version"].clone());
    let links = list["shortUrls"]["data"].as_array().unwrap();
    assert_eq!(who(&links[0]), (json!("author"), json!("editor"), json!(1)));
    assert_eq!(who(&links[1]), (json!("creator"), json!("editor"), json!(1)));
    assert_eq!(who(&links[2]), (json!("initial"), Value::Null, json!(0)));
    let table = Person::at(&alone.resolver).read(&["link", "get", "x"]).await;
    assert_eq!(
        (row(&table, "created by"), row(&table, "edited by")),
        (Some("author"), Some("editor")),
        "{table}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_names_links_by_code_and_domain_and_says_what_was_changed() {
    let alone = Alone::start(&[]).await;
    let admin = alone.api();
    let minted = admin.create(URL).await.unwrap().code;
    let wish = json!({ "longUrl": URL, "customSlug": "promo", "domain": "one.example", "maxVisits": 3 });
    admin.create_with(&wish).await.unwrap();
    done(admin, Method::PATCH, &format!("short-urls/{minted}"), Some(json!({ "title": "T" }))).await;
    let edit = json!({ "enabled": false, "maxVisits": null, "tags": ["a"], "password": "hush hush" });
    done(admin, Method::PATCH, "short-urls/promo?domain=one.example", Some(edit)).await;
    assert_eq!(call(admin, Method::DELETE, &format!("short-urls/{minted}"), None).await.status, 204);

    let log = get(admin, "audit").await["audit"]["data"].clone();
    let added: Vec<&Value> =
        log.as_array().unwrap().iter().filter(|entry| entry["action"] == "add-domain").collect();
    assert_eq!(added.len(), 1, "{log}");
    assert_eq!((&added[0]["subject"], &added[0]["apiKey"]), (&json!("one.example"), &json!("initial")));
    let [deleted, promo, title] = [0, 1, 2].map(|place| log[place].clone());
    for entry in [&deleted, &title] {
        assert_eq!((&entry["subject"], &entry["domain"]), (&json!(minted), &Value::Null), "{entry}");
    }
    assert_eq!((&promo["subject"], &promo["domain"]), (&json!("promo"), &json!("one.example")));
    let changed = json!({
        "enabled": { "from": true, "to": false }, "maxVisits": { "from": 3, "to": null }, "hasPassword": { "from": false, "to": true },
        "tags": { "from": [], "to": ["a"] }, "version": { "from": 0, "to": 1 },
    });
    assert_eq!(promo["details"]["changed"], changed);
    assert_eq!(title["details"]["changed"]["title"], json!({ "from": null, "to": "T" }));
    let words = promo["details"].as_object().unwrap();
    for internal in ["slug", "domain", "mark", "details"] {
        assert!(!words.contains_key(internal), "{internal} in {promo}");
    }
    let person = Person::at(&alone.resolver);
    let table = person.read(&["audit", "--width", "200"]).await;
    let line = table.lines().find(|line| line.contains("promo")).unwrap();
    for part in ["initial", "edit-link", "one.example", "enabled: yes → no", "maxVisits: 3 → none"] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    let older = person.read_json(&["audit", "--json", "--before", &promo["id"].to_string()]).await;
    assert_eq!(older["audit"]["data"][0], title);
    done(admin, Method::PATCH, "domains/one.example", Some(json!({ "domain": "two.example" }))).await;
    let renamed = get(admin, "audit").await["audit"]["data"][0].clone();
    assert_eq!((&renamed["action"], &renamed["subject"]), (&json!("edit-domain"), &json!("one.example")));
    let changed = json!({ "domain": { "from": "one.example", "to": "two.example" } });
    assert_eq!(renamed["details"]["changed"], changed);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_keys_tells_their_domain_their_limits_and_when_they_were_last_used() {
    let alone = Alone::start(&[]).await;
    let limits =
        ["--scopes", "read", "--domain", "one.example", "--own-links-only", "--calls-per-minute", "60"];
    let limited = alone.with_new_key("limited", &limits).await;
    alone.with_new_key("idle", &[]).await;
    assert_eq!(call(&limited, Method::GET, "tags", None).await.status, 200);
    let last_use = async |name: &str| {
        let keys: Value = serde_json::from_str(&alone.api_key(&["list", "--json"]).await).unwrap();
        keys.as_array().unwrap().iter().find(|key| key["name"] == name).unwrap().clone()
    };
    wait::until(SOON, "the use is noted", async || last_use("limited").await["lastUsedAt"].is_string())
        .await
        .unwrap();
    assert_eq!(last_use("idle").await["lastUsedAt"], Value::Null);
    let expected = json!({ "domain": "one.example", "ownLinksOnly": true, "callsPerMinute": 60 });
    assert_eq!(last_use("limited").await["limits"], expected);
    let table = alone.api_key(&["list"]).await;
    let line = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("limited").ends_with("domain one.example, own links only, 60 calls a minute"), "{table}");
    assert!(line("idle").contains("never"), "{table}");
    alone.api_key(&["revoke", "--name", "limited"]).await;
    assert_eq!(call(alone.api(), Method::DELETE, "domains/one.example", None).await.status, 204);
    assert_eq!(last_use("limited").await["limits"]["domain"], "(removed)", "and not the default one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_is_shown_whole_with_its_sources_and_a_switch_takes_any_usual_word() {
    let scratch = Scratch::new().unwrap();
    let check = async |args: &[&str], word: &str| {
        let launch = Launch::new(&scratch, "check", binaries::resolver().await.unwrap());
        let launch = launch.args(["config", "check"]).args(args).env("RESOLVER_TELL_GONE", word);
        let launch = launch
            .env("RESOLVER_INITIAL_API_KEY", "s3cret-s3cret-s3cret")
            .env("RESOLVER_REDIRECT_STATUS", "307");
        launch.run(SOON).await.unwrap()
    };
    for (word, value) in [("1", "true"), ("yes", "true"), ("on", "true"), ("0", "false"), ("false", "false")]
    {
        let checked = check(&["--json", "--limit", "threads=3"], word).await.success().unwrap();
        assert!(!checked.stdout.contains("s3cret"), "{checked:?}");
        let checked: Value = serde_json::from_str(&checked.stdout).unwrap();
        let of = |name: &str| {
            let settings = checked["settings"].as_array().unwrap();
            let setting = settings.iter().find(|setting| setting["name"] == name).unwrap();
            (setting["value"].as_str().unwrap().to_owned(), setting["source"].as_str().unwrap().to_owned())
        };
        let expected = |value: &str, source: &str| (value.to_owned(), source.to_owned());
        assert_eq!(of("tell-gone"), expected(value, "environment"), "{word}");
        assert_eq!(of("redirect-status"), expected("307", "environment"));
        assert_eq!(of("limit"), expected("threads=3", "flag"));
        assert_eq!(of("time-zone"), expected("UTC", "default"));
        assert_eq!(of("initial-api-key"), expected("(hidden)", "environment"));
        assert_eq!(checked["keyspaces"].as_array().unwrap().len(), 1);
    }
    let table = check(&[], "1").await.success().unwrap().stdout;
    for part in [
        "serve-stale-for",
        "RESOLVER_TELL_GONE",
        "visits-privacy",
        "keyspace default=6:0-z: 56800235584 codes",
    ] {
        assert!(table.contains(part), "{part} is not in {table}");
    }
    assert_eq!(check(&[], "perhaps").await.code(), Some(64));
    let resolver = Resolver::embedded().unwrap().env("RESOLVER_TELL_GONE", "1").start().await.unwrap();
    resolver
        .api
        .create_with(&json!({ "longUrl": URL, "customSlug": "off", "enabled": false }))
        .await
        .unwrap();
    assert_eq!(resolver.api.follow("off").await.unwrap().0, 410);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_without_orphan_visits_sees_all_links_and_no_visit_that_none_redirected() {
    let alone = Alone::start(&[]).await;
    let (admin, hidden) = (alone.api(), alone.with_new_key("hidden", &["--no-orphan-visits"]).await);
    let code = admin.create("https://example.com/").await.unwrap().code;
    assert_eq!(admin.follow(&code).await.unwrap().0, 302);
    assert_eq!(admin.get("nobody-has-this").await.unwrap().status, 404);
    wait::until(SOON, "both visits are counted", async || {
        let visits = get(admin, "visits").await["visits"].clone();
        visits["nonOrphanVisits"]["total"] == 1 && visits["orphanVisits"]["total"] == 1
    })
    .await
    .unwrap();
    let overview = get(&hidden, "visits").await["visits"].clone();
    assert_eq!(overview["nonOrphanVisits"]["total"], 1);
    assert_eq!(overview["orphanVisits"], json!({ "total": 0, "nonBots": 0, "bots": 0 }));
    let orphans = get(&hidden, "visits/orphan").await["visits"].clone();
    assert_eq!((&orphans["data"], &orphans["pagination"]["totalItems"]), (&json!([]), &json!(0)));
    assert_eq!(get(&hidden, "short-urls").await["shortUrls"]["data"].as_array().unwrap().len(), 1);
    let deleted = done(&hidden, Method::DELETE, "visits/orphan", None).await;
    assert_eq!(deleted, json!({ "deletedVisits": 0 }));
    for path in ["stats?orphan=all", "audit"] {
        assert_eq!(call(&hidden, Method::GET, path, None).await.status, 403, "{path}");
    }
    let keys: Value = serde_json::from_str(&alone.api_key(&["list", "--json"]).await).unwrap();
    let listed = keys.as_array().unwrap().iter().find(|key| key["name"] == "hidden").unwrap();
    assert_eq!(listed["limits"], json!({ "noOrphanVisits": true }));
}
