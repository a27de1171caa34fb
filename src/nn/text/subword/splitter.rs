//! [`SplitPattern`], the split of a text into pre-tokens by the patterns that most byte-level tokenizers have.
//!
//! A hand-written scanner takes the place of a regular expression with look-ahead, which is most of the time of an encoding. Each
//! scanner returns the length of the match at the start of a text; the order of its branches is the order of the alternatives.
//! The classes of characters come from the tables of `regex-syntax`, so both have the same version of Unicode.
//!
//! Tests: `tests` below compare every pattern with its regular expression on random text.

use std::sync::LazyLock;

use regex_syntax::hir::{Class, HirKind};

/// A pattern that splits a text into pre-tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitPattern {
    /// GPT-2's: words and numbers with the space before them.
    Gpt2,
    /// Llama 3's: contractions of either case, numbers of up to three digits, line ends at the end of punctuation.
    Llama3,
    /// Qwen 2's: Llama 3's with numbers of one digit.
    Qwen2,
    /// None: the text is one pre-token.
    Whole,
}

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

impl SplitPattern {
    /// Returns the pattern's regular expression; none for [`Whole`](SplitPattern::Whole).
    pub fn regex(self) -> Option<&'static str> {
        match self {
            SplitPattern::Gpt2 => Some(GPT2),
            SplitPattern::Llama3 => Some(LLAMA3),
            SplitPattern::Qwen2 => Some(QWEN2),
            SplitPattern::Whole => None,
        }
    }

    /// Returns the pattern of a regular expression, if it is one of these.
    pub(super) fn of_regex(regex: &str) -> Option<SplitPattern> {
        [SplitPattern::Gpt2, SplitPattern::Llama3, SplitPattern::Qwen2]
            .into_iter()
            .find(|pattern| pattern.regex() == Some(regex))
    }

    /// Returns the pre-tokens of a text, which together are the text.
    pub(super) fn split(self, text: &str) -> impl Iterator<Item = &str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let (first, others) = rest.split_at_checked(self.first(rest))?;
            rest = others;
            Some(first)
        })
    }

    /// Returns the end of a part of about `wanted` bytes whose pre-tokens do not depend on the rest of the text: before a space
    /// between a visible ASCII character and an ASCII letter, where every pattern begins a pre-token.
    pub(super) fn cut(self, text: &[u8], wanted: usize) -> usize {
        if self == SplitPattern::Whole || text.len() <= wanted {
            return text.len();
        }
        let start = wanted.saturating_sub(1);
        let bytes = text.get(start..).unwrap_or_default();
        let is_cut = |window: &[u8]| matches!(window, [before, b' ', after] if before.is_ascii_graphic() && after.is_ascii_alphabetic());
        bytes.windows(3).position(is_cut).map_or(text.len(), |at| start + at + 1)
    }

    /// Returns the length in bytes of the first pre-token of a text that is not empty.
    fn first(self, text: &str) -> usize {
        match self {
            SplitPattern::Gpt2 => first_of_gpt2(text),
            SplitPattern::Llama3 => first_of_llama3(text, 3),
            SplitPattern::Qwen2 => first_of_llama3(text, 1),
            SplitPattern::Whole => text.len(),
        }
    }
}

/// A class of characters that the patterns tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CharacterClass {
    /// `\p{L}`
    Letter,
    /// `\p{N}`
    Number,
    /// `\s`
    Space,
    Other,
}

use CharacterClass::{Letter, Number, Other, Space};

/// The classes of the characters below 2¹⁶, and the ranges of the others in order.
struct Classes {
    low: Vec<CharacterClass>,
    high: Vec<(u32, u32, CharacterClass)>,
}

static CLASSES: LazyLock<Classes> = LazyLock::new(|| {
    let mut classes = Classes { low: vec![Other; 1 << 16], high: Vec::new() };
    for (pattern, class) in [(r"\p{L}", Letter), (r"\p{N}", Number), (r"\s", Space)] {
        let parsed = regex_syntax::parse(pattern).map(|parsed| parsed.into_kind());
        let Ok(HirKind::Class(Class::Unicode(ranges))) = parsed else { continue };
        for range in ranges.ranges() {
            let (start, end) = (u32::from(range.start()), u32::from(range.end()));
            for low in start..=end.min(0xffff) {
                classes.low[low as usize] = class;
            }
            if end > 0xffff {
                classes.high.push((start.max(0x10000), end, class));
            }
        }
    }
    classes.high.sort_unstable_by_key(|&(start, ..)| start);
    classes
});

/// The classes of ASCII, which most bytes of a text are.
const ASCII: [CharacterClass; 128] = {
    let mut classes = [Other; 128];
    let mut code = 0;
    while code < 128 {
        classes[code] = match code as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => Letter,
            b'0'..=b'9' => Number,
            b' ' | b'\t'..=b'\r' => Space,
            _ => Other,
        };
        code += 1;
    }
    classes
};

fn class_of(character: char) -> CharacterClass {
    let code = u32::from(character);
    if let Some(&class) = ASCII.get(code as usize) {
        return class;
    }
    let classes = &*CLASSES;
    if let Some(&class) = classes.low.get(code as usize) {
        return class;
    }
    let after = classes.high.partition_point(|&(start, ..)| start <= code);
    match after.checked_sub(1).and_then(|at| classes.high.get(at)) {
        Some(&(_, end, class)) if code <= end => class,
        _ => Other,
    }
}

