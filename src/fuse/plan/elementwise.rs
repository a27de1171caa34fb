//! [`ElementwisePlan`]: the iteration of a run on a device, with the elements of each thread and the access
//! to each operand.
//!
//! Measurements on an H200 (benches/RESULTS.md) led to these choices. Bandwidth grows with the bytes that a
//! thread has outstanding, so a thread takes 16 bytes of the widest output. Coordinates are decoded once a
//! vector, by multiplication instead of division. Elements that cannot form a vector are accessed as several
//! scalars, a block apart. If an input is contiguous along another dimension than the output, the run
//! iterates in tiles ([`tile`](super::tile)).
//!
//! A run of more than 2^31 elements, or with as far a distance between the ends of an operand, is several launches.
//!
//! The kernel text depends on the expression and the [`KernelKey`] alone. Sizes, strides and scalars are in
//! the parameter block, and [`ParameterLayout`] gives their offsets.
//!
//! Invariant: two runs of an expression with equal keys have the same text.

use std::borrow::Cow;

use super::space::Space;
use super::tile::{self, Access, Tile};
use crate::error::{Error, Result};
use crate::fuse::ir::program::parts;
use crate::types::{DType, Layout, divisor};

/// The name of an elementwise run in errors.
pub(in crate::fuse) const OPERATION: &str = "an elementwise run";

/// Threads of a block.
pub(crate) const BLOCK: u32 = 256;
/// The bytes of the widest access, and the granularity of the alignment that a plan depends on.
pub(crate) const WIDEST: u64 = 16;
/// PTX 8.0 limits a kernel's parameters to 4 KB.
const MAX_PARAMETER_BYTES: usize = 4000;

/// The assignment of elements to threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Iteration {
    /// By the linear index; a thread's elements are adjacent.
    Flat,
    /// By the linear index; a thread's elements are a block apart.
    Apart,
    /// By coordinates, decoded once for a vector of adjacent elements of the innermost dimension.
    Vectors,
    /// In tiles of the two innermost dimensions; a thread's elements are adjacent in a row of the output.
    Tiles(Tile),
}

/// The access pattern of an operand or a coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum AccessPattern {
    /// One element for all threads.
    Constant,
    /// Adjacent elements for adjacent threads, with one access for a thread's elements if those are adjacent.
    Linear,
    /// One element for each vector of a thread.
    Row,
    /// Any stride, one access an element.
    Gather,
    /// Through a tile in shared memory.
    Staged(Access),
}

/// Everything but the expression that the text of a kernel depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct KernelKey {
    pub(crate) iteration: Iteration,
    /// Elements of a thread.
    pub(crate) lanes: u32,
    pub(crate) rank: usize,
    pub(crate) access_patterns: Vec<AccessPattern>,
    /// True if the last thread has fewer elements than the others.
    pub(crate) tail: bool,
    /// True for compute capability 8.0 or higher, which has conversions to bf16 and extremes that are NaN beside NaN.
    pub(crate) is_ampere: bool,
}

/// Offsets of a kernel's parameters in their block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParameterLayout {
    scalars: usize,
    /// The number of coordinates, which follow the operands in memory.
    coordinates: usize,
    rank: usize,
    /// Dimensions of the space, and two more for the tile counts of a tiled iteration.
    divisors: usize,
    operands: usize,
}

impl ParameterLayout {
    pub(crate) fn new(key: &KernelKey, scalars: usize, coordinates: usize) -> ParameterLayout {
        let tiles = if matches!(key.iteration, Iteration::Tiles(_)) { 2 } else { 0 };
        let (rank, operands) = (key.rank, key.access_patterns.len());
        ParameterLayout { scalars, coordinates, rank, divisors: rank + tiles, operands }
    }

    /// Returns the offset of a part of a scalar.
    pub(crate) fn scalar(self, index: u32, part: u32) -> usize {
        16 * index as usize + 8 * part as usize
    }

    /// Returns the offset of the first number of a coordinate, which has 64 bits.
    pub(crate) fn first(self, operand: usize) -> usize {
        16 * self.scalars + 8 * (self.coordinates + operand - self.operands)
    }

    /// Returns the offset of the number of elements or vectors.
    pub(crate) fn count(self) -> usize {
        16 * self.scalars + 8 * self.coordinates
    }

    /// Returns the offset of size, factor and shift of a dimension. Dimensions past those of the space count
    /// tiles.
    pub(crate) fn divisor(self, dimension: usize) -> usize {
        self.count() + 4 + 12 * dimension
    }

    pub(crate) fn stride(self, operand: usize, dimension: usize) -> usize {
        self.divisor(self.divisors) + 4 * (operand * self.rank + dimension)
    }

    pub(crate) fn bytes(self) -> usize {
        self.stride(self.operands, 0).next_multiple_of(8)
    }
}

/// A kernel's key, grid and parameter block.
#[derive(Debug)]
pub(crate) struct ElementwisePlan {
    pub(crate) key: KernelKey,
    pub(crate) blocks: u32,
    pub(crate) parameters: ParameterLayout,
    pub(crate) block: Vec<u8>,
}

