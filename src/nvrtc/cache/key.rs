//! Cache keys: a hash of everything that decides the result of a compilation.
//!
//! The key includes the identity of NVRTC: its file's path, size and modification time. Reading its version would
//! require loading it, which takes longer than a whole lookup. The same path with the same size and time is the same
//! library; the same library at another path only compiles once more.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};

/// Changes whenever older entries become invalid.
const FORMAT: &str = "2";

/// The key of an entry: incomplete while parts are added, then finished.
#[derive(Clone)]
pub(in crate::nvrtc) struct CacheKey {
    hash: Sha256,
    bytes: [u8; 32],
}

impl CacheKey {
    /// Starts a key for a kind of entry.
    pub(in crate::nvrtc) fn new(kind: &str) -> CacheKey {
        let mut key = CacheKey { hash: Sha256::new(), bytes: [0; 32] };
        for part in [kind, FORMAT, env!("CARGO_PKG_VERSION")] {
            key.add(part.as_bytes());
        }
        key
    }

    /// Adds a part, preceded by its length, so that no two lists of parts are alike.
    pub(in crate::nvrtc) fn add(&mut self, part: &[u8]) {
        self.hash.update((part.len() as u64).to_le_bytes());
        self.hash.update(part);
    }

    /// Adds a list, with its length.
    pub(in crate::nvrtc) fn add_all<'a>(&mut self, parts: impl Iterator<Item = &'a str> + Clone) {
        self.add(&(parts.clone().count() as u64).to_le_bytes());
        parts.for_each(|part| self.add(part.as_bytes()));
    }

    /// Finishes the key with the compiler's identity.
    pub(in crate::nvrtc) fn of_compiler(mut self, compiler: &Identity) -> CacheKey {
        self.add(compiler.path.as_os_str().as_encoded_bytes());
        self.add(&compiler.size.to_le_bytes());
        self.add(&compiler.changed.to_le_bytes());
        self.finish()
    }

    /// Finishes the key.
    pub(super) fn finish(mut self) -> CacheKey {
        self.bytes = self.hash.clone().finalize().into();
        self
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The name of the entry's file, without the suffix.
    pub(super) fn name(&self) -> String {
        self.bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The state of a library's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::nvrtc) struct Identity {
    path: PathBuf,
    size: u64,
    /// Nanoseconds since 1970.
    changed: u128,
}

impl Identity {
    /// Returns the identity of a file; `None` if the system does not report it.
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
        let mut key = CacheKey::new("test");
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
