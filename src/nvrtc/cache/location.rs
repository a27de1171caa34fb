//! The location of the user's cache, from the environment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The location of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CacheLocation {
    Folder(PathBuf),
    /// Disabled on purpose.
    None,
    /// Disabled by an invalid variable.
    Unusable {
        variable: &'static str,
        found: String,
        wanted: &'static str,
    },
}

/// Returns the location, and the limit if one is set.
pub(super) fn standard(environment: &dyn Fn(&str) -> Option<OsString>) -> (CacheLocation, Option<u64>) {
    let value = |variable: &str| environment(variable).filter(|value| !value.is_empty());
    let limit = match value("SELVEDGE_CACHE_LIMIT") {
        None => None,
        Some(text) => match text.to_str().and_then(parse_bytes) {
            Some(bytes) => Some(bytes),
            None => {
                let wanted = "a number of bytes from 1, perhaps with K, M or G behind it, or unset";
                let found = format!("'{}'", text.to_string_lossy());
                return (CacheLocation::Unusable { variable: "SELVEDGE_CACHE_LIMIT", found, wanted }, None);
            }
        },
    };
    let location = match value("SELVEDGE_CACHE") {
        Some(value) if value == "none" => CacheLocation::None,
        Some(value) if Path::new(&value).is_absolute() => CacheLocation::Folder(value.into()),
        Some(value) => CacheLocation::Unusable {
            variable: "SELVEDGE_CACHE",
            found: format!("'{}'", value.to_string_lossy()),
            wanted: "an absolute path, or none",
        },
        None => home(&value),
    };
    (location, limit)
}

/// Returns the folder for the user's caches. The XDG standard ignores relative paths.
fn home(value: &dyn Fn(&str) -> Option<OsString>) -> CacheLocation {
    let folder = |variable: &str| value(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let (first, second, below) = if cfg!(windows) {
        ("LOCALAPPDATA", "USERPROFILE", "AppData\\Local")
    } else {
        ("XDG_CACHE_HOME", "HOME", ".cache")
    };
    match folder(first).or_else(|| folder(second).map(|home| home.join(below))) {
        Some(caches) => CacheLocation::Folder(caches.join("selvedge")),
        None => CacheLocation::Unusable {
            variable: "SELVEDGE_CACHE",
            found: format!("not set, and neither {first} nor {second} names a folder"),
            wanted: "an absolute path, or none",
        },
    }
}

/// Parses a number from 1, with an optional suffix for a power of 1024.
fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['K', 'k', 'M', 'm', 'G', 'g']);
    let factor: u64 = match text.get(digits.len()..)? {
        "" => 1,
        "K" | "k" => 1 << 10,
        "M" | "m" => 1 << 20,
        "G" | "g" => 1 << 30,
        _ => return None,
    };
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse::<u64>().ok().filter(|number| plain && *number > 0)?.checked_mul(factor)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> (CacheLocation, Option<u64>) {
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        standard(&find)
    }

    fn folder(path: &str) -> CacheLocation {
        CacheLocation::Folder(path.into())
    }

    #[test]
    fn the_first_that_is_set_decides() {
        let all = [("SELVEDGE_CACHE", "/a"), ("XDG_CACHE_HOME", "/b"), ("HOME", "/c")];
        assert_eq!(of(&all).0, folder("/a"));
        assert_eq!(of(&all[1..]).0, folder("/b/selvedge"));
        assert_eq!(of(&all[2..]).0, folder("/c/.cache/selvedge"));
        assert_eq!(
            of(&[("SELVEDGE_CACHE", ""), ("XDG_CACHE_HOME", ""), ("HOME", "/c")]).0,
            folder("/c/.cache/selvedge")
        );
        assert_eq!(of(&[("XDG_CACHE_HOME", "b"), ("HOME", "/c")]).0, folder("/c/.cache/selvedge"));
        assert_eq!(of(&[("SELVEDGE_CACHE", "none"), ("HOME", "/c")]).0, CacheLocation::None);
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (variables, named, shown) in [
            (&[("SELVEDGE_CACHE", "here"), ("HOME", "/c")][..], "SELVEDGE_CACHE", "'here'"),
            (&[("HOME", "c")], "SELVEDGE_CACHE", "not set"),
            (&[], "SELVEDGE_CACHE", "not set"),
            (&[("SELVEDGE_CACHE_LIMIT", "much"), ("HOME", "/c")], "SELVEDGE_CACHE_LIMIT", "'much'"),
        ] {
            let CacheLocation::Unusable { variable, found, .. } = of(variables).0 else {
                panic!("{variables:?}")
            };
            assert_eq!(variable, named);
            assert!(found.contains(shown), "{found}");
        }
    }

    #[test]
    fn limits_are_read() {
        assert_eq!(
            of(&[("SELVEDGE_CACHE_LIMIT", "64M"), ("HOME", "/c")]),
            (folder("/c/.cache/selvedge"), Some(64 << 20))
        );
        assert_eq!(of(&[("HOME", "/c")]).1, None);
        for (text, bytes) in [("1", 1), ("3k", 3 << 10), ("2G", 2 << 30)] {
            assert_eq!(parse_bytes(text), Some(bytes));
        }
        for text in ["", "0", "K", "1KM", "+1", "-1", "1.5G", "99999999999G", "18446744073709551616"] {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
    }
}
