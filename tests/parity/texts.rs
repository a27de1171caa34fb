//! The texts of kernels for the assembler.
//!
//! An operation's instructions are the same in every class of layouts, and the surrounding instructions in
//! every operation. One class of most operations is therefore stored, and all classes of a few.
//! `SELVEDGE_PTX_ALL` stores everything.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use selvedge::fuse::{RowExplanation, RowLaunches};

/// Returns the texts of the kernels of whole row programs.
pub fn of_rows(plan: &RowExplanation) -> Vec<String> {
    let text = |launches: &RowLaunches| match launches {
        RowLaunches::Rows(launch) => Some(launch.ptx.clone()),
        _ => None,
    };
    plan.kernels.iter().filter_map(|kernel| text(&kernel.launches)).collect()
}

/// Writes `wanted` texts to the folder `SELVEDGE_PTX_OUT`, if it is set.
pub fn keep(texts: &[String], wanted: bool) {
    keep_as("", texts, wanted);
}

/// As [`keep`], for kernels of random programs, which may need more registers than there are.
pub fn keep_random(texts: &[String], wanted: bool) {
    keep_as("random-", texts, wanted);
}

fn keep_as(prefix: &str, texts: &[String], wanted: bool) {
    if !wanted && std::env::var_os("SELVEDGE_PTX_ALL").is_none() {
        return;
    }
    let Some(folder) = std::env::var_os("SELVEDGE_PTX_OUT") else { return };
    for text in texts {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let path = Path::new(&folder).join(format!("{prefix}{:016x}.ptx", hasher.finish()));
        if !path.exists() {
            std::fs::write(&path, text).expect("a folder that can be written");
        }
    }
}
