//! Kernels' texts for the assembler.
//!
//! An operation's instructions are the same in every class of layouts, and what is around them in every operation; so of
//! most operations one class is kept, of a few all. `SELVEDGE_PTX_ALL` keeps everything.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

/// Writes texts where `SELVEDGE_PTX_OUT` says, if it does and they are `wanted`.
pub fn keep(texts: &[String], wanted: bool) {
    if !wanted && std::env::var_os("SELVEDGE_PTX_ALL").is_none() {
        return;
    }
    let Some(folder) = std::env::var_os("SELVEDGE_PTX_OUT") else { return };
    for text in texts {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let path = Path::new(&folder).join(format!("{:016x}.ptx", hasher.finish()));
        if !path.exists() {
            std::fs::write(&path, text).expect("a folder that can be written");
        }
    }
}
