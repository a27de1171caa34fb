//! Tiles: how a run is walked where an input runs along another dimension than the output, as a transposed matrix does.
//!
//! Two dimensions matter: the output's innermost one and the one that such inputs run along. A block takes a tile of both.
//! It reads the inputs along theirs and the output along its own, 16 bytes an access, and in between the inputs'
//! elements lie in shared memory ([`Class::Staged`]). The sides make rows of at least 256 bytes of memory, where
//! shared memory allows, since shorter ones cost bandwidth (128 bytes: a tenth, measured on an H200). What does not fit
//! is read element by element, in the same tiles, so that its sectors are used while they are in the cache.
//!
//! In shared memory an element (w along the output, h along the input) lies in row h. The chunks of 16 bytes of a row are
//! permuted by [`Tile::swizzle`], so that both the stores, of one w and many h, and the loads, of one h and many w, go to
//! different banks.

use super::plan::{BLOCK, Class, Key, Operands, Walk};
use super::space::Space;

/// What every device lets a kernel declare.
const MOST_SHARED_BYTES: usize = 48 << 10;
/// What memory is read by: elements closer than this come together.
const SECTOR: usize = 32;
/// The bytes of a staged input's accesses.
const CHUNK: usize = 16;
/// Rows along an input or the output have this many bytes, if all fits.
const ROW_BYTES: usize = 256;
const SIDES: std::ops::RangeInclusive<usize> = 32..=128;
/// Of a matrix with a short side, the other side.
const LONGEST_SIDE: usize = 256;
/// An element an access: more of them are more instructions, not more bytes in flight.
const MOST_SINGLY: usize = 64;
/// An output of so few rows is written by a warp in pieces that are sectors of each input.
const FEWEST_ROWS: usize = 16;

/// The elements of a block: `width` along the output's innermost dimension, `height` along the next, which the staged
/// inputs run along. Powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Tile {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// How a staged input comes into shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Access {
    /// 16 bytes an access.
    Chunks,
    /// An element an access.
    Singly,
}

/// The elements of 16 bytes.
pub(crate) fn chunk(bytes: usize) -> u32 {
    (CHUNK / bytes) as u32
}

/// The rows of chunks that a thread turns together, so that what it stores are words.
pub(crate) fn rows_together(bytes: usize) -> u32 {
    (4 / bytes).max(1) as u32
}

impl Tile {
    fn elements(self) -> usize {
        (self.width * self.height) as usize
    }

    /// The bytes of a staged input.
    pub(crate) fn bytes(self, of_element: usize) -> usize {
        self.elements() * of_element
    }

    /// (shift, mask): in row h chunk c lies where chunk `c ^ (h >> shift & mask)` would be.
    pub(crate) fn swizzle(self, bytes: usize, access: Access) -> (u32, u32) {
        let chunks = self.width * bytes as u32 / CHUNK as u32;
        let shift = match access {
            // Lanes of a warp are a chunk apart along the input.
            Access::Chunks => chunk(bytes).trailing_zeros(),
            Access::Singly => 0,
        };
        (shift, chunks.clamp(1, 8) - 1)
    }

    /// Whether the threads of a block make up whole accesses of 16 bytes: a warp eight along the input, four across.
    fn takes_chunks(self, bytes: usize) -> bool {
        let (along, across) = (8 * chunk(bytes), 4 * rows_together(bytes));
        self.height.is_multiple_of(along)
            && self.width.is_multiple_of(across)
            && (self.elements() as u32).is_multiple_of(along * across * (BLOCK / 32))
            && self.height / along <= BLOCK / 32
    }
}

/// The dimension, not the innermost, that an input runs along while it leaps from element to element of the innermost.
fn runs_along(space: &Space, input: usize, bytes: usize) -> Option<usize> {
    let strides = space.strides(input);
    let near = |stride: isize| stride != 0 && stride.unsigned_abs() * bytes < SECTOR;
    if strides[0] == 0 || near(strides[0]) {
        return None;
    }
    (1..space.rank())
        .filter(|&axis| {
            near(strides[axis]) && space.sizes[axis] * strides[axis].unsigned_abs() * bytes >= SECTOR
        })
        .min_by_key(|&axis| strides[axis].unsigned_abs())
}

/// The dimension that tiles are made of beside the innermost, where they pay: the one along which the widest input runs
/// that does not run along the innermost.
pub(super) fn other_dimension(space: &Space, bytes: &[usize]) -> Option<usize> {
    if space.sizes[0] <= FEWEST_ROWS {
        return None;
    }
    let turned = |input: usize| runs_along(space, input, bytes[input]).map(|axis| (axis, bytes[input]));
    // The first of those that are as wide.
    (0..space.inputs).rev().filter_map(turned).max_by_key(|(_, bytes)| *bytes).map(|(axis, _)| axis)
}