/// Returns the length of the characters of a class at the start of a text.
fn run(text: &str, class: CharacterClass) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if let Some(&found) = ASCII.get(usize::from(byte)) {
            if found != class {
                return at;
            }
            at += 1;
            continue;
        }
        match text.get(at..).and_then(|rest| rest.chars().next()) {
            Some(character) if class_of(character) == class => at += character.len_utf8(),
            _ => return at,
        }
    }
    at
}

/// Returns the class of the first character, or none for an empty text.
fn first_class(text: &str) -> Option<CharacterClass> {
    text.chars().next().map(class_of)
}

fn first_of_gpt2(text: &str) -> usize {
    if let Some(rest) = text.strip_prefix('\'') {
        let endings = ["s", "t", "re", "ve", "m", "ll", "d"];
        if let Some(ending) = endings.iter().find(|&&ending| rest.starts_with(ending)) {
            return 1 + ending.len();
        }
    }
    let word = text.strip_prefix(' ').unwrap_or(text);
    match first_class(word) {
        Some(Space) | None => spaces(text),
        Some(class) => text.len() - word.len() + run(word, class),
    }
}

/// Returns the length of the match of `\s+(?!\S)|\s+` at the start of a text: white space, up to the last character before a word.
fn spaces(text: &str) -> usize {
    let end = run(text, Space);
    match text[..end].char_indices().next_back() {
        Some((last, _)) if end < text.len() && last > 0 => last,
        _ => end,
    }
}

fn first_of_llama3(text: &str, digits: usize) -> usize {
    let mut characters = text.chars();
    let Some(first) = characters.next() else { return 0 };
    let rest = characters.as_str();
    if first == '\''
        && let Some(length) = contraction(rest)
    {
        return 1 + length;
    }
    let class = class_of(first);
    match class {
        Letter => return run(text, Letter),
        Number => {
            let end = text.char_indices().take(digits).take_while(|&(_, digit)| class_of(digit) == Number);
            return end.last().map_or(0, |(at, digit)| at + digit.len_utf8());
        }
        _ => {}
    }
    if !matches!(first, '\r' | '\n') && first_class(rest) == Some(Letter) {
        return first.len_utf8() + run(rest, Letter);
    }
    let marks = text.strip_prefix(' ').unwrap_or(text);
    if first_class(marks) == Some(Other) {
        let end = text.len() - marks.len() + run(marks, Other);
        let ends = text[end..].bytes().take_while(|byte| matches!(byte, b'\r' | b'\n'));
        return end + ends.count();
    }
    let end = run(text, Space);
    match text[..end].rfind(['\r', '\n']) {
        Some(last) => last + 1,
        None => spaces(text),
    }
}

/// Returns the length of the ending of an English contraction, in either case. U+017F folds to s.
fn contraction(text: &str) -> Option<usize> {
    let mut characters = text.chars();
    let first = characters.next()?;
    match first.to_ascii_lowercase() {
        's' | 't' | 'm' | 'd' => return Some(1),
        '\u{17f}' => return Some(first.len_utf8()),
        _ => {}
    }
    let second = characters.next()?;
    match (first.to_ascii_lowercase(), second.to_ascii_lowercase()) {
        ('r' | 'v', 'e') | ('l', 'l') => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tokenizers::pre_tokenizers::split::{Split, SplitPattern as HfPattern};
    use tokenizers::{
        OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer, SplitDelimiterBehavior,
    };

    use super::*;

    fn by_regex(split: &Split, text: &str) -> Vec<String> {
        let mut pieces = PreTokenizedString::from(text);
        split.pre_tokenize(&mut pieces).unwrap();
        let pieces = pieces.get_splits(OffsetReferential::Original, OffsetType::Byte);
        pieces.into_iter().map(|(piece, ..)| piece.to_owned()).collect()
    }

    #[test]
    fn scanners_split_random_text_as_their_regular_expressions() {
        let alphabet: Vec<char> = "  \t\n\r\u{85}\u{a0}\u{3000}'''sStTrReEvVmMlLdDaZéß\u{17f}ǅ019٣Ⅷ½.,!?-_…\u{301}\u{200d}\u{fe0f}漢カ🙂𝔸𝟘𐄇\u{1f1e6}\u{e000}"
            .chars()
            .collect();
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for pattern in [SplitPattern::Gpt2, SplitPattern::Llama3, SplitPattern::Qwen2] {
            let regex = HfPattern::Regex(pattern.regex().unwrap().to_owned());
            let split = Split::new(regex, SplitDelimiterBehavior::Isolated, false).unwrap();
            for case in 0..2000 {
                let length = random(if case % 2 == 0 { 8 } else { 40 });
                let mut character = || match random(12) {
                    0 => char::from_u32(random(0x11_0000) as u32).unwrap_or('\u{fffd}'),
                    _ => alphabet[random(alphabet.len())],
                };
                let text: String = (0..length).map(|_| character()).collect();
                let found: Vec<&str> = pattern.split(&text).collect();
                assert_eq!(found, by_regex(&split, &text), "{pattern:?} of {text:?}");
            }
            assert_eq!(SplitPattern::of_regex(pattern.regex().unwrap()), Some(pattern));
        }
        assert_eq!(SplitPattern::Whole.split("a b").collect::<Vec<_>>(), ["a b"]);
        assert_eq!(SplitPattern::of_regex(r"\s+"), None);
    }
}
