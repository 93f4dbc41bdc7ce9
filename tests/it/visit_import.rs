//! `resolver import visits`: single visits of a running server and of files, with what their
//! statistics tell, each once, however often an import is killed and repeated.

use std::{fmt::Write as _, time::Duration};

use harness::{Api, Clickhouse, Launch, Postgres, Resolver, Scratch, binaries, resolver, secret, wait};
use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::{
    rest_calls::{Alone, call, get},
    visits::{FIREFOX, client},
};

const SOON: Duration = Duration::from_secs(60);
const RUN_WITHIN: Duration = Duration::from_secs(300);
const SAFARI: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1";
const BOT: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";

/// A database that visits are imported into, beside its server.
struct Target {
    scratch: Scratch,
    flags: Vec<String>,
    postgres: Option<Postgres>,
    clickhouse: Option<Clickhouse>,
    server: Resolver,
}

impl Target {
    async fn sqlite() -> Self {
        let scratch = Scratch::new().unwrap();
        let database = format!("sqlite:{}/data/links.db", scratch.path().display());
        Self::start(scratch, vec!["--database".to_owned(), database], None, None).await
    }

    async fn postgres() -> Self {
        let scratch = Scratch::new().unwrap();
        let (postgres, flags) = Self::migrated(&scratch).await;
        Self::start(scratch, flags, Some(postgres), None).await
    }

    async fn clickhouse() -> Self {
        let scratch = Scratch::new().unwrap();
        let (postgres, mut flags) = Self::migrated(&scratch).await;
        let clickhouse = Clickhouse::start(&scratch).await.unwrap();
        flags.extend(["--visits-store".to_owned(), clickhouse.url("links")]);
        Self::start(scratch, flags, Some(postgres), Some(clickhouse)).await
    }

    async fn migrated(scratch: &Scratch) -> (Postgres, Vec<String>) {
        let postgres = Postgres::builder().scratch(scratch).start().await.unwrap();
        resolver::migrate(scratch, &postgres.url()).await.unwrap().success().unwrap();
        let flags = vec!["--database".to_owned(), postgres.url()];
        (postgres, flags)
    }

    async fn start(
        scratch: Scratch,
        flags: Vec<String>,
        postgres: Option<Postgres>,
        clickhouse: Option<Clickhouse>,
    ) -> Self {
        let builder = Resolver::builder(&scratch, "target", &secret::random_hex().unwrap()).unwrap();
        let server = builder.args(flags.iter().cloned()).start().await.unwrap();
        Self { scratch, flags, postgres, clickhouse, server }
    }

    async fn launch(&self, args: &[&str]) -> Launch {
        let launch = Launch::new(&self.scratch, "import", binaries::resolver().await.unwrap());
        launch.arg("import").args(args).args(&self.flags)
    }

    /// Imports, and returns the exit code and the summary.
    async fn import(&self, args: &[&str]) -> (Option<i32>, Value) {
        let finished = self.launch(&[args, &["--json"]].concat()).await.run(RUN_WITHIN).await.unwrap();
        let told = serde_json::from_str(&finished.stdout);
        let told = told.unwrap_or_else(|_| panic!("{:?}: {}", finished.code(), finished.stderr));
        (finished.code(), told)
    }

    /// Returns a number of the database of visits.
    async fn number(&self, query: &str) -> i64 {
        if let Some(postgres) = &self.postgres {
            let query = format!("SELECT CAST(({query}) AS bigint)");
            return postgres.client().await.unwrap().query_one(&*query, &[]).await.unwrap().get(0);
        }
        let file = rusqlite::Connection::open(self.scratch.path().join("data/visits.db")).unwrap();
        file.busy_timeout(SOON).unwrap();
        file.query_row(query, [], |row| row.get(0)).unwrap()
    }

    /// Waits until the server has noted which rows it keeps.
    async fn has_begun_upkeep(&self) {
        let noted = match self.postgres {
            Some(_) => "SELECT coalesce(max(position), 0) FROM chore WHERE name = 'upkeep of visits'",
            None => "SELECT rows_from FROM visit_upkeep",
        };
        wait::until(SOON, "the upkeep of visits has begun", async || self.number(noted).await > 0)
            .await
            .unwrap();
    }

    async fn position(&self) -> i64 {
        self.number("SELECT coalesce(sum(position), 0) FROM visit_producer WHERE holder = 'import of visits'")
            .await
    }

