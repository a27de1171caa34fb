//! PTX in the form that every assembler accepts: without a byte-order mark, with ASCII comments, and with a final NUL.
//!
//! Newer assemblers refuse any non-ASCII byte ("Unexpected non-ASCII character"), and all refuse a byte-order mark. The
//! mark and the text of comments have no meaning, so both are replaced. Non-ASCII bytes elsewhere stay, and the
//! assembler reports them.

use std::borrow::Cow;

/// The byte-order mark of UTF-8, which editors on Windows add.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns PTX in the form that the driver gets. Each non-ASCII byte of a comment becomes a blank, so that the
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

/// The lexical context of a byte of PTX.
#[derive(Clone, Copy, PartialEq)]
enum LexicalContext {
    Code,
    Text,
    Line,
    Block,
}

fn blank_comments(text: &mut [u8]) {
    let mut context = LexicalContext::Code;
    let mut at = 0;
    while let Some(byte) = text.get(at).copied() {
        let next = text.get(at + 1).copied();
        let mut length = 1;
        context = match (context, byte, next) {
            (LexicalContext::Code, b'/', Some(b'/')) => LexicalContext::Line,
            (LexicalContext::Code, b'/', Some(b'*')) => {
                length = 2;
                LexicalContext::Block
            }
            (LexicalContext::Code, b'"', _) => LexicalContext::Text,
            (LexicalContext::Text, b'\\', _) => {
                length = 2;
                LexicalContext::Text
            }
            (LexicalContext::Text, b'"' | b'\n', _) | (LexicalContext::Line, b'\n', _) => {
                LexicalContext::Code
            }
            (LexicalContext::Block, b'*', Some(b'/')) => {
                length = 2;
                LexicalContext::Code
            }
            (same, ..) => same,
        };
        if !byte.is_ascii()
            && matches!(context, LexicalContext::Line | LexicalContext::Block)
            && let Some(byte) = text.get_mut(at)
        {
            *byte = b' ';
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
            // A mark in the middle is kept.
            (b".version \xef\xbb\xbf8.0\0", b".version \xef\xbb\xbf8.0\0"),
            ("// größe\nret; // ×2".as_bytes(), b"// gr    e\nret; //   2\0"),
            ("/* ü // */ ü /* é\n* é */ret;".as_bytes(), b"/*    // */ \xc3\xbc /*   \n*    */ret;\0"),
            // Strings are unchanged, and contain no comment.
            ("\"// ü \\\" /* ü\" // ü".as_bytes(), "\"// ü \\\" /* ü\" //   \0".as_bytes()),
            // A string ends with its line, as for the image reader.
            ("\"ü\n// ü".as_bytes(), "\"ü\n//   \0".as_bytes()),
            ("a / ü */ b /*/ ü".as_bytes(), "a / ü */ b /*/   \0".as_bytes()),
            // Bytes in no encoding.
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
