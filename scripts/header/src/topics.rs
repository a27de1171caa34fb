//! The order of the header: topics with their declarations, as the sources of `src/capi` have them.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Message;

/// A topic of the header: its title, and the files and folders of `src/capi` whose declarations it has, in their order.
struct Topic {
    title: &'static str,
    sources: &'static [&'static str],
}

const TOPICS: [Topic; 17] = [
    Topic {
        title: "Results, objects and the library",
        sources: &["status.rs", "error.rs", "library.rs", "handle"],
    },
    Topic {
        title: "Tensors: dtypes, numbers, creation, elements, files, DLPack",
        sources: &[
            "tensor/mod.rs",
            "tensor/creation.rs",
            "tensor/properties.rs",
            "tensor/copies.rs",
            "tensor/io.rs",
            "dlpack.rs",
        ],
    },
    Topic { title: "Elementwise operations", sources: &["tensor/elementwise.rs", "tensor/operations.rs"] },
    Topic {
        title: "Shapes, views and indexing",
        sources: &[
            "tensor/shape.rs",
            "tensor/views.rs",
            "tensor/index.rs",
            "tensor/indexing.rs",
            "tensor/accumulate.rs",
        ],
    },
    Topic {
        title: "Reductions, softmax and norms, statistics, sorting",
        sources: &[
            "tensor/reduce.rs",
            "tensor/statistics.rs",
            "tensor/normalization.rs",
            "tensor/sorting.rs",
        ],
    },
    Topic { title: "Random numbers", sources: &["tensor/random.rs"] },
    Topic { title: "Products and attention", sources: &["matmul.rs", "tensor/attention.rs"] },
    Topic { title: "Functions of a program's own", sources: &["fused.rs", "custom.rs"] },
    Topic { title: "Neural networks", sources: &["nn"] },
    Topic { title: "The classifier", sources: &["classifier"] },
    Topic { title: "Numerical models", sources: &["catalogue"] },
    Topic { title: "Spiking networks", sources: &["burst"] },
    Topic { title: "Golden-ratio tensors", sources: &["srt"] },
    Topic {
        title: "Devices, memory and streams",
        sources: &["device.rs", "pool.rs", "stream.rs", "buffer.rs", "pinned.rs"],
    },
    Topic { title: "Kernels and launches", sources: &["module.rs", "launch.rs", "nvrtc.rs"] },
    Topic { title: "Graphs", sources: &["graph.rs"] },
    Topic { title: "Threads, memory and messages of the host, traces", sources: &["hooks.rs", "trace.rs"] },
];

/// A declaration with its comment.
struct Item {
    name: String,
    text: String,
}

/// Returns the table of contents as a comment, and the declarations by topic. `declarations` is what cbindgen wrote between
/// its includes and the end; `before` and `after` have the texts round the declarations of some topics.
pub fn by_topic(
    declarations: &str,
    sources: &Path,
    before: &[(&str, &str)],
    after: &[(&str, String)],
) -> Result<(String, String), Message> {
    let places = places(sources)?;
    let mut of_topic: BTreeMap<usize, Vec<(&(usize, usize), Item)>> = BTreeMap::new();
    for item in items(declarations)? {
        let place = places
            .get(&item.name)
            .ok_or_else(|| format!("{}: no file of src/capi declares it", item.name))?;
        of_topic.entry(place.0).or_default().push((&place.1, item));
    }
    let (mut contents, mut text) = (String::new(), String::new());
    for (number, topic) in TOPICS.iter().enumerate() {
        let title = format!("{}. {}", number + 1, topic.title);
        contents.push_str(&format!(" *   {title}\n"));
        text.push_str(&format!("\n/* ---- {title} ---- */\n"));
        for (_, more) in before.iter().filter(|(title, _)| *title == topic.title) {
            text.push('\n');
            text.push_str(more);
        }
        let mut items = of_topic.remove(&number).unwrap_or_default();
        // Constants, then types, then functions; each in the order of the sources.
        items.sort_by_key(|(place, item)| (class(&item.text), **place));
        for (_, item) in items {
            text.push('\n');
            text.push_str(&item.text);
        }
        for (_, more) in after.iter().filter(|(title, _)| *title == topic.title) {
            text.push('\n');
            text.push_str(more);
        }
    }
    Ok((contents, text))
}

