//! [`GemmAlgorithm`], the kernel configurations that a caller can force.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// A kernel configuration of the `wgmma` engine. It is shown and read as `persistent/256`, `persistent/64/stream-k`,
/// `split-k/128x64x4` or `split-k/64x16x1/swapped`.
///
/// ```
/// use selvedge::gemm::{DeviceProperties, GemmAlgorithm, Plan, Product};
/// use selvedge::types::DType;
/// let algorithm: GemmAlgorithm = "persistent/64".parse()?;
/// let product = Product::new(512, 512, 512).with_algorithm(algorithm);
/// let plan = Plan::explain(&product, DType::BF16, DType::BF16, DeviceProperties::reference((9, 0)))?;
/// assert_eq!(plan.tile(), Some((256, 64)));
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GemmAlgorithm {
    /// Persistent two-CTA clusters, which compute tiles of 256 rows and this many columns.
    Persistent {
        /// Columns of a tile of C.
        columns: u32,
        /// True where all clusters divide the k of the last wave's tiles among themselves.
        stream_k: bool,
    },
    /// Clusters whose blocks divide k.
    SplitK {
        /// Rows of the tile in the first operand of the kernel: A, or B transposed where operands are swapped.
        rows: u32,
        /// Rows of the tile in the other operand.
        columns: u32,
        /// Blocks of a cluster.
        splits: u32,
        /// True where the kernel computes Cᵀ, with the operands swapped.
        swapped: bool,
    },
}

impl fmt::Display for GemmAlgorithm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            GemmAlgorithm::Persistent { columns, stream_k } => {
                let suffix = if stream_k { "/stream-k" } else { "" };
                write!(formatter, "persistent/{columns}{suffix}")
            }
            GemmAlgorithm::SplitK { rows, columns, splits, swapped } => {
                let suffix = if swapped { "/swapped" } else { "" };
                write!(formatter, "split-k/{rows}x{columns}x{splits}{suffix}")
            }
        }
    }
}

impl FromStr for GemmAlgorithm {
    type Err = Error;

    fn from_str(text: &str) -> Result<GemmAlgorithm> {
        let persistent = |columns: &str, stream_k| {
            Some(GemmAlgorithm::Persistent { columns: columns.parse().ok()?, stream_k })
        };
        let split_k = |sizes: &str, swapped| {
            let sizes_of_text: Option<Vec<u32>> = sizes.split('x').map(|size| size.parse().ok()).collect();
            let [rows, columns, splits] = sizes_of_text?.try_into().ok()?;
            Some(GemmAlgorithm::SplitK { rows, columns, splits, swapped })
        };
        let algorithm = match text.split('/').collect::<Vec<_>>()[..] {
            ["persistent", columns] => persistent(columns, false),
            ["persistent", columns, "stream-k"] => persistent(columns, true),
            ["split-k", sizes] => split_k(sizes, false),
            ["split-k", sizes, "swapped"] => split_k(sizes, true),
            _ => None,
        };
        let wanted = "persistent/COLUMNS[/stream-k] or split-k/ROWSxCOLUMNSxSPLITS[/swapped]";
        algorithm.ok_or_else(|| Error::invalid("a GEMM algorithm", format!("'{text}'"), wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithms_are_read_as_they_are_shown() {
        for algorithm in [
            GemmAlgorithm::Persistent { columns: 256, stream_k: false },
            GemmAlgorithm::Persistent { columns: 64, stream_k: true },
            GemmAlgorithm::SplitK { rows: 128, columns: 64, splits: 4, swapped: false },
            GemmAlgorithm::SplitK { rows: 64, columns: 16, splits: 1, swapped: true },
        ] {
            assert_eq!(algorithm.to_string().parse::<GemmAlgorithm>().unwrap(), algorithm);
        }
        for text in [
            "",
            "wgmma",
            "persistent",
            "persistent/x",
            "split-k/64",
            "split-k/64x4",
            "split-k/64x64x4/turned",
        ] {
            let error = text.parse::<GemmAlgorithm>().unwrap_err().to_string();
            assert!(error.contains(&format!("'{text}'")), "{error}");
        }
    }
}
