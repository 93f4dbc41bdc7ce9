//! Custom slugs in competition with each other and with the minter, and as other resolvers see
//! them.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use harness::{Answer, Api, Cluster, load, wait};
use serde_json::{Value, json};
use tokio::task::JoinSet;

const SOON: Duration = Duration::from_secs(30);
/// How soon a change shows on another resolver, with a margin for a busy machine.
const TOLD_WITHIN: Duration = Duration::from_secs(5);
const CLIENTS: usize = 64;

async fn pick(api: &Api, slug: &str, url: &str) -> Answer {
    api.try_create_with(&json!({ "longUrl": url, "customSlug": slug })).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_sixty_four_who_take_a_slug_at_once_one_has_it_and_the_others_are_told_so() {
    let cluster = Cluster::builder().resolvers(2).start().await.unwrap();
    // A mintable slug and one that is not mintable.
    for slug in ["abc123", "summer/2026"] {
        let mut clients = JoinSet::new();
        for client in 0..CLIENTS {
            let api = cluster.resolvers[client % 2].api.clone();
            clients.spawn(async move {
                let url = load::next_long_url();
                (pick(&api, slug, &url).await, url)
            });
        }
        let answers = clients.join_all().await;
        let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(answer, _)| answer.status == 200);
        assert_eq!(won.len(), 1, "{won:?}");
        for (answer, _) in &lost {
            assert_eq!(answer.status, 400, "{answer:?}");
            assert_eq!(answer.json().unwrap()["type"], "https://shlink.io/api/error/non-unique-slug");
        }
        for resolver in &cluster.resolvers {
            assert_eq!(resolver.api.follow(slug).await.unwrap(), (302, Some(won[0].1.clone())), "{slug}");
        }
    }
    let sql = cluster.postgres.client().await.unwrap();
    let rows: i64 = sql.query_one("SELECT count(*) FROM link", &[]).await.unwrap().get(0);
    assert_eq!(rows, 2, "one row for each slug");
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_who_ask_for_the_same_link_at_once_get_one_code() {
    let cluster = Cluster::builder().resolvers(2).start().await.unwrap();
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let api = cluster.resolvers[client % 2].api.clone();
        let wish = json!({ "longUrl": "https://example.com/same", "findIfExists": true, "tags": ["t"] });
        clients.spawn(async move { api.create_with(&wish).await.unwrap().code });
    }
    let codes = clients.join_all().await;
    assert!(codes.iter().all(|code| *code == codes[0]), "{codes:?}");
    let sql = cluster.postgres.client().await.unwrap();
    let rows: i64 = sql.query_one("SELECT count(*) FROM link", &[]).await.unwrap().get(0);
    assert_eq!(rows, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_ten_thousand_visits_at_once_as_many_are_redirected_as_the_limit_says() {
    const LIMIT: usize = 100;
    const VISITS: usize = 10_000;
    let cluster = Cluster::builder().resolvers(2).start().await.unwrap();
    let wish = json!({ "longUrl": "https://example.com/limited", "maxVisits": LIMIT });
    let code = cluster.resolvers[0].api.create_with(&wish).await.unwrap().code;
    let mut visitors = JoinSet::new();
    for visitor in 0..200 {
        let (api, code) = (cluster.resolvers[visitor % 2].api.clone(), code.clone());
        visitors.spawn(async move {
            let mut redirected = 0;
            for _ in 0..VISITS / 200 {
                match api.follow(&code).await.unwrap().0 {
                    302 => redirected += 1,
                    404 => {}
                    other => panic!("{other}"),
                }
            }
            redirected
        });
    }
    assert_eq!(visitors.join_all().await.into_iter().sum::<usize>(), LIMIT);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picked_code_is_known_to_every_resolver_when_its_creator_is_answered() {
    let cluster = Cluster::builder().resolvers(2).start().await.unwrap();
    for n in 0..20 {
        let (slug, url) = (format!("pick{n:02}"), load::next_long_url());
        let [one, other] = [&cluster.resolvers[n % 2].api, &cluster.resolvers[(n + 1) % 2].api];
        assert_eq!(other.follow(&slug).await.unwrap().0, 404, "nobody has it yet");
        assert_eq!(pick(one, &slug, &url).await.status, 200);
        assert_eq!(other.follow(&slug).await.unwrap(), (302, Some(url)), "{slug}");
    }
    let mut cluster = cluster;
    cluster.resolvers[0].restart().await.unwrap();
    for n in 0..20 {
        let found = cluster.resolvers[0].api.follow(&format!("pick{n:02}")).await.unwrap().0;
        assert_eq!(found, 302, "a resolver that starts knows what was picked before");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn small_keyspaces_are_filled_to_the_last_code_while_people_pick_from_them_and_no_two_links_share_one()
{
    for (len, capacity) in [(1, 62_usize), (2, 62 * 62)] {
        let cluster = Cluster::builder().resolvers(2).keyspaces(&format!("small={len}:0-9A-Za-z"));
        let cluster = cluster.issuer_args(["--block-min", "10", "--block-max", "100"]).start().await.unwrap();
        let (is_full, mut clients) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
        for client in 0..32 {
            let (api, is_full) = (cluster.resolvers[client / 2 % 2].api.clone(), Arc::clone(&is_full));
            if client % 2 == 0 {
                clients.spawn(mint_until_full(api, is_full));
            } else {
                clients.spawn(pick_until_full(api, is_full, len, client));
            }
        }
        let taken: Vec<(String, String)> = clients.join_all().await.into_iter().flatten().collect();
        let links: HashMap<&str, &str> =
            taken.iter().map(|(code, url)| (code.as_str(), url.as_str())).collect();
        assert_eq!(links.len(), taken.len(), "no code was given twice");
        assert_eq!(links.len(), capacity, "and none is left");
        let (api, other) = (&cluster.resolvers[0].api, &cluster.resolvers[1].api);
        for (code, url) in &taken {
            let followed = (302, Some(url.clone()));
            assert_eq!(api.follow(code).await.unwrap(), followed, "{code}");
            assert_eq!(other.follow(code).await.unwrap(), followed, "{code}");
        }
    }
}

async fn mint_until_full(api: Api, is_full: Arc<AtomicBool>) -> Vec<(String, String)> {
    let mut taken = Vec::new();
    loop {
        let url = load::next_long_url();
        let answer = api.try_create(&url).await.unwrap();
        match answer.status {
            200 => taken.push((code_of(&answer), url)),
            507 => {
                is_full.store(true, Ordering::Relaxed);
                return taken;
            }
            // The next block is on its way.
            503 => {}
            other => panic!("{other}: {answer:?}"),
        }
    }
}

async fn pick_until_full(api: Api, is_full: Arc<AtomicBool>, len: u32, seed: usize) -> Vec<(String, String)> {
    const ALPHABET: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let (mut taken, all) = (Vec::new(), ALPHABET.len().pow(len));
    let mut place = seed * 7_919;
    while !is_full.load(Ordering::Relaxed) {
        place = (place + 6_007) % all;
        let mut rest = place;
        let slug: String = (0..len)
            .map(|_| {
                let letter = ALPHABET[rest % ALPHABET.len()];
                rest /= ALPHABET.len();
                char::from(letter)
            })
            .collect();
        let url = load::next_long_url();
        let answer = pick(&api, &slug, &url).await;
        match answer.status {
            200 => taken.push((slug, url)),
            400 => assert_eq!(answer.json().unwrap()["customSlug"], slug),
            other => panic!("{other}: {answer:?}"),
        }
    }
    taken
}

fn code_of(answer: &Answer) -> String {
    answer.json().unwrap()["shortCode"].as_str().unwrap().to_owned()
}

mod long {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn two_hundred_thousand_codes_are_filled_by_bulk_calls_while_people_pick_from_them() {
        const CAPACITY: usize = 62 * 62 * 62;
        const CALL: usize = 50_000;
        let cluster = Cluster::builder().resolvers(2).keyspaces("small=3:0-9A-Za-z").start().await.unwrap();
        let is_full = Arc::new(AtomicBool::new(false));
        let mut pickers = JoinSet::new();
        for client in 0..32 {
            let (api, is_full) = (cluster.resolvers[client % 2].api.clone(), Arc::clone(&is_full));
            pickers.spawn(pick_until_full(api, is_full, 3, client));
        }
        let mut minters = JoinSet::new();
        for resolver in &cluster.resolvers {
            let api = resolver.api.clone();
            minters.spawn(async move {
                let mut taken = Vec::new();
                loop {
                    let urls: Vec<String> = (0..CALL).map(|_| load::next_long_url()).collect();
                    let minted = mint_many(&api, urls).await;
                    taken.extend(minted.created);
                    if minted.is_over {
                        return taken;
                    }
                }
            });
        }
        let mut taken: Vec<(String, String)> = minters.join_all().await.into_iter().flatten().collect();
        is_full.store(true, Ordering::Relaxed);
        let picked = pickers.join_all().await.into_iter().flatten().collect::<Vec<_>>();
        assert!(!picked.is_empty());
        taken.extend(picked);
        let links: HashMap<String, String> = taken.iter().cloned().collect();
        assert_eq!((taken.len(), links.len()), (CAPACITY, CAPACITY), "each code was given once");
        let mut followers = JoinSet::new();
        for part in taken.chunks(CAPACITY / 32 + 1) {
            let (api, part) = (cluster.resolvers[0].api.clone(), part.to_vec());
            followers.spawn(async move {
                for (code, url) in part {
                    assert_eq!(api.follow(&code).await.unwrap(), (302, Some(url)), "{code}");
                }
            });
        }
        followers.join_all().await;
    }
}

/// The outcome of a bulk call.
struct Minted {
    /// The created codes with their URLs.
    created: Vec<(String, String)>,
    /// Whether a result said that every code is taken.
    is_over: bool,
}

async fn mint_many(api: &Api, urls: Vec<String>) -> Minted {
    let body: String = urls.iter().map(|url| json!({ "longUrl": url }).to_string() + "\n").collect();
    let request = api.http().post(format!("{}/rest/v3/short-urls/bulk", api.url()));
    // On a busy machine a call may take as long as the resolver allows, ten minutes.
    let request = request.header("X-Api-Key", api.key()).timeout(Duration::from_secs(600));
    let answer = Answer::to(request.body(body)).await.unwrap();
    let results = answer.success().unwrap();
    let mut minted = Minted { created: Vec::new(), is_over: false };
    for (line, url) in results.body.lines().zip(urls) {
        let result: Value = serde_json::from_str(line).unwrap();
        match result["result"].as_str().unwrap() {
            "created" => minted.created.push((result["shortCode"].as_str().unwrap().to_owned(), url)),
            "exhausted" => minted.is_over = true,
            // The last codes are in the other resolver's hands.
            "unavailable" => {}
            other => panic!("{other}: {line}"),
        }
    }
    minted
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_and_deletes_on_one_resolver_show_on_another_though_the_code_is_asked_for_all_the_time() {
    let cluster = Cluster::builder().resolvers(2).start().await.unwrap();
    let (one, other) = (cluster.resolvers[0].api.clone(), cluster.resolvers[1].api.clone());
    let minted = one.create("https://example.com/0").await.unwrap().code;
    assert_eq!(pick(&one, "campaign/1", "https://example.com/0").await.status, 200);
    for code in [minted.as_str(), "campaign/1"] {
        let stop = Arc::new(AtomicBool::new(false));
        let hammering = tokio::spawn({
            let (other, code, stop) = (other.clone(), code.to_owned(), Arc::clone(&stop));
            async move {
                let mut counts = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    match other.follow(&code).await.unwrap().0 {
                        302 => counts += 1,
                        // The deletion shows. Asked on and on for a code that leads nowhere, a
                        // resolver soon answers 429.
                        404 => break,
                        status => panic!("{status} for {code}"),
                    }
                }
                counts
            }
        });
        let link = format!("{}/rest/v3/short-urls/{code}", one.url());
        for n in 1..=5 {
            let url = format!("https://example.com/{n}");
            let edit =
                one.http().patch(&link).header("X-Api-Key", one.key()).json(&json!({ "longUrl": url }));
            let edited: Value = Answer::to(edit).await.unwrap().success().unwrap().json().unwrap();
            assert_eq!(edited["longUrl"], url);
            assert_eq!(one.follow(code).await.unwrap(), (302, Some(url.clone())), "its own is right at once");
            let told = async || other.follow(code).await.unwrap() == (302, Some(url.clone()));
            wait::until(TOLD_WITHIN, "the edit shows", told).await.unwrap();
        }
        let delete = one.http().delete(&link).header("X-Api-Key", one.key());
        assert_eq!(Answer::to(delete).await.unwrap().status, 204);
        assert_eq!(one.follow(code).await.unwrap().0, 404);
        let gone = async || other.follow(code).await.unwrap().0 == 404;
        wait::until(TOLD_WITHIN, "the delete shows", gone).await.unwrap();
        stop.store(true, Ordering::Relaxed);
        assert!(hammering.await.unwrap() > 0);
    }
    cluster.wait_leader(SOON).await.unwrap();
}
