//! The choice of a kernel of a module by name.
//!
//! A name means one kernel or none: the kernel of that name in the image or in C++, the template instance that was
//! requested, or the only kernel. Otherwise the error lists the kernels that exist.

use crate::driver::image::Declaration;
use crate::driver::{Function, Module};
use crate::error::{Error, Result};

/// Returns the kernel that a definition selects: its `entry`, which must exist, or else the kernel of the definition's
/// `name`, the program's only expression, or the only kernel.
///
/// A kernel is selected by its name in the image, by its expression (`lowered` has both), or by its plain C++ name if
/// that is unique.
pub(super) fn find(
    module: &Module,
    name: &str,
    entry: Option<&str>,
    lowered: &[(String, String)],
) -> Result<Function> {
    let names = match module.function_names() {
        Ok(names) => names,
        // The image is readable by the driver only, and the driver is too old to list it: the name must be the image's
        // own.
        Err(Error::MissingSymbol { .. }) => return module.function(entry.unwrap_or(name)),
        Err(error) => return Err(error),
    };
    match choose(&names, name, entry, lowered) {
        Some(found) => module.function(found),
        None => {
            Err(Error::UnknownName { kind: "kernel", wanted: entry.unwrap_or(name).to_owned(), found: names })
        }
    }
}

fn choose<'a>(
    names: &'a [String],
    name: &str,
    entry: Option<&str>,
    lowered: &'a [(String, String)],
) -> Option<&'a str> {
    if let Some(entry) = entry {
        return meant(names, entry, lowered);
    }
    meant(names, name, lowered).or(match (lowered, names) {
        ([(_, only)], _) => Some(only),
        (_, [only]) => Some(only),
        _ => None,
    })
}

fn meant<'a>(names: &'a [String], asked: &str, lowered: &'a [(String, String)]) -> Option<&'a str> {
    if let Some(found) = names.iter().find(|name| *name == asked) {
        return Some(found);
    }
    if let Some((_, found)) = lowered.iter().find(|(expression, _)| expression == asked) {
        return Some(found);
    }
    let is_called_so = |name: &&String| Declaration::of(name).is_some_and(|it| it.name() == asked);
    let mut called_so = names.iter().filter(is_called_so);
    called_so.next().filter(|_| called_so.next().is_none()).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_one_kernel_or_none() {
        let strings = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let names = strings(&["plain", "_Z5saxpyPKfPff", "_Z5scaleIfEvPT_S0_", "_Z5scaleIdEvPT_S0_"]);
        let lowered = [("scale<float>".to_owned(), "_Z5scaleIfEvPT_S0_".to_owned())];
        let one = |name, entry| choose(&names, name, entry, &[]);
        assert_eq!(one("plain", None), Some("plain"));
        assert_eq!(one("saxpy", None), Some("_Z5saxpyPKfPff"));
        assert_eq!(one("scale", None), None, "two are called so");
        assert_eq!(one("any", Some("_Z5scaleIdEvPT_S0_")), Some("_Z5scaleIdEvPT_S0_"));
        assert_eq!(one("plain", Some("nothing")), None, "what is chosen must be there");
        assert_eq!(one("nothing", None), None);
        let one = |name, entry| choose(&names, name, entry, &lowered);
        assert_eq!(one("any", Some("scale<float>")), Some("_Z5scaleIfEvPT_S0_"));
        assert_eq!(one("any", None), Some("_Z5scaleIfEvPT_S0_"), "the only expression");
        assert_eq!(one("plain", None), Some("plain"), "its own name comes first");
        assert_eq!(choose(&strings(&["only"]), "any", None, &[]), Some("only"));
        assert_eq!(choose(&[], "any", None, &[]), None);
    }
}
