//! The launches of a reduction on a device: the work of each thread, and the location of partial values.
//!
//! The tree of a row consists of [`LANES`], [`ROUNDS`] and the halving of lanes in a segment, and of
//! neighbouring segments above (see `src/fuse/run/reduction.rs`). This file only assigns nodes of the tree: a thread computes
//! several lanes, the threads of a warp or a block halve them, the warps of a block compute neighbouring
//! segments, and kernels that merge neighbours combine the rest through scratch memory. These choices change
//! no bit of a result.
//!
//! As for elementwise kernels, the text depends only on the program and the [`FoldKey`] or [`MergeKey`].

use super::elementwise::WIDEST;
use super::reduction_dimensions::{Dimension, Dimensions};
use super::scan::QUAD;
use crate::error::{Error, Result};
use crate::fuse::language::fold::{FoldRules, bytes};
use crate::types::divisor;

/// Lanes of a segment: element i of the segment belongs to lane i mod `LANES`.
pub(in crate::fuse) const LANES: usize = 256;
/// Elements of a lane, which are folded in order.
pub(in crate::fuse) const ROUNDS: usize = 4;
/// Elements of a segment.
pub(in crate::fuse) const SEGMENT: usize = LANES * ROUNDS;

pub(in crate::fuse) const WARP: usize = 32;
/// Threads of a block that folds; twice as many if a row has enough work.
pub(in crate::fuse) const BLOCK: usize = 256;
/// Threads of a block that merges the values of one row.
const MERGERS: usize = 512;
/// The number of values up to which one thread merges a row.
const ALONE: usize = 32;
/// Bytes of partial values for a thread of a merging block.
const MERGED_BYTES: usize = 128;
/// The instruction count above which the rounds of a segment become a loop.
const UNROLLED: usize = 1600;
/// The most blocks of a second pass, which loop over those of the first one: most find nothing to do, and end at once.
pub(in crate::fuse) const AGAIN_BLOCKS: u32 = 1024;
/// PTX 8.0 limits a kernel's parameters to 4 KB.
const MAX_PARAMETER_BYTES: usize = 4000;

/// The assignment of adjacent threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::fuse) enum Direction {
    /// Adjacent elements of one row.
    Rows,
    /// Elements of adjacent rows.
    Columns,
}

/// The access pattern of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::fuse) enum ReductionAccess {
    /// One element for all vectors and rounds of a thread, or one vector across rows.
    Broadcast,
    /// The elements of a vector are adjacent: one access.
    Vector,
    /// One element for a vector across rows.
    Single,
    /// Any stride: one access an element.
    Gather,
}

/// Everything but the reduction that the text of a folding kernel depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::fuse) struct FoldKey {
    pub(in crate::fuse) direction: Direction,
    /// True if indices have 64 bits.
    pub(in crate::fuse) wide: bool,
    /// Adjacent elements of one access: lanes of a row, or rows.
    pub(in crate::fuse) vector: u32,
    /// Threads that share a segment, and accesses of each in a round.
    pub(in crate::fuse) threads: u32,
    pub(in crate::fuse) accesses_per_round: u32,
    pub(in crate::fuse) rounds: u32,
    /// True if the rounds are a loop.
    pub(in crate::fuse) looped: bool,
    /// Warps of a block with neighbouring segments of one row.
    pub(in crate::fuse) warps: u32,
    /// Rows, or vectors of rows, of a block.
    pub(in crate::fuse) across: u32,
    /// Numbers of dimensions.
    pub(in crate::fuse) outer_dims: usize,
    pub(in crate::fuse) reduced_dims: usize,
    /// By input.
    pub(in crate::fuse) classes: Vec<ReductionAccess>,
    /// True if a vector of results is one store.
    pub(in crate::fuse) stores_vectors: bool,
    /// True if some lanes have fewer elements.
    pub(in crate::fuse) tail: bool,
    /// True if the kernel writes partial values to scratch memory.
    pub(in crate::fuse) partial: bool,
    /// True if it is the second pass of a sum of squares, over rows with a code.
    pub(in crate::fuse) again: bool,
    /// True for compute capability 8.0 or higher, which has conversions to bf16 and extremes that are NaN beside NaN.
    pub(in crate::fuse) is_ampere: bool,
}

