//! The layers of the workspace: which crates each crate may depend on, and what pure crates must
//! not name.

use std::{collections::BTreeSet, path::Path, process::Command};

use harness::ROOT;

/// A crate, its folder, and the crates of this workspace that it depends on. Those that it reaches
/// through another one of them are not repeated.
struct Layer {
    name: &'static str,
    folder: &'static str,
    on: &'static [&'static str],
    /// Crates that must not be among its direct or indirect dependencies.
    never: &'static [&'static str],
}

impl Layer {
    /// Returns the crates that it depends on, directly or indirectly.
    fn reaches(&self) -> BTreeSet<&'static str> {
        let below = LAYERS.iter().filter(|layer| self.on.contains(&layer.name));
        below.flat_map(Self::reaches).chain(self.on.iter().copied()).collect()
    }
}

/// Crates for runtimes, protocols and databases, which no pure crate may depend on.
const OUTSIDE: &[&str] = &[
    "axum",
    "bb8",
    "hyper",
    "metrics",
    "mio",
    "refinery-core",
    "reqwest",
    "rusqlite",
    "socket2",
    "tokio",
    "tokio-postgres",
    "tonic",
    "tracing",
];

/// All crates from the lowest layer up. A crate depends only on crates listed above it.
const LAYERS: &[Layer] = &[
    Layer { name: "numbers", folder: "issuer/numbers", on: &[], never: OUTSIDE },
    Layer { name: "codes", folder: "resolver/codes", on: &["numbers"], never: OUTSIDE },
    Layer { name: "links", folder: "resolver/links", on: &["codes"], never: OUTSIDE },
    Layer { name: "dto", folder: "resolver/dto", on: &["links"], never: OUTSIDE },
    Layer { name: "holder", folder: "resolver/holder", on: &["codes"], never: OUTSIDE },
    Layer { name: "qr", folder: "resolver/qr", on: &[], never: OUTSIDE },
    Layer { name: "agents", folder: "resolver/agents", on: &[], never: OUTSIDE },
    Layer { name: "visits", folder: "resolver/visits", on: &["links"], never: OUTSIDE },
    Layer { name: "transfer", folder: "resolver/transfer", on: &["visits"], never: OUTSIDE },
    Layer {
        name: "spool",
        folder: "resolver/spool",
        on: &[],
        never: &["hyper", "tokio", "tokio-postgres", "tracing"],
    },
    Layer { name: "webhooks", folder: "resolver/webhooks", on: &[], never: &["tokio-postgres", "tonic"] },
    Layer { name: "tls", folder: "issuer/tls", on: &[], never: &["hyper", "tokio-postgres", "tonic"] },
    Layer {
        name: "store",
        folder: "resolver/store",
        on: &["links", "tls"],
        never: &["axum", "hyper", "tonic"],
    },
    Layer {
        name: "visit_store",
        folder: "resolver/visit_store",
        on: &["store", "visits"],
        // ClickHouse's client speaks through hyper.
        never: &["axum", "tonic"],
    },
    Layer {
        name: "limits",
        folder: "issuer/limits",
        on: &["tls"],
        never: &["etcd-client", "rusqlite", "tokio-postgres"],
    },
    Layer {
        name: "daemon",
        folder: "issuer/daemon",
        on: &["limits"],
        never: &["etcd-client", "rusqlite", "tokio-postgres"],
    },
    Layer {
        name: "geoip",
        folder: "resolver/geoip",
        on: &["daemon"],
        never: &["etcd-client", "rusqlite", "tokio-postgres"],
    },
    Layer {
        name: "issuer",
        folder: "issuer",
        on: &["daemon", "numbers", "proto"],
        never: &["rusqlite", "tokio-postgres"],
    },
    Layer {
        name: "supply",
        folder: "resolver/supply",
        on: &["holder", "issuer", "store"],
        never: &["etcd-client"],
    },
    Layer {
        name: "ingest",
        folder: "resolver/ingest",
        on: &["agents", "geoip", "spool", "visit_store"],
        never: &["etcd-client"],
    },
    Layer { name: "lookup", folder: "resolver/lookup", on: &["supply"], never: &["etcd-client"] },
    Layer {
        name: "recorder",
        folder: "resolver/recorder",
        on: &["lookup", "visits"],
        never: &["etcd-client"],
    },
    Layer {
        name: "app",
        folder: "resolver/app",
        on: &["lookup", "transfer", "visit_store", "webhooks"],
        never: &["etcd-client"],
    },
    Layer { name: "web", folder: "resolver/web", on: &["daemon"], never: &["etcd-client"] },
    Layer {
        name: "redirect",
        folder: "resolver/redirect",
        on: &["agents", "geoip", "qr", "recorder", "web"],
        never: &["etcd-client"],
    },
    Layer { name: "api", folder: "resolver/api", on: &["app", "dto", "qr", "web"], never: &["etcd-client"] },
    Layer { name: "compat", folder: "resolver/compat", on: &["api"], never: &["etcd-client"] },
    Layer { name: "pages", folder: "resolver/pages", on: &["api", "geoip"], never: &["etcd-client"] },
    Layer { name: "cli", folder: "resolver/cli", on: &["app", "dto", "ingest"], never: &["etcd-client"] },
    Layer {
        name: "listener",
        folder: "resolver/listener",
        on: &["compat", "pages", "redirect"],
        never: &["etcd-client"],
    },
    Layer {
        name: "resolver",
        folder: "resolver",
        on: &["cli", "listener"],
        // A build of the embedded form does not need protoc.
        never: &["etcd-client"],
    },
];

