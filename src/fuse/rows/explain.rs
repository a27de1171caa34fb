//! A description of a row program's run: its kernels in order, with the bytes that each reads and writes.

use std::fmt;

use super::super::explain::Explanation;
use super::super::number::Number;
use super::super::reduce::ReductionExplanation;
use super::super::reduce::device::write_scalars;
use super::index::CheckLaunch;
use super::plan::RowOperands;
use super::shape::RowShape;
use super::split::PhaseInput;
use super::storage::{RowDevice, RowStorage};
use super::stored::{StoredKind, stored_values};
use super::{PhaseOperands, RowProgram, RowProgramState, ptx};
use crate::error::Result;
use crate::types::{DType, Layout, Shape};

/// The result of [`RowProgram::explain`].
#[derive(Debug, Clone)]
pub struct RowExplanation {
    /// The schedule in words: the threads of a row, or the reason why the program runs as several kernels.
    pub schedule: String,
    /// One kernel, or the reductions in order, then the outputs per element and those per group. Expressions of stored values
    /// come before their readers.
    pub kernels: Vec<RowKernel>,
    /// Bytes of temporary memory for the values of groups and stored intermediate values.
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
    /// The launch of the whole program.
    Rows(RowLaunch),
    /// The launch of the check of an index of each group, whose only address is that of the indices.
    Check(RowLaunch),
}

