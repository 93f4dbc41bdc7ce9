//! Compiles the contracts with protox, so that building needs no `protoc`.

use std::{env, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let contracts = ["shortmint/issuer/v1/issuer.proto", "shortmint/links/v1/links.proto"];
    let mut compiler = protox::Compiler::new(["."])?;
    compiler.include_source_info(true).include_imports(true).open_files(contracts)?;

    let out = PathBuf::from(env::var("OUT_DIR")?).join("descriptors.bin");
    fs::write(out, compiler.encode_file_descriptor_set())?;

    let boxed = ".shortmint.links.v1.CreateLinkResult.result.link";
    tonic_prost_build::configure().boxed(boxed).compile_fds(compiler.file_descriptor_set())?;
    println!("cargo:rerun-if-changed=shortmint");
    Ok(())
}
