//! Writes `include/selvedge.h` and `include/selvedge.symbols` from `src/capi`, or compares both with `--check`.
//!
//! ```text
//! cargo run --manifest-path scripts/header/Cargo.toml [-- --check] [--since FILE]
//! ```
//!
//! A function, struct or constant that older programs use must stay as it is while `SV_ABI_VERSION` stays. The list of
//! symbols on disk is the older one, and `--since FILE` names another, such as that of the commit before.

mod comments;
mod operations;
mod symbols;
mod topics;
mod variables;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cbindgen::{Builder, Config, DocumentationStyle, Language, Style};

/// The text before the declarations, with the table of contents in the place of `CONTENTS`.
const HEADER: &str = "\
/* selvedge: a GPU runtime and tensor library. Generated from src/capi by scripts/header; do not edit.
 *
CONTENTS *
 * Every function returns a status (SV_OK or SV_ERROR_...) unless it says otherwise, and leaves a message for sv_last_error()
 * if it fails. A function that fails writes no result. Objects are handles, each with the type of its kind; NULL is no object. The
 * caller owns one reference to each object that a function gives. sv_retain() adds a reference, sv_release() drops one. Structs
 * begin with their size in bytes, which the caller sets. A pointer must point to a value of its type, a text must end with a zero
 * byte, and arrays must be as long as the function requires. Any thread may call a function unless it says otherwise; it waits
 * while another thread changes an object that it uses. docs/c-abi.md is the manual. */";

/// A message for the person who runs this program.
type Message = String;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Message> {
    let (mut checks, mut since) = (false, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--check" => checks = true,
            "--since" => since.push(PathBuf::from(arguments.next().ok_or("--since: the file is missing")?)),
            other => return Err(format!("{other}: unknown argument")),
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let declarations = declarations(&root)?;
    // The inline functions are no symbols of the library.
    let list = symbols::list(&header(&root, &declarations, &[])?)?;
    let operations = operations::inline(&root.join("src/capi/tensor/operations.rs"))?;
    let variables = variables::INLINE.to_owned();
    let inline = [("Elementwise operations", operations), ("Neural networks", variables)];
    let header = header(&root, &declarations, &inline)?;
    since.push(root.join("include/selvedge.symbols"));
    for path in since {
        // The first list has no older one.
        if let Ok(older) = std::fs::read_to_string(&path) {
            let broken = symbols::broken(&older, &list);
            if !broken.is_empty() {
                let (path, broken) = (path.display(), broken.join("\n  "));
                return Err(format!(
                    "these are in {path} and were removed or changed:\n  {broken}\nadd a function instead, or raise SV_ABI_VERSION"
                ));
            }
        }
    }
    for (name, text) in [("include/selvedge.h", header), ("include/selvedge.symbols", list)] {
        let path = root.join(name);
        if !checks {
            std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        } else if std::fs::read_to_string(&path).is_ok_and(|committed| committed != text) || !path.exists() {
            return Err(format!(
                "{name} is not generated from src/capi; run: cargo run --manifest-path scripts/header/Cargo.toml"
            ));
        }
    }
    Ok(())
}

/// Returns the declarations of `src/capi` in the words of C, in the order of cbindgen.
fn declarations(root: &Path) -> Result<String, Message> {
    let config = Config {
        language: Language::C,
        no_includes: true,
        documentation_style: DocumentationStyle::Doxy,
        style: Style::Both,
        usize_is_size_t: true,
        ..Config::default()
    };
    // cbindgen follows the modules from there.
    let builder = Builder::new().with_config(config).with_src(root.join("src/capi/mod.rs"));
    let bindings = builder.generate().map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    bindings.write(&mut text);
    let text = String::from_utf8(text).map_err(|error| format!("cbindgen's text is not UTF-8: {error}"))?;
    Ok(comments::in_c_words(&handles(&text)))
}

/// Returns the text of the header, with more text behind the declarations of some topics.
fn header(root: &Path, declarations: &str, after: &[(&str, String)]) -> Result<String, Message> {
    let version = version(root)?;
    let (contents, declarations) = topics::by_topic(
        declarations,
        &root.join("src/capi"),
        &[("Elementwise operations", operations::HEAD)],
        after,
    )?;
    Ok(format!(
        "{}

#ifndef SELVEDGE_H
#define SELVEDGE_H

#include <stddef.h>
#include <stdint.h>

#if UINTPTR_MAX != UINT64_MAX
#error \"selvedge needs a target with addresses of 64 bits\"
#endif

#define SV_VERSION_MAJOR {}
#define SV_VERSION_MINOR {}
#define SV_VERSION_PATCH {}

#ifdef __cplusplus
extern \"C\" {{
#endif
{declarations}
#ifdef __cplusplus
}}
#endif

#endif /* SELVEDGE_H */
",
        HEADER.replace("CONTENTS", &contents),
        version[0],
        version[1],
        version[2]
    ))
}

/// Turns the types of handles, which are numbers in Rust, into pointers to structs that nobody defines.
fn handles(text: &str) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        let name = line.strip_prefix("typedef uint64_t ").and_then(|rest| rest.strip_suffix(';'));
        match name {
            Some("sv_object") => lines.push_str("typedef void *sv_object;"),
            Some(name) => lines.push_str(&format!("typedef struct {name}_object *{name};")),
            // A number of 64 ones is a pointer of as many.
            None if line == "#define SV_NO_TENSOR UINT64_MAX" => {
                lines.push_str("#define SV_NO_TENSOR ((sv_tensor)UINTPTR_MAX)")
            }
            None if line == "#define SV_NO_VARIABLE UINT64_MAX" => {
                lines.push_str("#define SV_NO_VARIABLE ((sv_variable)UINTPTR_MAX)")
            }
            None => lines.push_str(line),
        }
        lines.push('\n');
    }
    lines
}

/// Returns the library's version as three numbers.
fn version(root: &Path) -> Result<[u32; 3], Message> {
    let path = root.join("Cargo.toml");
    let manifest = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let numbers = manifest.lines().find_map(|line| line.strip_prefix("version = \"")).and_then(|line| {
        let numbers = line.trim_end_matches('"').split('.').map(|number| number.parse().ok());
        numbers.collect::<Option<Vec<u32>>>()
    });
    match numbers.as_deref() {
        Some([major, minor, patch]) => Ok([*major, *minor, *patch]),
        _ => Err(format!("{}: no version of three numbers", path.display())),
    }
}
