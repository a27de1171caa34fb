//! A minimal JSON writer and strict reader for snapshots and traces.
//!
//! The reader parses in one pass and builds no tree, so that a trace of millions of requests costs no more memory than
//! its numbers. Input that differs from the caller's expectation is an error with its position. The reader never
//! panics.

use std::fmt::Write;

/// The found and the expected text, in words.
pub(crate) struct JsonError {
    pub(crate) found: String,
    pub(crate) wanted: String,
}

pub(crate) type Read<T> = Result<T, JsonError>;

/// Appends a quoted string.
pub(crate) fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control < ' ' => {
                // Writing to a `String` cannot fail.
                let _ = write!(out, "\\u{:04x}", control as u32);
            }
            plain => out.push(plain),
        }
    }
    out.push('"');
}

/// A position in a text.
pub(crate) struct JsonReader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> JsonReader<'a> {
    pub(crate) fn new(text: &'a str) -> JsonReader<'a> {
        JsonReader { text, at: 0 }
    }

    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    /// Returns an error at this position.
    pub(crate) fn wrong(&mut self, wanted: impl Into<String>) -> JsonError {
        let found = match self.peek() {
            None => "the end of the text".to_owned(),
            Some(_) => {
                let rest: String = self.text.get(self.at..).unwrap_or("").chars().take(12).collect();
                format!("{rest:?}")
            }
        };
        JsonError { found: format!("{found} at byte {}", self.at), wanted: wanted.into() }
    }

    fn sign(&mut self, sign: u8) -> Read<()> {
        if self.peek() == Some(sign) {
            self.at += 1;
            return Ok(());
        }
        Err(self.wrong(format!("'{}'", sign as char)))
    }

    fn takes(&mut self, sign: u8) -> bool {
        let is = self.peek() == Some(sign);
        self.at += usize::from(is);
        is
    }

    /// Fails unless only whitespace follows.
    pub(crate) fn end(&mut self) -> Read<()> {
        if self.peek().is_none() { Ok(()) } else { Err(self.wrong("nothing more")) }
    }

    /// Reads an object. `member` reads the value of each key.
    pub(crate) fn object(&mut self, mut member: impl FnMut(&mut Self, &str) -> Read<()>) -> Read<()> {
        self.sign(b'{')?;
        if self.takes(b'}') {
            return Ok(());
        }
        loop {
            let key = self.string()?;
            self.sign(b':')?;
            member(self, &key)?;
            if !self.takes(b',') {
                return self.sign(b'}');
            }
        }
    }

    /// Reads an array. `item` reads each value.
    pub(crate) fn array(&mut self, mut item: impl FnMut(&mut Self) -> Read<()>) -> Read<()> {
        self.sign(b'[')?;
        if self.takes(b']') {
            return Ok(());
        }
        loop {
            item(self)?;
            if !self.takes(b',') {
                return self.sign(b']');
            }
        }
    }

    /// Reads an unsigned integer.
    pub(crate) fn number(&mut self) -> Read<u64> {
        self.peek();
        let digits = self.text.as_bytes()[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let end = self.at + digits;
        let follows = self.text.as_bytes().get(end);
        let text = &self.text[self.at..end];
        let plain = !matches!(follows, Some(b'.' | b'e' | b'E')) && (digits == 1 || !text.starts_with('0'));
        match text.parse() {
            Ok(number) if plain => {
                self.at = end;
                Ok(number)
            }
            _ => Err(self.wrong("a whole number from 0 to 2^64 - 1")),
        }
    }

    /// Reads an unsigned integer or `null`.
    pub(crate) fn number_or_null(&mut self) -> Read<Option<u64>> {
        if self.peek() == Some(b'n') && self.text[self.at..].starts_with("null") {
            self.at += 4;
            return Ok(None);
        }
        self.number().map(Some)
    }

    /// Reads a string.
    pub(crate) fn string(&mut self) -> Read<String> {
        if self.peek() != Some(b'"') {
            return Err(self.wrong("a string"));
        }
        let start = self.at;
        let mut out = String::new();
        let mut characters = self.text[start + 1..].char_indices();
        while let Some((offset, character)) = characters.next() {
            match character {
                '"' => {
                    self.at = start + 1 + offset + 1;
                    return Ok(out);
                }
                '\\' => match characters.next().map(|(_, escaped)| escaped) {
                    Some(plain @ ('"' | '\\' | '/')) => out.push(plain),
                    Some('n') => out.push('\n'),
                    Some('t') => out.push('\t'),
                    Some('r') => out.push('\r'),
                    Some('b') => out.push('\u{8}'),
                    Some('f') => out.push('\u{c}'),
                    Some('u') => {
                        let digits: String = characters.by_ref().take(4).map(|(_, digit)| digit).collect();
                        let are_digits =
                            digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
                        let code = u32::from_str_radix(&digits, 16).ok().filter(|_| are_digits);
                        match code.and_then(char::from_u32) {
                            Some(character) => out.push(character),
                            None => {
                                return Err(self.wrong("a string whose \\u is four digits of a character"));
                            }
                        }
                    }
                    _ => return Err(self.wrong("a string with known escapes")),
                },
                control if control < ' ' => return Err(self.wrong("a string without control characters")),
                plain => out.push(plain),
            }
        }
        Err(self.wrong("a string that ends"))
    }
}

/// Stores a member of an object, which may occur once.
pub(crate) fn once<T>(
    reader: &mut JsonReader<'_>,
    key: &str,
    slot: &mut Option<T>,
    value: Read<T>,
) -> Read<()> {
    let value = value?;
    if slot.replace(value).is_some() {
        return Err(reader.wrong(format!("'{key}' only once")));
    }
    Ok(())
}

/// Returns the member of an object, which must have occurred.
pub(crate) fn needed<T>(reader: &mut JsonReader<'_>, key: &str, value: Option<T>) -> Read<T> {
    value.ok_or_else(|| reader.wrong(format!("'{key}' before the end of the object")))
}

#[cfg(test)]
mod tests {
    use super::{JsonReader, write_string};

    #[test]
    fn strings_come_back() {
        for text in ["", "plain", "\"quoted\" \\ and \n\t\u{1}", "é中😀"] {
            let mut out = String::new();
            write_string(&mut out, text);
            let mut reader = JsonReader::new(&out);
            assert_eq!(reader.string().ok().as_deref(), Some(text));
            assert!(reader.end().is_ok());
        }
    }

    #[test]
    fn escapes_have_four_digits() {
        assert_eq!(JsonReader::new("\"\\u00e9\"").string().ok().as_deref(), Some("é"));
        for text in ["\"\\u+041\"", "\"\\u041\"", "\"\\ud800\"", "\"\\u00g1\""] {
            assert!(JsonReader::new(text).string().is_err(), "{text}");
        }
    }

    #[test]
    fn only_whole_numbers_are_numbers() {
        for text in ["0", "7", "18446744073709551615"] {
            assert_eq!(JsonReader::new(text).number().ok(), text.parse().ok());
        }
        for text in ["", "-1", "1.0", "1e3", "01", "18446744073709551616", "x", "\"1\""] {
            assert!(JsonReader::new(text).number().is_err(), "{text}");
        }
    }

    #[test]
    fn damaged_text_is_an_error_with_its_position() {
        for text in ["[1,2", "[1 2]", "[1,]", "[", "]", "{\"a\":1}", "[é]"] {
            let mut reader = JsonReader::new(text);
            let wrong = reader.array(|reader| reader.number().map(drop)).unwrap_err();
            assert!(wrong.found.contains("at byte"), "{text}: {}", wrong.found);
        }
    }
}
