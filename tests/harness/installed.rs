//! Programs and packages that `tests/run` installs.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::{ROOT, launch::Launch, scratch::Scratch};

/// Returns the path of a program in the Python environment of the tests.
///
/// # Errors
/// Returns an error if it is not installed.
pub fn in_venv(program: &str) -> anyhow::Result<PathBuf> {
    in_environment("SHORTMINT_VENV", "target/venv", program)
}

/// Returns the path of a program in the Python environment whose folder this environment variable
/// has, or else this default, relative to the root.
///
/// # Errors
/// Returns an error if it is not installed.
pub fn in_environment(variable: &str, default: &str, program: &str) -> anyhow::Result<PathBuf> {
    let set = std::env::var_os(variable).map(PathBuf::from);
    let folder = set.unwrap_or_else(|| Path::new(ROOT).join(default));
    let path = std::path::absolute(folder.join("bin").join(program))?;
    anyhow::ensure!(path.is_file(), "{} is missing: run tests/run once, which makes it", path.display());
    Ok(path)
}

/// Prepares a run of a script, relative to `tests`, with the npm packages in a folder of `target`.
/// All scripts beside it are copied, because a module finds packages only beside itself.
///
/// # Errors
/// Returns an error if the packages are not installed or files cannot be copied.
pub fn node(scratch: &Scratch, script: &str, packages: &str) -> anyhow::Result<Launch> {
    let (beside, name) = script.rsplit_once('/').context("a script has a folder")?;
    let folder = scratch.folder("node")?;
    for file in std::fs::read_dir(Path::new(ROOT).join("tests").join(beside))? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "mjs" || extension == "jsx") {
            std::fs::copy(&path, folder.join(path.file_name().context("a file has a name")?))?;
        }
    }
    let packages = Path::new(ROOT).join("target").join(packages).join("node_modules").canonicalize();
    let packages = packages.context("run tests/run once, which installs the packages")?;
    std::os::unix::fs::symlink(packages, folder.join("node_modules"))?;
    Ok(Launch::new(scratch, "node", "node").arg(folder.join(name)))
}
