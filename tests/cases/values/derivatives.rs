//! Derivatives at the edges of the operations' domains, by a table of scripts/make_derivatives.py.

use std::collections::BTreeSet;

use selvedge::fuse::{Expr, Operation};
use selvedge::tensor::{Device, Fused, Tensor};
use selvedge::types::DType;

use super::numbers;

const TABLE: &str = include_str!("../../data/fuse/derivatives.txt");

/// The error of every derivative in units in the last place; functions state at most 6, and a formula has several steps.
const UNITS: f64 = 24.0;

/// The points of an operation in a dtype.
struct Points {
    operation: Operation,
    dtype: DType,
    rows: Vec<Row>,
}

struct Row {
    operands: Vec<f64>,
    /// The derivative by each operand with its condition. `None` does not exist.
    derivatives: Vec<(Option<f64>, f64)>,
}

fn number(word: &str) -> f64 {
    word.parse().unwrap_or_else(|_| panic!("a number, found {word}"))
}

fn table() -> Vec<Points> {
    let mut points: Vec<Points> = Vec::new();
    for line in TABLE.lines().skip(1) {
        if let Some(header) = line.strip_prefix("# ") {
            let (name, dtype) = header.split_once(' ').unwrap();
            let operation = *Operation::ALL.iter().find(|operation| operation.name() == name).unwrap();
            let dtype = if dtype == "f32" { DType::F32 } else { DType::F64 };
            points.push(Points { operation, dtype, rows: Vec::new() });
            continue;
        }
        let (operands, derivatives) = line.split_once(" = ").unwrap();
        let words: Vec<&str> = derivatives.split(' ').collect();
        let derivative = |pair: &[&str]| ((pair[0] != "-").then(|| number(pair[0])), number(pair[1]));
        let operands = operands.split(' ').map(number).collect();
        let row = Row { operands, derivatives: words.chunks(2).map(derivative).collect() };
        points.last_mut().unwrap().rows.push(row);
    }
    points
}

/// Returns the derivatives of an operation, one list for each operand.
fn derivatives(operation: Operation, operands: &[Tensor]) -> selvedge::Result<Vec<Tensor>> {
    fn of<'g>(operation: Operation, operands: &[Expr<'g>], gradient: Expr<'g>) -> Vec<Expr<'g>> {
        let result = operands[0].operation(operation, &operands[1..]);
        gradient.graph().gradient(&[(result, gradient)], operands)
    }
    let ones = operands[0].ones_like()?;
    Ok(match operands {
        [x] => {
            vec![Fused::new(move |[x, gradient]| of(operation, &[x], gradient)[0]).run([x, &ones])?]
        }
        [x, y] => {
            let function = Fused::<3, 2>::with_outputs(move |[x, y, gradient]| {
                let found = of(operation, &[x, y], gradient);
                [found[0], found[1]]
            });
            function.run_all([x, y, &ones])?.to_vec()
        }
        [x, y, z] => {
            let function = Fused::<4, 3>::with_outputs(move |[x, y, z, gradient]| {
                let found = of(operation, &[x, y, z], gradient);
                [found[0], found[1], found[2]]
            });
            function.run_all([x, y, z, &ones])?.to_vec()
        }
        _ => panic!("{operation:?} of {} operands", operands.len()),
    })
}

/// Returns whether a derivative is the wanted one in a dtype of this unit, largest and smallest number.
fn is_right(found: f64, wanted: f64, condition: f64, [unit, largest, least]: [f64; 3]) -> bool {
    if wanted.is_nan() || found.is_nan() {
        return wanted.is_nan() && found.is_nan();
    }
    let error = unit * (UNITS + 4.0 * condition);
    // Overflow within the error.
    if wanted.abs() >= largest * (1.0 - error.min(0.5)) {
        return found.signum() == wanted.signum() && found.abs() >= largest * (1.0 - error.min(0.5));
    }
    (found - wanted).abs() <= error * wanted.abs() + 64.0 * least
}

/// Compares the derivatives in a dtype at the points that it holds.
fn check(points: &Points, dtype: DType, limits: [f64; 3], device: &Device, wrong: &mut Vec<String>) -> usize {
    let list = |values: &[f64]| {
        Tensor::from_slice(values, &[values.len()], device).and_then(|list| list.cast(dtype)).unwrap()
    };
    let held = |row: &&Row| {
        let kept = numbers(&list(&row.operands));
        kept.iter().zip(&row.operands).all(|(kept, x)| kept == x || x.is_nan())
    };
    let rows: Vec<&Row> = points.rows.iter().filter(held).collect();
    let arity = points.operation.arity();
    let operands: Vec<Tensor> = (0..arity)
        .map(|operand| list(&rows.iter().map(|row| row.operands[operand]).collect::<Vec<_>>()))
        .collect();
    let found: Vec<Vec<f64>> =
        derivatives(points.operation, &operands).unwrap().iter().map(numbers).collect();
    for (at, row) in rows.iter().enumerate() {
        for (operand, &(wanted, condition)) in row.derivatives.iter().enumerate() {
            let found = found[operand][at];
            if wanted.is_some_and(|wanted| !is_right(found, wanted, condition, limits)) {
                let (name, x) = (points.operation.name(), &row.operands);
                wrong.push(format!("{name}{x:?} of {dtype} by {operand}: {found:e}, wanted {wanted:?}"));
            }
        }
    }
    rows.len()
}

pub fn derivatives_at_the_edges_are_finite_and_right(device: &Device) {
    let (single, double) = (f64::from(f32::MAX), f64::MAX);
    let bf16 = f64::from(half::bf16::MAX);
    let mut wrong = Vec::new();
    let mut covered = BTreeSet::new();
    for points in table() {
        covered.insert(points.operation.name());
        let limits = match points.dtype {
            DType::F32 => [f64::from(f32::EPSILON), single, 1.5e-45],
            _ => [f64::EPSILON, double, 5e-324],
        };
        check(&points, points.dtype, limits, device, &mut wrong);
        if points.dtype == DType::F32 {
            let limits = [2f64.powi(-8), bf16, f64::from(f32::MIN_POSITIVE)];
            let count = check(&points, DType::BF16, limits, device, &mut wrong);
            assert!(count >= 5, "{} of bf16 has {count} points", points.operation.name());
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    // Parts of real numbers and choices have no edges.
    let others = ["real", "imag", "conj", "angle", "choose"];
    for operation in Operation::ALL.iter().filter(|operation| operation.is_differentiable()) {
        let name = operation.name();
        assert!(covered.contains(name) || others.contains(&name), "{name} is not in the table");
    }
}
