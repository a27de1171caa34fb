//! A description of a row program's run: its kernels in order, with the bytes that each reads and writes.

use std::fmt;

use super::super::explain::Explanation;
use super::super::reduce::ReductionExplanation;
use super::split::PhaseInput;
use super::{PhaseOperands, RowProgram};
use crate::error::Result;
use crate::types::{DType, Layout, Shape};

/// The result of [`RowProgram::explain`].
#[derive(Debug, Clone)]
pub struct RowExplanation {
    /// The reductions in order, then the outputs per element and those per group.
    pub kernels: Vec<RowKernel>,
    /// Bytes of temporary memory for the values of groups.
    pub temporary: usize,
}

/// A reduction or an expression of a run.
#[derive(Debug, Clone)]
pub struct RowKernel {
    /// The phase: a reduction comes after those of smaller phases, and outputs after all reductions.
    pub phase: usize,
    /// The computation, such as `max of each group`.
    pub name: String,
    /// Bytes read. An element that is read for several others counts once.
    pub bytes_read: usize,
    /// Bytes written.
    pub bytes_written: usize,
    /// The launches, with the kernel texts.
    pub launches: RowLaunches,
}

/// The launches of a [`RowKernel`].
#[derive(Debug, Clone)]
pub enum RowLaunches {
    /// The launches of a reduction.
    Reduction(ReductionExplanation),
    /// The launches of an elementwise expression.
    Expression(Explanation),
}

impl RowExplanation {
    /// Returns the bytes that all kernels read.
    pub fn bytes_read(&self) -> usize {
        self.kernels.iter().map(|kernel| kernel.bytes_read).sum()
    }

    /// Returns the bytes that all kernels write.
    pub fn bytes_written(&self) -> usize {
        self.kernels.iter().map(|kernel| kernel.bytes_written).sum()
    }
}

/// Returns the bytes of the distinct elements of a layout.
fn distinct_bytes((dtype, layout): &(DType, Layout)) -> usize {
    let axes = layout.shape().iter().zip(layout.strides());
    let sizes = axes.map(|(&size, &stride)| if stride == 0 { size.min(1) } else { size });
    sizes.product::<usize>() * dtype.size()
}

impl PhaseOperands {
    fn described(
        &self,
        inputs: &[(DType, Layout)],
        values: &[DType],
        groups: Layout,
        shape: &Shape,
    ) -> Result<Vec<(DType, Layout)>> {
        let mut found = Vec::with_capacity(self.inputs.len());
        for input in &self.inputs {
            let (dtype, layout) = match *input {
                PhaseInput::Input(index) => inputs[index],
                PhaseInput::Group(index) => (values[index], groups),
            };
            found.push((dtype, layout.expand(shape)?));
        }
        Ok(found)
    }
}

impl RowProgram {
    /// Returns the kernels that a run on these layouts would launch on a device of this compute capability, for
    /// memory aligned to 256 bytes. It needs no device.
    ///
    /// # Errors
    ///
    /// The errors of [`run`](Self::run) about layouts.
    pub fn explain(
        &self,
        inputs: &[Layout],
        axes: &[isize],
        outputs: &[Layout],
        capability: (i32, i32),
    ) -> Result<RowExplanation> {
        let state = &*self.0;
        // Extra operands have no dtype; any dtype leads to the error.
        let more = || std::iter::repeat(DType::F32);
        let dtypes = self.inputs().iter().copied().chain(more());
        let of_inputs: Vec<(DType, Layout)> = dtypes.zip(inputs.iter().copied()).collect();
        let dtypes = self.outputs().into_iter().chain(more());
        let of_outputs: Vec<(DType, Layout)> = dtypes.zip(outputs.iter().copied()).collect();
        let shape = state.row_shape(&of_inputs, state.scalars.len(), axes, &of_outputs)?;
        let groups = Layout::from_shape(shape.groups);
        let values: Vec<DType> =
            state.reductions.iter().map(|reduction| reduction.reduction.output()).collect();
        let layouts = |operands: &[(DType, Layout)]| -> Vec<Layout> {
            operands.iter().map(|(_, layout)| *layout).collect()
        };
        let bytes = |operands: &[(DType, Layout)]| operands.iter().map(distinct_bytes).sum();
        let mut kernels = Vec::new();
        for reduction in &state.reductions {
            let operands = reduction.operands.described(&of_inputs, &values, groups, &shape.elements)?;
            let explained = reduction.reduction.explain(&layouts(&operands), &groups, capability)?;
            kernels.push(RowKernel {
                phase: reduction.phase,
                name: format!("{} of each group", reduction.reduction.fold().name()),
                bytes_read: bytes(&operands),
                bytes_written: groups.count() * reduction.reduction.output().size(),
                launches: RowLaunches::Reduction(explained),
            });
        }
        let last = state.reductions.iter().map(|reduction| reduction.phase + 1).max().unwrap_or(0);
        for finish in &state.finishes {
            let (within, name) = match finish.is_per_group {
                true => (&shape.groups, "outputs per group"),
                false => (&shape.elements, "outputs per element"),
            };
            let operands = finish.operands.described(&of_inputs, &values, groups, within)?;
            let written: Vec<(DType, Layout)> =
                finish.outputs.iter().map(|&output| of_outputs[output]).collect();
            let explained = finish.expression.explain(&layouts(&operands), &layouts(&written), capability)?;
            kernels.push(RowKernel {
                phase: last,
                name: name.to_owned(),
                bytes_read: bytes(&operands),
                bytes_written: bytes(&written),
                launches: RowLaunches::Expression(explained),
            });
        }
        let temporary = values.iter().map(|dtype| groups.count() * dtype.size()).sum();
        Ok(RowExplanation { kernels, temporary })
    }
}

impl fmt::Display for RowExplanation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (read, written) = (self.bytes_read(), self.bytes_written());
        writeln!(
            formatter,
            "{} kernels read {read} bytes and write {written}; {} bytes of temporary memory",
            self.kernels.len(),
            self.temporary
        )?;
        for kernel in &self.kernels {
            let RowKernel { phase, name, bytes_read, bytes_written, .. } = kernel;
            writeln!(formatter, "phase {phase}: {name}; reads {bytes_read} bytes, writes {bytes_written}")?;
        }
        for (index, kernel) in self.kernels.iter().enumerate() {
            writeln!(formatter, "kernel {index}: {}", kernel.name)?;
            match &kernel.launches {
                RowLaunches::Reduction(reduction) => write!(formatter, "{reduction}")?,
                RowLaunches::Expression(expression) => write!(formatter, "{expression}")?,
            }
        }
        Ok(())
    }
}
