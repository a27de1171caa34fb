//! Streaming stores of machine code against the interpreter, for both instruction sets: dtypes, tails, several chunks and
//! threads, rare bodies, and the cases in which plain stores are used.

use selvedge::fuse::{CpuBackend, Expression, Graph, HostInput, HostOutput, Operation};
use selvedge::types::{DType, Layout};

use super::arrays::{Array, assert_same, on_host_with, with_host};
use super::native::{BACKENDS, expression_of, inputs_of, outputs_of, shifted};
use super::native_coordinates;
use crate::common::suite::Test;

/// The bytes of a cache line.
const LINE: usize = 64;

pub fn always() -> Vec<Test> {
    let named = |name: &str, run: fn()| Test::of(format!("native::{name}"), run);
    vec![
        named("streaming_stores_are_exact", streaming),
        named("outputs_that_a_cache_holds_are_not_streamed", sizes),
        named("outputs_between_lines_are_not_streamed", misaligned),
        named("strided_outputs_are_not_streamed", strided),
        named("a_run_in_place_is_not_streamed", in_place),
    ]
}

/// Returns the bytes of the memory that begin at a line.
fn at_line(memory: &mut [u8], length: usize) -> &mut [u8] {
    let skipped = memory.as_ptr().align_offset(LINE);
    &mut memory[skipped..skipped + length]
}

/// Runs with outputs whose memory begins at a line. Returns the number of blocks with streaming stores.
fn run(
    backend: CpuBackend,
    expression: &Expression,
    least: usize,
    inputs: &[Array],
    outputs: &mut [Array],
) -> usize {
    let mut memories: Vec<Vec<u8>> =
        outputs.iter().map(|output| vec![0; output.bytes.len() + LINE]).collect();
    for (memory, output) in memories.iter_mut().zip(&*outputs) {
        at_line(memory, output.bytes.len()).copy_from_slice(&output.bytes);
    }
    let streamed = with_host(inputs, &mut [], |inputs, _| {
        let mut of_run: Vec<_> = memories
            .iter_mut()
            .zip(&*outputs)
            .map(|(memory, output)| {
                let bytes = at_line(memory, output.bytes.len());
                HostOutput::of_bytes(output.dtype, bytes, output.layout).expect("an output")
            })
            .collect();
        expression.run_host_streaming(backend, least, inputs, &[], &mut of_run).expect("a run")
    });
    for (memory, output) in memories.iter_mut().zip(outputs) {
        let length = output.bytes.len();
        output.bytes.copy_from_slice(at_line(memory, length));
    }
    streamed.expect("machine code")
}

/// Compares each available backend with the interpreter, and passes the backend and its streamed blocks to `check`.
fn compare(
    what: &str,
    expression: &Expression,
    least: usize,
    inputs: &[Array],
    before: &[Array],
    check: impl Fn(CpuBackend, usize),
) {
    let mut wanted = before.to_vec();
    on_host_with(CpuBackend::Interpreter, expression, inputs, &[], &mut wanted).expect("the interpreter");
    for backend in BACKENDS.into_iter().filter(|backend| backend.is_available()) {
        let mut found = before.to_vec();
        let streamed = run(backend, expression, least, inputs, &mut found);
        assert_same(&format!("{what}, {backend:?}"), &wanted, &found, before);
        check(backend, streamed);
    }
}

/// Returns the sum of nine inputs: more operands than registers have addresses.
fn many_operands() -> Expression {
    let graph = Graph::new();
    let inputs: Vec<_> = (0..9).map(|_| graph.input(DType::F32)).collect();
    let sum = inputs[1..].iter().fold(inputs[0], |sum, &input| sum + input);
    graph.expression(&[sum, sum * 2.0]).expect("an expression")
}

/// Returns a program with outputs of 4, 2 and 1 bytes an element.
fn several_outputs() -> Expression {
    let graph = Graph::new();
    let [x, y] = [graph.input(DType::F32), graph.input(DType::F32)];
    graph.expression(&[x * y, (x + y).cast(DType::BF16), x.lt(y)]).expect("an expression")
}

