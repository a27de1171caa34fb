//! Tests of each operation, dtype and class of layouts, generated from the operation list, and of casts
//! between all dtypes.

use selvedge::fuse::{Expression, Graph, Operation};
use selvedge::types::DType;

use super::arrays::{Array, assert_same, on_device, on_host};
use super::classes::{CLASSES, Class, Role};
use super::harness::{as_ptx, device};
use super::reference;
use super::texts;
use super::value::{Value, read, same, special, write};
use super::vectors;
use crate::common::suite::Test;

pub fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    for &operation in Operation::ALL {
        for dtype in operation.dtypes().iter() {
            for class in CLASSES {
                let name = format!("{}::{dtype}::{}", operation.name(), class.name);
                tests.push(Test::new(name, move || {
                    run(operation, dtype, class);
                    Ok(())
                }));
            }
        }
    }
    for from in DType::ALL {
        for to in DType::ALL {
            for class in
                CLASSES.iter().filter(|class| matches!(class.name, "contiguous" | "stepped" | "misaligned"))
            {
                tests.push(Test::new(format!("cast::{from}_to_{to}::{}", class.name), move || {
                    cast(from, to, class);
                    Ok(())
                }));
            }
        }
    }
    tests
}

/// Returns the values of operand `k` of `count`. In crossed classes the first operand changes fastest.
fn values(class: &Class, dtype: DType, k: usize, count: usize) -> Vec<Value> {
    let special = special(dtype);
    if !class.crossed {
        // Rotated, in steps that share no factor with most lengths.
        return (0..special.len() * 11)
            .map(|at| special[(at * (2 * k + 1) + 5 * k) % special.len()])
            .collect();
    }
    let length = special.len();
    (0..length.pow(count.min(3) as u32)).map(|at| special[at / length.pow(k as u32) % length]).collect()
}

fn run(operation: Operation, dtype: DType, class: &Class) {
    let count = operation.arity();
    let signature = operation.signature(&vec![dtype; count]).expect("a dtype of the operation");
    assert_eq!(signature.compute, dtype);
    let dtypes = &signature.operands[..count];
    let graph = Graph::new();
    let inputs: Vec<_> = dtypes.iter().map(|&dtype| graph.input(dtype)).collect();
    let result = inputs[0].operation(operation, &inputs[1..]);
    assert_eq!(result.dtype(), signature.result);
    let expression = graph.expression(&[result]).expect("an expression");

    let all: Vec<Vec<Value>> =
        dtypes.iter().enumerate().map(|(k, &dtype)| values(class, dtype, k, count)).collect();
    let repeats = if class.crossed { all[0].len().div_ceil(1003).min(40) } else { 1 };
    for repeat in 0..repeats {
        let start = repeat * 1003;
        let arrays: Vec<Array> = dtypes
            .iter()
            .zip(&all)
            .enumerate()
            .map(|(k, (&dtype, values))| Array::new(dtype, (class.layout)(k, Role::Input), values, start))
            .collect();
        let blank = [Value::Bits(0)];
        let output = (class.layout)(count, Role::Output);
        let before = [Array::new(signature.result, output, &zero(signature.result, blank), 0)];
        let assemble =
            class.crossed || matches!(operation, Operation::Conj | Operation::Add | Operation::Select);
        let after = check(&expression, &arrays, &before, assemble);
        if reference::is_elsewhere(operation, dtype) {
            assert!(vectors::has(operation, dtype), "{} of {dtype} has no vectors", operation.name());
            continue;
        }
        let shape = output.shape();
        let operands: Vec<Vec<Value>> = arrays
            .iter()
            .map(|array| array.elements(&array.layout.expand(shape).expect("a broadcast")))
            .collect();
        for (index, found) in after[0].element_bytes().into_iter().enumerate() {
            let operands: Vec<Value> = operands.iter().map(|values| values[index]).collect();
            let wanted = reference::apply(operation, dtype, &operands);
            // The tolerance is the reference's own error, if that is no larger.
            let slack = u32::from(operation.ulp() > 0 && matches!(dtype, DType::F64 | DType::C128));
            assert_close(signature.result, found, wanted, operation.ulp() + slack, || {
                format!("{}({operands:?}) in {dtype}", operation.name())
            });
        }
    }
}

/// Returns an initial element of any dtype.
fn zero(dtype: DType, blank: [Value; 1]) -> [Value; 1] {
    match dtype {
        _ if dtype.is_storage_only() => blank,
        _ if dtype.is_complex() => [Value::Complex(0.0, 0.0)],
        _ if dtype.is_float() => [Value::Real(0.0)],
        _ => [Value::Integer(0)],
    }
}

