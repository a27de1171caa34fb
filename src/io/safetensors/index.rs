//! The index of a model in several safetensors files: JSON whose `weight_map` names the file of each tensor.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;

use super::header::{MAX_BYTES, UniquePairs};
use super::{failure, quoted, refusal};
use crate::error::Result;
use crate::io::npy::open_regular;

/// A checked index.
pub(super) struct Index {
    /// The names of the files, sorted.
    pub shards: Vec<String>,
    /// The position in `shards` of each tensor's file.
    pub weight_map: BTreeMap<String, usize>,
}

/// The fields that the reader uses.
#[derive(Deserialize)]
struct Fields {
    weight_map: UniquePairs<String>,
}

impl Index {
    /// Reads an index.
    ///
    /// # Errors
    ///
    /// [`Error::File`](crate::Error::File) for a file that is no index, or names a shard by more than a file name.
    pub fn read(path: &Path) -> Result<Index> {
        let name = path.display().to_string();
        let (file, length) = open_regular(path, ".safetensors.index.json")?;
        if length > MAX_BYTES {
            return Err(refusal(
                &name,
                format!("an index of {length} bytes"),
                format!("at most {MAX_BYTES}"),
            ));
        }
        let mut text = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut text).map_err(|error| failure(&name, &error))?;
        let fields: Fields = serde_json::from_slice(&text).map_err(|error| {
            let wanted = "a JSON object whose weight_map gives a file name for each tensor";
            refusal(&name, format!("an unreadable index: {error}"), wanted)
        })?;
        let mut shards: BTreeMap<String, usize> = BTreeMap::new();
        for (tensor, shard) in &fields.weight_map.0 {
            // An index must not reach files of other folders.
            let plain = Path::new(shard).file_name().is_some_and(|file| file == shard.as_str());
            if !plain || shard.contains(['/', '\\', ':']) {
                let found = format!("the file {} for the tensor {}", quoted(shard), quoted(tensor));
                return Err(refusal(&name, found, "the name of a file in the index's folder"));
            }
            shards.insert(shard.clone(), 0);
        }
        shards.values_mut().enumerate().for_each(|(at, shard)| *shard = at);
        let numbered = fields.weight_map.0.into_iter().filter_map(|(tensor, shard)| {
            let at = shards.get(&shard)?;
            Some((tensor, *at))
        });
        Ok(Index { weight_map: numbered.collect(), shards: shards.into_keys().collect() })
    }
}
