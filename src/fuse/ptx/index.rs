//! Which elements a thread takes, and where they are.

use super::super::plan::{BLOCK, Class, Walk};
use super::tile::Rows;
use super::{Name, Register, Writer};

/// Where a thread's elements are.
pub(super) struct Places {
    /// The linear index of each lane where the walk has one. Of lanes past the end, that of the last element, so that
    /// loads need no guard.
    pub(super) linear: Vec<Name>,
    /// Coordinates of each lane, decoded when first asked for; of a vector those of its first element, for all; in tiles
    /// by row.
    pub(super) coordinates: Vec<Option<Vec<Name>>>,
    /// For each lane, in tiles for each row, whether there is such an element; empty where there always is.
    pub(super) inside: Vec<Name>,
    /// Whether all lanes are inside; empty where they always are.
    pub(super) full: Name,
    /// Sizes, factors and shifts of the dimensions that coordinates are decoded by.
    divisors: Vec<[Name; 3]>,
    /// The strides of each operand, loaded when first asked for.
    strides: Vec<Vec<Name>>,
    /// In tiles, where the thread is in its block's.
    pub(super) rows: Option<Rows>,
    /// Where a thread takes rows in turn: its row, how much further the next is, and where the tile ends.
    pub(super) next: Option<(Name, u32, u32)>,
}

