//! What a run on a device would do, in words and as text.

use std::fmt;

use super::expression::Expression;
use super::plan::{BLOCK, Class, Key, Plan, Walk};
use super::ptx;
use super::space::Space;
use super::tile::{Access, Tile};
use crate::error::Result;
use crate::types::{DType, Layout};

/// What [`Expression::explain`] found.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// One launch; several where there are more elements than 32-bit arithmetic holds; none where there are no elements.
    pub launches: Vec<KernelLaunch>,
    instructions: usize,
    operands: Vec<String>,
}

/// One launch of a run.
#[derive(Debug, Clone)]
pub struct KernelLaunch {
    /// The kernel's text.
    pub ptx: String,
    /// Blocks of the grid.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Where each operand's first element lies in its memory, in elements; inputs before outputs.
    pub offsets: Vec<usize>,
    /// The kernel's last parameter, behind the operands' addresses; scalars that a run is given are 0.
    pub parameters: Vec<u8>,
    plan: String,
}

impl Expression {
    /// The kernels that a run on layouts like these would launch, on a device of this compute capability, with memory
    /// that starts at multiples of 256 bytes. Needs no device.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run) has for layouts.
    pub fn explain(
        &self,
        inputs: &[Layout],
        outputs: &[Layout],
        capability: (i32, i32),
    ) -> Result<Explanation> {
        let state = &self.0;
        state.check_counts(inputs.len(), outputs.len())?;
        let scalars: Vec<[u64; 2]> = state
            .scalars
            .iter()
            .map(|&(dtype, literal)| literal.map_or([0; 2], |number| number.parts(dtype)))
            .collect();
        let dtypes = state.operand_dtypes();
        let bytes: Vec<usize> = dtypes.iter().map(|dtype| dtype.size()).collect();
        let addresses = vec![0; bytes.len()];
        let space = Space::new(inputs, outputs, &state.coordinates)?;
        let mut launches = Vec::new();
        let mut each = |part: &Space| {
            if part.count() > 0 {
                let plan = Plan::new(part, &bytes, &addresses, &scalars, capability >= (8, 0))?;
                let text =
                    ptx::write(&state.program, &dtypes, state.inputs.len(), &plan.key, plan.parameters);
                launches.push(KernelLaunch {
                    ptx: text,
                    blocks: plan.blocks,
                    threads: BLOCK,
                    offsets: part.offsets[..bytes.len()].to_vec(),
                    parameters: plan.block,
                    plan: describe(part, &plan.key),
                });
            }
            Ok(())
        };
        space.try_for_each_small(&mut each)?;
        let name = |(index, (dtype, layout)): (usize, (&DType, &Layout))| {
            let side = if index < inputs.len() { "input" } else { "output" };
            format!("{side} {dtype} {layout:?}")
        };
        let mut operands: Vec<String> =
            dtypes.iter().zip(inputs.iter().chain(outputs)).enumerate().map(name).collect();
        operands.extend(state.coordinates.iter().map(ToString::to_string));
        Ok(Explanation { launches, instructions: state.program.steps.len(), operands })
    }
}

fn describe(space: &Space, key: &Key) -> String {
    let walk = match key.walk {
        Walk::Flat => "neighbours by the linear index".to_owned(),
        Walk::Apart => "elements a block apart by the linear index".to_owned(),
        Walk::Vectors => "vectors of the innermost dimension, decoded once each".to_owned(),
        Walk::Tiles(Tile { width, height }) => format!("tiles of {width} along the output, {height} across"),
    };
    let class = |class: &Class| match class {
        Class::Constant => "one element",
        Class::Linear => "in line",
        Class::Row => "one element a vector",
        Class::Gather => "element by element",
        Class::Staged(Access::Chunks) => "through shared memory, 16 bytes an access",
        Class::Staged(Access::Singly) => "through shared memory, element by element",
    };
    let classes: Vec<&str> = key.classes.iter().map(class).collect();
    let (lanes, tail) = (key.lanes, if key.tail { ", with a guard" } else { "" });
    let in_turn = if matches!(key.walk, Walk::Tiles(_)) { "a thread and row" } else { "a thread" };
    let sizes: Vec<String> = space.sizes.iter().rev().map(ToString::to_string).collect();
    format!(
        "walks [{}] in {walk}: {lanes} {in_turn}{tail}; operands are read {}",
        sizes.join(", "),
        classes.join(", ")
    )
}

impl fmt::Display for Explanation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{} instructions on", self.instructions)?;
        for operand in &self.operands {
            writeln!(formatter, "  {operand}")?;
        }
        if self.launches.is_empty() {
            writeln!(formatter, "no elements, no launch")?;
        }
        for (index, launch) in self.launches.iter().enumerate() {
            let (blocks, threads) = (launch.blocks, launch.threads);
            writeln!(formatter, "launch {index}: {blocks} blocks of {threads} threads; {}", launch.plan)?;
            // Parts of one run mostly share their kernel.
            if index == 0 || self.launches[index - 1].ptx != launch.ptx {
                write!(formatter, "{}", launch.ptx)?;
            }
        }
        Ok(())
    }
}