impl ElementwisePlan {
    /// Plans a small space of at least one element. `bytes` and `addresses` hold the element size and the
    /// address of each operand.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the parameters exceed the limit of a kernel.
    pub(crate) fn new(
        space: &Space,
        bytes: &[usize],
        addresses: &[u64],
        scalars: &[[u64; 2]],
        is_ampere: bool,
    ) -> Result<ElementwisePlan> {
        let other = tile::tiled_dimension(space, bytes);
        let space = match other {
            Some(dimension) => Cow::Owned(space.with_second(dimension)),
            None => Cow::Borrowed(space),
        };
        let space = &*space;
        let view = PlannedOperands { space, bytes, addresses };
        let tiled = other.and_then(|_| view.tiled());
        let mut key = tiled.unwrap_or_else(|| view.choose());
        key.is_ampere = is_ampere;
        let parameters = ParameterLayout::new(&key, scalars.len(), space.coordinates.len());
        if parameters.bytes() > MAX_PARAMETER_BYTES {
            let found =
                format!("{} operands of {} dimensions, {} scalars", bytes.len(), space.rank(), scalars.len());
            return Err(Error::invalid(
                "an elementwise kernel",
                found,
                "fewer operands, or contiguous operands",
            ));
        }
        let mut block = vec![0; parameters.bytes()];
        let mut word = |at: usize, value: u32| block[at..at + 4].copy_from_slice(&value.to_le_bytes());
        let count = space.count() as u32;
        let (mut sizes, mut elements) =
            (space.sizes.iter().map(|&size| size as u32).collect::<Vec<_>>(), count);
        let threads = match key.iteration {
            Iteration::Flat | Iteration::Apart => u64::from(count.div_ceil(key.lanes)),
            Iteration::Vectors => {
                sizes[0] /= key.lanes;
                elements = count / key.lanes;
                u64::from(elements)
            }
            Iteration::Tiles(Tile { width, height }) => {
                let tiles = [sizes[0].div_ceil(width), sizes[1].div_ceil(height)];
                sizes.extend(tiles);
                let planes = sizes[2..key.rank].iter().map(|&size| u64::from(size)).product::<u64>();
                u64::from(tiles[0]) * u64::from(tiles[1]) * planes * u64::from(BLOCK)
            }
        };
        word(parameters.count(), elements);
        for (dimension, &size) in sizes.iter().enumerate() {
            for (index, value) in divisor(size).into_iter().enumerate() {
                word(parameters.divisor(dimension) + 4 * index, value);
            }
        }
        for operand in 0..space.strides.len() {
            for (dimension, &stride) in space.strides(operand).iter().enumerate() {
                word(parameters.stride(operand, dimension), stride as i32 as u32);
            }
        }
        for operand in bytes.len()..space.strides.len() {
            let at = parameters.first(operand);
            block[at..at + 8].copy_from_slice(&(space.offsets[operand] as u64).to_le_bytes());
        }
        for (index, parts) in scalars.iter().enumerate() {
            for (part, bits) in parts.iter().enumerate() {
                let at = parameters.scalar(index as u32, part as u32);
                block[at..at + 8].copy_from_slice(&bits.to_le_bytes());
            }
        }
        // There are fewer than 2^31 elements, and every tile has at least one element.
        let blocks = threads.div_ceil(u64::from(BLOCK)).min(i32::MAX as u64) as u32;
        Ok(ElementwisePlan { key, blocks, parameters, block })
    }
}

/// A space with the element sizes and addresses of its operands.
pub(super) struct PlannedOperands<'a> {
    pub(in crate::fuse) space: &'a Space,
    pub(in crate::fuse) bytes: &'a [usize],
    addresses: &'a [u64],
}