    /// Waits until the server has added the visits of all batches to the links.
    async fn has_added_visits(&self) {
        let waiting = "SELECT count(*) FROM visit_link_batch";
        wait::until(SOON, "visits are added to links", async || self.number(waiting).await == 0)
            .await
            .unwrap();
    }

    async fn must_total(&self, path: &str, expected: u64) {
        let total = async || get(&self.server.api, path).await["visitsSummary"]["total"] == expected;
        wait::until(SOON, &format!("{path} has {expected} visits"), total).await.unwrap();
    }
}

/// Returns what an import has told of visits: stored, of earlier runs, and refused. They are all
/// that it read.
fn counts(told: &Value) -> [u64; 3] {
    let number = |name: &str| told[name].as_u64().unwrap_or_else(|| panic!("no {name} in {told}"));
    let counts = ["stored", "earlierRuns", "refused"].map(number);
    assert_eq!(number("read"), counts.iter().sum::<u64>(), "{told}");
    counts
}

/// Links of the source by their paths, each with a domain if it has one of its own.
const LINKS: [(&str, Option<&str>); 3] = [("a", None), ("deep/b", None), ("a", Some("other.example"))];

fn path(code: &str, below: &str, domain: Option<&str>) -> String {
    let domain = domain.map_or_else(String::new, |domain| format!("?domain={domain}"));
    format!("short-urls/{code}{below}{domain}")
}

async fn visit(api: &Api, (code, domain): (&str, Option<&str>), number: usize) {
    let request = client().get(format!("{}/{code}", api.url()));
    let request = request.header("User-Agent", [FIREFOX, SAFARI, FIREFOX, BOT][number % 4]);
    let request = request.header("X-Country", ["DE", "AT", ""][number % 3]);
    let request = match number % 2 {
        0 => request.header("Referer", format!("https://www.example.com/{number}")),
        _ => request,
    };
    let request = domain.into_iter().fold(request, |request, domain| request.header("Host", domain));
    assert!(request.send().await.unwrap().status().is_redirection(), "{code} {domain:?}");
}

/// Returns what statistics tell of a link: its visits, its days and its dimensions.
async fn statistics(api: &Api, (code, domain): (&str, Option<&str>)) -> Value {
    let query = format!("shortCode={}&domain={}", code.replace('/', "%2F"), domain.unwrap_or("DEFAULT"));
    let stats = get(api, &format!("stats?{query}&interval=day&timeZone=UTC&top=100")).await;
    let days = stats["series"].as_array().unwrap_or_else(|| panic!("{stats}"));
    let days: Vec<&Value> = days.iter().filter(|day| day["total"] != 0).collect();
    json!({ "visits": stats["visits"], "days": days, "dimensions": stats["dimensions"] })
}

/// Returns the single visits of a link in any order, with what an import takes of them.
async fn listed(api: &Api, (code, domain): (&str, Option<&str>)) -> Vec<String> {
    let page = get(api, &path(code, "/visits", domain)).await;
    let visits = page["visits"]["data"].as_array().unwrap_or_else(|| panic!("{page}"));
    let taken = ["date", "referer", "userAgent", "visitLocation", "potentialBot"];
    let of_visit = |visit: &Value| taken.map(|name| visit[name].to_string()).join(" ");
    let mut visits: Vec<String> = visits.iter().map(of_visit).collect();
    visits.sort_unstable();
    visits
}

