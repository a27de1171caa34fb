//! The rows, measured in turns. A round's time is that of the fastest block of calls, because other programs may take the core
//! in between.

use std::time::Instant;

use selvedge::tensor::Tensor;

use super::numpy::Numpy;
use super::rows::Row;
use crate::Options;
use crate::harness::machine::Recorder;
use crate::harness::random::Random;
use crate::harness::report::{Failure, Figure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

const ROUNDS: usize = 20;
/// Seconds of a block of calls, which the clock resolves.
const BLOCK: f64 = 20e-6;
/// Seconds of a side's turn.
const TURN: f64 = 3e-3;
/// Blocks of a turn whose calls take longer.
const MIN_BLOCKS: f64 = 3.0;

/// Blocks of calls, one side's turn.
#[derive(Clone, Copy)]
pub struct Blocks {
    pub blocks: usize,
    pub calls: usize,
}

impl Blocks {
    /// The blocks for a call of so many seconds.
    pub fn of(seconds: f64) -> Blocks {
        let seconds = seconds.max(1e-8);
        let calls = (BLOCK / seconds).ceil().max(1.0);
        // The first call finds its operands in memory: the other side had the cache.
        let blocks = (TURN / (calls * seconds)).clamp(MIN_BLOCKS, 64.0);
        Blocks { blocks: blocks as usize, calls: calls as usize }
    }

    /// Seconds of a call in the fastest block.
    pub fn time(self, mut work: impl FnMut() -> selvedge::Result<()>) -> Result<f64, Failure> {
        let mut fastest = f64::INFINITY;
        for _ in 0..self.blocks {
            let start = Instant::now();
            for _ in 0..self.calls {
                work()?;
            }
            fastest = fastest.min(start.elapsed().as_secs_f64() / self.calls as f64);
        }
        Ok(fastest)
    }
}

/// Measures the rows that `rows` makes in turns with NumPy so many times, and records of each row the pass in which both
/// sides together took least. The pass of the best ratio would be one that another program took from NumPy.
pub fn record(
    options: &Options,
    recorder: &mut Recorder,
    numpy: &mut Numpy,
    (passes, rows): (usize, &dyn Fn() -> Vec<Row>),
) -> Result<(), Failure> {
    let mut quietest: Vec<Figure> = Vec::new();
    for pass in 0..passes {
        for (place, row) in rows().iter().enumerate() {
            let figure = measured(options, numpy, row)?;
            match quietest.get_mut(place) {
                None => quietest.push(figure),
                Some(earlier) if total(&figure) < total(earlier) => *earlier = figure,
                Some(_) => {}
            }
        }
        println!("  pass {} of {passes}", pass + 1);
    }
    quietest.into_iter().for_each(|figure| recorder.add(figure));
    Ok(())
}

/// The time of both sides.
fn total(figure: &Figure) -> f64 {
    figure.own.median + figure.reference.median
}

fn measured(options: &Options, numpy: &mut Numpy, row: &Row) -> Result<Figure, Failure> {
    let named = |why: Failure| -> Failure { format!("{}: {why}", row.name).into() };
    let inputs: Vec<_> = row.inputs.iter().map(|input| input.to_json()).collect();
    let theirs = Blocks::of(numpy.prepare(&row.call, &inputs).map_err(named)?);
    let mut random = Random::new(11);
    let tensors = row.inputs.iter().map(|input| input.tensor(&mut random));
    let tensors = tensors.collect::<Result<Vec<Tensor>, Failure>>()?;
    let mut own = || (row.own)(&tensors);
    // The first calls compile, and make the memory that later ones take.
    Blocks { blocks: 2, calls: 1 }.time(&mut own).map_err(named)?;
    let ours = Blocks::of(Blocks { blocks: 2, calls: 1 }.time(&mut own)?);
    turns(
        options.turns(2, ROUNDS),
        &Subject {
            name: &row.name,
            against: &format!("`{}`", shown(&row.call)),
            unit: Unit::Microseconds,
            bytes: None,
            rule: Rule::Time,
            goal: Some(row.goal),
        },
        || Ok(ours.time(&mut own)? * 1e6),
        || Ok(numpy.time(theirs.blocks, theirs.calls)? * 1e6),
    )
}

/// The call without the folder of a file.
fn shown(call: &str) -> String {
    match (call.find('"'), call.rfind('/')) {
        (Some(quote), Some(slash)) if quote < slash => format!("{}{}", &call[..=quote], &call[slash + 1..]),
        _ => call.to_owned(),
    }
}
