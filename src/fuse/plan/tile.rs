//! Tiles: the iteration of a run in which an input is contiguous along another dimension than the output,
//! such as a transposed matrix.
//!
//! Two dimensions form a tile: the output's innermost dimension and the one along which such inputs are
//! contiguous. A block reads a tile of the inputs along their dimension and writes the output along its own,
//! 16 bytes an access, and transposes the elements in shared memory ([`AccessPattern::Staged`]). Tile sides
//! cover at least 256 bytes of a row if shared memory allows; rows of 128 bytes cost a tenth of the bandwidth
//! on an H200. Inputs that exceed shared memory are read element by element in the same tiles, so that a
//! sector is used while it is in the cache.
//!
//! In shared memory the element (w along the output, h along the input) is in row h. [`Tile::swizzle`]
//! permutes the 16-byte chunks of a row so that both the stores (one w, many h) and the loads (one h, many w)
//! are free of bank conflicts.

use super::elementwise::{AccessPattern, BLOCK, Iteration, KernelKey, PlannedOperands};
use super::space::Space;

/// The static shared memory that every device supports.
const MAX_SHARED_BYTES: usize = 48 << 10;
/// The granularity of memory reads: elements closer than this share a sector.
const SECTOR: usize = 32;
/// The bytes of an access to a staged input.
const CHUNK: usize = 16;
/// The bytes of a row along an input or the output, unless shared memory is too small.
const ROW_BYTES: usize = 256;
const SIDES: std::ops::RangeInclusive<usize> = 32..=128;
/// The longest side of a tile whose other side is short.
const MAX_SIDE: usize = 256;
/// The longest side for access by single elements. More elements are more instructions without more bytes in
/// flight.
const MAX_SINGLE_SIDE: usize = 64;
/// The most elements of an output's innermost dimension without tiles. A warp then writes so many rows of the output
/// that the elements it reads cover whole sectors of each input.
const MAX_UNTILED_WIDTH: usize = 16;

/// The elements of a block: `width` along the output's innermost dimension, `height` along the next, along
/// which the staged inputs are contiguous. Both are powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Tile {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// The size of a staged input's accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Access {
    /// 16 bytes an access.
    Chunks,
    /// One element an access.
    Singly,
}

/// Returns the elements of 16 bytes.
pub(crate) fn chunk(bytes: usize) -> u32 {
    (CHUNK / bytes) as u32
}

/// Returns the rows of chunks that a thread transposes together, so that it stores whole words.
pub(crate) fn rows_together(bytes: usize) -> u32 {
    (4 / bytes).max(1) as u32
}

impl Tile {
    fn elements(self) -> usize {
        (self.width * self.height) as usize
    }

    /// Returns the bytes of a staged input.
    pub(crate) fn bytes(self, of_element: usize) -> usize {
        self.elements() * of_element
    }

    /// Returns (shift, mask) of the swizzle: row h stores chunk c at chunk `c ^ (h >> shift & mask)`.
    pub(crate) fn swizzle(self, bytes: usize, access: Access) -> (u32, u32) {
        let chunks = self.width * bytes as u32 / CHUNK as u32;
        let shift = match access {
            // The lanes of a warp are a chunk apart along the input.
            Access::Chunks => chunk(bytes).trailing_zeros(),
            Access::Singly => 0,
        };
        (shift, chunks.clamp(1, 8) - 1)
    }

    /// Returns whether the threads of a block form whole accesses of 16 bytes: a warp covers eight along the
    /// input and four across.
    fn takes_chunks(self, bytes: usize) -> bool {
        let (along, across) = (8 * chunk(bytes), 4 * rows_together(bytes));
        self.height.is_multiple_of(along)
            && self.width.is_multiple_of(across)
            && (self.elements() as u32).is_multiple_of(along * across * (BLOCK / 32))
            && self.height / along <= BLOCK / 32
    }
}

/// Returns the dimension, other than the innermost, along which an input is contiguous while it is strided
/// along the innermost.
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

