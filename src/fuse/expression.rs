//! [`Expression`], a graph made ready to run: checked, lowered once, and with the kernels that were made of it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use super::coordinate::Coordinate;
use super::device::Cached;
use super::graph::{Node, Nodes, Place};
use super::host::Schedule;
use super::instruction::Instruction;
use super::lower::cast::cast;
use super::lower::{normal, random};
use super::number::Number;
use super::operation::{Operation, Parts};
use super::plan::Key;
use super::planned::Plans;
use super::program::{Program, Step, kind_of, parts};
use crate::error::{Error, Result};
use crate::types::DType;

/// The most inputs, scalars, coordinates and outputs together: a kernel's parameters are few kilobytes.
const MOST_OPERANDS: usize = 64;

/// The most instructions: past it a kernel is slow to assemble, and no faster than two.
const MOST_INSTRUCTIONS: usize = 20_000;

/// An elementwise computation of any number of inputs and outputs: one kernel, on a device or the CPU.
///
/// Cheap to clone; clones share the kernels that were assembled. Made by [`Graph::expression`](super::Graph::expression).
#[derive(Clone)]
pub struct Expression(pub(crate) Arc<State>);

/// What every run looks at comes first.
#[repr(C)]
pub(crate) struct State {
    pub(crate) inputs: Vec<DType>,
    pub(crate) outputs: Vec<DType>,
    /// The scalars that each run is given: their numbers and dtypes.
    pub(crate) given: Vec<(usize, DType)>,
    pub(crate) plans: Plans,
    /// True where a comparison of integers with a given scalar works by value only where the scalar is a literal.
    pub(crate) compares_by_value: bool,
    /// Dtypes of scalars; literals have their values.
    pub(crate) scalars: Vec<(DType, Option<Number>)>,
    pub(crate) coordinates: Vec<Coordinate>,
    pub(crate) program: Program,
    pub(crate) schedule: Schedule,
    /// What other plans found, by device.
    pub(crate) kernels: Mutex<HashMap<(usize, Key), Cached>>,
}

