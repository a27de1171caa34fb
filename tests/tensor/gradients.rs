//! Derivatives of the list of operations, against central differences in f64 and c128, and the chain rule over
//! a graph.

use selvedge::fuse::{Expr, Graph, HostInput, HostOutput, Operation};
use selvedge::types::{DType, Element, Layout};
use selvedge::{Complex, Result, f16};

type C = Complex<f64>;

/// Distance of the differences' arguments. Their error is h² f''' / 6, and rounding adds some 1e-11.
const H: f64 = 1e-5;

const TOLERANCE: f64 = 1e-6;

/// Real parts of the samples: within and outside the domains of all operations, and off their jumps and kinks.
const SAMPLES: [f64; 12] = [0.31, 0.73, -0.62, 1.41, 2.37, -1.73, 0.11, -0.23, 3.19, 1.13, 0.57, -2.71];

/// Runs a function of a graph's inputs on slices.
fn run<T: Element, R: Element + Default>(
    inputs: &[Vec<T>],
    outputs: usize,
    build: impl for<'g> Fn(&'g Graph, &[Expr<'g>]) -> Vec<Expr<'g>>,
) -> Result<Vec<Vec<R>>> {
    let graph = Graph::new();
    let nodes: Vec<Expr<'_>> = inputs.iter().map(|_| graph.input(T::DTYPE)).collect();
    let results: Vec<Expr<'_>> = build(&graph, &nodes).into_iter().map(|expr| expr.cast(R::DTYPE)).collect();
    let expression = graph.expression(&results)?;
    let count = inputs[0].len();
    let layout = Layout::contiguous(&[count])?;
    let mut found = vec![vec![R::default(); count]; outputs];
    let inputs = inputs.iter().map(|input| HostInput::new(input, layout)).collect::<Result<Vec<_>>>()?;
    let mut targets =
        found.iter_mut().map(|output| HostOutput::new(output, layout)).collect::<Result<Vec<_>>>()?;
    expression.run_host(&inputs, &[], &mut targets)?;
    drop(targets);
    Ok(found)
}

/// A number type in which derivatives are tested.
struct Kind<T> {
    of: fn(C) -> T,
    to: fn(T) -> C,
    directions: &'static [C],
}

const REAL: Kind<f64> = Kind { of: |z| z.re, to: |x| C::new(x, 0.0), directions: &[C::new(1.0, 0.0)] };
const COMPLEX: Kind<C> = Kind { of: |z| z, to: |z| z, directions: &[C::new(1.0, 0.0), C::new(0.0, 1.0)] };

impl<T: Element + Default> Kind<T> {
    fn samples(&self, operand: usize) -> Vec<C> {
        let at = |index: usize| SAMPLES[index % SAMPLES.len()];
        // Strides that are coprime to the number of samples, so operands meet in many combinations, none equal.
        let (step, imaginary) = ([1, 5, 7][operand], [7, 11, 5][operand]);
        (0..2 * SAMPLES.len())
            .map(|index| {
                let (round, apart) = (index / SAMPLES.len() * (operand + 1), 0.007 * operand as f64);
                C::new(
                    at(index * step + operand + round) + apart,
                    at(index * imaginary + 2 * operand + 3 + round),
                )
            })
            .collect()
    }

    fn numbers(&self, samples: &[C]) -> Vec<T> {
        samples.iter().map(|&sample| (self.of)(sample)).collect()
    }

    fn forward(&self, operation: Operation, operands: &[Vec<C>]) -> Vec<C> {
        let inputs: Vec<Vec<T>> = operands.iter().map(|operand| self.numbers(operand)).collect();
        let mut found = run::<T, T>(&inputs, 1, |_, x| vec![apply(operation, x)]).unwrap();
        found.remove(0).into_iter().map(self.to).collect()
    }

    /// Compares the derivative with differences of Re(w* f), and returns for each operand the number of samples
    /// at which both are finite, with the differences.
    fn check(&self, operation: Operation) -> Vec<Vec<C>> {
        let arity = operation.arity();
        let operands: Vec<Vec<C>> = (0..arity).map(|operand| self.samples(operand)).collect();
        let real = operation.signature(&vec![T::DTYPE; arity]).unwrap().result == DType::F64;
        let mut weights = self.samples(2);
        weights.iter_mut().for_each(|weight| *weight = if real { C::new(weight.re, 0.0) } else { *weight });
        let mut inputs: Vec<Vec<T>> = operands.iter().map(|operand| self.numbers(operand)).collect();
        inputs.push(self.numbers(&weights));
        let gradients = run::<T, T>(&inputs, arity, |graph, x| {
            let (operands, weight) = (&x[..arity], x[arity]);
            graph.gradient(&[(apply(operation, operands), weight)], operands)
        });
        let gradients = gradients.unwrap_or_else(|error| panic!("{}: {error}", operation.name()));
        let mut seen = vec![Vec::new(); arity];
        for operand in 0..arity {
            let mut differences = vec![C::default(); weights.len()];
            for &direction in self.directions {
                let shifted = |by: f64| {
                    let mut operands = operands.clone();
                    operands[operand].iter_mut().for_each(|sample| *sample += direction * by);
                    self.forward(operation, &operands)
                };
                let (above, below) = (shifted(H), shifted(-H));
                for (index, difference) in differences.iter_mut().enumerate() {
                    let slope = (weights[index].conj() * (above[index] - below[index])).re / (2.0 * H);
                    *difference += direction * slope;
                }
            }
            for (index, &difference) in differences.iter().enumerate() {
                if !difference.is_finite() {
                    continue;
                }
                let gradient = (self.to)(gradients[operand][index]);
                let error = (gradient - difference).norm();
                assert!(
                    error <= TOLERANCE * (1.0 + difference.norm()),
                    "{} of {}: operand {operand} at {:?}: the gradient is {gradient}, the difference {difference}",
                    operation.name(),
                    T::DTYPE,
                    operands.iter().map(|operand| operand[index]).collect::<Vec<_>>(),
                );
                seen[operand].push(difference);
            }
        }
        seen
    }

    fn check_all(&self) -> usize {
        let has_dtype = |operation: &&Operation| operation.dtypes().contains(T::DTYPE);
        let operations = Operation::ALL.iter().filter(has_dtype).filter(|each| each.is_differentiable());
        operations
            .inspect(|&&operation| {
                for (operand, seen) in self.check(operation).into_iter().enumerate() {
                    let name = operation.name();
                    assert!(
                        seen.len() >= 3,
                        "{name}: {} samples of operand {operand} are in its domain",
                        seen.len()
                    );
                }
            })
            .count()
    }
}

fn apply<'g>(operation: Operation, operands: &[Expr<'g>]) -> Expr<'g> {
    operands[0].operation(operation, &operands[1..])
}

