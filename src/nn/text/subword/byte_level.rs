//! The alphabet of byte-level tokenizers, in which a visible character stands for each byte, and [`ByteTable`].

use std::sync::LazyLock;

/// Bytes that stand for themselves; the others take the characters from U+0100 on, in order.
fn is_visible(byte: u8) -> bool {
    matches!(byte, 33..=126 | 161..=172 | 174..=255)
}

/// The character of each byte.
pub(super) static CHARACTERS: LazyLock<[char; 256]> = LazyLock::new(|| {
    let mut next = 0x100;
    std::array::from_fn(|byte| {
        let byte = byte as u8;
        let code = if is_visible(byte) {
            u32::from(byte)
        } else {
            next += 1;
            next - 1
        };
        char::from_u32(code).unwrap_or_default()
    })
});

/// The bytes of the characters below U+0144; none for those of no byte.
static BYTES: LazyLock<[Option<u8>; 0x144]> = LazyLock::new(|| {
    let mut bytes = [None; 0x144];
    for (byte, &character) in (0..=255u8).zip(CHARACTERS.iter()) {
        if let Some(slot) = bytes.get_mut(character as usize) {
            *slot = Some(byte);
        }
    }
    bytes
});

/// Returns the bytes of a token: those of its characters, or of its text if a character stands for no byte.
pub(super) fn bytes_of(token: &str) -> Vec<u8> {
    let byte = |character: char| BYTES.get(character as usize).copied().flatten();
    let bytes: Option<Vec<u8>> = token.chars().map(byte).collect();
    bytes.unwrap_or_else(|| token.as_bytes().to_vec())
}

/// The bytes of every id of a byte-level tokenizer.
pub(super) struct ByteTable {
    bytes: Vec<u8>,
    /// The end of each id's bytes, and false for an id without a token.
    ends: Vec<(usize, bool)>,
}

impl ByteTable {
    /// Creates the table of the tokens in the order of their ids.
    pub(super) fn new(tokens: impl Iterator<Item = Option<String>>) -> ByteTable {
        let mut table = ByteTable { bytes: Vec::new(), ends: Vec::new() };
        for token in tokens {
            table.bytes.extend(token.as_deref().map(bytes_of).unwrap_or_default());
            table.ends.push((table.bytes.len(), token.is_some()));
        }
        table
    }

    /// Returns the bytes of an id, or none for an id without a token.
    pub(super) fn get(&self, id: u32) -> Option<&[u8]> {
        let id = id as usize;
        let &(end, is_token) = self.ends.get(id)?;
        let start = id.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |&(end, _)| end);
        self.bytes.get(start..end).filter(|_| is_token)
    }
}