/// Everything but the reduction that the text of a merging kernel depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::fuse) struct MergeKey {
    pub(in crate::fuse) wide: bool,
    /// Rows of a block if one thread merges a whole row.
    pub(in crate::fuse) across: u32,
    /// Threads of a row: a whole block or one.
    pub(in crate::fuse) threads: u32,
    /// Adjacent values of each thread.
    pub(in crate::fuse) values: u32,
    /// True if a row's partial values are contiguous and form whole vectors.
    pub(in crate::fuse) vectors: bool,
    pub(in crate::fuse) outer_dims: usize,
    pub(in crate::fuse) tail: bool,
    pub(in crate::fuse) partial: bool,
    /// True if it is of the second pass of a sum of squares, and if it stores the codes for one.
    pub(in crate::fuse) again: bool,
    pub(in crate::fuse) stores_codes: bool,
    pub(in crate::fuse) is_ampere: bool,
}

/// Everything but the scan that the text of a scanning kernel depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::fuse) struct ScanKey {
    pub(in crate::fuse) wide: bool,
    /// Threads of a warp that share a row, accesses of each, and warps of a row.
    pub(in crate::fuse) threads: u32,
    pub(in crate::fuse) accesses: u32,
    pub(in crate::fuse) warps: u32,
    /// Rows of a block.
    pub(in crate::fuse) across: u32,
    /// True if rows are longer than a block's tile, so that tiles wait for earlier tiles.
    pub(in crate::fuse) chained: bool,
    /// True if the loads of a tile are issued before waiting for an older one, which takes registers.
    pub(in crate::fuse) ahead: bool,
    /// Blocks a multiprocessor, for the register limit.
    pub(in crate::fuse) resident: u32,
    pub(in crate::fuse) outer_dims: usize,
    /// By input.
    pub(in crate::fuse) classes: Vec<ReductionAccess>,
    pub(in crate::fuse) stores_vectors: bool,
    /// Rows are whole quads; rows end within a tile.
    pub(in crate::fuse) quads: bool,
    pub(in crate::fuse) tail: bool,
    pub(in crate::fuse) is_ampere: bool,
}

impl ScanKey {
    /// Returns the elements of a tile.
    pub(in crate::fuse) fn tile(&self) -> usize {
        QUAD * (self.threads * self.accesses * self.warps) as usize
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::fuse) enum ReductionKey {
    Fold(FoldKey),
    Merge(MergeKey),
    Scan(ScanKey),
}

/// Offsets of a kernel's parameters in their block.
#[derive(Debug, Clone, Copy)]
pub(in crate::fuse) struct ReductionParameters {
    scalars: usize,
    pub(in crate::fuse) word: usize,
    kept: usize,
    folded: usize,
    operands: usize,
    /// True if the number of blocks follows.
    has_blocks: bool,
}

impl ReductionParameters {
    /// Creates the layout of a block with the strides of `operands` operands.
    pub(in crate::fuse) fn new(
        scalars: usize,
        wide: bool,
        kept: usize,
        folded: usize,
        operands: usize,
    ) -> ReductionParameters {
        ReductionParameters {
            scalars,
            word: if wide { 8 } else { 4 },
            kept,
            folded,
            operands,
            has_blocks: false,
        }
    }

    /// Returns the offset of the number of blocks of the first pass, in a second one.
    pub(in crate::fuse) fn blocks(self) -> usize {
        self.stride(self.operands, 0)
    }

    fn at(self, word: usize) -> usize {
        16 * self.scalars + self.word * word
    }

