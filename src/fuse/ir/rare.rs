//! Rare bodies: instructions that few elements need, such as the slow path of a function. The other elements
//! pay one branch.
//!
//! The main path of a function covers the common arguments. A condition selects the arguments for which it is
//! wrong (a sine's argument beyond 10^5, a power that overflows), and the rare body computes their results.
//! On a device a thread branches around the body if none of its elements needs it; on the CPU a block does.
//!
//! Equal bodies are one: a sine and a cosine of the same number reduce it once.
//!
//! Invariant: nothing outside a body uses a value computed in it except its results, because the body may not
//! have run.

use std::collections::HashMap;
use std::ops::Range;

use super::instruction::{Instruction, RegisterKind};
use super::program::{Program, Step, Value};

/// A body of instructions and the values that its results replace.
#[derive(Debug, Clone)]
pub(crate) struct Rare {
    pub(crate) condition: Value,
    /// The steps between [`Step::Rare`] and the [`Step::Result`]s.
    pub(crate) body: Range<usize>,
    /// For each result, its value on the main path and its value in the body.
    pub(crate) results: Vec<[Value; 2]>,
}

impl Rare {
    /// Returns the steps of the results, which follow the body.
    pub(crate) fn result_steps(&self) -> Range<usize> {
        self.body.end..self.body.end + self.results.len()
    }
}

impl Program {
    /// Begins a body that runs if the condition holds, and returns its number for
    /// [`close_rare`](Self::close_rare).
    pub(crate) fn open_rare(&mut self, condition: Value) -> u32 {
        let rare_index = self.rares.len() as u32;
        self.steps.push((Step::Rare(rare_index), RegisterKind::Predicate));
        let start = self.steps.len();
        self.rares.push(Rare { condition, body: start..start, results: Vec::new() });
        rare_index
    }

    /// Ends the body. Each result has its value on the main path and its value in the body.
    pub(crate) fn close_rare<const N: usize>(
        &mut self,
        rare_index: u32,
        results: [[Value; 2]; N],
    ) -> [Value; N] {
        let first = self.steps.len();
        let rare = &mut self.rares[rare_index as usize];
        rare.body.end = first;
        for step in &self.steps[rare.body.clone()] {
            // Later steps must not reuse it.
            self.known.remove(step);
        }
        rare.results = results.to_vec();
        if let Some(equal) = self.equal_rare(rare_index as usize) {
            let first = self.rares[equal].body.end;
            self.steps.truncate(self.rares[rare_index as usize].body.start - 1);
            self.rares.pop();
            return std::array::from_fn(|result| Value((first + result) as u32));
        }
        for (result, [usual, _]) in results.iter().enumerate() {
            let kind = self.steps[usual.index()].1;
            self.steps.push((Step::Result { rare: rare_index, result: result as u32 }, kind));
        }
        std::array::from_fn(|result| Value((first + result) as u32))
    }

    /// Returns an earlier body outside of all others that computes the same results as the last one.
    fn equal_rare(&self, last: usize) -> Option<usize> {
        let wanted = &self.rares[last];
        if last + 1 != self.rares.len() {
            return None;
        }
        let body = self.canonical(wanted)?;
        (0..last).find(|&rare_index| {
            let rare = &self.rares[rare_index];
            let start = rare.body.start;
            let is_inside =
                |(other, outer): (usize, &Rare)| other != rare_index && outer.body.contains(&start);
            let is_open = |outer: &Rare| outer.results.is_empty();
            rare.condition == wanted.condition
                && !is_open(rare)
                && !self.rares[..last].iter().enumerate().any(is_inside)
                && !self.rares[..last].iter().any(is_open)
                && self.canonical(rare).as_ref() == Some(&body)
        })
    }

    /// Returns a body without the indices of its values and constants. `None` if it contains anything but instructions.
    fn canonical(&self, rare: &Rare) -> Option<CanonicalBody> {
        let mut indices: HashMap<usize, usize> = HashMap::new();
        let of = |indices: &HashMap<usize, usize>, value: Value| match self.steps[value.index()] {
            (Step::Constant(bits), kind) => CanonicalValue::Constant(bits, kind),
            _ => match indices.get(&value.index()) {
                Some(&slot) => CanonicalValue::OfBody(slot),
                None => CanonicalValue::Outside(value),
            },
        };
        let mut instructions = Vec::new();
        for index in rare.body.clone() {
            match self.steps[index].0 {
                Step::Constant(_) => {}
                Step::Apply(instruction, operands) => {
                    instructions.push((instruction, operands.map(|operand| of(&indices, operand))));
                    indices.insert(index, instructions.len() - 1);
                }
                _ => return None,
            }
        }
        let results = rare.results.iter().map(|values| values.map(|value| of(&indices, value)));
        Some(CanonicalBody { results: results.collect(), instructions })
    }
}

/// A body, wherever it is.
#[derive(Debug, PartialEq)]
struct CanonicalBody {
    instructions: Vec<(Instruction, [CanonicalValue; 3])>,
    results: Vec<[CanonicalValue; 2]>,
}

/// A value of a body, wherever the body is.
#[derive(Debug, PartialEq)]
enum CanonicalValue {
    Constant(u64, RegisterKind),
    /// The result of this instruction of the body.
    OfBody(usize),
    Outside(Value),
}
