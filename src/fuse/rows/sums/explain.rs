//! The description of a run with sums over groups.

use super::super::super::number::Number;
use super::super::super::reduce::device::write_scalars;
use super::super::RowProgramState;
use super::super::explain::{RowExplanation, RowKernel, RowLaunch, RowLaunches, distinct_bytes};
use super::super::plan::RowOperands;
use super::super::shape::RowShape;
use super::super::split::PhaseInput;
use super::super::storage::RowDevice;
use super::plan::SumLaunch;
use super::{CHUNK, SumKey, SumsOverGroups};
use crate::error::Result;
use crate::types::{DType, Layout};

impl SumsOverGroups {
    /// Returns the kernels of a run on checked operands.
    ///
    /// # Errors
    ///
    /// The errors of [`RowProgram::explain`](super::RowProgram::explain) for its parts.
    pub(in crate::fuse::rows) fn explain(
        &self,
        shape: &RowShape,
        inputs: &[(DType, Layout)],
        axes: &[isize],
        outputs: &[(DType, Layout)],
        capability: (i32, i32),
    ) -> Result<RowExplanation> {
        let starts = vec![0; inputs.len() + outputs.len()];
        let given = RowOperands { inputs, outputs, starts: &starts };
        let layouts = |of: &[(DType, Layout)]| of.iter().map(|(_, layout)| *layout).collect::<Vec<_>>();
        let groups = Layout::from_shape(shape.groups);
        let chunks = shape.groups.count().div_ceil(CHUNK);
        let widths: usize = self.outputs.iter().map(|output| output.dtype.size()).sum();
        let workspaces = chunks * shape.size * widths;
        let planned = self.plan_fused(shape, &given, RowDevice { capability });
        let mut found = match (planned, &self.fused) {
            (Ok(launch), Some(fused)) => {
                let Ok(stages) = &fused.0.stages else { return self.nothing() };
                let bits = stages
                    .expression
                    .scalar_bits(&stages.operands.scalars(&zeros(fused.scalars()), shape))?;
                let schedule = format!("one kernel and the sums of chunks: {}", launch.plan.key.schedule());
                let numbers = RowProgramState::kernel_inputs(stages);
                let of_own: Vec<(DType, Layout)> = self.own.iter().map(|&at| outputs[at]).collect();
                let kernel = RowKernel {
                    phase: 0,
                    name: format!("{} reductions, all outputs and the sums of chunks", fused.reductions()),
                    bytes_read: numbers.iter().map(|&number| distinct_bytes(&inputs[number])).sum(),
                    bytes_written: of_own.iter().map(distinct_bytes).sum::<usize>() + workspaces,
                    launches: RowLaunches::Rows(self.launch_of(launch, numbers, &bits, stages.report())),
                };
                RowExplanation { schedule, kernels: vec![kernel], temporary: 0 }
            }
            (planned, _) => {
                let reason = planned.err().unwrap_or("no reduction of groups shares it");
                let mut found = match &self.main {
                    Some(main) => {
                        let mut of_main: Vec<Layout> = self.own.iter().map(|&at| outputs[at].1).collect();
                        of_main.resize(of_main.len() + self.values.len(), groups);
                        main.explain(&layouts(inputs), axes, &of_main, capability)?
                    }
                    None => self.nothing()?,
                };
                found.schedule = match found.schedule.as_str() {
                    "" => format!("sums of chunks in a kernel of their own, because {reason}"),
                    main => format!("{main}; sums of chunks in a kernel of their own, because {reason}"),
                };
                found.temporary +=
                    self.values.iter().map(|dtype| groups.count() * dtype.size()).sum::<usize>();
                self.explain_terms(shape, inputs, capability, &mut found)?;
                found
            }
        };
        let phase = found.kernels.iter().map(|kernel| kernel.phase + 1).max().unwrap_or(0);
        found.temporary += workspaces;
        let workspace = SumsOverGroups::workspace(shape)?;
        for (fold, &at) in self.folds.iter().zip(&self.sums) {
            found.kernels.push(RowKernel {
                phase,
                name: "sum of all chunks".to_owned(),
                bytes_read: workspace.count() * outputs[at].0.size(),
                bytes_written: distinct_bytes(&outputs[at]),
                launches: RowLaunches::Reduction(fold.explain(&[workspace], &outputs[at].1, capability)?),
            });
        }
        Ok(found)
    }

    fn nothing(&self) -> Result<RowExplanation> {
        Ok(RowExplanation { schedule: String::new(), kernels: Vec::new(), temporary: 0 })
    }

