//! Indexing: the elements of each thread and their addresses.

use super::tile::Rows;
use super::{Name, Register, Writer};
use crate::fuse::plan::elementwise::{AccessPattern, BLOCK, Iteration};

/// The elements of a thread.
pub(super) struct Indexing {
    /// The linear index of each lane, for iterations that have one. A lane past the end has the index of the
    /// last element, so that loads need no guard.
    pub(super) linear: Vec<Name>,
    /// The coordinates of each lane, decoded at first use. A vector has those of its first element, and a
    /// tiled iteration has them by row.
    pub(super) coordinates: Vec<Option<Vec<Name>>>,
    /// For each lane (in tiles, for each row), the predicate that the element exists; empty if it always
    /// does.
    pub(super) inside: Vec<Name>,
    /// The predicate that all lanes have elements; empty if they always do.
    pub(super) full: Name,
    /// Size, factor and shift of each dimension, for decoding coordinates.
    divisors: Vec<[Name; 3]>,
    /// The strides of each operand, loaded at first use.
    strides: Vec<Vec<Name>>,
    /// In tiles, the thread's rows and column within the block's tile.
    pub(super) rows: Option<Rows>,
    /// For a thread that loops over rows: its row, the row step, and the end of the tile.
    pub(super) next: Option<(Name, u32, u32)>,
}

