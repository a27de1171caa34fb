//! A device's approximations in results that no rounding to a narrow dtype follows: functions of f32, and row programs,
//! which hold values of f16 and bf16 in f32. Approximations that err to either side give the bits of the CPU.

use selvedge::fuse::{Expr, Graph, Operation};
use selvedge::types::{DType, Layout};

use super::arrays::{Array, assert_same, on_host};
use super::harness;
use super::random::Numbers;
use super::reductions::contiguous;
use super::row_runs;
use super::value::{Value, special};
use crate::common::suite::Test;
use ptx_interpreter::Schedule;
use ptx_interpreter::pure::SIDE;

/// Significands of f32 whose reciprocal is closest to the middle of two numbers, and the ends.
const SIGNIFICANDS: [u32; 8] = [0x7f_ffff, 0x7f_fffe, 0x7f_fffd, 0x7e_01ff, 0x7c_3237, 0x6e_4bc5, 0, 1];

pub fn tests() -> Vec<Test> {
    let named = |name: &str, run: fn()| Test::of(format!("approximations::{name}"), run);
    vec![
        named("functions_of_f32_have_one_result", functions),
        named("row_programs_have_one_result", row_programs),
        named("quotients_of_groups_have_one_result", quotients),
    ]
}

/// Returns the operations of one number of a dtype.
fn unary(dtype: DType) -> impl Iterator<Item = Operation> {
    Operation::ALL
        .iter()
        .copied()
        .filter(move |operation| operation.arity() == 1 && operation.dtypes().contains(dtype))
}

/// Runs with approximations that err up, and with ones that err down.
fn on_either_side(mut run: impl FnMut(f64)) {
    for side in [1.0, -1.0] {
        SIDE.set(side);
        run(side);
    }
    SIDE.set(0.0);
}

/// Returns numbers with these significands, and what is left of 1 beside them.
fn numbers() -> Vec<Value> {
    let exponents = (97..=157).step_by(3).chain(124..=128);
    let sizes = exponents.flat_map(|exponent| SIGNIFICANDS.map(|bits| f32::from_bits(exponent << 23 | bits)));
    sizes.flat_map(|size| [size, -size, 1.0 - size, size - 1.0]).map(|x| Value::Real(x.into())).collect()
}

fn functions() {
    let values = numbers();
    let layout = contiguous(&[values.len()]);
    let input = [Array::new(DType::F32, layout, &values, 0)];
    let mut approximate = 0;
    for operation in unary(DType::F32) {
        let graph = Graph::new();
        let x = graph.input(DType::F32);
        let expression = graph.expression(&[x.operation(operation, &[])]).expect("an expression");
        let explanation = expression.explain(&[layout], &[layout], (9, 0)).expect("a plan");
        if !explanation.launches[0].ptx.contains(".approx.") {
            continue;
        }
        approximate += 1;
        let before = [Array::new(expression.outputs()[0], layout, &special(expression.outputs()[0])[..1], 0)];
        let mut on_cpu = before.to_vec();
        on_host(&expression, &input, &[], &mut on_cpu);
        on_either_side(|side| {
            let mut found = before.to_vec();
            harness::as_ptx(&expression, &input, &mut found, (9, 0));
            assert_same(&format!("{} off to {side}", operation.name()), &on_cpu, &found, &before);
        });
    }
    assert!(approximate >= 6, "{approximate} operations");
}

/// Comparisons of a function's result with its argument, in programs with a reduction.
fn row_programs() {
    for dtype in [DType::F16, DType::BF16] {
        let values = special(dtype);
        let layout: Layout = contiguous(&[2, values.len()]);
        let group = contiguous(&[2, 1]);
        let input = [Array::new(dtype, layout, &values, 3)];
        let graph = Graph::new();
        let x = graph.input(dtype);
        let tests: Vec<Expr<'_>> = unary(dtype).map(|operation| x.operation(operation, &[]).eq(x)).collect();
        for outputs in tests.chunks(8) {
            let outputs: Vec<_> = outputs.iter().copied().chain([x.max_group()]).collect();
            let program = graph.row_program(&outputs).expect("a program");
            let before: Vec<Array> = program
                .outputs()
                .into_iter()
                .enumerate()
                .map(|(at, dtype)| {
                    let layout = if program.is_per_group(at) { group } else { layout };
                    Array::new(dtype, layout, &special(dtype)[..1], 0)
                })
                .collect();
            let mut on_cpu = before.clone();
            row_runs::on_host(&program, &input, &[1], &mut on_cpu);
            on_either_side(|side| {
                let mut found = before.clone();
                row_runs::as_ptx(
                    &program,
                    (&input, &[1], None),
                    &mut found,
                    ((7, 5), Schedule::IN_ORDER),
                    &|text| text,
                );
                assert_same(&format!("functions of {dtype} off to {side}"), &on_cpu, &found, &before);
            });
        }
    }
}

/// Returns pairs of numbers of f32 of every kind: special ones, random bits, and subnormal ones whose quotient is close to
/// the middle of two numbers, or is there.
fn pairs() -> [Vec<Value>; 2] {
    let mut pairs: Vec<[f32; 2]> = Vec::new();
    let known: Vec<f32> = special(DType::F32).iter().map(|value| value.real() as f32).collect();
    pairs.extend(known.iter().flat_map(|&a| known.iter().map(move |&b| [a, b])));
    let mut numbers = Numbers::new(7);
    for _ in 0..1500 {
        let [low, high] = [(); 2].map(|()| (numbers.below(1 << 16) << 16 | numbers.below(1 << 16)) as u32);
        pairs.push([low, high].map(f32::from_bits));
        pairs.push([low & 0x807f_ffff, high & 0x80ff_ffff | 0x4000_0000].map(f32::from_bits));
        pairs.push([low & 0x8000_0fff, 0x4000_0000 | (high & 7) << 23].map(f32::from_bits));
    }
    pairs.extend(SIGNIFICANDS.map(|bits| [1.0, f32::from_bits(0x3f80_0000 | bits)]));
    [0, 1].map(|side| pairs.iter().map(|pair| Value::Real(pair[side].into())).collect())
}

/// Quotients, reciprocals and square roots of values of groups, which kernels compute in f64.
fn quotients() {
    let pairs = pairs();
    let layout = contiguous(&[pairs[0].len(), 1]);
    let inputs = pairs.map(|values| Array::new(DType::F32, layout, &values, 0));
    let graph = Graph::new();
    let [a, b] = graph.inputs([DType::F32; 2]).map(|input| input.sum_group());
    let program = graph.row_program(&[a / b, b.reciprocal(), a.sqrt()]).expect("a program");
    let before = [(); 3].map(|()| Array::new(DType::F32, layout, &[Value::Real(3.0)], 0));
    let mut on_cpu = before.to_vec();
    row_runs::on_host(&program, &inputs, &[1], &mut on_cpu);
    on_either_side(|side| {
        let mut found = before.to_vec();
        let order = ((9, 0), Schedule::IN_ORDER);
        let (_, text) = row_runs::as_ptx(&program, (&inputs, &[1], None), &mut found, order, &|text| text);
        for expanded in ["div.rn.f32", "rcp.rn.f32", "sqrt.rn.f32"] {
            assert!(!text.contains(expanded), "{text}");
        }
        assert_same(&format!("quotients off to {side}"), &on_cpu, &found, &before);
    });
    if let Ok(stream) = harness::device() {
        let mut found = before.to_vec();
        row_runs::on_device(stream, &program, &inputs, &[1], None, &mut found).expect("a run on the device");
        assert_same("quotients on the device", &on_cpu, &found, &before);
    }
}
