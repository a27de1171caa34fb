//! The description of a run with sums over groups.

use super::rows::{
    Described, RowExplanation, RowKernel, RowLaunch, RowLaunches, RowMemory, distinct_bytes, layouts,
    operands_of,
};
use crate::error::Result;
use crate::fuse::ir::number::Number;
use crate::fuse::plan::compiled_rows::CompiledRows;
use crate::fuse::plan::rows_key::RowOperands;
use crate::fuse::plan::rows_shape::RowShape;
use crate::fuse::plan::rows_split::PhaseInput;
use crate::fuse::plan::rows_storage::RowDevice;
use crate::fuse::plan::rows_sums::{CHUNK, SumKey, SumLaunch};
use crate::fuse::run::expression::Expression;
use crate::fuse::run::rows_sums::SumsOverGroups;
use crate::types::{DType, Layout};

impl SumsOverGroups {
    /// Returns the kernels of a run on checked operands.
    ///
    /// # Errors
    ///
    /// The errors of [`RowProgram::explain`](crate::fuse::RowProgram::explain) for its parts.
    pub(super) fn explain(
        &self,
        shape: &RowShape,
        inputs: &[(DType, Layout)],
        axes: &[isize],
        outputs: &[(DType, Layout)],
        capability: (i32, i32),
    ) -> Result<RowExplanation> {
        let starts = vec![0; inputs.len() + outputs.len()];
        let given = RowOperands { inputs, outputs, starts: &starts };
        let chunks = shape.groups.count().div_ceil(CHUNK);
        let of_sum = |dtype: DType| chunks * shape.size * dtype.size();
        let planned = self.compiled.plan_fused(shape, &given, RowDevice::of_capability(capability));
        let (mut found, workspaces) = match (planned, &self.compiled.fused) {
            (Ok(launch), Some(fused)) => {
                let Ok(stages) = &fused.stages else { return Ok(RowExplanation::nothing()) };
                let bits =
                    stages.expression.scalar_bits(&stages.operands.scalars(&zeros(&fused.scalars), shape))?;
                let schedule = format!("one kernel and the sums of chunks: {}", launch.plan.schedule());
                let numbers = CompiledRows::kernel_inputs(stages);
                let of_own: Vec<(DType, Layout)> = self.compiled.own.iter().map(|&at| outputs[at]).collect();
                let mut found = RowExplanation { schedule, ..RowExplanation::nothing() };
                let workspaces = self.add_workspaces(&mut found, of_sum);
                let read = numbers.iter().map(|&input| RowMemory::Input(input));
                let written = self.compiled.own.iter().map(|&at| RowMemory::Output(at));
                found.kernels.push(RowKernel {
                    phase: 0,
                    name: format!(
                        "{} reductions, all outputs and the sums of chunks",
                        fused.reductions.len()
                    ),
                    bytes_read: numbers.iter().map(|&number| distinct_bytes(&inputs[number])).sum(),
                    bytes_written: of_own.iter().map(distinct_bytes).sum::<usize>() + found.temporary(),
                    operands: read.chain(written).chain(workspaces.iter().copied()).collect(),
                    launches: RowLaunches::Rows(self.launch_of(launch, &bits, stages.report())),
                });
                (found, workspaces)
            }
            (planned, _) => {
                let reason = planned.err().unwrap_or("no reduction of groups shares it");
                let mut found = match &self.main {
                    Some(main) => {
                        let mut of_main: Vec<Layout> =
                            self.compiled.own.iter().map(|&at| outputs[at].1).collect();
                        of_main.extend(self.compiled.values.iter().map(|value| value.layout(shape)));
                        let of_inputs: Vec<Layout> = inputs.iter().map(|(_, layout)| *layout).collect();
                        main.explain(&of_inputs, axes, &of_main, capability)?
                    }
                    None => RowExplanation::nothing(),
                };
                found.schedule = match found.schedule.as_str() {
                    "" => format!("sums of chunks in a kernel of their own, because {reason}"),
                    main => format!("{main}; sums of chunks in a kernel of their own, because {reason}"),
                };
                let values: Vec<RowMemory> = self
                    .compiled
                    .values
                    .iter()
                    .map(|value| found.add_temporary(value.layout(shape).count() * value.dtype.size()))
                    .collect();
                // The outputs of the main program are those of the whole that are no sums, followed by these values.
                for memory in found.kernels.iter_mut().flat_map(|kernel| &mut kernel.operands) {
                    if let RowMemory::Output(of_main) = *memory {
                        *memory = match of_main.checked_sub(self.compiled.own.len()) {
                            None => RowMemory::Output(self.compiled.own[of_main]),
                            Some(value) => values[value],
                        };
                    }
                }
                let workspaces = self.add_workspaces(&mut found, of_sum);
                if shape.elements.count() > 0 {
                    let phase = found.kernels.iter().map(|kernel| kernel.phase + 1).max().unwrap_or(0);
                    for number in 0..self.terms.len() {
                        let memory = [&values[..], &workspaces];
                        self.explain_terms((number, phase), shape, inputs, capability, memory, &mut found)?;
                    }
                }
                (found, workspaces)
            }
        };
        let phase = found.kernels.iter().map(|kernel| kernel.phase + 1).max().unwrap_or(0);
        let workspace = shape.workspace_of_sums()?;
        for ((fold, &at), &of_chunks) in self.folds.iter().zip(&self.compiled.sums).zip(&workspaces) {
            found.kernels.push(RowKernel {
                phase,
                name: "sum of all chunks".to_owned(),
                bytes_read: workspace.count() * outputs[at].0.size(),
                bytes_written: distinct_bytes(&outputs[at]),
                operands: vec![of_chunks, RowMemory::Output(at)],
                launches: RowLaunches::Reduction(fold.explain(&[workspace], &outputs[at].1, capability)?),
            });
        }
        Ok(found)
    }