impl Expression {
    pub(crate) fn new(nodes: &Nodes, outputs: &[Place]) -> Result<Expression> {
        const OPERATION: &str = "an expression";
        if outputs.is_empty() {
            return Err(Error::invalid(OPERATION, "no outputs", "at least one"));
        }
        let arrays = nodes.inputs.len() + outputs.len();
        let operands = arrays + nodes.scalars.len() + nodes.coordinates.len();
        if operands > MOST_OPERANDS {
            let found = format!("{operands} inputs, numbers, indices and outputs");
            return Err(Error::invalid(OPERATION, found, format!("at most {MOST_OPERANDS}")));
        }
        if let Some((dtype, _)) = nodes.scalars.iter().find(|(dtype, _)| dtype.is_storage_only()) {
            return Err(Error::invalid(
                OPERATION,
                format!("a scalar of {dtype}"),
                "one of f32, cast where it is used",
            ));
        }
        let needed = needed(nodes, outputs);
        for (&(node, dtype), _) in nodes.nodes.iter().zip(&needed).filter(|(_, needed)| **needed) {
            let Node::Scalar(index) = node else { continue };
            if let (_, Some(number)) = nodes.scalars[index as usize] {
                number.check(OPERATION, dtype)?;
            }
        }
        let mut program = Program::default();
        let mut lowered: Vec<Option<Parts>> = Vec::with_capacity(nodes.nodes.len());
        // Equal instructions stand there once anyway; equal bodies that few elements need would not.
        let mut known: HashMap<(Operation, DType, Vec<Parts>), Parts> = HashMap::new();
        for (&(node, dtype), needed) in nodes.nodes.iter().zip(needed) {
            // Operands stand before their users, so what is needed is there.
            let at = |place: Place| lowered.get(place as usize).copied().flatten();
            let value = match (needed, node) {
                (false, _) => None,
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
                (true, Node::Normal(place)) => {
                    at(place).map(|bits| [normal::normal(&mut program, bits[0]); 2])
                }
                (true, Node::Permute(places)) => match places.map(at) {
                    [Some(x), Some(y), Some(z)] => {
                        Some([program.apply(Instruction::Permute64, &[x[0], y[0], z[0]]); 2])
                    }
                    _ => None,
                },
                (true, Node::Cast(place)) => {
                    let from = nodes.nodes[place as usize].1;
                    at(place).map(|parts| cast(&mut program, from, dtype, parts))
                }
                (true, Node::Apply(operation, places)) => {
                    let last = nodes.nodes[places[operation.arity() - 1] as usize].1;
                    match places.map(at) {
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
            if program.steps.len() > MOST_INSTRUCTIONS {
                let found = format!("more than {MOST_INSTRUCTIONS} instructions");
                return Err(Error::invalid(OPERATION, found, "several smaller expressions"));
            }
        }
        program.outputs = outputs.iter().filter_map(|&place| lowered[place as usize]).collect();
        if let Some((name, kind)) = program.missing {
            let found = format!("'{name}' of {kind:?}");
            return Err(Error::invalid(
                OPERATION,
                found,
                "an instruction that exists (this is a defect of the library)",
            ));
        }
        let dtypes = outputs.iter().map(|&place| nodes.nodes[place as usize].1).collect();
        let scalars = nodes.scalars.iter().enumerate();
        let given = scalars.filter(|(_, (_, literal))| literal.is_none());
        let given = given.map(|(index, (dtype, _))| (index, *dtype)).collect();
        Ok(Expression(Arc::new(State {
            schedule: Schedule::new(&program),
            program,
            inputs: nodes.inputs.clone(),
            outputs: dtypes,
            scalars: nodes.scalars.clone(),
            given,
            compares_by_value: nodes.compares_by_value,
            coordinates: nodes.coordinates.clone(),
            plans: Plans::new(),
            kernels: Mutex::default(),
        })))
    }

    /// The dtypes of the inputs.
    pub fn inputs(&self) -> &[DType] {
        &self.0.inputs
    }

    /// The dtypes of the scalars that a run is given.
    pub fn scalars(&self) -> Vec<DType> {
        self.0.given.iter().map(|(_, dtype)| *dtype).collect()
    }

    /// Returns whether a scalar that a run gives is compared with integers, which is by its value only where it is a literal.
    #[inline]
    pub(crate) fn compares_by_value(&self) -> bool {
        self.0.compares_by_value
    }

    /// The dtypes of the outputs.
    #[inline]
    pub fn outputs(&self) -> &[DType] {
        &self.0.outputs
    }
}

impl State {
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] for another number of scalars than each run is given, and [`Error::InvalidArgument`] for
    /// one that its dtype does not hold.
    #[inline]
    pub(crate) fn check_scalars(&self, given: &[Number]) -> Result<()> {
        const OPERATION: &str = "an expression's scalars";
        let (wanted, found) = (self.given.len(), given.len());
        if found != wanted {
            return Err(Error::LengthMismatch { operation: OPERATION, wanted, found });
        }
        let mut pairs = given.iter().zip(&self.given);
        pairs.try_for_each(|(number, &(_, dtype))| number.check(OPERATION, dtype))
    }

    /// The bits of all scalars' parts, with those that a run gives filled in.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] for another number of them.
    pub(crate) fn scalar_bits(&self, given: &[Number]) -> Result<Vec<[u64; 2]>> {
        self.check_scalars(given)?;
        let mut given = given.iter();
        let mut number = |literal: Option<Number>| literal.or_else(|| given.next().copied());
        Ok(self
            .scalars
            .iter()
            .map(|&(dtype, literal)| number(literal).map_or([0; 2], |number| number.parts(dtype)))
            .collect())
    }
}

/// Which nodes the outputs reach.
fn needed(nodes: &Nodes, outputs: &[Place]) -> Vec<bool> {
    let mut needed = vec![false; nodes.nodes.len()];
    for &place in outputs {
        needed[place as usize] = true;
    }
    for (index, (node, _)) in nodes.nodes.iter().enumerate().rev() {
        match node {
            Node::Cast(place) | Node::Normal(place) if needed[index] => needed[*place as usize] = true,
            Node::Apply(_, places) | Node::Permute(places) if needed[index] => {
                for place in places {
                    needed[*place as usize] = true;
                }
            }
            Node::Random(_, scalars) if needed[index] => {
                for place in scalars {
                    needed[*place as usize] = true;
                }
            }
            _ => {}
        }
    }
    needed
}

fn source(program: &mut Program, dtype: DType, step: impl Fn(u32) -> Step) -> Parts {
    let first = program.step(step(0), kind_of(dtype));
    if parts(dtype) == 1 { [first, first] } else { [first, program.step(step(1), kind_of(dtype))] }
}

impl fmt::Debug for Expression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |dtypes: &[DType]| dtypes.iter().map(|dtype| dtype.name()).collect::<Vec<_>>().join(", ");
        write!(formatter, "Expression({} -> {})", names(self.inputs()), names(self.outputs()))
    }
}