/// Names that no source of a pure crate may contain: files, sockets, processes and clocks.
const IMPURE: &[&str] = &[
    "std::fs",
    "fs::",
    "std::net::Tcp",
    "std::net::Udp",
    "std::process",
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
];

#[test]
fn every_crate_reaches_only_those_below_it() {
    let members: BTreeSet<String> = LAYERS.iter().map(|layer| layer.name.to_owned()).collect();
    let members: BTreeSet<String> = members.into_iter().chain(["proto".to_owned()]).collect();
    for layer in LAYERS {
        let below = below(layer.name);
        let reached: BTreeSet<&str> = members.intersection(&below).map(String::as_str).collect();
        assert_eq!(reached, layer.reaches(), "{} reaches these crates of ours", layer.name);
        let forbidden: Vec<_> = layer.never.iter().filter(|name| below.contains(**name)).collect();
        assert!(forbidden.is_empty(), "{} depends on {forbidden:?}", layer.name);
    }
}

#[test]
fn the_resolver_itself_names_no_database_driver() {
    let direct = tree("resolver", &["--depth", "1"]);
    for driver in ["bb8", "refinery-core", "rusqlite", "tokio-postgres"] {
        assert!(!direct.contains(driver), "resolver depends on {driver}: SQL belongs into the crate store");
    }
}

/// Crates that the application must not depend on directly: its interfaces and their formats. The
/// supply of numbers below it speaks gRPC with the issuer.
const WAYS_IN: &[&str] =
    &["clap", "http-body-util", "hyper", "prost", "proto", "serde_json", "tonic", "ureq"];

#[test]
fn the_application_names_no_way_in_no_format_and_no_sql() {
    let direct = tree("app", &["--depth", "1"]);
    for name in WAYS_IN.iter().chain(&["bb8", "refinery-core", "rusqlite", "tokio-postgres"]) {
        assert!(!direct.contains(*name), "app depends on {name}");
    }
    for source in sources(&Path::new(ROOT).join("resolver/app/src")) {
        let text = std::fs::read_to_string(&source).unwrap();
        for word in ["SELECT ", "INSERT INTO", "UPDATE ", "StatusCode", "HeaderMap"] {
            assert!(!text.contains(word), "{} names {word}", source.display());
        }
    }
}

#[test]
fn redirects_and_what_they_share_with_the_api_name_no_api_and_no_sql() {
    let others = [
        "bb8",
        "clap",
        "issuer",
        "proto",
        "prost",
        "rusqlite",
        "serde_json",
        "supply",
        "tokio-postgres",
        "tonic",
    ];
    for name in ["redirect", "web"] {
        let direct = tree(name, &["--depth", "1"]);
        for other in others {
            assert!(!direct.contains(other), "{name} depends on {other}");
        }
    }
}

#[test]
fn pure_crates_name_no_file_socket_process_or_clock() {
    for layer in LAYERS.iter().filter(|layer| layer.never == OUTSIDE) {
        let mut seen = 0;
        for source in sources(&Path::new(ROOT).join(layer.folder).join("src")) {
            let text = std::fs::read_to_string(&source).unwrap();
            let product = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            for word in IMPURE {
                assert!(!product.contains(word), "{} names {word}", source.display());
            }
            seen += 1;
        }
        assert!(seen > 0, "{} has sources", layer.name);
    }
}

/// Returns the names of all crates that a crate depends on, directly or indirectly.
fn below(name: &str) -> BTreeSet<String> {
    let mut all = tree(name, &[]);
    all.remove(name);
    all
}

fn tree(name: &str, more: &[&str]) -> BTreeSet<String> {
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    cargo.current_dir(ROOT);
    cargo.args(["tree", "--quiet", "--locked", "--package", name, "--edges", "normal,build"]);
    if name == "resolver" || name == "issuer" {
        cargo.arg("--no-default-features");
    }
    let output = cargo.args(["--prefix", "none", "--format", "{p}"]).args(more).output().unwrap();
    let (printed, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "cargo tree: {told}");
    printed.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

fn sources(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(sources(&path)),
            false => found.push(path),
        }
    }
    found
}
