//! A writer and a strict reader of JSON, just large enough for snapshots and traces.
//!
//! The reader takes a text apart as it goes and builds no tree, so that a trace of millions of requests costs no more than
//! its numbers. What it meets must be what the caller asks for; anything else is an error that says where. It never
//! panics, whatever the text.

use std::fmt::Write;

/// What was found instead of what was wanted; both in words.
pub(crate) struct Wrong {
    pub(crate) found: String,
    pub(crate) wanted: String,
}

pub(crate) type Read<T> = Result<T, Wrong>;

/// Adds a string with its quotes.
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

/// A place in a text.
pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str) -> Reader<'a> {
        Reader { text, at: 0 }
    }

    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    /// An error at this place.
    pub(crate) fn wrong(&mut self, wanted: impl Into<String>) -> Wrong {
        let found = match self.peek() {
            None => "the end of the text".to_owned(),
            Some(_) => {
                let rest: String = self.text.get(self.at..).unwrap_or("").chars().take(12).collect();
                format!("{rest:?}")
            }
        };
        Wrong { found: format!("{found} at byte {}", self.at), wanted: wanted.into() }
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

    /// Nothing but space may follow.
    pub(crate) fn end(&mut self) -> Read<()> {
        if self.peek().is_none() { Ok(()) } else { Err(self.wrong("nothing more")) }
    }

    /// An object; `member` reads the value of each key.
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

    /// An array; `item` reads each value.
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

    /// A whole number from 0.
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

    /// A whole number, or `null`.
    pub(crate) fn number_or_null(&mut self) -> Read<Option<u64>> {
        if self.peek() == Some(b'n') && self.text[self.at..].starts_with("null") {
            self.at += 4;
            return Ok(None);
        }
        self.number().map(Some)
    }

    /// A string.
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

/// Keeps a member of an object, which may be there once.
pub(crate) fn once<T>(reader: &mut Reader<'_>, key: &str, place: &mut Option<T>, value: Read<T>) -> Read<()> {
    let value = value?;
    if place.replace(value).is_some() {
        return Err(reader.wrong(format!("'{key}' only once")));
    }
    Ok(())
}

/// The member of an object, which must have been there.
pub(crate) fn needed<T>(reader: &mut Reader<'_>, key: &str, value: Option<T>) -> Read<T> {
    value.ok_or_else(|| reader.wrong(format!("'{key}' before the end of the object")))
}

#[cfg(test)]
mod tests {
    use super::{Reader, write_string};

    #[test]
    fn strings_come_back() {
        for text in ["", "plain", "\"quoted\" \\ and \n\t\u{1}", "é中😀"] {
            let mut out = String::new();
            write_string(&mut out, text);
            let mut reader = Reader::new(&out);
            assert_eq!(reader.string().ok().as_deref(), Some(text));
            assert!(reader.end().is_ok());
        }
    }

    #[test]
    fn escapes_have_four_digits() {
        assert_eq!(Reader::new("\"\\u00e9\"").string().ok().as_deref(), Some("é"));
        for text in ["\"\\u+041\"", "\"\\u041\"", "\"\\ud800\"", "\"\\u00g1\""] {
            assert!(Reader::new(text).string().is_err(), "{text}");
        }
    }

    #[test]
    fn only_whole_numbers_are_numbers() {
        for text in ["0", "7", "18446744073709551615"] {
            assert_eq!(Reader::new(text).number().ok(), text.parse().ok());
        }
        for text in ["", "-1", "1.0", "1e3", "01", "18446744073709551616", "x", "\"1\""] {
            assert!(Reader::new(text).number().is_err(), "{text}");
        }
    }

    #[test]
    fn damaged_text_is_an_error_with_its_place() {
        for text in ["[1,2", "[1 2]", "[1,]", "[", "]", "{\"a\":1}", "[é]"] {
            let mut reader = Reader::new(text);
            let wrong = reader.array(|reader| reader.number().map(drop)).unwrap_err();
            assert!(wrong.found.contains("at byte"), "{text}: {}", wrong.found);
        }
    }
}
