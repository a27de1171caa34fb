//! PTX as every assembler reads it: without a byte-order mark, comments in ASCII, and a NUL at the end.
//!
//! Newer assemblers refuse a byte that is not ASCII wherever it is ("Unexpected non-ASCII character"), and all refuse a
//! byte-order mark. Neither means anything, so both go. Other places keep their bytes: there the assembler's own message is
//! right.

use std::borrow::Cow;

/// The byte-order mark of UTF-8, which editors on Windows put in front.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns PTX as the driver gets it. Bytes of comments that are not ASCII become blanks, one each, so that the
/// assembler's messages name the right columns.
pub(super) fn for_driver(ptx: &[u8]) -> Cow<'_, [u8]> {
    let text = ptx.strip_prefix(BYTE_ORDER_MARK).unwrap_or(ptx);
    if text.is_ascii() && text.last() == Some(&0) {
        return text.into();
    }
    let mut copy = Vec::with_capacity(text.len() + 1);
    copy.extend_from_slice(text);
    if !text.is_ascii() {
        blank_comments(&mut copy);
    }
    if copy.last() != Some(&0) {
        copy.push(0);
    }
    copy.into()
}

/// Where a byte of PTX is.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Code,
    Text,
    Line,
    Block,
}

fn blank_comments(text: &mut [u8]) {
    let mut place = Place::Code;
    let mut at = 0;
    while let Some(byte) = text.get(at).copied() {
        let next = text.get(at + 1).copied();
        let mut length = 1;
        place = match (place, byte, next) {
            (Place::Code, b'/', Some(b'/')) => Place::Line,
            (Place::Code, b'/', Some(b'*')) => {
                length = 2;
                Place::Block
            }
            (Place::Code, b'"', _) => Place::Text,
            (Place::Text, b'\\', _) => {
                length = 2;
                Place::Text
            }
            (Place::Text, b'"' | b'\n', _) | (Place::Line, b'\n', _) => Place::Code,
            (Place::Block, b'*', Some(b'/')) => {
                length = 2;
                Place::Code
            }
            (same, ..) => same,
        };
        if !byte.is_ascii() && matches!(place, Place::Line | Place::Block) {
            if let Some(byte) = text.get_mut(at) {
                *byte = b' ';
            }
        }
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::for_driver;

    #[test]
    fn comments_become_ascii_and_the_mark_goes() {
        let cases: [(&[u8], &[u8]); 12] = [
            (b"", b"\0"),
            (b".version 8.0\n", b".version 8.0\n\0"),
            (b".version 8.0\n\0", b".version 8.0\n\0"),
            (b"\xef\xbb\xbf.version 8.0", b".version 8.0\0"),
            (b"\xef\xbb\xbf.version 8.0\0", b".version 8.0\0"),
            // A mark in the middle is no mark.
            (b".version \xef\xbb\xbf8.0\0", b".version \xef\xbb\xbf8.0\0"),
            ("// größe\nret; // ×2".as_bytes(), b"// gr    e\nret; //   2\0"),
            ("/* ü // */ ü /* é\n* é */ret;".as_bytes(), b"/*    // */ \xc3\xbc /*   \n*    */ret;\0"),
            // Strings keep what they hold, and hold no comment.
            ("\"// ü \\\" /* ü\" // ü".as_bytes(), "\"// ü \\\" /* ü\" //   \0".as_bytes()),
            // A string ends with its line, as for the reader of images.
            ("\"ü\n// ü".as_bytes(), "\"ü\n//   \0".as_bytes()),
            ("a / ü */ b /*/ ü".as_bytes(), "a / ü */ b /*/   \0".as_bytes()),
            // Bytes of no encoding.
            (b"// \xff\xfe\x80\0", b"//    \0"),
        ];
        for (ptx, wanted) in cases {
            let found = for_driver(ptx);
            assert_eq!(
                found.escape_ascii().to_string(),
                wanted.escape_ascii().to_string(),
                "of {}",
                ptx.escape_ascii()
            );
        }
    }
}
