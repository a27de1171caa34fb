//! Machine code of the CPU against the interpreter: every operation and cast for both instruction sets, with special
//! values and random bits, tails, misaligned and in-place operands, and rare bodies at several frequencies.

use selvedge::fuse::{CpuBackend, Expression, Graph, HostInput, HostOutput, Number, Operation};
use selvedge::types::{DType, Layout};

use super::arrays::{Array, aligned, assert_same, on_host_with};
use super::value::{Value, special};
use crate::common::suite::Test;

pub const BACKENDS: [CpuBackend; 2] = [CpuBackend::Avx512, CpuBackend::Avx2];

/// Instructions that leave a program to the interpreter.
const INTERPRETED: &[&str] = &[
    "Power32",
    "Power64",
    "RemainderFloat32",
    "RemainderFloat64",
    "LogarithmOfNarrow",
    "LogarithmOfNormal",
    "PowerOfNarrow",
    "LimitOfLogarithm",
];

/// Instructions that leave it to the interpreter with AVX2.
const INTERPRETED_WITH_AVX2: &[&str] = &[
    "DivideSigned32",
    "DivideUnsigned32",
    "DivideSigned64",
    "DivideUnsigned64",
    "Float64TowardsZero",
    "Signed64TowardsZero",
    "Unsigned64TowardsZero",
    "Signed64ToFloat32",
    "Unsigned64ToFloat32",
];

pub fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    for &operation in Operation::ALL {
        tests.push(Test::new(format!("native::{}", operation.name()), move || {
            for dtype in operation.dtypes().iter() {
                compare(&expression_of(operation, dtype), &format!("{} of {dtype}", operation.name()), 515);
            }
            Ok(())
        }));
    }
    for from in DType::ALL {
        tests.push(Test::new(format!("native::casts_of_{from}"), move || {
            for to in DType::ALL {
                let graph = Graph::new();
                let x = graph.input(from);
                let expression = graph.expression(&[x.cast(to)]).expect("an expression");
                compare(&expression, &format!("a cast of {from} to {to}"), 515);
            }
            Ok(())
        }));
    }
    tests
}

pub fn always() -> Vec<Test> {
    let named = |name: &str, run: fn()| Test::of(format!("native::{name}"), run);
    vec![
        named("tails_and_misaligned_operands_are_exact", tails),
        named("a_run_in_place_reads_before_it_writes", in_place),
        named("only_blocks_with_a_rare_element_are_flagged", rare_elements),
        named("scalars_of_a_run_reach_the_code", scalars),
        named("selections_of_the_lesser_are_those_of_the_interpreter", selected_extremes),
        named("any_operand_may_be_equal_for_all_elements", uniform_operands),
        named("more_operands_than_registers_are_read", many_operands),
        named("long_programs_spill", long_programs),
        named("quotients_of_64_bits_are_exact_at_every_width", wide_quotients),
        named("strided_layouts_go_through_scratch_memory", layouts),
    ]
}

pub fn expression_of(operation: Operation, dtype: DType) -> Expression {
    let count = operation.arity();
    let signature = operation.signature(&vec![dtype; count]).expect("a dtype of the operation");
    let graph = Graph::new();
    let inputs: Vec<_> = signature.operands[..count].iter().map(|&dtype| graph.input(dtype)).collect();
    graph.expression(&[inputs[0].operation(operation, &inputs[1..])]).expect("an expression")
}

