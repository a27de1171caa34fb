//! [`IndexSpace`], the elements that an indexed copy moves: the parameter of the kernels of `csrc/kernels/indexed.cuh` and of
//! the loop on the CPU.
//!
//! Every operation of indexing has one form: it loops over a shape, reads an index for each element, and the index selects a
//! position along one axis of an array. An operand's element is at `offset + sum of coordinate · stride + index · along`. An
//! index that broadcasts has strides of 0, rows are dimensions in which it does, and the array of a flat `take` has strides of
//! 0 only.
//!
//! Invariants: the struct is the kernels', and a space made smaller or wider moves the same bytes.

use crate::error::{Error, Result};
use crate::types::{MAX_RANK, Shape, divisor};

/// Dimensions of a shape, and one for the bytes of an element.
pub(super) const DIMENSIONS: usize = MAX_RANK + 1;
/// The most operands; see [`IndexSpace::new`].
pub(super) const OPERANDS: usize = 5;
/// The operands whose elements are moved.
const MOVED: [usize; 2] = [1, 2];
/// The strides of a dimension whose units can be moved together.
const RUN: [i64; OPERANDS] = [0, 1, 1, 0, 0];

/// One operand as it is before anything is made smaller, in its elements.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexedOperand {
    pub(super) strides: [isize; MAX_RANK],
    pub(super) offset: usize,
    /// How far an index of 1 leads.
    pub(super) along: isize,
}

impl IndexedOperand {
    /// With these strides, by dimension.
    pub(super) fn new(strides: &[isize], offset: usize) -> IndexedOperand {
        let mut operand = IndexedOperand { strides: [0; MAX_RANK], offset, along: 0 };
        operand.strides[..strides.len()].copy_from_slice(strides);
        operand
    }

    /// In which the index leads along `axis`: the dimension's stride is the index's.
    pub(super) fn along(mut self, axis: usize) -> IndexedOperand {
        self.along = std::mem::take(&mut self.strides[axis]);
        self
    }

    /// In which the coordinate along `axis` leads where the index did.
    pub(super) fn across(mut self, axis: usize) -> IndexedOperand {
        self.strides[axis] = std::mem::take(&mut self.along);
        self
    }
}

/// Exactly the `IndexSpace` of indexed.cuh, with dimension 0 the innermost.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct IndexSpace {
    shape: [u64; DIMENSIONS],
    stride: [[i64; DIMENSIONS]; OPERANDS],
    offset: [i64; OPERANDS],
    along: [i64; OPERANDS],
    /// Division by a size as the kernels do it; see [`divisor`].
    factor: [u32; DIMENSIONS],
    shift: [u32; DIMENSIONS],
    rank: u32,
    near: u32,
    size: u64,
    axis: u32,
    operation: u32,
}

impl IndexSpace {
    /// The elements of `shape`, each of `bytes` bytes, indices that lead along `size` positions of `axis` (for the report).
    ///
    /// Operands: the indices, the array that they lead in, the elements that it exchanges with it, and for a scatter with
    /// duplicates the marks and the position; or the marks as indices, the elements that they lead in, and the array that
    /// takes them. The second and third are in bytes from here on, with an innermost
    /// dimension of an element's; without `bytes` nothing is moved, and all stay in their elements.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for more bytes than 63 bits count.
    pub(super) fn new(
        shape: &Shape,
        operands: &[IndexedOperand],
        bytes: Option<usize>,
        (operation, axis, size): (u32, usize, usize),
    ) -> Result<IndexSpace> {
        let mut space =
            IndexSpace { size: size as u64, axis: axis as u32, operation, ..bytemuck::Zeroable::zeroed() };
        if shape.count().checked_mul(bytes.unwrap_or(1)).is_none_or(|bytes| isize::try_from(bytes).is_err()) {
            let found = format!("{} elements of {} bytes", shape.count(), bytes.unwrap_or(1));
            return Err(Error::invalid("an indexed copy", found, "bytes that 63 bits count"));
        }
        // Of what memory holds, so the products fit.
        let unit = |operand: usize| if MOVED.contains(&operand) { bytes.unwrap_or(1) as i64 } else { 1 };
        for (at, operand) in operands.iter().enumerate() {
            space.offset[at] = operand.offset as i64 * unit(at);
            space.along[at] = operand.along as i64 * unit(at);
        }
        if let Some(bytes) = bytes {
            space.push(bytes as u64, RUN);
        }
        for (dimension, &size) in shape.iter().enumerate().rev() {
            let mut strides = [0; OPERANDS];
            for (at, operand) in operands.iter().enumerate() {
                // An array of no elements has strides that mean nothing.
                strides[at] =
                    if size > 1 { (operand.strides[dimension] as i64).wrapping_mul(unit(at)) } else { 0 };
            }
            space.push(size as u64, strides);
        }
        Ok(space)
    }

