//! Where the daemons' binaries are, freshly built.
//!
//! 1. They are built once per test process, in the profile and target folder of the running test: a test never
//!    runs a stale binary.
//! 2. With `SHORTMINT_BIN_DIR` set to a folder that has both, they are taken from there and nothing is built:
//!    for testing a release's or a container image's own binaries.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::Context;

const FOLDER_VARIABLE: &str = "SHORTMINT_BIN_DIR";
const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");

/// The folder, or the message of the failure: errors cannot be cloned for every test that asks.
static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();

/// The path of the `issuer` binary.
///
/// # Errors
/// It cannot be built or found; the message holds what the compiler wrote.
pub async fn issuer() -> anyhow::Result<PathBuf> {
    Ok(folder().await?.join("issuer"))
}

/// The path of the `resolver` binary.
///
/// # Errors
/// It cannot be built or found; the message holds what the compiler wrote.
pub async fn resolver() -> anyhow::Result<PathBuf> {
    Ok(folder().await?.join("resolver"))
}

/// Building takes minutes at worst, so it stays off the runtime's own threads.
async fn folder() -> anyhow::Result<PathBuf> {
    let found =
        tokio::task::spawn_blocking(|| FOLDER.get_or_init(|| find().map_err(|failed| format!("{failed:#}"))));
    found.await.context("find the binaries")?.clone().map_err(anyhow::Error::msg)
}

fn find() -> anyhow::Result<PathBuf> {
    if let Some(folder) = std::env::var_os(FOLDER_VARIABLE) {
        let folder =
            PathBuf::from(folder).canonicalize().with_context(|| format!("find {FOLDER_VARIABLE}"))?;
        for name in ["issuer", "resolver"] {
            anyhow::ensure!(
                folder.join(name).is_file(),
                "{FOLDER_VARIABLE} has no {name}: {}",
                folder.display()
            );
        }
        return Ok(folder);
    }
    let test = std::env::current_exe().context("find the running test")?;
    let (target, profile) = target_and_profile(&test)
        .with_context(|| format!("{} is not in a target folder: set {FOLDER_VARIABLE}", test.display()))?;
    build(target, profile)?;
    Ok(target.join(profile))
}

/// Takes `<target>/<profile>/deps/<test>` or, of a binary, `<target>/<profile>/<binary>` apart.
fn target_and_profile(running: &Path) -> Option<(&Path, &str)> {
    let folder = running.parent()?;
    let folder = if folder.ends_with("deps") { folder.parent()? } else { folder };
    Some((folder.parent()?, folder.file_name()?.to_str()?))
}

fn build(target: &Path, profile: &str) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // The folder of the profile "dev" has another name for historical reasons.
    let profile = if profile == "debug" { "dev" } else { profile };
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--manifest-path", MANIFEST, "--profile", profile]);
    command.args(["--package", "issuer", "--package", "resolver", "--bins", "--target-dir"]).arg(target);
    let output = command.output().context("run cargo")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "cargo cannot build the daemons ({}):\n{errors}", output.status);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::target_and_profile;

    #[test]
    fn target_folder_and_profile_follow_from_the_path_of_the_test_or_binary() {
        let test = Path::new("/home/me/target/debug/deps/it-0123456789abcdef");
        assert_eq!(target_and_profile(test), Some((Path::new("/home/me/target"), "debug")));
        let binary = Path::new("/home/me/target/release/bench");
        assert_eq!(target_and_profile(binary), Some((Path::new("/home/me/target"), "release")));
        assert_eq!(target_and_profile(Path::new("/it")), None);
    }
}
