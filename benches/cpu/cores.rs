//! Functions on two cores beside the same on one, and a sort on two beside NumPy's on one.

use selvedge::set_threads;
use selvedge::tensor::Tensor;

use super::numpy::Numpy;
use super::passes::Blocks;
use super::rows::{Row, functions, sort};
use crate::Options;
use crate::harness::machine::Recorder;
use crate::harness::program::is_wanted;
use crate::harness::random::Random;
use crate::harness::report::{Failure, Figure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

const COUNT: usize = 1 << 24;
const ROUNDS: usize = 20;
const GOAL: f64 = 1.8;

/// Each function with two threads and with one.
pub fn measure(options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::on_host(
        "cpu_cores",
        "Functions on two cores of the CPU",
        "A function of 2^24 random elements with two threads, beside the same with one thread. Nothing is pinned. The sort of \
         10^7 elements is beside NumPy's, which takes one core. A side's time of a round is that of its fastest call of \
         several. The machine ran other programs meanwhile, which take most from the side of two threads.",
    );
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return Err("two cores are wanted".into());
    }
    let mut random = Random::new(11);
    for Row { name, inputs, own, .. } in functions(COUNT).into_iter().filter(|row| is_wanted(&row.name)) {
        let tensors = inputs.iter().map(|input| input.tensor(&mut random));
        let tensors = tensors.collect::<Result<Vec<Tensor>, Failure>>()?;
        let with = |threads: usize| {
            set_threads(threads);
            Ok(Blocks { blocks: 4, calls: 1 }.time(|| own(&tensors))? * 1e3)
        };
        let subject = Subject {
            name: &name,
            against: "one thread",
            unit: Unit::Milliseconds,
            bytes: None,
            rule: Rule::Speed,
            goal: Some(GOAL),
        };
        recorder.add(turns(options.turns(2, ROUNDS), &subject, || with(2), || with(1))?);
    }
    let row = sort();
    if is_wanted(&row.name) {
        set_threads(2);
        match Numpy::start() {
            Ok(numpy) => recorder.add(sort_beside_numpy(options, row, numpy, &mut random)?),
            Err(why) => recorder.skip(format!("{}: {why}.", row.name)),
        }
    }
    set_threads(0);
    recorder.finish(&options.out)
}

fn sort_beside_numpy(
    options: &Options,
    Row { name, goal, inputs, call, own }: Row,
    mut numpy: Numpy,
    random: &mut Random,
) -> Result<Figure, Failure> {
    let described: Vec<_> = inputs.iter().map(|input| input.to_json()).collect();
    numpy.prepare(&call, &described)?;
    let tensors = inputs.iter().map(|input| input.tensor(random));
    let tensors = tensors.collect::<Result<Vec<Tensor>, Failure>>()?;
    let subject = Subject {
        name: &name,
        against: &format!("`{call}` of {}", numpy.library),
        unit: Unit::Milliseconds,
        bytes: None,
        rule: Rule::Speed,
        goal: Some(goal),
    };
    let blocks = Blocks { blocks: 2, calls: 1 };
    let theirs = || Ok(numpy.time(blocks.blocks, blocks.calls)? * 1e3);
    turns(options.turns(2, ROUNDS), &subject, || Ok(blocks.time(|| own(&tensors))? * 1e3), theirs)
}