/// Returns special values, and random bits in every fourth place.
///
/// Arrays of neighbouring seeds have equal values side by side first, then each value beside the next in the list, beside
/// the one before, and so on, so that operations meet equal operands and both zeros in either order.
fn array(dtype: DType, layout: Layout, seed: u64) -> Array {
    let special = special(dtype);
    let values: Vec<Value> = (0..layout.count().max(1))
        .map(|at| {
            let (block, count) = (at / special.len(), special.len());
            let distance = block.div_ceil(2) * seed as usize % count;
            special[(at + if block % 2 == 1 { distance } else { count - distance }) % count]
        })
        .collect();
    let mut array = Array::new(dtype, layout, &values, 0);
    if dtype != DType::Bool {
        let size = dtype.size();
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let offsets = super::arrays::offsets(&layout);
        for offset in offsets.into_iter().skip(3).step_by(4) {
            for byte in &mut array.bytes[offset * size..(offset + 1) * size] {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                *byte = (state >> 24) as u8;
            }
        }
    }
    array
}

pub fn shifted(count: usize, offset: usize) -> Layout {
    Layout::strided(&[count], &[1], offset).expect("a layout")
}

pub fn inputs_of(expression: &Expression, layout: Layout) -> Vec<Array> {
    expression.inputs().iter().enumerate().map(|(k, &dtype)| array(dtype, layout, 1 + k as u64)).collect()
}

pub fn outputs_of(expression: &Expression, layout: Layout) -> Vec<Array> {
    let zero = |&dtype: &DType| Array { dtype, layout, bytes: vec![0xA5; (layout.end() + 3) * dtype.size()] };
    expression.outputs().iter().map(zero).collect()
}

/// Compares the available backends with the interpreter.
fn compare(expression: &Expression, what: &str, count: usize) {
    let layout = shifted(count, 0);
    compare_on(expression, what, &inputs_of(expression, layout), &outputs_of(expression, layout));
}

/// Compares the available backends with the interpreter, and returns how many ran the expression.
pub fn compare_on(expression: &Expression, what: &str, inputs: &[Array], before: &[Array]) -> usize {
    let mut wanted = before.to_vec();
    on_host_with(CpuBackend::Interpreter, expression, inputs, &[], &mut wanted).expect("the interpreter");
    let mut ran = 0;
    for backend in BACKENDS.into_iter().filter(|backend| backend.is_available()) {
        let mut found = before.to_vec();
        match on_host_with(backend, expression, inputs, &[], &mut found) {
            Ok(_) => {
                assert_same(&format!("{what}, {backend:?}"), &wanted, &found, before);
                ran += 1;
            }
            Err(reason) => {
                let also = if backend == CpuBackend::Avx2 { INTERPRETED_WITH_AVX2 } else { &[] };
                let known = INTERPRETED.iter().chain(also);
                let is_known = known.into_iter().any(|name| reason == format!("{name} has no vector form"));
                assert!(is_known, "{what}, {backend:?}: {reason}");
            }
        }
    }
    ran
}

fn tails() {
    let cases = [
        (Operation::Add, DType::F32),
        (Operation::Add, DType::C128),
        (Operation::Mul, DType::C64),
        (Operation::Sin, DType::F32),
        (Operation::Log, DType::F64),
        (Operation::Less, DType::BF16),
        (Operation::Add, DType::I8),
        (Operation::Maximum, DType::U16),
        (Operation::Add, DType::F16),
    ];
    for (operation, dtype) in cases {
        let expression = expression_of(operation, dtype);
        for count in (0..=70).chain([2047, 2048, 2049]) {
            let outputs = outputs_of(&expression, shifted(count, count % 3));
            let inputs = inputs_of(&expression, shifted(count, count % 5));
            compare_on(&expression, &format!("{} of {count} {dtype}", operation.name()), &inputs, &outputs);
        }
    }
}

