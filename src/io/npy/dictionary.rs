//! The text of an `.npy` header: a Python dict literal with the keys `descr`, `fortran_order` and `shape`.
//!
//! The parser makes one pass without recursion. It accepts the headers that NumPy reads: the keys in any
//! order, both kinds of quotes, white space between tokens, an optional last comma, and the `L` after a
//! Python 2 integer (`(2L,)`). A shape may also be a list, which NumPy refuses.

use super::header::{Refusal, refuse};

/// The values of a header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Dictionary<'a> {
    /// NumPy's type string, without its quotes.
    pub(super) descr: &'a [u8],
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<usize>,
}

/// Parses the text of a header.
///
/// # Errors
///
/// A refusal of text that is no dict of exactly these three keys, of a structured dtype, and of a shape whose
/// dimensions or their product do not fit an address.
pub(super) fn parse(text: &[u8]) -> Result<Dictionary<'_>, Refusal> {
    let mut parser = Parser { text, at: 0 };
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    parser.expect(b'{')?;
    while !parser.accepts(b'}') {
        let key = parser.string("a key in quotes or '}'")?;
        parser.expect(b':')?;
        let twice = match key {
            b"descr" => descr.replace(parser.descr()?).is_some(),
            b"fortran_order" => fortran_order.replace(parser.boolean()?).is_some(),
            b"shape" => shape.replace(parser.shape()?).is_some(),
            _ => return Err(refuse(format!("a header with the key {}", quoted(key)), WANTED)),
        };
        if twice {
            return Err(refuse(format!("a header with the key {} twice", quoted(key)), WANTED));
        }
        if !parser.accepts(b',') {
            parser.expect(b'}')?;
            break;
        }
    }
    parser.expect_end()?;
    let missing = |key: &str| refuse(format!("a header without the key '{key}'"), WANTED);
    Ok(Dictionary {
        descr: descr.ok_or_else(|| missing("descr"))?,
        fortran_order: fortran_order.ok_or_else(|| missing("fortran_order"))?,
        shape: shape.ok_or_else(|| missing("shape"))?,
    })
}

const WANTED: &str = "a dict of 'descr', 'fortran_order' and 'shape', as NumPy writes it";

/// The longest part of a header that an error quotes, in bytes.
const MAX_QUOTED: usize = 40;

