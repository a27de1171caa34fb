//! C sources that a benchmark compiles and loads.

use std::io;
use std::path::{Path, PathBuf};

/// Compiles a source of csrc/bench as a shared library and returns its path.
pub fn compile(name: &str) -> io::Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("csrc/bench").join(name).with_extension("c");
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name).with_extension("so");
    let output = cc::Build::new()
        .target(&target)
        .host(&target)
        .opt_level(2)
        .cargo_metadata(false)
        .try_get_compiler()
        .map_err(io::Error::other)?
        .to_command()
        .args([
            "-std=gnu11",
            "-O2",
            "-fPIC",
            "-shared",
            "-Wall",
            "-Wextra",
            "-fvisibility=hidden",
            "-ffp-contract=off",
        ])
        .arg(source)
        .arg("-o")
        .arg(&library)
        .output()?;
    match output.status.success() {
        true => Ok(library),
        false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}
