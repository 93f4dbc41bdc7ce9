//! Rules with shares: each leads its percentage of the visitors, and a visitor to the same target.

use std::{net::Ipv4Addr, ops::Range};

use futures_util::future::join_all;
use harness::{Answer, Api, Cluster, wait};
use reqwest::{Method, Url};
use serde_json::{Value, json};

use crate::rest_calls::{SOON, done, get};

const VISITORS: u32 = 3_000;
const AT_ONCE: usize = 32;
/// The targets of the first rule and of the second one, and the link's own.
const TARGETS: [&str; 3] = ["https://a.example/", "https://b.example/", "https://own.example/"];
const AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";

async fn set(api: &Api, code: &str, shares: &[&str]) {
    let rule = |(target, share): (&&str, &&str)| {
        let condition = json!({ "type": "share", "matchValue": share });
        json!({ "longUrl": target, "conditions": [condition] })
    };
    let rules: Vec<Value> = TARGETS.iter().zip(shares).map(rule).collect();
    let path = format!("short-urls/{code}/redirect-rules");
    done(api, Method::POST, &path, Some(json!({ "redirectRules": rules }))).await;
}

fn address(visitor: u32) -> String {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 0).to_bits() + visitor).to_string()
}

fn place(location: Option<&str>) -> usize {
    TARGETS.iter().position(|target| Some(*target) == location).unwrap()
}

/// Returns the place in [`TARGETS`] of what each visitor is led to.
async fn follow(api: &Api, code: &str, visitors: Range<u32>) -> Vec<usize> {
    let visit = async |visitor: u32| {
        let request = api.http().get(format!("{}/{code}", api.url())).header("user-agent", AGENT);
        let answer = Answer::to(request.header("x-forwarded-for", address(visitor))).await.unwrap();
        place(answer.header("location"))
    };
    let visitors: Vec<u32> = visitors.collect();
    let mut led = Vec::new();
    for some in visitors.chunks(AT_ONCE) {
        led.extend(join_all(some.iter().map(|visitor| visit(*visitor))).await);
    }
    led
}

async fn explain(api: &Api, code: &str, visitor: u32) -> usize {
    let ip = address(visitor);
    let fields = [("url", code), ("ip", ip.as_str()), ("userAgent", AGENT)];
    let url = Url::parse_with_params(&format!("{}/rest/v3/explain", api.url()), fields).unwrap();
    let answer = Answer::to(api.http().get(url).header("X-Api-Key", api.key())).await.unwrap();
    place(answer.success().unwrap().json().unwrap()["answer"]["location"].as_str())
}

/// Returns the number of visits that the statistics have of each of the [`TARGETS`].
async fn counted(api: &Api, code: &str) -> [u64; 3] {
    let stats = get(api, &format!("stats?shortCode={code}&dimensions=rule")).await;
    let values = stats["dimensions"]["rule"].as_array().unwrap();
    let total = |rule: &str| values.iter().find(|one| one["value"] == rule)?["total"].as_u64();
    ["1", "2", ""].map(|rule| total(rule).unwrap_or(0))
}

#[tokio::test(flavor = "multi_thread")]
async fn visitors_are_divided_and_each_resolver_leads_a_visitor_to_the_same_target() {
    let trusted = ["--trusted-proxies", "127.0.0.0/8"];
    let cluster = Cluster::builder().resolvers(2).resolver_args(trusted).start().await.unwrap();
    let [one, other] = [0, 1].map(|index| cluster.resolvers[index].api.clone());
    let code = one.create(TARGETS[2]).await.unwrap().code;
    set(&one, &code, &["30", "20"]).await;
    let led = follow(&one, &code, 0..VISITORS).await;
    // Five standard deviations.
    for (target, expected, most) in [(0, 900, 125), (1, 600, 110), (2, 1_500, 137)] {
        let count = led.iter().filter(|one| **one == target).count();
        assert!(count.abs_diff(expected) < most, "{count} visitors of {}", TARGETS[target]);
    }
    let again = follow(&one, &code, 0..200).await;
    assert_eq!(again, led[..200]);
    assert_eq!(follow(&other, &code, 0..200).await, again);
    for visitor in 0..50 {
        assert_eq!(explain(&other, &code, visitor).await, again[usize::try_from(visitor).unwrap()]);
    }
    let visits = led.iter().chain(&again).chain(&again);
    let mut expected = [0_u64; 3];
    visits.for_each(|target| expected[*target] += 1);
    let is_counted = async || counted(&one, &code).await == expected;
    wait::until(SOON, "the visits of each target are counted", is_counted).await.unwrap();

    // The first share takes over the second one and keeps its visitors.
    set(&one, &code, &["50"]).await;
    let expected: Vec<usize> = again.iter().map(|target| if *target == 1 { 0 } else { *target }).collect();
    assert_eq!(follow(&one, &code, 0..200).await, expected);
}
