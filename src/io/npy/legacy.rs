//! Normalization of headers that NumPy reads although it no longer writes them.
//!
//! NumPy accepts any element type that `numpy.dtype` accepts (`f4`, `=f4`, `?`, `float32`, `d`) and the `L`
//! after a Python 2 integer (`(2L,)`). `npyz` accepts neither.

use std::borrow::Cow;

/// Returns the header with its element type as NumPy writes it and without the `L` of Python 2. The text has
/// passed [`check_text`](super::header), so a quote ends at the next quote of its kind.
pub(super) fn normalize(text: &[u8]) -> Cow<'_, [u8]> {
    let mut written = Vec::with_capacity(text.len() + 2);
    let mut at = 0;
    // The last string; it is a key if a colon follows.
    let mut key: &[u8] = b"";
    let mut expects_value = false;
    while let Some(&byte) = text.get(at) {
        let rest = text.get(at + 1..).unwrap_or_default();
        match byte {
            b'\'' | b'"' => {
                let length = rest.iter().position(|other| *other == byte).unwrap_or(rest.len());
                let string = rest.get(..length).unwrap_or_default();
                let plain = if expects_value && key == b"descr" { plain_type(string) } else { None };
                written.push(byte);
                written.extend_from_slice(plain.as_deref().map_or(string, str::as_bytes));
                written.push(byte);
                (key, expects_value) = (string, false);
                at += length + 2;
                continue;
            }
            b'L' if text.get(at.wrapping_sub(1)).is_some_and(u8::is_ascii_digit) => {}
            _ => written.push(byte),
        }
        match byte {
            b':' => expects_value = true,
            byte if byte.is_ascii_whitespace() => {}
            // A list of fields or a number is not a plain type.
            _ => expects_value = false,
        }
        at += 1;
    }
    if written == text { text.into() } else { written.into() }
}

/// Returns NumPy's own spelling of a type string, or `None` if the string is that spelling or unknown.
fn plain_type(string: &[u8]) -> Option<String> {
    let (order, name) = match string.first()? {
        b'<' | b'>' | b'|' | b'=' => (string[0], string.get(1..)?),
        _ => (b'=', string),
    };
    let name = std::str::from_utf8(name).ok()?;
    let code = match name {
        "?" | "b1" | "bool" | "bool_" => "b1",
        "b" | "i1" | "int8" | "byte" => "i1",
        "B" | "u1" | "uint8" | "ubyte" => "u1",
        "h" | "i2" | "int16" | "short" => "i2",
        "H" | "u2" | "uint16" | "ushort" => "u2",
        "i" | "i4" | "int32" | "intc" => "i4",
        "I" | "u4" | "uint32" | "uintc" => "u4",
        "q" | "i8" | "int64" | "longlong" | "p" | "intp" | "int" => "i8",
        "Q" | "u8" | "uint64" | "ulonglong" | "P" | "uintp" => "u8",
        // C's `long`, which has 4 bytes on Windows.
        "l" | "long" => ["i4", "i8"][usize::from(size_of::<std::ffi::c_long>() == 8)],
        "L" | "ulong" => ["u4", "u8"][usize::from(size_of::<std::ffi::c_long>() == 8)],
        "e" | "f2" | "float16" | "half" => "f2",
        "f" | "f4" | "float32" | "single" => "f4",
        "d" | "f8" | "float64" | "double" | "float" => "f8",
        "F" | "c8" | "complex64" | "csingle" => "c8",
        "D" | "c16" | "complex128" | "cdouble" | "complex" => "c16",
        "V1" => "V1",
        "V2" => "V2",
        _ => return None,
    };
    let order = match (order, code) {
        (_, "b1" | "i1" | "u1" | "V1") => '|',
        (b'>', _) => '>',
        (b'<', _) => '<',
        _ if cfg!(target_endian = "big") => '>',
        _ => '<',
    };
    Some(format!("{order}{code}")).filter(|plain| plain.as_bytes() != string)
}
