//! The values of `SELVEDGE_POOL` and `SELVEDGE_MEMORY_LIMIT`. With an unknown value, every allocation returns an error.

use std::sync::OnceLock;

use crate::error::{Error, Result};

/// The source of buffers' memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolMode {
    /// The heap, in pages if the driver supports them.
    Cached,
    /// The heap, in segments.
    Plain,
    /// A driver allocation for each buffer.
    None,
    /// A driver allocation for each buffer, filled with `0xFF`.
    Poison,
    /// A pool of the driver.
    Driver,
}

impl PoolMode {
    /// The name in a snapshot; a heap without pages is a plain one.
    pub(crate) fn name(self, without_pages: bool) -> &'static str {
        match self {
            PoolMode::Cached if !without_pages => "paged",
            PoolMode::Cached | PoolMode::Plain => "plain",
            PoolMode::None => "none",
            PoolMode::Poison => "poison",
            PoolMode::Driver => "driver",
        }
    }

    /// Returns whether blocks come from the heap.
    #[inline]
    pub(crate) fn has_heap(self) -> bool {
        matches!(self, PoolMode::Cached | PoolMode::Plain)
    }
}

#[derive(Clone)]
struct Settings {
    mode: PoolMode,
    limit: Option<u64>,
}

fn settings() -> &'static Result<Settings> {
    static SETTINGS: OnceLock<Result<Settings>> = OnceLock::new();
    SETTINGS.get_or_init(|| Ok(Settings { mode: read_mode()?, limit: read_limit()? }))
}

#[inline]
pub(crate) fn mode() -> Result<PoolMode> {
    match settings() {
        Ok(settings) => Ok(settings.mode),
        Err(error) => Err(error.clone()),
    }
}

/// The limit on reserved memory that the environment sets, if any.
pub(crate) fn limit_of_environment() -> Result<Option<u64>> {
    settings().as_ref().map(|settings| settings.limit).map_err(Error::clone)
}

fn read_mode() -> Result<PoolMode> {
    let wanted = "plain, none, poison, driver, or unset";
    match std::env::var("SELVEDGE_POOL") {
        Err(std::env::VarError::NotPresent) => Ok(PoolMode::Cached),
        Err(error) => Err(Error::invalid("SELVEDGE_POOL", error, wanted)),
        Ok(text) => match text.as_str() {
            "" => Ok(PoolMode::Cached),
            "plain" => Ok(PoolMode::Plain),
            "none" => Ok(PoolMode::None),
            "poison" => Ok(PoolMode::Poison),
            "driver" => Ok(PoolMode::Driver),
            other => Err(Error::invalid("SELVEDGE_POOL", other, wanted)),
        },
    }
}

fn read_limit() -> Result<Option<u64>> {
    let wanted = "a number of bytes from 1, perhaps with K, M or G behind it, or unset";
    match std::env::var("SELVEDGE_MEMORY_LIMIT") {
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(error) => Err(Error::invalid("SELVEDGE_MEMORY_LIMIT", error, wanted)),
        Ok(text) if text.is_empty() => Ok(None),
        Ok(text) => match parse_bytes(&text) {
            Some(bytes) => Ok(Some(bytes)),
            None => Err(Error::invalid("SELVEDGE_MEMORY_LIMIT", text, wanted)),
        },
    }
}

/// Parses a number from 1, with an optional suffix for a power of 1024.
fn parse_bytes(text: &str) -> Option<u64> {
    let (number, shift) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 10),
        b'M' | b'm' => (&text[..text.len() - 1], 20),
        b'G' | b'g' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let plain = number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = number.parse().ok().filter(|&number| plain && number > 0)?;
    number.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn sizes_are_numbers_with_a_letter() {
        for (text, bytes) in [("1", 1), ("512K", 512 << 10), ("3m", 3 << 20), ("2G", 2 << 30)] {
            assert_eq!(parse_bytes(text), Some(bytes), "{text}");
        }
        for text in
            ["", "0", "-1", "+1", "1.5G", "G", "1T", "1 G", "99999999999999999999", "17179869184G", "é"]
        {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
    }
}
