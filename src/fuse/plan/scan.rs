//! The launch of a scan on a device, and the tiles that fix its order.

use super::compiled_reduction::CompiledReduction;
use super::reduction::{
    BLOCK, KernelMemory, PlanInput, PlannedLaunch, ReductionAccess, ReductionKey, ReductionParameters,
    ReductionPlan, ScanKey, WARP, blocks,
};
use super::reduction_dimensions::Dimensions;
use crate::error::Result;
use crate::fuse::language::fold::FoldRules;
use crate::types::{DType, Layout};

/// The adjacent elements of a thread.
pub(in crate::fuse) const QUAD: usize = 4;
/// Warps of a tile.
pub(in crate::fuse) const WARPS: usize = BLOCK / WARP;
/// Tiles of a group, a power of two of at least a block's threads. It is large enough that the latency
/// between groups does not exceed the time for a group's elements, because groups wait for each other, and
/// small enough that a thread waits for few tiles.
pub(in crate::fuse) const GROUP: usize = 512;
/// Tiles of a block that are published and wait for their prefix.
pub(in crate::fuse) const PARKED: usize = 2;
/// Bytes of a word with its flag.
pub(in crate::fuse) const SLOT: usize = 8;
/// Words of 32 bits that a thread may load ahead.
const WORDS_AHEAD: usize = 48;
/// The number of such words, and of an element's instructions, that leaves registers for four blocks.
const SHORT: usize = 20;

/// Returns the largest number of accesses of a thread: 64 bytes of values, which fit its registers.
pub(in crate::fuse) fn accesses(rules: &FoldRules) -> usize {
    64 / (QUAD * rules.bytes().max(4))
}

/// Returns the elements of a tile.
pub(in crate::fuse) fn tile(rules: &FoldRules) -> usize {
    QUAD * WARP * accesses(rules) * WARPS
}

/// Returns the 32-bit words of a value.
pub(in crate::fuse) fn words(rules: &FoldRules) -> usize {
    rules.bytes() / 4
}

/// Returns the offsets in scratch memory of a chained scan's counter and, word by word, of the totals of
/// tiles and the prefixes of groups, and the size of all.
fn scratch(rules: &FoldRules, tiles: usize) -> (Vec<usize>, usize) {
    let (mut offsets, mut end) = (vec![0], 256);
    for values in [tiles, tiles / GROUP + 1] {
        for _ in 0..words(rules) {
            offsets.push(end);
            end += (values * SLOT).next_multiple_of(256);
        }
    }
    (offsets, end)
}

impl CompiledReduction {
    /// Returns the dimensions of a scan along an axis.
    ///
    /// # Errors
    ///
    /// As [`check_operands`](Self::check_operands) and [`Dimensions::along`].
    pub(in crate::fuse) fn scan_dimensions(
        &self,
        inputs: &[(DType, Layout)],
        output: (DType, Layout),
        axis: usize,
    ) -> Result<Dimensions> {
        self.check_operands(inputs, output.0)?;
        let layouts: Vec<Layout> = inputs.iter().map(|(_, layout)| *layout).collect();
        Dimensions::along("a scan", &layouts, &output.1, axis)
    }

