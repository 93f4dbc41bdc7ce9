//! The programs in `resolver/examples/`, run as their guide says.

use std::{path::Path, time::Duration};

use harness::{Launch, ROOT, Resolver, Scratch, net::free_addr, wait};
use serde_json::json;

use crate::{
    k8s::in_venv,
    rest_calls::{count, done},
};

const SOON: Duration = Duration::from_secs(60);
/// Lines of the list: more than one stream has under way.
const LINES: usize = 300;

fn example(name: &str) -> std::path::PathBuf {
    Path::new(ROOT).join("resolver/examples").join(name)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_urls_is_shortened_over_grpc_and_repeated_under_its_name_creates_no_more() {
    let (scratch, address) = (Scratch::new().unwrap(), free_addr().unwrap().to_string());
    let builder = Resolver::embedded().unwrap().args(["--grpc-listen", &address]);
    let resolver = builder.start().await.unwrap();
    let generated = scratch.folder("generated").unwrap();
    let protoc = Launch::new(&scratch, "protoc", "protoc").arg(format!("--proto_path={ROOT}/proto"));
    let protoc = protoc.arg(format!("--python_out={}", generated.display()));
    protoc.arg("shortmint/links/v1/links.proto").run(SOON).await.unwrap().success().unwrap();
    let lines: String = (0..LINES).map(|number| format!("https://example.com/{number}\n")).collect();
    let list = scratch.file("urls.txt", &lines).unwrap();
    let wrong = scratch.file("wrong.txt", "https://example.com/0\nftp://example.com\n").unwrap();
    let run = async |name: &str, list: &Path, called: &str| {
        let python = Launch::new(&scratch, called, in_venv("python")).arg(example("create_links.py"));
        let python = python.args([&address, name]).stdin(list);
        let python = python.env("SHORTMINT_API_KEY", resolver.api.key()).env("PYTHONPATH", &generated);
        python.run(SOON).await.unwrap()
    };
    let first = run("sale", &list, "first").await.success().unwrap().stdout;
    assert_eq!(first.lines().count(), LINES);
    let code = first.lines().nth(7).unwrap().rsplit('/').next().unwrap();
    assert_eq!(resolver.api.follow(code).await.unwrap().1.as_deref(), Some("https://example.com/7"));
    assert_eq!(run("sale", &list, "second").await.success().unwrap().stdout, first, "the same links");
    let refused = run("other", &wrong, "wrong").await;
    assert_eq!((refused.code(), refused.stdout.lines().count()), (Some(1), 1), "{refused:?}");
    assert!(refused.stderr.contains("ftp://example.com: "), "{refused:?}");
    assert_eq!(count(&resolver.api).await, LINES + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_prints_the_events_that_are_signed_with_its_secret() {
    let (scratch, address) = (Scratch::new().unwrap(), free_addr().unwrap());
    let args = ["--webhooks", "http,network=127.0.0.0/8"];
    let resolver = Resolver::embedded().unwrap().args(args).start().await.unwrap();
    let body = json!({ "url": format!("http://{address}/"), "events": ["link.created"] });
    let made = done(&resolver.api, reqwest::Method::POST, "webhooks", Some(body)).await;
    let receiver = Launch::new(&scratch, "receiver", in_venv("python")).arg(example("receive_webhooks.py"));
    let receiver = receiver.arg(address.to_string());
    let receiver = receiver.env("WEBHOOK_SECRET", made["secret"].as_str().unwrap()).spawn().unwrap();
    let code = resolver.api.create("https://example.com/").await.unwrap().code;
    let printed = async || receiver.stdout().contains(&code);
    wait::until(SOON, "the event is printed", printed).await.unwrap();
    assert!(receiver.stdout().starts_with("link.created {"), "{}", receiver.stdout());
}
