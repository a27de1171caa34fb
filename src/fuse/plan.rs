//! How a run walks its index space on a device: which threads take what, and how each operand is read.
//!
//! Measured on an H200 (benches/RESULTS.md): the bandwidth follows the bytes that a thread has outstanding, so a thread
//! takes 16 bytes of the widest output; coordinates are decoded once a vector, by multiplication instead of division;
//! what cannot be vectors is several scalars, a block apart; where an input runs along another dimension than the
//! output the walk is in tiles ([`tile`](super::tile)).
//!
//! The [`Key`] is all that the text depends on beside the expression; sizes, strides and scalars are in the block of
//! parameters, whose places [`Parameters`] gives. What must stay true: two runs with equal keys have one text.

use std::borrow::Cow;

use super::space::Space;
use super::tile::{self, Access, Tile};
use crate::error::{Error, Result};

/// Threads of a block.
pub(crate) const BLOCK: u32 = 256;
/// The most bytes of one access, and so all that a plan knows of an address.
pub(crate) const WIDEST: u64 = 16;
/// A kernel's parameters are at most 4 KB in PTX 8.0.
const MOST_PARAMETER_BYTES: usize = 4000;

/// Which threads take which elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Walk {
    /// By the linear index; a thread's elements are neighbours.
    Flat,
    /// By the linear index; a thread's elements are a block apart.
    Apart,
    /// By coordinates, decoded once for a vector of neighbours in the innermost dimension.
    Vectors,
    /// Tiles of the two innermost dimensions; a thread's elements are neighbours in a row of the output.
    Tiles(Tile),
}

/// How an operand, or a coordinate, is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// One element for all.
    Constant,
    /// Neighbours are neighbours: one access for a thread's elements where those are.
    Linear,
    /// One element for a thread's vector.
    Row,
    /// Any stride: element by element.
    Gather,
    /// A tile of it comes into shared memory first.
    Staged(Access),
}

/// All that the text of a kernel depends on beside the expression.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) walk: Walk,
    /// Elements of a thread.
    pub(crate) lanes: u32,
    pub(crate) rank: usize,
    pub(crate) classes: Vec<Class>,
    /// Whether the last thread has fewer elements than the others.
    pub(crate) tail: bool,
    /// Whether the device converts to bf16 itself (compute capability 8.0).
    pub(crate) converts_brain: bool,
}

/// Where the parameters of a kernel lie in their block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameters {
    scalars: usize,
    /// Operands behind those with memory.
    coordinates: usize,
    rank: usize,
    /// Dimensions of the space, and two of tiles where it is walked in those.
    divisors: usize,
    operands: usize,
}

impl Parameters {
    pub(crate) fn new(key: &Key, scalars: usize, coordinates: usize) -> Parameters {
        let tiles = if matches!(key.walk, Walk::Tiles(_)) { 2 } else { 0 };
        let (rank, operands) = (key.rank, key.classes.len());
        Parameters { scalars, coordinates, rank, divisors: rank + tiles, operands }
    }

    /// The bits of a part of a scalar.
    pub(crate) fn scalar(self, index: u32, part: u32) -> usize {
        16 * index as usize + 8 * part as usize
    }

    /// The number of the first element that a coordinate gives, of 64 bits.
    pub(crate) fn first(self, operand: usize) -> usize {
        16 * self.scalars + 8 * (self.coordinates + operand - self.operands)
    }

    /// How many elements, or vectors, there are.
    pub(crate) fn count(self) -> usize {
        16 * self.scalars + 8 * self.coordinates
    }

    /// Size, factor and shift of a dimension; those behind the space's count tiles.
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

/// A kernel's key, its grid and its parameters but the scalars.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) key: Key,
    pub(crate) blocks: u32,
    pub(crate) parameters: Parameters,
    pub(crate) block: Vec<u8>,
}

/// (d, m, s) with t / d = (umulhi(t, m) + t) >> s for all t below 2^31 (T. Granlund, P. L. Montgomery, "Division by
/// invariant integers using multiplication", PLDI 1994).
pub(crate) fn divisor(size: u32) -> [u32; 3] {
    let shift = size.next_power_of_two().trailing_zeros();
    let factor = ((1u64 << 32) * ((1u64 << shift) - u64::from(size))) / u64::from(size) + 1;
    [size, factor as u32, shift]
}