    /// Plans a scan of at least one element.
    pub(in crate::fuse) fn plan_scan(
        &self,
        dimensions: &Dimensions,
        starts: &[u64],
        is_ampere: bool,
        multiprocessors: u32,
    ) -> Result<ReductionPlan> {
        let dtypes = self.prologue.inputs.iter().chain(&self.epilogue.outputs);
        let sizes: Vec<usize> = dtypes.map(|dtype| dtype.size()).collect();
        let work = PlanInput {
            dimensions,
            rules: &self.rules,
            bytes: &sizes,
            starts,
            scalars: self.scalars(),
            steps: 0,
            is_ampere,
            rescales: false,
        };
        let (row, rows) = (dimensions.row, dimensions.rows);
        let (tile, most) = (tile(&self.rules), accesses(&self.rules));
        let chained = row > tile;
        let threads = row.div_ceil(QUAD).next_power_of_two().min(WARP);
        let accesses = row.div_ceil(QUAD * WARP).next_power_of_two().min(most);
        let warps = row.div_ceil(QUAD * WARP * most).next_power_of_two().min(WARPS);
        let across = (BLOCK / (threads * warps)).max(1);
        let quads = row % QUAD == 0;
        let output = sizes.len() - 1;
        let along = dimensions.folded.first();
        let in_line = |operand: usize| {
            quads
                && along
                    .is_some_and(|along| along.strides[operand] == 1 && work.is_aligned(operand, QUAD, along))
        };
        let class = |input: usize| match along {
            Some(along) if along.strides[input] != 0 => {
                if in_line(input) {
                    ReductionAccess::Vector
                } else {
                    ReductionAccess::Gather
                }
            }
            _ => ReductionAccess::Broadcast,
        };
        let span = if chained { tile } else { QUAD * threads * accesses * warps };
        let classes: Vec<ReductionAccess> = (0..output).map(class).collect();
        // The words that a thread loads of a tile: vectors as they are, other elements in a register each.
        let words_of = |input: usize| match classes[input] {
            ReductionAccess::Broadcast => 1,
            ReductionAccess::Vector => accesses * QUAD * sizes[input] / 4,
            _ => accesses * QUAD * sizes[input].div_ceil(4),
        };
        let loaded: usize = (0..output).map(words_of).sum();
        let plain = loaded <= SHORT && self.steps() <= SHORT && !classes.contains(&ReductionAccess::Gather);
        let resident = match self.rules.bytes() {
            _ if !chained || loaded > WORDS_AHEAD => 1,
            0..=8 if plain && self.rules.kinds.len() == 1 => 4,
            0..=8 if plain => 3,
            _ => 2,
        };
        let key = ScanKey {
            wide: dimensions.is_wide(),
            threads: threads as u32,
            accesses: accesses as u32,
            warps: warps as u32,
            across: across as u32,
            chained,
            ahead: loaded <= WORDS_AHEAD,
            resident,
            outer_dims: dimensions.kept.len(),
            classes,
            stores_vectors: in_line(output),
            quads,
            tail: row % span != 0,
            is_ampere,
        };
        let tiles = row.div_ceil(tile);
        // A row of one element has no dimension of its own.
        let folded = [(row, along.map_or(vec![0; sizes.len()], |along| along.strides.clone()))];
        let all: Vec<(usize, Vec<isize>)> = dimensions
            .kept
            .iter()
            .map(|dimension| (dimension.size, dimension.strides.clone()))
            .chain(folded)
            .collect();
        let parameters = ReductionParameters::new(self.scalars(), key.wide, key.outer_dims, 1, sizes.len());
        let items = if chained { blocks(rows, tiles)? as usize } else { rows };
        let block = parameters.block(row, items, rows, tiles, &all)?;
        let mut operands: Vec<(KernelMemory, usize)> = (0..output)
            .map(|input| (KernelMemory::Input(input), dimensions.offsets[input] * sizes[input]))
            .collect();
        operands.push((KernelMemory::Output, dimensions.offsets[output] * sizes[output]));
        let (offsets, bytes) = if chained { scratch(&self.rules, rows * tiles) } else { (Vec::new(), 0) };
        operands.extend(offsets.into_iter().map(|at| (KernelMemory::Scratch, at)));
        let launch = PlannedLaunch {
            // Blocks are persistent: more than are resident would find no tile.
            blocks: match chained {
                true => blocks(rows, tiles)?.min(key.resident * multiprocessors),
                false => blocks(rows.div_ceil(across), 1)?,
            },
            threads: key.threads * key.warps * key.across,
            key: ReductionKey::Scan(key),
            parameters,
            block,
            operands,
        };
        Ok(ReductionPlan { launches: vec![launch], scratch: bytes })
    }
}
