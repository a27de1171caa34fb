//! [`CompiledExpression`], a checked and lowered graph, and the checks of a run's operands.

use std::collections::HashMap;

use super::elementwise::OPERATION;
use super::register_allocation::RegisterAllocation;
use super::space::Space;
use crate::error::{Error, Result};
use crate::fuse::ir::coordinate::Coordinate;
use crate::fuse::ir::instruction::Instruction;
use crate::fuse::ir::number::Number;
use crate::fuse::ir::program::{Program, Step, ValueParts, kind_of, parts};
use crate::fuse::language::graph::{Expr, Graph, Nodes};
use crate::fuse::language::lower::cast::cast;
use crate::fuse::language::lower::{elementary, normal, random};
use crate::fuse::language::node::{Node, NodeIndex, needed};
use crate::fuse::language::operation::Operation;
use crate::types::{DType, Layout};

/// The largest number of inputs, scalars, coordinates and outputs together, which bounds the kernel's
/// parameters.
pub(in crate::fuse) const MAX_OPERANDS: usize = 64;

/// The largest number of instructions. A longer kernel assembles slowly and is no faster than two kernels.
pub(in crate::fuse) const MAX_INSTRUCTIONS: usize = 20_000;

/// An elementwise computation of any number of inputs and outputs, without the caches of its runs. The fields that every run
/// reads come first.
#[repr(C)]
pub(in crate::fuse) struct CompiledExpression {
    pub(in crate::fuse) inputs: Vec<DType>,
    pub(in crate::fuse) outputs: Vec<DType>,
    /// The scalars that each run passes: their indices and dtypes.
    pub(in crate::fuse) run_scalars: Vec<(usize, DType)>,
    /// True if an integer is compared with a real scalar that each run passes. Such a comparison is by value
    /// only for a literal.
    pub(in crate::fuse) compares_by_value: bool,
    /// The dtypes of the scalars, and the values of the literals.
    pub(in crate::fuse) scalars: Vec<(DType, Option<Number>)>,
    pub(in crate::fuse) coordinates: Vec<Coordinate>,
    /// The inputs that random words take their seed and offset from.
    stream_inputs: Vec<usize>,
    pub(in crate::fuse) program: Program,
    pub(in crate::fuse) allocation: RegisterAllocation,
}

