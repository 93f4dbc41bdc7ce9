//! The pages: in a real browser, and what holds on several processes.

use std::time::Duration;

use harness::{Api, Cluster, Launch, Program, Resolver, Scratch, binaries, installed::node, secret, wait};
use reqwest::{
    Client, Response, StatusCode,
    header::{COOKIE, LOCATION, ORIGIN, SET_COOKIE},
    redirect::Policy,
};
use serde_json::json;

const RUN_WITHIN: Duration = Duration::from_secs(300);
const SOON: Duration = Duration::from_secs(20);
/// An answer about a key or a session is believed for a second.
const EVERYWHERE_WITHIN: Duration = Duration::from_secs(2);

/// A client that follows no redirect.
fn client() -> Client {
    Client::builder().redirect(Policy::none()).build().unwrap()
}

/// Signs in, and returns the session's cookie.
pub(super) async fn sign_in(url: &str, key: &str) -> String {
    let form = format!("apiKey={key}");
    let answer = post(&format!("{url}/_pages/sign-in"), "", &form).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let cookie = answer.headers()[SET_COOKIE].to_str().unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
    cookie.split(';').next().unwrap().to_owned()
}

pub(super) async fn post(url: &str, cookie: &str, form: &str) -> Response {
    let request = client().post(url).header(COOKIE, cookie).body(form.to_owned());
    request.header("content-type", "application/x-www-form-urlencoded").send().await.unwrap()
}

async fn is_signed_in(url: &str, cookie: &str) -> bool {
    let answer = client().get(format!("{url}/manage")).header(COOKIE, cookie).send().await.unwrap();
    if answer.status() == StatusCode::SEE_OTHER {
        assert_eq!(answer.headers()[LOCATION], "/_pages/sign-in?to=%2Fmanage");
    }
    answer.status() == StatusCode::OK
}

/// Returns the form token of a page.
pub(super) async fn form_token(url: &str, cookie: &str) -> String {
    let page = client().get(url).header(COOKIE, cookie).send().await.unwrap().text().await.unwrap();
    let (_, rest) = page.split_once("name=\"formToken\" value=\"").expect("the page has a form");
    rest.split('"').next().unwrap().to_owned()
}

/// A browser that is signed in with an administrator's key.
pub(super) struct Browser<'a> {
    api: &'a Api,
    cookie: String,
    token: String,
}

impl<'a> Browser<'a> {
    pub(super) async fn open(api: &'a Api) -> Self {
        let cookie = sign_in(api.url(), api.key()).await;
        let token = form_token(&format!("{}/manage", api.url()), &cookie).await;
        Self { api, cookie, token }
    }

    /// Sends a form, and returns the status, where it leads, and the page.
    pub(super) async fn send(&self, path: &str, form: &str) -> (StatusCode, String, String) {
        let form = format!("formToken={}&{form}", self.token);
        let answer = post(&format!("{}{path}", self.api.url()), &self.cookie, &form).await;
        let to = answer.headers().get(LOCATION).map(|to| to.to_str().unwrap().to_owned());
        (answer.status(), to.unwrap_or_default(), answer.text().await.unwrap())
    }

    pub(super) async fn get(&self, path: &str) -> Response {
        let request = client().get(format!("{}{path}", self.api.url()));
        request.header(COOKIE, &self.cookie).send().await.unwrap()
    }

    pub(super) async fn page(&self, path: &str) -> String {
        self.get(path).await.text().await.unwrap()
    }
}

/// Runs a script of `tests/browser` in a folder with the installed packages, and returns what it
/// printed.
pub(super) async fn run_script(scratch: &Scratch, script: &str, api: &Api, args: &[&str]) -> String {
    let node = node(scratch, &format!("browser/{script}"), "browser").unwrap();
    let node = node.arg(Program::Chromium.path().unwrap()).args([api.url(), api.key()]).args(args);
    let finished = node.run(RUN_WITHIN).await.unwrap();
    assert!(finished.status.success(), "{}\n{}", finished.stdout, finished.stderr);
    finished.stdout
}