    /// The next dimension outwards: left out where it is of size 1, part of the one before it where it lies behind it in
    /// all operands.
    fn push(&mut self, size: u64, strides: [i64; OPERANDS]) {
        if size == 1 {
            return;
        }
        let rank = self.rank as usize;
        if rank > 0 {
            let inner = self.strides(rank - 1);
            let reach = self.shape[rank - 1] as i64;
            if inner.iter().zip(strides).all(|(inner, stride)| inner.checked_mul(reach) == Some(stride)) {
                self.shape[rank - 1] *= size;
                return;
            }
        }
        self.shape[rank] = size;
        for (row, stride) in self.stride.iter_mut().zip(strides) {
            row[rank] = stride;
        }
        self.rank += 1;
    }

    /// The same bytes in the widest units that runs and addresses (of the array and the elements) allow, and a unit's size:
    /// at most 16.
    pub(super) fn in_units(mut self, addresses: [u64; 2]) -> (IndexSpace, usize) {
        let mut bytes = 1;
        let start = addresses[0] | addresses[1];
        while bytes < 16 && self.pairs_up() && start.is_multiple_of(2 * bytes as u64) {
            self.shape[0] /= 2;
            for operand in MOVED {
                self.offset[operand] /= 2;
                self.along[operand] /= 2;
                self.stride[operand][1..self.rank as usize].iter_mut().for_each(|stride| *stride /= 2);
            }
            bytes *= 2;
        }
        if self.rank > 0 && self.shape[0] == 1 {
            self.rank -= 1;
            self.shape.rotate_left(1);
            self.stride.iter_mut().for_each(|row| row.rotate_left(1));
        }
        (self.for_kernels(), bytes)
    }

    /// With what kernels know of sizes and offsets beforehand.
    pub(super) fn for_kernels(mut self) -> IndexSpace {
        const NEAR: i128 = 1 << 31;
        let small = (1..NEAR).contains(&(self.count() as i128));
        let reach = |operand: usize| {
            let turns = self.stride[operand].iter().zip(&self.shape).take(self.rank as usize);
            let along = i128::from(self.along[operand]) * i128::from(self.size);
            let of_shape: i128 =
                turns.map(|(stride, size)| (i128::from(*stride) * i128::from(*size)).abs()).sum();
            i128::from(self.offset[operand]) + along.abs() + of_shape
        };
        self.near = u32::from(small && (0..OPERANDS).all(|operand| reach(operand) < NEAR));
        for dimension in 0..self.rank as usize {
            if small {
                let [_, factor, shift] = divisor(self.shape[dimension] as u32);
                (self.factor[dimension], self.shift[dimension]) = (factor, shift);
            }
        }
        self
    }

    /// Returns whether two neighbours can be one unit of twice the size.
    fn pairs_up(&self) -> bool {
        let even = |value: &i64| value % 2 == 0;
        self.run().is_multiple_of(2)
            && MOVED.iter().all(|&operand| {
                let outer = &self.stride[operand][1..self.rank as usize];
                outer.iter().all(even) && even(&self.offset[operand]) && even(&self.along[operand])
            })
    }

    fn strides(&self, dimension: usize) -> [i64; OPERANDS] {
        self.stride.map(|row| row[dimension])
    }

    /// Units that lie side by side in the innermost dimension under one index; 1 where there are none.
    pub(super) fn run(&self) -> usize {
        if self.rank > 0 && self.strides(0) == RUN { self.shape[0] as usize } else { 1 }
    }

    /// Units to move.
    pub(super) fn count(&self) -> usize {
        self.shape[..self.rank as usize].iter().product::<u64>() as usize
    }

    /// Positions along the axis.
    pub(super) fn size(&self) -> usize {
        self.size as usize
    }

    /// The offsets of runs from the `start`th on.
    pub(super) fn walk(&self, start: usize) -> Walk<'_> {
        let first = usize::from(self.run() > 1);
        let mut walk = Walk { space: self, first, coordinates: [0; DIMENSIONS], offsets: self.offset };
        let mut rest = start as u64;
        for dimension in first..self.rank as usize {
            let coordinate = rest % self.shape[dimension];
            rest /= self.shape[dimension];
            walk.coordinates[dimension] = coordinate;
            for (offset, stride) in walk.offsets.iter_mut().zip(self.strides(dimension)) {
                *offset += coordinate as i64 * stride;
            }
        }
        walk
    }

    /// How far the index leads in an operand.
    pub(super) fn reach(&self, operand: usize) -> i64 {
        self.along[operand]
    }
}

/// Goes through a space's runs in order.
pub(super) struct Walk<'a> {
    space: &'a IndexSpace,
    first: usize,
    coordinates: [u64; DIMENSIONS],
    /// Of the run's first unit, by operand, without what the index adds.
    pub(super) offsets: [i64; OPERANDS],
}

