//! Which share of an exhaustive set of tests one run takes.
//!
//! `SELVEDGE_TESTS=all` runs every set whole, `SELVEDGE_TESTS=parity,random` these sets, and `sample` (the default) a share
//! of each. A seed chooses the share: `SELVEDGE_TESTS_SEED`, or the hash of the checked-out commit, so that successive
//! commits run different cases and one commit always the same. docs/testing.md lists the sets.

#![allow(dead_code, reason = "each test executable uses its own part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{env, fs};

/// The names that `SELVEDGE_TESTS` accepts besides `all` and `sample`.
pub const SETS: &[&str] = &["damaged", "emulated", "parity", "random"];

/// The share of a set that one run takes.
#[derive(Clone, Copy)]
pub struct Share {
    /// One case in so many.
    pub one_in: u64,
    /// Cases of a row that run at least, where the row has as many.
    pub least: usize,
}

/// Returns whether `SELVEDGE_TESTS` asks for the whole set.
///
/// # Panics
///
/// On a name that is no set, which would otherwise run less than was asked for.
pub fn is_whole(set: &str) -> bool {
    assert!(SETS.contains(&set), "{set} is not in SETS");
    let asked = env::var("SELVEDGE_TESTS").unwrap_or_default();
    is_whole_in(&asked, set)
}

fn is_whole_in(asked: &str, set: &str) -> bool {
    let mut whole = false;
    for name in asked.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        assert!(
            matches!(name, "all" | "sample") || SETS.contains(&name),
            "SELVEDGE_TESTS has '{name}'; it takes 'all', 'sample' or names of {SETS:?}"
        );
        whole |= name == "all" || name == set;
    }
    whole
}

/// Returns the seed of this run.
pub fn seed() -> &'static str {
    static SEED: OnceLock<String> = OnceLock::new();
    SEED.get_or_init(|| {
        let given = env::var("SELVEDGE_TESTS_SEED").ok().filter(|seed| !seed.is_empty());
        given.or_else(|| commit(&super::repository())).unwrap_or_else(|| "0".to_owned())
    })
}

/// Returns how a run that sampled is repeated and how it is made whole.
pub fn instructions() -> String {
    format!("SELVEDGE_TESTS_SEED={} repeats this sample, SELVEDGE_TESTS=all runs every case", seed())
}

/// Returns the first twelve digits of the checked-out commit, read from the files of git; `None` outside a checkout.
fn commit(repository: &Path) -> Option<String> {
    let read = |path: PathBuf| fs::read_to_string(path).ok();
    let mut folder = repository.join(".git");
    // A worktree has a file that names its folder.
    if let Some(text) = read(folder.clone()) {
        folder = repository.join(text.strip_prefix("gitdir:")?.trim());
    }
    let head = read(folder.join("HEAD"))?;
    let hash = match head.trim().strip_prefix("ref: ") {
        None => head.trim().to_owned(),
        Some(name) => {
            let shared = match read(folder.join("commondir")) {
                Some(path) => folder.join(path.trim()),
                None => folder.clone(),
            };
            let packed = || {
                let text = read(shared.join("packed-refs"))?;
                let line = text.lines().find(|line| line.ends_with(&format!(" {name}")))?;
                line.split(' ').next().map(str::to_owned)
            };
            read(shared.join(name)).map(|text| text.trim().to_owned()).or_else(packed)?
        }
    };
    hash.get(..12).map(str::to_owned)
}

/// Returns a number for a name under the seed, the same on every machine (FNV-1a, then a finalizer).
pub fn number(name: &str) -> u64 {
    number_under(seed(), name)
}

fn number_under(seed: &str, name: &str) -> u64 {
    let bytes = seed.bytes().chain([0]).chain(name.bytes());
    let mut hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

/// Returns a share of `cases` and some of each row; all where the set is to run whole.
///
/// A case's row is its name up to the last `::`: of `add::f32::transposed` the operation and the dtype. A name of fewer than
/// three parts stands for itself and is always taken.
pub fn sample<T>(set: &str, share: Share, cases: Vec<T>, name: impl Fn(&T) -> &str) -> Vec<T> {
    if is_whole(set) {
        return cases;
    }
    sample_under(seed(), share, cases, name)
}

fn sample_under<T>(seed: &str, share: Share, cases: Vec<T>, name: impl Fn(&T) -> &str) -> Vec<T> {
    let mut rows: BTreeMap<String, Vec<(u64, usize)>> = BTreeMap::new();
    for (index, case) in cases.iter().enumerate() {
        let name = name(case);
        let row = name.rsplit_once("::").map(|(row, _)| row).filter(|row| row.contains("::")).unwrap_or(name);
        rows.entry(row.to_owned()).or_default().push((number_under(seed, name), index));
    }
    let mut taken = vec![false; cases.len()];
    for row in rows.values_mut() {
        row.sort_unstable();
        for (place, &(number, index)) in row.iter().enumerate() {
            taken[index] = place < share.least || number % share.one_in == 0;
        }
    }
    cases.into_iter().zip(taken).filter_map(|(case, taken)| taken.then_some(case)).collect()
}

/// Returns every n-th case, of which the name and the seed choose the first; all where the set is to run whole.
pub fn every<T>(set: &str, n: usize, name: &str, cases: impl IntoIterator<Item = T>) -> Vec<T> {
    if is_whole(set) {
        return cases.into_iter().collect();
    }
    cases.into_iter().skip(number(name) as usize % n).step_by(n).collect()
}

/// Checks of this module, for the one suite that runs them.
pub fn checks() -> Result<(), String> {
    let cases: Vec<String> =
        (0..50).flat_map(|row| (0..20).map(move |case| format!("operation{row}::f32::{case}"))).collect();
    let share = |one_in| Share { one_in, least: 2 };
    let take = |seed: &str, one_in| sample_under(seed, share(one_in), cases.clone(), |name| name);
    let (one, same, other) = (take("a", 5), take("a", 5), take("b", 5));
    let expect = |right: bool, text: &str| if right { Ok(()) } else { Err(text.to_owned()) };
    expect(one == same, "a seed takes the same cases")?;
    expect(one != other, "another seed takes others")?;
    expect((100..400).contains(&one.len()), "a fifth of a thousand, about")?;
    let rare = take("a", 1_000_000);
    expect(rare.len() == 100, "two of each row at least")?;
    let alone = vec!["scan::empty".to_owned(), "scan::past_32_bits".to_owned(), "scan::bad".to_owned()];
    expect(
        sample_under("a", share(1_000_000), alone, |name| name).len() == 3,
        "tests outside of tables always run",
    )?;
    expect(take("a", 1).len() == cases.len(), "a share of one is everything")?;
    let mut seen: Vec<bool> = vec![false; cases.len()];
    for seed in 0..60 {
        for case in take(&seed.to_string(), 5) {
            seen[cases.iter().position(|known| *known == case).ok_or("a case of the table")?] = true;
        }
    }
    expect(seen.iter().all(|seen| *seen), "sixty commits reach every case")?;
    expect(is_whole_in("all", "parity") && is_whole_in("random, parity", "parity"), "sets by name")?;
    expect(!is_whole_in("", "parity") && !is_whole_in("sample,random", "parity"), "sampled")?;
    expect(std::panic::catch_unwind(|| is_whole_in("al", "parity")).is_err(), "a wrong name is refused")
}
