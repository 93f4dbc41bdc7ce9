//! Undo in place of a question on the management pages, without scripts: of changes of chosen
//! links, of redirect rules and of removals of target rules.

use harness::Api;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    pages::Browser,
    rest_calls::{Alone, call, done, get, leads_to},
    undo::{URL, edit, make, shown},
};

const LIST: &str = "/manage";
const TARGETS: &str = "/manage/targets";
/// What the list says after a change of both links.
const BOTH: &str = "Changed 2 links.";
const SUPERSEDED: &str = "This was changed meanwhile.";

async fn both(api: &Api) -> [Value; 2] {
    [shown(api, "one").await, shown(api, "two").await]
}

/// Changes both links on the list, which says this, and returns the form that undoes the change.
async fn change(browser: &Browser<'_>, fields: &str, said: &str) -> String {
    let (status, list, page) = browser.send(LIST, &format!("do={fields}&link=+one&link=+two")).await;
    assert_eq!(status, StatusCode::SEE_OTHER, "{page}");
    let page = browser.page(&list).await;
    assert!(page.contains(&format!("<span role=\"status\">{said}</span>")), "{page}");
    let values = page.split("name=\"undo\" value=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    let undo: String = values.map(|value| format!("&undo={}", value.replace(' ', "+"))).collect();
    format!("do=undo{undo}")
}

/// Sends the form of an undo that fails for this link alone, for this reason.
async fn expect_kept(browser: &Browser<'_>, undo: &str, slug: &str, reason: &str) {
    let (status, _, page) = browser.send(LIST, undo).await;
    assert_eq!(status, StatusCode::CONFLICT, "{page}");
    assert!(page.contains("Undid the change of 1 link."), "{page}");
    assert!(page.contains(&format!(">{slug}</a>: {reason}")), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_of_chosen_links_is_undone() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    for slug in ["one", "two"] {
        make(api, json!({ "tags": ["old"] }), slug).await;
    }
    let (browser, before) = (Browser::open(api).await, both(api).await);
    for fields in ["add-tag&newTag=new", "remove-tag&newTag=old", "disable", "move&to=one.example", "delete"]
    {
        let undo = change(&browser, fields, BOTH).await;
        let (status, list, page) = browser.send(LIST, &undo).await;
        assert_eq!(status, StatusCode::SEE_OTHER, "{fields}: {page}");
        let page = browser.page(&list).await;
        assert!(page.contains("Undid the change of 2 links."), "{fields}: {page}");
        assert!(!page.contains("name=\"undo\""), "{fields}");
        assert_eq!(both(api).await, before, "{fields}");
    }
    for slug in ["one", "two"] {
        assert_eq!(api.follow(slug).await.unwrap(), leads_to(URL));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_needs_no_change_is_not_counted_as_changed() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    make(api, json!({}), "one").await;
    make(api, json!({ "enabled": false }), "two").await;
    let browser = Browser::open(api).await;
    let form = "do=disable&link=+one&link=+two";
    for said in ["Changed 1 link. 1 link needed no change.", "2 links needed no change."] {
        let (_, list, _) = browser.send(LIST, form).await;
        let page = browser.page(&list).await;
        assert!(page.contains(&format!(" role=\"status\">{said}</")), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_form_of_the_same_session_leads_to_an_undo() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    for slug in ["one", "two", "three", "four"] {
        make(api, json!({}), slug).await;
    }
    let rule = json!({ "pattern": "evil.example", "allowed": false });
    done(api, Method::PUT, "targets", Some(rule)).await;
    let (browser, other) = (Browser::open(api).await, Browser::open(api).await);
    let forms = [
        (LIST, "do=disable&link=+one&link=+two"),
        ("/manage/link/one", "title=New"),
        ("/manage/link/three", "do=delete"),
        (TARGETS, "do=remove&pattern=evil.example&allowed=false"),
        ("/manage/rules/four", "do=add-rule&longUrl=https://example.com/&version=0"),
    ];
    for (path, form) in forms {
        let (status, to, page) = browser.send(path, form).await;
        assert_eq!(status, StatusCode::SEE_OTHER, "{path}: {page}");
        let offers = |page: &str| [page.contains("undo\">"), page.contains("class=\"stored")];
        let page = browser.page(&to).await;
        assert_eq!(offers(&page), [true; 2], "{to}: {page}");
        assert_eq!(offers(&other.page(&to).await), [false; 2], "{to} of another session");
        let (unsigned, _) = to.split_once("&mac=").unwrap();
        for mac in ["", "&mac=", &format!("&mac={}", "0".repeat(32))] {
            let forged = format!("{unsigned}{mac}");
            assert_eq!(offers(&browser.page(&forged).await), [false; 2], "{forged}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_on_the_list_takes_nobodys_later_change_back() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    make(api, json!({}), "one").await;
    make(api, json!({ "tags": ["has-it"] }), "two").await;
    let browser = Browser::open(api).await;
    let undo = change(&browser, "add-tag&newTag=has-it", "Changed 1 link. 1 link needed no change.").await;
    assert_eq!(undo.matches("&undo=").count(), 1, "the other link had the tag: {undo}");

    let undo = change(&browser, "add-tag&newTag=new", BOTH).await;
    edit(api, "two", json!({ "title": "By another" })).await;
    expect_kept(&browser, &undo, "two", SUPERSEDED).await;
    let [one, two] = both(api).await;
    assert_eq!((&one["tags"], &two["tags"]), (&json!(["has-it"]), &json!(["has-it", "new"])));
    assert_eq!(two["title"], "By another");

    let undo = change(&browser, "delete", BOTH).await;
    let editor = alone.with_new_key("editor", &["--scopes", "read,edit"]).await;
    let (status, _, page) = Browser::open(&editor).await.send(LIST, &undo).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(page.contains("lacks the scope") && !page.contains("class=\"stored"), "{page}");
    done(api, Method::POST, "short-urls/one/restore", None).await;
    assert_eq!(call(api, Method::DELETE, "short-urls/one", None).await.status, 204);
    expect_kept(&browser, &undo, "one", SUPERSEDED).await;
    assert_ne!(api.follow("one").await.unwrap().0, 302, "the second deletion stays");
    assert_eq!(api.follow("two").await.unwrap(), leads_to(URL));
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_of_a_link_come_back_unless_it_was_changed_since() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    make(api, json!({}), "ruled").await;
    let android = json!([{ "type": "device", "matchKey": null, "matchValue": "android" }]);
    let wish = json!({ "redirectRules": [{ "longUrl": URL, "conditions": android }] });
    done(api, Method::POST, "short-urls/ruled/redirect-rules", Some(wish)).await;
    let rules = async || get(api, "short-urls/ruled/redirect-rules").await["redirectRules"].clone();
    let (before, page) = (rules().await, "/manage/rules/ruled");
    let browser = Browser::open(api).await;
    let version = async |page: &str| {
        let page = browser.page(page).await;
        let (_, rest) = page.split_once("name=\"version\" value=\"").unwrap();
        (rest.split('"').next().unwrap().to_owned(), page.contains("value=\"undo\""))
    };
    for change in ["delete&rule=1", "delete-all"] {
        let (at, may_undo) = version(page).await;
        assert!(!may_undo, "nothing was changed");
        let (_, stored, _) = browser.send(page, &format!("do={change}&version={at}")).await;
        assert_eq!(rules().await, json!([]), "{change}");
        let (at, may_undo) = version(&stored).await;
        assert!(may_undo, "{stored}");
        let (status, _, refused) = browser.send(page, &format!("do=undo&version={at}")).await;
        assert_eq!(status, StatusCode::SEE_OTHER, "{refused}");
        assert_eq!(rules().await, before, "{change}");
    }
    let (at, _) = version(page).await;
    let (_, stored, _) = browser.send(page, &format!("do=delete-all&version={at}")).await;
    let (at, _) = version(&stored).await;
    edit(api, "ruled", json!({ "title": "By another" })).await;
    assert!(!version(&stored).await.1, "the last change is another one");
    let (status, _, _) = browser.send(page, &format!("do=undo&version={at}")).await;
    assert_eq!(status, StatusCode::PRECONDITION_FAILED);
    assert_eq!((rules().await, &shown(api, "ruled").await["title"]), (json!([]), &json!("By another")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_rule_that_was_removed_is_set_again() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let rule = |allowed: bool| json!({ "pattern": "evil.example", "allowed": allowed });
    let set = async |allowed| done(api, Method::PUT, "targets", Some(rule(allowed))).await;
    let rules = async || get(api, "targets").await["targets"]["data"].clone();
    let browser = Browser::open(api).await;
    let fields = "pattern=evil.example&allowed=false";
    set(false).await;
    let (_, list, _) = browser.send(TARGETS, &format!("do=remove&{fields}")).await;
    assert_eq!(rules().await, json!([]));
    let page = browser.page(&list).await;
    assert!(page.contains("value=\"undo\"") && page.contains("value=\"evil.example\""), "{page}");
    let (_, list, _) = browser.send(TARGETS, &format!("do=undo&{fields}")).await;
    assert_eq!((rules().await, &*list), (json!([rule(false)]), "/manage/targets?stored"));

    set(true).await;
    for action in ["remove", "undo"] {
        let (status, _, page) = browser.send(TARGETS, &format!("do={action}&{fields}")).await;
        assert_eq!(status, StatusCode::PRECONDITION_FAILED, "{action}");
        assert!(page.contains(SUPERSEDED), "{page}");
    }
    assert_eq!(rules().await, json!([rule(true)]), "as another has set it");
}
