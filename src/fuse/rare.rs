//! Rare bodies: instructions that few elements need, such as the slow path of a function. The other elements
//! pay one branch.
//!
//! The main path of a function covers the common arguments. A condition selects the arguments for which it is
//! wrong (a sine's argument beyond 10^5, a power that overflows), and the rare body computes their results.
//! On a device a thread branches around the body if none of its elements needs it; on the CPU a block does.
//!
//! Invariant: nothing outside a body uses a value computed in it except its results, because the body may not
//! have run.

use std::ops::Range;

use super::instruction::RegisterKind;
use super::program::{Program, Step, Value};

/// A body of instructions and the values that its results replace.
#[derive(Debug)]
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
        let number = self.rares.len() as u32;
        self.steps.push((Step::Rare(number), RegisterKind::Predicate));
        let start = self.steps.len();
        self.rares.push(Rare { condition, body: start..start, results: Vec::new() });
        number
    }

    /// Ends the body. Each result has its value on the main path and its value in the body.
    pub(crate) fn close_rare<const N: usize>(&mut self, number: u32, results: [[Value; 2]; N]) -> [Value; N] {
        let first = self.steps.len();
        let rare = &mut self.rares[number as usize];
        rare.body.end = first;
        for step in &self.steps[rare.body.clone()] {
            // Later steps must not reuse it.
            self.known.remove(step);
        }
        for (result, [usual, _]) in results.iter().enumerate() {
            let kind = self.steps[usual.index()].1;
            self.steps.push((Step::Result { rare: number, result: result as u32 }, kind));
        }
        rare.results = results.to_vec();
        std::array::from_fn(|result| Value((first + result) as u32))
    }
}
