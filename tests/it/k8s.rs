//! The chart: every object that it renders is valid, and what they start matches the daemons.

mod delivery;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::{Launch, ROOT, Scratch, binaries, installed};
use serde_json::Value;

/// The environment variable with the folder of the Python environment that has Kubernetes' tools,
/// and the folder without it. `tests/run` creates it.
const TOOLS: (&str, &str) = ("SHORTMINT_KUBERNETES", "target/venv-kubernetes");

/// The value sets that are rendered, below the chart's folder.
const RENDERED: [&str; 6] = [
    BASE,
    "tests/values/all.yaml",
    "tests/values/minimal.yaml",
    "values/small.yaml",
    "values/production.yaml",
    "values/split.yaml",
];
/// `listenAddress` of the sets.
const ANY_ADDRESS: [&str; 2] = ["[::]", "0.0.0.0"];
/// External stores, and nothing optional.
const BASE: &str = "tests/values/base.yaml";

const RUN_WITHIN: Duration = Duration::from_secs(120);

/// A variable that the chart defines for its own use. No daemon reads it.
const POD_NAME: &str = "POD_NAME";

#[tokio::test(flavor = "multi_thread")]
async fn resolvers_are_told_of_each_issuer_by_the_name_that_it_advertises() {
    let base = Manifests::base().await;
    let issuer = base.only("StatefulSet", "issuer");
    let replicas = issuer["spec"]["replicas"].as_u64().unwrap();
    let service = issuer["spec"]["serviceName"].as_str().unwrap();
    base.only("Service", service);
    let container = only(containers(issuer));
    let advertise = env(container, "ISSUER_ADVERTISE").unwrap()["value"].as_str().unwrap();
    let port = port(container, "grpc");
    let names = (0..replicas).map(|index| format!("issuer-{index}"));
    let advertised: Vec<String> = names.clone().map(|name| advertise.replace("$(POD_NAME)", &name)).collect();
    let reachable: Vec<String> = names.map(|name| format!("https://{name}.{service}:{port}")).collect();
    assert_eq!(advertised, reachable);

    let resolver = only(containers(base.only("Deployment", "resolver")));
    let source = &env(resolver, "RESOLVER_ISSUER").unwrap()["valueFrom"]["configMapKeyRef"];
    let config = base.only("ConfigMap", source["name"].as_str().unwrap());
    let told = config["data"][source["key"].as_str().unwrap()].as_str().unwrap();
    assert_eq!(told.split(',').collect::<Vec<_>>(), advertised);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_setting_that_a_pod_refers_to_exists_and_no_secret_is_in_the_chart() {
    let base = Manifests::base().await;
    assert!(base.objects.iter().all(|object| object["kind"] != "Secret"), "secrets come from outside");
    for rendered in RENDERED {
        let manifests = Manifests::render(rendered).await;
        let mut references = 0;
        for variable in manifests.objects.iter().flat_map(containers).flat_map(env_of) {
            let reference = &variable["valueFrom"]["configMapKeyRef"];
            if let (Some(name), Some(key)) = (reference["name"].as_str(), reference["key"].as_str()) {
                references += 1;
                let value = &manifests.only("ConfigMap", name)["data"][key];
                assert!(value.is_string(), "{rendered}: {variable} refers to nothing");
            }
        }
        assert!(references > 0, "{rendered}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_variable_is_one_that_its_daemon_reads() {
    for rendered in RENDERED {
        let manifests = Manifests::render(rendered).await;
        let mut checked = 0;
        for container in manifests.objects.iter().flat_map(containers).filter(|container| is_ours(container))
        {
            let known = variables_in_help(&manifests.scratch, container).await;
            for variable in env_of(container) {
                let name = variable["name"].as_str().unwrap();
                assert!(name == POD_NAME || known.contains(name), "{rendered}: {name} is not in --help");
                checked += 1;
            }
        }
        assert!(checked > 10, "{rendered}: only {checked} variables were found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_probe_and_service_leads_to_a_port_that_its_daemon_listens_on() {
    for rendered in RENDERED {
        let manifests = Manifests::render(rendered).await;
        let mut checked = 0;
        for container in manifests.objects.iter().flat_map(containers).filter(|container| is_ours(container))
        {
            let listens = |name: &str| {
                let address = env_of(container).filter_map(|variable| variable["value"].as_str());
                let mut listened = address.filter_map(|value| value.rsplit_once(':'));
                listened.any(|(address, port)| ANY_ADDRESS.contains(&address) && port == name)
            };
            for port in container["ports"].as_array().into_iter().flatten() {
                let number = port["containerPort"].to_string();
                assert!(listens(&number), "{rendered}: nothing listens on {port}");
            }
            for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
                let Some(request) = container[probe]["httpGet"].as_object() else { continue };
                port(container, request["port"].as_str().unwrap());
                assert!(
                    matches!(request["path"].as_str(), Some("/livez" | "/readyz")),
                    "{rendered}: {request:?}"
                );
                checked += 1;
            }
        }
        assert!(checked >= 6, "{rendered}: only {checked} probes were found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_has_more_time_to_end_than_it_takes_to_drain() {
    let base = Manifests::base().await;
    let resolver = base.only("Deployment", "resolver");
    let drain_delay =
        env(only(containers(resolver)), "RESOLVER_DRAIN_DELAY").unwrap()["value"].as_str().unwrap();
    let drain_delay: u64 = drain_delay.strip_suffix('s').expect("the delay is in seconds").parse().unwrap();
    let grace = resolver["spec"]["template"]["spec"]["terminationGracePeriodSeconds"].as_u64().unwrap();
    assert!(grace > drain_delay, "{grace} s of grace, {drain_delay} s of drain delay");
}

#[tokio::test(flavor = "multi_thread")]
async fn images_have_the_tag_of_this_version() {
    let base = Manifests::base().await;
    let tag = format!(":{}", env!("CARGO_PKG_VERSION"));
    let images: BTreeSet<&str> = base
        .objects
        .iter()
        .flat_map(containers)
        .filter_map(|container| container["image"].as_str())
        .collect();
    assert!(images.iter().all(|image| image.ends_with(&tag)), "{images:?} must end with {tag}");
    let daemons: BTreeSet<&str> = images.iter().copied().map(daemon).collect();
    assert_eq!(daemons, BTreeSet::from(["issuer", "resolver"]));
}

/// Rendered manifests as objects.
struct Manifests {
    objects: Vec<Value>,
    scratch: Scratch,
}

impl Manifests {
    async fn base() -> Self {
        Self::render(BASE).await
    }

    /// Renders the chart with a set of values.
    async fn render(values: &str) -> Self {
        let scratch = Scratch::new().unwrap();
        let chart = Path::new(ROOT).join("k8s/chart");
        let helm = Launch::new(&scratch, "helm", tool("helm")).args(["template", "shortmint"]).arg(&chart);
        let helm = helm.args(["--namespace", "shortmint", "--values"]).arg(chart.join(values));
        let rendered = helm.run(RUN_WITHIN).await.unwrap().success().unwrap();
        let manifest = scratch.file("rendered.yaml", &rendered.stdout).unwrap();
        Self { objects: objects(&scratch, &manifest).await, scratch }
    }

    fn only(&self, kind: &str, name: &str) -> &Value {
        let is_meant = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        let found: Vec<&Value> = self.objects.iter().filter(is_meant).collect();
        assert_eq!(found.len(), 1, "{kind} {name}");
        found[0]
    }
}

/// Returns the objects of a manifest. The validator's Python environment has a YAML reader, which
/// saves a dependency here.
async fn objects(scratch: &Scratch, manifest: &Path) -> Vec<Value> {
    let script = "import json, sys, yaml; json.dump(list(yaml.safe_load_all(sys.stdin)), sys.stdout)";
    let python = Launch::new(scratch, "yaml-to-json", tool("python")).args(["-c", script]);
    let converted = python.stdin(manifest).run(RUN_WITHIN).await.unwrap().success().unwrap();
    let objects: Vec<Value> = serde_json::from_str(&converted.stdout).unwrap();
    assert!(!objects.is_empty());
    objects
}

/// Returns the path of one of Kubernetes' tools.
fn tool(program: &str) -> PathBuf {
    installed::in_environment(TOOLS.0, TOOLS.1, program).unwrap()
}

/// Returns the path of a program in the Python environment of the other tests.
pub(crate) fn in_venv(program: &str) -> PathBuf {
    installed::in_venv(program).unwrap()
}

/// Returns whether a container runs one of the daemons.
fn is_ours(container: &Value) -> bool {
    container["image"].as_str().is_some_and(|image| image.contains("shortmint-"))
}

/// Returns the containers of an object that creates pods; none for other objects.
fn containers(object: &Value) -> impl Iterator<Item = &Value> {
    let spec = &object["spec"]["template"]["spec"];
    let kinds = [&spec["initContainers"], &spec["containers"]];
    kinds.into_iter().filter_map(Value::as_array).flatten()
}

fn env_of(container: &Value) -> impl Iterator<Item = &Value> {
    container["env"].as_array().into_iter().flatten()
}

fn env<'a>(container: &'a Value, name: &str) -> Option<&'a Value> {
    env_of(container).find(|variable| variable["name"] == name)
}

fn port(container: &Value, name: &str) -> u64 {
    let mut ports = container["ports"].as_array().unwrap().iter();
    ports.find(|port| port["name"] == name).unwrap()["containerPort"].as_u64().unwrap()
}

fn only<T>(mut items: impl Iterator<Item = T>) -> T {
    let (first, second) = (items.next(), items.next());
    assert!(second.is_none(), "more than one");
    first.expect("at least one item")
}

/// Returns the daemon of an image: `issuer` for `registry.example/shortmint-issuer:0.1.0`.
fn daemon(image: &str) -> &str {
    let (_, name) = image.rsplit_once("shortmint-").unwrap();
    name.split([':', '@']).next().unwrap()
}

/// Returns the environment variables in the `--help` of the container's command.
async fn variables_in_help(scratch: &Scratch, container: &Value) -> BTreeSet<String> {
    let subcommand = container["args"][0].as_str();
    let (program, subcommands) = match daemon(container["image"].as_str().unwrap()) {
        // The README runs `issuer status` in the issuers' containers.
        "issuer" => (binaries::issuer().await.unwrap(), vec![subcommand, Some("status")]),
        "resolver" => (binaries::resolver().await.unwrap(), vec![subcommand]),
        other => panic!("no daemon {other}"),
    };
    let mut names = BTreeSet::new();
    for subcommand in subcommands {
        let help = Launch::new(scratch, "help", program.clone()).args(subcommand).arg("--help");
        let help = help.run(RUN_WITHIN).await.unwrap().success().unwrap().stdout;
        let found = help.split("[env: ").skip(1);
        names.extend(found.filter_map(|rest| rest.split(['=', ']']).next().map(str::to_owned)));
    }
    names
}
