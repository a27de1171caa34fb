//! The functions of symbolic expressions: Γ, rational powers, ln, √ and the others, as PTX in the interpreter against the CPU.

use selvedge::fuse::{Expr, Graph};
use selvedge::srt::Rational;
use selvedge::types::DType;

use super::arrays::Array;
use super::operations::check;
use super::reductions::contiguous;
use super::value::{Value, special};
use crate::common::suite::Test;

#[path = "../../src/srt/symbolic/gamma.rs"]
mod gamma;
#[path = "../../src/srt/symbolic/power.rs"]
mod power;

/// Numerators and denominators: chains of products, roots, powers beside them, and integers beyond products.
const EXPONENTS: [(i128, i128); 16] = [
    (0, 1),
    (1, 1),
    (2, 1),
    (-3, 1),
    (7, 1),
    (256, 1),
    (257, 1),
    (-1001, 1),
    (1, 2),
    (-1, 2),
    (3, 4),
    (1, 3),
    (2, 3),
    (-5, 3),
    ((1 << 53) + 1, 1),
    ((1 << 54) + 1, 2),
];

type Function = for<'g> fn(Expr<'g>) -> Expr<'g>;

const FUNCTIONS: [(&str, Function); 6] = [
    ("gamma", gamma::gamma),
    ("exp", |x| x.exp()),
    ("ln", |x| x.log()),
    ("sqrt", |x| x.sqrt()),
    ("sin", |x| x.sin()),
    ("cos", |x| x.cos()),
];

pub fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    for (name, function) in FUNCTIONS {
        tests.push(Test::new(format!("symbolic::{name}"), move || {
            compare(function);
            Ok(())
        }));
    }
    for (numerator, denominator) in EXPONENTS {
        tests.push(Test::new(format!("symbolic::power_{numerator}_{denominator}"), move || {
            let exponent = Rational::new(numerator, denominator)?;
            compare(|x| power::power(x, exponent));
            Ok(())
        }));
    }
    tests
}

/// Special numbers, and numbers on both sides of zero around the limits of Γ: integers, halves and numbers in between.
fn numbers() -> Vec<Value> {
    let near = (-1440..=1440).map(|step| Value::Real(f64::from(step) * 0.125));
    let between = (-180..=180).map(|step| Value::Real(f64::from(step) * 0.997_13 + 1e-9));
    special(DType::F64).into_iter().chain(near).chain(between).collect()
}

fn compare(function: impl for<'g> Fn(Expr<'g>) -> Expr<'g>) {
    let graph = Graph::new();
    let x = graph.input(DType::F64);
    let expression = graph.expression(&[function(x)]).expect("an expression");
    let values = numbers();
    let layout = contiguous(&[values.len()]);
    let before = [Array::new(DType::F64, layout, &[Value::Real(0.0)], 0)];
    check(&expression, &[Array::new(DType::F64, layout, &values, 0)], &before, true);
}