    /// Returns the offset of the elements of a row.
    pub(in crate::fuse) fn row(self) -> usize {
        self.at(0)
    }

    /// Returns the offset of the number of rows or vectors of rows.
    pub(in crate::fuse) fn items(self) -> usize {
        self.at(1)
    }

    /// Returns the offset of the number of rows.
    pub(in crate::fuse) fn rows(self) -> usize {
        self.at(2)
    }

    /// Returns the offset of size, factor and shift of the divisor of the block index.
    pub(in crate::fuse) fn launch(self) -> usize {
        self.at(3)
    }

    /// Returns the offset of size, factor and shift of a dimension; folded dimensions follow kept ones.
    pub(in crate::fuse) fn divisor(self, dimension: usize) -> usize {
        self.at(6 + 3 * dimension)
    }

    pub(in crate::fuse) fn stride(self, operand: usize, dimension: usize) -> usize {
        let dimensions = self.kept + self.folded;
        self.at(6 + 3 * dimensions + operand * dimensions + dimension)
    }

    pub(in crate::fuse) fn bytes(self) -> usize {
        let blocks = if self.has_blocks { self.word } else { 0 };
        (self.stride(self.operands, 0) + blocks).next_multiple_of(8)
    }

    /// Returns a block with everything but the scalars.
    pub(in crate::fuse) fn block(
        self,
        row: usize,
        items: usize,
        rows: usize,
        launch: usize,
        dimensions: &[(usize, Vec<isize>)],
    ) -> Result<Vec<u8>> {
        if self.bytes() > MAX_PARAMETER_BYTES {
            let found = format!("{} operands of {} dimensions", self.operands, dimensions.len());
            return Err(Error::invalid("a reduction", found, "fewer operands, or contiguous operands"));
        }
        let mut block = vec![0; self.bytes()];
        let mut put = |at: usize, value: u64| {
            block[at..at + self.word].copy_from_slice(&value.to_le_bytes()[..self.word]);
        };
        let mut divide = |at: usize, size: usize| match self.word {
            4 => divisor(size as u32).into_iter().enumerate().for_each(|(index, value)| {
                put(at + 4 * index, value.into());
            }),
            _ => put(at, size as u64),
        };
        divide(self.launch(), launch);
        for (dimension, (size, _)) in dimensions.iter().enumerate() {
            divide(self.divisor(dimension), *size);
        }
        put(self.row(), row as u64);
        put(self.items(), items as u64);
        put(self.rows(), rows as u64);
        for (dimension, (_, strides)) in dimensions.iter().enumerate() {
            for (operand, stride) in strides.iter().enumerate() {
                put(self.stride(operand, dimension), *stride as u64);
            }
        }
        Ok(block)
    }
}

/// The memory behind an address parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::fuse) enum KernelMemory {
    Input(usize),
    Output,
    Scratch,
}

/// One launch of a reduction.
#[derive(Debug)]
pub(in crate::fuse) struct PlannedLaunch {
    pub(in crate::fuse) key: ReductionKey,
    pub(in crate::fuse) blocks: u32,
    pub(in crate::fuse) threads: u32,
    pub(in crate::fuse) parameters: ReductionParameters,
    /// The parameter block, with space for the scalars.
    pub(in crate::fuse) block: Vec<u8>,
    /// Memory and byte offset of each address parameter.
    pub(in crate::fuse) operands: Vec<(KernelMemory, usize)>,
}

/// The launches of a run and the size of its scratch memory.
#[derive(Debug)]
pub(in crate::fuse) struct ReductionPlan {
    pub(in crate::fuse) launches: Vec<PlannedLaunch>,
    pub(in crate::fuse) scratch: usize,
}