impl Plan {
    /// For a small space of at least one element; `bytes` and `addresses` (of the operands' memory) are by operand.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] where the parameters would not fit a kernel.
    pub(crate) fn new(
        space: &Space,
        bytes: &[usize],
        addresses: &[u64],
        scalars: &[[u64; 2]],
        converts_brain: bool,
    ) -> Result<Plan> {
        let other = tile::other_dimension(space, bytes);
        let space = match other {
            Some(dimension) => Cow::Owned(space.with_second(dimension)),
            None => Cow::Borrowed(space),
        };
        let space = &*space;
        let view = Operands { space, bytes, addresses };
        let tiled = other.and_then(|_| view.tiled());
        let mut key = tiled.unwrap_or_else(|| view.choose());
        key.converts_brain = converts_brain;
        let parameters = Parameters::new(&key, scalars.len(), space.coordinates.len());
        if parameters.bytes() > MOST_PARAMETER_BYTES {
            let found =
                format!("{} operands of {} dimensions, {} scalars", bytes.len(), space.rank(), scalars.len());
            return Err(Error::invalid("an elementwise kernel", found, "fewer operands, or contiguous ones"));
        }
        let mut block = vec![0; parameters.bytes()];
        let mut word = |at: usize, value: u32| block[at..at + 4].copy_from_slice(&value.to_le_bytes());
        let count = space.count() as u32;
        let (mut sizes, mut elements) =
            (space.sizes.iter().map(|&size| size as u32).collect::<Vec<_>>(), count);
        let threads = match key.walk {
            Walk::Flat | Walk::Apart => u64::from(count.div_ceil(key.lanes)),
            Walk::Vectors => {
                sizes[0] /= key.lanes;
                elements = count / key.lanes;
                u64::from(elements)
            }
            Walk::Tiles(Tile { width, height }) => {
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
        // Below 2^31 elements, and a tile is never emptier than one element a block.
        let blocks = threads.div_ceil(u64::from(BLOCK)).min(i32::MAX as u64) as u32;
        Ok(Plan { key, blocks, parameters, block })
    }
}

/// A space with what is known of the memory.
pub(super) struct Operands<'a> {
    pub(super) space: &'a Space,
    pub(super) bytes: &'a [usize],
    addresses: &'a [u64],
}

impl Operands<'_> {
    /// Those that lie in memory.
    pub(super) fn count(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn outputs(&self) -> std::ops::Range<usize> {
        self.space.inputs..self.count()
    }

    /// Whether accesses of `lanes` neighbours are aligned at the first element.
    pub(super) fn starts_aligned(&self, operand: usize, lanes: u32) -> bool {
        let (bytes, width) = self.access(operand, lanes);
        let memory = self.addresses.get(operand).copied().unwrap_or(0);
        let whole = operand < self.bytes.len() || (lanes as usize).is_multiple_of(width);
        whole && (memory + (self.space.offsets[operand] * bytes) as u64).is_multiple_of(width as u64)
    }

    /// The bytes of an element, and those of one access to `lanes` neighbours. A coordinate's numbers count as addresses
    /// of bytes, which are asked for in groups.
    fn access(&self, operand: usize, lanes: u32) -> (usize, usize) {
        match self.bytes.get(operand) {
            Some(&bytes) => (bytes, (bytes * lanes as usize).min(WIDEST as usize)),
            None => (1, self.space.coordinates[operand - self.bytes.len()].group() as usize),
        }
    }

    /// Whether they are wherever the outer coordinates lead.
    pub(super) fn stays_aligned(&self, operand: usize, lanes: u32) -> bool {
        let (bytes, width) = self.access(operand, lanes);
        let outer = &self.space.strides(operand)[1..];
        self.starts_aligned(operand, lanes)
            && outer.iter().all(|stride| stride.unsigned_abs() * bytes % width == 0)
    }

    pub(super) fn key(&self, walk: Walk, lanes: u32, tail: bool, class: impl Fn(usize) -> Class) -> Key {
        let class = |operand| if self.space.is_constant(operand) { Class::Constant } else { class(operand) };
        let mut classes: Vec<Class> = (0..self.space.strides.len()).map(class).collect();
        for output in self.outputs() {
            // An output of one element.
            if classes[output] == Class::Constant {
                classes[output] = Class::Linear;
            }
        }
        Key { walk, lanes, rank: self.space.rank(), classes, tail, converts_brain: false }
    }

    fn choose(&self) -> Key {
        let space = self.space;
        let widest = self.outputs().map(|output| self.bytes[output]).max().unwrap_or(16);
        let lanes = (16 / widest).clamp(1, 8) as u32;
        let count = space.count();
        let linear = |operand: usize| space.is_linear(operand);
        let vectors = |operand: usize| linear(operand) && self.starts_aligned(operand, lanes);
        let flat = |operand: usize| if vectors(operand) { Class::Linear } else { Class::Gather };
        let flat = || self.key(Walk::Flat, lanes, !count.is_multiple_of(lanes as usize), flat);
        if space.rank() == 1 && self.outputs().all(vectors) {
            return flat();
        }
        let inner = |operand: usize| space.strides(operand)[0];
        if space.rank() > 1
            && space.sizes[0].is_multiple_of(lanes as usize)
            && self.outputs().all(|output| inner(output) == 1 && self.stays_aligned(output, lanes))
        {
            return self.key(Walk::Vectors, lanes, false, |operand| match inner(operand) {
                1 if self.stays_aligned(operand, lanes) => Class::Linear,
                0 => Class::Row,
                _ => Class::Gather,
            });
        }
        if self.outputs().all(vectors) {
            return flat();
        }
        let several = count > BLOCK as usize;
        let lanes = if several { 4 } else { 1 };
        self.key(Walk::Apart, lanes, !count.is_multiple_of(lanes as usize * BLOCK as usize), |operand| {
            if linear(operand) { Class::Linear } else { Class::Gather }
        })
    }
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
