//! [`Fields`], the keys of a JSON object as checked values.

use serde_json::{Map, Value};

use super::CONFIG;
use crate::error::{Error, Result};

/// The largest size: products of two sizes and a small count fit an `isize`.
const MAX_COUNT: u64 = 1 << 30;

/// The keys of a JSON object. A key whose value is null counts as missing.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    /// The object's own key and a dot, if it is part of another.
    prefix: &'a str,
}

impl<'a> Fields<'a> {
    pub fn new(map: &'a Map<String, Value>, prefix: &'a str) -> Fields<'a> {
        Fields { map, prefix }
    }

    /// Returns the value of a key, unless it is null.
    pub fn value(self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// Returns whether a key is there, also with a null.
    pub fn contains(self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    /// Returns the error for a value.
    pub fn refuse(self, key: &str, wanted: impl Into<String>) -> Error {
        let found = match self.map.get(key) {
            Some(value) => format!("{}{key} = {}", self.prefix, shortened(value)),
            None => format!("no {}{key}", self.prefix),
        };
        Error::invalid(CONFIG, found, wanted.into())
    }

    /// Returns a size that must be there.
    pub fn count(self, key: &str) -> Result<usize> {
        self.optional_count(key)?.ok_or_else(|| self.refuse(key, COUNT))
    }

    /// Returns a size of at least 1, if it is there.
    pub fn optional_count(self, key: &str) -> Result<Option<usize>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        match value.as_u64() {
            Some(count) if (1..=MAX_COUNT).contains(&count) => Ok(Some(count as usize)),
            _ => Err(self.refuse(key, COUNT)),
        }
    }

    /// Returns a positive number, if it is there.
    pub fn optional_number(self, key: &str) -> Result<Option<f64>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        match value.as_f64() {
            Some(number) if number.is_finite() && number > 0.0 => Ok(Some(number)),
            _ => Err(self.refuse(key, NUMBER)),
        }
    }

    /// Returns a positive number that must be there.
    pub fn number(self, key: &str) -> Result<f64> {
        self.optional_number(key)?.ok_or_else(|| self.refuse(key, NUMBER))
    }

    /// Returns a flag, or what it is if the key is missing.
    pub fn flag(self, key: &str, default: bool) -> Result<bool> {
        match self.value(key) {
            None => Ok(default),
            Some(value) => value.as_bool().ok_or_else(|| self.refuse(key, "true or false")),
        }
    }

    /// Returns a text, if it is there.
    pub fn text(self, key: &str) -> Result<Option<&'a str>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.refuse(key, "a text"))
    }

    /// Returns an object, if it is there, whose keys errors name behind `prefix`.
    pub fn object(self, key: &str, prefix: &'a str) -> Result<Option<Fields<'a>>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let map = value.as_object().ok_or_else(|| self.refuse(key, "an object"))?;
        Ok(Some(Fields { map, prefix }))
    }

    /// Returns positive numbers, as many as a count.
    pub fn numbers(self, key: &str, count: usize) -> Result<Vec<f64>> {
        let wanted = || self.refuse(key, format!("a list of {count} positive numbers"));
        let values = self.value(key).and_then(Value::as_array).ok_or_else(wanted)?;
        let number = |value: &Value| value.as_f64().filter(|number| number.is_finite() && *number > 0.0);
        let numbers: Option<Vec<f64>> = values.iter().map(number).collect();
        numbers.filter(|numbers| numbers.len() == count).ok_or_else(wanted)
    }

    /// Returns the ids of a key: one, a list of them, or none. Older files have -1 for none.
    pub fn ids(self, key: &str) -> Result<Vec<u32>> {
        let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
        let ids = match self.value(key) {
            None => Some(Vec::new()),
            Some(value) if value.as_i64() == Some(-1) => Some(Vec::new()),
            Some(Value::Array(values)) => values.iter().map(id).collect(),
            Some(value) => id(value).map(|id| vec![id]),
        };
        ids.ok_or_else(|| self.refuse(key, "an id of at least 0, or a list of ids"))
    }
}

const COUNT: &str = "a whole number from 1 to 1073741824";
const NUMBER: &str = "a positive finite number";

/// Returns a value as text of bounded length.
fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
