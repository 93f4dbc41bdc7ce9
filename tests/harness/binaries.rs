//! The paths of the daemons' binaries, freshly built.
//!
//! 1. The binaries are built once per test process, in the profile and target folder of the running
//!    test, so a test never runs a stale binary.
//! 2. If `SHORTMINT_BIN_DIR` names a folder that contains both binaries, they are used and nothing
//!    is built. This is for testing the binaries of a release or a container image, and for
//!    `tests/run`, which has built them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::Context;

const FOLDER_VARIABLE: &str = "SHORTMINT_BIN_DIR";
const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");

/// The folder with the binaries, or the error message. The message is a `String` because errors
/// cannot be cloned for every caller.
static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();

/// Returns the path of the `issuer` binary.
///
/// # Errors
/// Returns an error if it cannot be built or found; the message contains the compiler's output.
pub async fn issuer() -> anyhow::Result<PathBuf> {
    Ok(folder().await?.join("issuer"))
}

/// Returns the path of the `resolver` binary.
///
/// # Errors
/// Returns an error if it cannot be built or found; the message contains the compiler's output.
pub async fn resolver() -> anyhow::Result<PathBuf> {
    Ok(folder().await?.join("resolver"))
}

/// Returns the folder with the binaries. Building can take minutes, so it runs outside the
/// runtime's worker threads.
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

/// Splits `<target>/<profile>/deps/<test>` or `<target>/<profile>/<program>` into target folder and
/// profile.
fn target_and_profile(test: &Path) -> Option<(&Path, &str)> {
    let folder = test.parent()?;
    let folder = if folder.file_name()? == "deps" { folder.parent()? } else { folder };
    Some((folder.parent()?, folder.file_name()?.to_str()?))
}

fn build(target: &Path, profile: &str) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Cargo builds the profile `dev` into the folder `debug`, for historical reasons.
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
    fn target_folder_and_profile_follow_from_the_path_of_the_test() {
        let test = Path::new("/home/me/target/debug/deps/it-0123456789abcdef");
        assert_eq!(target_and_profile(test), Some((Path::new("/home/me/target"), "debug")));
        let program = Path::new("/home/me/target/release/failover");
        assert_eq!(target_and_profile(program), Some((Path::new("/home/me/target"), "release")));
        assert_eq!(target_and_profile(Path::new("/it")), None);
    }
}