/// Returns a PNG of one colour.
fn green_square() -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, 32, 32);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&[10, 127, 90].repeat(32 * 32)).unwrap();
    writer.finish().unwrap();
    file
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_used_in_a_browser() {
    use_every_page("sample", None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sample_of_forty_tasks_is_done_in_a_browser() {
    do_tasks("sample").await;
}

mod long {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn every_page_is_checked_in_every_view() {
        // The folder for pictures of every page, if they are wanted.
        use_every_page("all", std::env::var("SHORTMINT_PICTURES").ok()).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn forty_tasks_are_done_in_a_browser() {
        println!("{}", do_tasks("all").await);
    }
}

/// Uses every page. Of the views of each (colours, language, width), all are checked, or a sample.
async fn use_every_page(views: &str, pictures: Option<String>) {
    let scratch = Scratch::new().unwrap();
    let theme = ["--theme", "name=Ours <b>&amp;,footer=© <script>window.wasRun=1</script>"];
    let logo = scratch.path().join("logo.png");
    std::fs::write(&logo, green_square()).unwrap();
    let resolver = Resolver::embedded().unwrap().args(theme).args(["--tell-gone", "--public-create", "on"]);
    let resolver = resolver.args(["--theme", &format!("logo={}", logo.display())]);
    let resolver =
        resolver.args(["--proxy-headers", "country=X-Country", "--trusted-proxies", "127.0.0.0/8"]);
    let resolver = resolver.start().await.unwrap();
    let args: Vec<&str> = [views].into_iter().chain(pictures.as_deref()).collect();
    let printed = run_script(&scratch, "pages.mjs", &resolver.api, &args).await;
    assert!(printed.contains("all holds"), "{printed}");
}

/// Does all tasks or a sample, and returns the table of their clicks.
async fn do_tasks(which: &str) -> String {
    let scratch = Scratch::new().unwrap();
    let country = ["--proxy-headers", "country=X-Country", "--trusted-proxies", "127.0.0.0/8"];
    let cluster = Cluster::builder().resolvers(1).resolver_args(country).start().await.unwrap();
    let api = &cluster.resolvers[0].api;
    make_a_campaign(&cluster, api).await;
    let downloads = scratch.folder("downloads").unwrap().to_str().unwrap().to_owned();
    let printed = run_script(&scratch, "tasks.mjs", api, &[which, &downloads]).await;
    assert!(printed.contains("all are done"), "{printed}");
    printed
}

/// Makes twelve links with the tag `campaign` that are a month old, each with visits of last month,
/// and a thirteenth of today. No interface makes links and visits of the past, so their times are
/// set in the database.
async fn make_a_campaign(cluster: &Cluster, api: &Api) {
    let link = |number: usize| json!({ "longUrl": format!("https://example.com/campaign/{number}"), "tags": ["campaign"] });
    for number in 0..13 {
        api.create_with(&link(number)).await.unwrap();
    }
    api.create_with(&json!({ "longUrl": "https://example.com/y", "domain": "y.example" })).await.unwrap();
    let client = cluster.postgres.client().await.unwrap();
    let sql = "
        UPDATE link SET created_at = date_trunc('month', now()) - interval '10 days'
        WHERE long_url ~ '/campaign/([1-9]|1[0-2])$';
        INSERT INTO visit_day (kind, subject, part, day, slot, total, bots, version, appended,
                               quarters, dimensions, visitors, addresses)
        SELECT 0, id, 1, (date_trunc('month', now()) - interval '9 days')::date - '1970-01-01'::date, -1,
               10 * substring(long_url from '[0-9]+$')::bigint, 0, 1, 0, '', '', '', ''
        FROM link WHERE long_url ~ '/campaign/([1-9]|1[0-2])$'";
    client.batch_execute(sql).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_opened_on_one_process_ends_on_all_with_sign_out_and_with_its_key() {
    let cluster = Cluster::builder().resolvers(2).start().await.unwrap();
    let [one, other] = [0, 1].map(|index| cluster.resolvers[index].api.url().to_owned());
    let database = cluster.database_url();
    let args = ["api-key", "create", "--name", "editor", "--scopes", "read,edit", "--database", &database];
    let created = cluster.run_resolver(&args, SOON).await.unwrap().success().unwrap();
    let key = created.stdout.trim().to_owned();

    let cookie = sign_in(&one, &key).await;
    assert!(is_signed_in(&one, &cookie).await && is_signed_in(&other, &cookie).await);
    let token = form_token(&format!("{one}/manage"), &cookie).await;
    let out = post(&format!("{one}/_pages/sign-out"), &cookie, &format!("formToken={token}")).await;
    assert_eq!(out.status(), StatusCode::SEE_OTHER);
    assert!(!is_signed_in(&one, &cookie).await, "here at once");
    wait::until(EVERYWHERE_WITHIN, "it ended elsewhere", async || !is_signed_in(&other, &cookie).await)
        .await
        .unwrap();

    let cookie = sign_in(&other, &key).await;
    assert!(is_signed_in(&one, &cookie).await && is_signed_in(&other, &cookie).await);
    let args = ["api-key", "revoke", "--name", "editor", "--database", &database];
    cluster.run_resolver(&args, SOON).await.unwrap().success().unwrap();
    wait::until(EVERYWHERE_WITHIN, "it ended with its key", async || {
        !is_signed_in(&one, &cookie).await && !is_signed_in(&other, &cookie).await
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_without_its_token_or_from_another_origin_changes_nothing() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let (url, key) = (resolver.api.url(), resolver.api.key());
    let link = resolver.api.create("https://example.com/kept").await.unwrap();
    let page = format!("{url}/manage/link/{}", link.code);
    let cookie = sign_in(url, key).await;
    let token = form_token(&page, &cookie).await;
    let other = sign_in(url, key).await;
    let other_token = form_token(&page, &other).await;
    assert_ne!(token, other_token);
    for form in [
        "do=delete".to_owned(),
        format!("do=delete&formToken={other_token}"),
        "do=delete&formToken=".to_owned(),
    ] {
        assert_eq!(post(&page, &cookie, &form).await.status(), StatusCode::FORBIDDEN, "{form}");
    }
    for (name, value) in [
        (ORIGIN.as_str(), "https://evil.example"),
        (ORIGIN.as_str(), "null"),
        ("sec-fetch-site", "cross-site"),
    ] {
        let request = client().post(&page).header(COOKIE, &cookie).header(name, value);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let answer = request.body(format!("do=delete&formToken={token}")).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{name}: {value}");
    }
    assert_eq!(resolver.api.follow(&link.code).await.unwrap().0, 302);
    let deleted = post(&page, &cookie, &format!("do=delete&formToken={token}")).await;
    assert_eq!(deleted.status(), StatusCode::SEE_OTHER);
    assert_eq!(resolver.api.follow(&link.code).await.unwrap().0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_sees_on_the_pages_what_it_sees_of_the_api() {
    let scratch = Scratch::new().unwrap();
    let builder = Resolver::builder(&scratch, "resolver-0", &secret::random_hex().unwrap()).unwrap();
    let resolver = builder.start().await.unwrap();
    let url = resolver.api.url();
    let create = ["api-key", "create", "--name", "reader", "--scopes", "read", "--own-links-only"];
    let launch = Launch::new(&scratch, "api-key", binaries::resolver().await.unwrap()).args(create);
    let key = launch.run(SOON).await.unwrap().success().unwrap().stdout.trim().to_owned();
    let link = resolver.api.create("https://example.com/hidden").await.unwrap();
    let cookie = sign_in(url, &key).await;
    let get =
        async |path: &str| client().get(format!("{url}{path}")).header(COOKIE, &cookie).send().await.unwrap();
    assert!(!get("/manage").await.text().await.unwrap().contains("example.com/hidden"));
    assert_eq!(get(&format!("/manage/link/{}", link.code)).await.status(), StatusCode::NOT_FOUND);
    for (path, status) in [
        ("/cluster", StatusCode::FORBIDDEN),
        ("/manage/audit", StatusCode::FORBIDDEN),
        ("/manage/webhooks", StatusCode::FORBIDDEN),
        ("/manage/webhooks/1", StatusCode::FORBIDDEN),
        ("/manage/nothing", StatusCode::NOT_FOUND),
    ] {
        assert_eq!(get(path).await.status(), status, "{path}");
    }
}

/// Without a key, links are created only if the operator wants it, and only so many.
#[tokio::test(flavor = "multi_thread")]
async fn creates_without_a_key_are_a_choice_and_limited() {
    let closed = Resolver::embedded().unwrap().args(["--public-create", "off"]).start().await.unwrap();
    let form = "longUrl=https%3A%2F%2Fexample.com%2F";
    let refused = post(&format!("{}/manage/create", closed.api.url()), "", form).await;
    assert_eq!(refused.status(), StatusCode::SEE_OTHER);
    assert_eq!(refused.headers()[LOCATION], "/_pages/sign-in?to=%2Fmanage%2Fcreate");

    let open = Resolver::embedded().unwrap().args(["--public-create", "on"]).start().await.unwrap();
    let url = format!("{}/manage/create", open.api.url());
    // Guests choose neither tags nor a domain.
    let guest = post(&url, "", &format!("{form}guest&tags=mine&domain=other.example")).await;
    assert_eq!(guest.status(), StatusCode::OK);
    let list = client().get(format!("{}/rest/v3/short-urls", open.api.url()));
    let list = list.header("X-Api-Key", open.api.key()).send().await.unwrap().text().await.unwrap();
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let link = &list["shortUrls"]["data"][0];
    assert_eq!((&link["tags"], &link["domain"]), (&serde_json::json!([]), &serde_json::Value::Null));

    let mut statuses = Vec::new();
    for _ in 0..40 {
        statuses.push(post(&url, "", form).await.status());
    }
    // A form of a session that has ended is none of a guest.
    let ended = post(&url, "", &format!("{form}&formToken=0123456789abcdef")).await;
    assert_eq!(ended.status(), StatusCode::SEE_OTHER);
    let created = statuses.iter().filter(|status| **status == StatusCode::OK).count();
    assert!((29..=31).contains(&created), "{created} of 40 within a minute");
    assert!(statuses.contains(&StatusCode::TOO_MANY_REQUESTS));
}

/// A slug may not take the place of the preview of another link, and a sign-in leads to pages only.
#[tokio::test(flavor = "multi_thread")]
async fn neither_a_slug_nor_a_sign_in_leads_people_astray() {
    let resolver = Resolver::embedded().unwrap().args(["--tell-gone"]).start().await.unwrap();
    let (url, api) = (resolver.api.url(), &resolver.api);
    let link = api.create("https://example.com/mine").await.unwrap();
    let wish =
        serde_json::json!({ "longUrl": "https://example.org/", "customSlug": format!("{}+", link.code) });
    assert_eq!(api.try_create_with(&wish).await.unwrap().status, 400);
    let once = serde_json::json!({ "longUrl": "https://example.com/once", "maxVisits": 1 });
    let once = api.create_with(&once).await.unwrap();
    let preview = format!("{}+", once.code);
    assert_eq!(api.get(&preview).await.unwrap().status, 200);
    assert_eq!(api.follow(&once.code).await.unwrap().0, 302);
    assert_eq!(api.get(&preview).await.unwrap().status, 410, "a preview of a link that is used up");

    let other = format!("/{}", link.code);
    for to in [other.as_str(), "https://evil.example/", "//evil.example", "/_pages/sign-out"] {
        let form = format!("apiKey={}&to={to}", api.key());
        let answer = post(&format!("{url}/_pages/sign-in"), "", &form).await;
        assert_eq!(answer.headers()[LOCATION], "/manage", "{to}");
    }
}

/// A page for one person costs the process no more than the account of the key allows.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_of_many_fields_makes_no_page_of_many_megabytes() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let tags: Vec<String> = (0..100).map(|tag| format!("tag-{tag}")).collect();
    for link in 0..10 {
        let wish = serde_json::json!({ "longUrl": format!("https://example.com/{link}"), "tags": tags });
        resolver.api.create_with(&wish).await.unwrap();
    }
    let browser = Browser::open(&resolver.api).await;
    for page in ["manage", "manage/tags"] {
        let page = browser.page(&format!("/{page}?x={}&x=y", "~".repeat(15_000))).await;
        assert!(page.len() < 512 * 1024);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_keeps_what_was_chosen_and_offers_what_can_be_made() {
    let scratch = Scratch::new().unwrap();
    let logo = scratch.path().join("logo.svg");
    std::fs::write(&logo, "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1 1'/>").unwrap();
    let resolver = Resolver::embedded().unwrap().args(["--theme", &format!("logo={}", logo.display())]);
    let resolver = resolver.start().await.unwrap();
    let api = &resolver.api;
    let browser = Browser::open(api).await;
    let page = async |path: &str| browser.page(path).await;
    // A form without a filter names the period all the same.
    let empty = page("/manage?search=&created=all&visits=all").await;
    assert!(empty.contains("There are no links yet."), "{empty}");
    let all = "<a href=\"/manage\">Clear filters</a>";
    assert!(page("/manage?created=7d").await.contains(&format!("No link matches. {all}")));
    let trash = page("/manage?deleted=true&search=x").await;
    assert!(trash.contains("<a href=\"/manage?deleted=true\">Clear filters</a>"), "{trash}");
    for (path, teaches) in [
        ("/manage?deleted=true", "A link that you delete"),
        ("/manage/qr-sheet", "The QR code of each link"),
        ("/manage/targets", "Set a rule below"),
        ("/manage/reservations", "Reserve codes below"),
        ("/manage/audit", "Edit a link to see one."),
        ("/manage/audit?object=none", "No entry matches. <a href=\"/manage/audit\">Clear filters</a>"),
    ] {
        assert!(page(path).await.contains(teaches), "{path}");
    }

    for link in 0..4 {
        let tags: Vec<String> = (0..100).map(|tag| format!("tag-{link}-{tag:02}")).collect();
        let wish = json!({ "longUrl": format!("https://example.com/{link}"), "tags": tags });
        api.create_with(&wish).await.unwrap();
    }
    let option = |name: &str| format!("<option selected>{name}</option>");
    for tag in ["tag-0-00", "tag-3-99"] {
        let list = page(&format!("/manage?tag={tag}")).await;
        assert_eq!(list.matches(&option(tag)).count(), 1, "{tag}");
    }

    let code = api.create("https://example.com/").await.unwrap().code;
    let link = page(&format!("/manage/link/{code}")).await;
    assert!(link.contains("<option value=\"svg\" selected>") && link.contains("SVG only"), "{link}");
    assert!(link.contains("list=\"known-tags\" data-tags") && link.contains("<option value=\"tag-0-00\">"));
    assert!(link.contains("Times are those of "), "its fields name no zone: {link}");
    let picture = api.get(&format!("{code}/qr-code?format=svg&logo=on")).await.unwrap();
    assert_eq!(picture.status, 200);
}

/// They are ticked off by what exists, and gone with the second link.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_without_links_shows_the_first_steps() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let api = &resolver.api;
    let browser = Browser::open(api).await;
    // The number of steps that are done; `None` without steps.
    let done = async |path: &str| {
        let page = browser.page(path).await;
        let (_, tour) = page.split_once("<section class=\"tour\"")?;
        Some(tour.split("</section>").next().unwrap().matches("class=\"done\"").count())
    };
    assert_eq!(done("/manage").await, Some(0));
    assert_eq!(done("/manage?search=x").await, None);
    assert_eq!(done("/manage?deleted=true").await, None);
    let code = api.create("https://example.com/first").await.unwrap().code;
    assert_eq!(done("/manage").await, Some(1));
    assert_eq!(api.follow(&code).await.unwrap().0, 302);
    let is_shared = async || done("/manage").await == Some(2);
    wait::until(SOON, "the visit is counted", is_shared).await.unwrap();
    api.create("https://example.com/second").await.unwrap();
    assert_eq!(done("/manage").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_by_visits_of_a_period_has_all_links_of_a_tag() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let api = &resolver.api;
    let mut codes = Vec::new();
    for link in 0..12 {
        let wish = json!({ "longUrl": format!("https://example.com/{link}"), "tags": ["a-dozen"] });
        codes.push(api.create_with(&wish).await.unwrap().code);
    }
    let other = api.create("https://example.com/another").await.unwrap().code;
    for code in [&codes[3], &codes[7], &codes[3], &other] {
        assert_eq!(api.follow(code).await.unwrap().0, 302);
    }
    let browser = Browser::open(api).await;
    let page = async |number: u64| {
        let query = format!("tag=a-dozen&visits=7d&order=visits-DESC&count=10&page={number}");
        let page = browser.page(&format!("/manage?{query}")).await;
        assert!(page.contains(">12 links<"), "{page}");
        let rows = page.split("<th scope=\"row\">").skip(1);
        rows.filter_map(|row| row.split(['<', '>']).nth(2)).map(str::to_owned).collect::<Vec<_>>()
    };
    let is_sorted = async || page(1).await[..2] == [codes[3].as_str(), codes[7].as_str()];
    wait::until(SOON, "the visits are counted", is_sorted).await.unwrap();
    let mut found = [page(1).await, page(2).await].concat();
    found.sort_unstable();
    codes.sort_unstable();
    assert_eq!(found, codes);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_links_of_a_filter_are_downloaded_as_a_table() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let (url, api) = (resolver.api.url(), &resolver.api);
    for link in 0..24 {
        let tag = if link % 2 == 0 { "even" } else { "odd" };
        let long_url = format!("https://example.com/{link:02}");
        let wish = json!({ "longUrl": long_url, "title": "=1+1", "tags": [tag] });
        api.create_with(&wish).await.unwrap();
    }
    let cookie = sign_in(url, api.key()).await;
    let get = async |cookie: &str, query: &str| {
        let table = format!("{url}/manage/links.csv?{query}");
        client().get(table).header(COOKIE, cookie).send().await.unwrap()
    };
    // The table has the links of all pages.
    let answer = get(&cookie, "tag=even&page=2&count=10&order=longUrl-DESC").await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["content-disposition"], "attachment; filename=\"links.csv\"");
    let table = answer.text().await.unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 1 + 12, "{table}");
    assert!(lines[0].starts_with("shortCode,longUrl,title,"), "{table}");
    assert!(lines[1].contains(",https://example.com/22,'=1+1,,even,"), "{table}");
    assert_eq!(get(&cookie, "tag=none").await.text().await.unwrap().lines().count(), 1);
    assert_eq!(get("", "tag=even").await.status(), StatusCode::SEE_OTHER);
}
