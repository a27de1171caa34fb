//! A description of a row program's run: its kernels in order, with the bytes that each reads and writes.
//!
//! It names the memory behind every operand of a kernel (`RowKernel::operands`: inputs, outputs and temporary memory), so
//! `tests/parity` runs the kernels of a plan one after another in the interpreter.

use std::fmt;

use super::elementwise::Explanation;
use crate::error::Result;
use crate::fuse::ir::number::Number;
use crate::fuse::plan::compiled_rows::{CompiledRows, PhaseOperands};
use crate::fuse::plan::rows_key::{RowOperands, RowPlan};
use crate::fuse::plan::rows_shape::RowShape;
use crate::fuse::plan::rows_split::PhaseInput;
use crate::fuse::plan::rows_storage::{RowDevice, RowStorage};
use crate::fuse::plan::rows_stored::StoredKind;
use crate::fuse::ptx;
use crate::fuse::run::expression::Expression;
use crate::fuse::run::reduction_device::{ReductionExplanation, write_scalars};
use crate::fuse::run::row_program::{RowProgram, RowProgramState};
use crate::fuse::run::rows_index::CheckLaunch;
use crate::fuse::run::rows_run::missing;
use crate::types::{DType, Layout, Shape};

/// The result of [`RowProgram::explain`].
#[derive(Debug, Clone)]
pub struct RowExplanation {
    /// The schedule in words: the threads of a row, the memory that holds it and the reason for it, or the reason why the
    /// program runs as several kernels.
    pub schedule: String,
    /// One kernel, or the reductions in order, then the outputs per element and those per group. Expressions of stored values
    /// come before their readers.
    pub kernels: Vec<RowKernel>,
    /// The bytes of each temporary memory, such as one for the values of groups of a reduction or for a stored intermediate
    /// value. A run copies in-place inputs to more memory if several kernels write outputs per element.
    pub temporaries: Vec<usize>,
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
    /// The memory of the inputs and then of the outputs, in the order of the kernel's operands.
    pub operands: Vec<RowMemory>,
    /// The launches, with the kernel texts.
    pub launches: RowLaunches,
}

/// The memory of an operand of a [`RowKernel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowMemory {
    /// The memory of an input of the program.
    Input(usize),
    /// The memory of an output of the program.
    Output(usize),
    /// An entry of [`RowExplanation::temporaries`].
    Temporary(usize),
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
    /// The offset in bytes of each address parameter, which are those of [`RowKernel::operands`].
    pub offsets: Vec<usize>,
    /// The kernel's last parameter, which follows the addresses. Scalars of a run are 0 in it, except the size of
    /// a group.
    pub parameters: Vec<u8>,
    /// The offset in these parameters of the address of the device's report, if the kernel checks an index. The
    /// code of the error follows: 16 bytes later, in a check 8 bytes later.
    pub report: Option<usize>,
}

impl RowLaunch {
    /// Describes the launch of a plan with the bits of all scalars, given the text of its kernel and the offset of the report's
    /// address in its parameters.
    pub(super) fn new(ptx: String, plan: RowPlan, bits: &[[u64; 2]], report: Option<usize>) -> RowLaunch {
        let RowPlan { key, blocks, threads, shared, offsets, block: mut parameters, .. } = plan;
        write_scalars(&mut parameters, bits);
        RowLaunch { ptx, blocks, threads, shared, cluster: key.cluster as u32, offsets, parameters, report }
    }
}

impl RowExplanation {
    /// Returns the description of a run without kernels.
    pub(super) fn nothing() -> RowExplanation {
        RowExplanation { schedule: String::new(), kernels: Vec::new(), temporaries: Vec::new() }
    }

    /// Returns the bytes of temporary memory.
    pub fn temporary(&self) -> usize {
        self.temporaries.iter().sum()
    }

    /// Adds a temporary memory.
    pub(super) fn add_temporary(&mut self, bytes: usize) -> RowMemory {
        self.temporaries.push(bytes);
        RowMemory::Temporary(self.temporaries.len() - 1)
    }