/// The properties of a run that its plan depends on.
pub(in crate::fuse) struct PlanInput<'a> {
    pub(in crate::fuse) dimensions: &'a Dimensions,
    pub(in crate::fuse) rules: &'a FoldRules,
    /// By operand, the bytes of an element and the address modulo [`WIDEST`].
    pub(in crate::fuse) bytes: &'a [usize],
    pub(in crate::fuse) starts: &'a [u64],
    /// The scalars of both expressions.
    pub(in crate::fuse) scalars: usize,
    /// Instructions of an element.
    pub(in crate::fuse) steps: usize,
    pub(in crate::fuse) is_ampere: bool,
    /// True if a second pass multiplies elements by a factor.
    pub(in crate::fuse) rescales: bool,
}

fn power_below(x: usize) -> usize {
    1 << x.max(1).ilog2()
}

impl PlanInput<'_> {
    /// Plans a run with at least one row of at least one element.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the parameters exceed the limit of a kernel, or the grid has too many
    /// blocks.
    pub(in crate::fuse) fn plan(&self) -> Result<ReductionPlan> {
        let mut plan = ReductionPlan { launches: Vec::new(), scratch: 0 };
        self.pass(&mut plan, false)?;
        let first = plan.launches.len();
        // One launch has both passes.
        if self.rescales && first > 1 {
            let codes = plan.scratch;
            // A word tells whether there is a code.
            let bytes = codes + ((1 + self.dimensions.rows) * size_of::<u32>()).next_multiple_of(256);
            // The partial values of the first pass are in nobody's way.
            plan.scratch = 0;
            self.pass(&mut plan, true)?;
            plan.scratch = bytes;
            // The first launch clears the word; the last one of the first pass stores the codes.
            for launch in [0].into_iter().chain(first - 1..plan.launches.len()) {
                plan.launches[launch].operands.push((KernelMemory::Scratch, codes));
            }
        }
        Ok(plan)
    }

    /// Adds the launches of a pass.
    fn pass(&self, plan: &mut ReductionPlan, again: bool) -> Result<()> {
        let mut left = self.fold(plan, again)?;
        while left > 1 {
            left = self.merge(plan, left, again)?;
        }
        Ok(())
    }

    fn row(&self) -> usize {
        self.dimensions.row
    }

    fn output(&self) -> usize {
        self.bytes.len() - 1
    }

    /// Returns whether an operand's vectors along dimension `along` are aligned for all other coordinates.
    pub(in crate::fuse) fn is_aligned(&self, operand: usize, vector: usize, along: &Dimension) -> bool {
        let size = self.bytes[operand];
        let width = (size * vector).min(WIDEST as usize);
        let start = self.starts[operand] as usize + self.dimensions.offsets[operand] * size;
        let all = self.dimensions.kept.iter().chain(&self.dimensions.folded);
        start.is_multiple_of(width)
            && all
                .filter(|other| !std::ptr::eq(*other, along))
                .all(|other| (other.strides[operand].unsigned_abs() * size).is_multiple_of(width))
    }

    /// Returns the longest vector along a dimension that suits every input that is contiguous along it.
    fn vector(&self, along: Option<&Dimension>) -> usize {
        let Some(along) = along else { return 1 };
        let inputs = 0..self.output();
        let widest = inputs.clone().map(|input| self.bytes[input]).max().unwrap_or(16);
        let mut vector = (16 / widest).clamp(1, 8);
        let fits = |vector: usize| {
            along.size % vector == 0
                && inputs
                    .clone()
                    .all(|input| along.strides[input] != 1 || self.is_aligned(input, vector, along))
        };
        while vector > 1 && !fits(vector) {
            vector /= 2;
        }
        vector
    }

    fn classes(
        &self,
        direction: Direction,
        along: Option<&Dimension>,
        vector: usize,
    ) -> Vec<ReductionAccess> {
        let class = |input: usize| {
            let still = self.dimensions.folded.iter().all(|dimension| dimension.strides[input] == 0);
            let stride = along.map_or(0, |along| along.strides[input]);
            match (direction, stride) {
                (Direction::Rows, _) if still => ReductionAccess::Broadcast,
                (_, 1) if vector > 1 => ReductionAccess::Vector,
                (Direction::Columns, 0) if vector > 1 => ReductionAccess::Single,
                _ => ReductionAccess::Gather,
            }
        };
        (0..self.output()).map(class).collect()
    }

    fn fold(&self, plan: &mut ReductionPlan, again: bool) -> Result<usize> {
        let dimensions = self.dimensions;
        let leader = dimensions.leader;
        let (inner, first_kept) = (dimensions.folded.first(), dimensions.kept.first());
        let stride = |dimension: Option<&Dimension>| dimension.map_or(0, |inner| inner.strides[leader]);
        let columns = stride(first_kept) == 1 && stride(inner) != 1;
        let direction = if columns { Direction::Columns } else { Direction::Rows };
        let along = if columns { first_kept } else { inner };
        let mut vector = self.vector(along);
        let lanes = self.row().min(LANES).next_power_of_two();
        let rounds = self.row().div_ceil(LANES).min(ROUNDS);
        let segments = self.row().div_ceil(SEGMENT);
        let (threads, accesses_per_round, warps, across, items);
        if columns {
            let words = self.rules.bytes() / 4;
            // A long expression uses shorter vectors.
            while vector > 1 && self.steps * vector * 8 > UNROLLED {
                vector /= 2;
            }
            let most = power_below(32 / (vector * words).min(32));
            let wanted = lanes / most.min(lanes);
            threads = wanted.clamp(1, 64);
            accesses_per_round = lanes / threads;
            warps = 1;
            items = dimensions.rows / vector;
            across = (BLOCK / threads).max(8).min(items.next_power_of_two());
        } else {
            let each = vector.max(4);
            threads = self.row().div_ceil(each).next_power_of_two().min(WARP);
            accesses_per_round = lanes / (threads * vector);
            items = dimensions.rows;
            warps = segments.next_power_of_two().min(2 * BLOCK / WARP);
            // A block has at least two rows, unless one row needs more warps than that.
            let block = if warps * WARP > BLOCK { 2 * BLOCK } else { BLOCK };
            // At least a whole warp, for the shuffles.
            across = (block / (threads * warps)).min(items.next_power_of_two()).max(WARP / threads);
        }
        let (above, covered) =
            (segments.div_ceil(warps), if segments > 1 { warps * SEGMENT } else { lanes * rounds });
        let copies = self.steps * vector * accesses_per_round * rounds;
        let key = FoldKey {
            direction,
            wide: dimensions.is_wide(),
            vector: vector as u32,
            threads: threads as u32,
            accesses_per_round: accesses_per_round as u32,
            rounds: rounds as u32,
            looped: rounds > 1 && copies > UNROLLED,
            warps: warps as u32,
            across: across as u32,
            outer_dims: dimensions.kept.len(),
            reduced_dims: dimensions.folded.len(),
            classes: self.classes(direction, along, vector),
            stores_vectors: columns
                && vector > 1
                && along.is_some_and(|along| {
                    let output = self.output();
                    along.strides[output] == 1 && self.is_aligned(output, vector, along)
                }),
            tail: !self.row().is_multiple_of(covered),
            partial: above > 1,
            again,
            is_ampere: self.is_ampere,
        };
        let mut parameters = ReductionParameters::new(
            self.scalars,
            key.wide,
            key.outer_dims,
            key.reduced_dims,
            self.bytes.len(),
        );
        parameters.has_blocks = again;
        let of_items = items.div_ceil(across);
        let sizes: Vec<(usize, Vec<isize>)> = dimensions
            .kept
            .iter()
            .enumerate()
            .map(|(slot, dimension)| match (columns, slot) {
                // Counted in vectors.
                (true, 0) => (dimension.size / vector, dimension.strides.clone()),
                _ => (dimension.size, dimension.strides.clone()),
            })
            .chain(dimensions.folded.iter().map(|dimension| (dimension.size, dimension.strides.clone())))
            .collect();
        let by = if columns { of_items } else { above };
        let mut block = parameters.block(self.row(), items, dimensions.rows, by, &sizes)?;
        let mut blocks = blocks(of_items, above)?;
        if again {
            block[parameters.blocks()..][..4].copy_from_slice(&blocks.to_le_bytes());
            blocks = blocks.min(AGAIN_BLOCKS);
        }
        let mut operands: Vec<(KernelMemory, usize)> = (0..dimensions.inputs())
            .map(|input| (KernelMemory::Input(input), dimensions.offsets[input] * self.bytes[input]))
            .collect();
        self.results(plan, &mut operands, above);
        plan.launches.push(PlannedLaunch {
            blocks,
            threads: key.threads * key.warps * key.across,
            key: ReductionKey::Fold(key),
            parameters,
            block,
            operands,
        });
        Ok(above)
    }

    /// Adds the destinations of `count` values a row: planes of scratch memory, or the output.
    fn results(&self, plan: &mut ReductionPlan, operands: &mut Vec<(KernelMemory, usize)>, count: usize) {
        if count == 1 {
            let output = self.output();
            operands.push((KernelMemory::Output, self.dimensions.offsets[output] * self.bytes[output]));
            return;
        }
        for kind in &self.rules.kinds {
            operands.push((KernelMemory::Scratch, plan.scratch));
            plan.scratch += (count * self.dimensions.rows * bytes(*kind)).next_multiple_of(256);
        }
    }

    /// Merges the `count` partial values of every row, which the last launch wrote.
    fn merge(&self, plan: &mut ReductionPlan, count: usize, again: bool) -> Result<usize> {
        let rows = self.dimensions.rows;
        let most = power_below(MERGED_BYTES / self.rules.bytes());
        let alone = count <= ALONE.min(most);
        let threads = if alone { 1 } else { MERGERS };
        let values = count.next_power_of_two().div_ceil(threads).clamp(1, most);
        let above = count.div_ceil(threads * values);
        let tail = !count.is_multiple_of(threads * values);
        let across = if alone { BLOCK.min(rows.next_power_of_two()) } else { 1 };
        let key = MergeKey {
            across: across as u32,
            wide: self.dimensions.is_wide() || rows * count >= 1 << 31,
            threads: threads as u32,
            values: values as u32,
            vectors: !tail && rows == 1 && values > 1,
            outer_dims: self.dimensions.kept.len(),
            tail,
            partial: above > 1,
            again,
            stores_codes: self.rescales && !again && above == 1,
            is_ampere: self.is_ampere,
        };
        let parameters = ReductionParameters::new(self.scalars, key.wide, key.outer_dims, 0, 1);
        let output = self.output();
        let sizes: Vec<(usize, Vec<isize>)> = self
            .dimensions
            .kept
            .iter()
            .map(|dimension| (dimension.size, vec![dimension.strides[output]]))
            .collect();
        let block = parameters.block(count, rows, rows, above, &sizes)?;
        let mut operands: Vec<(KernelMemory, usize)> = plan
            .launches
            .last()
            .map(|launch| launch.operands[launch.operands.len() - self.rules.kinds.len()..].to_vec())
            .unwrap_or_default();
        self.results(plan, &mut operands, above);
        plan.launches.push(PlannedLaunch {
            blocks: blocks(rows.div_ceil(across), above)?,
            threads: (threads * across) as u32,
            key: ReductionKey::Merge(key),
            parameters,
            block,
            operands,
        });
        Ok(above)
    }
}

pub(in crate::fuse) fn blocks(of_items: usize, groups: usize) -> Result<u32> {
    match of_items.checked_mul(groups).and_then(|blocks| i32::try_from(blocks).ok()) {
        Some(blocks) => Ok(blocks as u32),
        None => Err(Error::invalid(
            "a reduction",
            format!("{of_items} times {groups} blocks"),
            "at most 2147483647 blocks",
        )),
    }
}