impl Operands<'_> {
    /// The key of a walk in tiles of the two innermost dimensions; none where no input runs along the second.
    pub(super) fn tiled(&self) -> Option<Key> {
        let space = self.space;
        let turned = |input: &usize| runs_along(space, *input, self.bytes[*input]) == Some(1);
        let mut staged: Vec<usize> = (0..space.inputs).filter(turned).collect();
        let widest_output = self.outputs().map(|output| self.bytes[output]).max()?;
        let mut lanes = (CHUNK / widest_output).clamp(1, 8) as u32;
        let in_line = |operand: usize, lanes: u32| {
            space.strides(operand)[0] == 1
                && space.sizes[0].is_multiple_of(lanes as usize)
                && self.stays_aligned(operand, lanes)
        };
        if !self.outputs().all(|output| in_line(output, lanes)) {
            lanes = 1;
        }
        let in_chunks: Vec<bool> = (0..self.count()).map(|operand| self.runs_in_chunks(operand)).collect();
        let tile = loop {
            if staged.is_empty() {
                return None;
            }
            let tile = self.tile(&staged, &in_chunks, lanes == 1);
            let bytes: usize = staged.iter().map(|&input| tile.bytes(self.bytes[input])).sum();
            if bytes <= MOST_SHARED_BYTES {
                break tile;
            }
            staged.pop();
        };
        lanes = lanes.min(tile.width * tile.height / BLOCK);
        Some(self.key(Walk::Tiles(tile), lanes, true, |operand| {
            let bytes = self.bytes.get(operand).copied().unwrap_or(1);
            match space.strides(operand)[0] {
                // A coordinate is counted, not read.
                1 if operand >= self.count() => Class::Linear,
                _ if staged.contains(&operand) && in_chunks[operand] && tile.takes_chunks(bytes) => {
                    Class::Staged(Access::Chunks)
                }
                _ if staged.contains(&operand) => Class::Staged(Access::Singly),
                1 if in_line(operand, lanes) => Class::Linear,
                0 => Class::Row,
                _ => Class::Gather,
            }
        }))
    }

    /// Whether 16 bytes along the second dimension are always one aligned access.
    fn runs_in_chunks(&self, operand: usize) -> bool {
        let (space, bytes) = (self.space, self.bytes[operand]);
        let strides = space.strides(operand);
        let aligned =
            |axis: usize, stride: isize| axis == 1 || (stride.unsigned_abs() * bytes).is_multiple_of(CHUNK);
        strides[1] == 1
            && space.sizes[1] % chunk(bytes) as usize == 0
            && self.starts_aligned(operand, chunk(bytes))
            && strides.iter().enumerate().all(|(axis, &stride)| aligned(axis, stride))
    }

    /// The sides for these staged inputs; the smallest tile where nothing fits.
    fn tile(&self, staged: &[usize], in_chunks: &[bool], singly: bool) -> Tile {
        let bytes = |operand: &usize| self.bytes[*operand];
        let narrowest_output = self.bytes[self.outputs()].iter().copied().min().unwrap_or(CHUNK);
        let narrowest = staged.iter().map(bytes).min().unwrap_or(CHUNK);
        let widest = staged.iter().map(bytes).max().unwrap_or(CHUNK);
        let least = *SIDES.start();
        let (most, mut shortest, mut highest) = (*SIDES.end(), least, LONGEST_SIDE);
        let singly = singly || staged.iter().any(|&input| !in_chunks[input]);
        let most = if singly { MOST_SINGLY } else { most };
        let side = |bytes: usize| (ROW_BYTES / bytes).clamp(least, most);
        let (mut width, mut height) = (side(narrowest_output), side(narrowest));
        if !singly {
            // What a warp takes along an input, and all warps of a block do.
            shortest = least.max(8 * chunk(narrowest) as usize);
            highest = LONGEST_SIDE.min(64 * chunk(widest) as usize);
            while width * height < (BLOCK * chunk(narrowest) * rows_together(narrowest)) as usize {
                width *= 2;
            }
        }
        let (columns, rows) = (self.space.sizes[0], self.space.sizes[1]);
        while height > shortest && rows <= height / 2 && width < LONGEST_SIDE {
            (width, height) = (width * 2, height / 2);
        }
        while width > least && columns <= width / 2 && height < highest {
            (width, height) = (width / 2, height * 2);
        }
        let all: usize = staged.iter().map(bytes).sum();
        while width * height * all > MOST_SHARED_BYTES && width.max(height) > least {
            if width >= height { width /= 2 } else { height /= 2 }
        }
        Tile { width: width as u32, height: height as u32 }
    }
}
