//! [`Geometry`], the kernel that computes a product and its grid.

use super::slices_of_k::SlicesOfK;

/// A kernel, its tiles and its grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    pub family: &'static str,
    pub kernel: String,
    pub tile: (u32, u32),
    pub tiles: u64,
    pub blocks: u32,
    /// The operands that are copied first, into aligned rows.
    pub copied: Vec<char>,
    /// Blocks that divide k.
    pub splits: u32,
    /// Tiles that stream-K divides.
    pub stream_k_tiles: u64,
    /// The slices of k that are products of their own.
    pub slices: Option<SlicesOfK>,
}

impl Geometry {
    /// Returns the geometry of kernels with one tile a block.
    pub fn of_tiles(family: &'static str, kernel: String, tile: (u32, u32), tiles: u64) -> Geometry {
        let blocks = tiles.min(i32::MAX as u64) as u32;
        Geometry {
            family,
            kernel,
            tile,
            tiles,
            blocks,
            copied: Vec::new(),
            splits: 1,
            stream_k_tiles: 0,
            slices: None,
        }
    }

    /// Returns the geometry of a library function, whose tiles are unknown.
    pub fn of_library(library: &'static str, function: &str) -> Geometry {
        Geometry::of_tiles(library, function.to_owned(), (0, 0), 0)
    }
}