    /// Adds the kernel of the index of each element in its group, and returns its output.
    pub(super) fn add_element_indices(
        &mut self,
        (phase, expression): (usize, &Expression),
        shape: &RowShape,
        capability: (i32, i32),
    ) -> Result<Described> {
        let layout = shape.element_indices()?;
        let element_indices = (self.add_temporary(8 * shape.size), (DType::I64, layout));
        let launches = RowLaunches::Expression(expression.explain(&[], &[layout], capability)?);
        let name = "index of each element in its group".to_owned();
        self.kernels.push(RowKernel::new((phase, name), [&[], &[element_indices]], launches));
        Ok(element_indices)
    }

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

/// An operand of a kernel.
pub(super) type Described = (RowMemory, (DType, Layout));

/// The operands of phases: inputs, and the values that the kernels before computed.
struct PhaseMemory {
    inputs: Vec<Described>,
    values: Vec<Described>,
    stored: Vec<Described>,
    element_indices: Option<Described>,
}

impl PhaseMemory {
    /// Returns the operands of a phase, broadcast to a shape.
    fn of(&self, phase: &PhaseOperands, shape: &Shape) -> Result<Vec<Described>> {
        let mut found = Vec::with_capacity(phase.inputs.len());
        for input in &phase.inputs {
            let known = match *input {
                PhaseInput::Input(index) => self.inputs.get(index),
                PhaseInput::Group(index) => self.values.get(index),
                PhaseInput::Index => self.element_indices.as_ref(),
                PhaseInput::Stored(index) => self.stored.get(index),
            };
            let &(memory, (dtype, layout)) = known.ok_or_else(|| missing("operand of a phase"))?;
            found.push((memory, (dtype, layout.expand(shape)?)));
        }
        Ok(found)
    }
}

pub(super) fn layouts(operands: &[Described]) -> Vec<Layout> {
    operands.iter().map(|(_, (_, layout))| *layout).collect()
}

/// Returns the operands without their memory.
pub(super) fn operands_of(operands: &[Described]) -> Vec<(DType, Layout)> {
    operands.iter().map(|(_, operand)| *operand).collect()
}

fn bytes(operands: &[Described]) -> usize {
    operands.iter().map(|(_, operand)| distinct_bytes(operand)).sum()
}

impl RowKernel {
    /// Describes a kernel by its phase and name, and by its inputs and outputs.
    pub(super) fn new(
        (phase, name): (usize, String),
        [read, written]: [&[Described]; 2],
        launches: RowLaunches,
    ) -> RowKernel {
        let operands = read.iter().chain(written).map(|(memory, _)| *memory).collect();
        RowKernel { phase, name, bytes_read: bytes(read), bytes_written: bytes(written), operands, launches }
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
        let shape = state.compiled.row_shape(&of_inputs, state.compiled.scalars.len(), axes, &of_outputs)?;
        if let Some(sums) = &state.sums {
            return sums.explain(&shape, &of_inputs, axes, &of_outputs, capability);
        }
        let reason = match state.explained(&shape, &of_inputs, &of_outputs, capability) {
            Ok(explanation) => return explanation,
            Err(reason) => reason,
        };
        state.explain_phases(&shape, [&of_inputs, &of_outputs], capability, reason)
    }
}

impl RowProgramState {
    /// Returns the name of a reduction.
    fn name_of(&self, reduction: usize) -> &'static str {
        match self.compiled.indices.iter().find(|index| index.reduction == reduction) {
            Some(index) => index.error.operation(),
            None => self.reductions[reduction].fold().name(),
        }
    }