/// Returns bytes of the header for an error message: in quotes, escaped, and shortened if they are long.
pub(super) fn quoted(bytes: &[u8]) -> String {
    match bytes.get(..MAX_QUOTED) {
        Some(start) if bytes.len() > MAX_QUOTED => format!("'{}…'", start.escape_ascii()),
        _ => format!("'{}'", bytes.escape_ascii()),
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    /// Skips white space and returns the next byte without consuming it.
    fn peek(&mut self) -> Option<u8> {
        let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        self.at += self.rest().iter().take_while(is_space).count();
        self.rest().first().copied()
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Consumes this byte if it is next.
    fn accepts(&mut self, wanted: u8) -> bool {
        let accepted = self.peek() == Some(wanted);
        self.at += usize::from(accepted);
        accepted
    }

    fn expect(&mut self, wanted: u8) -> Result<(), Refusal> {
        if self.accepts(wanted) { Ok(()) } else { Err(self.unexpected(&format!("'{}'", char::from(wanted)))) }
    }

    fn expect_end(&mut self) -> Result<(), Refusal> {
        if self.peek().is_none() { Ok(()) } else { Err(self.unexpected("nothing after the dict")) }
    }

    /// Returns the refusal of the next token.
    fn unexpected(&mut self, wanted: &str) -> Refusal {
        let found = match self.peek() {
            Some(byte) => format!("'{}' at byte {}", [byte].escape_ascii(), self.at),
            None => "its end".to_owned(),
        };
        unreadable(&format!("found {found}, wanted {wanted}"))
    }

    /// Consumes a string and returns it without its quotes.
    fn string(&mut self, wanted: &str) -> Result<&'a [u8], Refusal> {
        let Some(quote @ (b'\'' | b'"')) = self.peek() else { return Err(self.unexpected(wanted)) };
        let rest = self.rest().get(1..).unwrap_or_default();
        let Some(length) = rest.iter().position(|byte| *byte == quote) else {
            return Err(unreadable(&format!("a string without an end at byte {}", self.at)));
        };
        let string = rest.get(..length).unwrap_or_default();
        if let Some(odd) = string.iter().position(|byte| matches!(byte, b'\\' | 0..=0x1f | 0x7f..)) {
            let byte = [string[odd]];
            let at = self.at + 1 + odd;
            return Err(unreadable(&format!(
                "found '{}' at byte {at}, wanted plain text",
                byte.escape_ascii()
            )));
        }
        self.at += length + 2;
        Ok(string)
    }

    /// Consumes a type string. The field list of a structured dtype is refused with its names.
    fn descr(&mut self) -> Result<&'a [u8], Refusal> {
        if self.peek() == Some(b'[') {
            let found = match &field_names(self.rest())[..] {
                [] => "a structured dtype without fields".to_owned(),
                names => format!("a structured dtype with the fields {}", names.join(", ")),
            };
            return Err(refuse(found, "elements of one plain dtype: save one field, array['name'], a file"));
        }
        self.string("a type string in quotes")
    }

    fn boolean(&mut self) -> Result<bool, Refusal> {
        self.peek();
        let length = self.rest().iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let value = match self.rest().get(..length) {
            Some(b"True") => true,
            Some(b"False") => false,
            _ => return Err(self.unexpected("True or False")),
        };
        self.at += length;
        Ok(value)
    }

    /// Consumes a tuple or a list of dimensions.
    fn shape(&mut self) -> Result<Vec<usize>, Refusal> {
        let is_tuple = self.accepts(b'(');
        if !is_tuple && !self.accepts(b'[') {
            return Err(self.unexpected("a tuple of dimensions"));
        }
        let end = if is_tuple { b')' } else { b']' };
        let mut shape = Vec::new();
        let mut product = 1u64;
        while !self.accepts(end) {
            let dimension = self.dimension()?;
            // A 0 must not hide the other dimensions.
            product =
                dimension.and_then(|dimension| product.checked_mul(dimension.max(1))).ok_or_else(|| {
                    let found = "a header with a shape whose elements cannot be counted in 64 bits";
                    refuse(found, "dimensions whose product fits an address")
                })?;
            let dimension = dimension.and_then(|dimension| usize::try_from(dimension).ok());
            shape.push(dimension.ok_or_else(|| {
                refuse("a header with a dimension over 32 bits", "dimensions that fit an address")
            })?);
            if !self.accepts(b',') {
                // Python reads `(3)` as the number 3.
                if is_tuple && shape.len() == 1 {
                    return Err(self.unexpected("',' after the only dimension of a tuple"));
                }
                self.expect(end)?;
                break;
            }
        }
        Ok(shape)
    }

    /// Consumes a dimension. Returns `None` if it does not fit 64 bits.
    fn dimension(&mut self) -> Result<Option<u64>, Refusal> {
        if self.peek() == Some(b'-') {
            let digits = self.rest().iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
            let number = self.rest().get(..=digits).unwrap_or_default();
            let found = format!("a header with the negative dimension {}", quoted(number));
            return Err(refuse(found, "dimensions of at least 0"));
        }
        let digits = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = self.rest().get(..digits).unwrap_or_default();
        if number.is_empty() {
            return Err(self.unexpected("a dimension as a plain decimal"));
        }
        self.at += digits;
        // Python 2 writes an L after a long integer.
        self.at += usize::from(self.rest().first() == Some(&b'L'));
        Ok(number.iter().try_fold(0u64, |value, digit| {
            value.checked_mul(10).and_then(|value| value.checked_add(u64::from(digit - b'0')))
        }))
    }
}

fn unreadable(problem: &str) -> Refusal {
    refuse(format!("a header that cannot be read ({problem})"), WANTED)
}

/// Returns the names in the field list of a structured dtype (`[('x', '<f4'), …]`): the first string of each
/// outer tuple.
fn field_names(list: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    let (mut depth, mut previous) = (0usize, 0);
    let mut rest = list;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => continue,
            b'[' | b'(' => depth += 1,
            b']' | b')' => depth = depth.saturating_sub(1),
            b'\'' | b'"' => {
                let length = rest.iter().position(|other| *other == byte).unwrap_or(rest.len());
                let (name, after) = rest.split_at(length);
                if depth == 2 && matches!(previous, b'(' | b'[') {
                    names.push(String::from_utf8_lossy(name).escape_debug().to_string());
                }
                rest = after.get(1..).unwrap_or_default();
            }
            _ => {}
        }
        previous = byte;
        if depth == 0 {
            break;
        }
    }
    names
}