#[test]
fn derivatives_of_real_operations_are_their_differences() {
    assert!(REAL.check_all() > 60);
}

#[test]
fn derivatives_of_complex_operations_are_their_differences() {
    assert!(COMPLEX.check_all() > 30);
}

#[test]
fn operations_without_a_derivative_are_constant_between_jumps() {
    let mut checked = 0;
    for &operation in Operation::ALL.iter().filter(|each| !each.is_differentiable()) {
        // The neighbour of a number follows it, but in steps.
        if !operation.dtypes().contains(DType::F64) || operation == Operation::NextAfter {
            continue;
        }
        for seen in REAL.check(operation) {
            assert!(seen.iter().all(|difference| *difference == C::default()), "{}", operation.name());
            checked += 1;
        }
    }
    assert!(checked > 15);
}

/// The gradients of operands of 1 value each for a result's gradient of 1.
fn gradients_at(operation: Operation, operands: &[f64]) -> Vec<f64> {
    let inputs: Vec<Vec<f64>> = operands.iter().map(|&operand| vec![operand]).collect();
    let found =
        run::<f64, f64>(&inputs, operands.len(), |graph, x| gradient_of(graph, operation, x)).unwrap();
    found.into_iter().map(|gradient| gradient[0]).collect()
}

fn gradient_of<'g>(graph: &'g Graph, operation: Operation, x: &[Expr<'g>]) -> Vec<Expr<'g>> {
    let result = apply(operation, x);
    graph.gradient(&[(result, graph.number(1.0, result.dtype()))], x)
}

#[test]
fn gradients_at_kinks_are_those_of_pytorch() {
    let infinity = f64::INFINITY;
    let cases: &[(Operation, &[f64], &[f64])] = &[
        (Operation::Relu, &[0.0], &[0.0]),
        (Operation::Abs, &[0.0], &[0.0]),
        (Operation::Maximum, &[2.0, 2.0], &[0.5, 0.5]),
        (Operation::Minimum, &[2.0, 2.0], &[0.5, 0.5]),
        (Operation::Fmax, &[2.0, 2.0], &[1.0, 0.0]),
        (Operation::Fmin, &[f64::NAN, 2.0], &[0.0, 1.0]),
        (Operation::Fmin, &[2.0, f64::NAN], &[1.0, 0.0]),
        (Operation::Clamp, &[1.0, 1.0, 2.0], &[1.0, 0.0, 0.0]),
        (Operation::Clamp, &[2.0, 1.0, 2.0], &[1.0, 0.0, 0.0]),
        (Operation::Clamp, &[0.0, 3.0, 2.0], &[0.0, 0.0, 1.0]),
        (Operation::Copysign, &[0.0, -1.0], &[0.0, 0.0]),
        (Operation::Sinc, &[0.0], &[0.0]),
        (Operation::Pow, &[0.0, 0.0], &[0.0, 0.0]),
        (Operation::Pow, &[0.0, 2.0], &[0.0, 0.0]),
        (Operation::Xlogy, &[0.0, 0.0], &[0.0, 0.0]),
        (Operation::LogAddExp, &[-infinity, -infinity], &[0.5, 0.5]),
        (Operation::LogAddExp, &[-infinity, 0.0], &[0.0, 1.0]),
        (Operation::Sqrt, &[0.0], &[infinity]),
        (Operation::Logit, &[1.5], &[f64::NAN]),
        (Operation::Lgamma, &[0.0], &[-infinity]),
    ];
    for (operation, operands, wanted) in cases {
        let found = gradients_at(*operation, operands);
        let same = |(found, wanted): (&f64, &f64)| found == wanted || found.is_nan() && wanted.is_nan();
        assert!(found.iter().zip(*wanted).all(same), "{}{operands:?}: {found:?}", operation.name());
    }
}

#[test]
fn derivatives_stay_accurate_where_their_formulas_cancel() {
    let digamma_of_1 = -0.577_215_664_901_532_9;
    // The derivative of sinc is -π² x / 3 (1 - π² x² / 10) near 0.
    let cases = [
        (Operation::Sinc, 1e-6, -3.289_868_133_693_206e-6),
        (Operation::Lgamma, 1.0, digamma_of_1),
        (Operation::Lgamma, -0.5, 0.036_489_973_978_576_52),
        (Operation::Lgamma, 1e6, 13.815_510_057_964_191),
        (Operation::Gelu, -10.0, -7.618_400_096_464_815e-22),
    ];
    for (operation, x, wanted) in cases {
        let found = gradients_at(operation, &[x])[0];
        assert!((found - wanted).abs() <= 1e-13 * wanted.abs(), "{}({x}): {found:e}", operation.name());
    }
}

#[test]
fn gradients_of_narrow_floats_round_once() {
    let x: Vec<f16> = (-40..40).map(|x| f16::from_f32(x as f32 / 10.0)).collect();
    let narrow =
        run::<f16, f16>(std::slice::from_ref(&x), 1, |graph, x| gradient_of(graph, Operation::GeluTanh, x))
            .unwrap();
    let wide = x.iter().map(|x| f64::from(*x)).collect();
    let wide = run::<f64, f64>(&[wide], 1, |graph, x| gradient_of(graph, Operation::GeluTanh, x)).unwrap();
    for (narrow, wide) in narrow[0].iter().zip(&wide[0]) {
        let error = (f64::from(*narrow) - wide).abs();
        assert!(error <= wide.abs() / 2047.0 + 1e-6, "{narrow} for {wide}");
    }
}

#[test]
fn the_chain_rule_adds_paths_and_stops_at_integers() {
    let found = run::<f64, f64>(&[vec![3.0], vec![5.0]], 3, |graph, x| {
        let (x, y) = (x[0], x[1]);
        let product = x * y;
        // Two outputs, a shared node, a path through integers, and a cast to a narrower float and back.
        let narrow = (x.cast(DType::F32) * 2.0).cast(DType::F64);
        let outputs = [product * product + x.cast(DType::I64) * 3, narrow + product.floor()];
        let gradients = outputs.map(|output| (output, graph.number(1.0, DType::F64)));
        let mut found = graph.gradient(&gradients, &[x, y]);
        found.push(outputs[0]);
        found
    });
    let found = found.unwrap();
    assert_eq!(found, [[2.0 * 15.0 * 5.0 + 2.0], [2.0 * 15.0 * 3.0], [225.0 + 9.0]]);
}

#[test]
fn a_gradient_with_an_expression_of_another_graph_is_an_error() {
    let (graph, other) = (Graph::new(), Graph::new());
    let foreign = other.input(DType::F64);
    let gradients = graph.gradient(&[(foreign, foreign)], &[foreign]);
    assert_eq!(gradients.len(), 1);
    let error = graph.expression(&[graph.number(1.0, DType::F64)]).unwrap_err().to_string();
    assert_eq!(error, "an expression: found operands of two graphs; wanted operands of one graph");
}