/// The launch of a whole row program, or of a check of indices.
#[derive(Debug, Clone)]
pub struct RowLaunch {
    /// The text of the kernel.
    pub ptx: String,
    /// Blocks of the grid.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub shared: u32,
    /// Blocks of a cluster; 1 without clusters.
    pub cluster: u32,
    /// The inputs behind the first address parameters. The outputs follow in order.
    pub inputs: Vec<usize>,
    /// The offset in bytes of each address.
    pub offsets: Vec<usize>,
    /// The kernel's last parameter, which follows the addresses. Scalars of a run are 0 in it, except the size of
    /// a group.
    pub parameters: Vec<u8>,
    /// The offset in these parameters of the address of the device's report, if the kernel checks an index. The
    /// code of the error follows: 16 bytes later, in a check 8 bytes later.
    pub report: Option<usize>,
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
pub(super) fn distinct_bytes((dtype, layout): &(DType, Layout)) -> usize {
    let axes = layout.shape().iter().zip(layout.strides());
    let sizes = axes.map(|(&size, &stride)| if stride == 0 { size.min(1) } else { size });
    sizes.product::<usize>() * dtype.size()
}

impl PhaseOperands {
    fn described(
        &self,
        inputs: &[(DType, Layout)],
        (values, stored): (&[DType], &[(DType, bool)]),
        groups: Layout,
        places: Layout,
        shape: &Shape,
    ) -> Result<Vec<(DType, Layout)>> {
        let mut found = Vec::with_capacity(self.inputs.len());
        for input in &self.inputs {
            let (dtype, layout) = match *input {
                PhaseInput::Input(index) => inputs[index],
                PhaseInput::Group(index) => (values[index], groups),
                PhaseInput::Index => (DType::I64, places),
                PhaseInput::Stored(index) => match stored[index] {
                    (dtype, true) => (dtype, groups),
                    (dtype, false) => (dtype, Layout::from_shape(*shape)),
                },
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
        if let Some(sums) = &state.sums {
            return sums.explain(&shape, &of_inputs, axes, &of_outputs, capability);
        }
        let reason = match state.explained(&shape, &of_inputs, &of_outputs, capability) {
            Ok(explanation) => return explanation,
            Err(reason) => reason,
        };
        let (groups, places) = (Layout::from_shape(shape.groups), shape.places()?);
        let values: Vec<DType> =
            state.reductions.iter().map(|reduction| reduction.reduction.output()).collect();
        let layouts = |operands: &[(DType, Layout)]| -> Vec<Layout> {
            operands.iter().map(|(_, layout)| *layout).collect()
        };
        let bytes = |operands: &[(DType, Layout)]| operands.iter().map(distinct_bytes).sum();
        let mut kernels = Vec::new();
        if let Some(expression) = &state.places {
            kernels.push(RowKernel {
                phase: 0,
                name: "index of each element in its group".to_owned(),
                bytes_read: 0,
                bytes_written: 8 * shape.size,
                launches: RowLaunches::Expression(expression.explain(&[], &[places], capability)?),
            });
        }
        let elements = Layout::from_shape(shape.elements);
        let stored: Vec<(DType, bool)> = stored_values(&state.stored).collect();
        for number in 0..=state.reductions.len() {
            for of in state.stored.iter().filter(|of| of.after == number) {
                let layout = if of.kind == StoredKind::Groups { groups } else { elements };
                let (name, operands) = match of.kind {
                    StoredKind::Words => {
                        let words = of.operands.numbers().map(|number| of_inputs[number]).collect();
                        ("random words or coordinates of each element".to_owned(), words)
                    }
                    kind => {
                        let within = if kind == StoredKind::Groups { "group" } else { "element" };
                        let all = (&values[..], &stored[..]);
                        let operands =
                            of.operands.described(&of_inputs, all, groups, places, layout.shape())?;
                        let count = of.expression.outputs().len();
                        (format!("{count} intermediate values of each {within}"), operands)
                    }
                };
                let written = vec![layout; of.expression.outputs().len()];
                let size: usize = of.expression.outputs().iter().map(|dtype| dtype.size()).sum();
                let explained = of.expression.explain(&layouts(&operands), &written, capability)?;
                kernels.push(RowKernel {
                    phase: of.phase,
                    name,
                    bytes_read: bytes(&operands),
                    bytes_written: layout.count() * size,
                    launches: RowLaunches::Expression(explained),
                });
            }
            let Some(reduction) = state.reductions.get(number) else { break };
            let operands = reduction.operands.described(
                &of_inputs,
                (&values, &stored),
                groups,
                places,
                &shape.elements,
            )?;
            let explained = reduction.reduction.explain(&layouts(&operands), &groups, capability)?;
            kernels.push(RowKernel {
                phase: reduction.phase,
                name: format!("{} of each group", state.name_of(number)),
                bytes_read: bytes(&operands),
                bytes_written: groups.count() * reduction.reduction.output().size(),
                launches: RowLaunches::Reduction(explained),
            });
        }
        let of_reductions = state.reductions.iter().map(|reduction| reduction.phase + 1);
        let last = of_reductions.chain(state.stored.iter().map(|of| of.phase)).max().unwrap_or(0);
        for index in &state.indices {
            let operands =
                index.operands.described(&of_inputs, (&values, &stored), groups, places, &shape.groups)?;
            let explained = index.expression.explain(&layouts(&operands), &[groups], capability)?;
            kernels.push(RowKernel {
                phase: last,
                name: format!("index of {}", index.error.operation()),
                bytes_read: bytes(&operands),
                bytes_written: 8 * groups.count(),
                launches: RowLaunches::Expression(explained),
            });
            let check = CheckLaunch::new(index.error, 0, 0, groups.count(), shape.size)?;
            kernels.push(RowKernel {
                phase: last,
                name: format!("check of the index of {}", index.error.operation()),
                bytes_read: 8 * groups.count(),
                bytes_written: 0,
                launches: RowLaunches::Check(RowLaunch {
                    ptx: check.text,
                    blocks: check.blocks,
                    threads: check.threads,
                    shared: 0,
                    cluster: 1,
                    inputs: Vec::new(),
                    offsets: vec![0],
                    parameters: check.block,
                    report: Some(0),
                }),
            });
        }
        for finish in &state.finishes {
            let (within, name) = match finish.is_per_group {
                true => (&shape.groups, "outputs per group"),
                false => (&shape.elements, "outputs per element"),
            };
            let operands =
                finish.operands.described(&of_inputs, (&values, &stored), groups, places, within)?;
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
        let of_values: usize = values.iter().map(|dtype| groups.count() * dtype.size()).sum();
        let of_stored = stored.iter().map(|&(dtype, is_per_group)| {
            dtype.size() * if is_per_group { groups.count() } else { elements.count() }
        });
        let of_indices = 8 * groups.count() * state.indices.len();
        let temporary = of_values
            + of_stored.sum::<usize>()
            + of_indices
            + state.places.as_ref().map_or(0, |_| 8 * shape.size);
        let schedule = format!("{} kernels, because {reason}", kernels.len());
        Ok(RowExplanation { schedule, kernels, temporary })
    }
}

impl RowProgramState {
    /// Returns the name of a reduction.
    fn name_of(&self, reduction: usize) -> &'static str {
        match self.indices.iter().find(|index| index.reduction == reduction) {
            Some(index) => index.error.operation(),
            None => self.reductions[reduction].reduction.fold().name(),
        }
    }

    /// Returns the launch of the whole program, or the reason why it runs as several kernels.
    fn explained(
        &self,
        shape: &RowShape,
        inputs: &[(DType, Layout)],
        outputs: &[(DType, Layout)],
        capability: (i32, i32),
    ) -> std::result::Result<Result<RowExplanation>, &'static str> {
        let starts = vec![0; inputs.len() + outputs.len()];
        let plan =
            self.plan(shape, &RowOperands { inputs, outputs, starts: &starts }, RowDevice { capability })?;
        let stages = self.stages.as_ref().map_err(|reason| *reason)?;
        let given = vec![Number::Integer(0); self.scalars.len()];
        let bits = match stages.expression.scalar_bits(&stages.operands.scalars(&given, shape)) {
            Ok(bits) => bits,
            Err(error) => return Ok(Err(error)),
        };
        let ptx = ptx::write(self, stages, &plan.key, plan.parameters, plan.threads);
        let mut parameters = plan.block;
        write_scalars(&mut parameters, &bits);
        let numbers = RowProgramState::kernel_inputs(stages);
        let operand_of = |number: usize| numbers.iter().position(|&found| found == number);
        let kept = match plan.key.storage.keeps() {
            true => stages.kept(&stages.uniform(&stages.still(&plan.key.accesses)), plan.key.kept_cost),
            false => stages.kept_nowhere(),
        };
        let elements = |&number: &usize| -> usize {
            let (dtype, layout) = inputs[number];
            let once = distinct_bytes(&(dtype, layout));
            let expanded = layout.expand(&shape.elements).map_or(layout, |layout| layout);
            let differs = |axis: usize| shape.groups[axis] != shape.elements[axis];
            let along = (0..expanded.rank()).any(|axis| differs(axis) && expanded.strides()[axis] != 0);
            // An input with one value for the row is read once.
            let is_held = match &plan.key.storage {
                RowStorage::Registers | RowStorage::Ahead(_) => true,
                RowStorage::Shared(row) => operand_of(number).is_some_and(|at| row.operand(at).is_some()),
                RowStorage::Global => false,
            };
            if is_held || !along { once } else { once * stages.readers(number, &kept) }
        };
        let kernel = RowKernel {
            phase: 0,
            name: format!(
                "{} reductions ({}) and all outputs",
                self.reductions.len(),
                (0..self.reductions.len()).map(|number| self.name_of(number)).collect::<Vec<_>>().join(", ")
            ),
            bytes_read: numbers.iter().map(elements).sum(),
            bytes_written: outputs.iter().map(distinct_bytes).sum(),
            launches: RowLaunches::Rows(RowLaunch {
                ptx,
                blocks: plan.blocks,
                threads: plan.threads,
                shared: plan.shared,
                cluster: plan.key.cluster as u32,
                inputs: numbers,
                offsets: plan.offsets,
                report: stages.report(),
                parameters,
            }),
        };
        let schedule = format!("one kernel: {}", plan.key.schedule());
        Ok(Ok(RowExplanation { schedule, kernels: vec![kernel], temporary: 0 }))
    }
}

impl fmt::Display for RowExplanation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (read, written) = (self.bytes_read(), self.bytes_written());
        writeln!(formatter, "{}", self.schedule)?;
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
                RowLaunches::Rows(launch) | RowLaunches::Check(launch) => {
                    let RowLaunch { ptx, blocks, threads, shared, cluster, .. } = launch;
                    write!(formatter, "{blocks} blocks of {threads} threads")?;
                    if *cluster > 1 {
                        write!(formatter, " in clusters of {cluster}")?;
                    }
                    if *shared > 0 {
                        write!(formatter, ", {shared} bytes of dynamic shared memory")?;
                    }
                    writeln!(formatter, "\n{ptx}")?;
                }
            }
        }
        Ok(())
    }
}
