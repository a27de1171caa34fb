//! Scans: the fold of every element with all elements before it along an axis, such as a cumulative sum, in
//! one pass over memory.
//!
//! **The order.** As for reductions, the order of folding depends only on the length and the dtype, so
//! results are equal bit for bit everywhere. A quad is four adjacent elements, folded in order. A run is 32
//! quads or 128 elements. A run is scanned in levels: at each level, the upper half of 2, 4, … 32 quads adds
//! the last value of the lower half. Runs are folded in order within a part of 512 elements, and the eight
//! parts within a tile of 4096. (Values of 8 bytes have parts of 256 and tiles of 2048; c128 has 128 and
//! 1024: a tile is 16 KiB.) A group has 512 tiles. Its tiles are folded with those 256 further, then by
//! halves within each 32, then with their neighbours. Groups are folded in order. The result of an element
//! within its tile folds the prefix of its part, the prefix of its run within the part, and the scan within
//! the run. In front of these comes the prefix of the tile: the groups before, and the earlier tiles of its
//! group.

use super::elementwise_device::{DeviceInput, DeviceOutput};
use super::reduction::{Reduction, ReductionState};
use super::reduction_device::{ReductionExplanation, write_scalars};
use crate::driver::{Attribute, LaunchConfig, Operand, OperandAccess, Operands, Stream, View};
use crate::error::{Error, Result};
use crate::fuse::ir::number::Number;
use crate::fuse::language::fold::Fold;
use crate::fuse::language::graph::{Expr, Graph};
use crate::fuse::plan::elementwise::WIDEST;
use crate::fuse::plan::reduction::{
    BLOCK, KernelMemory, PlanInput, PlannedLaunch, ReductionAccess, ReductionKey, ReductionParameters,
    ReductionPlan, ScanKey, WARP, blocks,
};
use crate::fuse::plan::reduction_dimensions::Dimensions;
use crate::fuse::plan::scan::{QUAD, WARPS, accesses, scratch, tile};
use crate::types::{DType, Layout};

/// Words of 32 bits that a thread may load ahead.
const WORDS_AHEAD: usize = 48;
/// The number of such words, and of an element's instructions, that leaves registers for four blocks.
const SHORT: usize = 20;
/// The multiprocessors of the reference device.
const MULTIPROCESSORS: u32 = 132;
/// A scan along an axis of any number of inputs: one kernel, on a device or the CPU.
///
/// ```
/// use selvedge::fuse::{Fold, Graph, HostInput, HostOutput};
/// use selvedge::types::{DType, Layout};
///
/// let graph = Graph::new();
/// let x = graph.input(DType::F32);
/// let sums = graph.scan(Fold::Sum, x * 2.0)?;
/// let row = Layout::contiguous(&[4])?;
/// let mut result = [0.0f32; 4];
/// let input = HostInput::new(&[1.0f32, 2.0, 3.0, 4.0], row)?;
/// sums.run_host(&[input], &[], &mut HostOutput::new(&mut result, row)?, 0)?;
/// assert_eq!(result, [2.0, 6.0, 12.0, 20.0]);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scan(pub(in crate::fuse) Reduction);

impl Graph {
    /// Creates a scan of a node's elements by a sum, a product, a minimum or a maximum, in the dtypes of the
    /// reduction.
    ///
    /// # Errors
    ///
    /// As [`Graph::reduction`]; [`Error::InvalidArgument`] for another fold.
    pub fn scan(&self, fold: Fold, of: Expr<'_>) -> Result<Scan> {
        if !matches!(fold, Fold::Sum | Fold::Product | Fold::Minimum | Fold::Maximum) {
            let wanted = "a sum, a product, a minimum or a maximum";
            return Err(Error::invalid("a scan", format!("the fold '{}'", fold.name()), wanted));
        }
        Ok(Scan(self.reduction(fold, of)?))
    }
}