/// Returns the dimension that forms tiles with the innermost, if tiles pay: the one along which the widest
/// transposed input is contiguous.
pub(super) fn tiled_dimension(space: &Space, bytes: &[usize]) -> Option<usize> {
    if space.sizes[0] <= MAX_UNTILED_WIDTH {
        return None;
    }
    let transposed = |input: usize| runs_along(space, input, bytes[input]).map(|axis| (axis, bytes[input]));
    // The first of equally wide inputs.
    (0..space.inputs).rev().filter_map(transposed).max_by_key(|(_, bytes)| *bytes).map(|(axis, _)| axis)
}

impl PlannedOperands<'_> {
    /// Returns the kernel key of an iteration in tiles of the two innermost dimensions, or `None` if no input
    /// is contiguous along the second.
    pub(super) fn tiled(&self) -> Option<KernelKey> {
        let space = self.space;
        let transposed = |input: &usize| runs_along(space, *input, self.bytes[*input]) == Some(1);
        let mut staged: Vec<usize> = (0..space.inputs).filter(transposed).collect();
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
            if bytes <= MAX_SHARED_BYTES {
                break tile;
            }
            staged.pop();
        };
        lanes = lanes.min(tile.width * tile.height / BLOCK);
        Some(self.key(Iteration::Tiles(tile), lanes, true, |operand| {
            let bytes = self.bytes.get(operand).copied().unwrap_or(1);
            match space.strides(operand)[0] {
                // A coordinate is computed, not read.
                1 if operand >= self.count() => AccessPattern::Linear,
                _ if staged.contains(&operand) && in_chunks[operand] && tile.takes_chunks(bytes) => {
                    AccessPattern::Staged(Access::Chunks)
                }
                _ if staged.contains(&operand) => AccessPattern::Staged(Access::Singly),
                1 if in_line(operand, lanes) => AccessPattern::Linear,
                0 => AccessPattern::Row,
                _ => AccessPattern::Gather,
            }
        }))
    }

    /// Returns whether 16 bytes along the second dimension are always one aligned access.
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

    /// Returns the tile for these staged inputs, or the smallest tile if none fits.
    fn tile(&self, staged: &[usize], in_chunks: &[bool], singly: bool) -> Tile {
        let bytes = |operand: &usize| self.bytes[*operand];
        let narrowest_output = self.bytes[self.outputs()].iter().copied().min().unwrap_or(CHUNK);
        let narrowest = staged.iter().map(bytes).min().unwrap_or(CHUNK);
        let widest = staged.iter().map(bytes).max().unwrap_or(CHUNK);
        let least = *SIDES.start();
        let (most, mut shortest, mut highest) = (*SIDES.end(), least, MAX_SIDE);
        let singly = singly || staged.iter().any(|&input| !in_chunks[input]);
        let most = if singly { MAX_SINGLE_SIDE } else { most };
        let side = |bytes: usize| (ROW_BYTES / bytes).clamp(least, most);
        let (mut width, mut height) = (side(narrowest_output), side(narrowest));
        if !singly {
            // The elements of a warp along an input, and of all warps of a block.
            shortest = least.max(8 * chunk(narrowest) as usize);
            highest = MAX_SIDE.min(64 * chunk(widest) as usize);
            while width * height < (BLOCK * chunk(narrowest) * rows_together(narrowest)) as usize {
                width *= 2;
            }
        }
        let (columns, rows) = (self.space.sizes[0], self.space.sizes[1]);
        while height > shortest && rows <= height / 2 && width < MAX_SIDE {
            (width, height) = (width * 2, height / 2);
        }
        while width > least && columns <= width / 2 && height < highest {
            (width, height) = (width / 2, height * 2);
        }
        let all: usize = staged.iter().map(bytes).sum();
        while width * height * all > MAX_SHARED_BYTES && width.max(height) > least {
            if width >= height { width /= 2 } else { height /= 2 }
        }
        Tile { width: width as u32, height: height as u32 }
    }
}