impl PlannedOperands<'_> {
    /// Returns the number of operands in memory.
    pub(in crate::fuse) fn count(&self) -> usize {
        self.bytes.len()
    }

    pub(in crate::fuse) fn outputs(&self) -> std::ops::Range<usize> {
        self.space.inputs..self.count()
    }

    /// Returns whether accesses of `lanes` neighbours are aligned at the first element.
    pub(super) fn starts_aligned(&self, operand: usize, lanes: u32) -> bool {
        let (bytes, width) = self.access(operand, lanes);
        let memory = self.addresses.get(operand).copied().unwrap_or(0);
        let whole = operand < self.bytes.len() || (lanes as usize).is_multiple_of(width);
        whole && (memory + (self.space.offsets[operand] * bytes) as u64).is_multiple_of(width as u64)
    }

    /// Returns the bytes of an element and of one access to `lanes` neighbours. A coordinate counts as one
    /// byte an element, accessed in groups.
    fn access(&self, operand: usize, lanes: u32) -> (usize, usize) {
        match self.bytes.get(operand) {
            Some(&bytes) => (bytes, (bytes * lanes as usize).min(WIDEST as usize)),
            None => (1, self.space.coordinates[operand - self.bytes.len()].group() as usize),
        }
    }

    /// Returns whether the accesses stay aligned for all outer coordinates.
    pub(super) fn stays_aligned(&self, operand: usize, lanes: u32) -> bool {
        let (bytes, width) = self.access(operand, lanes);
        let outer = &self.space.strides(operand)[1..];
        self.starts_aligned(operand, lanes)
            && outer.iter().all(|stride| stride.unsigned_abs() * bytes % width == 0)
    }

    pub(in crate::fuse) fn key(
        &self,
        iteration: Iteration,
        lanes: u32,
        tail: bool,
        class: impl Fn(usize) -> AccessPattern,
    ) -> KernelKey {
        let class =
            |operand| if self.space.is_constant(operand) { AccessPattern::Constant } else { class(operand) };
        let mut access_patterns: Vec<AccessPattern> = (0..self.space.strides.len()).map(class).collect();
        for output in self.outputs() {
            // An output of one element.
            if access_patterns[output] == AccessPattern::Constant {
                access_patterns[output] = AccessPattern::Linear;
            }
        }
        KernelKey { iteration, lanes, rank: self.space.rank(), access_patterns, tail, is_ampere: false }
    }

    fn choose(&self) -> KernelKey {
        let space = self.space;
        let widest = self.outputs().map(|output| self.bytes[output]).max().unwrap_or(16);
        let lanes = (16 / widest).clamp(1, 8) as u32;
        let count = space.count();
        let linear = |operand: usize| space.is_linear(operand);
        let vectors = |operand: usize| linear(operand) && self.starts_aligned(operand, lanes);
        let flat =
            |operand: usize| if vectors(operand) { AccessPattern::Linear } else { AccessPattern::Gather };
        let flat = || self.key(Iteration::Flat, lanes, !count.is_multiple_of(lanes as usize), flat);
        if space.rank() == 1 && self.outputs().all(vectors) {
            return flat();
        }
        let inner = |operand: usize| space.strides(operand)[0];
        if space.rank() > 1
            && space.sizes[0].is_multiple_of(lanes as usize)
            && self.outputs().all(|output| inner(output) == 1 && self.stays_aligned(output, lanes))
        {
            return self.key(Iteration::Vectors, lanes, false, |operand| match inner(operand) {
                1 if self.stays_aligned(operand, lanes) => AccessPattern::Linear,
                0 => AccessPattern::Row,
                _ => AccessPattern::Gather,
            });
        }
        if self.outputs().all(vectors) {
            return flat();
        }
        let several = count > BLOCK as usize;
        let lanes = if several { 4 } else { 1 };
        self.key(Iteration::Apart, lanes, !count.is_multiple_of(lanes as usize * BLOCK as usize), |operand| {
            if linear(operand) { AccessPattern::Linear } else { AccessPattern::Gather }
        })
    }
}

/// Checks that a layout stays within memory of `bytes` bytes and that `address` is aligned for the dtype.
#[inline]
pub(in crate::fuse) fn check_memory(dtype: DType, layout: &Layout, address: u64, bytes: usize) -> Result<()> {
    let fits = layout.end().checked_mul(dtype.size()).is_some_and(|end| end <= bytes);
    // A mask instead of a division; sizes are powers of two.
    if fits && address & (part_bytes(dtype) - 1) == 0 {
        return Ok(());
    }
    memory_error(dtype, layout, address, bytes)
}

#[inline]
fn part_bytes(dtype: DType) -> u64 {
    (dtype.size() / parts(dtype)) as u64
}

#[cold]
fn memory_error(dtype: DType, layout: &Layout, address: u64, bytes: usize) -> Result<()> {
    let part = part_bytes(dtype);
    if !address.is_multiple_of(part) {
        let found = format!("memory at {address:#x} for {dtype}");
        return Err(Error::invalid(OPERATION, found, format!("a multiple of {part} bytes")));
    }
    let length = bytes / dtype.size();
    Err(Error::OutOfRange { start: layout.start(), end: layout.end(), length })
}

#[cold]
pub(in crate::fuse) fn in_place_error(index: usize) -> Error {
    let found = format!("an in-place input for output {index}, which is missing or has another layout");
    Error::invalid(OPERATION, found, "an output of the run with the input's layout and dtype")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_by_multiplication_is_division() {
        let sizes = (1..2000u32).chain([
            4096,
            50257,
            65535,
            65536,
            65537,
            1 << 20,
            (1 << 30) + 1,
            (1 << 31) - 1,
            1 << 31,
        ]);
        for size in sizes {
            let [d, m, s] = divisor(size);
            assert_eq!(d, size);
            let check = |t: u32| {
                let high = ((u64::from(t) * u64::from(m)) >> 32) as u32;
                assert_eq!((high.wrapping_add(t)) >> s, t / size, "{t} / {size}");
            };
            for t in (0..100).chain((0..3000).map(|k| k * 715_827)) {
                check(t);
            }
            for k in 0..50 {
                let multiple = u64::from(size) * (1 + k * k);
                for t in [multiple - 1, multiple, multiple + 1] {
                    if t < 1 << 31 {
                        check(t as u32);
                    }
                }
            }
            check((1 << 31) - 1);
        }
    }
}