impl Walk<'_> {
    /// Returns the runs until the innermost dimension ends, at least one, and the distance between two for each operand.
    #[inline]
    pub(super) fn line(&self) -> (usize, [i64; OPERANDS]) {
        match self.first < self.space.rank as usize {
            true => {
                let left = self.space.shape[self.first] - self.coordinates[self.first];
                (left as usize, self.space.strides(self.first))
            }
            false => (1, [0; OPERANDS]),
        }
    }

    /// On by so many runs, at most those of the [`line`](Self::line); from the last one to the first.
    #[inline]
    pub(super) fn advance(&mut self, runs: usize) {
        let mut moves = runs as i64;
        for dimension in self.first..self.space.rank as usize {
            let size = self.space.shape[dimension];
            self.coordinates[dimension] += moves as u64;
            let turns = self.coordinates[dimension] == size;
            moves -= if turns { size as i64 } else { 0 };
            for (offset, row) in self.offsets.iter_mut().zip(&self.space.stride) {
                *offset += moves * row[dimension];
            }
            if !turns {
                break;
            }
            self.coordinates[dimension] = 0;
            moves = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(sizes: &[usize]) -> Shape {
        Shape::new(sizes).unwrap()
    }

    /// Rows of `array` ([rows, width]) by an index.
    fn rows(indices: usize, width: usize, bytes: usize, offset: usize) -> IndexSpace {
        let operands = [
            IndexedOperand::new(&[1, 0], 0),
            IndexedOperand::new(&[width as isize, 1], offset).along(0),
            IndexedOperand::new(&[width as isize, 1], 0),
        ];
        IndexSpace::new(&shape(&[indices, width]), &operands, Some(bytes), (0, 0, 9)).unwrap()
    }

    #[test]
    fn the_space_is_the_kernels() {
        assert_eq!(size_of::<IndexSpace>(), 8 * (17 + 5 * 17 + 5 + 5) + 4 * (17 + 17 + 2) + 16);
        assert_eq!(std::mem::offset_of!(IndexSpace, offset), 8 * 6 * 17);
        assert_eq!(std::mem::offset_of!(IndexSpace, size), 8 * (6 * 17 + 10) + 4 * 36);
    }

    #[test]
    fn rows_are_moved_in_the_widest_units() {
        let space = rows(5, 256, 4, 0);
        assert_eq!((space.rank, space.run(), space.count()), (2, 1024, 5 * 1024));
        let (wide, bytes) = space.in_units([0x1000, 0x2000]);
        assert_eq!((wide.count(), wide.shape[0], bytes, wide.along[1]), (5 * 64, 64, 16, 64));
        assert_eq!(space.in_units([0x1004, 0x2000]).1, 4);
        assert_eq!(space.in_units([0x1000, 0x2001]).1, 1);
        // Rows of 3 bytes each start anywhere.
        assert_eq!(rows(5, 3, 1, 0).in_units([0, 0]).1, 1);
        assert_eq!(rows(5, 6, 2, 1).in_units([0, 0]).1, 2);
        // The whole row is one unit.
        let (wide, bytes) = rows(5, 4, 4, 0).in_units([0, 0]);
        assert_eq!((wide.rank, wide.count(), bytes, wide.stride[0][0], wide.stride[2][0]), (1, 5, 16, 1, 1));
    }

    #[test]
    fn elements_by_their_own_indices_stay_elements() {
        let operands = [
            IndexedOperand::new(&[4, 1], 0),
            IndexedOperand::new(&[4, 1], 0).along(0),
            IndexedOperand::new(&[4, 1], 0),
        ];
        let space = IndexSpace::new(&shape(&[3, 4]), &operands, Some(8), (0, 0, 3)).unwrap();
        let (wide, bytes) = space.in_units([0, 0]);
        assert_eq!((bytes, wide.rank, wide.along[1], wide.run()), (8, 2, 4, 1));
        // A flat take: one dimension.
        let operands =
            [IndexedOperand::new(&[4, 1], 0), IndexedOperand { along: 1, ..IndexedOperand::new(&[0, 0], 0) }];
        let operands = [operands[0], operands[1], IndexedOperand::new(&[4, 1], 0)];
        let space = IndexSpace::new(&shape(&[3, 4]), &operands, Some(16), (0, 0, 3)).unwrap();
        assert_eq!(space.in_units([0, 8]).1, 8);
        assert_eq!((space.in_units([0, 0]).0.rank, space.in_units([0, 0]).1), (1, 16));
    }

    #[test]
    fn a_walk_is_the_space_in_order() {
        let operands = [
            IndexedOperand::new(&[0, 1, 0], 3),
            IndexedOperand::new(&[100, 0, 1], 7),
            IndexedOperand::new(&[6, 2, 1], 0),
        ];
        let space = IndexSpace::new(&shape(&[2, 3, 2]), &operands, Some(1), (0, 1, 3)).unwrap();
        assert_eq!(space.run(), 2);
        for start in 0..6 {
            let mut walk = space.walk(start);
            for run in start..6 {
                let [i, j] = [run as i64 / 3, run as i64 % 3];
                assert_eq!(walk.offsets[..3], [3 + j, 7 + 100 * i, 6 * i + 2 * j], "{start} {run}");
                walk.advance(1);
            }
            assert_eq!(walk.offsets[..3], [3, 7, 0]);
        }
    }

    #[test]
    fn too_much_is_an_error() {
        let operands = [IndexedOperand::new(&[0], 0); 3];
        let error = IndexSpace::new(&shape(&[1 << 60]), &operands, Some(16), (0, 0, 1)).unwrap_err();
        assert!(error.to_string().contains("16 bytes"), "{error}");
    }
}
