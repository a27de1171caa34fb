//! Elementary functions beside results of higher precision (`tests/data/fuse/functions.txt`): within the stated error.

use libtest_mimic::Trial;
use selvedge::fuse::{Graph, HostInput, HostOutput, Operation};
use selvedge::types::{Element, Layout};

const VECTORS: &str = include_str!("../data/fuse/functions.txt");

/// Argument and result, as the sum of two numbers.
type Point = (f64, f64, f64);

fn points(name: &str, dtype: &str) -> Vec<Point> {
    let number =
        |word: Option<&str>| f64::from_bits(u64::from_str_radix(word.expect("a word"), 16).expect("bits"));
    VECTORS
        .lines()
        .filter_map(|line| line.strip_prefix(&format!("{name} {dtype} ")))
        .map(|line| {
            let mut words = line.split(' ').map(Some);
            let mut next = || number(words.next().flatten());
            (next(), next(), next())
        })
        .collect()
}

/// The operations that the file has.
fn operations() -> Vec<Operation> {
    Operation::ALL.iter().copied().filter(|operation| !points(operation.name(), "f64").is_empty()).collect()
}

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![Trial::test("vectors::every_inexact_function_has_some", || {
        let without: Vec<&str> = Operation::ALL
            .iter()
            .filter(|operation| operation.ulp() > 0 && !operations().contains(operation))
            .map(|operation| operation.name())
            .collect();
        // These three are held against f64 arithmetic in their own trials.
        assert_eq!(without, ["abs", "rsqrt", "hypot"]);
        Ok(())
    })];
    for operation in operations() {
        for dtype in ["f32", "f64"] {
            trials.push(Trial::test(format!("vectors::{}::{dtype}", operation.name()), move || {
                let points = points(operation.name(), dtype);
                assert!(points.len() > 300, "{} points", points.len());
                let (worst, at) = if dtype == "f32" {
                    worst::<f32>(operation, &points)
                } else {
                    worst::<f64>(operation, &points)
                };
                println!("{} {dtype}: {worst:.3} ulp at {at:e}", operation.name());
                assert!(worst <= f64::from(operation.ulp()), "{worst} units in the last place at {at:e}");
                Ok(())
            }));
        }
    }
    trials
}

trait Float: Element {
    const BITS: i32;
    const SMALLEST: f64;
    const LARGEST: f64;
    fn of(x: f64) -> Self;
    fn wide(self) -> f64;
}

impl Float for f32 {
    const BITS: i32 = 24;
    const SMALLEST: f64 = 1.401_298_464_324_817e-45;
    const LARGEST: f64 = f32::MAX as f64;
    fn of(x: f64) -> f32 {
        x as f32
    }
    fn wide(self) -> f64 {
        self.into()
    }
}

impl Float for f64 {
    const BITS: i32 = 53;
    const SMALLEST: f64 = 5e-324;
    const LARGEST: f64 = f64::MAX;
    fn of(x: f64) -> f64 {
        x
    }
    fn wide(self) -> f64 {
        self
    }
}

/// The largest error in units in the last place of the result, and where it is.
fn worst<T: Float>(operation: Operation, points: &[Point]) -> (f64, f64) {
    let graph = Graph::new();
    let x = graph.input(T::DTYPE);
    let expression = graph.expression(&[x.operation(operation, &[])]).expect("an expression");
    let arguments: Vec<T> = points.iter().map(|(x, ..)| T::of(*x)).collect();
    let mut results = arguments.clone();
    let layout = Layout::contiguous(&[points.len()]).expect("a layout");
    let input = HostInput::new(&arguments, layout).expect("an input");
    let output = HostOutput::new(&mut results, layout).expect("an output");
    expression.run_host(&[input], &[], &mut [output]).expect("a run");
    let mut worst = (0.0, f64::NAN);
    for ((x, high, rest), found) in points.iter().zip(results) {
        let found = found.wide();
        // Past the largest number by half a unit it is infinite.
        if found.is_infinite() && high.abs() >= T::LARGEST && found.signum() == high.signum() {
            continue;
        }
        let exponent =
            if high.abs() < f64::MIN_POSITIVE { -1022 } else { (high.abs().to_bits() >> 52) as i32 - 1023 };
        let unit = if *high == 0.0 {
            T::SMALLEST
        } else {
            f64::from(exponent + 1 - T::BITS).exp2().max(T::SMALLEST)
        };
        let error = ((found - high) - rest).abs() / unit;
        if error.is_nan() || error > worst.0 {
            worst = (error, *x);
        }
    }
    worst
}