fn dtypes_of(expression: &Expression) -> Vec<DType> {
    expression.inputs().iter().chain(expression.outputs()).copied().collect()
}

/// Runs on the CPU, as PTX for the oldest and for newer devices, and on a device if there is one. Returns the
/// CPU's result.
pub fn check(expression: &Expression, inputs: &[Array], before: &[Array], assemble: bool) -> Vec<Array> {
    let mut on_cpu = before.to_vec();
    on_host(expression, inputs, &[], &mut on_cpu);
    // Rounding to bf16 has another text on newer devices.
    let both = dtypes_of(expression).contains(&DType::BF16) || dtypes_of(expression).len() > 4;
    for capability in if both { &[(6, 0), (9, 0)][..] } else { &[(6, 0)] } {
        let mut on_device = before.to_vec();
        texts::keep(&as_ptx(expression, inputs, &mut on_device, *capability), assemble);
        assert_same(&format!("sm_{}{}", capability.0, capability.1), &on_cpu, &on_device, before);
    }
    if let Ok(stream) = device() {
        let mut there = before.to_vec();
        on_device(stream, expression, inputs, &mut there).expect("a run on the device");
        assert_same("the device", &on_cpu, &there, before);
    }
    on_cpu
}

/// Halfway between neighbours of the narrow floats, from e5m2 to f16.
const TIES: [f64; 10] = [
    1.0625,
    1.125,
    1.1875,
    1.25,
    1.375,
    1.75,
    1.0 + 1.0 / 256.0,
    1.0 + 3.0 / 256.0,
    1.0 + 1.0 / 2048.0,
    1.0 + 3.0 / 2048.0,
];

fn cast(from: DType, to: DType, class: &Class) {
    let graph = Graph::new();
    let x = graph.input(from);
    let expression = graph.expression(&[x.cast(to)]).expect("an expression");
    let mut values = special(from);
    if from.is_float() && !from.is_storage_only() {
        // Around the limits of integers and the ties of narrower floats.
        let limits = (0..65).flat_map(|power| [-1.0, 1.0].map(|sign| sign * 2f64.powi(power)));
        let small = (-20..12).flat_map(|power| TIES.map(|x| x * 2f64.powi(power)));
        let nudged = limits.chain(small).flat_map(|x| {
            [x, x * (1.0 + 1e-7), x * (1.0 - 1e-7), x * (1.0 + 1e-15), x * (1.0 - 1e-15), x - 0.5]
        });
        for x in nudged {
            let mut bytes = vec![0; from.size()];
            write(from, Value::Real(x), &mut bytes);
            values.push(read(from, &bytes));
        }
    }
    let inputs = [Array::new(from, (class.layout)(0, Role::Input), &values, 0)];
    let output = (class.layout)(1, Role::Output);
    let before = [Array::new(to, output, &zero(to, [Value::Bits(0)]), 0)];
    let after = check(&expression, &inputs, &before, class.crossed);
    let sources = inputs[0].elements(&inputs[0].layout);
    for (found, source) in after[0].element_bytes().into_iter().zip(sources) {
        let wanted = reference::cast(from, to, source);
        assert_close(to, found, wanted, 0, || format!("{source:?} of {from} as {to}"));
    }
}

/// Asserts equality, or an error within `ulp` units in the last place.
pub fn assert_close(dtype: DType, found: &[u8], wanted: Value, ulp: u32, what: impl Fn() -> String) {
    let mut bytes = vec![0; dtype.size()];
    write(dtype, wanted, &mut bytes);
    if same(dtype, found, &bytes) {
        return;
    }
    let (found, wanted) = (read(dtype, found), read(dtype, &bytes));
    if let (true, Value::Real(x), Value::Real(y)) = (ulp > 0, found, wanted) {
        let unit = match dtype {
            DType::F16 => 2f64.powi(-24).max(y.abs() * 2f64.powi(-10)),
            DType::BF16 => 2f64.powi(-133).max(y.abs() * 2f64.powi(-7)),
            DType::F32 => 2f64.powi(-149).max(y.abs() * 2f64.powi(-23)),
            _ => 5e-324f64.max(y.abs() * 2f64.powi(-52)),
        };
        let same_zero = x != 0.0 || y != 0.0 || x.is_sign_negative() == y.is_sign_negative();
        if same_zero && (x - y).abs() <= f64::from(ulp) * unit {
            return;
        }
    }
    panic!("{} is {found:?}, wanted {wanted:?}", what());
}