    /// Adds the kernel of the terms, or those of terms in memory.
    fn explain_terms(
        &self,
        shape: &RowShape,
        inputs: &[(DType, Layout)],
        capability: (i32, i32),
        found: &mut RowExplanation,
    ) -> Result<()> {
        if shape.elements.count() == 0 {
            return Ok(());
        }
        let groups = Layout::from_shape(shape.groups);
        let (mut described, mut numbers, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for input in &self.operands.inputs {
            let operand = match *input {
                // Terms read no stored values.
                PhaseInput::Stored(_) => continue,
                PhaseInput::Index => {
                    all.push(shape.places()?.expand(&shape.elements)?);
                    continue;
                }
                PhaseInput::Input(index) | PhaseInput::Group(index) => {
                    match index.checked_sub(inputs.len()) {
                        None => (inputs[index].0, inputs[index].1.expand(&shape.elements)?, index),
                        Some(value) => (self.values[value], groups.expand(&shape.elements)?, index),
                    }
                }
            };
            described.push((operand.0, operand.1));
            all.push(operand.1);
            numbers.push(operand.2);
        }
        let chunks = shape.groups.count().div_ceil(CHUNK);
        let bytes = |dtype: DType| chunks * shape.size * dtype.size();
        let is_ampere = capability >= (8, 0);
        let given = zeros(&self.scalars());
        let scalars = self.operands.scalars(&given, shape);
        let phase = found.kernels.iter().map(|kernel| kernel.phase + 1).max().unwrap_or(0);
        if let Some(stages) = &self.stages {
            let starts = vec![0; described.len()];
            if let Ok(plan) = self.plan_terms(stages, shape, &described, &starts, is_ampere) {
                let launch = SumLaunch { key: SumKey::Terms(plan.key.clone()), plan };
                let bits = stages.expression.scalar_bits(&scalars)?;
                found.kernels.push(RowKernel {
                    phase,
                    name: "sums of chunks".to_owned(),
                    bytes_read: described.iter().map(distinct_bytes).sum(),
                    bytes_written: self.outputs.iter().map(|output| bytes(output.dtype)).sum(),
                    launches: RowLaunches::Rows(self.launch_of(launch, numbers, &bits, None)),
                });
                return Ok(());
            }
        }
        let elements = SumsOverGroups::by_rows(shape, &shape.elements)?;
        let targets = vec![elements; self.outputs.len()];
        let written: usize = self.outputs.iter().map(|output| elements.count() * output.dtype.size()).sum();
        found.temporary += written;
        found.kernels.push(RowKernel {
            phase,
            name: "terms of the sums".to_owned(),
            bytes_read: described.iter().map(distinct_bytes).sum(),
            bytes_written: written,
            launches: RowLaunches::Expression(self.terms.explain(&all, &targets, capability)?),
        });
        for (sum, stages) in self.copies.iter().enumerate() {
            let operand = (self.outputs[sum].dtype, elements);
            let Ok(plan) = self.plan_terms(stages, shape, &[operand], &[0], is_ampere) else { continue };
            let launch = SumLaunch { key: SumKey::Copy(sum, plan.key.clone()), plan };
            found.kernels.push(RowKernel {
                phase: phase + 1,
                name: "sums of chunks of terms".to_owned(),
                bytes_read: distinct_bytes(&operand),
                bytes_written: bytes(operand.0),
                launches: RowLaunches::Rows(self.launch_of(launch, Vec::new(), &[], None)),
            });
        }
        Ok(())
    }

    /// Returns the dtypes of the scalars that a run passes.
    fn scalars(&self) -> Vec<DType> {
        self.main.as_ref().map_or_else(|| self.terms.scalars().to_vec(), |main| main.scalars().to_vec())
    }

    /// Describes a launch. The inputs past those of the program are values of groups, and workspaces follow the outputs.
    fn launch_of(
        &self,
        launch: SumLaunch,
        inputs: Vec<usize>,
        bits: &[[u64; 2]],
        report: Option<usize>,
    ) -> RowLaunch {
        let ptx = self.text(&launch.key, &launch.plan);
        let mut parameters = launch.plan.block;
        write_scalars(&mut parameters, bits);
        RowLaunch {
            ptx,
            blocks: launch.plan.blocks,
            threads: launch.plan.threads,
            shared: launch.plan.shared,
            cluster: launch.plan.key.cluster as u32,
            inputs,
            offsets: launch.plan.offsets,
            parameters,
            report,
        }
    }
}

/// Returns scalars of 0.
fn zeros(dtypes: &[DType]) -> Vec<Number> {
    vec![Number::Integer(0); dtypes.len()]
}
