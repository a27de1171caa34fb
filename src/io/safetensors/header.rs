//! The header of a safetensors file: JSON that names each tensor's dtype, shape and bytes.
//!
//! The reader checks each tensor before `safetensors` validates the whole, because an error of that crate
//! names neither the tensor nor both sizes, and its maps keep one of two entries of a name.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::marker::PhantomData;

use ::safetensors::tensor::{Metadata, TensorInfo};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

use super::{failure, quoted, refusal};
use crate::error::Result;

/// The bytes of the header's length.
pub(super) const LENGTH_BYTES: u64 = 8;
/// The longest header that the format allows.
pub(super) const MAX_BYTES: u64 = 100_000_000;
/// The header's name for the metadata.
pub(super) const METADATA: &str = "__metadata__";

/// A checked header.
pub(super) struct Header {
    pub tensors: Metadata,
    /// The names of the tensors, in the order of their bytes.
    pub names: Vec<String>,
    pub metadata: BTreeMap<String, String>,
    /// The position of the tensors' bytes in the file.
    pub start: u64,
}

impl Header {
    /// Reads the header of a file of `length` bytes.
    ///
    /// # Errors
    ///
    /// [`Error::File`](crate::Error::File).
    pub fn read(file: &mut File, length: u64, path: &str) -> Result<Header> {
        let Some(after) = length.checked_sub(LENGTH_BYTES) else {
            return Err(refusal(path, format!("{length} bytes"), "at least 8 bytes: the header's length"));
        };
        let mut bytes = [0; LENGTH_BYTES as usize];
        file.read_exact(&mut bytes).map_err(|error| failure(path, &error))?;
        let header = u64::from_le_bytes(bytes);
        if header > after.min(MAX_BYTES) {
            let wanted = format!(
                "at most {}: the file has {after} after that number, and the format allows {MAX_BYTES}",
                after.min(MAX_BYTES)
            );
            return Err(refusal(path, format!("a header of {header} bytes"), wanted));
        }
        let mut text = vec![0; header as usize];
        file.read_exact(&mut text).map_err(|error| failure(path, &error))?;
        let Entries { mut tensors, metadata } = serde_json::from_slice(&text).map_err(|error| {
            let wanted = "a JSON object of tensors, each with dtype, shape and data_offsets";
            refusal(path, format!("an unreadable header: {error}"), wanted)
        })?;
        tensors.sort_by_key(|(_, info)| info.data_offsets);
        check(&tensors, after - header, path)?;
        let names = tensors.iter().map(|(name, _)| name.clone()).collect();
        let tensors = Metadata::new(None, tensors)
            .map_err(|error| refusal(path, error, "a header that `safetensors` accepts"))?;
        Ok(Header { tensors, names, metadata, start: LENGTH_BYTES + header })
    }
}

/// Checks that the tensors, sorted by their bytes, have the sizes of their shapes and fill the data.
fn check(tensors: &[(String, TensorInfo)], present: u64, path: &str) -> Result<()> {
    let mut last: Option<(&str, (usize, usize))> = None;
    for (name, info) in tensors {
        let (start, end) = info.data_offsets;
        let before = last.map_or(0, |(_, (_, end))| end);
        let label = quoted(name);
        if end < start {
            let found = format!("the tensor {label} with the bytes {start} to {end}");
            return Err(refusal(path, found, "an end that is not below the start"));
        }
        if start != before {
            let found = format!("the tensor {label} at byte {start} of the data");
            let wanted = match last {
                Some((other, _)) => format!("byte {before}, the end of the tensor {}", quoted(other)),
                None => "byte 0, because it is the first".to_owned(),
            };
            return Err(refusal(path, found, wanted));
        }
        let described =
            format!("the tensor {label}, {}{:?}, of {} bytes", info.dtype, info.shape, end - start);
        // A size of 0 leaves no bytes, but the other sizes must still fit, because strides need them.
        let sizes =
            info.shape.iter().try_fold(info.dtype.bitsize(), |bits, &size| bits.checked_mul(size.max(1)));
        let wanted = match sizes {
            Some(_) if info.shape.contains(&0) => 0,
            Some(bits) => bits.div_ceil(8),
            None => return Err(refusal(path, described, "a shape whose bytes fit an address")),
        };
        if end - start != wanted {
            return Err(refusal(path, described, format!("{wanted} bytes for that dtype and shape")));
        }
        if end as u64 > present {
            let found = format!("{present} bytes of data, a truncated file");
            return Err(refusal(path, found, format!("at least {end}, the end of the tensor {label}")));
        }
        last = Some((name, info.data_offsets));
    }
    let end = last.map_or(0, |(_, (_, end))| end) as u64;
    if end != present {
        let found = format!("{present} bytes of data");
        return Err(refusal(path, found, format!("{end} bytes, the end of the last tensor")));
    }
    Ok(())
}

/// The entries of a header as they are written.
struct Entries {
    tensors: Vec<(String, TensorInfo)>,
    metadata: BTreeMap<String, String>,
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Entries, D::Error> {
        struct EntriesVisitor;

        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = Entries;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Entries, A::Error> {
                let mut entries = Entries { tensors: Vec::new(), metadata: BTreeMap::new() };
                let mut seen = HashSet::new();
                while let Some(name) = map.next_key::<String>()? {
                    if !seen.insert(name.clone()) {
                        return Err(A::Error::custom(format!("two entries named {}", quoted(&name))));
                    }
                    let in_entry = |error| A::Error::custom(format!("the entry {}: {error}", quoted(&name)));
                    if name == METADATA {
                        let pairs = map.next_value::<Option<UniquePairs<String>>>().map_err(in_entry)?;
                        entries.metadata =
                            pairs.map(|pairs| pairs.0.into_iter().collect()).unwrap_or_default();
                    } else {
                        let info = map.next_value().map_err(in_entry)?;
                        entries.tensors.push((name, info));
                    }
                }
                Ok(entries)
            }
        }

        deserializer.deserialize_map(EntriesVisitor)
    }
}

/// The pairs of a JSON object, in its order. Two pairs of one name are an error.
pub(super) struct UniquePairs<V>(pub Vec<(String, V)>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for UniquePairs<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct PairsVisitor<V>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for PairsVisitor<V> {
            type Value = UniquePairs<V>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
                let (mut pairs, mut seen) = (Vec::new(), HashSet::new());
                while let Some(name) = map.next_key::<String>()? {
                    if !seen.insert(name.clone()) {
                        return Err(A::Error::custom(format!("two entries named {}", quoted(&name))));
                    }
                    let value = map
                        .next_value()
                        .map_err(|error| A::Error::custom(format!("the entry {}: {error}", quoted(&name))))?;
                    pairs.push((name, value));
                }
                Ok(UniquePairs(pairs))
            }
        }

        deserializer.deserialize_map(PairsVisitor(PhantomData))
    }
}