/// The part of a topic that a declaration is in.
fn class(text: &str) -> u8 {
    let code =
        text.lines().find(|line| !line.starts_with("/**") && !line.starts_with(" *")).unwrap_or_default();
    match code {
        code if code.starts_with("#define") => 0,
        code if code.starts_with("typedef") => 1,
        _ => 2,
    }
}

/// Splits cbindgen's text into declarations.
fn items(text: &str) -> Result<Vec<Item>, Message> {
    let mut items = Vec::new();
    let (mut current, mut code, mut in_comment) = (String::new(), String::new(), false);
    for line in text.lines() {
        // Guards for C++ are written once, round all.
        if code.is_empty()
            && (line.starts_with("#ifdef")
                || line.starts_with("#endif")
                || line.starts_with("extern \"C\" {")
                || line == "}")
        {
            continue;
        }
        if line.is_empty() && current.is_empty() {
            continue;
        }
        current.push_str(line);
        current.push('\n');
        let trimmed = line.trim_start();
        in_comment |= trimmed.starts_with("/*");
        if in_comment {
            in_comment = !trimmed.ends_with("*/");
            continue;
        }
        code.push_str(line);
        code.push(' ');
        let depth = code.matches('{').count() as i64 - code.matches('}').count() as i64;
        if code.starts_with("#define") || (depth == 0 && line.ends_with(';')) {
            let name = name(&code).ok_or_else(|| format!("no name in: {code}"))?;
            items.push(Item { name, text: std::mem::take(&mut current) });
            code.clear();
        }
    }
    if current.trim().is_empty() { Ok(items) } else { Err(format!("no end of a declaration: {current}")) }
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// Returns the name at the start of a text, which may be empty.
fn first_name(text: &str) -> &str {
    text.split(|letter| !is_of_name(letter)).next().unwrap_or_default()
}

/// Returns the name at the end of a text, which may be empty.
fn last_name(text: &str) -> &str {
    text.rsplit(|letter| !is_of_name(letter)).next().unwrap_or_default()
}

/// Returns the name that a declaration gives.
fn name(code: &str) -> Option<String> {
    let name = match (code.strip_prefix("#define "), code.split_once("(*")) {
        (Some(rest), _) => first_name(rest),
        (None, Some((_, rest))) if code.starts_with("typedef") && !code.contains('{') => first_name(rest),
        _ if code.starts_with("typedef") => last_name(code.trim_end().trim_end_matches(';')),
        _ => last_name(code.split_once('(')?.0),
    };
    (!name.is_empty()).then(|| name.to_owned())
}

/// Returns the topic of every name that the sources declare, and its file and line within the topic.
fn places(root: &Path) -> Result<BTreeMap<String, (usize, (usize, usize))>, Message> {
    let mut places = BTreeMap::new();
    for (topic, Topic { sources, .. }) in TOPICS.iter().enumerate() {
        let mut files = Vec::new();
        for source in *sources {
            collect(&root.join(source), &mut files)?;
        }
        for (number, file) in files.iter().enumerate() {
            let text =
                std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
            for (line, code) in text.lines().enumerate() {
                let rest = [
                    "pub const ",
                    "pub struct ",
                    "pub type ",
                    "pub unsafe extern \"C\" fn ",
                    "pub extern \"C\" fn ",
                ]
                .iter()
                .find_map(|keyword| code.strip_prefix(keyword));
                let Some(rest) = rest else { continue };
                places.insert(first_name(rest).to_owned(), (topic, (number, line)));
            }
        }
    }
    Ok(places)
}

/// Adds a file, or the Rust files of a folder with `mod.rs` first.
fn collect(path: &Path, files: &mut Vec<std::path::PathBuf>) -> Result<(), Message> {
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = std::fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut found: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.sort_by_key(|path| (!path.ends_with("mod.rs"), path.clone()));
    for path in found {
        if path.is_dir() || path.extension().is_some_and(|extension| extension == "rs") {
            collect(&path, files)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_split_and_named() {
        let text = "/**\n * One;\n */\n#define SV_A 1\n\ntypedef struct sv_b {\n  /**\n   * a;\n   */\n  size_t size;\n} sv_b;\n\n\
            typedef void (*sv_c)(void *user,\n                     int x);\n\ntypedef uint64_t sv_d;\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n\
            int32_t sv_e(sv_d x,\n             sv_d *result);\n\n#ifdef __cplusplus\n}\n#endif\n";
        let names: Vec<String> = items(text).unwrap().into_iter().map(|item| item.name).collect();
        assert_eq!(names, ["SV_A", "sv_b", "sv_c", "sv_d", "sv_e"]);
    }
}
