//! What an entry is found by: a hash of everything that decides what a compilation gives.
//!
//! To it belongs which NVRTC compiles. That is its file, by path, size and time of change: the version would be in no function's
//! answer without loading it, which takes longer than the whole lookup may. The same path with the same size and time is the same
//! library; another path with the same library only compiles once more.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};

/// Changes with anything that would make older entries wrong.
const FORMAT: &str = "2";

/// The key of an entry; first while parts are added, then whole.
#[derive(Clone)]
pub(in crate::nvrtc) struct Key {
    hash: Sha256,
    bytes: [u8; 32],
}

impl Key {
    /// The key of a kind of entry.
    pub(in crate::nvrtc) fn new(kind: &str) -> Key {
        let mut key = Key { hash: Sha256::new(), bytes: [0; 32] };
        for part in [kind, FORMAT, env!("CARGO_PKG_VERSION")] {
            key.add(part.as_bytes());
        }
        key
    }

    /// Adds a part. Its length goes first, so that no two lists of parts are alike.
    pub(in crate::nvrtc) fn add(&mut self, part: &[u8]) {
        self.hash.update((part.len() as u64).to_le_bytes());
        self.hash.update(part);
    }

    /// Adds a list, with its length.
    pub(in crate::nvrtc) fn add_all<'a>(&mut self, parts: impl Iterator<Item = &'a str> + Clone) {
        self.add(&(parts.clone().count() as u64).to_le_bytes());
        parts.for_each(|part| self.add(part.as_bytes()));
    }

    /// Ends it with what compiles.
    pub(in crate::nvrtc) fn of_compiler(mut self, compiler: &Identity) -> Key {
        self.add(compiler.path.as_os_str().as_encoded_bytes());
        self.add(&compiler.size.to_le_bytes());
        self.add(&compiler.changed.to_le_bytes());
        self.finish()
    }

    /// Ends it.
    pub(super) fn finish(mut self) -> Key {
        self.bytes = self.hash.clone().finalize().into();
        self
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The name of its file, without the ending.
    pub(super) fn name(&self) -> String {
        self.bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A library's file as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::nvrtc) struct Identity {
    path: PathBuf,
    size: u64,
    /// Nanoseconds since 1970.
    changed: u128,
}

impl Identity {
    /// The identity of a file; `None` where the system does not tell.
    pub(in crate::nvrtc) fn of(file: &Path) -> Option<Identity> {
        let path = file.canonicalize().ok()?;
        let metadata: Metadata = path.metadata().ok()?;
        let changed = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        metadata.is_file().then_some(Identity { path, size: metadata.len(), changed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(parts: &[&str]) -> String {
        let mut key = Key::new("test");
        parts.iter().for_each(|part| key.add(part.as_bytes()));
        key.finish().name()
    }

    #[test]
    fn other_parts_other_keys() {
        let names = [name(&["ab", "c"]), name(&["a", "bc"]), name(&["abc"]), name(&["abc", ""]), name(&[])];
        for (index, one) in names.iter().enumerate() {
            assert!(one.len() == 64 && one.bytes().all(|byte| byte.is_ascii_hexdigit()), "{one}");
            assert!(!names[..index].contains(one), "{one}");
        }
        assert_eq!(name(&["ab", "c"]), names[0]);
    }

    #[test]
    fn a_file_that_changes_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lib.so");
        assert_eq!(Identity::of(&file), None);
        std::fs::write(&file, "one").unwrap();
        let first = Identity::of(&file).unwrap();
        assert_eq!(Identity::of(&file).as_ref(), Some(&first));
        let past = UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(past).unwrap();
        let second = Identity::of(&file).unwrap();
        assert_ne!(first, second);
        std::fs::write(&file, "three").unwrap();
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(past).unwrap();
        assert_ne!(Identity::of(&file), Some(second));
        assert_eq!(Identity::of(folder.path()), None);
    }
}