impl Writer<'_> {
    /// The index of the thread and everything that follows from it.
    pub(super) fn places(&mut self) -> Places {
        let block = self.result(Register::Bits32, "mov.u32", &["%ctaid.x"]);
        let thread = self.result(Register::Bits32, "mov.u32", &["%tid.x"]);
        let mut places = Places {
            linear: Vec::new(),
            coordinates: Vec::new(),
            inside: Vec::new(),
            full: Name::new(),
            divisors: Vec::new(),
            strides: vec![Vec::new(); self.key.classes.len()],
            rows: None,
            next: None,
        };
        match self.key.walk {
            Walk::Flat => self.flat(&mut places, &block, &thread),
            Walk::Apart => self.apart(&mut places, &block, &thread),
            Walk::Vectors => self.vectors(&mut places, &block, &thread),
            Walk::Tiles(tile) => self.tiles(&mut places, &block, &thread, tile),
        }
        places
    }

    pub(super) fn exit_unless_below(&mut self, index: &str, count: &str) {
        let below = self.result(Register::Predicate, "setp.lt.u32", &[index, count]);
        self.line(format!("@!{below} bra $exit;"));
    }

    /// Lane `lane` of `first + lane · step`, held within the count; its guard goes to `inside`.
    fn lanes(&mut self, places: &mut Places, first: &str, step: u32, count: &str) {
        let tail = self.key.tail;
        places.coordinates = vec![None; self.key.lanes as usize];
        let last = if tail { self.result(Register::Bits32, "sub.u32", &[count, "1"]) } else { Name::new() };
        for lane in 0..self.key.lanes {
            if lane == 0 {
                places.linear.push(first.to_owned());
                // The thread is here, so its first element is.
                places.inside.push(Name::new());
                continue;
            }
            let index = self.result(Register::Bits32, "add.u32", &[first, &(lane * step).to_string()]);
            if !tail {
                places.linear.push(index);
                continue;
            }
            places.inside.push(self.result(Register::Predicate, "setp.lt.u32", &[&index, count]));
            places.linear.push(self.result(Register::Bits32, "min.u32", &[&index, &last]));
        }
        if !tail {
            places.inside.clear();
        }
    }

    fn flat(&mut self, places: &mut Places, block: &str, thread: &str) {
        let count = self.word(self.parameters.count());
        let thread = self.result(Register::Bits32, "mad.lo.u32", &[block, &BLOCK.to_string(), thread]);
        let lanes = self.key.lanes.to_string();
        let first = self.result(Register::Bits32, "mul.lo.u32", &[&thread, &lanes]);
        self.exit_unless_below(&first, &count);
        if self.key.tail {
            let end = self.result(Register::Bits32, "add.u32", &[&first, &lanes]);
            places.full = self.result(Register::Predicate, "setp.le.u32", &[&end, &count]);
        }
        self.lanes(places, &first, 1, &count);
    }

    fn apart(&mut self, places: &mut Places, block: &str, thread: &str) {
        let count = self.word(self.parameters.count());
        let width = (BLOCK * self.key.lanes).to_string();
        let first = self.result(Register::Bits32, "mad.lo.u32", &[block, &width, thread]);
        self.exit_unless_below(&first, &count);
        self.lanes(places, &first, BLOCK, &count);
    }

    fn vectors(&mut self, places: &mut Places, block: &str, thread: &str) {
        let count = self.word(self.parameters.count());
        let vector = self.result(Register::Bits32, "mad.lo.u32", &[block, &BLOCK.to_string(), thread]);
        self.exit_unless_below(&vector, &count);
        let mut coordinates = self.decode(places, &vector, 0, self.key.rank);
        // The first dimension was counted in vectors.
        if self.key.lanes > 1 {
            let lanes = self.key.lanes.to_string();
            coordinates[0] = self.result(Register::Bits32, "mul.lo.u32", &[&coordinates[0], &lanes]);
        }
        places.coordinates = vec![Some(coordinates)];
    }

    /// Size, factor and shift of a dimension.
    fn divisor(&mut self, places: &mut Places, dimension: usize) -> [Name; 3] {
        if places.divisors.len() <= dimension {
            places.divisors.resize(dimension + 1, Default::default());
        }
        if places.divisors[dimension][0].is_empty() {
            let at = self.parameters.divisor(dimension);
            places.divisors[dimension] = [at, at + 4, at + 8].map(|at| self.word(at));
        }
        places.divisors[dimension].clone()
    }

    pub(super) fn size(&mut self, places: &mut Places, dimension: usize) -> Name {
        let [size, ..] = self.divisor(places, dimension);
        size
    }

    /// Quotient and remainder by the size of a dimension.
    pub(super) fn divide(&mut self, places: &mut Places, index: &str, dimension: usize) -> (Name, Name) {
        let [size, factor, shift] = self.divisor(places, dimension);
        let high = self.result(Register::Bits32, "mul.hi.u32", &[index, &factor]);
        let sum = self.result(Register::Bits32, "add.u32", &[&high, index]);
        let quotient = self.result(Register::Bits32, "shr.u32", &[&sum, &shift]);
        let whole = self.result(Register::Bits32, "mul.lo.u32", &[&quotient, &size]);
        (quotient, self.result(Register::Bits32, "sub.u32", &[index, &whole]))
    }

    /// The coordinates in dimensions `first` to `end` of a linear index.
    pub(super) fn decode(&mut self, places: &mut Places, index: &str, first: usize, end: usize) -> Vec<Name> {
        let mut coordinates = Vec::with_capacity(end - first);
        let mut rest = index.to_owned();
        for dimension in first..end - 1 {
            let (quotient, coordinate) = self.divide(places, &rest, dimension);
            coordinates.push(coordinate);
            rest = quotient;
        }
        coordinates.push(rest);
        coordinates
    }

    fn coordinates(&mut self, places: &mut Places, lane: usize) -> Vec<Name> {
        let lane = lane.min(places.coordinates.len() - 1);
        if let Some(coordinates) = &places.coordinates[lane] {
            return coordinates.clone();
        }
        let index = places.linear[lane].clone();
        let coordinates = self.decode(places, &index, 0, self.key.rank);
        places.coordinates[lane] = Some(coordinates.clone());
        coordinates
    }

    pub(super) fn strides(&mut self, places: &mut Places, operand: usize) -> Vec<Name> {
        if places.strides[operand].is_empty() {
            let rank = self.key.rank;
            let at = self.parameters;
            places.strides[operand] =
                (0..rank).map(|dimension| self.word(at.stride(operand, dimension))).collect();
        }
        places.strides[operand].clone()
    }

    /// The address of an operand's element for a lane; where lanes are neighbours in it, of the first of them. Of a
    /// coordinate, its number.
    pub(super) fn address(&mut self, places: &mut Places, operand: usize, lane: usize) -> Name {
        let base = self.bases[operand].clone();
        let bytes = self.dtypes.get(operand).map_or(1, |dtype| dtype.size()).to_string();
        let class = self.key.classes[operand];
        if class == Class::Constant {
            return base;
        }
        if class == Class::Linear && !places.linear.is_empty() {
            let index = places.linear[lane].clone();
            return self.result(Register::Bits64, "mad.wide.u32", &[&index, &bytes, &base]);
        }
        let coordinates = self.coordinates(places, lane);
        let strides = self.strides(places, operand);
        let mut offset = match class {
            Class::Linear => coordinates[0].clone(),
            Class::Row => Name::new(),
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

    /// The numbers that a coordinate gives, by lane; one for all lanes where it is the same.
    pub(super) fn numbers(&mut self, places: &mut Places, operand: usize) -> Vec<Name> {
        let (class, walk, lanes) = (self.key.classes[operand], self.key.walk, self.key.lanes as usize);
        if class == Class::Constant {
            return vec![self.address(places, operand, 0)];
        }
        match walk {
            // Neighbours have no common stride but 1.
            Walk::Flat if class == Class::Linear => self.neighbours(places, operand, 0),
            Walk::Flat | Walk::Apart => (0..lanes).map(|lane| self.address(places, operand, lane)).collect(),
            Walk::Vectors if class == Class::Row => vec![self.address(places, operand, 0)],
            Walk::Vectors => self.neighbours(places, operand, 0),
            Walk::Tiles(_) => {
                let (rows, _) = self.rows_of_tile();
                (0..rows as usize).flat_map(|row| self.neighbours(places, operand, row)).collect()
            }
        }
    }

    /// The numbers of a thread's lanes that have one set of coordinates, the `row`th.
    fn neighbours(&mut self, places: &mut Places, operand: usize, row: usize) -> Vec<Name> {
        let (class, lanes) = (self.key.classes[operand], self.key.lanes as usize);
        let first = self.address(places, operand, row);
        let stride = match class {
            Class::Gather => self.strides(places, operand)[0].clone(),
            _ => Name::new(),
        };
        let mut next = |lane: usize| match (lane, class) {
            (0, _) | (_, Class::Row) => first.clone(),
            (_, Class::Gather) => {
                self.result(Register::Bits64, "mad.wide.s32", &[&stride, &lane.to_string(), &first])
            }
            _ => self.result(Register::Bits64, "add.u64", &[&first, &lane.to_string()]),
        };
        (0..lanes).map(&mut next).collect()
    }
}
