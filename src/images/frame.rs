//! Zstandard frames of images, some of which have another image as their dictionary.
//!
//! The decoder has no dictionaries of plain content. A frame that begins with the dictionary as blocks that are not compressed
//! is the same to it: the blocks behind refer to the content in front of them.

use std::fmt::Display;

use ruzstd::decoding::FrameDecoder;

/// The largest content of a block.
const BLOCK: usize = 1 << 17;
/// The bytes of a header: the magic number, a descriptor and the size of the content.
const HEADER: usize = 9;
/// The descriptor of a frame of one segment whose size has four bytes, without a checksum and the name of a dictionary.
const DESCRIPTOR: u8 = 0xa0;

/// The reason why a frame does not unpack.
type Reason = Box<dyn Display>;

/// Returns the content of a frame.
pub(super) fn unpack(frame: &[u8]) -> Result<Vec<u8>, Reason> {
    let mut decoder = FrameDecoder::new();
    decoder.init(frame).map_err(boxed)?;
    let length = decoder.content_size() as usize;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length).map_err(boxed)?;
    decoder.decode_all_to_vec(frame, &mut bytes).map_err(boxed)?;
    match bytes.len() {
        found if found == length => Ok(bytes),
        found => Err(boxed(format!("{found} bytes instead of {length}"))),
    }
}

/// Returns the content of a frame that was compressed with a dictionary.
pub(super) fn unpack_with(dictionary: &[u8], frame: &[u8]) -> Result<Vec<u8>, Reason> {
    let frame = with_dictionary(dictionary, frame).ok_or_else(|| boxed("another header than 0xa0"))?;
    let mut bytes = unpack(&frame)?;
    bytes.drain(..dictionary.len());
    Ok(bytes)
}

/// Returns a frame of the dictionary and the content behind it.
fn with_dictionary(dictionary: &[u8], frame: &[u8]) -> Option<Vec<u8>> {
    let (header, blocks) = frame.split_at_checked(HEADER)?;
    let (&descriptor, length) = header.get(4..)?.split_first()?;
    if descriptor != DESCRIPTOR {
        return None;
    }
    let length = u32::from_le_bytes(length.try_into().ok()?);
    let length = length.checked_add(dictionary.len().try_into().ok()?)?;
    let mut joined =
        Vec::with_capacity(HEADER + dictionary.len() + dictionary.len() / 1024 + 8 + blocks.len());
    joined.extend_from_slice(&header[..5]);
    joined.extend_from_slice(&length.to_le_bytes());
    for block in dictionary.chunks(BLOCK) {
        // The three lowest bits say that it is not the last one, and not compressed.
        joined.extend_from_slice(&((block.len() as u32) << 3).to_le_bytes()[..3]);
        joined.extend_from_slice(block);
    }
    joined.extend_from_slice(blocks);
    Some(joined)
}

fn boxed(reason: impl Display + 'static) -> Reason {
    Box::new(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three raw blocks of a dictionary, and a frame of one raw block behind it.
    #[test]
    fn the_content_behind_a_dictionary_is_returned() {
        let dictionary = vec![7; 2 * BLOCK + 1];
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, DESCRIPTOR, 3, 0, 0, 0];
        frame.extend([1 | 3 << 3, 0, 0]);
        frame.extend(b"abc");
        assert_eq!(unpack_with(&dictionary, &frame).ok().unwrap(), b"abc");
        for (damaged, reason) in [(frame.len() - 1, "block"), (4, "0xa0"), (0, "0xa0")] {
            let error = unpack_with(&dictionary, &frame[..damaged]).err().unwrap().to_string();
            assert!(error.to_lowercase().contains(reason), "{error}");
        }
        frame[4] = 0x80;
        assert!(unpack_with(&dictionary, &frame).err().unwrap().to_string().contains("0xa0"));
    }
}