#[tokio::test(flavor = "multi_thread")]
async fn visits_of_a_running_server_come_along_with_their_statistics_to_sqlite() {
    visits_come_along(Target::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn visits_of_a_running_server_come_along_with_their_statistics_to_postgres() {
    visits_come_along(Target::postgres().await).await;
}

async fn visits_come_along(target: Target) {
    target.has_begun_upkeep().await;
    let source =
        Alone::start(&["--proxy-headers", "country=X-Country", "--trusted-proxies", "127.0.0.0/8"]).await;
    let source = source.api();
    for (code, domain) in LINKS {
        let mut link = json!({ "longUrl": "https://example.com/", "customSlug": code });
        if let Some(domain) = domain {
            link["domain"] = domain.into();
        }
        source.create_with(&link).await.unwrap();
    }
    for number in 0..60 {
        visit(source, LINKS[number % 5 % 3], number).await;
    }
    must_count(source, &[24, 24, 12]).await;
    let links = get(source, "short-urls").await.to_string();
    let links = target.scratch.file("links.json", &links).unwrap().display().to_string();
    let (code, told) = target.import(&["--from", "shlink", &links]).await;
    assert_eq!((code, &told["stored"]), (Some(0), &json!(3)), "{told}");
    target.must_total(&path("a", "", None), 24).await;

    let live = ["visits", "--url", source.url(), "--source-key", source.key()];
    for expected in [[60, 0, 0], [0, 60, 0]] {
        let (code, told) = target.import(&live).await;
        assert_eq!((code, counts(&told)), (Some(0), expected), "{told}");
        same(source, &target).await;
    }

    let late = json!({ "longUrl": "https://example.com/", "customSlug": "late" });
    source.create_with(&late).await.unwrap();
    for number in 0..4 {
        visit(source, if number < 3 { LINKS[0] } else { ("late", None) }, number).await;
    }
    must_count(source, &[27, 24, 12]).await;
    let late = async || get(source, "short-urls/late").await["visitsSummary"]["total"] == 1;
    wait::until(SOON, "the last visit is counted", late).await.unwrap();
    let (code, told) = target.import(&live).await;
    assert_eq!((code, counts(&told)), (Some(65), [3, 60, 1]), "{told}");
    assert!(told["reasons"][0].as_str().unwrap().starts_with("late: no link"), "{told}");
    same(source, &target).await;
}

async fn must_count(source: &Api, totals: &[u64; 3]) {
    for ((code, domain), total) in LINKS.into_iter().zip(totals) {
        let counted = async || {
            let link = get(source, &path(code, "", domain)).await;
            let listed = listed(source, (code, domain)).await.len() as u64;
            link["visitsSummary"]["total"] == *total && listed == *total
        };
        wait::until(SOON, "the visits are counted", counted).await.unwrap();
    }
}

/// Compares statistics, lists and totals of both servers.
async fn same(source: &Api, target: &Target) {
    let api = &target.server.api;
    target.has_added_visits().await;
    for (code, domain) in LINKS {
        let link = (code, domain);
        let are_same = async || statistics(api, link).await == statistics(source, link).await;
        // Both are shown below if they are not.
        let _ = wait::until(SOON, "the statistics are the same", are_same).await;
        assert_eq!(statistics(api, link).await, statistics(source, link).await, "{link:?}");
        assert_eq!(listed(api, link).await, listed(source, link).await, "{link:?}");
        let total = get(source, &path(code, "", domain)).await["visitsSummary"]["total"].as_u64().unwrap();
        target.must_total(&path(code, "", domain), total).await;
    }
    let agents = statistics(api, LINKS[0]).await["dimensions"].clone();
    assert!(agents["browser"].to_string().contains("Firefox"), "{agents}");
    assert!(agents["country"].to_string().contains("DE"), "{agents}");
}

const VISITS: usize = 30_000;
const CODES: usize = 10;

/// Returns lines of JSON: every tenth visit is older than single visits are kept, and every
/// thousandth has a code that no link has, or no time.
fn lines(now: Timestamp) -> String {
    let (agents, mut text) = ([FIREFOX, SAFARI, BOT], String::new());
    for number in 0..VISITS {
        let recent = now - SignedDuration::from_secs(60 + i64::try_from(number).unwrap());
        let date = match number % 1_000 {
            1 => "soon".to_owned(),
            rest if rest % 10 == 5 => format!("2024-02-{:02}T10:00:00Z", 1 + number % 28),
            _ => recent.to_string(),
        };
        let code = if number % 1_000 == 2 { "nobody".to_owned() } else { format!("k{}", number % CODES) };
        let visit = json!({
            "shortCode": code, "date": date, "userAgent": agents[number % 3],
            "referer": format!("https://example.com/{}", number % 100),
            "visitLocation": { "countryCode": "DE", "countryName": "Germany", "cityName": "Berlin" },
        });
        writeln!(text, "{visit}").unwrap();
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_import_goes_on_and_counts_each_visit_once_on_sqlite() {
    import_is_killed(Target::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_import_goes_on_and_counts_each_visit_once_on_postgres() {
    import_is_killed(Target::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_import_goes_on_and_counts_each_visit_once_beside_clickhouse() {
    import_is_killed(Target::clickhouse().await).await;
}

async fn import_is_killed(target: Target) {
    target.has_begun_upkeep().await;
    let api = &target.server.api;
    for number in 0..CODES {
        let link = json!({ "longUrl": "https://example.com/", "customSlug": format!("k{number}") });
        api.create_with(&link).await.unwrap();
    }
    let file = target.scratch.file("visits.ndjson", &lines(Timestamp::now())).unwrap();
    let file = file.display().to_string();
    let import = ["visits", &*file];
    let mut killed = target.launch(&import).await.spawn().unwrap();
    wait::until(RUN_WITHIN, "some visits are stored", async || target.position().await > 0).await.unwrap();
    killed.kill_now().unwrap();
    let before = u64::try_from(target.position().await).unwrap();
    assert!(before < VISITS as u64, "it was killed in the middle");

    let (code, told) = target.import(&import).await;
    let [stored, earlier, refused] = counts(&told);
    assert_eq!((code, stored + earlier + refused), (Some(65), VISITS as u64), "{told}");
    assert!(earlier >= before, "{told}");
    let (_, again) = target.import(&import).await;
    assert_eq!(counts(&again), [0, VISITS as u64, 0], "{again}");

    // Less those that were refused.
    let each = (VISITS / CODES) as u64;
    let refused_of = |number: usize| if matches!(number, 1 | 2) { (VISITS / 1_000) as u64 } else { 0 };
    target.has_added_visits().await;
    let mut listed = 0;
    for number in 0..CODES {
        let (path, expected) = (format!("short-urls/k{number}"), each - refused_of(number));
        target.must_total(&path, expected).await;
        let stats = get(api, &format!("stats?shortCode=k{number}&startDate=2024-01-01")).await;
        assert_eq!(stats["visits"]["total"], expected, "{stats}");
        assert_eq!(stats["visits"]["bots"], bots_of(number), "{stats}");
        let range = "startDate=2024-02-01&endDate=2024-02-29";
        let old = get(api, &format!("stats?shortCode=k{number}&{range}")).await;
        assert_eq!(old["visits"]["total"], if number == 5 { each } else { 0 }, "{old}");
        let page = get(api, &format!("{path}/visits?itemsPerPage=1")).await;
        let expected = if number == 5 { 0 } else { expected };
        assert_eq!(page["visits"]["pagination"]["totalItems"], expected, "{page}");
        listed += expected;
    }
    let rows = match &target.clickhouse {
        Some(clickhouse) => clickhouse.query("SELECT count() FROM links.visit").await.unwrap(),
        None => target.number("SELECT count(*) FROM visit").await.to_string(),
    };
    assert_eq!(rows.trim(), listed.to_string(), "no row is doubled or missing");
}

/// Returns how many visits of a link of [`lines`] bots have made.
fn bots_of(code: usize) -> u64 {
    let is_counted = |number: &usize| !matches!(number % 1_000, 1 | 2);
    let of_link = (code..VISITS).step_by(CODES).filter(is_counted);
    of_link.filter(|number| number % 3 == 2).count() as u64
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_deleted_here_does_not_come_back_and_counts_give_way_to_single_visits() {
    let target = Target::sqlite().await;
    let api = &target.server.api;
    let links = "code,url,visits\nkept,https://example.com/,5\ndeleted,https://example.com/,5\n";
    let links = target.scratch.file("links.csv", links).unwrap().display().to_string();
    assert_eq!(target.import(&["--from", "csv", &links]).await.0, Some(0));
    call(api, Method::DELETE, "short-urls/deleted/visits", None).await.success().unwrap();
    target.must_total("short-urls/deleted", 0).await;
    let at = Timestamp::now() - SignedDuration::from_hours(30);
    let mut table = "date,shortCode,userAgent,countryCode\n".to_owned();
    for code in ["kept", "deleted", "kept"] {
        writeln!(table, "{at},{code},\"{FIREFOX}\",DE").unwrap();
    }
    let table = target.scratch.file("visits.csv", &table).unwrap().display().to_string();
    let (code, told) = target.import(&["visits", &table]).await;
    assert_eq!((code, counts(&told)), (Some(65), [2, 0, 1]), "{told}");
    assert!(told["reasons"][0].as_str().unwrap().starts_with("item 2: "), "{told}");
    let stats = async || get(api, "stats?shortCode=kept&startDate=2024-01-01").await["visits"]["total"] == 2;
    wait::until(SOON, "the single visits are counted", stats).await.unwrap();
    target.has_added_visits().await;
    // Two of the five that were counted are the single ones.
    target.must_total("short-urls/kept", 5).await;
    target.must_total("short-urls/deleted", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clicks_of_dub_count_by_the_code_of_the_country_that_they_name() {
    let (target, link) = (Target::sqlite().await, ("shop", Some("go.example")));
    let api = &target.server.api;
    let wish = json!({ "longUrl": "https://example.com/", "customSlug": link.0, "domain": link.1 });
    api.create_with(&wish).await.unwrap();
    let at = Timestamp::now() - SignedDuration::from_hours(30);
    let mut table = "Date,Event,Link,Country,Referrer\n".to_owned();
    for country in ["Turkey", "Germany"] {
        writeln!(table, "{at},link,go.example/shop,{country},(direct)").unwrap();
    }
    let table = target.scratch.file("events.csv", &table).unwrap().display().to_string();
    let (code, told) = target.import(&["visits", &table]).await;
    assert_eq!((code, counts(&told)), (Some(0), [2, 0, 0]), "{told}");
    let are_counted = async || {
        let countries = statistics(api, link).await["dimensions"]["country"].to_string();
        countries.contains("TR") && countries.contains("DE")
    };
    wait::until(SOON, "the countries are counted", are_counted).await.unwrap();
}

/// Serves lists of links and of visits that have no end: there is always another page.
async fn serve_without_end(code: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = vec![0; 4_096];
            let length = stream.read(&mut head).await.unwrap_or_default();
            let head = String::from_utf8_lossy(&head[..length]).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default();
            let page: Option<u64> =
                path.split(['?', '&']).find_map(|pair| pair.strip_prefix("page=")?.parse().ok());
            let body = without_end(code, path, page.unwrap_or(1)).to_string();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
            let answer = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
            stream.write_all(answer.as_bytes()).await.ok();
        }
    });
    url
}

/// Returns a page of the list that a path names. The oldest visit is always on a later page.
fn without_end(code: &str, path: &str, page: u64) -> Value {
    if path.contains("short-urls/") {
        let visits = vec![json!({ "date": "2026-01-01T00:00:00Z" }); 1_000];
        json!({ "visits": { "data": visits, "pagination": { "totalItems": 1_000 * page + 1 } } })
    } else if path.contains("short-urls?") {
        let links = if page == 1 { json!([{ "shortCode": code }]) } else { json!([]) };
        json!({ "shortUrls": { "data": links, "pagination": { "totalItems": u64::MAX } } })
    } else {
        json!({ "visits": { "nonOrphanVisits": { "total": 1 } } })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_a_last_page_is_left() {
    let target = Target::sqlite().await;
    let wish = json!({ "longUrl": "https://example.com/", "customSlug": "here" });
    target.server.api.create_with(&wish).await.unwrap();
    for (code, exit) in [("here", 69), ("not-here", 65)] {
        let url = serve_without_end(code).await;
        let args = ["visits", "--url", &url, "--source-key", "k"];
        let finished = target.launch(&args).await.run(RUN_WITHIN).await.unwrap();
        assert_eq!(finished.code(), Some(exit), "{finished:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_links_that_are_not_found_here_is_not_begun() {
    let target = Target::sqlite().await;
    let link = json!({ "longUrl": "https://example.com/", "customSlug": "known" });
    target.server.api.create_with(&link).await.unwrap();
    let at = Timestamp::now() - SignedDuration::from_hours(30);
    let table = format!("date,visitedUrl\n{at},https://old.example/known\n{at},https://old.example/other\n");
    let table = target.scratch.file("visits.csv", &table).unwrap().display().to_string();
    let finished = target.launch(&["visits", &table]).await.run(RUN_WITHIN).await.unwrap();
    assert_eq!(finished.code(), Some(64), "{}", finished.stderr);
    assert!(finished.stderr.contains("--default-domain"), "{}", finished.stderr);
    let named = ["visits", "--default-domain", "old.example", &*table];
    let (code, told) = target.import(&named).await;
    assert_eq!((code, counts(&told)), (Some(65), [1, 0, 1]), "{told}");
}
