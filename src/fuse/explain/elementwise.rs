//! A description of a device run, with the text of its kernels.

use std::fmt;

use crate::error::Result;
use crate::fuse::cpu::backend;
use crate::fuse::cpu::backend::Described;
use crate::fuse::ir::number::Number;
use crate::fuse::plan::elementwise::{AccessPattern, BLOCK, ElementwisePlan, Iteration, KernelKey};
use crate::fuse::plan::space::Space;
use crate::fuse::plan::tile::{Access, Tile};
use crate::fuse::ptx;
use crate::fuse::run::expression::Expression;
use crate::types::{DType, Layout};

/// The result of [`Expression::explain`].
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The launches: one, several if 32-bit arithmetic cannot index all elements, or none for an empty array.
    pub launches: Vec<KernelLaunch>,
    expression: Expression,
    operands: Vec<String>,
}

/// One launch of a run.
#[derive(Debug, Clone)]
pub struct KernelLaunch {
    /// The text of the kernel.
    pub ptx: String,
    /// Blocks of the grid.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// The offset of each operand's first element in its memory, in elements; inputs precede outputs.
    pub offsets: Vec<usize>,
    /// The kernel's last parameter, which follows the operands' addresses. Scalars of a run are 0 in it.
    pub parameters: Vec<u8>,
    plan: String,
}

impl Expression {
    /// Returns the kernels that a run on these layouts would launch on a device of this compute capability,
    /// for memory aligned to 256 bytes. It needs no device.
    ///
    /// # Errors
    ///
    /// The errors of [`run`](Self::run) about layouts.
    pub fn explain(
        &self,
        inputs: &[Layout],
        outputs: &[Layout],
        capability: (i32, i32),
    ) -> Result<Explanation> {
        let scalars = vec![Number::Integer(0); self.0.compiled.run_scalars.len()];
        self.explain_with(inputs, outputs, &scalars, capability)
    }

    /// As [`explain`](Self::explain), with the scalars of the run.
    pub(in crate::fuse) fn explain_with(
        &self,
        inputs: &[Layout],
        outputs: &[Layout],
        scalars: &[Number],
        capability: (i32, i32),
    ) -> Result<Explanation> {
        let compiled = &self.0.compiled;
        compiled.check_counts(inputs.len(), outputs.len())?;
        let scalars = compiled.scalar_bits(scalars)?;
        let dtypes = compiled.operand_dtypes();
        let bytes: Vec<usize> = dtypes.iter().map(|dtype| dtype.size()).collect();
        let addresses = vec![0; bytes.len()];
        let [of_inputs, of_outputs] = [inputs, outputs].map(|layouts| layouts.iter().collect::<Vec<_>>());
        let space = compiled.space(&of_inputs, &of_outputs)?;
        let mut launches = Vec::new();
        let mut each = |part: &Space| {
            if part.count() > 0 {
                let plan = ElementwisePlan::new(part, &bytes, &addresses, &scalars, capability >= (8, 0))?;
                launches.push(KernelLaunch {
                    ptx: ptx::write(compiled, &plan),
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
        operands.extend(compiled.coordinates.iter().map(ToString::to_string));
        Ok(Explanation { launches, expression: self.clone(), operands })
    }
}

impl Explanation {
    /// Returns the listing of the machine code that larger runs on this CPU execute: the bytes of each instruction, with
    /// the instruction of the expression that it belongs to. Returns none if the CPU interprets the expression.
    ///
    /// ```
    /// use selvedge::DType;
    /// use selvedge::fuse::Graph;
    /// use selvedge::types::Layout;
    /// let graph = Graph::new();
    /// let expression = graph.expression(&[graph.input(DType::F32).sqrt()])?;
    /// let layout = Layout::contiguous(&[1000])?;
    /// let explanation = expression.explain(&[layout], &[layout], (9, 0))?;
    /// if let Some(listing) = explanation.cpu_code() {
    ///     assert!(listing.contains("SquareRootFloat32"));
    /// }
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    pub fn cpu_code(&self) -> Option<String> {
        backend::listing(&self.expression.0.compiled, &self.expression.0.cpu_code)
    }
}

fn describe(space: &Space, key: &KernelKey) -> String {
    let iteration = match key.iteration {
        Iteration::Flat => "linear index, adjacent elements".to_owned(),
        Iteration::Apart => "linear index, elements a block apart".to_owned(),
        Iteration::Vectors => "vectors of the innermost dimension".to_owned(),
        Iteration::Tiles(Tile { width, height }) => {
            format!("tiles of {width} along the output, {height} across")
        }
    };
    let name = |pattern: &AccessPattern| match pattern {
        AccessPattern::Constant => "broadcast",
        AccessPattern::Linear => "linear",
        AccessPattern::Row => "broadcast a vector",
        AccessPattern::Gather => "element by element",
        AccessPattern::Staged(Access::Chunks) => "through shared memory, 16 bytes an access",
        AccessPattern::Staged(Access::Singly) => "through shared memory, element by element",
    };
    let access_patterns: Vec<&str> = key.access_patterns.iter().map(name).collect();
    let (lanes, tail) = (key.lanes, if key.tail { ", with a bounds check" } else { "" });
    let lanes_of = if matches!(key.iteration, Iteration::Tiles(_)) {
        "elements a thread and row"
    } else {
        "elements a thread"
    };
    let sizes: Vec<String> = space.sizes.iter().rev().map(ToString::to_string).collect();
    format!(
        "iterates over [{}] by {iteration}: {lanes} {lanes_of}{tail}; access: {}",
        sizes.join(", "),
        access_patterns.join(", ")
    )
}

impl fmt::Display for Explanation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{} instructions on", self.expression.0.compiled.program.steps.len())?;
        for operand in &self.operands {
            writeln!(formatter, "  {operand}")?;
        }
        writeln!(formatter, "cpu: {}", Described(&self.expression.0.compiled, &self.expression.0.cpu_code))?;
        if self.launches.is_empty() {
            writeln!(formatter, "no elements, no launch")?;
        }
        for (index, launch) in self.launches.iter().enumerate() {
            let (blocks, threads) = (launch.blocks, launch.threads);
            writeln!(formatter, "launch {index}: {blocks} blocks of {threads} threads; {}", launch.plan)?;
            // The launches of a run usually share their kernel.
            if index == 0 || self.launches[index - 1].ptx != launch.ptx {
                write!(formatter, "{}", launch.ptx)?;
            }
        }
        Ok(())
    }
}
