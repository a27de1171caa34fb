//! Instructions that few elements need: the slow half of a function, which the others pay one branch for.
//!
//! A function is written for the arguments that occur, with a condition for the few that it is wrong for (a sine's argument
//! past 10^5, a power that overflows) and a body of instructions that gives their results instead. On a device the body
//! is jumped over by threads with no such element, on the CPU by blocks with none. What must stay true: nothing outside
//! of a body sees a value in it but through its results, as it may not have been computed.

use std::ops::Range;

use super::instruction::Kind;
use super::program::{Program, Step, Value};

/// A body of instructions and what its results take the place of.
#[derive(Debug)]
pub(crate) struct Rare {
    pub(crate) condition: Value,
    /// The steps between [`Step::Rare`] and the [`Step::Result`]s.
    pub(crate) body: Range<usize>,
    /// For each result, its value elsewhere and in the body.
    pub(crate) results: Vec<[Value; 2]>,
}

impl Rare {
    /// The steps of the results, which follow the body.
    pub(crate) fn result_steps(&self) -> Range<usize> {
        self.body.end..self.body.end + self.results.len()
    }
}

impl Program {
    /// Begins a body that is run where the condition holds; gives its number for [`close_rare`](Self::close_rare).
    pub(crate) fn open_rare(&mut self, condition: Value) -> u32 {
        let number = self.rares.len() as u32;
        self.steps.push((Step::Rare(number), Kind::Predicate));
        let start = self.steps.len();
        self.rares.push(Rare { condition, body: start..start, results: Vec::new() });
        number
    }

    /// Ends it. For each result there is the value elsewhere and that of the body.
    pub(crate) fn close_rare<const N: usize>(&mut self, number: u32, results: [[Value; 2]; N]) -> [Value; N] {
        let first = self.steps.len();
        let rare = &mut self.rares[number as usize];
        rare.body.end = first;
        for step in &self.steps[rare.body.clone()] {
            // Later steps shall not find it.
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
