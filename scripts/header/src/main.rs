//! Writes `include/selvedge.h` from `src/capi`, or compares both with `--check`.
//!
//! ```text
//! cargo run --manifest-path scripts/header/Cargo.toml [-- --check]
//! ```

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cbindgen::{Builder, Config, DocumentationStyle, EnumConfig, Language, RenameRule, Style};

/// The text before the declarations.
const HEADER: &str = "\
/* selvedge: a GPU runtime and tensor library. Generated from src/capi by scripts/header; do not edit.
 *
 * Every function returns a status (SV_OK or SV_ERROR_...) unless it says otherwise, and leaves a message for sv_last_error()
 * where it fails. Handles are 64-bit numbers; sv_retain() adds a reference, sv_release() drops one. Every function may be
 * called from any thread unless it says otherwise. Structs begin with their size in bytes, set by the caller. */";

fn sources(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut entries: Vec<_> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    if let Err(error) = sources(&root.join("src/capi"), &mut files) {
        eprintln!("src/capi cannot be read: {error}");
        return ExitCode::FAILURE;
    }
    let version: Vec<String> = version(&root);
    let config = Config {
        language: Language::C,
        header: Some(HEADER.to_owned()),
        after_includes: Some(format!(
            "\n#define SV_VERSION_MAJOR {}\n#define SV_VERSION_MINOR {}\n#define SV_VERSION_PATCH {}",
            version[0], version[1], version[2]
        )),
        include_guard: Some("SELVEDGE_H".to_owned()),
        cpp_compat: true,
        documentation_style: DocumentationStyle::C,
        style: Style::Both,
        usize_is_size_t: true,
        enumeration: EnumConfig { rename_variants: RenameRule::ScreamingSnakeCase, ..EnumConfig::default() },
        ..Config::default()
    };
    let mut builder = Builder::new().with_config(config);
    for file in files {
        builder = builder.with_src(file);
    }
    let bindings = match builder.generate() {
        Ok(bindings) => bindings,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let mut text = Vec::new();
    bindings.write(&mut text);
    let path = root.join("include/selvedge.h");
    if std::env::args().any(|argument| argument == "--check") {
        if std::fs::read(&path).is_ok_and(|committed| committed == text) {
            return ExitCode::SUCCESS;
        }
        eprintln!(
            "include/selvedge.h is not generated from src/capi; run: cargo run --manifest-path scripts/header/Cargo.toml"
        );
        return ExitCode::FAILURE;
    }
    match std::fs::write(&path, text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}

/// Returns the library's version as three numbers.
fn version(root: &Path) -> Vec<String> {
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap_or_default();
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = \"")).unwrap_or("0.0.0\"");
    line.trim_end_matches('"').split('.').map(str::to_owned).collect()
}
