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
use super::reduction::Reduction;
use super::reduction_device::{ReductionExplanation, operand_views, scratch};
use crate::driver::{Attribute, Stream};
use crate::error::{Error, Result};
use crate::fuse::ir::number::Number;
use crate::fuse::language::fold::Fold;
use crate::fuse::language::graph::{Expr, Graph};
use crate::fuse::plan::elementwise::WIDEST;
use crate::types::{DType, Layout};

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
        if !fold.has_scan() {
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
        let (state, compiled) = (&*self.0.0, &*self.0.0.compiled);
        let bits = compiled.scalar_bits(scalars)?;
        let of_inputs: Vec<(DType, Layout)> = inputs.iter().map(DeviceInput::described).collect();
        let dimensions = compiled.scan_dimensions(&of_inputs, output.described(), axis)?;
        if dimensions.rows == 0 || dimensions.row == 0 {
            return Ok(());
        }
        let views = operand_views("a scan", inputs, output)?;
        let starts: Vec<u64> = views.iter().map(|view| view.address % WIDEST).collect();
        let device = stream.device();
        let multiprocessors = device.attribute(Attribute::MULTIPROCESSOR_COUNT)?;
        let multiprocessors = u32::try_from(multiprocessors).unwrap_or(1).max(1);
        let is_ampere = device.compute_capability() >= (8, 0);
        let plan = compiled.plan_scan(&dimensions, &starts, is_ampere, multiprocessors)?;
        let mut scratch = scratch(stream, &plan)?;
        if let Some(scratch) = &mut scratch {
            // No flag is set.
            stream.fill(scratch, 0u8)?;
        }
        state.launch(stream, plan, &bits, &views, scratch.as_ref())
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
        let (state, compiled) = (&*self.0.0, &*self.0.0.compiled);
        // Extra inputs have no dtype; any dtype leads to the error.
        let dtypes = self.inputs().iter().copied().chain(std::iter::repeat(self.output()));
        let of_inputs: Vec<(DType, Layout)> = dtypes.zip(inputs.iter().copied()).collect();
        let dimensions = compiled.scan_dimensions(&of_inputs, (self.output(), *output), axis)?;
        if dimensions.rows == 0 || dimensions.row == 0 {
            return Ok(ReductionExplanation { launches: Vec::new(), scratch: 0 });
        }
        let starts = vec![0; inputs.len() + 1];
        let plan = compiled.plan_scan(&dimensions, &starts, capability >= (8, 0), MULTIPROCESSORS)?;
        Ok(state.explained(plan, &compiled.scalar_bits(&compiled.zero_scalars())?))
    }
}
