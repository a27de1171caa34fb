//! Functions of f16 and bf16 for every number, compared with f64 functions, which `vectors` compares with
//! higher precision.

use selvedge::fuse::{Graph, HostInput, HostOutput, Operation};
use selvedge::types::{DType, Layout};

use super::arrays::{Array, on_host};
use super::harness::as_ptx;
use super::value::{Value, read, same};
use crate::common::suite::{Test, detail};
use ptx_interpreter::pure::SIDE;

/// Returns the unary operations whose result is not correctly rounded everywhere.
fn operations() -> impl Iterator<Item = Operation> {
    Operation::ALL.iter().copied().filter(|operation| {
        operation.arity() == 1 && operation.ulp() > 0 && operation.dtypes().contains(DType::F16)
    })
}

pub fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    for operation in operations() {
        for dtype in [DType::F16, DType::BF16] {
            tests.push(Test::new(format!("narrow::{}::{dtype}", operation.name()), move || {
                let (worst, at) = worst(operation, dtype);
                detail(|| {
                    format!("{} {dtype}: {worst:.3} units in the last place at {at:e}", operation.name())
                });
                // As the operation list states.
                assert!(worst <= 1.0, "{worst} units in the last place at {at:e}");
                Ok(())
            }));
            tests.push(Test::new(
                format!("narrow::approximations::{}::{dtype}", operation.name()),
                move || {
                    at_either_end(operation, dtype);
                    Ok(())
                },
            ));
        }
    }
    tests
}

/// A device's approximations may err to either side, and the rounded results equal the CPU's.
fn at_either_end(operation: Operation, dtype: DType) {
    let graph = Graph::new();
    let expression =
        graph.expression(&[graph.input(dtype).operation(operation, &[])]).expect("an expression");
    let layout = Layout::contiguous(&[1 << 16]).expect("a layout");
    let explanation = expression.explain(&[layout], &[layout], (9, 0)).expect("a plan");
    if !explanation.launches[0].ptx.contains(".approx.") {
        return;
    }
    let blank = [Array::new(dtype, layout, &[Value::Real(0.0)], 0)];
    let mut input = blank[0].clone();
    input.bytes[..1 << 17].copy_from_slice(bytemuck::cast_slice(&(0..=u16::MAX).collect::<Vec<_>>()));
    let input = [input];
    let mut on_cpu = blank.to_vec();
    on_host(&expression, &input, &[], &mut on_cpu);
    for side in [1.0, -1.0] {
        let mut there = blank.to_vec();
        SIDE.set(side);
        as_ptx(&expression, &input, &mut there, (9, 0));
        SIDE.set(0.0);
        let pairs = on_cpu[0].element_bytes().into_iter().zip(there[0].element_bytes());
        let other: Vec<_> = (0..=u16::MAX)
            .zip(pairs)
            .filter(|(_, (one, two))| !same(dtype, one, two))
            .map(|(x, (one, two))| (read(dtype, &x.to_le_bytes()), read(dtype, one), read(dtype, two)))
            .collect();
        assert!(other.is_empty(), "off to {side}, {} arguments have other results: {other:?}", other.len());
    }
}

/// Returns the largest error in units in the last place of the exact result, and its argument.
fn worst(operation: Operation, dtype: DType) -> (f64, f64) {
    let graph = Graph::new();
    let x = graph.input(dtype);
    let wide = x.cast(DType::F64).operation(operation, &[]);
    let expression = graph.expression(&[x.operation(operation, &[]), wide]).expect("an expression");
    let all: Vec<u16> = (0..=u16::MAX).collect();
    let (mut found, mut wanted) = (vec![0u16; all.len()], vec![0.0f64; all.len()]);
    let layout = Layout::contiguous(&[all.len()]).expect("a layout");
    let input = HostInput::of_bytes(dtype, bytemuck::cast_slice(&all), layout).expect("an input");
    let output =
        HostOutput::of_bytes(dtype, bytemuck::cast_slice_mut(&mut found), layout).expect("an output");
    let exact = HostOutput::new(&mut wanted, layout).expect("an output");
    expression.run_host(&[input], &[], &mut [output, exact]).expect("a run");
    let number = |bits: u16| match read(dtype, &bits.to_le_bytes()) {
        Value::Real(x) => x,
        _ => f64::NAN,
    };
    let (bits, least, largest): (i32, f64, f64) = match dtype {
        DType::F16 => (11, 2f64.powi(-24), 65504.0),
        _ => (8, 2f64.powi(-133), 3.3895313892515355e38),
    };
    let mut worst = (0.0, f64::NAN);
    for ((x, found), wanted) in all.into_iter().map(number).zip(found.into_iter().map(number)).zip(wanted) {
        if wanted.is_nan() || found.is_nan() {
            assert!(wanted.is_nan() && found.is_nan(), "{x:e}: {found} for {wanted}");
            continue;
        }
        if wanted == 0.0 {
            assert!(found.to_bits() == wanted.to_bits(), "{x:e}: {found} for {wanted}");
            continue;
        }
        assert!(found.is_sign_negative() == wanted.is_sign_negative(), "{x:e}: {found} for {wanted}");
        // Half a unit past the largest number is infinite.
        if found.is_infinite() || wanted.is_infinite() {
            let limit = largest + 0.25 * 2f64.powi(largest.log2().floor() as i32 + 1 - bits);
            assert!(wanted.abs() >= limit && found.abs() >= largest, "{x:e}: {found} for {wanted}");
            continue;
        }
        // The error is relative to 1 near its zeros below 0, where the cancelled terms are correct to more
        // bits than f16 has.
        if operation == Operation::Lgamma && x < 0.0 && wanted.abs() < 0.25 {
            let error = (found - wanted).abs();
            assert!(
                error <= 2f64.powi(-14) + wanted.abs() * 2f64.powi(1 - bits),
                "{x:e}: {found} for {wanted}"
            );
            continue;
        }
        let exponent = wanted.abs().log2().floor() as i32;
        let unit = 2f64.powi(exponent + 1 - bits).max(least);
        let error = (found - wanted).abs() / unit;
        if error > worst.0 {
            worst = (error, x);
        }
    }
    worst
}