fn streaming() {
    let uniform = native_coordinates::expressions().into_iter().find(|(name, _)| *name == "uniform numbers");
    let mut expressions = vec![("nine inputs", many_operands()), ("several outputs", several_outputs())];
    expressions.extend(uniform);
    let operations = [
        ("sums", Operation::Add, DType::F32),
        ("products", Operation::Mul, DType::I32),
        ("sums", Operation::Add, DType::I64),
        ("products", Operation::Mul, DType::C64),
        ("sums", Operation::Add, DType::C128),
        // Rare bodies.
        ("sines", Operation::Sin, DType::F32),
        ("sines", Operation::Sin, DType::F64),
    ];
    expressions.extend(operations.map(|(name, operation, dtype)| (name, expression_of(operation, dtype))));
    for (name, expression) in &expressions {
        // One to several turns with and without a tail, chunks, and threads.
        for count in [15, 16, 64, 100, 5001, 40_000, 150_003] {
            let layout = shifted(count, 0);
            let (inputs, outputs) = (inputs_of(expression, layout), outputs_of(expression, layout));
            let what = format!("{count} of {name} {:?}", expression.outputs());
            compare(&what, expression, 0, &inputs, &outputs, |backend, streamed| {
                assert!(streamed > 0, "{what}, {backend:?}");
            });
        }
    }
    // Stores of half words and masks have no streaming form.
    let less = expression_of(Operation::Less, DType::F32);
    let layout = shifted(5001, 0);
    let (inputs, outputs) = (inputs_of(&less, layout), outputs_of(&less, layout));
    compare("less", &less, 0, &inputs, &outputs, |_, streamed| assert_eq!(streamed, 0));
}

fn sizes() {
    let expression = expression_of(Operation::Add, DType::F32);
    let layout = shifted(5000, 0);
    let (inputs, outputs) = (inputs_of(&expression, layout), outputs_of(&expression, layout));
    for (least, streams) in [(20_000, false), (19_999, true)] {
        compare("a size", &expression, least, &inputs, &outputs, |_, streamed| {
            assert_eq!(streamed > 0, streams, "{least}");
        });
    }
}

fn misaligned() {
    let expression = several_outputs();
    let layout = shifted(40_000, 0);
    let inputs = inputs_of(&expression, layout);
    for (output, offset) in [(0, 1), (0, 8), (1, 1), (2, 63)] {
        let mut outputs = outputs_of(&expression, layout);
        outputs[output] = outputs_of(&expression, shifted(40_000, offset)).swap_remove(output);
        compare("between lines", &expression, 0, &inputs, &outputs, |_, streamed| assert_eq!(streamed, 0));
    }
    // An offset of whole lines.
    let outputs = outputs_of(&expression, shifted(40_000, 64));
    compare("at a line", &expression, 0, &inputs, &outputs, |_, streamed| assert!(streamed > 0));
}

fn strided() {
    let expression = expression_of(Operation::Add, DType::F32);
    let sizes = [40, 512];
    let inputs = inputs_of(&expression, Layout::contiguous(&sizes).expect("a layout"));
    for strides in [[2, 80], [1024, 1]] {
        let layout = Layout::strided(&sizes, &strides, 0).expect("a layout");
        let outputs = outputs_of(&expression, layout);
        compare("strides", &expression, 0, &inputs, &outputs, |_, streamed| {
            assert_eq!(streamed, 0, "{strides:?}")
        });
    }
    // Inputs with other strides leave the output contiguous.
    let layout = Layout::strided(&sizes, &[1, 40], 0).expect("a layout");
    let outputs = outputs_of(&expression, Layout::contiguous(&sizes).expect("a layout"));
    compare("strided inputs", &expression, 0, &inputs_of(&expression, layout), &outputs, |_, streamed| {
        assert!(streamed > 0);
    });
}

fn in_place() {
    let expression = expression_of(Operation::Sin, DType::F32);
    let layout = shifted(5000, 0);
    let inputs = inputs_of(&expression, layout);
    let mut wanted = outputs_of(&expression, layout);
    on_host_with(CpuBackend::Interpreter, &expression, &inputs, &[], &mut wanted).expect("the interpreter");
    for backend in BACKENDS.into_iter().filter(|backend| backend.is_available()) {
        let mut memory = vec![0; inputs[0].bytes.len() + LINE];
        let bytes = at_line(&mut memory, inputs[0].bytes.len());
        bytes.copy_from_slice(&inputs[0].bytes);
        let mut outputs = [HostOutput::of_bytes(DType::F32, bytes, layout).expect("an output")];
        let of_run = [HostInput::output(0, &outputs[0])];
        let streamed = expression.run_host_streaming(backend, 0, &of_run, &[], &mut outputs).expect("a run");
        assert_eq!(streamed, Ok(0), "{backend:?}");
        let found =
            [Array { bytes: at_line(&mut memory, wanted[0].bytes.len()).to_vec(), ..wanted[0].clone() }];
        assert_same("in place", &wanted, &found, &found);
    }
}