fn in_place() {
    for (operation, dtype) in
        [(Operation::Sin, DType::F32), (Operation::Sin, DType::F64), (Operation::Exp, DType::F32)]
    {
        let expression = expression_of(operation, dtype);
        let layout = shifted(5000, 1);
        let start = array(dtype, layout, 7);
        let mut apart = outputs_of(&expression, layout);
        let inputs = [start.clone()];
        on_host_with(CpuBackend::Interpreter, &expression, &inputs, &[], &mut apart)
            .expect("the interpreter");
        for backend in BACKENDS.into_iter().filter(|backend| backend.is_available()) {
            let mut words = aligned(&start.bytes);
            let bytes = &mut bytemuck::cast_slice_mut(&mut words)[..start.bytes.len()];
            let mut outputs = [HostOutput::of_bytes(dtype, bytes, layout).expect("an output")];
            let inputs = [HostInput::output(0, &outputs[0])];
            let ran = expression.run_host_with(backend, &inputs, &[], &mut outputs).expect("a run");
            assert!(ran.is_ok_and(|flagged| (flagged > 0) == (operation == Operation::Sin)));
            let bytes = bytemuck::cast_slice(&words)[..start.bytes.len()].to_vec();
            let found = [Array { bytes, ..start.clone() }];
            let mut before = apart.clone();
            before[0].bytes = start.bytes.clone();
            let mut wanted = before.clone();
            for offset in super::arrays::offsets(&layout) {
                let range = offset * dtype.size()..(offset + 1) * dtype.size();
                wanted[0].bytes[range.clone()].copy_from_slice(&apart[0].bytes[range]);
            }
            assert_same("in place", &wanted, &found, &before);
        }
    }
}

/// A mask register of 8 lanes with bits set above them would flag every block, with the right results.
fn rare_elements() {
    let cases = [
        (Operation::Sin, DType::F32, 1e9),
        (Operation::Sin, DType::F64, 1e12),
        (Operation::Log, DType::F32, 1e-40),
        (Operation::Log, DType::F64, 1e-310),
    ];
    for (operation, dtype, rare) in cases {
        let expression = expression_of(operation, dtype);
        let count = 10 * 2048;
        for every in [0, 7000, 1000, 100, 10, 1] {
            let values: Vec<Value> =
                (0..count)
                    .map(|at| {
                        if every != 0 && at % every == every - 1 {
                            rare
                        } else {
                            0.5 + (at % 97) as f64 / 64.0
                        }
                    })
                    .map(Value::Real)
                    .collect();
            let layout = shifted(count, 0);
            let inputs = [Array::new(dtype, layout, &values, 0)];
            let before = outputs_of(&expression, layout);
            compare_on(&expression, &format!("{} of {dtype}, {every}", operation.name()), &inputs, &before);
            let wanted = match every {
                0 => 0,
                7000 => 2,
                _ => 10,
            };
            for backend in BACKENDS.into_iter().filter(|backend| backend.is_available()) {
                let flagged = on_host_with(backend, &expression, &inputs, &[], &mut before.clone());
                let what = format!("{} of {dtype} with {backend:?}, one in {every}", operation.name());
                assert_eq!(flagged, Ok(wanted), "{what}");
            }
        }
    }
}

/// Dividends beside multiples of the divisor, of every width of both, for which a quotient of floats errs by one.
fn wide_quotients() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut pairs = Vec::new();
    for width in 0..64 {
        for of_quotient in 0..64 {
            let divisor = random() >> width;
            let multiple = (random() >> of_quotient).wrapping_mul(divisor);
            for offset in [0, 1, u64::MAX, divisor.wrapping_sub(1), random() >> width] {
                let dividend = multiple.wrapping_add(offset);
                pairs.push([dividend, divisor]);
                pairs.push([dividend.wrapping_neg(), divisor]);
                pairs.push([dividend, divisor.wrapping_neg()]);
            }
        }
    }
    let ends = [0, 1, 2, 3, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1, (1 << 63) + 1, (1 << 63) - 512];
    pairs.extend(ends.into_iter().flat_map(|a| ends.map(|b| [a, b])));
    let layout = shifted(pairs.len(), 0);
    let inputs = |dtype: DType| {
        [0, 1].map(|side| {
            let bytes = pairs.iter().flat_map(|pair| pair[side].to_ne_bytes()).collect();
            Array { dtype, layout, bytes }
        })
    };
    for operation in [Operation::FloorDivide, Operation::TruncDivide, Operation::Remainder, Operation::Fmod] {
        for dtype in [DType::I64, DType::U64].into_iter().filter(|&dtype| operation.dtypes().contains(dtype))
        {
            let expression = expression_of(operation, dtype);
            let before = outputs_of(&expression, layout);
            let ran = compare_on(&expression, operation.name(), &inputs(dtype), &before);
            assert_eq!(ran, usize::from(CpuBackend::Avx512.is_available()));
        }
    }
}

