//! The names of kernels that `csrc/images.txt` declares, for tests. tests/images.rs compiles this file too.

const LIST: &str = include_str!("../../csrc/images.txt");

/// The words of the lines that are no comments.
fn lines() -> impl Iterator<Item = Vec<&'static str>> {
    let lines = LIST.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.filter(|words| words.first().is_some_and(|first| !first.starts_with('#')))
}

/// Returns the names that a pattern stands for: `{a,b}` is each of its alternatives.
fn expand(pattern: &str) -> Vec<String> {
    let Some((head, rest)) = pattern.split_once('{') else {
        return vec![pattern.to_owned()];
    };
    let (alternatives, tail) = rest.split_once('}').unwrap_or_else(|| panic!("{pattern} lacks a '}}'"));
    let tails = expand(tail);
    let names = alternatives.split(',').flat_map(|middle| tails.iter().map(move |tail| (middle, tail)));
    names.map(|(middle, tail)| format!("{head}{middle}{tail}")).collect()
}

/// Returns the families that have images, in order.
pub fn families() -> Vec<&'static str> {
    let mut families: Vec<_> = lines().map(|words| words[0]).filter(|first| *first != "entries").collect();
    families.sort_unstable();
    families
}

/// Returns the sorted names of the kernels in a family's image for a target, such as `sm_80`.
pub fn declared(family: &str, target: &str) -> Vec<String> {
    let mut names = Vec::new();
    for words in
        lines().filter(|words| words[0] == "entries" && expand(words[1]).iter().any(|name| name == family))
    {
        for entry in &words[2..] {
            let (pattern, only) = entry.split_once(":compute_").map_or((*entry, None), |(a, b)| (a, Some(b)));
            if only.is_none_or(|only| target.strip_prefix("sm_") == Some(only)) {
                names.extend(expand(&pattern.replace('*', family)));
            }
        }
    }
    names.sort_unstable();
    names
}

#[test]
fn every_line_of_entries_names_families_that_have_images() {
    for words in lines().filter(|words| words[0] == "entries") {
        for family in expand(words[1]) {
            assert!(families().contains(&family.as_str()), "entries of '{family}', which has no image");
        }
    }
}

#[test]
fn patterns_stand_for_every_combination_of_their_alternatives() {
    assert_eq!(expand("k"), ["k"]);
    assert_eq!(expand("{a,b}_{1,2}x"), ["a_1x", "a_2x", "b_1x", "b_2x"]);
    assert!(declared("gemm_mma_f16", "sm_80").contains(&"gemm_mma_f16_tn_large".to_owned()));
    assert!(!declared("gemm_mma_f16", "sm_75").contains(&"gemm_mma_f16_tn_large".to_owned()));
}