    /// Adds the memory of the sums of chunks.
    fn add_workspaces(&self, found: &mut RowExplanation, bytes: impl Fn(DType) -> usize) -> Vec<RowMemory> {
        self.compiled.outputs.iter().map(|output| found.add_temporary(bytes(output.dtype))).collect()
    }

    /// Adds the kernel of some terms, or those of terms in memory.
    fn explain_terms(
        &self,
        (number, phase): (usize, usize),
        shape: &RowShape,
        inputs: &[(DType, Layout)],
        capability: (i32, i32),
        [values, workspaces]: [&[RowMemory]; 2],
        found: &mut RowExplanation,
    ) -> Result<()> {
        let (terms, expression) = (&self.compiled.terms[number], &self.terms[number]);
        let chunks = shape.workspace_of_sums()?;
        let written: Vec<Described> =
            terms.sums().map(|sum| (workspaces[sum], (self.compiled.outputs[sum].dtype, chunks))).collect();
        let mut read: Vec<Described> = Vec::new();
        for input in &terms.operands.inputs {
            let (memory, dtype, layout) = match *input {
                // Terms read no stored values, and the kernel computes the indices of elements.
                PhaseInput::Stored(_) | PhaseInput::Index => continue,
                PhaseInput::Input(index) | PhaseInput::Group(index) => {
                    match index.checked_sub(inputs.len()) {
                        None => (RowMemory::Input(index), inputs[index].0, inputs[index].1),
                        Some(value) => (
                            values[value],
                            self.compiled.values[value].dtype,
                            self.compiled.values[value].layout(shape),
                        ),
                    }
                }
            };
            read.push((memory, (dtype, layout.expand(&shape.elements)?)));
        }
        let is_ampere = capability >= (8, 0);
        let scalars = terms.operands.scalars(&zeros(&self.scalars()), shape);
        if let Some(stages) = &terms.stages {
            let (starts, described) = (vec![0; read.len()], operands_of(&read));
            if let Ok(plan) = self.compiled.plan_terms(stages, shape, &described, &starts, is_ampere) {
                let launch = SumLaunch { key: SumKey::Terms(number, plan.key.clone()), plan };
                let bits = stages.expression.scalar_bits(&scalars)?;
                let launches = RowLaunches::Rows(self.launch_of(launch, &bits, None));
                let name = "sums of chunks".to_owned();
                found.kernels.push(RowKernel::new((phase, name), [&read, &written], launches));
                return Ok(());
            }
        }
        let index = terms.operands.inputs.iter().position(|input| *input == PhaseInput::Index);
        if let (Some(at), Some(of_element_indices)) = (index, &self.element_indices) {
            let element_indices =
                found.add_element_indices((phase, of_element_indices), shape, capability)?;
            read.insert(at, (element_indices.0, (DType::I64, element_indices.1.1.expand(&shape.elements)?)));
        }
        let elements = shape.by_rows(&shape.elements)?;
        let dtypes = expression.outputs().iter();
        let stored: Vec<Described> = dtypes
            .map(|dtype| (found.add_temporary(elements.count() * dtype.size()), (*dtype, elements)))
            .collect();
        let explained = expression.explain_with(&layouts(&read), &layouts(&stored), &scalars, capability)?;
        let name = "terms of the sums".to_owned();
        found.kernels.push(RowKernel::new(
            (phase, name),
            [&read, &stored],
            RowLaunches::Expression(explained),
        ));
        for ((sum, stored), written) in terms.sums().zip(stored).zip(written) {
            let stages = &self.compiled.copies[sum];
            let Ok(plan) = self.compiled.plan_terms(stages, shape, &[stored.1], &[0], is_ampere) else {
                continue;
            };
            let launch = SumLaunch { key: SumKey::Copy(sum, plan.key.clone()), plan };
            let launches = RowLaunches::Rows(self.launch_of(launch, &[], None));
            let name = "sums of chunks of terms".to_owned();
            found.kernels.push(RowKernel::new((phase + 1, name), [&[stored], &[written]], launches));
        }
        Ok(())
    }

    /// Returns the dtypes of the scalars that a run passes.
    fn scalars(&self) -> Vec<DType> {
        match &self.main {
            Some(main) => main.scalars().to_vec(),
            None => self.terms.iter().flat_map(Expression::scalars).collect(),
        }
    }

    /// Describes a launch.
    fn launch_of(&self, launch: SumLaunch, bits: &[[u64; 2]], report: Option<usize>) -> RowLaunch {
        let ptx = self.compiled.text(&launch.key, &launch.plan);
        RowLaunch::new(ptx, launch.plan, bits, report)
    }
}

/// Returns scalars of 0.
fn zeros(dtypes: &[DType]) -> Vec<Number> {
    vec![Number::Integer(0); dtypes.len()]
}