impl CompiledExpression {
    /// Compiles the expression that computes outputs of a graph.
    ///
    /// # Errors
    ///
    /// As [`Graph::expression`].
    pub(in crate::fuse) fn of(graph: &Graph, outputs: &[Expr<'_>]) -> Result<CompiledExpression> {
        let outputs = graph.checked("an expression", outputs)?;
        CompiledExpression::new(&graph.0.borrow(), &outputs)
    }

    pub(in crate::fuse) fn new(nodes: &Nodes, outputs: &[NodeIndex]) -> Result<CompiledExpression> {
        const OPERATION: &str = "an expression";
        if outputs.is_empty() {
            return Err(Error::invalid(OPERATION, "no outputs", "at least one"));
        }
        let arrays = nodes.inputs.len() + outputs.len();
        let operands = arrays + nodes.scalars.len() + nodes.coordinates.len();
        if operands > MAX_OPERANDS {
            let found = format!("{operands} inputs, scalars, coordinates and outputs together");
            return Err(Error::invalid(OPERATION, found, format!("at most {MAX_OPERANDS}")));
        }
        if let Some((dtype, _)) = nodes.scalars.iter().find(|(dtype, _)| dtype.is_storage_only()) {
            return Err(Error::invalid(
                OPERATION,
                format!("a scalar of {dtype}"),
                "a scalar of f32, cast at its use",
            ));
        }
        let needed = needed(nodes, outputs, |_| false);
        for (&(node, _), _) in nodes.nodes.iter().zip(&needed).filter(|(_, needed)| **needed) {
            if node.is_of_groups() {
                let wanted = "elementwise operations only; compile it with Graph::row_program";
                return Err(Error::invalid(OPERATION, "a reduction over groups", wanted));
            }
        }
        for (&(node, dtype), _) in nodes.nodes.iter().zip(&needed).filter(|(_, needed)| **needed) {
            let Node::Scalar(index) = node else { continue };
            if let (_, Some(number)) = nodes.scalars[index as usize] {
                number.check(OPERATION, dtype)?;
            }
        }
        let stream_inputs = nodes.stream_inputs(&needed);
        let mut program = Program::default();
        let mut lowered: Vec<Option<ValueParts>> = Vec::with_capacity(nodes.nodes.len());
        // `step` merges equal instructions outside rare bodies. This map merges equal operations, which keeps
        // equal bodies from repeating.
        let mut known: HashMap<(Operation, DType, Vec<ValueParts>), ValueParts> = HashMap::new();
        for (&(node, dtype), needed) in nodes.nodes.iter().zip(needed) {
            // Operands precede their users, so needed values exist.
            let at = |node: NodeIndex| lowered.get(node as usize).copied().flatten();
            let value = match (needed, node) {
                (false, _)
                | (true, Node::Group(..) | Node::GroupSize | Node::GroupIndex | Node::SumOverGroups(_)) => {
                    None
                }
                (true, Node::Input(input)) => {
                    Some(source(&mut program, dtype, |part| Step::Load { input, part }))
                }
                (true, Node::Scalar(index)) => {
                    Some(source(&mut program, dtype, |part| Step::Parameter { index, part }))
                }
                (true, Node::Coordinate(index)) => {
                    let operand = arrays as u32 + index;
                    Some(source(&mut program, dtype, |_| Step::Coordinate { operand }))
                }
                (true, Node::Random([index, words, number], [seed, offset])) => {
                    match (at(seed), at(offset)) {
                        (Some(seed), Some(offset)) => {
                            let operand = arrays as u32 + index;
                            let stream = [seed[0], offset[0]];
                            Some([random::number(&mut program, dtype, operand, words, number, stream); 2])
                        }
                        _ => None,
                    }
                }
                (true, Node::Normal(node)) => at(node).map(|bits| [normal::normal(&mut program, bits[0]); 2]),
                (true, Node::PowerUpToOne(node)) => {
                    at(node).map(|parts| elementary::exponential_up_to_one(&mut program, dtype, &[parts]))
                }
                (true, Node::Permute(operand_nodes)) => match operand_nodes.map(at) {
                    [Some(x), Some(y), Some(z)] => {
                        Some([program.apply(Instruction::Permute64, &[x[0], y[0], z[0]]); 2])
                    }
                    _ => None,
                },
                (true, Node::Cast(node)) => {
                    let from = nodes.nodes[node as usize].1;
                    at(node).map(|parts| cast(&mut program, from, dtype, parts))
                }
                (true, Node::Apply(operation, operand_nodes)) => {
                    let last = nodes.nodes[operand_nodes[operation.arity() - 1] as usize].1;
                    match operand_nodes.map(at) {
                        [Some(x), Some(y), Some(z)] => {
                            let operands = &[x, y, z][..operation.arity()];
                            let lower = || (operation.lowering(last))(&mut program, last, operands);
                            Some(*known.entry((operation, last, operands.to_vec())).or_insert_with(lower))
                        }
                        _ => None,
                    }
                }
            };
            lowered.push(value);
            if program.steps.len() > MAX_INSTRUCTIONS {
                let found = format!("more than {MAX_INSTRUCTIONS} instructions");
                return Err(Error::invalid(OPERATION, found, "several smaller expressions"));
            }
        }
        program.outputs = outputs.iter().filter_map(|&node| lowered[node as usize]).collect();
        if let Some((name, kind)) = program.missing {
            let found = format!("'{name}' of {kind:?}");
            return Err(Error::invalid(
                OPERATION,
                found,
                "an existing instruction; report this as a defect of selvedge",
            ));
        }
        let dtypes = outputs.iter().map(|&node| nodes.nodes[node as usize].1).collect();
        let scalars = nodes.scalars.iter().enumerate();
        let given = scalars.filter(|(_, (_, literal))| literal.is_none());
        let given = given.map(|(index, (dtype, _))| (index, *dtype)).collect();
        Ok(CompiledExpression {
            allocation: RegisterAllocation::new(&program),
            program,
            inputs: nodes.inputs.clone(),
            outputs: dtypes,
            scalars: nodes.scalars.clone(),
            run_scalars: given,
            compares_by_value: nodes.compares_by_value,
            coordinates: nodes.coordinates.clone(),
            stream_inputs,
        })
    }

    /// Returns whether an output depends on an input.
    pub(in crate::fuse) fn reads(&self, input: usize) -> bool {
        let program = &self.program;
        let live = program.live(program.outputs.iter().flatten().copied());
        let reads = |step: &Step| matches!(step, Step::Load { input: read, .. } if *read as usize == input);
        program.steps.iter().zip(live).any(|((step, _), is_live)| is_live && reads(step))
    }

    /// Returns the space of a run.
    ///
    /// # Errors
    ///
    /// As [`Space::new`], and [`Error::InvalidArgument`] for a seed or an offset of other than one element: a
    /// thread computes the random words of neighbours together.
    pub(in crate::fuse) fn space(&self, inputs: &[&Layout], outputs: &[&Layout]) -> Result<Space> {
        check_stream_inputs(&self.stream_inputs, |input| inputs.get(input).copied())?;
        Space::new(inputs, outputs, &self.coordinates)
    }

    /// Checks the scalars of a run.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] for another number of scalars, and [`Error::InvalidArgument`] for a scalar
    /// that its dtype does not hold.
    #[inline]
    pub(in crate::fuse) fn check_scalars(&self, given: &[Number]) -> Result<()> {
        const OPERATION: &str = "an expression's scalars";
        let (wanted, found) = (self.run_scalars.len(), given.len());
        if found != wanted {
            return Err(Error::LengthMismatch { operation: OPERATION, wanted, found });
        }
        let mut pairs = given.iter().zip(&self.run_scalars);
        pairs.try_for_each(|(number, &(_, dtype))| number.check(OPERATION, dtype))
    }

    /// Returns the bits of the parts of all scalars, with those of the run filled in.
    ///
    /// # Errors
    ///
    /// As [`check_scalars`](Self::check_scalars).
    pub(in crate::fuse) fn scalar_bits(&self, given: &[Number]) -> Result<Vec<[u64; 2]>> {
        self.check_scalars(given)?;
        let mut given = given.iter();
        let mut number = |literal: Option<Number>| literal.or_else(|| given.next().copied());
        Ok(self
            .scalars
            .iter()
            .map(|&(dtype, literal)| number(literal).map_or([0; 2], |number| number.parts(dtype)))
            .collect())
    }

    /// Checks the numbers of inputs and outputs.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] if either differs from the expression's.
    pub(in crate::fuse) fn check_counts(&self, inputs: usize, outputs: usize) -> Result<()> {
        if inputs == self.inputs.len() && outputs == self.outputs.len() {
            return Ok(());
        }
        for (operation, wanted, found) in [
            ("an expression's inputs", self.inputs.len(), inputs),
            ("an expression's outputs", self.outputs.len(), outputs),
        ] {
            if wanted != found {
                return Err(Error::LengthMismatch { operation, wanted, found });
            }
        }
        Ok(())
    }

    /// Checks the dtypes of the operands.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] if one differs from the expression's.
    pub(in crate::fuse) fn check_dtypes(&self, found: impl Iterator<Item = DType>) -> Result<()> {
        for (index, (wanted, found)) in self.inputs.iter().chain(&self.outputs).zip(found).enumerate() {
            if *wanted != found {
                return Err(self.dtype_error(index, *wanted, found));
            }
        }
        Ok(())
    }

    #[cold]
    fn dtype_error(&self, index: usize, wanted: DType, found: DType) -> Error {
        let wanted = match index.checked_sub(self.inputs.len()) {
            None => format!("{wanted} for input {index}"),
            Some(output) => format!("{wanted} for output {output}"),
        };
        Error::DTypeMismatch { operation: OPERATION, wanted, found: found.to_string() }
    }

    /// Returns the dtypes of the operands, inputs before outputs.
    pub(in crate::fuse) fn operand_dtypes(&self) -> Vec<DType> {
        self.inputs.iter().chain(&self.outputs).copied().collect()
    }
}

/// Checks inputs that are seeds or offsets of random words.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for one of other than one element.
pub(in crate::fuse) fn check_stream_inputs<'a>(
    stream_inputs: &[usize],
    layout_of: impl Fn(usize) -> Option<&'a Layout>,
) -> Result<()> {
    for &input in stream_inputs {
        if let Some(layout) = layout_of(input).filter(|layout| layout.count() != 1) {
            let found = format!("input {input} of shape {} as a seed or an offset", layout.shape());
            return Err(Error::invalid("random words", found, "one element"));
        }
    }
    Ok(())
}

fn source(program: &mut Program, dtype: DType, step: impl Fn(u32) -> Step) -> ValueParts {
    let first = program.step(step(0), kind_of(dtype));
    if parts(dtype) == 1 { [first, first] } else { [first, program.step(step(1), kind_of(dtype))] }
}
