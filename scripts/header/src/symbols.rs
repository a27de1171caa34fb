//! The list of all that a program can use of the header, one a line and sorted, for comparing two versions of the ABI.
//!
//! ```text
//! abi 1
//! constant SV_OK 0
//! function int32_t sv_release(uint64_t)
//! type sv_extent { size_t size; uint64_t width }
//! ```

use crate::Message;

const ABI: &str = "SV_ABI_VERSION";

/// Returns the list of a header.
pub fn list(header: &str) -> Result<String, Message> {
    let code = without_comments(header);
    let mut lines = Vec::new();
    let (mut abi, mut declarations) = (None, String::new());
    for line in code.lines() {
        let mut words = line.splitn(3, ' ');
        match (words.next(), words.next(), words.next()) {
            (Some("#define"), Some(ABI), Some(value)) => abi = Some(value.trim()),
            (Some("#define"), Some(name), Some(value)) if !name.starts_with("SV_VERSION_") => {
                lines.push(format!("constant {name} {}", value.trim()));
            }
            _ if line.starts_with('#') || line.starts_with("extern \"C\"") || line.trim() == "}" => {}
            _ => {
                declarations.push_str(line);
                declarations.push(' ');
            }
        }
    }
    for declaration in split(&declarations, ';') {
        let declaration = declaration.split_whitespace().collect::<Vec<_>>().join(" ");
        if declaration.is_empty() {
            continue;
        }
        lines.push(match declaration.strip_prefix("typedef ") {
            Some(definition) => type_line(definition)?,
            None => function_line(&declaration)?,
        });
    }
    lines.sort();
    if let Some(pair) = lines.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("declared twice: {}", pair[0]));
    }
    let abi = abi.ok_or_else(|| format!("the header has no {ABI}"))?;
    Ok(format!("abi {abi}\n{}\n", lines.join("\n")))
}

/// Returns the lines of the older list that the newer one lacks. None counts where the version of the ABI has moved.
/// A type is kept where a field `reserved`, which is 0 in older programs, has got a name. More fields at its end break it: the
/// library refuses a struct that is smaller than its own.
pub fn broken(older: &str, newer: &str) -> Vec<String> {
    let abi = |list: &str| list.lines().find(|line| line.starts_with("abi ")).map(str::to_owned);
    if abi(older) != abi(newer) {
        return Vec::new();
    }
    let known = |line: &&str| ["constant ", "function ", "type "].iter().any(|kind| line.starts_with(kind));
    let newer: Vec<&str> = newer.lines().collect();
    let kept = |line: &str| newer.iter().any(|other| *other == line || names_reserved(line, other));
    older.lines().filter(known).filter(|line| !kept(line)).map(str::to_owned).collect()
}

/// Returns whether the newer structure is the older one with names for fields `reserved`.
fn names_reserved(older: &str, newer: &str) -> bool {
    let (Some((name, older)), Some((other_name, newer))) = (structure(older), structure(newer)) else {
        return false;
    };
    let is_same = |(older, newer): (&&str, &&str)| {
        older == newer || older.strip_suffix(" reserved").is_some_and(|of| type_of(newer) == of)
    };
    name == other_name && newer.len() == older.len() && older.iter().zip(&newer).all(is_same)
}

/// Returns the name and the fields of a structure's line.
fn structure(line: &str) -> Option<(&str, Vec<&str>)> {
    let (name, fields) = line.strip_prefix("type ")?.strip_suffix(" }")?.split_once(" { ")?;
    Some((name, fields.split("; ").collect()))
}

fn without_comments(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        code.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    code.push_str(rest);
    code.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect()
}