impl Writer<'_> {
    /// Computes the index of the thread and its elements.
    pub(super) fn indexing(&mut self) -> Indexing {
        let block = self.result(Register::Bits32, "mov.u32", &["%ctaid.x"]);
        let thread = self.result(Register::Bits32, "mov.u32", &["%tid.x"]);
        let mut indexing = Indexing {
            linear: Vec::new(),
            coordinates: Vec::new(),
            inside: Vec::new(),
            full: Name::new(),
            divisors: Vec::new(),
            strides: vec![Vec::new(); self.key.access_patterns.len()],
            rows: None,
            next: None,
        };
        match self.key.iteration {
            Iteration::Flat => self.flat(&mut indexing, &block, &thread),
            Iteration::Apart => self.apart(&mut indexing, &block, &thread),
            Iteration::Vectors => self.vectors(&mut indexing, &block, &thread),
            Iteration::Tiles(tile) => self.tiles(&mut indexing, &block, &thread, tile),
        }
        indexing
    }

    pub(super) fn exit_unless_below(&mut self, index: &str, count: &str) {
        let below = self.result(Register::Predicate, "setp.lt.u32", &[index, count]);
        self.line(format!("@!{below} bra $exit;"));
    }

    /// Adds the lanes `first + lane · step`, clamped to the count, and their guards.
    fn lanes(&mut self, indexing: &mut Indexing, first: &str, step: u32, count: &str) {
        let tail = self.key.tail;
        indexing.coordinates = vec![None; self.key.lanes as usize];
        let last = if tail { self.result(Register::Bits32, "sub.u32", &[count, "1"]) } else { Name::new() };
        for lane in 0..self.key.lanes {
            if lane == 0 {
                indexing.linear.push(first.to_owned());
                // The thread has not exited, so its first element exists.
                indexing.inside.push(Name::new());
                continue;
            }
            let index = self.result(Register::Bits32, "add.u32", &[first, &(lane * step).to_string()]);
            if !tail {
                indexing.linear.push(index);
                continue;
            }
            indexing.inside.push(self.result(Register::Predicate, "setp.lt.u32", &[&index, count]));
            indexing.linear.push(self.result(Register::Bits32, "min.u32", &[&index, &last]));
        }
        if !tail {
            indexing.inside.clear();
        }
    }

    fn flat(&mut self, indexing: &mut Indexing, block: &str, thread: &str) {
        let count = self.word(self.parameters.count());
        let thread = self.result(Register::Bits32, "mad.lo.u32", &[block, &BLOCK.to_string(), thread]);
        let lanes = self.key.lanes.to_string();
        let first = self.result(Register::Bits32, "mul.lo.u32", &[&thread, &lanes]);
        self.exit_unless_below(&first, &count);
        if self.key.tail {
            let end = self.result(Register::Bits32, "add.u32", &[&first, &lanes]);
            indexing.full = self.result(Register::Predicate, "setp.le.u32", &[&end, &count]);
        }
        self.lanes(indexing, &first, 1, &count);
    }

    fn apart(&mut self, indexing: &mut Indexing, block: &str, thread: &str) {
        let count = self.word(self.parameters.count());
        let width = (BLOCK * self.key.lanes).to_string();
        let first = self.result(Register::Bits32, "mad.lo.u32", &[block, &width, thread]);
        self.exit_unless_below(&first, &count);
        self.lanes(indexing, &first, BLOCK, &count);
    }

    fn vectors(&mut self, indexing: &mut Indexing, block: &str, thread: &str) {
        let count = self.word(self.parameters.count());
        let vector = self.result(Register::Bits32, "mad.lo.u32", &[block, &BLOCK.to_string(), thread]);
        self.exit_unless_below(&vector, &count);
        let mut coordinates = self.decode(indexing, &vector, 0, self.key.rank);
        // The index counts vectors in the first dimension.
        if self.key.lanes > 1 {
            let lanes = self.key.lanes.to_string();
            coordinates[0] = self.result(Register::Bits32, "mul.lo.u32", &[&coordinates[0], &lanes]);
        }
        indexing.coordinates = vec![Some(coordinates)];
    }

    /// Returns size, factor and shift of a dimension.
    fn divisor(&mut self, indexing: &mut Indexing, dimension: usize) -> [Name; 3] {
        if indexing.divisors.len() <= dimension {
            indexing.divisors.resize(dimension + 1, Default::default());
        }
        if indexing.divisors[dimension][0].is_empty() {
            let at = self.parameters.divisor(dimension);
            indexing.divisors[dimension] = [at, at + 4, at + 8].map(|at| self.word(at));
        }
        indexing.divisors[dimension].clone()
    }

    pub(super) fn size(&mut self, indexing: &mut Indexing, dimension: usize) -> Name {
        let [size, ..] = self.divisor(indexing, dimension);
        size
    }

    /// Divides by the size of a dimension and returns quotient and remainder.
    pub(super) fn divide(&mut self, indexing: &mut Indexing, index: &str, dimension: usize) -> (Name, Name) {
        let [size, factor, shift] = self.divisor(indexing, dimension);
        let high = self.result(Register::Bits32, "mul.hi.u32", &[index, &factor]);
        let sum = self.result(Register::Bits32, "add.u32", &[&high, index]);
        let quotient = self.result(Register::Bits32, "shr.u32", &[&sum, &shift]);
        let whole = self.result(Register::Bits32, "mul.lo.u32", &[&quotient, &size]);
        (quotient, self.result(Register::Bits32, "sub.u32", &[index, &whole]))
    }

    /// Decodes a linear index into coordinates of dimensions `first` to `end`.
    pub(super) fn decode(
        &mut self,
        indexing: &mut Indexing,
        index: &str,
        first: usize,
        end: usize,
    ) -> Vec<Name> {
        let mut coordinates = Vec::with_capacity(end - first);
        let mut rest = index.to_owned();
        for dimension in first..end - 1 {
            let (quotient, coordinate) = self.divide(indexing, &rest, dimension);
            coordinates.push(coordinate);
            rest = quotient;
        }
        coordinates.push(rest);
        coordinates
    }

    fn coordinates(&mut self, indexing: &mut Indexing, lane: usize) -> Vec<Name> {
        let lane = lane.min(indexing.coordinates.len() - 1);
        if let Some(coordinates) = &indexing.coordinates[lane] {
            return coordinates.clone();
        }
        let index = indexing.linear[lane].clone();
        let coordinates = self.decode(indexing, &index, 0, self.key.rank);
        indexing.coordinates[lane] = Some(coordinates.clone());
        coordinates
    }

    pub(super) fn strides(&mut self, indexing: &mut Indexing, operand: usize) -> Vec<Name> {
        if indexing.strides[operand].is_empty() {
            let rank = self.key.rank;
            let at = self.parameters;
            indexing.strides[operand] =
                (0..rank).map(|dimension| self.word(at.stride(operand, dimension))).collect();
        }
        indexing.strides[operand].clone()
    }

    /// Returns the address of an operand's element for a lane, or of the first of adjacent lanes. For a
    /// coordinate it returns the number.
    pub(super) fn address(&mut self, indexing: &mut Indexing, operand: usize, lane: usize) -> Name {
        let base = self.bases[operand].clone();
        let bytes = self.dtypes.get(operand).map_or(1, |dtype| dtype.size()).to_string();
        let class = self.key.access_patterns[operand];
        if class == AccessPattern::Constant {
            return base;
        }
        if class == AccessPattern::Linear && !indexing.linear.is_empty() {
            let index = indexing.linear[lane].clone();
            return self.result(Register::Bits64, "mad.wide.u32", &[&index, &bytes, &base]);
        }
        let coordinates = self.coordinates(indexing, lane);
        let strides = self.strides(indexing, operand);
        let mut offset = match class {
            AccessPattern::Linear => coordinates[0].clone(),
            AccessPattern::Row => Name::new(),
            _ => self.result(Register::Bits32, "mul.lo.u32", &[&coordinates[0], &strides[0]]),
        };
        for (coordinate, stride) in coordinates.iter().zip(&strides).skip(1) {
            offset = if offset.is_empty() {
                self.result(Register::Bits32, "mul.lo.u32", &[coordinate, stride])
            } else {
                self.result(Register::Bits32, "mad.lo.u32", &[coordinate, stride, &offset])
            };
        }
        if offset.is_empty() {
            return base;
        }
        self.result(Register::Bits64, "mad.wide.s32", &[&offset, &bytes, &base])
    }

    /// Returns the numbers that a coordinate gives, by lane, or a single number shared by all lanes.
    pub(super) fn numbers(&mut self, indexing: &mut Indexing, operand: usize) -> Vec<Name> {
        let (class, iteration, lanes) =
            (self.key.access_patterns[operand], self.key.iteration, self.key.lanes as usize);
        if class == AccessPattern::Constant {
            return vec![self.address(indexing, operand, 0)];
        }
        match iteration {
            // Adjacent elements have no common stride but 1.
            Iteration::Flat if class == AccessPattern::Linear => self.neighbours(indexing, operand, 0),
            Iteration::Flat | Iteration::Apart => {
                (0..lanes).map(|lane| self.address(indexing, operand, lane)).collect()
            }
            Iteration::Vectors if class == AccessPattern::Row => vec![self.address(indexing, operand, 0)],
            Iteration::Vectors => self.neighbours(indexing, operand, 0),
            Iteration::Tiles(_) => {
                let (rows, _) = self.rows_of_tile();
                (0..rows as usize).flat_map(|row| self.neighbours(indexing, operand, row)).collect()
            }
        }
    }

    /// Returns the numbers of the lanes that share the coordinates of row `row`.
    fn neighbours(&mut self, indexing: &mut Indexing, operand: usize, row: usize) -> Vec<Name> {
        let (class, lanes) = (self.key.access_patterns[operand], self.key.lanes as usize);
        let first = self.address(indexing, operand, row);
        let stride = match class {
            AccessPattern::Gather => self.strides(indexing, operand)[0].clone(),
            _ => Name::new(),
        };
        let mut next = |lane: usize| match (lane, class) {
            (0, _) | (_, AccessPattern::Row) => first.clone(),
            (_, AccessPattern::Gather) => {
                self.result(Register::Bits64, "mad.wide.s32", &[&stride, &lane.to_string(), &first])
            }
            _ => self.result(Register::Bits64, "add.u64", &[&first, &lane.to_string()]),
        };
        (0..lanes).map(&mut next).collect()
    }
}
