//! A prediction of the file that the dynamic linker would load.
//!
//! Loading NVRTC takes 4 to 9 ms, which a program whose images are all cached need not spend. It only has to know which
//! NVRTC would be loaded. This module searches like glibc's linker: the folders of `LD_LIBRARY_PATH`, the list by
//! `ldconfig` (`/etc/ld.so.cache`), then the system's folders.
//!
//! Invariants: the result is a prediction. Unknown circumstances (a run path of the executable, another linker than
//! glibc's) make it wrong or missing, so a caller may lose only time by a wrong one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::layout::Environment;

/// The list that `ldconfig` writes.
pub(super) const LIST: &str = "/etc/ld.so.cache";

/// The folders of the system's own libraries.
const FOLDERS: &[&str] = &["/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// The magic number of the list. Older systems have an older list before it, in the same file.
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";

/// The list's flags for libraries of this processor.
const FLAGS: Option<u32> = if cfg!(all(target_arch = "x86_64", target_pointer_width = "64")) {
    Some(0x303)
} else if cfg!(target_arch = "aarch64") {
    Some(0xa03)
} else {
    None
};

/// Returns the file that the linker finds under a bare name.
pub(super) fn find(name: &str, environment: Environment<'_>) -> Option<PathBuf> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let listed = std::fs::read(LIST).unwrap_or_default();
    find_in(name, environment, &listed)
}

fn find_in(name: &str, environment: Environment<'_>, listed: &[u8]) -> Option<PathBuf> {
    named_folders(environment)
        .into_iter()
        .map(|folder| folder.join(name))
        .chain(in_list(listed, name).map(PathBuf::from))
        .chain(FOLDERS.iter().map(|folder| Path::new(folder).join(name)))
        .find(|file| file.is_file())
}

/// Returns the folders that the linker searches, besides those of its list.
pub(super) fn folders(environment: Environment<'_>) -> impl Iterator<Item = PathBuf> {
    named_folders(environment).into_iter().chain(FOLDERS.iter().map(PathBuf::from))
}

/// Returns the folders of `LD_LIBRARY_PATH`.
fn named_folders(environment: Environment<'_>) -> Vec<PathBuf> {
    let folders = environment("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = folders.as_encoded_bytes().split(|byte| matches!(byte, b':' | b';'));
    // An empty part would be the current folder; an empty variable has no parts.
    let named = folders.filter(|folder| !folder.is_empty()).map(|folder| {
        // SAFETY: split at ASCII, so each part is as well formed as the whole.
        PathBuf::from(unsafe { OsStr::from_encoded_bytes_unchecked(folder) })
    });
    named.collect()
}

/// Returns the path for a name in the list: a header of 48 bytes, entries of 24 (flags, offsets of name and path, then
/// unused fields), and the terminated texts, with offsets from the header.
fn in_list<'a>(list: &'a [u8], name: &str) -> Option<&'a str> {
    let start = list.windows(MAGIC.len()).position(|window| window == MAGIC)?;
    let list = list.get(start..)?;
    let number = |at: usize| Some(u32::from_ne_bytes(list.get(at..at.checked_add(4)?)?.try_into().ok()?));
    let text = |at: u32| {
        let rest = list.get(at as usize..)?;
        std::str::from_utf8(rest.get(..rest.iter().position(|byte| *byte == 0)?)?).ok()
    };
    let count = number(20)? as usize;
    let entries = list.get(48..)?.chunks_exact(24).take(count).enumerate();
    entries.map(|(index, _)| 48 + index * 24).find_map(|at| {
        let fits = number(at) == FLAGS && text(number(at + 4)?)? == name;
        fits.then(|| text(number(at + 8)?)).flatten()
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// A list of names and paths in the format of `ldconfig`.
    fn list(entries: &[(u32, &str, &str)]) -> Vec<u8> {
        let mut head = MAGIC.to_vec();
        head.extend((entries.len() as u32).to_ne_bytes());
        head.resize(48, 0);
        let mut texts = Vec::new();
        let base = 48 + 24 * entries.len();
        for (flags, name, path) in entries {
            head.extend(flags.to_ne_bytes());
            for text in [name, path] {
                head.extend(((base + texts.len()) as u32).to_ne_bytes());
                texts.extend(text.as_bytes());
                texts.push(0);
            }
            head.extend([0; 12]);
        }
        head.extend(texts);
        head
    }

    #[test]
    fn the_list_is_read() {
        let flags = FLAGS.unwrap_or_default();
        let entries = [
            (flags, "liba.so.1", "/x/liba.so.1"),
            (7, "libb.so.1", "/32/libb.so.1"),
            (flags, "libb.so.1", "/x/b"),
        ];
        let good = list(&entries);
        assert_eq!(in_list(&good, "liba.so.1"), Some("/x/liba.so.1"));
        assert_eq!(in_list(&good, "libb.so.1"), Some("/x/b"));
        assert_eq!(in_list(&good, "libb.so"), None);
        // With an older list before it, as glibc 2.31 and older wrote.
        assert_eq!(in_list(&[b"ld.so-1.7.0....", good.as_slice()].concat(), "libb.so.1"), Some("/x/b"));
        for length in 0..good.len() {
            let _ = in_list(&good[..length], "libb.so.1");
        }
        assert_eq!(in_list(b"", "libb.so.1"), None);
    }

    #[test]
    fn the_system_agrees() {
        // This process is linked against it, so the linker finds it.
        let listed = std::fs::read(LIST).unwrap_or_default();
        if in_list(&listed, "libc.so.6").is_some() {
            let found = find_in("libc.so.6", &|_| None, &listed).unwrap().canonicalize().unwrap();
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            assert!(maps.contains(found.to_str().unwrap()), "{found:?}\n{maps}");
        }
    }

    #[test]
    fn the_variable_comes_first() {
        let list = list(&[(FLAGS.unwrap_or_default(), "libself.so", "/proc/self/exe")]);
        let none = |_: &str| None;
        assert_eq!(find_in("libself.so", &none, &list), Some("/proc/self/exe".into()));
        let program = std::env::current_exe().unwrap();
        let (folder, name) = (program.parent().unwrap(), program.file_name().unwrap().to_str().unwrap());
        let value = [Path::new("/nowhere").as_os_str(), folder.as_os_str()].join(OsStr::new(":"));
        let variable = |_: &str| Some(value.clone());
        assert_eq!(find_in(name, &variable, &list), Some(program.clone()));
        assert_eq!(find_in("libself.so", &variable, &list), Some("/proc/self/exe".into()));
        assert_eq!(find_in("libnowhere.so", &variable, &list), None);
    }
}
