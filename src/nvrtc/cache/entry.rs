//! The file format of an entry: the result of a compilation, under its key, with a checksum.
//!
//! ```text
//! "selvedge image 2\n"   17 bytes
//! key                    32
//! checksum               32, SHA-256 of the key and all that follows
//! log                    each with its length before it, 8 bytes, little end first
//! number of names
//! expression, name       of each
//! PTX
//! image
//! ```
//!
//! Invariants: reading any bytes returns the data written under that key, or the reason why not. The file contains the
//! key, so that a file under a wrong name is not accepted.

use sha2::{Digest, Sha256};

use super::key::CacheKey;
use crate::nvrtc::compiler::Output;

const MAGIC: &[u8] = b"selvedge image 2\n";
const DIGEST: usize = 32;
const HEAD: usize = MAGIC.len() + 2 * DIGEST;

/// Encodes an entry.
pub(super) fn encode(key: &CacheKey, output: &Output) -> Vec<u8> {
    let mut payload = Vec::with_capacity(output.image.len() + output.log.len() + 256);
    put(&mut payload, output.log.as_bytes());
    payload.extend((output.names.len() as u64).to_le_bytes());
    for (expression, name) in &output.names {
        put(&mut payload, expression.as_bytes());
        put(&mut payload, name.as_bytes());
    }
    put(&mut payload, &output.ptx);
    put(&mut payload, &output.image);
    [MAGIC, key.bytes(), &checksum(key, &payload), &payload].concat()
}

fn put(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend((bytes.len() as u64).to_le_bytes());
    to.extend(bytes);
}

fn checksum(key: &CacheKey, payload: &[u8]) -> [u8; DIGEST] {
    Sha256::new().chain_update(key.bytes()).chain_update(payload).finalize().into()
}

/// Decodes an entry, or returns the reason why it is invalid.
pub(super) fn decode(key: &CacheKey, bytes: &[u8]) -> Result<Output, &'static str> {
    let (Some(head), Some(payload)) = (bytes.get(..HEAD), bytes.get(HEAD..)) else {
        return Err(if bytes.is_empty() { "it is empty" } else { "it ends early" });
    };
    let (magic, rest) = head.split_at(MAGIC.len());
    let (written_key, written_checksum) = rest.split_at(DIGEST);
    if magic != MAGIC {
        return Err("it begins with something else");
    }
    if written_key != key.bytes() {
        return Err("it is of another key");
    }
    if written_checksum != checksum(key, payload) {
        return Err("its checksum is of other bytes: it was cut off or changed");
    }
    parse(payload).ok_or("its parts do not fit together")
}

fn parse(payload: &[u8]) -> Option<Output> {
    let mut rest = payload;
    let log = text(take(&mut rest)?)?;
    let count = number(&mut rest)?;
    let mut names = Vec::new();
    for _ in 0..count {
        names.push((text(take(&mut rest)?)?, text(take(&mut rest)?)?));
    }
    let ptx = take(&mut rest)?.to_vec();
    let image = take(&mut rest)?.to_vec();
    rest.is_empty().then_some(Output { image, ptx, log, names })
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (number, after) = rest.split_first_chunk::<8>()?;
    *rest = after;
    Some(u64::from_le_bytes(*number))
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(number(rest)?).ok()?;
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(bytes)
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output() -> Output {
        let names = vec![("f<int>".to_owned(), "_Z1fIiEvv".to_owned()), ("g".to_owned(), "_Z1gv".to_owned())];
        Output {
            image: (0..=255).collect(),
            ptx: b".version".to_vec(),
            log: "a warning, \u{e4}".to_owned(),
            names,
        }
    }

    fn key(text: &str) -> CacheKey {
        let mut key = CacheKey::new("test");
        key.add(text.as_bytes());
        key.finish()
    }

    #[test]
    fn what_is_written_is_read() {
        let empty = Output::default();
        for output in [output(), empty] {
            assert_eq!(decode(&key("a"), &encode(&key("a"), &output)), Ok(output));
        }
    }

    #[test]
    fn every_cut_and_every_changed_bit_is_seen() {
        let good = encode(&key("a"), &output());
        for length in 0..good.len() {
            assert!(decode(&key("a"), &good[..length]).is_err(), "cut to {length}");
        }
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&key("a"), &bad).is_err(), "bit {bit}");
        }
        assert!(decode(&key("a"), &[good.as_slice(), b"x"].concat()).is_err());
        assert_eq!(decode(&key("b"), &good), Err("it is of another key"));
        assert_eq!(decode(&key("b"), b""), Err("it is empty"));
    }

    #[test]
    fn lengths_that_lie_under_a_right_checksum_are_seen() {
        for payload in [&b""[..], &[255; 8], &[0; 8], &[255; 64], &[0; 25]] {
            let file = [MAGIC, key("a").bytes(), &checksum(&key("a"), payload), payload].concat();
            assert_eq!(decode(&key("a"), &file), Err("its parts do not fit together"), "{payload:?}");
        }
    }
}