fn scalars() {
    let graph = Graph::new();
    let x = graph.input(DType::F32);
    let (power, factor) = (graph.scalar(DType::F32), graph.scalar(DType::F64));
    let expression = graph.expression(&[x.pow(power) * factor]).expect("an expression");
    let layout = shifted(333, 0);
    let (inputs, before) = (inputs_of(&expression, layout), outputs_of(&expression, layout));
    for (power, factor) in [(2.0, 3.0), (0.5, -1.0), (f64::INFINITY, 1.0), (-1e30, 0.25), (f64::NAN, 2.0)] {
        let scalars = [power.into(), factor.into()];
        let mut wanted = before.clone();
        on_host_with(CpuBackend::Interpreter, &expression, &inputs, &scalars, &mut wanted)
            .expect("the interpreter");
        for backend in BACKENDS.into_iter().filter(|backend| backend.is_available()) {
            let mut found = before.clone();
            on_host_with(backend, &expression, &inputs, &scalars, &mut found).expect("machine code");
            assert_same(&format!("power {power}, {backend:?}"), &wanted, &found, &before);
        }
    }
}

/// Selections between the numbers that they compare, which are one machine instruction and distinguish NaN and zeros by place.
fn selected_extremes() {
    for dtype in [DType::F32, DType::F64] {
        let graph = Graph::new();
        let (x, y) = (graph.input(dtype), graph.input(dtype));
        let less = x.lt(y);
        let expression = graph.expression(&[less.choose(x, y), less.choose(y, x), x.gt(y).choose(x, y)]);
        let expression = expression.expect("an expression");
        let special = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0, -1.0, 2.0];
        let count = special.len() * special.len();
        let layout = shifted(count, 0);
        let of = |place: &dyn Fn(usize) -> usize| {
            let values: Vec<Value> = (0..count).map(|at| Value::Real(special[place(at)])).collect();
            Array::new(dtype, layout, &values, 0)
        };
        let inputs = [of(&|at| at / special.len()), of(&|at| at % special.len())];
        let before = outputs_of(&expression, layout);
        let available = BACKENDS.into_iter().filter(|backend| backend.is_available()).count();
        assert_eq!(compare_on(&expression, "selected extremes", &inputs, &before), available);
    }
}

/// Returns literals of a dtype between which operations distinguish.
fn literals(dtype: DType) -> Vec<Number> {
    let numbers: &[Number] = match dtype {
        DType::Bool => &[Number::Bool(false), Number::Bool(true)],
        _ if dtype.is_float() || dtype.is_complex() => &[
            Number::Real(0.0),
            Number::Real(1.5),
            Number::Real(-0.0),
            Number::Real(f64::NAN),
            Number::Real(f64::INFINITY),
        ],
        _ => &[Number::Integer(0), Number::Integer(1), Number::Integer(100)],
    };
    numbers.to_vec()
}