    /// Returns the kernels of a run by phases.
    fn explain_phases(
        &self,
        shape: &RowShape,
        [of_inputs, of_outputs]: [&[(DType, Layout)]; 2],
        capability: (i32, i32),
        reason: &str,
    ) -> Result<RowExplanation> {
        let compiled = &*self.compiled;
        let [groups, elements] = [shape.groups, shape.elements].map(Layout::from_shape);
        // Scalars of a run are 0; the size of a group is another scalar of the kernels.
        let given = vec![Number::Integer(0); self.compiled.scalars.len()];
        let mut found = RowExplanation::nothing();
        let inputs = of_inputs.iter().enumerate();
        let mut memory = PhaseMemory {
            inputs: inputs.map(|(index, operand)| (RowMemory::Input(index), *operand)).collect(),
            values: Vec::new(),
            stored: Vec::new(),
            element_indices: None,
        };
        if let Some(expression) = &self.element_indices {
            memory.element_indices = Some(found.add_element_indices((0, expression), shape, capability)?);
        }
        for reduction_index in 0..=self.reductions.len() {
            let stored = compiled.stored.iter().zip(&self.stored);
            for (of, expression) in stored.filter(|(of, _)| of.after == reduction_index) {
                let layout = if of.kind == StoredKind::Groups { groups } else { elements };
                let count = expression.outputs().len();
                let (name, operands) = match of.kind {
                    StoredKind::Words => {
                        let words = of.operands.numbers().map(|input| memory.inputs[input]).collect();
                        ("random words or coordinates of each element".to_owned(), words)
                    }
                    StoredKind::Groups | StoredKind::Elements => {
                        let within = if of.kind == StoredKind::Groups { "group" } else { "element" };
                        let name = format!("{count} intermediate values of each {within}");
                        (name, memory.of(&of.operands, layout.shape())?)
                    }
                };
                let written = expression.outputs().iter();
                let written: Vec<Described> = written
                    .map(|dtype| (found.add_temporary(layout.count() * dtype.size()), (*dtype, layout)))
                    .collect();
                let scalars = of.operands.scalars(&given, shape);
                let explained = expression.explain_with(
                    &layouts(&operands),
                    &vec![layout; count],
                    &scalars,
                    capability,
                )?;
                let launches = RowLaunches::Expression(explained);
                found.kernels.push(RowKernel::new((of.phase, name), [&operands, &written], launches));
                memory.stored.extend(written);
            }
            let Some(reduction) = compiled.reductions.get(reduction_index) else { break };
            let operands = memory.of(&reduction.operands, &shape.elements)?;
            let scalars = reduction.operands.scalars(&given, shape);
            let explained = self.reductions[reduction_index].explain_with(
                &layouts(&operands),
                &groups,
                &scalars,
                capability,
            )?;
            let dtype = reduction.reduction.output();
            let value = (found.add_temporary(groups.count() * dtype.size()), (dtype, groups));
            let name = format!("{} of each group", self.name_of(reduction_index));
            let launches = RowLaunches::Reduction(explained);
            found.kernels.push(RowKernel::new((reduction.phase, name), [&operands, &[value]], launches));
            memory.values.push(value);
        }
        let of_reductions = compiled.reductions.iter().map(|reduction| reduction.phase + 1);
        let last = of_reductions.chain(compiled.stored.iter().map(|of| of.phase)).max().unwrap_or(0);
        for (index, expression) in compiled.indices.iter().zip(&self.indices) {
            let operands = memory.of(&index.operands, &shape.groups)?;
            let scalars = index.operands.scalars(&given, shape);
            let explained = expression.explain_with(&layouts(&operands), &[groups], &scalars, capability)?;
            let indices = (found.add_temporary(8 * groups.count()), (DType::I64, groups));
            let name = format!("index of {}", index.error.operation());
            let launches = RowLaunches::Expression(explained);
            found.kernels.push(RowKernel::new((last, name), [&operands, &[indices]], launches));
            let check = CheckLaunch::new(index.error, 0, 0, groups.count(), shape.size)?;
            let launches = RowLaunches::Check(RowLaunch {
                ptx: check.text,
                blocks: check.blocks,
                threads: check.threads,
                shared: 0,
                cluster: 1,
                offsets: vec![0],
                parameters: check.block,
                report: Some(0),
            });
            let name = format!("check of the index of {}", index.error.operation());
            found.kernels.push(RowKernel::new((last, name), [&[indices], &[]], launches));
        }
        for (finish, expression) in compiled.finishes.iter().zip(&self.finishes) {
            let (within, name) = match finish.is_per_group {
                true => (&shape.groups, "outputs per group"),
                false => (&shape.elements, "outputs per element"),
            };
            let operands = memory.of(&finish.operands, within)?;
            let written = finish.outputs.iter();
            let written: Vec<Described> =
                written.map(|&output| (RowMemory::Output(output), of_outputs[output])).collect();
            let scalars = finish.operands.scalars(&given, shape);
            let explained =
                expression.explain_with(&layouts(&operands), &layouts(&written), &scalars, capability)?;
            let launches = RowLaunches::Expression(explained);
            found.kernels.push(RowKernel::new((last, name.to_owned()), [&operands, &written], launches));
        }
        found.schedule = format!("{}, because {reason}", kernels(found.kernels.len()));
        Ok(found)
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
        let plan = self.compiled.plan(
            shape,
            &RowOperands { inputs, outputs, starts: &starts },
            RowDevice::of_capability(capability),
        )?;
        let stages = self.compiled.stages.as_ref().map_err(|reason| *reason)?;
        let given = vec![Number::Integer(0); self.compiled.scalars.len()];
        let bits = match stages.expression.scalar_bits(&stages.operands.scalars(&given, shape)) {
            Ok(bits) => bits,
            Err(error) => return Ok(Err(error)),
        };
        let ptx = ptx::rows::write(&self.compiled, stages, &plan);
        let schedule = format!("one kernel: {}", plan.schedule());
        let numbers = CompiledRows::kernel_inputs(stages);
        let operand_of = |input: usize| numbers.iter().position(|&found| found == input);
        let saved = match plan.key.storage.saves_values() {
            true => stages
                .saved(&stages.uniform(&stages.broadcast(&plan.key.accesses)), plan.key.min_recompute_cost),
            false => stages.saved_nowhere(),
        };
        let elements = |&input: &usize| -> usize {
            let (dtype, layout) = inputs[input];
            let once = distinct_bytes(&(dtype, layout));
            let expanded = layout.expand(&shape.elements).map_or(layout, |layout| layout);
            let differs = |axis: usize| shape.groups[axis] != shape.elements[axis];
            let along = (0..expanded.rank()).any(|axis| differs(axis) && expanded.strides()[axis] != 0);
            // An input with one value for the row is read once.
            let is_held = match &plan.key.storage {
                RowStorage::Registers | RowStorage::SharedDoubleBuffered(_) => true,
                RowStorage::Shared(row) => operand_of(input).is_some_and(|at| row.operand(at).is_some()),
                RowStorage::Reread => false,
            };
            if is_held || !along { once } else { once * stages.readers(input, &saved) }
        };
        let kernel = RowKernel {
            phase: 0,
            name: format!(
                "{} reductions ({}) and all outputs",
                self.reductions.len(),
                (0..self.reductions.len())
                    .map(|reduction| self.name_of(reduction))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
            bytes_read: numbers.iter().map(elements).sum(),
            bytes_written: outputs.iter().map(distinct_bytes).sum(),
            operands: numbers
                .iter()
                .map(|&input| RowMemory::Input(input))
                .chain((0..outputs.len()).map(RowMemory::Output))
                .collect(),
            launches: RowLaunches::Rows(RowLaunch::new(ptx, plan, &bits, stages.report())),
        };
        Ok(Ok(RowExplanation { schedule, kernels: vec![kernel], ..RowExplanation::nothing() }))
    }
}

/// Returns such as `1 kernel` or `2 kernels`.
fn kernels(count: usize) -> String {
    if count == 1 { "1 kernel".to_owned() } else { format!("{count} kernels") }
}

impl fmt::Display for RowExplanation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (read, written) = (self.bytes_read(), self.bytes_written());
        writeln!(formatter, "{}", self.schedule)?;
        writeln!(
            formatter,
            "{}: {read} bytes read, {written} written; {} bytes of temporary memory",
            kernels(self.kernels.len()),
            self.temporary()
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