impl Scan {
    /// Returns the dtypes of the inputs.
    pub fn inputs(&self) -> &[DType] {
        self.0.inputs()
    }

    /// Returns the dtype of the output.
    pub fn output(&self) -> DType {
        self.0.output()
    }

    pub(in crate::fuse) fn state(&self) -> &ReductionState {
        &self.0.0
    }

    pub(in crate::fuse) fn dimensions(
        &self,
        inputs: &[(DType, Layout)],
        output: (DType, Layout),
        axis: usize,
    ) -> Result<Dimensions> {
        let state = self.state();
        state.check_operands(inputs, output.0)?;
        let layouts: Vec<Layout> = inputs.iter().map(|(_, layout)| *layout).collect();
        Dimensions::along("a scan", &layouts, &output.1, axis)
    }

    /// Plans a scan of at least one element.
    fn plan(
        &self,
        dimensions: &Dimensions,
        starts: &[u64],
        is_ampere: bool,
        multiprocessors: u32,
    ) -> Result<ReductionPlan> {
        let state = self.state();
        let dtypes = state.prologue.inputs.iter().chain(&state.epilogue.outputs);
        let sizes: Vec<usize> = dtypes.map(|dtype| dtype.size()).collect();
        let work = PlanInput {
            dimensions,
            rules: &state.rules,
            bytes: &sizes,
            starts,
            scalars: state.scalars(),
            steps: 0,
            is_ampere,
            rescales: false,
        };
        let (row, rows) = (dimensions.row, dimensions.rows);
        let (tile, most) = (tile(&state.rules), accesses(&state.rules));
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
            _ => ReductionAccess::Still,
        };
        let span = if chained { tile } else { QUAD * threads * accesses * warps };
        let classes: Vec<ReductionAccess> = (0..output).map(class).collect();
        // The words that a thread loads of a tile: vectors as they are, other elements in a register each.
        let words_of = |input: usize| match classes[input] {
            ReductionAccess::Still => 1,
            ReductionAccess::Vector => accesses * QUAD * sizes[input] / 4,
            _ => accesses * QUAD * sizes[input].div_ceil(4),
        };
        let loaded: usize = (0..output).map(words_of).sum();
        let plain = loaded <= SHORT && state.steps() <= SHORT && !classes.contains(&ReductionAccess::Gather);
        let resident = match state.rules.bytes() {
            _ if !chained || loaded > WORDS_AHEAD => 1,
            0..=8 if plain && state.rules.kinds.len() == 1 => 4,
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
            kept: dimensions.kept.len(),
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
        let parameters = ReductionParameters::new(state.scalars(), key.wide, key.kept, 1, sizes.len());
        let items = if chained { blocks(rows, tiles)? as usize } else { rows };
        let block = parameters.block(row, items, rows, tiles, &all)?;
        let mut operands: Vec<(KernelMemory, usize)> = (0..output)
            .map(|input| (KernelMemory::Input(input), dimensions.offsets[input] * sizes[input]))
            .collect();
        operands.push((KernelMemory::Output, dimensions.offsets[output] * sizes[output]));
        let (places, bytes) = if chained { scratch(&state.rules, rows * tiles) } else { (Vec::new(), 0) };
        operands.extend(places.into_iter().map(|at| (KernelMemory::Scratch, at)));
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

    /// Scans the inputs, which are broadcast to the output's shape, along an axis. `scalars` holds those of
    /// the expression.
    ///
    /// # Errors
    ///
    /// As [`Reduction::run`], and [`Error::InvalidArgument`] for an axis that does not exist.
    pub fn run(
        &self,
        stream: &Stream,
        inputs: &[DeviceInput<'_>],
        scalars: &[Number],
        output: &mut DeviceOutput<'_>,
        axis: usize,
    ) -> Result<()> {
        let state = self.state();
        let bits = state.scalar_bits(scalars)?;
        let of_inputs: Vec<(DType, Layout)> = inputs.iter().map(DeviceInput::described).collect();
        let dimensions = self.dimensions(&of_inputs, output.described(), axis)?;
        if dimensions.rows == 0 || dimensions.row == 0 {
            return Ok(());
        }
        let mut views: Vec<View<'_>> = Vec::with_capacity(inputs.len() + 1);
        for input in inputs {
            let memory = input.memory();
            views.push(memory.ok_or_else(|| {
                Error::invalid("a scan", "an in-place input", "an input with its own memory")
            })?);
        }
        views.push(output.memory());
        let starts: Vec<u64> = views.iter().map(|view| view.address % WIDEST).collect();
        let device = stream.device();
        let multiprocessors = device.attribute(Attribute::MULTIPROCESSOR_COUNT)?;
        let multiprocessors = u32::try_from(multiprocessors).unwrap_or(1).max(1);
        let is_ampere = device.compute_capability() >= (8, 0);
        let plan = self.plan(&dimensions, &starts, is_ampere, multiprocessors)?;
        let mut scratch = match plan.scratch {
            0 => None,
            bytes => Some(stream.uninitialized::<u8>(bytes)?),
        };
        if let Some(scratch) = &mut scratch {
            // No flag is set.
            stream.fill(scratch, 0u8)?;
        }
        let scratch = match &scratch {
            None => None,
            Some(memory) => {
                DeviceInput::of_bytes(DType::U8, memory, Layout::contiguous(&[plan.scratch])?)?.memory()
            }
        };
        for launch in plan.launches {
            let function = state.kernel(&device, &launch)?;
            let mut block = launch.block;
            write_scalars(&mut block, &bits);
            let first = inputs.len() + 1;
            let operands = launch.operands.iter().enumerate().map(|(index, &(place, offset))| {
                let view = match (place, scratch) {
                    (KernelMemory::Input(input), _) => views[input],
                    (KernelMemory::Scratch, Some(view)) => view,
                    _ => views[inputs.len()],
                };
                let access = match place {
                    KernelMemory::Input(_) => OperandAccess::Read,
                    // All of scratch memory is one operand.
                    KernelMemory::Scratch if index > first => OperandAccess::Shared,
                    KernelMemory::Output | KernelMemory::Scratch => OperandAccess::Write,
                };
                Operand { view, address: view.address + offset as u64, access }
            });
            let memory: Vec<Operand<'_>> = operands.collect();
            let config = LaunchConfig::new(launch.blocks, launch.threads);
            // SAFETY: as for a reduction. A block waits only for tiles with lower tickets, which other blocks
            // have begun.
            unsafe { function.launch(stream, config, &Operands { memory: &memory, block: &block })? };
        }
        Ok(())
    }

    /// Returns the kernel that a run on these layouts would launch, like [`Reduction::explain`], on a device
    /// with the 132 multiprocessors of an H200. Scratch memory starts as zeros.
    ///
    /// # Errors
    ///
    /// The errors of [`run`](Self::run) about layouts.
    pub fn explain(
        &self,
        inputs: &[Layout],
        output: &Layout,
        axis: usize,
        capability: (i32, i32),
    ) -> Result<ReductionExplanation> {
        let state = self.state();
        // Extra inputs have no dtype; any dtype leads to the error.
        let dtypes = self.inputs().iter().copied().chain(std::iter::repeat(self.output()));
        let of_inputs: Vec<(DType, Layout)> = dtypes.zip(inputs.iter().copied()).collect();
        let dimensions = self.dimensions(&of_inputs, (self.output(), *output), axis)?;
        if dimensions.rows == 0 || dimensions.row == 0 {
            return Ok(ReductionExplanation { launches: Vec::new(), scratch: 0 });
        }
        let starts = vec![0; inputs.len() + 1];
        let plan = self.plan(&dimensions, &starts, capability >= (8, 0), MULTIPROCESSORS)?;
        Ok(state.explained(plan, &state.scalar_bits(&state.zero_scalars())?))
    }
}