/// Literals in every choice of places of an operation, beside an input, and in the selection that reads the result.
fn uniform_operands() {
    for &operation in Operation::ALL {
        let arity = operation.arity();
        let cases =
            operation.dtypes().iter().flat_map(|dtype| (1..(1 << arity) - 1).map(move |set| (dtype, set)));
        for (dtype, set) in cases.filter(|_| arity > 1) {
            let signature = operation.signature(&vec![dtype; arity]).expect("a dtype of the operation");
            let graph = Graph::new();
            let given = signature.operands[..arity].iter().enumerate();
            let given: Vec<_> =
                given.map(|(place, &dtype)| (set >> place & 1 == 0).then(|| graph.input(dtype))).collect();
            let mut outputs = Vec::new();
            for at in 0..literals(dtype).len() {
                let operands: Vec<_> = (0..arity)
                    .map(|place| {
                        let of = signature.operands[place];
                        let numbers = literals(of);
                        given[place]
                            .unwrap_or_else(|| graph.number(numbers[(at + place) % numbers.len()], of))
                    })
                    .collect();
                let result = operands[0].operation(operation, &operands[1..]);
                outputs.push(result);
                let number = |at: usize| graph.number(literals(signature.result)[at], signature.result);
                let first = given.iter().flatten().next().expect("an input");
                outputs.push(first.eq(*first).choose(number(1), result));
            }
            let expression = graph.expression(&outputs).expect("an expression");
            let what = format!("{} of {dtype} with the literals {set:b}", operation.name());
            compare(&expression, &what, 67);
        }
    }
}

fn many_operands() {
    for dtype in [DType::F32, DType::C128] {
        let graph = Graph::new();
        let inputs: Vec<_> = (0..21).map(|_| graph.input(dtype)).collect();
        let sum = inputs[1..].iter().fold(inputs[0], |sum, &input| sum * 0.5 + input);
        let expression = graph.expression(&[sum, inputs[20] - inputs[0]]).expect("an expression");
        compare(&expression, "many operands", 77);
    }
}

fn long_programs() {
    let graph = Graph::new();
    let x = graph.input(DType::F64);
    let numbers: Vec<_> = (0..8).map(|k| graph.number(f64::from(k) + 1.0 / 3.0, DType::F64)).collect();
    // Every value is read twice, far apart, and so is every condition.
    let values: Vec<_> = (0..60).map(|k| x * numbers[k / 8] + numbers[k % 8]).collect();
    let conditions: Vec<_> = (0..12).map(|k| values[5 * k].lt(values[59 - k])).collect();
    let mut sum = values[0];
    for (k, &value) in values.iter().enumerate().rev() {
        sum = conditions[k % 12].choose(sum * value, value - sum);
    }
    let expression = graph.expression(&[sum]).expect("an expression");
    compare(&expression, "a long program", 100);
}

fn layouts() {
    let expression = expression_of(Operation::Hypot, DType::F32);
    let sizes = [6, 300];
    let contiguous = Layout::contiguous(&sizes).expect("a layout");
    let transposed = Layout::strided(&sizes, &[1, 6], 0).expect("a layout");
    let stepped = Layout::strided(&sizes, &[1500, 2], 3).expect("a layout");
    let padded = Layout::strided(&sizes, &[333, 1], 2).expect("a layout");
    let backwards = Layout::strided(&sizes, &[300, -1], 299).expect("a layout");
    let row = Layout::contiguous(&[300]).expect("a layout");
    let column = Layout::contiguous(&[6, 1]).expect("a layout");
    let one = Layout::contiguous(&[]).expect("a layout");
    let all = [contiguous, transposed, stepped, padded, backwards, row, column, one];
    for output in [contiguous, transposed, stepped, padded, backwards] {
        for first in all {
            for second in all {
                let inputs = [array(DType::F32, first, 3), array(DType::F32, second, 4)];
                let ran = compare_on(&expression, "a layout", &inputs, &outputs_of(&expression, output));
                let available = BACKENDS.into_iter().filter(|backend| backend.is_available()).count();
                assert_eq!(ran, available);
            }
        }
    }
    // The first block ends within a row and needs scratch memory; the last one has three elements of a row and needs none.
    let short = Layout::strided(&[103, 5], &[7, 1], 0).expect("a layout");
    let output = outputs_of(&expression, short);
    compare_on(&expression, "short rows", &inputs_of(&expression, short), &output);
}
