//! JSON as Python's `json.dumps` writes it, for `tojson`.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

/// The options of `json.dumps` that `tojson` takes.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// Spaces of a level, or the text of one.
    pub indent: Option<Value>,
    pub ensure_ascii: bool,
    pub sort_keys: bool,
    /// The texts between elements, and between a key and its value.
    pub separators: Option<Value>,
}

/// The deepest nesting.
const MAX_DEPTH: usize = 128;

pub(super) fn write(value: &Value, layout: &Layout) -> Result<String, Error> {
    let indent = match &layout.indent {
        Some(indent) if !indent.is_none() => Some(match indent.as_str() {
            Some(text) => text.to_owned(),
            None => " ".repeat(indent.as_usize().unwrap_or(0).min(64)),
        }),
        _ => None,
    };
    let separator = |at: usize, default: &str| match &layout.separators {
        Some(separators) if !separators.is_none() => {
            separators.get_item_by_index(at).map(|text| text.to_string())
        }
        _ => Ok(default.to_owned()),
    };
    let between = separator(0, if indent.is_some() { "," } else { ", " })?;
    let mut writer = Writer { text: String::new(), indent, between, colon: separator(1, ": ")?, layout };
    writer.value(value, 0)?;
    Ok(writer.text)
}

struct Writer<'a> {
    text: String,
    indent: Option<String>,
    between: String,
    colon: String,
    layout: &'a Layout,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            let text = format!("tojson of values nested deeper than {MAX_DEPTH}");
            return Err(Error::new(ErrorKind::InvalidOperation, text));
        }
        match value.kind() {
            ValueKind::None => self.text += "null",
            ValueKind::Bool => self.text += if value.is_true() { "true" } else { "false" },
            ValueKind::Number => self.text += &number(value),
            ValueKind::String => self.string(value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => {
                let elements = value.try_iter()?;
                self.group('[', ']', elements, depth, |writer, element| writer.value(&element, depth + 1))?;
            }
            ValueKind::Map => {
                let mut keys: Vec<Value> = value.try_iter()?.collect();
                if self.layout.sort_keys {
                    keys.sort();
                }
                self.group('{', '}', keys.into_iter(), depth, |writer, key| {
                    match key.as_str() {
                        Some(key) => writer.string(key),
                        None => {
                            let text = write(&key, &Layout::default())?;
                            writer.string(&text);
                        }
                    }
                    writer.text += &writer.colon.clone();
                    writer.value(&value.get_item(&key)?, depth + 1)
                })?;
            }
            kind => {
                return Err(Error::new(
                    ErrorKind::InvalidOperation,
                    format!("tojson of a value that is {kind}"),
                ));
            }
        }
        Ok(())
    }

    fn group(
        &mut self,
        open: char,
        close: char,
        elements: impl Iterator<Item = Value>,
        depth: usize,
        mut write: impl FnMut(&mut Self, Value) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.text.push(open);
        let mut is_empty = true;
        for element in elements {
            if !is_empty {
                self.text += &self.between.clone();
            }
            is_empty = false;
            self.line(depth + 1);
            write(self, element)?;
        }
        if !is_empty {
            self.line(depth);
        }
        self.text.push(close);
        Ok(())
    }

    fn line(&mut self, depth: usize) {
        if let Some(indent) = &self.indent {
            self.text.push('\n');
            self.text += &indent.repeat(depth);
        }
    }

    fn string(&mut self, text: &str) {
        self.text.push('"');
        for character in text.chars() {
            match character {
                '"' => self.text += "\\\"",
                '\\' => self.text += "\\\\",
                '\n' => self.text += "\\n",
                '\r' => self.text += "\\r",
                '\t' => self.text += "\\t",
                '\u{8}' => self.text += "\\b",
                '\u{c}' => self.text += "\\f",
                '\0'..'\u{20}' => self.escape(character),
                _ if self.layout.ensure_ascii && !matches!(character, ' '..='~' | '\u{7f}') => {
                    self.escape(character)
                }
                _ => self.text.push(character),
            }
        }
        self.text.push('"');
    }

    fn escape(&mut self, character: char) {
        for unit in character.encode_utf16(&mut [0; 2]) {
            self.text += &format!("\\u{unit:04x}");
        }
    }
}

/// Returns a number as Python's `repr` writes it: an exponent has a sign and two digits.
fn number(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    let Ok(number) = f64::try_from(value.clone()) else { return value.to_string() };
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let text = format!("{number:?}");
    match text.split_once('e') {
        None => text,
        Some((digits, exponent)) => {
            let (sign, exponent) =
                exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
            format!("{digits}e{sign}{exponent:0>2}")
        }
    }
}