/// Splits at a separator outside of brackets.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0i32);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth -= 1,
            _ if letter == separator && depth == 0 => {
                parts.push(&text[start..at]);
                start = at + letter.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn type_line(definition: &str) -> Result<String, Message> {
    match (definition.split_once('{'), definition.rsplit_once('}')) {
        (Some((_, rest)), Some((_, name))) => {
            let fields = rest.rsplit_once('}').map_or(rest, |(fields, _)| fields);
            let fields: Vec<&str> =
                split(fields, ';').into_iter().map(str::trim).filter(|field| !field.is_empty()).collect();
            Ok(format!("type {} {{ {} }}", name.trim(), fields.join("; ")))
        }
        (None, None) => Ok(format!("type {definition}")),
        _ => Err(format!("not understood: typedef {definition}")),
    }
}

/// Returns a function without the names of its parameters, which are no part of the ABI.
fn function_line(declaration: &str) -> Result<String, Message> {
    let arguments =
        declaration.split_once('(').and_then(|(head, rest)| Some((head, rest.strip_suffix(')')?)));
    let (head, arguments) = arguments.ok_or_else(|| format!("not understood: {declaration}"))?;
    let types: Vec<String> =
        split(arguments, ',').into_iter().map(|argument| type_of(argument.trim())).collect();
    Ok(format!("function {head}({})", types.join(", ")))
}

/// Returns the type of a parameter.
fn type_of(parameter: &str) -> String {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if let Some((before, after)) = parameter.split_once("(*") {
        return format!("{before}(*{}", after.trim_start_matches(is_name));
    }
    let bare = parameter.trim_end_matches(is_name);
    // `void` and `size_t` alone are types; a name follows a type.
    if bare.trim().is_empty() { parameter.to_owned() } else { bare.trim_end().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "\
/* A comment; with a semicolon. */
#ifndef H
#define H
#define SV_VERSION_MAJOR 0
#define SV_ABI_VERSION 3
#define SV_OK 0
#ifdef __cplusplus
extern \"C\" {
#endif // __cplusplus
typedef struct sv_extent {
  /* Set by the caller. */
  size_t size;
  uint64_t sides[2];
} sv_extent;
int32_t sv_release(uint64_t handle);
const char *sv_last_error(void);
int32_t sv_own(void *pointer,
               void (*deleter)(void*), const size_t *sizes);
#ifdef __cplusplus
}  // extern \"C\"
#endif
";

    #[test]
    fn a_list_has_every_declaration_without_names() {
        let wanted = "\
abi 3
constant SV_OK 0
function const char *sv_last_error(void)
function int32_t sv_own(void *, void (*)(void*), const size_t *)
function int32_t sv_release(uint64_t)
type sv_extent { size_t size; uint64_t sides[2] }
";
        assert_eq!(list(HEADER).unwrap(), wanted);
    }

    #[test]
    fn a_changed_function_breaks_the_abi_until_its_version_moves() {
        let older = list(HEADER).unwrap();
        let changed = HEADER.replace("uint64_t handle", "uint32_t handle");
        assert_eq!(broken(&older, &list(&changed).unwrap()), ["function int32_t sv_release(uint64_t)"]);
        let moved = changed.replace("SV_ABI_VERSION 3", "SV_ABI_VERSION 4");
        assert!(broken(&older, &list(&moved).unwrap()).is_empty());
        let added = HEADER.replace("int32_t sv_own", "int32_t sv_new(int32_t x);\nint32_t sv_own");
        assert!(broken(&older, &list(&added).unwrap()).is_empty());
        let renamed = HEADER.replace("uint64_t handle", "uint64_t object");
        assert!(broken(&older, &list(&renamed).unwrap()).is_empty());
    }

    #[test]
    fn a_structure_may_name_a_reserved_field_but_not_grow() {
        let list_of = |fields: &str| list(&HEADER.replace("  uint64_t sides[2];", fields)).unwrap();
        let older = list_of("  int32_t kind; int32_t reserved;");
        assert!(broken(&older, &list_of("  int32_t kind; int32_t dtype;")).is_empty());
        for changed in [
            "  int32_t kind; uint32_t dtype;",
            "  int32_t kind; int32_t dtype[2];",
            "  int32_t kind;",
            "  int32_t kind; int32_t reserved; double scale;",
            "  int32_t kind; int32_t dtype; double scale;",
            "  int32_t sort; int32_t reserved;",
            "  double scale; int32_t kind; int32_t reserved;",
        ] {
            assert_eq!(broken(&older, &list_of(changed)).len(), 1, "{changed}");
        }
    }

    #[test]
    fn a_function_declared_twice_is_an_error() {
        let twice = HEADER.replace("int32_t sv_own", "int32_t sv_release(uint64_t handle);\nint32_t sv_own");
        assert!(list(&twice).unwrap_err().contains("declared twice"));
    }
}
