//! Exponentials of differences from the extreme of a group, which have fewer instructions than others: the bits of `exp` of the
//! same numbers on the CPU, and of the CPU in the text of the kernel.

use selvedge::fuse::{Graph, HostInput, HostOutput, RowProgram};
use selvedge::types::{DType, Layout};

use super::arrays::{Array, assert_same, on_host};
use super::harness;
use super::reductions::contiguous;
use super::row_runs;
use super::value::{Value, special};
use crate::common::suite::Test;
use ptx_interpreter::Schedule;

/// e^(x - the largest) and e^(the smallest - x).
fn program(dtype: DType) -> RowProgram {
    let graph = Graph::new();
    let x = graph.input(dtype);
    graph.row_program(&[(x - x.max_group()).exp(), (x.min_group() - x).exp()]).expect("a program")
}

/// All signs, exponents and some significands of f32 in rows with a zero, so that differences from it are the numbers themselves.
fn every_exponent() {
    let numbers =
        (0..=0xff80_0000u32).step_by(2999).chain([1, 0x42ae_ac50, 0x42cf_f1b5].map(|x| x | 1 << 31));
    let (mut below, mut above) = (vec![0.0f32], vec![0.0f32]);
    for number in numbers.map(f32::from_bits).filter(|number| !number.is_nan()) {
        if number.is_sign_negative() {
            below.push(number)
        } else {
            above.push(number)
        };
    }
    let most = below.len().max(above.len());
    below.resize(most, -1.0);
    above.resize(most, 1.0);
    let layout: Layout = contiguous(&[2, most]);
    let numbers: Vec<f32> = below.iter().chain(&above).copied().collect();
    let mut found = [vec![0.0f32; 2 * most], vec![0.0f32; 2 * most]];
    let [first, second] = &mut found;
    let mut outputs = [first, second].map(|output| HostOutput::new(output, layout).expect("an output"));
    let input = HostInput::new(&numbers, layout).expect("an input");
    program(DType::F32).run_host(&[input], &[], &[1], &mut outputs).expect("a run on the CPU");

    let graph = Graph::new();
    let x = graph.input(DType::F32);
    let exponential = graph.expression(&[x.exp()]).expect("an expression");
    let negative: Vec<f32> = below.iter().copied().chain(above.iter().map(|x| -x)).collect();
    let mut wanted = vec![0.0f32; 2 * most];
    let output = HostOutput::new(&mut wanted, layout).expect("an output");
    let input = HostInput::new(&negative, layout).expect("an input");
    exponential.run_host(&[input], &[], &mut [output]).expect("a run on the CPU");
    for (at, x) in negative.iter().enumerate() {
        let found = found[at / most][at];
        assert_eq!(found.to_bits(), wanted[at].to_bits(), "e^{x:e} is {found:e}, not {:e}", wanted[at]);
    }
    assert!(wanted.iter().any(|power| power.is_subnormal()) && wanted.contains(&0.0));
}

/// Infinities, NaN and numbers of every size; of f64 the elementwise function has the same bits too.
fn specials() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let values: Vec<Value> = special(dtype);
        let without = |unwanted: fn(f64) -> bool| {
            let kept = values.iter().filter(|value| !unwanted(value.real()));
            kept.copied().cycle().take(values.len()).collect::<Vec<Value>>()
        };
        let finite = without(|x| !x.is_finite());
        let rows: [Vec<Value>; 4] = [
            values.clone(),
            without(f64::is_nan),
            without(|x| x > 0.0 || x.is_nan()),
            finite.iter().map(|value| Value::Real(-value.real().abs())).collect(),
        ];
        let layout: Layout = contiguous(&[4, values.len()]);
        let input = [Array::new(dtype, layout, &rows.concat(), 3)];
        let program = program(dtype);
        let before = [(); 2].map(|()| Array::new(dtype, layout, &[Value::Real(7.0)], 0));
        let mut on_cpu = before.to_vec();
        row_runs::on_host(&program, &input, &[1], &mut on_cpu);
        for capability in [(7, 5), (9, 0)] {
            let mut found = before.to_vec();
            let order = (capability, Schedule::IN_ORDER);
            row_runs::as_ptx(&program, (&input, &[1], None), &mut found, order, &|text| text);
            assert_same(&format!("powers of {dtype} by {capability:?}"), &on_cpu, &found, &before);
        }
        if let Ok(stream) = harness::device() {
            let mut found = before.to_vec();
            row_runs::on_device(stream, &program, &input, &[1], None, &mut found)
                .expect("a run on the device");
            assert_same(&format!("powers of {dtype} on the device"), &on_cpu, &found, &before);
        }
        if dtype == DType::F64 {
            of_differences(&input[0], &on_cpu[0], layout);
        }
    }
}

/// Compares with `exp` of the differences, which another program computes.
fn of_differences(input: &Array, found: &Array, layout: Layout) {
    let graph = Graph::new();
    let x = graph.input(input.dtype);
    let differences = graph.row_program(&[x - x.max_group()]).expect("a program");
    let before = [Array::new(input.dtype, layout, &[Value::Real(7.0)], 0)];
    let mut difference = before.to_vec();
    row_runs::on_host(&differences, std::slice::from_ref(input), &[1], &mut difference);
    let graph = Graph::new();
    let exponential = graph.expression(&[graph.input(input.dtype).exp()]).expect("an expression");
    let mut wanted = before.to_vec();
    on_host(&exponential, &difference, &[], &mut wanted);
    assert_same("powers of differences", &wanted, std::slice::from_ref(found), &before);
}

pub fn tests() -> Vec<Test> {
    let tests: [(&str, fn()); 2] = [
        ("powers_up_to_one_have_the_bits_of_others", every_exponent),
        ("powers_up_to_one_of_special_numbers", specials),
    ];
    tests.map(|(name, run)| Test::of(format!("rows::{name}"), run)).into()
}
